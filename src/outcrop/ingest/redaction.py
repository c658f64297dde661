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
    """No placeholder (`$PASSWORD`, `${…}`, `{…}`, `<…>`, `%s`, `***`), no port with what follows it, not masked."""
    return re.fullmatch(r"\$\w+|[$%#]?[{(\[].*|%\w|\*+|\.+|\d{1,5}[\\/?#,;&|)].*", text) is None


def _is_dsn_password(text: str) -> bool:
    """A value, where a program would have a variable, an attribute or a call: `password=self.password;`."""
    return _is_password(text) and re.fullmatch(r"%\w+%|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|.*\(.*\)", text) is None


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
_PPK_BREAK = r"(?:\\{1,4}[nr]|\s){1,16}(?:\d{1,6}[\t→|:] {0,4})?"
_PASSWORD = r"[^\s/@\"'`<>\\]"
"""A character of a password in any URL."""
_DSN_PASSWORD = rf"(?:{_PASSWORD}|\\{{0,4}}/(?!\\{{0,4}}/)|\\{{0,4}}[\"'`](?=[A-Za-z0-9])|<(?=[A-Za-z0-9]))"
"""In the URL of a database a raw `/`, `<` or quote belongs to the password, if it cannot be the end of the URL."""
_MORE = (
    r"(?:@(?![A-Za-z0-9\-]{1,64}(?:\.[A-Za-z0-9.\-]{1,128}|(?=:))(?::\d{1,5})?[,;|&)\]}])"
    r"[^\s/@\"'`<>\\?#]{1,128}){0,4}"
)
"""An `@` in the password: no host and its end stand between it and the next one."""
_AT_HOST = r"@(?=[A-Za-z0-9_\[$%{])"
_DATABASE = (
    r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|valkeys?|amqps?|mssql|sqlserver|clickhouse|cockroachdb|oracle)"
    r"(?:\+[a-z0-9_]{1,16})?"
)
_DSN_KEY = (
    r"(?:server|data source|host(?:name)?|addr(?:ess)?|port|database|initial catalog|db ?name|user(?: ?id|name)?|uid"
    r"|driver|encrypt|trustservercertificate|persist security info|pooling|ssl ?mode|charset)"
)
_APART = r"(?:(?<![A-Za-z0-9_.\-])|(?<=\\[nrt])|(?<=[\[;0-9][mK])|(?<=%[0-9A-F]{2}))"
"""Not in the middle of a word or a path of attributes; what `_token` lets precede may precede."""
_DSN_VALUE = r"([^\s;\"'`<>\\]{4,256})"

