"""The configuration: a strict TOML file, or defaults where there is none.

Every key has its type, range and default in `SETTINGS`; anything else in the file is an error that names the file,
the key and the nearest known one, because a misspelt setting that is silently ignored is worse than none. The rooms
above hand in the names of the sources: this one knows no harness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

from outcrop.errors import ConfigError
from outcrop.paths import HERE, Surroundings, config_file, data_home, expand


@dataclass(slots=True, frozen=True)
class Setting:
    """One key: its type, its default, and for whole numbers the least and the greatest value."""

    type: type
    default: Any
    least: int = 0
    most: int = 0


SETTINGS: dict[str, dict[str, Setting]] = {
    "index": {"auto": Setting(bool, True)},
    "redaction": {"enabled": Setting(bool, True)},
    "search": {"enabled": Setting(bool, True)},
    "mcp": {
        "max_results": Setting(int, 50, 1, 500),
        "parallel": Setting(int, 4, 1, 64),
        "queue": Setting(int, 16, 0, 1024),
    },
    "retention": {
        "days": Setting(int, None, 1, 3650),
        "max_bytes": Setting(int, None, 10_000_000, 1_000_000_000_000_000),
        "mirror": Setting(bool, False),
    },
}
SOURCE_SETTINGS: dict[str, Setting] = {"enabled": Setting(bool, True), "roots": Setting(list, None)}
"""Keys of a `[sources.<name>]` section."""

AUTO_VARIABLE = "OUTCROP_AUTO_INDEX"
SOURCES = "sources"
_DAY_MS = 86_400_000
_WORDS = {bool: "true or false", int: "a whole number", str: "a text", list: "a list of texts", dict: "a section"}


@dataclass(slots=True, frozen=True)
class SourceSettings:
    """What is configured for one source. `roots` None: the harness's own default places."""

    enabled: bool = True
    roots: tuple[Path, ...] | None = None


@dataclass(slots=True, frozen=True)
class Config:
    """All settings, checked. `file` is where they are read from, whether or not it exists."""

    home: Path
    file: Path
    auto_index: bool = True
    redaction: bool = True
    search: bool = True
    max_results: int = 50
    parallel: int = 4
    queue: int = 16
    retention_days: int | None = None
    retention_bytes: int | None = None
    retention_mirror: bool = False
    sources: Mapping[str, SourceSettings] = field(default_factory=dict)

    def source(self, name: str) -> SourceSettings:
        """The settings of a source, by default those of one that the file does not mention."""
        return self.sources.get(name, SourceSettings())

    def retention_cutoff(self, now: int) -> int:
        """Sessions last updated before it go (UTC ms, as `now`); 0 where age is no reason."""
        return 0 if self.retention_days is None else now - self.retention_days * _DAY_MS


def load(surroundings: Surroundings | None = None, known_sources: Iterable[str] | None = None) -> Config:
    """Read the configuration of these surroundings. `known_sources` None: any source name is taken.

    Raises ConfigError for a file that cannot be read, is no TOML, or says anything that is not known here.
    """
    surroundings = surroundings or HERE
    file = config_file(surroundings)
    home = data_home(surroundings)
    written = _read(file) or {}
    check = _Check(file, surroundings, None if known_sources is None else tuple(known_sources))
    known = [*SETTINGS, SOURCES]
    for name, value in written.items():
        if name not in known:
            raise check.unknown("section" if isinstance(value, dict) else "key", name, "", known)
        check.typed(value, dict, name)
    read = {name: check.section(name, written.get(name, {})) for name in SETTINGS}
    return Config(
        home,
        file,
        auto_index=_auto(surroundings, read["index"]["auto"]),
        redaction=read["redaction"]["enabled"],
        search=read["search"]["enabled"],
        max_results=read["mcp"]["max_results"],
        parallel=read["mcp"]["parallel"],
        queue=read["mcp"]["queue"],
        retention_days=read["retention"]["days"],
        retention_bytes=read["retention"]["max_bytes"],
        retention_mirror=read["retention"]["mirror"],
        sources=check.sources(written.get(SOURCES, {})),
    )


def _auto(surroundings: Surroundings, configured: bool) -> bool:
    """Whether an indexer is started where none runs; the environment has the last word, for containers and tests."""
    text = surroundings.variables.get(AUTO_VARIABLE)
    if not text:
        return configured
    if text not in ("0", "1"):
        raise ConfigError(f"{AUTO_VARIABLE} must be 0 or 1 (got {text!r})")
    return text == "1"


def _read(file: Path) -> dict[str, Any] | None:
    """The file's content; None where there is no file."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}", {"file": str(file)}) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is not UTF-8 (byte {error.start})", {"file": str(file)}) from error
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: {error}", {"file": str(file)}) from error


@dataclass(slots=True, frozen=True)
class _Check:
    """Holds values against the settings, and words what is wrong with them."""

    file: Path
    surroundings: Surroundings
    known_sources: tuple[str, ...] | None

    def section(self, name: str, written: dict[str, Any]) -> dict[str, Any]:
        return self._values(name, written, SETTINGS[name])

    def sources(self, written: dict[str, Any]) -> dict[str, SourceSettings]:
        found = {}
        for name, value in written.items():
            if self.known_sources is not None and name not in self.known_sources:
                raise self.unknown("source", name, SOURCES, self.known_sources)
            section = f"{SOURCES}.{name}"
            values = self._values(section, self.typed(value, dict, section), SOURCE_SETTINGS)
            roots = values["roots"]
            found[name] = SourceSettings(values["enabled"], None if roots is None else self._roots(section, roots))
        return found

    def typed(self, value: Any, wanted: type, key: str) -> Any:
        # A bool is an int to Python, not to the reader of a configuration.
        if type(value) is not wanted:
            raise self._wrong(key, f"must be {_WORDS[wanted]}")
        return value

    def unknown(self, kind: str, name: str, section: str, known: Iterable[str]) -> ConfigError:
        import difflib

        names = list(known)
        nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        advice = f"did you mean {nearest[0]}?" if nearest else f"known: {', '.join(names)}"
        key = f"{section}.{name}" if section else name
        details = {"file": str(self.file), "key": key, "nearest": nearest[0] if nearest else None}
        return ConfigError(f"{self.file}: unknown {kind} {key}; {advice}", details)

    def _values(self, section: str, written: dict[str, Any], settings: dict[str, Setting]) -> dict[str, Any]:
        values = {key: setting.default for key, setting in settings.items()}
        for key, value in written.items():
            if key not in settings:
                raise self.unknown("key", key, section, settings)
            setting = settings[key]
            values[key] = self.typed(value, setting.type, f"{section}.{key}")
            if setting.type is int and not setting.least <= value <= setting.most:
                raise self._wrong(f"{section}.{key}", f"must be from {setting.least} to {setting.most}")
        return values

    def _roots(self, section: str, written: list[Any]) -> tuple[Path, ...]:
        key = f"{section}.roots"
        roots = []
        for text in written:
            if type(text) is not str:
                raise self._wrong(key, f"must be {_WORDS[list]}")
            path = expand(text, self.surroundings.home)
            windows = self.surroundings.platform == "win32"
            if "\0" in text or not (PureWindowsPath(path).is_absolute() if windows else path.is_absolute()):
                raise self._wrong(key, f"must hold absolute paths, or paths that begin with ~/ (got {text!r})")
            roots.append(path)
        return tuple(roots)

    def _wrong(self, key: str, what: str) -> ConfigError:
        return ConfigError(f"{self.file}: {key} {what}", {"file": str(self.file), "key": key, "nearest": None})
