"""Which operands of a command are files, and what the command does to them: the table of verbs.

A verb that is not listed touches nothing. An option's value is never an operand: each row names the options that take
one. Where a program may write a file that was or was not there (`cp`, `>`), the effect is CHANGE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from outcrop.ingest.touches.inline_code import coded
from outcrop.ingest.touches.patches import patched
from outcrop.ingest.touches.shell import Word
from outcrop.ingest.touches.touch import Effect

Named = tuple[Word, Effect, bool]
"""An operand, the effect, and whether it is seen from the command's directory (else its place is unknown)."""

_READS = """
cat|tac|less:p P k o t|more|bat:r l line-range language style theme H|wc|file:m|stat:f c format|od:A N j t|xxd:l s c
hexdump:n s e|strings:n|md5sum|sha1sum|sha256sum|shasum:a|md5|cksum|base64:w|uniq:f s w|cut:d f c b|paste:d
nl:b d f h i l n s v w|head:n c lines bytes|tail:n c s lines bytes|sort:k t o S T|column:t s c|fold:w|rev|expand:t
comm|join:t 1 2 o j|diff:U C x W I L|cmp:i n|colordiff:U|view|open:a|xdg-open|source|.|tree-sitter
unzip:d|gunzip:S|zcat|zless|plutil:extract o|sqlite3:cmd|glow|readlink|realpath|pbcopy
grep:e m A B C D d|egrep:e m A B C|fgrep:e m A B C|zgrep:e|rg:e m A B C g t T M j E r glob type max-count iglob sort
ag:A B C G m|ack:A B C m type|awk:F v f|gawk:F v f|mawk:F v f|sed:e f l|jq:f indent L|yq:I
"""
_WRITES = """
tee|chmod|chown|chgrp|truncate:s|patch:p i d F
"""
_CHECKS = """
pytest:k m n p c o W tb maxfail cov timeout|py.test:k m|jest:t c|vitest:t c config reporter|mypy:p m config-file
pyright:p|flake8|pylint|shellcheck:s e|eslint:c config ext|prettier:config|black:l|isort|ruff:config|gofmt
rustfmt:edition|mocha:g|rspec:e|biome|mix|tsx|ts-node:P|standardrb|rubocop
"""
_PATTERNS = "grep egrep fgrep zgrep rg ag ack awk gawk mawk sed jq yq chmod chown chgrp"
_TEXT_FIRST = frozenset(_PATTERNS.split())
_COPIES = {
    **dict.fromkeys(("cp", "install", "ln", "copy"), Effect.READ),
    **dict.fromkeys(("mv", "move", "ren"), Effect.RENAME),
}
_EDITORS = frozenset({"vim", "vi", "nvim", "nano", "emacs", "code", "micro", "ed"})
_MAKES = {
    "touch": Effect.CREATE,
    "rm": Effect.DELETE,
    "unlink": Effect.DELETE,
    "shred": Effect.DELETE,
    "trash": Effect.DELETE,
}
_CODES = {"node": "-e --eval -p", "bun": "-e", "deno": "", "ruby": "-e", "php": "-r", "perl": "-e -ne -pe -pi -i"}
_DOWNLOADS = {
    "curl": frozenset({"o", "output", "H", "header", "d", "data", "X", "request", "u", "A", "e", "w", "F", "b", "c"}),
    "wget": frozenset({"O", "output-document", "header", "P", "U", "o", "a"}),
}
_PYTHON = re.compile(r"(?:python[0-9.]*|pypy3?|py)$")
_GIT: dict[str, tuple[Effect, str, bool]] = {
    # effect, options with a value, whether what stands before `--` is a path (else only what looks like a file)
    "add": (Effect.READ, "", True),
    "rm": (Effect.DELETE, "", True),
    "mv": (Effect.RENAME, "", True),
    "restore": (Effect.CHANGE, "s source", True),
    "checkout": (Effect.CHANGE, "b B", False),
    "apply": (Effect.READ, "p C exclude include directory", True),
    "diff": (Effect.READ, "U O S G", False),
    "log": (Effect.READ, "n L S G U", False),
    "show": (Effect.READ, "n U S G", False),
    "blame": (Effect.READ, "L S", False),
    "reset": (Effect.READ, "", False),
    "grep": (Effect.READ, "e A B C m", False),
    "cat-file": (Effect.READ, "", False),
    "hash-object": (Effect.READ, "t", True),
}


def _table(text: str) -> dict[str, frozenset[str]]:
    rows = [entry.partition(":") for entry in "|".join(text.split("\n")).split("|") if entry]
    return {verb: frozenset(options.split()) for verb, _, options in rows}


_VALUED = _table(_CHECKS) | _table(_WRITES) | _table(_READS)
_READING, _WRITING, _CHECKING = frozenset(_table(_READS)), frozenset(_table(_WRITES)), frozenset(_table(_CHECKS))
_FILE = re.compile(r"[^\s=,:;()<>|]*[^\s=,:;()<>|/.]\.[A-Za-z][A-Za-z0-9]{0,9}$")
_BRANCH = re.compile(r"\.\.|\d\.x$|^(?:origin|upstream)/")


