from pathlib import Path

import pytest

from outcrop.config import SETTINGS, Config, SourceSettings, load
from outcrop.errors import EXIT_USAGE, ConfigError
from outcrop.harnesses import Environment

SOURCES = ("claude", "claude-cowork", "codex")


def read(tmp_path: Path, text: str | bytes, platform: str = "linux") -> Config:
    (tmp_path / "config.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(Environment(Path("/home/ada"), {"OUTCROP_HOME": str(tmp_path)}, platform), SOURCES)


def test_no_file_means_defaults(tmp_path: Path) -> None:
    config = load(Environment(tmp_path, {"OUTCROP_HOME": str(tmp_path / "data")}), SOURCES)
    assert config == Config(tmp_path / "data", tmp_path / "data" / "config.toml")
    assert (config.auto_index, config.redaction) == (True, True)
    assert (config.max_results, config.parallel, config.queue) == (50, 4, 16)
    assert (config.retention_days, config.retention_bytes, config.retention_mirror) == (None, None, False)
    assert config.retention_cutoff(1) == 0
    assert config.source("codex") == SourceSettings(enabled=True, roots=None)


def test_the_defaults_of_the_table_are_those_of_the_class(tmp_path: Path) -> None:
    assert read(tmp_path, "[index]\n[redaction]\n[search]\n[mcp]\n[sources.codex]\n") == Config(
        tmp_path, tmp_path / "config.toml", sources={"codex": SourceSettings()}
    )
    assert set(SETTINGS) == {"index", "redaction", "search", "mcp", "retention"}


def test_every_key_is_read(tmp_path: Path) -> None:
    text = """
    [index]
    auto = false
    [redaction]
    enabled = false
    [search]
    enabled = false
    [mcp]
    max_results = 20
    parallel = 2
    queue = 0
    [retention]
    days = 90
    max_bytes = 10_000_000_000
    mirror = true
    [sources.claude]
    enabled = false
    [sources.codex]
    roots = ["/srv/codex", "~/other", "~"]
    """
    config = read(tmp_path, text)
    assert (config.auto_index, config.redaction, config.search) == (False, False, False)
    assert (config.max_results, config.parallel, config.queue) == (20, 2, 0)
    assert (config.retention_days, config.retention_bytes, config.retention_mirror) == (90, 10_000_000_000, True)
    assert config.retention_cutoff(100 * 86_400_000) == 10 * 86_400_000
    assert config.source("claude").enabled is False
    assert config.source("codex").roots == (Path("/srv/codex"), Path("/home/ada/other"), Path("/home/ada"))
    assert config.source("claude-cowork").enabled is True


def test_a_byte_order_mark_and_windows_line_ends_are_no_error(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbf[mcp]\r\nmax_results = 7\r\n").max_results == 7


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("[mcp]\nmax_result = 3", "mcp.max_result", "did you mean max_results?"),
        ("[mpc]\nqueue = 3", "mpc", "did you mean mcp?"),
        ("auto = true", "auto", "unknown key auto; known: index, redaction, search, mcp, retention, sources"),
        ("[zzz]", "zzz", "known: index, redaction, search, mcp, retention, sources"),
        ("[sources.claud]\nenabled = true", "sources.claud", "did you mean claude?"),
        ("[sources.codex]\nroot = []", "sources.codex.root", "did you mean roots?"),
        ("[mcp]\nmax_results = '3'", "mcp.max_results", "must be a whole number"),
        ("[mcp]\nmax_results = 3.0", "mcp.max_results", "must be a whole number"),
        ("[mcp]\nmax_results = true", "mcp.max_results", "must be a whole number"),
        ("[mcp]\nmax_results = 0", "mcp.max_results", "must be from 1 to 500"),
        ("[mcp]\nqueue = -1", "mcp.queue", "must be from 0 to 1024"),
        ("[retention]\ndays = 0", "retention.days", "must be from 1 to 3650"),
        ("[retention]\nmax_bytes = 9", "retention.max_bytes", "must be from 10000000 to"),
        ("[retention]\nmirror = 1", "retention.mirror", "must be true or false"),
        ("[index]\nauto = 1", "index.auto", "must be true or false"),
        ("mcp = 3", "mcp", "must be a section"),
        ("[[mcp]]\nqueue = 1", "mcp", "must be a section"),
        ("sources = []", "sources", "must be a section"),
        ("[sources]\ncodex = true", "sources.codex", "must be a section"),
        ("[sources.codex]\nroots = '/x'", "sources.codex.roots", "must be a list of texts"),
        ("[sources.codex]\nroots = [1]", "sources.codex.roots", "must be a list of texts"),
        ("[sources.codex]\nroots = ['x/y']", "sources.codex.roots", "absolute paths"),
        ("[sources.codex]\nroots = ['']", "sources.codex.roots", "absolute paths"),
        ('[sources.codex]\nroots = ["/x\\u0000"]', "sources.codex.roots", "absolute paths"),
    ],
)
def test_anything_unknown_or_of_a_wrong_type_is_named(tmp_path: Path, text: str, key: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    error = caught.value
    assert error.message.startswith(f"{tmp_path / 'config.toml'}: ")
    assert key in error.message
    assert says in error.message
    assert error.details is not None
    assert error.details["key"] == key
    assert error.exit_code == EXIT_USAGE


def test_without_known_sources_any_name_is_taken(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[sources.mine]\nenabled = false")
    config = load(Environment(tmp_path, {"OUTCROP_HOME": str(tmp_path)}))
    assert config.source("mine").enabled is False


def test_windows_roots_are_absolute_in_their_own_way(tmp_path: Path) -> None:
    config = read(tmp_path, "[sources.codex]\nroots = ['C:\\codex', '\\\\server\\share']", "win32")
    assert config.source("codex").roots == (Path("C:\\codex"), Path("\\\\server\\share"))
    with pytest.raises(ConfigError):
        read(tmp_path, "[sources.codex]\nroots = ['\\codex']", "win32")
    with pytest.raises(ConfigError):
        read(tmp_path, "[sources.codex]\nroots = ['C:\\codex']")


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"[mcp\n\n", "line 1"), (b"\xff\xfe", "is not UTF-8 (byte 0)"), (b"a = 1\na = 2\n\n", "line 2")],
)
def test_a_file_that_is_no_toml_says_where(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(ConfigError, match="config") as caught:
        read(tmp_path, content)
    assert says in caught.value.message


def test_a_folder_where_the_file_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load(Environment(tmp_path, {"OUTCROP_HOME": str(tmp_path)}))
