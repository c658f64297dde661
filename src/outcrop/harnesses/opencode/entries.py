"""What becomes of each entry of the newer core (`session_message`): whole messages with their content inside.

Where a session records that it went idle, everything between two such rows is one turn, steered prompts included;
where it never does, a prompt belongs to the running turn while the last step says that the loop goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outcrop.harnesses.content import content_text
from outcrop.harnesses.opencode import parts, steps
from outcrop.harnesses.opencode.parts import Handler, answered, items, thought, tool_call, tool_response
from outcrop.harnesses.opencode.records import mapping, text, time_ms
from outcrop.harnesses.outcomes import Outcome
from outcrop.model import End, EventType, Item

if TYPE_CHECKING:
    from outcrop.harnesses.opencode.reader import OpenCodeReader

_OUTCOMES = {"succeeded": End.FINAL, "failed": End.CRASHED, "interrupted": End.CANCELLED}


def _user(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    found: list[Item] = [reader.ask(id, text(data, "text"))]
    for place, file in enumerate(items(data.get("files"))):
        outcome, _ = parts.HANDLERS["file"](reader, f"{id}:file:{place}", _attached(mapping(file)))
        found += outcome if isinstance(outcome, list) else []
    if not reader.busy:
        reader.busy, reader.ended = True, False
    return found, None


def _attached(file: dict[str, Any]) -> dict[str, Any]:
    return {"mime": file.get("mime"), "filename": file.get("name") or file.get("filename"),
            "url": file.get("uri") or file.get("url"), "source": file.get("source")}  # fmt: skip


def _injected(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    event = reader.event(id, EventType.SYSTEM, text(data, "text"), reader.created())
    event.extra = {name: data[name] for name in ("name", "skill", "description") if text(data, name)} or None
    return [event], None


def _assistant(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    found: list[Item] = []
    keep: dict[str, Any] = {}
    for place, one in enumerate(items(data.get("content"))):
        block = mapping(one)
        key, kind = f"{id}:{place}", text(block, "type")
        if kind == "text":
            if text(block, "text"):
                found.append(reader.event(key, EventType.ASSISTANT_RESPONSE, text(block, "text"), reader.created()))
        elif kind == "reasoning":
            sealed = block.get("native") or block.get("providerState") or block.get("providerMetadata")
            outcome, rest = thought(reader, key, EventType.REASONING, text(block, "text"), sealed, reader.created())
            found += outcome if isinstance(outcome, list) else []
            keep |= {key: rest} if rest else {}
        elif kind == "tool":
            found += _tool(reader, key, block)
        else:
            found.append(reader.event(key, EventType.UNKNOWN, "", reader.created(), raw=one))
    error, finish = mapping(data.get("error")), text(data, "finish")
    completed = time_ms(mapping(data.get("time")).get("completed"))
    if error or completed is not None:
        event = reader.event(id, EventType.RUNTIME, steps.error_text(error), completed or reader.created())
        event.extra = steps.told(data)
        if error:
            event.ends = steps.failed(error)
        elif finish:
            event.ends = steps.finished(finish)
        reader.ended = reader.ended or event.ends is not None
        if event.ends is not None and not reader.idles:
            reader.busy = False
        found.append(event)
    return (found or "not finished yet"), keep or None


def _tool(reader: OpenCodeReader, key: str, block: dict[str, Any]) -> list[Item]:
    state, time = mapping(block.get("state")), mapping(block.get("time"))
    ran = time_ms(time.get("ran")) or time_ms(time.get("created")) or reader.created()
    call = tool_call(reader, key, text(block, "name"), text(block, "id"), state.get("input"), ran)
    if call is None:
        return [reader.event(key, EventType.UNKNOWN, "", reader.created(), raw=block)]
    said = content_text(state.get("content")) or text(state, "result")
    status = text(state, "status")
    answer = answered(status, said if status in ("completed", "error") else None, state.get("error"))
    if answer is None:
        return [call]
    metadata = mapping(state.get("structured")) or mapping(state.get("metadata"))
    return [call, tool_response(reader, call, answer[0], answer[1], metadata, time_ms(time.get("completed")))]


def _shell(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    command = {"command": text(data, "command")}
    given_id = text(data, "shellID") or text(data, "callID")
    call = tool_call(reader, id, "shell", given_id, command, reader.created())
    if call is None or not command["command"]:
        return None, None
    call.by_user = True
    ended = time_ms(mapping(data.get("time")).get("completed"))
    output = data.get("output")
    said = output if isinstance(output, str) else text(mapping(output), "output")
    if ended is None and not said and not isinstance(data.get("exit"), int):
        return [call], None
    response = tool_response(reader, call, said, False, {"exit": data.get("exit")}, ended)
    response.by_user = True
    response.ends = End.FINAL if reader.ended else None
    return [call, response], None


def _compaction(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    status = text(data, "status")
    extra = {"compaction": {"reason": data.get("reason"), "status": status or None}}
    if status == "failed":
        return [reader.event(id, EventType.RUNTIME, "", reader.created(), extra=extra)], None
    if status == "running" or not text(data, "summary"):
        return "not finished yet", None
    return [reader.event(id, EventType.COMPACTION, text(data, "summary"), reader.created(), extra=extra)], None


def _switched(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    extra = {name: data[name] for name in ("agent", "model", "previous", "location", "directory") if data.get(name)}
    directory = text(data, "directory") or text(mapping(data.get("location")), "directory")
    if directory:
        reader.cwd = directory
    return [reader.event(id, EventType.SYSTEM, "", reader.created(), extra=extra or None)], None


def _idle(reader: OpenCodeReader, id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
    outcome = text(data, "outcome")
    reader.busy, reader.ended = False, True
    ends = _OUTCOMES.get(outcome)
    return [reader.event(id, EventType.RUNTIME, "", reader.created(), ends=ends, extra={"outcome": outcome})], None


HANDLERS: dict[str, Handler] = {
    "user": _user,
    "synthetic": _injected,
    "system": _injected,
    "skill": _injected,
    "assistant": _assistant,
    "shell": _shell,
    "compaction": _compaction,
    "agent-switched": _switched,
    "model-switched": _switched,
    "location-switched": _switched,
    "idle": _idle,
}
