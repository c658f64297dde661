"""A shell script taken apart: its commands with their words, redirections and here documents, in order.

It reads what POSIX shells, Bash and (roughly) PowerShell write, and runs nothing. A word knows whether its text is what
the command saw or still holds a variable, a substitution or a glob. Any text is lexed in linear time and without an
error: what no shell would accept gives the commands before it and, at the worst, words that nobody takes for a path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

DEPTH = 24
"""Substitutions inside each other; what lies deeper is skipped."""

SUBSTITUTED = "$()"
"""What stands in a word's text for the output of a command."""

_BLANK = " \t\r"
_SPACE = ("", *" \t\r\n")
_ENDS = _BLANK + "\n;&|()<>"
_PLAIN = re.compile(r"[^\s;&|()<>'\"\\`$#*?{}\[\]]+")
_INSIDE = re.compile(r"[^\"\\`$]+")
_NAME = re.compile(r"\$(?:[eE]nv:)?[A-Za-z_]\w*|\$[0-9@*#?$!-]")
_REDIRECTION = re.compile(r"&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|<|>")
_JOIN = re.compile(r"\|\||&&|;;&|;;|;&|\|&|[;&|\n]")
_DRIVE = re.compile(r"(?:^|[\s\"'=])[A-Za-z]:\\\w")
_SEPARATES = re.compile(r"\\[\w.-]")
_LITERAL_CLASS = re.compile(r"\[(?:\.{3})?(?!([a-z])\1\])[a-z_]\w+\]", re.IGNORECASE)


@dataclass(slots=True)
class Word:
    """One word. `fixed`: how many characters at its end are free of variables and substitutions; `glob`: unquoted."""

    text: str
    fixed: int
    glob: bool = False
    quoted: bool = False

    @property
    def literal(self) -> bool:
        """Whether the command saw exactly this text."""
        return self.fixed >= len(self.text) and not self.glob


class Edge(Enum):
    """Where a script, a subshell or a substitution begins and ends: a change of directory stays inside."""

    OPEN = auto()
    CLOSE = auto()


@dataclass(slots=True)
class Command:
    """A simple command. `after` is what stands before it: "", ";", "&&", "||" or "|"."""

    words: list[Word] = field(default_factory=list)
    redirections: list[tuple[str, Word]] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    after: str = ""


def commands(script: str, powershell: bool = False) -> list[Command | Edge]:
    """The steps of a script in the order in which it is written; a substitution stands before its command."""
    lexer = _Lexer(script, powershell)
    lexer.sequence(0, closes=False)
    return lexer.steps


