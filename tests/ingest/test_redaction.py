import base64
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outcrop.ingest.redaction import RULES, Masker

# Built from pieces: a scanner of this repository must find no credential in it.
HEX = "0123456789abcdef"
ALNUM = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA" * 4


def jwt(header: dict[str, str]) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, {"sub": "1"})
    ]
    return ".".join([*parts, ALNUM[:43]])


PEM = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + "\n".join([ALNUM[:64]] * 5) + "\n-----END RSA " + "PRIVATE KEY-----"
SECRETS: list[tuple[str, str]] = [
    ("anthropic-key", "sk-" + "ant-api03-" + ALNUM[:86] + "-AA"),
    ("openai-key", "sk-" + "proj-" + ALNUM[:48]),
    ("openai-key", "sk-" + ALNUM[:20] + "T3Blbk" + "FJ" + ALNUM[:20]),
    ("openrouter-key", "sk-" + "or-v1-" + HEX * 4),
    *[("github-token", f"gh{kind}_" + ALNUM[:36]) for kind in "pousr"],
    ("github-token", "github_" + "pat_" + ALNUM[:22] + "_" + ALNUM[:59]),
    ("gitlab-token", "glpat" + "-" + ALNUM[:20]),
    ("slack-token", "xox" + "b-123456789012-1234567890123-" + ALNUM[:24]),
    ("aws-access-key", "AK" + "IA" + "IOSFODNN7EXAMPL2"),
    ("aws-access-key", "AS" + "IA" + "IOSFODNN7EXAMPL2"),
    ("google-key", "AI" + "zaSy" + ALNUM[:33]),
    ("stripe-key", "sk_" + "live_" + ALNUM[:24]),
    ("stripe-key", "rk_" + "test_" + ALNUM[:24]),
    ("npm-token", "npm" + "_" + ALNUM[:36]),
    ("pypi-token", "pypi" + "-AgEIcHlwaS5vcmc" + ALNUM[:90]),
    ("huggingface-token", "hf" + "_" + ALNUM[:34]),
    ("sendgrid-key", "SG" + "." + ALNUM[:22] + "." + ALNUM[:43]),
    ("twilio-key", "SK" + HEX * 2),
    ("telegram-token", "123456789" + ":AA" + ALNUM[:33]),
    ("jwt", jwt({"typ": "JWT", "alg": "HS256"})),
    ("private-key", PEM),
    ("gitlab-token", "glptt" + "-" + HEX * 2 + HEX[:8]),
    ("gitlab-token", "gldt" + "-" + ALNUM[:20]),
    ("gitlab-token", "glrt" + "-t1_" + ALNUM[:20]),
    ("gitlab-token", "glcbt" + "-64_" + ALNUM[:20]),
    ("google-oauth", "GOC" + "SPX-" + ALNUM[:28]),
    ("google-oauth", "ya" + "29.a0" + ALNUM[:100]),
    ("google-oauth", "ya" + "29.c." + ALNUM[:100]),
    ("groq-key", "gsk" + "_" + ALNUM[:52]),
    ("xai-key", "xai" + "-" + ALNUM[:80]),
    ("perplexity-key", "pplx" + "-" + ALNUM[:48]),
    ("cerebras-key", "csk" + "-" + ALNUM[:48].lower()),
    ("tavily-key", "tvly" + "-" + ALNUM[:32]),
    ("tavily-key", "tvly" + "-dev-" + ALNUM[:32]),
    ("replicate-token", "r8" + "_" + ALNUM[:37]),
    ("langsmith-key", "lsv2" + "_pt_" + HEX * 2 + "_" + HEX[:10]),
    ("langsmith-key", "lsv2" + "_sk_" + HEX * 2 + "_" + HEX[:10]),
    ("vault-token", "hvs" + "." + ALNUM[:24]),
    ("vault-token", "hvb" + "." + ALNUM[:90] + "_-" + ALNUM[:40]),
    *[("digitalocean-token", f"do{kind}_v1" + "_" + HEX * 4) for kind in "por"],
    *[("shopify-token", f"shp{kind}" + "_" + HEX * 2) for kind in ("at", "ss", "ca", "pa")],
    ("age-key", "AGE-SECRET" + "-KEY-1" + ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2)[:58]),
    ("docker-token", "dckr" + "_pat_" + ALNUM[:27]),
    ("linear-key", "lin" + "_api_" + ALNUM[:40]),
    ("notion-token", "ntn" + "_12345678901" + ALNUM[:35]),
    ("notion-token", "secret" + "_" + ALNUM[:43]),
    ("figma-token", "figd" + "_" + ALNUM[:20] + "-_" + ALNUM[:18]),
    ("supabase-key", "sbp" + "_" + HEX * 2 + HEX[:8]),
    ("supabase-key", "sb" + "_secret_" + ALNUM[:22] + "_" + ALNUM[:8]),
    ("grafana-token", "glsa" + "_" + ALNUM[:32] + "_" + HEX[:8]),
    ("grafana-token", "glc" + "_eyJ" + ALNUM[:80] + "=="),
    ("sentry-token", "sntryu" + "_" + HEX * 4),
    ("sentry-token", "sntrys" + "_eyJ" + ALNUM[:80] + "=_" + ALNUM[:43]),
    ("doppler-token", "dp" + ".pt." + ALNUM[:43]),
    ("doppler-token", "dp" + ".st.dev_x." + ALNUM[:43]),
    ("pulumi-token", "pul" + "-" + HEX * 2 + HEX[:8]),
    ("rubygems-key", "rubygems" + "_" + HEX * 3),
    ("newrelic-key", "NRAK" + "-" + ALNUM[:27].upper()),
]
NAMED: list[tuple[str, str, str]] = [
    ("slack-webhook", "https://hooks.slack.com/services/{}", "T00000000/B00000000/" + ALNUM[:24]),
    ("aws-secret-key", "aws_secret_access_key = {}", ALNUM[:38] + "/+"),
    ("aws-secret-key", "export AWS_SECRET_ACCESS_KEY='{}'", ALNUM[:40]),
    ("aws-secret-key", '{{"SecretAccessKey": "{}"}}', ALNUM[:40]),
    ("azure-key", "DefaultEndpointsProtocol=https;AccountKey={};EndpointSuffix=x", ALNUM[:86] + "=="),
    ("authorization", 'curl -H "Authorization: Bearer {}" https://api.example.com', ALNUM[:40]),
    ("authorization", "authorization: basic {}", "dXNlcjpwYXNzMTIz"),
    ("url-password", "postgres://app:{}@db.internal:5432/main", "s3cret-Pa55"),
    ("url-password", "redis://:{}@cache:6379", "hunter2"),
    *[
        ("url-password", frame, secret)
        for frame, secret in (
            ("postgres://admin:{}@db.host/x", "p@ssW0rdX9"),
            ("postgres://admin:{}@db.host/x?email=me@example.com", "p@ss@W0rdX9"),
            ("https://me:{}@example.com:8080/x", "p@ssW0rdX9"),
            ("postgres://admin:{}@db.host/x", "pa/ssW0rdX9"),
            ("postgresql+asyncpg://admin:{}@db.host/x", "/pa/ss@W0rdX9"),
            ("mysql://root:{}@db/x", "a<bX9zzz"),
            ("mysql://root:{}@db/x", "a'bX9zzz"),
            ("mongodb://me:{}@h1:27017,h2:27017/db", "a/bX9zzz"),
        )
    ],
    ("dsn-password", "Server=tcp:db.host,1433;Database=x;User ID=sa;Password={};Encrypt=true", "s3cret-Pa55"),
    ("dsn-password", "Driver={{ODBC Driver 18}};UID=sa;PWD={};", "s3cret-Pa55"),
    ("dsn-password", "Password={}; Server=db.host", "s3cret-Pa55"),
    ("url-password", r"git clone https:\/\/me:{}@example.com\/x.git", "hunter2"),
]
CASES = [*((rule, "{}", secret) for rule, secret in SECRETS), *NAMED]
AROUND = ["{}", "key={}", 'TOKEN="{}"', "see {} there", "\n{}\n", "\\n{}\\n", "\x1b[32m{}\x1b[0m", "ключ:{}", "x%3D{}"]


