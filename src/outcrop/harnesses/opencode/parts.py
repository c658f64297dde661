"""What becomes of each part of a message: text, thinking, files, tools, and the marks of the program.

Handlers take the reader, the part's id and its data, and give an outcome and what is to be kept beside the events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from outcrop.calls import RAW
from outcrop.harnesses.content import attachment_note, parsed_arguments
from outcrop.harnesses.opencode import steps
from outcrop.harnesses.opencode.records import mapping, text, time_ms
from outcrop.harnesses.outcomes import Outcome
from outcrop.harnesses.toolnames import OWN_TOOLS, canonical
from outcrop.model import ENCRYPTED_PLACEHOLDER, Event, EventType, Item

if TYPE_CHECKING:
    from outcrop.harnesses.opencode.reader import OpenCodeReader

PRUNED = "[Old tool result content cleared]"
"""What a pruned output reads, where it was replaced at all."""

_MIRRORED = ("output", "preview", "exit", "truncated", "outputPath", "sessionId", "filepath", "title")
_FACTS = ("truncated", "outputPath", "sessionId")


def own_tool(name: str) -> str:
    """The tool's canonical name; OpenCode writes `outcrop_open` for the tool `open` of a server `outcrop`."""
    server, _, rest = name.partition("_")
    return canonical(f"{server}__{rest}" if rest in OWN_TOOLS else name)


