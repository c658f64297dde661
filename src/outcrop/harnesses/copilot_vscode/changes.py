"""A session as a log of changes, one JSON object a line, replayed into the document that it stands for.

The first line holds the whole document, each later one sets a value, cuts or lengthens a list, or deletes a value at
a path; now and then the editor begins anew with a whole document. Lines that cannot be applied are kept as they are.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses import jsonl

_WHOLE, _SET, _PUSH, _DELETE = 0, 1, 2, 3


def replayed(text: str) -> tuple[Any, list[dict[str, Any]]]:
    """(document, records of the lines that say nothing or cannot be applied). A torn last line is not yet written."""
    document: Any = None
    broken: list[dict[str, Any]] = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        found, faults = jsonl.records(line.encode("utf-8", "replace"))
        if faults and number < len(lines) - 1:
            broken.append({"record": "broken", "line": line[:4096]})
        for change in found:
            if change.get("kind") == _WHOLE and type(change.get("kind")) is int:
                document = change.get("v")
            elif not _applied(document, change):
                broken.append({"record": "broken", "line": change})
    return document, broken


def _applied(document: Any, change: dict[str, Any]) -> bool:
    kind, path = change.get("kind"), change.get("k")
    if type(kind) is not int or not isinstance(path, list) or not path:
        return False
    place = document
    for step in path[:-1]:
        place = _inside(place, step)
    last = path[-1]
    if kind == _PUSH:
        return _pushed(place, last, change)
    if kind not in (_SET, _DELETE):
        return False
    if isinstance(place, dict) and isinstance(last, str):
        if kind == _SET:
            place[last] = change.get("v")
        else:
            place.pop(last, None)
        return True
    if isinstance(place, list) and type(last) is int and 0 <= last <= len(place):
        # A deleted element leaves a hole: those after it keep their places.
        place[last : last + 1] = [change.get("v") if kind == _SET else None]
        return True
    return False


def _inside(place: Any, step: Any) -> Any:
    if isinstance(place, dict) and isinstance(step, str):
        return place.get(step)
    if isinstance(place, list) and type(step) is int and 0 <= step < len(place):
        return place[step]
    return None


def _pushed(place: Any, last: Any, change: dict[str, Any]) -> bool:
    added, cut = change.get("v"), change.get("i")
    listed = _inside(place, last)
    if listed is None and isinstance(place, dict) and isinstance(last, str):
        listed = place[last] = []
    if not isinstance(listed, list) or not (added is None or isinstance(added, list)):
        return False
    if cut is not None:
        if type(cut) is not int or not 0 <= cut <= len(listed):
            return False
        del listed[cut:]
    listed += added or []
    return True
