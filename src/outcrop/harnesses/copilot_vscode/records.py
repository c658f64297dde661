"""A chat session taken apart: one record for the session, and for each request its prompt, its parts and its end.

The parts are what the editor shows; what the model asked for and got back stands beside them in the request's result.
The two know a call by different ids, so a call is matched by its id where that works, else by its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from outcrop.harnesses.content import parsed_arguments
from outcrop.ids import text_digest

_DEPTH = 60
_TEXT = "text"
_CALL = "toolInvocationSerialized"


def conversation(document: Any) -> Iterator[dict[str, Any]]:
    """Records, each with its `record` and its native `data`; those of a request name it by `of`."""
    if not isinstance(document, dict):
        if document is not None:
            yield {"record": "broken", "line": document}
        return
    yield {"record": "session", "data": {name: value for name, value in document.items() if name not in _APART}}
    requests = document.get("requests")
    seen: dict[str, int] = {}
    for request in requests if isinstance(requests, list) else ():
        if not isinstance(request, dict):
            yield {"record": "broken", "line": request}
            continue
        name = request.get("requestId")
        if not isinstance(name, str) or not name:
            name = text_digest(prompt_of(request.get("message")))
        seen[name] = seen.get(name, 0) + 1
        of = name if seen[name] == 1 else f"{name}#{seen[name]}"
        yield {"record": "request", "of": of, "data": {k: v for k, v in request.items() if k not in _PARTS}}
        yield from _parts(of, request)
        yield {"record": "end", "of": of, "data": {k: v for k, v in request.items() if k in _END}}


def prompt_of(message: Any) -> str:
    """What was typed: a text in the oldest form, later an object that holds it."""
    if isinstance(message, dict):
        message = message.get("text")
    return message if isinstance(message, str) else ""


def metadata(result: Any) -> dict[str, Any]:
    found = result.get("metadata") if isinstance(result, dict) else None
    return found if isinstance(found, dict) else {}


def plain(value: Any) -> str:
    """The text of a Markdown value, which is a text or an object that holds one."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def local_path(uri: Any) -> str | None:
    """The path of a file URI in the form in which the editor keeps it."""
    if not isinstance(uri, dict) or uri.get("scheme", "file") not in ("file", "vscode-remote"):
        return None
    path = uri.get("path") or uri.get("fsPath")
    if not isinstance(path, str) or not path:
        return None
    return path[1:] if path[:1] == "/" and path[2:3] == ":" else path


def _parts(of: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of a response; texts and the names between them are one record."""
    listed = request.get("response")
    parts = listed if isinstance(listed, list) else []
    known = metadata(request.get("result"))
    rounds = [one for one in _list(known.get("toolCallRounds")) if isinstance(one, dict)]
    calls = [call for one in rounds for call in _list(one.get("toolCalls")) if isinstance(call, dict)]
    matched = _matched(parts, calls)
    results = known.get("toolCallResults")
    shown: list[str] = []
    for place, part in enumerate(parts):
        words = _words(part)
        if words is not None:
            shown.append(words)
            continue
        if shown:
            yield {"record": _TEXT, "of": of, "data": "".join(shown)}
            shown = []
        yield {"record": "part", "of": of, "data": part, "call": _call(matched.get(place), results)}
    used = {id(call) for call in matched.values()}
    for call in calls:
        if id(call) not in used:
            yield {"record": "part", "of": of, "data": {"kind": _CALL}, "call": _call(call, results)}
    if shown:
        yield {"record": _TEXT, "of": of, "data": "".join(shown)}
    elif not any(_words(part) for part in parts):
        said = "\n\n".join(words for one in rounds if (words := plain(one.get("response"))).strip())
        if said:
            yield {"record": _TEXT, "of": of, "data": said}


def _words(part: Any) -> str | None:
    """Visible text of a part, or the name that it puts between texts; None for every other part."""
    if not isinstance(part, dict):
        return None
    kind = part.get("kind")
    if kind is None and "value" in part:
        return plain(part)
    if kind in ("markdownContent", "markdownVuln"):
        return plain(part.get("content", part.get("value")))
    if kind == "inlineReference":
        name = part.get("name")
        if not isinstance(name, str) or not name:
            target = part.get("inlineReference")
            inner = target.get("uri", target.get("location", target)) if isinstance(target, dict) else None
            path = local_path(inner.get("uri", inner) if isinstance(inner, dict) else None)
            name = path.replace("\\", "/").rsplit("/", 1)[-1] if path else ""
        return f"`{name}`" if name else ""
    return None


def _matched(parts: list[Any], calls: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Place of each shown call → the call of the model: by id, or all in order where there are as many."""
    shown = [(n, part) for n, part in enumerate(parts) if isinstance(part, dict) and part.get("kind") == _CALL]
    found: dict[int, dict[str, Any]] = {}
    for place, part in shown:
        own = part.get("toolCallId")
        same = next((call for call in calls if _same(own, call.get("id"))), None)
        if same is not None:
            found[place] = same
    if not found and len(shown) == len(calls):
        return {place: call for (place, _), call in zip(shown, calls, strict=True)}
    return found


def _same(own: Any, other: Any) -> bool:
    """Whether two ids name one call: the extension appends a serial number to the provider's id."""
    if not isinstance(own, str) or not isinstance(other, str) or not own or not other:
        return False
    return own == other or other.startswith(own + "__") or own.startswith(other + "__")


def _call(call: dict[str, Any] | None, results: Any) -> dict[str, Any] | None:
    if call is None:
        return None
    asked, native = call.get("arguments"), call.get("id")
    found = results.get(native) if isinstance(results, dict) and isinstance(native, str) else None
    return {
        "id": native,
        "name": call.get("name"),
        "arguments": parsed_arguments(asked) if isinstance(asked, str) and asked else asked,
        "result": None if found is None else tree_text(found.get("content") if isinstance(found, dict) else found),
    }


def tree_text(value: Any, depth: int = 0) -> str:
    """The text of a tool's result: texts, parts with a value, or a tree of prompt elements."""
    if depth > _DEPTH:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(tree_text(item, depth + 1) for item in value)
    if not isinstance(value, dict):
        return ""
    if isinstance(value.get("text"), str):
        return ("\n" if value.get("lineBreakBefore") else "") + str(value["text"])
    for name in ("value", "node", "children", "content"):
        if name in value:
            return tree_text(value[name], depth + 1)
    return ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_APART = frozenset({"requests", "pendingRequests", "inputState"})
_PARTS = frozenset({"response", "result", "followups", "codeCitations", "contentReferences", "usedContext"})
_END = frozenset({"result", "modelState", "isCanceled", "timestamp", "completionTokens", "vote"})
