"""Masks credentials of known shapes as `[REDACTED:rule]`, before anything is stored or cut into pieces.

High precision only (rulings, "Secrets"): every rule starts from a literal that its issuer gives the credential, or
from the name beside it, so hashes, ids, paths and encoded data stay as they are. Masking is idempotent and takes time
linear in the text. Almost every record holds no secret: `Masker.needed` says so from its raw bytes for a fraction of
the cost of parsing it. A rule therefore has to have its trigger in `TRIGGERS`, or it never runs.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_MARK = "[REDACTED:"
_SHORTEST = 8
"""No credential that is known here fits into fewer characters."""


def _token(start: str, rest: str, stop: str = "") -> str:
    """A token that begins with `start` (a pattern of fixed width), not in the middle of another word.

    The literal stands first and the look behind it second, which lets the engine skip to it. What may precede besides
    a non-word character: an escape that was decoded once too rarely (`\\n`), a colour code (`ESC[32m`), `%3D`.
    """
    before = (
        rf"(?<![A-Za-z0-9_\-]{start})",
        rf"(?<=\\[nrt]{start})",
        rf"(?<=[\[;0-9][mK]{start})",
        rf"(?<=%[0-9A-F]{{2}}{start})",
    )
    return f"{start}(?:{'|'.join(before)}){rest}{stop}"


def _is_mixed(text: str) -> bool:
    """Letters and digits both: no word, no row of x."""
    return any(char.isdigit() for char in text) and any(char.isalpha() for char in text)


def _is_jwt(text: str) -> bool:
    """The first part decodes to a JSON object that names its algorithm."""
    import json

    header = text.partition(".")[0].translate({45: 43, 95: 47})
    try:
        decoded = json.loads(a2b_base64(header + "=" * (-len(header) % 4)))
    except (Base64Error, ValueError, RecursionError):
        return False
    return isinstance(decoded, dict) and "alg" in decoded


def _is_key_block(text: str) -> bool:
    """Something stands between BEGIN and END: `"-----BEGIN …", "-----END …"` in a program does not count."""
    return re.search(r"-----[^-]*?[A-Za-z0-9+/]{6}", text[10:]) is not None


def _is_password(text: str) -> bool:
    """No placeholder (`$PASSWORD`, `${…}`, `{…}`, `<…>`, `%s`, `***`) and not masked already."""
    return re.fullmatch(r"\$\w+|[$%#]?[{(\[].*|%\w|\*+|\.+", text) is None


@dataclass(slots=True, frozen=True)
class Rule:
    """`literals`: one of them is in every text that `pattern` matches. Group 1 is what is masked, else all of it."""

    name: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None = None


def _rule(name: str, literals: str, pattern: str, check: Callable[[str], bool] | None = None) -> Rule:
    return Rule(name, tuple(literals.split("|")), re.compile(pattern), check)


_QUOTED = r"\\{0,4}[\"']?\s{0,4}[:=]\s{0,4}\\{0,4}[\"']?"
"""Between a name and its value, in any notation, escaped or not."""
_SLASH = r"\\{0,4}/"
_KEY_NAME = r"(?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_KEY_LINE = r"(?:\\{1,4}[nr]|[\s\"'+,|>])*[A-Za-z0-9+/=]{32,}"

RULES: tuple[Rule, ...] = (
    _rule(
        "private-key",
        "PRIVATE KEY",
        rf"-----BEGIN {_KEY_NAME}"
        rf"(?:(?:[A-Za-z0-9+/=\s\\:,.\"'*|>→]|-(?!----)){{1,20000}}-----END {_KEY_NAME}|(?:{_KEY_LINE})+)",
        _is_key_block,
    ),
    _rule("telegram-token", ":AA", r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_\-]{33}"),
    _rule("anthropic-key", "sk-ant-", _token("sk-", r"ant-[A-Za-z0-9_\-]{16,}")),
    _rule("openrouter-key", "sk-or-", _token("sk-", r"or-(?:v\d-)?[A-Za-z0-9]{32,}")),
    _rule("openai-key", "sk-", _token("sk-", r"(?:proj|svcacct|admin|None)-[A-Za-z0-9_\-]{20,}")),
    _rule("openai-key", "sk-", _token("sk-", r"[A-Za-z0-9]{20,}"), _is_mixed),
    _rule("github-token", "ghp_|gho_|ghu_|ghs_|ghr_", _token("gh[pousr]_", r"[A-Za-z0-9]{30,}")),
    _rule("github-token", "github_pat_", _token("github_pat_", r"[A-Za-z0-9_]{22,}")),
    _rule("gitlab-token", "glpat-", _token("glpat-", r"[A-Za-z0-9_\-]{20,}")),
    _rule("slack-token", "xox", _token("xox[abeoprs]-", r"[A-Za-z0-9\-]{10,}"), _is_mixed),
    _rule("slack-token", "xapp-", _token("xapp-", r"[A-Za-z0-9\-]{20,}"), _is_mixed),
    _rule(
        "slack-webhook",
        "hooks.slack.com",
        rf"hooks\.slack\.com{_SLASH}services{_SLASH}(T[A-Z0-9]{{6,}}{_SLASH}B[A-Z0-9]{{6,}}{_SLASH}[A-Za-z0-9]{{16,}})",
    ),
    _rule("aws-access-key", "AKIA|ASIA", _token("A[KS]IA", r"[A-Z0-9]{16}", r"(?![A-Za-z0-9])")),
    _rule(
        "aws-secret-key",
        "ecret_access_key|SECRET_ACCESS_KEY|ecretAccessKey",
        rf"(?:[Ss]ecret_access_key|SECRET_ACCESS_KEY|[Ss]ecretAccessKey){_QUOTED}([A-Za-z0-9+/]{{40}})(?![A-Za-z0-9+/=])",
    ),
    _rule("google-key", "AIza", _token("AIza", r"[A-Za-z0-9_\-]{35}", r"(?![A-Za-z0-9_\-])")),
    _rule("stripe-key", "k_live_|k_test_", _token("[rs]k_(?:live|test)_", r"[A-Za-z0-9]{16,}")),
    _rule("npm-token", "npm_", _token("npm_", r"[A-Za-z0-9]{36}", r"(?![A-Za-z0-9_])")),
    _rule("pypi-token", "pypi-AgE", _token("pypi-", r"AgE[A-Za-z0-9_\-]{16,}")),
    _rule("huggingface-token", "hf_", _token("hf_", r"[A-Za-z0-9]{30,}", r"(?![A-Za-z0-9_])")),
    _rule("sendgrid-key", "SG.", _token(r"SG\.", r"[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}")),
    _rule("twilio-key", "SK", _token("SK", r"[0-9a-f]{32}", r"(?![A-Za-z0-9])")),
    _rule("azure-key", "AccountKey|AccessKey", r"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{42,86}={1,2})"),
    _rule("jwt", "eyJ", _token("eyJ", r"[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{16,}"), _is_jwt),
    _rule(
        "authorization",
        "uthorization",
        rf"uthorization{_QUOTED}(?:[Bb]earer|[Bb]asic|[Tt]oken)\s([A-Za-z0-9._~+/=\-]{{16,}})",
    ),
    _rule("authorization", "Bearer ", _token("Bearer ", r"([A-Za-z0-9._~+/=\-]{20,})"), _is_mixed),
    _rule(
        "url-password",
        "@",
        rf"(?<=[A-Za-z0-9]):{_SLASH}{_SLASH}[^\s/@:,\"'<>\\]{{0,128}}:([^\s/@\"'<>\\]{{1,256}})@(?=[A-Za-z0-9_\[$%{{])",
        _is_password,
    ),
)

TRIGGERS: tuple[str, ...] = (
    r"_(?:[A-Za-z0-9]{16}(?:(?<=gh[pousr]_.{16})|(?<=hub_pat_.{16})|(?<=k_live_.{16})|(?<=k_test_.{16})|(?<=npm_.{16})"
    r"|(?<=hf_.{16}))|key(?<=ecret_access_key))",
    r"-(?:(?<=[kti]-)(?:(?<=sk-)|(?<=glpat-)|(?<=pypi-))[A-Za-z0-9]|(?<=xox[abeoprs]-)|(?<=xapp-))",
    r"A(?:(?<=:A)A[A-Za-z0-9_\-]{33}|[KS]IA[A-Z0-9]{16})",
    r"J(?<=eyJ)[A-Za-z0-9_\-]{8,}\.",
    r"G(?<=SG)\.[A-Za-z0-9_\-]{16}",
    r"z(?:(?<=AIz)a|(?<=uthoriz)ation)",
    r"K(?:(?<=SK)[0-9a-f]{32}|(?<=PRIVATE K)EY|(?<=ACCESS_K)EY|(?<=cessK)ey|(?<=countK)ey)",
    r"B(?:earer |(?<=/B)[A-Z0-9]{6})",
)
"""Each begins with one rare character, which the engine finds at memory speed; the rest is looked at only there.