def _text(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    said = text(data, "text")
    if not said:
        return "empty", None
    user = reader.of.get("role") == "user"
    if data.get("synthetic") is True or data.get("ignored") is True:
        return [reader.event(id, EventType.SYSTEM, said, _start(reader, data))], None
    if user:
        return [reader.ask(id, said)], None
    kind = EventType.COMPACTION if reader.of.get("summary") else EventType.ASSISTANT_RESPONSE
    return [reader.event(id, kind, said, _start(reader, data))], None


def _reasoning(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    # Thinking about a summary is no activity of the turn, which may have ended before.
    kind = EventType.SYSTEM if reader.of.get("summary") else EventType.REASONING
    return thought(reader, id, kind, text(data, "text"), data.get("metadata"), _start(reader, data))


def thought(
    reader: OpenCodeReader, key: str, kind: EventType, said: str, sealed: Any, time: int | None
) -> tuple[Outcome, Any]:
    """Thinking: its text, or a placeholder with the payload that only the provider can read."""
    if said:
        return [reader.event(key, kind, said, time)], {"metadata": sealed} if sealed else None
    if not sealed:
        return "empty", None
    event = reader.event(key, kind, ENCRYPTED_PLACEHOLDER, time)
    event.extra = {"encrypted_content": sealed}
    return [event], None


def _file(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    url = text(data, "url")
    note = attachment_note({"type": "image" if text(data, "mime").startswith("image/") else "file", "url": url})
    name = text(data, "filename")
    event = reader.event(id, EventType.SYSTEM, f"{note} {name}".strip(), reader.created())
    path = text(mapping(data.get("source")), "path") or _path(url)
    event.extra = {"mime": data.get("mime"), "filename": name} | ({"paths": [path]} if path else {})
    return [event], None


def _path(url: str) -> str:
    """The path that a file URL names, without its percent signs and its range of lines; empty for any other URL."""
    if not url.startswith("file://"):
        return ""
    path = unquote(url[len("file://") :].partition("?")[0])
    return path[1:] if path[2:3] == ":" else path


def _tool(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    state = mapping(data.get("state"))
    time = mapping(state.get("time"))
    metadata = mapping(state.get("metadata")) or mapping(data.get("metadata"))
    given = state.get("input")
    if not given and text(state, "raw"):
        given = text(state, "raw")
    ran = time_ms(time.get("start"))
    call = tool_call(reader, id, text(data, "tool"), text(data, "callID"), given, ran or reader.created())
    if call is None:
        return None, None
    answer = answered(text(state, "status"), state.get("output"), state.get("error"))
    rest = {name: value for name, value in metadata.items() if name not in _MIRRORED}
    if answer is None:
        return [call], {"metadata": rest} if rest else None
    said, error = answer
    pruned = time_ms(time.get("compacted"))
    if pruned is not None and said in ("", PRUNED):
        # What an earlier reading held stays as it was.
        call.extra = {"output_pruned": pruned}
        return [call], None
    response = tool_response(reader, call, said, error, metadata, time_ms(time.get("end")))
    title = text(state, "title")
    response.extra = (response.extra or {}) | ({"title": title} if title else {}) or None
    notes = [mapping(one) for one in items(state.get("attachments"))]
    if notes:
        response.text = "\n".join(
            [said, *(attachment_note({"type": "file", "url": text(one, "url")}) for one in notes)]
        )
    return [call, response], {"metadata": rest} if rest else None


def tool_call(reader: OpenCodeReader, key: str, name: str, call_id: str, given: Any, time: int | None) -> Event | None:
    """A call; None without a name. Arguments that are still text, because they stream, are parsed if they can be."""
    if not name:
        return None
    tool = own_tool(name)
    if isinstance(given, str):
        given = parsed_arguments(given) if given else {}
    elif given is not None and not isinstance(given, dict):
        given = {RAW: str(given)}
    original = name if name != tool else None
    event = reader.event(key, EventType.TOOL_CALL, "", time, tool=tool, arguments=given or {})
    event.original_tool, event.call_id = original, call_id or None
    return event


def answered(status: str, output: Any, error: Any) -> tuple[str, bool] | None:
    """Text of a response and whether the call failed; None while it runs."""
    if status == "error":
        said = error if isinstance(error, str) else text(mapping(error), "message")
        return said or (output if isinstance(output, str) else ""), True
    if status in ("pending", "running", "streaming") or not isinstance(output, str):
        return ("", False) if status == "completed" else None
    return output, False


def tool_response(
    reader: OpenCodeReader, call: Event, said: str, error: bool, metadata: dict[str, Any], time: int | None
) -> Event:
    """The response to a call, with the exit code and the paths that only the result states."""
    event = reader.event(f"{call.key}:out", EventType.TOOL_RESPONSE, said, time or call.time, tool=call.tool)
    event.original_tool, event.call_id = call.original_tool, call.call_id
    code = metadata.get("exit")
    if isinstance(code, int) and not isinstance(code, bool):
        event.exit_code = code
    event.is_error = error or bool(event.exit_code)
    extra = {name: metadata[name] for name in _FACTS if metadata.get(name)}
    paths = _paths(metadata)
    event.extra = extra | ({"paths": paths} if paths else {}) or None
    return event


def _paths(metadata: dict[str, Any]) -> list[str]:
    found = [text(metadata, "filepath"), text(mapping(metadata.get("filediff")), "file")]
    found += [text(mapping(one), "filePath") for one in items(metadata.get("files"))]
    return list(dict.fromkeys(filter(None, found)))


def _patch(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    paths = [path for path in items(data.get("files")) if isinstance(path, str)]
    event = reader.event(id, EventType.SYSTEM, "\n".join(paths), reader.created())
    event.extra = {"paths": paths, "hash": data.get("hash")}
    return [event], None


def _subtask(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    named = {name: data[name] for name in ("command", "agent", "description") if text(data, name)}
    return [reader.ask(id, text(data, "prompt"), extra=named or None)], None


def _retry(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    time = time_ms(mapping(data.get("time")).get("created")) or reader.created()
    event = reader.event(id, EventType.RUNTIME, steps.error_text(mapping(data.get("error"))), time)
    event.extra = {"attempt": data.get("attempt")}
    return [event], None


def _compaction(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    """The request for a compaction; the summary follows as a message of its own."""
    told = {name: data[name] for name in ("auto", "overflow", "tail_start_id") if data.get(name) is not None}
    return [reader.event(id, EventType.RUNTIME, "", reader.created(), extra={"compaction": told})], None


def _reason(reason: str) -> Callable[[OpenCodeReader, str, dict[str, Any]], tuple[Outcome, Any]]:
    return lambda reader, id, data: (reason, None)


def _start(reader: OpenCodeReader, data: dict[str, Any]) -> int | None:
    start = time_ms(mapping(data.get("time")).get("start"))
    return start if start is not None else reader.created()


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


Handler = Callable[["OpenCodeReader", str, dict[str, Any]], "tuple[list[Item] | str | None, Any]"]

HANDLERS: dict[str, Handler] = {
    "text": _text,
    "reasoning": _reasoning,
    "file": _file,
    "tool": _tool,
    "patch": _patch,
    "subtask": _subtask,
    "retry": _retry,
    "compaction": _compaction,
    "agent": _reason("names an agent that the prompt mentions"),
    "step-start": _reason("marks the start of a step"),
    "step-finish": _reason("repeats what its message says of the step"),
    "snapshot": _reason("names a snapshot of the tree"),
}