@pytest.mark.parametrize(("rule", "frame", "secret"), CASES)
@pytest.mark.parametrize("around", AROUND)
def test_C127_each_shape_is_masked_wherever_it_stands(rule: str, frame: str, secret: str, around: str) -> None:
    text = around.format(frame.format(secret)) if "%3D" not in around or frame == "{}" else frame.format(secret)
    if rule in ("url-password", "telegram-token") and around == "\\n{}\\n":
        text = frame.format(secret)
    masker = Masker()
    masked = masker.mask(text)
    assert secret not in masked
    assert masked == text.replace(secret, f"[REDACTED:{rule}]")
    assert masker.counts == {rule: 1}
    assert Masker().mask(masked) == masked
    for ascii_only in (False, True):
        assert Masker().needed(json.dumps({"text": text}, ensure_ascii=ascii_only).encode())
    nested = json.dumps({"arguments": json.dumps({"text": text})})
    assert Masker().needed(nested.encode())
    assert secret not in Masker().mask(json.loads(nested)["arguments"])


def test_a_key_block_with_escaped_line_ends_or_without_an_end_is_masked_whole() -> None:
    assert Masker().mask("key: " + PEM.replace("\n", "\\n") + " after") == "key: [REDACTED:private-key] after"
    cut = PEM[: PEM.index("-----END") - 10]
    assert Masker().mask("key: " + cut) == "key: [REDACTED:private-key]"
    numbered = "".join(f"     {n}\t{line}\n" for n, line in enumerate(PEM.split("\n"), 1))
    assert ALNUM[:40] not in Masker().mask(numbered)


