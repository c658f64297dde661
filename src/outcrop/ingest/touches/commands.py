"""What a script does to which files: its commands in order, each in the directory that it runs in.

A script is followed as if its commands succeed: `cd`, variables that it sets itself, loops over literal lists, and the
commands that run another one. Where a directory depends on more (`||`, a branch, a loop, a variable) it is unknown, and
what is not literal is no path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from outcrop.ingest.touches.powershell import cmdlet
from outcrop.ingest.touches.shell import SUBSTITUTED, Command, Edge, Word, commands
from outcrop.ingest.touches.touch import Effect, joined
from outcrop.ingest.touches.verbs import parted, touched_by

NESTED = 6
"""Scripts inside each other (`bash -c "bash -c …"`); what lies deeper is skipped."""

_VALUES, _GIVEN, _LONGEST, _WRAPPED = 64, 4096, 1024, 16
"""Values of a loop's variable, words that variables give in one call, characters of a value, commands in commands."""

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_OPENS = frozenset({"if", "for", "while", "until", "case", "select"})
_CLOSES = frozenset({"fi", "done", "esac"})
_KEYWORDS = frozenset({"then", "elif", "else", "do", "!", "{", "}", "time", "&", "function"}) | _OPENS | _CLOSES
_MOVES = frozenset({"cd", "chdir", "pushd", "popd", "set-location", "sl"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish", "powershell", "pwsh", "cmd"})
_WINDOWS_SHELLS = frozenset({"powershell", "pwsh"})
_PREFIXES: dict[str, tuple[str, int]] = {
    # options with a value, and how many operands stand before the command
    "sudo": ("u g h p C D R T", 0),
    "doas": ("u C", 0),
    "env": ("u C S", 0),
    "nohup": ("", 0),
    "time": ("f o", 0),
    "nice": ("n", 0),
    "ionice": ("c n p", 0),
    "timeout": ("s k signal kill-after", 1),
    "gtimeout": ("s k", 1),
    "stdbuf": ("i o e", 0),
    "setsid": ("", 0),
    "xargs": ("I n P L d s a E", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("a", 0),
    "caffeinate": ("t w", 0),
    "npx": ("p c package", 0),
    "bunx": ("p", 0),
    "uvx": ("from with python p", 0),
    "rtk": ("", 0),
}
_RUNNERS = frozenset({"uv", "pdm", "poetry", "pipenv", "rye", "hatch", "bundle", "pnpm", "yarn", "npm", "mise"})
_RUNNER_OPTIONS = frozenset(
    {"with", "p", "python", "extra", "group", "env-file", "project", "directory", "C", "dir", "filter"}
)


@dataclass(slots=True, frozen=True)
class Operand:
    """A path of a command. `base`: the directory it is seen from, "" being the call's own; None: unknown."""

    path: str
    effect: Effect
    base: str | None


@dataclass(slots=True)
class Script:
    """Collects the operands that the scripts of one call touch, in order."""

    home: str | None = None
    found: list[Operand] = field(default_factory=list)
    given: int = 0

    def run(self, script: str, powershell: bool = False, base: str | None = "", depth: int = 0) -> None:
        """Follow a script that starts in directory `base`."""
        if depth > NESTED:
            return
        run = _Run(self, powershell, base, depth)
        for step in commands(script, powershell):
            run.step(step)


class _Run:
    """One script on its way: the directory, those to come back to, and the variables."""

    def __init__(self, call: Script, powershell: bool, base: str | None, depth: int) -> None:
        self.call, self.powershell, self.base, self.depth = call, powershell, base, depth
        self.outer: list[str | None] = []
        self.blocks: list[str | None] = []
        self.pushed: list[str | None] = []
        self.moved: tuple[str | None] | None = None  # where the command just before stood, if it changed the directory
        self.known: dict[str, list[str]] = {"HOME": [call.home]} if call.home else {}

    def step(self, step: Command | Edge) -> None:
        if step is Edge.OPEN:
            self.outer.append(self.base)
        elif step is Edge.CLOSE:
            self.base = self.outer.pop()
        elif isinstance(step, Command):
            if step.after == "|" and self.moved is not None:
                self.base = self.moved[0]  # one side of a pipe moves by itself
            self.moved = None
            for sign, word in step.redirections:
                if sign not in ("<<", "<<<", "<&"):
                    self._touch(word, Effect.READ if sign == "<" else Effect.CHANGE)
            words = self._assigned(self._behind_keywords(step.words))
            if words and words[0].text.lower() in _MOVES:
                self._move(words, step.after)
            elif words:
                self._command([one for word in words for one in self._values(word)], step.documents)

    def _behind_keywords(self, words: list[Word]) -> list[Word]:
        head = 0
        while head < len(words) and words[head].text in _KEYWORDS and not words[head].quoted:
            word = words[head].text
            if word in _OPENS:
                self.blocks.append(self.base)
            elif word in _CLOSES and self.blocks and self.blocks.pop() != self.base:
                self.base = None
            if word in ("for", "select"):
                self._loop(words[head:])
            if word in ("for", "select", "case"):
                return []
            head += 1
        return words[head:]

    def _loop(self, words: list[Word]) -> None:
        """`for x in a b`: the variable stands for each value, where all are literal."""
        if len(words) < 2:
            return
        values = [one for word in words[3 : _VALUES + 4] for one in self._values(word)]
        if 0 < len(values) <= _VALUES and words[2].text == "in" and all(word.literal for word in values):
            self.known[words[1].text] = [word.text for word in values]
        else:
            self.known.pop(words[1].text, None)

    def _assigned(self, words: list[Word]) -> list[Word]:
        """The words behind assignments; assignments that stand alone set variables."""
        head = 0
        while head < len(words) and (found := _ASSIGNED.fullmatch(words[head].text)) is not None:
            word, text = words[head], found[2]
            values = self._values(Word(text, len(text) if word.literal else 0, word.glob, word.quoted))
            if len(values) == 1 and values[0].literal and len(values[0].text) < _LONGEST:
                self.known[found[1]] = [values[0].text]
            else:
                self.known.pop(found[1], None)
            head += 1
        return words[head:]

    def _values(self, word: Word) -> list[Word]:
        """The words that a word with one known variable stands for; any other word as it is."""
        if word.literal or word.glob or SUBSTITUTED in word.text:
            return [word]
        names = {braced or plain for braced, plain in _VARIABLE.findall(word.text)}
        name = names.pop() if len(names) == 1 else ""
        if name not in self.known or self.call.given > _GIVEN:
            return [word]
        values = self.known[name]
        self.call.given += len(values)
        rest = _VARIABLE.split(word.text)[::3]
        return [word] if any("$" in part for part in rest) else [
            Word(text, len(text), quoted=True) for value in values if len(text := value.join(rest)) < _LONGEST
        ]  # fmt: skip

    def _move(self, words: list[Word], after: str) -> None:
        """A change of directory."""
        self.moved = (self.base,)
        if after == "|":
            return
        if words[0].text == "popd":
            self.base = self.pushed.pop() if self.pushed else None
            return
        if words[0].text == "pushd":
            self.pushed.append(self.base)
        targets = [
            word for word in words[1:] if word.text.lower() not in ("--", "-p", "-l", "-path", "-literalpath", "/d")
        ]
        values = self._values(targets[0]) if targets else []
        if after == "||" or len(values) > 1 or (values and (not values[0].literal or values[0].text in ("", "-"))):
            self.base = None
        else:
            self.base = joined(self.base, values[0].text, self.call.home) if values else self.call.home

    def _touch(self, word: Word, effect: Effect, base: str | None = "", anchored: bool = True) -> None:
        """Record a path; behind an unknown variable only what follows it is one, seen from nowhere."""
        for one in self._values(word):
            if one.glob or (one.quoted and one.text.startswith("~")):
                continue
            text, seen = one.text, joined(self.base, base or ".") if base else self.base
            if not one.literal:
                slash = text.find("/", len(text) - one.fixed)
                if slash < 0 or slash != len(text) - one.fixed:
                    continue
                text, seen = text[slash + 1 :], None
            self.call.found.append(Operand(text, effect, seen if anchored else None))

    def _command(self, words: list[Word], documents: list[str]) -> None:
        words = _unwrapped(words)
        if not words or not words[0].literal:
            return
        verb = re.split(r"[/\\]", words[0].text)[-1].removesuffix(".exe")
        rest = words[1:]
        if verb.lower() in _SHELLS:
            self._shell(verb.lower(), rest, documents)
            return
        if verb == "eval":
            self.call.run(" ".join(word.text for word in rest), self.powershell, self.base, self.depth + 1)
            return
        rest, folder = _git_folder(rest) if verb == "git" else (rest, "")
        found = cmdlet(verb.lower(), rest) if self.powershell else None
        before = self.base
        self.base = joined(self.base, folder, self.call.home) if folder else self.base if folder == "" else None
        for word, effect, anchored in touched_by(verb, rest, documents) if found is None else found:
            self._touch(word, effect, anchored=anchored)
        self.base = before

    def _shell(self, verb: str, rest: list[Word], documents: list[str]) -> None:
        """`bash -lc SCRIPT`, `bash FILE`, or a script in a here document."""
        powershell = verb in _WINDOWS_SHELLS
        for place, word in enumerate(rest):
            flag = word.text.lower()
            if flag in ("-command", "/c") or re.fullmatch(r"-[a-z]*c", flag):
                behind = rest[place + 1 :] if flag == "/c" or powershell else rest[place + 1 : place + 2]
                self.call.run(" ".join(one.text for one in behind), powershell, self.base, self.depth + 1)
                return
            if flag[:1] not in ("-", "/", "+"):
                self._touch(word, Effect.READ)
                return
            if flag.startswith("/") and verb != "cmd":
                self._touch(word, Effect.READ)
                return
        for text in documents:
            self.call.run(text, powershell, self.base, self.depth + 1)


def _unwrapped(words: list[Word]) -> list[Word]:
    """The command that `sudo`, `env`, `timeout` or `uv run` runs in the end."""
    for _ in range(_WRAPPED):
        if not words:
            break
        verb = words[0].text.rpartition("/")[2]
        following = words[1].text if len(words) > 1 else ""
        if verb in _RUNNERS and following in ("run", "exec", "x", "dlx"):
            valued, count, words = _RUNNER_OPTIONS, 0, words[2:]
        elif verb in _PREFIXES and not (verb == "command" and following in ("-v", "-V")):
            valued, count, words = frozenset(_PREFIXES[verb][0].split()), _PREFIXES[verb][1], words[1:]
        else:
            return words
        taken = 0
        while taken < len(words) and words[taken].text[:1] == "-":
            text = words[taken].text
            taken += 1
            if text == "--":
                break
            options, _ = parted([Word(text, 0), Word("value", 5)], valued)
            taken += "value" in options.values() and "=value" not in text
        words = words[taken:][count:]
        if verb == "env":
            taken = next((place for place, word in enumerate(words) if not _ASSIGNED.fullmatch(word.text)), len(words))
            words = words[taken:]
    return words


def _git_folder(rest: list[Word]) -> tuple[list[Word], str | None]:
    """The words of `git` from its verb on, and the directory that `-C` names ("" for none, None for an unknown one)."""
    folder: str | None = ""
    at = 0
    while at < len(rest) and rest[at].text.startswith("-"):
        if rest[at].text == "-C" and at + 1 < len(rest):
            folder = joined(folder, rest[at + 1].text) if rest[at + 1].literal else None
        at += 2 if rest[at].text in ("-C", "-c", "--git-dir", "--work-tree") else 1
    return rest[at:], folder
