"""Known-item queries: of real sessions, something that somebody said, and what is remembered of it.

From each of some sessions a message is drawn by rule, and of it a half-sentence of words that are rare in all the
history. The same is asked as it stands, by its rarest words in another order, and by these with a typing mistake.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cases import SEED, mistyped

from outcrop.search.query import STOP_WORDS

FEWEST_WORDS = 12
SPAN = 8
"""Words of a half-sentence."""
KEYS = 4
_A_SESSION = 8
_LONGEST = 20_000
"""Characters of a message that is drawn from."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_KEY = re.compile(r"[a-z]{4,16}")
_COMMON = 0.02
"""Share of the messages that hold a word which says nothing."""


class Item(NamedTuple):
    """A message to be found: the sessions (row ids) that hold it, its half-sentence, and the queries by kind."""

    sessions: frozenset[int]
    text: str
    queries: dict[str, str]


def items(messages: Iterable[tuple[int, str]], folded: Mapping[int, int], most: int) -> list[Item]:
    """Up to `most` items, the same for the same messages; (session, text) of prompts and answers.

    `folded` names the history that sessions share: of forks session search shows one, whichever was asked for.
    """
    families: dict[int, set[int]] = defaultdict(set)
    for session, family in folded.items():
        families[family].add(session)
    chance = random.Random(SEED)
    holding: dict[str, set[int]] = defaultdict(set)  # forks repeat what was said
    for session, text in messages:
        if len(text) < _LONGEST:
            holding[text] |= families[folded[session]] if session in folded else {session}
    frequency = Counter(word for text in holding for word in set(_words(text)))
    common = max(2, int(_COMMON * len(holding)))
    found: dict[int, list[Item]] = defaultdict(list)
    for text in chance.sample(list(holding), len(holding)):
        some = found[min(holding[text])]
        if len(some) < _A_SESSION and (item := _item(holding[text], text, frequency, common, chance)) is not None:
            some.append(item)
    spread = [item for rank in range(_A_SESSION) for some in found.values() for item in some[rank : rank + 1]]
    return spread[:most]


def _item(sessions: set[int], text: str, frequency: Counter[str], common: int, chance: random.Random) -> Item | None:
    sentences = [one for one in re.split(r"(?<=[.!?:])\s+|\n+", text) if len(_WORD.findall(one)) >= FEWEST_WORDS]
    for sentence in chance.sample(sentences, len(sentences)):
        words = list(_WORD.finditer(sentence))
        at = chance.randrange(len(words) - SPAN + 1)
        half = sentence[words[at].start() : words[at + SPAN - 1].end()]
        keys = [
            word
            for word in dict.fromkeys(_words(half))
            if _KEY.fullmatch(word) and word not in STOP_WORDS and frequency[word] <= common
        ]
        keys = sorted(keys, key=lambda word: (frequency[word], word))[:KEYS]
        if len(keys) < KEYS - 1:
            continue
        chance.shuffle(keys)
        longest = max(keys, key=len)
        wrong = mistyped(longest, chance)
        typo = [wrong if word == longest else word for word in keys]
        return Item(frozenset(sessions), half, {"exact": half, "key words": " ".join(keys), "typo": " ".join(typo)})
    return None


def _words(text: str) -> Iterator[str]:
    return (match[0].lower() for match in _WORD.finditer(text))