def test_the_private_lines_of_a_putty_key_are_masked() -> None:
    lines = [ALNUM[:64], ALNUM[1:65], ALNUM[:20] + "=="]
    key = "PuTTY-User-Key-File-3: ssh-ed25519\nPublic-Lines: 1\nAAAA\nPrivate-Lines: 3\n{}\nPrivate-MAC: " + HEX
    for text in (key.format("\n".join(lines)), key.format("\n".join(lines)).replace("\n", "\\n")):
        masked = Masker().mask(text)
        assert not any(line in masked for line in lines)
        assert "Private-Lines: 3[REDACTED:private-key]" in masked
        assert masked.endswith("Private-MAC: " + HEX)
        assert Masker().mask(masked) == masked
        assert Masker().needed(json.dumps({"text": text}).encode())


def test_a_program_that_speaks_of_key_blocks_is_left_alone() -> None:
    text = 'if "-----BEGIN PRIVATE KEY-----" in text and text.endswith("-----END PRIVATE KEY-----"): load(text)'
    assert Masker().mask(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:$PASSWORD@host",
        "postgres://user:${DB_PASSWORD}@host",
        "https://{user}:{password}@host",
        "https://user:***@host",
        "https://example.com:8080/users/me@example.com",
        "git@github.com:owner/name.git and ssh://git@host:22/x",
        "Authorization: Bearer $TOKEN",
        "Bearer authentication-is-required-for-this",
        "the task-notification, disk-usage and risk-assessment-of-everything",
        "sk-fading-circle sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "http://host:8080,me@example.com and http://host:3000?email=me@example.com",
        "postgres://db.host:5432/x?email=me@example.com",
        "postgres://db.host/x@1.2 npm://registry/pkg@1.2.3 git+ssh://host/me/x.git@v1.0",
        "postgres://db.host:5432/x@v1",
        '["postgres://a:bcdef","me@example.com"]',
        "`postgres://a:bcdef`,`me@example.com`",
        "<b>mysql://a:bcdef</b>me@example.com",
        "mysql://root:<password>@db/x",
        "https://example.com/a:b/c@d",
        "host = h; password = load(); server=x;password=cfg.password; server=x;password=get(1)",
        "Server=db;Password=$PASSWORD;Server=db;Password={password};Server=db;Password=%PASSWORD%",
        "password=hunter22 alone; and so=on;password=hunter22",
        "gsk_render_node_get_node_type gsk_" + ALNUM[:20],
        "xai-grok-4-fast-reasoning xai-" + ALNUM[:30],
        "pplx-70b-online pplx-" + ALNUM[:20],
        "csk-" + ALNUM[:19],
        "tvly-YOUR_API_KEY tvly-search-results-of-the-last-week",
        "r8_" + ALNUM[:30],
        "lsv2_pt_" + ALNUM[:32],
        "hvs.some_method_name_that_is_long(x) hvs." + ALNUM[:20],
        "dop_v1_" + HEX * 2,
        "shpat_" + HEX,
        "AGE-SECRET-KEY-1" + "Q" * 40,
        "dckr_pat_" + ALNUM[:12],
        "lin_api_" + ALNUM[:20],
        "ntn_" + ALNUM[:20] + " secret_" + HEX * 4 + " client_secret_" + ALNUM[:43] + " secret_" + HEX * 2,
        "figd_" + ALNUM[:20],
        "sbp_" + HEX + " sb_secret_" + ALNUM[:10],
        "glsa_" + ALNUM[:32] + " glc_" + ALNUM[:60],
        "sntryu_" + HEX + " sntrys_" + ALNUM[:60],
        "dp.st.dev dp.pt." + ALNUM[:20] + " module.dp.state." + HEX,
        "pul-" + HEX,
        "rubygems_" + HEX,
        "NRAK-" + ALNUM[:10].upper(),
        "GOCSPX-" + ALNUM[:20] + " ya29.example",
        "glptt-" + HEX + " gldt-with-a-long-name-that-has-no-number",
        "Private-Lines: 8 is the number of lines that follow",
        "AWS_SECRET_ACCESS_KEY=" + "$(cat /run/secrets/key)",
        "secret " + ALNUM[:40],
        "eyJhbGciOiJub25l.not.a-token-at-all-but-long-enough",
        "toolu_01" + ALNUM[:22],
        "msg_01" + ALNUM[:22],
        "-----BEGIN CERTIFICATE-----\n" + ALNUM + "\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\n" + ALNUM + "\n-----END PUBLIC KEY-----",
        "/home/me/npm_modules/hf_transformers_integration_with_accelerate/AKIA/x.py",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert Masker().mask(text) == text


def test_a_token_with_no_algorithm_in_its_header_stays() -> None:
    text = jwt({"typ": "JWT"})
    assert Masker().mask(text) == text


@given(
    st.one_of(
        st.binary(min_size=20, max_size=20).map(bytes.hex),
        st.uuids().map(str),
        st.binary(min_size=32, max_size=32).map(bytes.hex),
    )
)
def test_hashes_and_ids_stay(text: str) -> None:
    masker = Masker()
    assert masker.mask(f"commit {text} in https://example.com/{text}") == f"commit {text} in https://example.com/{text}"
    assert not masker.needed(json.dumps({"uuid": text}).encode())


def test_encoded_images_stay() -> None:
    for url in (False, True):
        data = (base64.urlsafe_b64encode if url else base64.b64encode)(
            bytes(range(256)) * 400 + os.urandom(100_000)
        ).decode()
        assert Masker().mask(data) == data


SECRET_TEXTS = st.sampled_from([frame.format(secret) for _, frame, secret in CASES])
NOISE = st.text(alphabet='ab:/@.-_ =\\n"[]{}\nREDACTEDé', max_size=30)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(SECRET_TEXTS, NOISE), max_size=6).map("".join))
def test_masking_again_changes_nothing_and_the_prefilter_misses_nothing(text: str) -> None:
    masker = Masker()
    masked = masker.mask(text)
    again = Masker()
    assert again.mask(masked) == masked
    assert again.counts == {}
    if masked != text:
        assert masker.needed(json.dumps(text).encode())
        assert masker.needed(json.dumps(text, ensure_ascii=False).encode())