RULES: tuple[Rule, ...] = (
    _rule(
        "private-key",
        "PRIVATE KEY",
        rf"-----BEGIN {_KEY_NAME}"
        rf"(?:(?:[A-Za-z0-9+/=\s\\:,.\"'*|>→]|-(?!----)){{1,20000}}-----END {_KEY_NAME}|(?:{_KEY_LINE})+)",
        _is_key_block,
    ),
    _rule(
        "private-key",
        "Private-Lines: ",
        rf"Private-Lines: \d{{1,4}}((?:{_PPK_BREAK}[A-Za-z0-9+/=]{{32,}})+"
        rf"(?:{_PPK_BREAK}[A-Za-z0-9+/=]{{1,64}}(?![A-Za-z0-9+/=:\-]))?)",
    ),
    _rule("telegram-token", ":AA", r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_\-]{33}"),
    _rule("anthropic-key", "sk-ant-", _token("sk-", r"ant-[A-Za-z0-9_\-]{16,}")),
    _rule("openrouter-key", "sk-or-", _token("sk-", r"or-(?:v\d-)?[A-Za-z0-9]{32,}")),
    _rule("openai-key", "sk-", _token("sk-", r"(?:proj|svcacct|admin|None)-[A-Za-z0-9_\-]{20,}")),
    _rule("openai-key", "sk-", _token("sk-", r"[A-Za-z0-9]{20,}"), _is_mixed),
    _rule("github-token", "ghp_|gho_|ghu_|ghs_|ghr_", _token("gh[pousr]_", r"[A-Za-z0-9]{30,}")),
    _rule("github-token", "github_pat_", _token("github_pat_", r"[A-Za-z0-9_]{22,}")),
    _rule("gitlab-token", "glpat-", _token("glpat-", r"[A-Za-z0-9_\-]{20,}")),
    _rule("gitlab-token", "gldt-|glrt-", _token("gl[dr]t-", r"[A-Za-z0-9_\-]{20,}"), _is_mixed),
    _rule("gitlab-token", "glptt-", _token("glptt-", r"[0-9a-f]{40}", r"(?![A-Za-z0-9])")),
    _rule(
        "gitlab-token",
        "glcbt-",
        _token("glcbt-", r"(?:[A-Za-z0-9]{1,5}_)?[A-Za-z0-9_\-]{20,}(?:\.[A-Za-z0-9_\-]{16,}){0,2}"),
        _is_mixed,
    ),
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
    _rule("google-oauth", "GOCSPX-", _token("GOCSPX-", r"[A-Za-z0-9_\-]{28}", r"(?![A-Za-z0-9_\-])")),
    _rule("google-oauth", "ya29.", _token(r"ya29\.", r"(?:[a-z]\.)?[A-Za-z0-9_\-]{30,}"), _is_mixed),
    _rule("groq-key", "gsk_", _token("gsk_", r"[A-Za-z0-9]{40,}", r"(?![A-Za-z0-9_])"), _is_mixed),
    _rule("xai-key", "xai-", _token("xai-", r"[A-Za-z0-9_]{60,}", r"(?![A-Za-z0-9_\-])"), _is_mixed),
    _rule("perplexity-key", "pplx-", _token("pplx-", r"[A-Za-z0-9]{40,}", r"(?![A-Za-z0-9_\-])"), _is_mixed),
    _rule("cerebras-key", "csk-", _token("csk-", r"[A-Za-z0-9]{40,}", r"(?![A-Za-z0-9_\-])"), _is_mixed),
    _rule("tavily-key", "tvly-", _token("tvly-", r"(?:dev-|prod-)?[A-Za-z0-9\-]{24,}"), _is_mixed),
    _rule("replicate-token", "r8_", _token("r8_", r"[A-Za-z0-9]{37}", r"(?![A-Za-z0-9_\-])"), _is_mixed),
    _rule("langsmith-key", "lsv2_", _token("lsv2_", r"(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", r"(?![A-Za-z0-9])")),
    _rule("vault-token", "hvs.|hvb.|hvr.", _token(r"hv[sbr]\.", r"[A-Za-z0-9_\-]{24,}"), _is_mixed),
    _rule("digitalocean-token", "_v1_", _token("do[opr]_v1_", r"[0-9a-f]{64}", r"(?![A-Za-z0-9])")),
    _rule("shopify-token", "shp", _token("shp(?:at|ss|ca|pa)_", r"[0-9a-fA-F]{32}", r"(?![A-Za-z0-9])")),
    _rule("age-key", "AGE-SECRET-KEY-1", _token("AGE-SECRET-KEY-1", r"[02-9AC-HJ-NP-Z]{58}", r"(?![A-Za-z0-9])")),
    # These may hold a `_`; only those without one in the first sixteen are found, as the prefilter needs such a run.
    _rule("docker-token", "dckr_", _token("dckr_[po]at_", r"[A-Za-z0-9\-]{16}[A-Za-z0-9_\-]{11,}"), _is_mixed),
    _rule("linear-key", "lin_api_", _token("lin_api_", r"[A-Za-z0-9]{40}", r"(?![A-Za-z0-9])")),
    _rule("notion-token", "ntn_", _token("ntn_", r"[A-Za-z0-9]{43,48}", r"(?![A-Za-z0-9_])"), _is_mixed),
    _rule("notion-token", "secret_", _token("secret_", r"[A-Za-z0-9]{43,48}", r"(?![A-Za-z0-9_])"), _is_mixed),
    _rule("figma-token", "figd_", _token("figd_", r"[A-Za-z0-9\-]{16}[A-Za-z0-9_\-]{24,}"), _is_mixed),
    _rule("supabase-key", "sbp_", _token("sbp_", r"[0-9a-f]{40}", r"(?![A-Za-z0-9])")),
    _rule("supabase-key", "sb_secret_", _token("sb_secret_", r"[A-Za-z0-9\-]{16}[A-Za-z0-9_\-]{14,}"), _is_mixed),
    _rule("grafana-token", "glsa_", _token("glsa_", r"[A-Za-z0-9]{32}_[0-9a-fA-F]{8}", r"(?![A-Za-z0-9])")),
    _rule("grafana-token", "glc_eyJ", _token("glc_", r"eyJ[A-Za-z0-9]{13}[A-Za-z0-9+/]{17,}={0,2}")),
    _rule("sentry-token", "sntryu_", _token("sntryu_", r"[0-9a-f]{64}", r"(?![A-Za-z0-9])")),
    _rule(
        "sentry-token",
        "sntrys_",
        _token("sntrys_", r"eyJ[A-Za-z0-9]{13}[A-Za-z0-9+/]{27,}={0,2}(?:_[A-Za-z0-9+/]{30,})?"),
    ),
    _rule(
        "doppler-token",
        "dp.",
        _token(r"dp\.[sp]t\.", r"(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{40,44}", r"(?![A-Za-z0-9])"),
    ),
    _rule("pulumi-token", "pul-", _token("pul-", r"[0-9a-f]{40}", r"(?![A-Za-z0-9])")),
    _rule("rubygems-key", "rubygems_", _token("rubygems_", r"[0-9a-f]{48}", r"(?![A-Za-z0-9])")),
    _rule("newrelic-key", "NRAK-", _token("NRAK-", r"[A-Z0-9]{27}", r"(?![A-Za-z0-9])")),
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
        rf"{_DATABASE}:{_SLASH}{_SLASH}[^\s/@:,\"'<>\\]{{0,128}}:({_DSN_PASSWORD}{{1,256}}{_MORE}){_AT_HOST}",
        _is_password,
    ),
    _rule(
        "url-password",
        "@",
        rf"(?<=[A-Za-z0-9]):{_SLASH}{_SLASH}[^\s/@:,\"'<>\\]{{0,128}}:({_PASSWORD}{{1,256}}{_MORE}){_AT_HOST}",
        _is_password,
    ),
    _rule(
        "dsn-password",
        "assword=|wd=|WORD=|WD=",
        rf"{_APART}(?i:{_DSN_KEY}=[^;=\n\"'`]{{0,200}}; ?(?:password|pwd)=){_DSN_VALUE}",
        _is_dsn_password,
    ),
    _rule(
        "dsn-password",
        "assword=|wd=|WORD=|WD=",
        rf"{_APART}(?i:password|pwd)={_DSN_VALUE}(?=; ?(?i:{_DSN_KEY})=)",
        _is_dsn_password,
    ),
)

