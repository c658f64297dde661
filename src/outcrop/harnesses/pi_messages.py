"""Messages of pi and its relatives by role: what a person, the model or a tool said, and how a turn ends.

A message stands whole in one entry; its blocks give events in their order. Aborts and failures are texts of the
program, not answers.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.content import content_text as plain_text
from outcrop.harnesses.content import parsed_arguments
from outcrop.harnesses.json_values import objects, string
from outcrop.harnesses.outcomes import Outcome
from outcrop.harnesses.pi_tree import Handler, PiReader, tool_calls
from outcrop.harnesses.pi_values import content_text, exit_code, phase, result_paths, some, usage
from outcrop.harnesses.toolnames import canonical
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, Amend, End, Event, EventType, Item

SKIPPED = "Skipped due to queued user message."
"""What a tool answers that never ran because a prompt was waiting: that prompt steers the running turn."""

_FINAL = ("stop", "length")


def prompt(reader: PiReader, text: str, opens: bool = True, extra: dict[str, Any] | None = None) -> Event:
    """A user input: it opens a turn, or steers the one that runs."""
    m = reader.memory
    opens = opens or m.turn is None
    settles = opens and m.silent
    if opens:
        reader.enter(reader.opening())
        m.open = True
    m.steering = False
    return reader.event(EventType.USER_INPUT, text, opens=opens, settles=settles, extra=extra)


def _user(reader: PiReader, p: dict[str, Any]) -> Outcome:
    m = reader.memory
    text = content_text(p.get("content"))
    if not text.strip():
        return "an empty message" if isinstance(p.get("content"), (str, list)) else None
    if p.get("synthetic") is True:
        return [reader.event(EventType.SYSTEM, text)]
    task, m.task = m.task, None
    if task is not None:
        if text_digest(text.strip()) == task[1]:
            return "repeats the task"
        return [Amend(task[0], {"text": text})]
    return [prompt(reader, text, not (p.get("steering") is True or m.steering))]


def _assistant(reader: PiReader, p: dict[str, Any]) -> Outcome:
    m = reader.memory
    content = p.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) and content is not None:
        return None
    model = string(p, "model")
    m.model = model or m.model
    m.task, m.steering = None, False
    stop = string(p, "stopReason")
    items: list[Item] = []
    for index, block in enumerate(content or ()):
        event = _block(reader, block, index)
        if event is not None:
            event.model = model or None
            if event.type is EventType.ASSISTANT_RESPONSE and stop in ("aborted", "error"):
                event.partial = True
            items.append(event)
    m.open, m.silent = True, False
    _stopped(reader, p, stop, items, tool_calls(content))
    counts = usage(p.get("usage"))
    first = next((item for item in items if isinstance(item, Event)), None)
    if counts and first is not None:
        first.extra = {**(first.extra or {}), "usage": counts}
    return items or "an empty message"


def _stopped(reader: PiReader, p: dict[str, Any], stop: str, items: list[Item], calling: bool) -> None:
    """Why the model stopped, as far as that ends the turn."""
    m = reader.memory
    error = string(p, "errorMessage")
    if stop in ("aborted", "error"):
        ends = End.INTERRUPTED if stop == "aborted" else End.CRASHED
        text = error or ("the request was aborted" if stop == "aborted" else "the request failed")
        items.append(reader.event(EventType.RUNTIME, text, "end", ends=ends))
        m.open = False
        return
    if error:
        items.append(reader.event(EventType.RUNTIME, error, "error"))
    if stop in _FINAL and not calling:
        last = items[-1] if items else None
        if isinstance(last, Event) and last.type is EventType.ASSISTANT_RESPONSE and not last.partial:
            last.ends = End.FINAL
        else:
            items.append(reader.event(EventType.RUNTIME, f"stopped: {stop}", "end", ends=End.FINAL))
        m.open = False
    elif stop != "toolUse":
        m.silent = True


def _block(reader: PiReader, block: Any, index: int) -> Event | None:
    kind = string(block, "type")
    if kind == "text":
        return _text(reader, block, index)
    if kind == "thinking":
        return _thinking(reader, block, index)
    if kind == "redactedThinking":
        return _sealed(reader, block.get("data"), index)
    if kind == "toolCall":
        arguments = block.get("arguments")
        given = parsed_arguments(arguments) if isinstance(arguments, str) else arguments
        event = _call(reader, string(block, "name"), string(block, "id"), given, index)
        if block.get("thoughtSignature"):
            event.extra = {"encrypted_content": block["thoughtSignature"]}
        return event
    if kind == "image":
        return reader.event(EventType.ASSISTANT_RESPONSE, content_text([block]), index)
    if kind == "fallback":
        return reader.event(
            EventType.SYSTEM, "the model fell back to another one", index, extra=some(block, "from", "to")
        )
    inner = block.get("block") if kind == "anthropicServerTool" else None
    if isinstance(inner, dict) and string(inner, "type") == "server_tool_use":
        return _call(reader, string(inner, "name"), string(inner, "id"), inner.get("input"), index)
    if isinstance(inner, dict) and string(inner, "type").endswith("_tool_result"):
        text = plain_text(inner.get("content"))
        event = _response(reader, string(inner, "tool_use_id"), "", text, index)
        event.extra = None if text else some(inner, "content")
        return event
    return reader.event(EventType.UNKNOWN, "", index, raw=block)


def _text(reader: PiReader, block: dict[str, Any], index: int) -> Event | None:
    text = string(block, "text")
    if not text.strip():
        return None
    said = phase(block)
    event = reader.event(EventType.ASSISTANT_RESPONSE, text, index, extra={"phase": said} if said else None)
    event.partial = said == "commentary"
    return event


def _thinking(reader: PiReader, block: dict[str, Any], index: int) -> Event | None:
    text = string(block, "thinking")
    if block.get("redacted") is not True and text.strip():
        return reader.event(EventType.REASONING, text, index)
    payload = block.get("thinkingSignature")
    return _sealed(reader, payload, index) if payload or block.get("redacted") is True else None


def _sealed(reader: PiReader, payload: Any, index: int) -> Event:
    extra = {"encrypted_content": payload} if payload else None
    return reader.event(EventType.REASONING, ENCRYPTED_PLACEHOLDER, index, extra=extra)


def _call(reader: PiReader, name: str, call: str, arguments: Any, index: int) -> Event:
    name = name or "unknown"
    tool = canonical(name)
    original = name if name != tool else None
    if call:
        reader.remember(call, tool, original)
    return reader.event(
        EventType.TOOL_CALL, "", index, tool=tool, original_tool=original, call_id=call or None, arguments=arguments
    )


def _response(reader: PiReader, call: str, name: str, text: str, index: int | None) -> Event:
    known = reader.memory.calls.pop(call, None) if call else None
    tool = known[0] if known else canonical(name) if name else None
    original = known[1] if known else name if name and tool != name else None
    return reader.event(EventType.TOOL_RESPONSE, text, index, tool=tool, original_tool=original, call_id=call or None)


def _tool_result(reader: PiReader, p: dict[str, Any]) -> Outcome:
    call, name = string(p, "toolCallId"), string(p, "toolName")
    if not call and not name:
        return None
    text = content_text(p.get("content"))
    event = _response(reader, call, name, text, None)
    details, error = p.get("details"), p.get("isError")
    event.exit_code = exit_code(event.tool or "", text, details)
    if isinstance(error, bool):
        event.is_error = error
    elif event.exit_code is not None:
        event.is_error = event.exit_code != 0
    paths = result_paths(details)
    event.extra = {"paths": paths} if paths else None
    reader.memory.steering = text == SKIPPED
    if details not in (None, {}, []):
        reader.keep = {"details": details}
    return [event]


def _execution(reader: PiReader, p: dict[str, Any], tool: str, given: str) -> Outcome:
    """What the user ran by itself: a command behind `!`, or code."""
    if not string(p, given):
        return None
    code = p.get("exitCode")
    exit_code = code if type(code) is int else None
    cancelled = p.get("cancelled") is True
    call = reader.event(
        EventType.TOOL_CALL, "", 0, tool=tool, call_id=reader.base, arguments={given: p[given]}, by_user=True
    )
    call.extra = some(p, "excludeFromContext")
    response = reader.event(
        EventType.TOOL_RESPONSE, string(p, "output"), 1, tool=tool, call_id=reader.base, by_user=True
    )
    response.exit_code = exit_code
    response.is_error = True if cancelled else None if exit_code is None else exit_code != 0
    response.extra = some(p, "cancelled", "truncated", "fullOutputPath")
    return [call, response]


def _bash(reader: PiReader, p: dict[str, Any]) -> Outcome:
    return _execution(reader, p, "bash", "command")


def _python(reader: PiReader, p: dict[str, Any]) -> Outcome:
    return _execution(reader, p, "python", "code")


def injected(reader: PiReader, p: dict[str, Any]) -> Outcome:
    """Text that the program or an extension of it put into the conversation."""
    if not isinstance(p.get("content"), (str, list)):
        return None
    return [reader.event(EventType.SYSTEM, content_text(p["content"]), extra=some(p, "customType", "display"))]


def _mention(reader: PiReader, p: dict[str, Any]) -> Outcome:
    files = objects(p.get("files"))
    paths = [path for path in (string(file, "path") for file in files) if path]
    if not paths:
        return None
    reader.keep = {"files": files}
    return [reader.event(EventType.SYSTEM, "\n".join(paths), extra={"paths": paths})]


def _branch_summary(reader: PiReader, p: dict[str, Any]) -> Outcome:
    return summary(reader, p, EventType.SYSTEM)


def _compaction_summary(reader: PiReader, p: dict[str, Any]) -> Outcome:
    return summary(reader, p, EventType.COMPACTION)


def summary(reader: PiReader, p: dict[str, Any], kind: EventType) -> Outcome:
    """A summary that stands in for history: of a branch that was left, or of a context that was replaced."""
    text = string(p, "summary")
    if not text and kind is EventType.SYSTEM:
        return "an empty summary"
    counts = usage(p.get("usage"))
    extra = some(p, "tokensBefore", "tokensAfter", "fromId", "method", "shortSummary", "warning") or {}
    extra |= {"usage": counts} if counts else {}
    # The messages of `retainedTail` stand before the compaction already.
    reader.keep = some(p, "details", "preserveData", "customInstructions", "harnessDigest")
    return [reader.event(kind, text, extra=extra or None)]


ROLES: dict[str, Handler] = {
    "user": _user,
    "assistant": _assistant,
    "toolResult": _tool_result,
    "bashExecution": _bash,
    "pythonExecution": _python,
    "custom": injected,
    "hookMessage": injected,
    "developer": injected,
    "system": injected,
    "fileMention": _mention,
    "branchSummary": _branch_summary,
    "compactionSummary": _compaction_summary,
}