def test_a_literal_hidden_in_escapes_is_not_missed() -> None:
    secret = "gh" + "p_" + ALNUM[:36]
    raw = json.dumps({"text": secret}).replace("ghp", "\\u0067hp").encode()
    assert json.loads(raw)["text"] == secret
    assert Masker().needed(raw)


def test_values_are_masked_at_every_depth_keys_too_and_not_in_place() -> None:
    one, two = "gh" + "p_" + ALNUM[:36], "gh" + "p_" + ALNUM[1:37]
    value = {"a": [one, 1, None, True, 2.5, {"b": {one: "x", two: "y"}}], "c": "plain", "d": {}, "e": []}
    before = json.dumps(value)
    masker = Masker()
    assert masker.mask_value(value) == {
        "a": [
            "[REDACTED:github-token]",
            1,
            None,
            True,
            2.5,
            {"b": {"[REDACTED:github-token]": "x", "[REDACTED:github-token]'": "y"}},
        ],
        "c": "plain",
        "d": {},
        "e": [],
    }
    assert list(masker.mask_value(value)) == ["a", "c", "d", "e"]
    assert json.dumps(value) == before
    assert masker.counts == {"github-token": 6}


def test_a_very_deep_value_is_masked() -> None:
    deep: object = "gh" + "p_" + ALNUM[:36]
    for _ in range(50_000):
        deep = [deep]
    masked = Masker().mask_value(deep)
    for _ in range(50_000):
        masked = masked[0]
    assert masked == "[REDACTED:github-token]"