(Testing for 25 literals one by one costs five times as much, one alternation ten times.)"""

_HIDDEN = re.compile(rb"\\u00(?:2[d-fD-F]|3[0-9aAdD]|[4-7])")
"""A printable ASCII character written as an escape, as no usual writer does: it could hide any literal."""
_RAW_URL = re.compile(rb":\\*/\\*/[^\s/@:\"]{0,128}:[^\s/@\"]{1,1024}@")
_RAW_TRIGGERS = tuple(
    (pattern.pattern[:1], pattern.search) for pattern in (*(re.compile(text.encode()) for text in TRIGGERS), _HIDDEN)
)
"""The first character of each, and its search."""
_TRIGGERS = tuple(re.compile(trigger).search for trigger in TRIGGERS)


class Masker:
    """Masks texts and counts what it masked, by rule; one for each file read, so that counts go with the file."""

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        self.counts: dict[str, int] = {}

    def needed(self, raw: bytes) -> bool:
        """Whether a JSON record may hold a secret. False is certain, True is worth parsing and masking it."""
        if not self.enabled:
            return False
        if b"@" in raw and _RAW_URL.search(raw):
            return True
        for character, search in _RAW_TRIGGERS:
            at = raw.find(character)
            if at >= 0 and search(raw, at):
                return True
        return False

    def mask(self, text: str) -> str:
        """`text` with every secret replaced. The same text comes back where there is none."""
        if not self.enabled or len(text) < _SHORTEST:
            return text
        if "@" not in text and not any(search(text) for search in _TRIGGERS):
            return text
        before = ""
        # Once more after a change: of two secrets that touch, the one may only be told when the other is gone.
        while text != before:
            before = text
            for rule in RULES:
                if any(literal in text for literal in rule.literals):
                    text = self._apply(rule, text)
        return text

    def mask_value(self, value: Any) -> Any:
        """A JSON value with every string in it masked, keys too; a copy, however deep the value is."""
        root: list[Any] = [None]
        todo: list[tuple[Any, Any, Any]] = [(value, root, 0)]
        while todo:
            node, parent, place = todo.pop()
            if isinstance(node, str):
                parent[place] = self.mask(node)
            elif isinstance(node, dict):
                parent[place] = copy = dict.fromkeys(self._keys(node))
                todo.extend((item, copy, key) for item, key in zip(node.values(), copy, strict=True))
            elif isinstance(node, list):
                parent[place] = items = [None] * len(node)
                todo.extend((item, items, index) for index, item in enumerate(node))
            else:
                parent[place] = node
        return root[0]

    def _keys(self, node: dict[str, Any]) -> list[str]:
        keys: dict[str, None] = {}
        for key in node:
            masked = self.mask(key)
            # Two secrets of one kind as keys of one object: neither value may be lost.
            while masked in keys:
                masked += "'"
            keys[masked] = None
        return list(keys)

    def _apply(self, rule: Rule, text: str) -> str:
        group = rule.pattern.groups

        def replace(match: re.Match[str]) -> str:
            secret = match[group]
            if secret.startswith(_MARK) or (rule.check is not None and not rule.check(secret)):
                return match[0]
            self.counts[rule.name] = self.counts.get(rule.name, 0) + 1
            start, end = match.start(group) - match.start(), match.end(group) - match.start()
            return f"{match[0][:start]}{_MARK}{rule.name}]{match[0][end:]}"

        return rule.pattern.sub(replace, text)