def looks_like_file(text: str) -> bool:
    """Whether a word that may also name a revision, a target or a package is a file by its look."""
    return text.startswith(("./", "/")) or (_FILE.match(text) is not None and not _BRANCH.search(text))


def parted(words: Sequence[Word], valued: frozenset[str]) -> tuple[dict[str, str], list[Word]]:
    """Options with their values, by bare name, and operands. `valued`: names of the options that take a value."""
    options: dict[str, str] = {}
    operands: list[Word] = []
    at = 0
    while at < len(words):
        text = words[at].text
        at += 1
        if text == "--":
            operands += words[at:]
            break
        if len(text) < 2 or text[0] != "-":
            operands.append(words[at - 1])
            continue
        name, equals, value = text.lstrip("-").partition("=")
        if text.startswith("--") or name in valued:
            takes = name in valued and not equals
        else:  # short options may stand together, the last with its value behind it or glued to it
            first = next((place for place, letter in enumerate(name) if letter in valued), -1)
            for letter in name[: first if first >= 0 else len(name)]:
                options.setdefault(letter, "")
            takes = first == len(name) - 1 >= 0
            name, value = (name[first], name[first + 1 :]) if first >= 0 else (name, value)
        if takes and at < len(words):
            value, at = words[at].text, at + 1
        options[name] = value
    return options, operands


def touched_by(verb: str, rest: list[Word], documents: list[str]) -> Iterator[Named]:
    """The operands of `verb` that are files; `documents` are the texts of its here documents."""
    if verb in ("apply_patch", "applypatch"):
        for text in documents or [word.text for word in rest]:
            yield from ((_word(path), effect, True) for path, effect in patched(text))
    elif verb == "git":
        yield from _git(rest, documents)
    elif _PYTHON.match(verb) or verb in _CODES:
        yield from _interpreted(verb, rest, documents)
    elif verb in _COPIES:
        yield from _copied(verb, rest)
    elif verb in _CHECKING and verb not in _READING:
        yield from _checked(verb, rest)
    elif verb in ("curl", "wget"):
        options, _ = parted(rest, _DOWNLOADS[verb])
        name = options.get("output") or options.get("o" if verb == "curl" else "O") or options.get("output-document")
        yield from [(_word(name), Effect.CHANGE, True)] if name else []
    elif verb == "patch":
        options, operands = parted(rest, _VALUED[verb])
        yield from [(word, Effect.CHANGE, True) for word in operands[:1]]
        yield from [
            (word, Effect.READ, True) for word in [*operands[1:2], *map(_word, filter(None, [options.get("i")]))]
        ]
        yield from ((_word(path), effect, False) for text in documents for path, effect in patched(text))
    elif verb == "dd":
        for word in rest:
            if word.text.startswith(("if=", "of=")) and word.literal:
                yield _word(word.text[3:]), Effect.READ if word.text[0] == "i" else Effect.CHANGE, True
    elif verb in _EDITORS or verb in _MAKES:
        _, operands = parted(rest, frozenset({"c", "d", "r", "t"} if verb in _EDITORS or verb == "touch" else ()))
        yield from ((word, _MAKES.get(verb, Effect.UNKNOWN), True) for word in operands if word.text[:1] != "+")
    elif verb in _READING or verb in _WRITING:
        yield from _plain(verb, rest)


def _word(text: str) -> Word:
    return Word(text, len(text), quoted=True)


def _plain(verb: str, rest: list[Word]) -> Iterator[Named]:
    """Verbs whose operands are files, some of them behind a pattern, a mode or a program."""
    effect = Effect.CHANGE if verb in _WRITING else Effect.READ
    if verb == "jq":
        rest = [word for place, word in enumerate(rest) if not any(
            rest[place - back].text in ("--arg", "--argjson") for back in (1, 2) if place >= back)]  # fmt: skip
    if verb == "sed":
        rest, in_place = _in_place(rest)
        effect = Effect.CHANGE if in_place else effect
    options, operands = parted(rest, _VALUED[verb])
    if verb in ("source", "."):
        operands = operands[:1]
    elif verb == "sqlite3":
        effect, operands = Effect.UNKNOWN, operands[:1]
    elif verb == "unzip":
        operands = operands[:1]
    elif verb == "sort" and options.get("o"):
        yield _word(options["o"]), Effect.CHANGE, True
    elif verb == "rg" and ("files" in options or "type-list" in options):
        operands = []
    script = options.get("f") or options.get("file") or options.get("from-file")
    if verb in _TEXT_FIRST:
        if script:  # the patterns or the program stand in a file
            yield _word(script), Effect.READ, True
        elif options.keys().isdisjoint({"e", "expression", "regexp", "reference", "f", "from-file"}):
            operands = operands[1:]
    for word in operands:
        if not (verb.endswith("awk") and "=" in word.text) and word.text[:1] != "+":
            yield word, effect, True


