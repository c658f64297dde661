"""Why a session was found: the message that tells it, as its row is now."""

from __future__ import annotations

from collections.abc import Sequence

from outcrop.model import EventRow, EventType
from outcrop.search.columns import Columns
from outcrop.search.found import Route, Shown
from outcrop.search.gather import Gatherer, Row
from outcrop.search.ladder import Rung
from outcrop.search.marks import Looked, marked
from outcrop.search.texts import searched_text, stands
from outcrop.store import Snapshot
from outcrop.store.embedded import analysis
from outcrop.store.embedded.text_fields import TOOL_HEAD

_ROWS_TRIED = 16
_ROLES = {EventType.USER_INPUT: "user", EventType.ASSISTANT_RESPONSE: "assistant"}


class Evidence:
    """Reads the messages that an index told of."""

    def __init__(self, snapshot: Snapshot, gatherer: Gatherer, columns: Columns) -> None:
        self._snapshot, self._gatherer, self._columns = snapshot, gatherer, columns

    def shown(self, rows: Sequence[Row], rung: Rung) -> dict[int, Shown]:
        """By session, the message that tells why it was found."""
        looked = self._looked(rung)
        chosen = [event for _, event, current in self._events(rows) if current]
        settled = {event.session_id for event in chosen}
        for row in rows:  # the row is not any more what the index says
            if row.session not in settled and (event := self._other(rung, looked, row.session)) is not None:
                chosen.append(event)
        contents = self._snapshot.contents(chosen)
        found: dict[int, Shown] = {}
        for event, content in zip(chosen, contents, strict=True):
            snippet, cut = marked(_searched(searched_text(event, content), event), looked)
            role = _ROLES.get(event.type, "tool")
            found[event.session_id] = Shown(role, None if event.inferred else event.time, snippet, cut)
        return found

    def _other(self, rung: Rung, looked: Looked, session: int) -> EventRow | None:
        """The best message of a session that still matches."""
        rows = self._gatherer.best_of([*rung.rows, self._columns.some(rung.plan)], session, _ROWS_TRIED)
        for _, event, current in self._events(rows):
            text = searched_text(event, self._snapshot.contents([event])[0])
            if current or looked.spans(_searched(text, event)):
                return event
        return None

    def _events(self, rows: Sequence[Row]) -> list[tuple[Row, EventRow, bool]]:
        """The messages that are there, with their events, and whether these are still as they were indexed."""
        indexed = self._gatherer.events(rows)
        events = self._snapshot.events_at([id for id, _ in indexed])
        return [
            (row, events[id], events[id].rev == rev)
            for row, (id, rev) in zip(rows, indexed, strict=True)
            if id in events
        ]

    def _looked(self, rung: Rung) -> Looked:
        asked = rung.plan
        phrase = rung.route in (Route.PHRASE, Route.TYPO_PHRASE)
        exact = phrase or rung.route in (Route.AND, Route.TYPO_AND)
        words = asked.terms if phrase else tuple(dict.fromkeys([*asked.terms, *(() if exact else asked.alternatives)]))
        stems = frozenset() if exact else frozenset(map(analysis.stem_of, words))
        pieces: list[str] = []
        for unit in asked.units:
            dense = analysis.is_dense(unit.typed)
            if not self._columns.talk or dense:
                pieces += [*unit.parts, *([unit.word] if unit.word else [])]
            if unit.name is not None and (unit.word is not None or not unit.parts):
                pieces.append(unit.name)
        return Looked(words, stems, tuple(dict.fromkeys(pieces)), phrase)

    def stands(self, phrase: Sequence[str], rows: Sequence[Row]) -> list[Row]:
        """Those of the messages in which the tokens stand side by side, in this order."""
        found = self._events(rows)
        contents = self._snapshot.contents([event for _, event, _ in found])
        return [
            row
            for (row, event, _), content in zip(found, contents, strict=True)
            if stands(phrase, _searched(searched_text(event, content), event))
        ]


def _searched(text: str, event: EventRow) -> str:
    """What of a message session search can find (ruling 44)."""
    return text if event.type in _ROLES else text[:TOOL_HEAD]
