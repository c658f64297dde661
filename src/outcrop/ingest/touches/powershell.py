"""The cmdlets of PowerShell that touch files, and their parameters, as far as the words alone tell."""

from __future__ import annotations

from collections.abc import Iterator

from outcrop.ingest.touches.shell import Word
from outcrop.ingest.touches.touch import Effect

Named = tuple[Word, Effect, bool]

_CMDLETS = {
    Effect.READ: "get-content gc cat type select-string sls get-filehash import-csv import-clixml invoke-item ii",
    Effect.CHANGE: "set-content add-content out-file tee-object tee ac sc clear-content clc export-csv export-clixml "
    "copy-item cp copy ci",
    Effect.DELETE: "remove-item rm del ri erase rd",
    Effect.RENAME: "move-item mv move mi rename-item ren rni",
    Effect.CREATE: "new-item ni",
}
_EFFECTS = {name: effect for effect, names in _CMDLETS.items() for name in names.split()}
_COPIES = frozenset({"copy-item", "cp", "copy", "ci"})
_RENAMES = frozenset({"rename-item", "ren", "rni"})
_MOVES = frozenset({"move-item", "mv", "move", "mi"})
_MATCHES = frozenset({"select-string", "sls"})
_PATHS = frozenset({"-path", "-literalpath", "-filepath", "-pspath", "-destination"})
_SWITCHES = """
-raw -force -recurse -append -nonewline -wait -verbose -whatif -confirm -noclobber -passthru -simplematch
-casesensitive -list -quiet -notypeinformation -asbytestream -allmatches
"""


def cmdlet(verb: str, rest: list[Word]) -> Iterator[Named] | None:
    """The files that a cmdlet (or its short name, in lower case) touches; None for another command."""
    return _touched(verb, rest) if verb in _EFFECTS else None


def _touched(verb: str, rest: list[Word]) -> Iterator[Named]:
    effect = _EFFECTS[verb]
    named: list[Word] = []
    target: list[Word] = []
    plain: list[Word] = []
    folder = at = 0
    while at < len(rest):
        flag = rest[at].text.lower()
        at += 1
        if flag[:1] != "-" or rest[at - 1].quoted:
            plain += _listed(rest[at - 1])
        elif flag in _PATHS and at < len(rest):
            words = target if flag == "-destination" else named
            words += _listed(rest[at])
            at += 1
        elif flag not in _SWITCHES.split() and ":" not in flag:
            folder += flag == "-itemtype" and rest[at : at + 1] != [] and rest[at].text.lower().startswith("dir")
            at += 1
    if folder:
        return
    if verb in _MATCHES:
        words = named or plain[1:]
    elif verb in _COPIES | _MOVES | _RENAMES:
        words = [*named, *plain, *target][:2]
    elif effect in (Effect.CHANGE, Effect.CREATE):
        words = named or plain[:1]
    else:
        words = [*named, *plain]
    for place, word in enumerate(words):
        yield word, Effect.READ if verb in _COPIES and not place and len(words) > 1 else effect, True


def _listed(word: Word) -> list[Word]:
    """The words of a list: `a.txt,b.txt`."""
    if word.quoted or not word.literal or "," not in word.text:
        return [word]
    return [Word(part, len(part)) for part in word.text.split(",") if part]
