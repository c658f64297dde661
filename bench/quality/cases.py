"""From facts to questions: every kind of query, what it must find, and on which surface.

Shuffling and typing mistakes follow a rule with a fixed seed, so that every run asks the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import facts
from facts import Message, Piece

SEED = 11


class Surface(StrEnum):
    """Where a question is asked."""

    DEFAULT = "search_sessions"
    TYPES = "search_sessions, all types"
    SESSIONS = "session search"


class Place(StrEnum):
    """What kind of text a fact stands in."""

    TALK = "talk"
    PROMPT = "prompt"
    ANSWER = "answer"
    TOOL = "tool"
    REASONING = "reasoning"
    TITLE = "title"


@dataclass(slots=True)
class Planted:
    """A session to be written. `parts` are its facts in order: (place, text). `deep`: tool text around it in 100 KB.
    `fork`: it is copied into a session of its own, which goes on."""

    name: str
    parts: list[tuple[Place, str]]
    title: str | None = None
    deep: bool = False
    fork: bool = False


@dataclass(slots=True)
class Case:
    """A query, and what it must find: one of `texts` inside the session `name`; of a fork, exactly one of the two."""

    kind: str
    query: str
    name: str
    texts: tuple[str, ...]
    place: Place = Place.TALK
    surfaces: frozenset[Surface] = field(default_factory=lambda: frozenset(Surface))


EVERYWHERE = frozenset(Surface)
_IN_TOOLS = frozenset((Surface.TYPES, Surface.SESSIONS))
_SURFACES = {
    Place.TALK: EVERYWHERE,
    Place.TOOL: _IN_TOOLS,
    Place.REASONING: frozenset((Surface.TYPES,)),
    Place.TITLE: frozenset((Surface.SESSIONS,)),
}
"""Where a fact must be found: by default MCP searches conversations, session search never looks at reasoning, and a
title is no event."""
_PIECES: dict[str, tuple[Piece, ...]] = {
    "identifier piece": facts.IDENTIFIERS,
    "camelCase": facts.CAMELS,
    "path part": facts.PATHS,
    "hash prefix": facts.HASHES,
    "error, other numbers": facts.ERRORS,
    "part of a CJK run": facts.SCRIPTS,
    "accents": facts.ACCENTS,
    "fork and original": facts.FORKS,
}


def planted() -> Iterator[tuple[Planted, list[Case]]]:
    """Every session to be written, with the questions that it answers; decoys answer none."""
    chance = random.Random(SEED)
    for number, message in enumerate(facts.MESSAGES):
        name = f"message-{number}"
        yield Planted(name, [(Place.TALK, message.text)]), list(_of_message(name, message, chance))
        yield Planted(f"decoy-{number}", [(Place.TALK, message.decoy)]), []
    for kind, pieces in _PIECES.items():
        for number, piece in enumerate(pieces):
            name = f"{kind}-{number}"
            place = Place.TOOL if piece.tool else Place.TALK
            fork = pieces is facts.FORKS
            case = Case(kind, piece.query, name, (piece.text,), place, _SURFACES[place])
            yield Planted(name, [(place, piece.text)], fork=fork), [case]
    for number, spread in enumerate(facts.SPREAD):
        name = f"spread-{number}"
        case = Case("spread over messages", spread.query, name, spread.parts)
        yield Planted(name, [(Place.TALK, part) for part in spread.parts]), [case]
    for number, dialogue in enumerate(facts.DIALOGUES):
        name = f"dialogue-{number}"
        case = Case("answer without its topic", dialogue.query, name, (dialogue.answer,))
        yield Planted(name, [(Place.PROMPT, dialogue.prompt), (Place.ANSWER, dialogue.answer)]), [case]
        prompt, answer = dialogue.decoy
        yield Planted(f"dialogue-decoy-{number}", [(Place.PROMPT, prompt), (Place.ANSWER, answer)]), []
    for number, piece in enumerate(facts.DEEP):
        name = f"deep-{number}"
        surfaces = frozenset((Surface.TYPES,))  # session search reads 3,072 characters of a tool text
        case = Case("deep in tool output", piece.query, name, (piece.text,), Place.TOOL, surfaces)
        yield Planted(name, [(Place.TOOL, piece.text)], deep=True), [case]
    for number, piece in enumerate(facts.REASONING):
        name = f"reasoning-{number}"
        case = Case("reasoning only", piece.query, name, (piece.text,), Place.REASONING, _SURFACES[Place.REASONING])
        yield Planted(name, [(Place.REASONING, piece.text)]), [case]
    for number, piece in enumerate(facts.TITLES):
        name = f"title-{number}"
        case = Case("title only", piece.query, name, (), Place.TITLE, _SURFACES[Place.TITLE])
        yield Planted(name, [], title=piece.text), [case]


def _of_message(name: str, message: Message, chance: random.Random) -> Iterator[Case]:
    keys = list(message.keys)
    shuffled = chance.sample(keys, len(keys))
    while shuffled == keys:
        shuffled = chance.sample(keys, len(keys))
    queries = {
        "exact": message.text,
        "key words, shuffled": " ".join(shuffled),
        "other forms": message.forms,
        "other number": message.plural,
        "typo": " ".join([mistyped(keys[0], chance), *keys[1:3]]),
        "transposition": " ".join([keys[0], transposed(keys[1], chance), keys[2]]),
        "question": message.question,
        "phrase": f'"{message.phrase}"',
        "-word": f"{' '.join(keys[:3])} -{message.exclude}",
    }
    for kind, query in queries.items():
        yield Case(kind, query, name, (message.text,))


def mistyped(word: str, chance: random.Random) -> str:
    """A letter behind the first lost, doubled, or another one."""
    at = chance.randrange(1, len(word))
    return chance.choice(
        (word[:at] + word[at + 1 :], word[: at + 1] + word[at:], word[:at] + _other(word[at], chance) + word[at + 1 :])
    )


def transposed(word: str, chance: random.Random) -> str:
    """Two neighbouring letters behind the first that differ change places."""
    at = chance.choice([at for at in range(1, len(word) - 1) if word[at] != word[at + 1]])
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _other(letter: str, chance: random.Random) -> str:
    return chance.choice([other for other in "abcdefghijklmnopqrstuvwxyz" if other != letter])