def _in_place(rest: list[Word]) -> tuple[list[Word], bool]:
    """The words of `sed` without `-i` and what BSD has behind it, and whether the files are changed."""
    kept: list[Word] = []
    changes = False
    for place, word in enumerate(rest):
        before = rest[place - 1].text if place else ""
        if word.text.startswith("--in-place") or re.match(r"-[nErsuz]*i", word.text):
            changes = True
            kept += [_word("-e")] if re.fullmatch(r"-[nErsuz]*ie", word.text) else []
        elif not (before == "-i" and (word.text == "" or re.fullmatch(r"\.\w+", word.text))):
            kept.append(word)
    return kept, changes


def _copied(verb: str, rest: list[Word]) -> Iterator[Named]:
    """Sources, and where each of them goes: into a directory that shows as such, else under the last name."""
    options, operands = parted(rest, frozenset({"t", "target-directory", "S", "m", "o", "g"}))
    folder = options.get("t") or options.get("target-directory")
    if "d" in options and verb == "install":
        return
    if not folder and len(operands) > 1:
        last = operands.pop()
        folder = last.text if last.literal and (last.text.endswith("/") or len(operands) > 1) else None
        folder = "./" if last.text in (".", "..") and folder is None else folder
    else:
        last = None
    effect = Effect.CREATE if verb == "ln" else Effect.CHANGE if _COPIES[verb] is Effect.READ else Effect.RENAME
    for word in operands:
        yield word, _COPIES[verb], True
        if folder and word.literal:
            name = word.text.rstrip("/").rpartition("/")[2]
            yield (
                _word(f"{folder.rstrip('/')}/{name}" if folder != "./" else name),
                effect,
                last is None or last.text != "..",
            )
    if last is not None and folder is None:
        yield last, effect, True


def _checked(verb: str, rest: list[Word]) -> Iterator[Named]:
    """Test runners, checkers and formatters: what looks like a file, without the test's name behind it."""
    options, operands = parted(rest, _VALUED[verb])
    effect = Effect.READ
    formats = verb in ("black", "isort", "rustfmt") or (operands and operands[0].text == "format")
    if formats or not options.keys().isdisjoint({"w", "write", "fix", "i"}):
        effect = Effect.CHANGE
    if not options.keys().isdisjoint({"check", "diff", "list-different"}):
        effect = Effect.READ
    for word in operands:
        text = word.text.partition("::")[0]
        if word.literal and looks_like_file(text) and (verb != "mix" or "/" in text):
            yield Word(text, len(text), word.glob, word.quoted), effect, True


def _interpreted(verb: str, rest: list[Word], documents: list[str]) -> Iterator[Named]:
    """The script that an interpreter is given, or what code on its command line opens."""
    codes = ("-c",) if verb not in _CODES else tuple(_CODES[verb].split())
    for place, word in enumerate(rest):
        if word.text in codes or (verb == "perl" and re.fullmatch(r"-[a-zA-Z0]*e", word.text)):
            for code in rest[place + 1 : place + 2]:
                yield from ((_word(path), effect, True) for path, effect in coded(code.text))
            if verb in ("perl", "ruby"):
                changes = any(one.text[:1] == "-" and "i" in one.text for one in rest[: place + 1])
                effect = Effect.CHANGE if changes else Effect.READ
                yield from ((one, effect, True) for one in parted(rest[place + 2 :], frozenset("e"))[1])
            return
        if word.text == "-m" and verb not in _CODES:
            if place + 1 < len(rest):
                yield from touched_by(rest[place + 1].text, rest[place + 2 :], [])
            return
        if word.text[:1] != "-":
            break
    _, operands = parted(rest, frozenset({"r", "require", "import", "W", "X", "I", "env-file", "loader"}))
    operands = [word for word in operands if word.text != "-"]
    if verb in ("bun", "deno") and operands:
        operands = [
            word for word in operands[1 if operands[0].text in ("run", "test") else 0 :] if looks_like_file(word.text)
        ]
    if operands:
        yield from (
            (word, Effect.READ, True) for word in (operands if "--test" in {w.text for w in rest} else operands[:1])
        )
        return
    for text in documents:
        yield from ((_word(path), effect, True) for path, effect in coded(text))


def _git(rest: list[Word], documents: list[str]) -> Iterator[Named]:
    verb = rest[0].text if rest else ""
    if verb not in _GIT:
        return
    effect, valued, only_paths = _GIT[verb]
    cut = next((place for place, word in enumerate(rest) if word.text == "--"), len(rest))
    options, operands = parted(rest[1:cut], frozenset(valued.split()))
    if verb == "restore" and ("S" in options or "staged" in options) and "worktree" not in options:
        effect = Effect.READ
    if verb == "rm" and "cached" in options:
        effect = Effect.READ
    for word in operands:
        revision, colon, path = word.text.partition(":")
        if verb in ("show", "cat-file", "diff") and colon and revision and word.literal:
            yield _word(path.removeprefix("./")), effect, path.startswith("./")
        elif only_paths or (word.literal and looks_like_file(word.text) and verb != "grep"):
            yield word, effect, True
    yield from ((word, effect, True) for word in rest[cut + 1 :])
    if verb == "apply":
        yield from ((_word(path), named, False) for text in documents for path, named in patched(text))