def test_switched_off_nothing_is_masked() -> None:
    masker = Masker(enabled=False)
    assert masker.mask(PEM) == PEM
    assert not masker.needed(PEM.encode())
    assert masker.counts == {}


HOSTILE = [
    "eyJ" * 1,
    "eyJ-",
    "eyJaaaaaaaa.",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n" + "A" * 64 + "\n",
    "://a:",
    "x://a:b",
    "://",
    "postgres://a:b/",
    "postgres://a:b@",
    "mysql://a:<a'a",
    "Server=x;",
    "Server=x;Password=abcd;",
    "Private-Lines: 3\n" + "A" * 64,
    "ya29.",
    "glcbt-",
    "tvly-dev-",
    "Authorization: ",
    "aws_secret_access_key=\\\\\\\\",
    "sk-ant-",
    "sk-proj-",
    "sk-" + "a" * 50,
    "xoxb-",
    "1234567890:AA",
    "SG.aaaaaaaaaaaaaaaaaaaa.",
    "\\" * 20,
    "@",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_is_linear_in_the_text(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size] + " @ " + "://u:p@h"
        start = time.process_time()
        Masker().needed(text.encode())
        Masker().mask(text)
        return time.process_time() - start

    seconds(1_000)
    small, large = min(seconds(50_000) for _ in range(3)), seconds(400_000)
    # Eight times the text: sixteen times the time would be much, sixty-four is what a quadratic pattern takes.
    assert large < 24 * small + 0.05


def test_every_rule_has_a_case() -> None:
    assert {rule.name for rule in RULES} == {rule for rule, _, _ in CASES}


def test_the_corpus_holds_nothing_that_is_taken_for_a_secret_by_mistake() -> None:
    corpus = os.environ.get("OUTCROP_CORPUS")
    if not corpus:
        pytest.skip("OUTCROP_CORPUS is not set")
    masker, read = Masker(), 0
    for path in sorted(Path(corpus).rglob("*.json*")):
        for raw in path.read_bytes().split(b"\n"):
            read += len(raw)
            text = raw.decode("utf-8", "replace")
            masked = masker.mask(text)
            assert masked == text or masker.needed(raw)
    assert read > 10_000_000
    # Its publishers have scrubbed it: whatever were found here would be a false alarm.
    assert masker.counts == {}