class _Lexer:
    def __init__(self, script: str, powershell: bool) -> None:
        self.script = script
        self.at = 0
        self.steps: list[Command | Edge] = []
        self.powershell = powershell
        self.escape = "`" if powershell else "\\"
        self.windows = not powershell and _DRIVE.search(script) is not None
        self.waiting: list[tuple[Command, str, bool]] = []

    def sequence(self, depth: int, closes: bool) -> None:
        """Commands up to the end, or up to the bracket that closes this level."""
        script, size = self.script, len(self.script)
        command = Command()
        self.steps.append(Edge.OPEN)
        while self.at < size:
            char = script[self.at]
            if char in _BLANK:
                self.at += 1
            elif char == "#":
                end = script.find("\n", self.at)
                self.at = size if end < 0 else end
            elif char == ")":
                self.at += 1
                if closes:
                    break
                command = self._finish(command, ";")
            elif char == "(":
                command = self._bracket(command, depth)
            elif not command.words and script.startswith("[[", self.at) and script[self.at + 2 : self.at + 3] in _BLANK:
                self._skip("]]")
            elif (found := _REDIRECTION.match(script, self.at)) is not None:
                self.at = found.end()
                self._redirection(command, found[0], depth)
            elif (found := _JOIN.match(script, self.at)) is not None:
                self.at = found.end()
                command = self._finish(command, {"|&": "|", "&&": "&&", "||": "||", "|": "|"}.get(found[0], ";"))
                if found[0] == "\n":
                    self._documents()
            else:
                word = self.word(depth)
                if not (script[self.at : self.at + 1] in ("<", ">") and word.text.isdecimal() and not word.quoted):
                    command.words.append(word)
        self._finish(command, "")
        self.steps.append(Edge.CLOSE)

    def _finish(self, command: Command, joint: str) -> Command:
        if command.words or command.redirections:
            self.steps.append(command)
        elif joint == ";" and command.after:
            joint = command.after  # a line may end after an operator
        return Command(after=joint)

    def _bracket(self, command: Command, depth: int) -> Command:
        """A subshell, `((` arithmetic, or the brackets of a function or of a PowerShell expression."""
        if not command.words and self.script.startswith("((", self.at):
            self._skip("))")
            return command
        self.at += 1
        named = command.words
        if named and not self.powershell:
            command = self._finish(command, command.after)
        self._nested(depth)
        if self.powershell and named:
            command.words.append(Word(SUBSTITUTED, 0))
        return command

    def _skip(self, end: str) -> None:
        found = self.script.find(end, self.at + 2)
        self.at = len(self.script) if found < 0 else found + len(end)

    def _redirection(self, command: Command, sign: str, depth: int) -> None:
        script, size = self.script, len(self.script)
        if script.startswith("(", self.at) and sign in ("<", ">"):
            self.at += 1
            self._nested(depth)
            command.words.append(Word(SUBSTITUTED, 0))
            return
        while self.at < size and script[self.at] in _BLANK:
            self.at += 1
        if self.at >= size or script[self.at] in _ENDS:
            return
        word = self.word(depth)
        if sign in ("<<", "<<-"):
            self.waiting.append((command, word.text, sign == "<<-"))
            command.redirections.append(("<<", word))
        elif not (sign in (">&", "<&") and re.fullmatch(r"\d*-?", word.text)):
            command.redirections.append((sign, word))

    def _documents(self) -> None:
        """The here documents that were announced on the line that ended just now."""
        script, size = self.script, len(self.script)
        for command, mark, tabs in self.waiting:
            lines: list[str] = []
            while self.at < size:
                end = script.find("\n", self.at)
                end = size if end < 0 else end
                line = script[self.at : end]
                self.at = end + 1
                line = line.lstrip("\t") if tabs else line
                if line.rstrip("\r") == mark:
                    break
                lines.append(line)
            command.documents.append("\n".join(lines))
        self.waiting.clear()

    def word(self, depth: int) -> Word:
        """The word that begins here, however many quoted and plain pieces it is made of."""
        script, size = self.script, len(self.script)
        pieces: list[str] = []
        length = loose = 0  # of the text so far; up to where something in it is not literal
        glob = quoted = False
        while self.at < size:
            char = script[self.at]
            piece, dynamic = "", 0
            if self.powershell and script.startswith(("@'", '@"'), self.at):
                piece, quoted, self.at = "\n", True, self.at + 1
                self._skip("\n" + script[self.at] + "@")
            elif (found := _PLAIN.match(script, self.at)) is not None:
                piece, self.at = found[0], found.end()
            elif char in _ENDS:
                break
            elif char == self.escape and not (self.windows and _SEPARATES.match(script, self.at)):
                piece = script[self.at + 1 : self.at + 2]
                piece = "" if piece == "\n" else piece
                self.at += 2
            elif char == "'":
                quoted = True
                piece = self._single()
            elif char == '"':
                quoted = True
                piece, dynamic = self._double(depth)
            elif char == "$" or (char == "`" and not self.powershell):
                piece, dynamic = self._dollar(depth)
                quoted = quoted or not dynamic
            elif char == "[" and (found := _LITERAL_CLASS.match(script, self.at)) is not None:
                piece, self.at = found[0], found.end()
            else:
                glob = glob or char in "*?[" or (char == "{" and script[self.at + 1 : self.at + 2] not in _SPACE)
                piece = char
                self.at += 1
            loose = length + dynamic if dynamic else loose
            pieces.append(piece)
            length += len(piece)
        text = "".join(pieces)
        return Word(text, len(text) - loose if loose else len(text), glob, quoted)

    def _single(self) -> str:
        script, start = self.script, self.at + 1
        end = script.find("'", start)
        while self.powershell and end >= 0 and script.startswith("''", end):
            end = script.find("'", end + 2)
        end = len(script) if end < 0 else end
        self.at = end + 1
        return script[start:end]

    def _double(self, depth: int) -> tuple[str, int]:
        script, size = self.script, len(self.script)
        pieces: list[str] = []
        length = loose = 0
        self.at += 1
        while self.at < size:
            char = script[self.at]
            if (found := _INSIDE.match(script, self.at)) is not None:
                piece, self.at = found[0], found.end()
            elif char == '"':
                self.at += 1
                break
            elif char == self.escape:
                after = script[self.at + 1 : self.at + 2]
                piece = "" if after == "\n" else after if self.powershell or after in '$`"\\' else "\\" + after
                self.at += 2
            elif char == "\\":
                piece = char
                self.at += 1
            else:
                piece, dynamic = self._dollar(depth, inside=True)
                loose = length + dynamic if dynamic else loose
            pieces.append(piece)
            length += len(piece)
        return "".join(pieces), loose

    def _dollar(self, depth: int, inside: bool = False) -> tuple[str, int]:
        """What a dollar or a backtick begins, and how much of that is dynamic: all or nothing."""
        script, start = self.script, self.at
        if script[start] == "`":
            inner: list[str] = []
            self.at += 1
            while self.at < len(script) and script[self.at] != "`":
                self.at += script[self.at] == "\\"
                inner.append(script[self.at : self.at + 1])
                self.at += 1
            self.at += 1
            if depth < DEPTH:
                lexer = _Lexer("".join(inner), False)
                lexer.sequence(depth + 1, closes=False)
                self.steps += lexer.steps
            return SUBSTITUTED, len(SUBSTITUTED)
        if script.startswith("$((", start):
            self._skip("))")
            return SUBSTITUTED, len(SUBSTITUTED)
        if script.startswith("$(", start):
            self.at += 2
            self._nested(depth)
            return SUBSTITUTED, len(SUBSTITUTED)
        if script.startswith("$'", start) and not inside:
            self.at += 2
            pieces: list[str] = []
            while self.at < len(script) and script[self.at] != "'":
                self.at += script[self.at] == "\\"
                pieces.append(script[self.at : self.at + 1])
                self.at += 1
            self.at += 1
            return "".join(pieces), 0
        if script.startswith("${", start):
            end = script.find("}", start)
            self.at = len(script) if end < 0 else end + 1
            return script[start : self.at], self.at - start
        found = _NAME.match(script, start)
        self.at = found.end() if found else start + 1
        return script[start : self.at], self.at - start if found else 0

    def _nested(self, depth: int) -> None:
        if depth >= DEPTH:
            self.at = len(self.script)
        else:
            self.sequence(depth + 1, closes=True)