_BEFORE_16 = "|".join(
    rf"(?<={prefix}_.{{16}})"
    for prefix in (
        *("gh[pousr]", "hub_pat", "k_live", "k_test", "npm", "hf", "gsk", "r8", "sv2_(?:pt|sk)", "do[opr]_v1"),
        *("secret", "shp(?:at|ss|ca|pa)", "lin_api", "ntn", "sbp", "glsa", "glc", "ntry[su]", "ubygems", "figd"),
        "ckr_[po]at",
    )
)
"""Before `_` and sixteen characters: the names are compared only where so long a run follows."""

TRIGGERS: tuple[str, ...] = (
    rf"_(?:[A-Za-z0-9\-]{{16}}(?:{_BEFORE_16})|key(?<=ecret_access_key))",
    r"-(?:(?<=[satbdrpluP][ktipxlyX]-)(?:(?<=sk-)|(?<=gl(?:pat|ptt|cbt)-)|(?<=gl[dr]t-)|(?<=pypi-)|(?<=pplx-)"
    r"|(?<=xai-)|(?<=tvly-)|(?<=pul-)|(?<=xapp-)|(?<=GOCSPX-))[A-Za-z0-9_\-]|(?<=xox[abeoprs]-)"
    r"|Lines: \d(?<=Private-Lines: \d))",
    r"\.[A-Za-z0-9_\-]{16}(?:(?<=SG\..{16})|(?<=hv[sbr]\..{16})|(?<=ya29\..{16})|(?<=ya29\.[a-z]\..{16})"
    r"|[A-Za-z0-9]{24})",
    r"J(?<=eyJ)[A-Za-z0-9_\-]{8}",
    r"A(?:(?<=:A)A[A-Za-z0-9_\-]{33}|[KS]IA[A-Z0-9]{16})",
    r"z(?:(?<=AIz)a|(?<=uthoriz)ation)",
    r"K(?:(?<=SK)[0-9a-f]{32}|(?<=PRIVATE K)EY|(?<=ACCESS_K)EY|(?<=cessK)ey|(?<=countK)ey|(?<=SECRET-K)EY-1"
    r"|(?<=NRAK)-)",
    r"B(?:earer |(?<=/B)[A-Z0-9]{6})",
    r"; ?[A-Za-z][A-Za-z ]{2,24}=",
)
"""Each begins with one rare character, which the engine finds at memory speed; the rest is looked at only there.

(Testing for 25 literals one by one costs five times as much, one alternation ten times.)"""

_HIDDEN = re.compile(rb"\\u00(?:2[d-fD-F]|3[0-9aAdD]|[4-7])")
"""A printable ASCII character written as an escape, as no usual writer does: it could hide any literal."""
_RAW_URL = re.compile(rb":\\*/\\*/[^\s/@:\"]{0,128}:[^\s@]{1,1024}+@")
_RAW_COMMON = tuple(re.compile(text.encode()).search for text in TRIGGERS[:3])
_RAW_TRIGGERS = tuple((text[:1].encode(), re.compile(text.encode()).search) for text in TRIGGERS[3:])
"""The first character of each, and its search. The first three are in almost every record: no use to look for them."""
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
        for search in _RAW_COMMON:
            if search(raw):
                return True
        for character, search in _RAW_TRIGGERS:
            at = raw.find(character)
            if at >= 0 and search(raw, at):
                return True
        return _HIDDEN.search(raw) is not None

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
