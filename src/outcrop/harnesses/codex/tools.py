"""Tool calls and their responses in a rollout.

A call has its id from the model; its response comes as an output item, and in some versions as an end event before
or after that. Both give one event, `out:<call id>`: the first one makes it, the second one completes it.
"""

from __future__ import annotations

import json
from typing import Any

from outcrop.harnesses.codex.fold import ITEMS, SCREEN, Fold, Handler, some
from outcrop.harnesses.codex.records import Output, arguments, output, squeezed, string, tool_name
from outcrop.harnesses.content import base64_size, content_text
from outcrop.harnesses.json_values import objects
from outcrop.harnesses.outcomes import Outcome
from outcrop.harnesses.toolnames import canonical
from outcrop.ids import text_digest
from outcrop.model import Amend, Event, EventType, Item


def _call(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    name = tool_name(p)
    if not name:
        return None
    if "input" in p and "arguments" not in p:
        given: Any = {"input": p["input"]}
    else:
        given = arguments(p.get("arguments"))
    return _tool_call(fold, p, name, given, time)


def _local_shell(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    action = p.get("action")
    given = {name: value for name, value in action.items() if name != "type"} if isinstance(action, dict) else {}
    if "working_directory" in given:
        given["workdir"] = given.pop("working_directory")
    return _tool_call(fold, p, "local_shell", given, time)


def _tool_search(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    return _tool_call(fold, p, "tool_search", arguments(p.get("arguments")), time)


def _tool_call(fold: Fold, p: dict[str, Any], name: str, given: Any, time: int | None) -> list[Item]:
    fold.act()
    call = string(p, "call_id") or string(p, "id")
    tool = canonical(name)
    original = name if name != tool else None
    if call:
        key = f"call:{fold.remember(call, tool, original)[4]}"
    else:
        key = fold.key(f"call:{text_digest(name + json.dumps(given, sort_keys=True))}")
    event = fold.event(key, EventType.TOOL_CALL, "", time, tool=tool, original_tool=original)
    event.call_id, event.arguments = call or None, given
    return [event]


def _web_search(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    """Both records of a search in the provider's own service: one call without a response."""
    fold.act()
    stream = SCREEN if p.get("type") == "web_search_end" else ITEMS
    action = p.get("action")
    given = dict(action) if isinstance(action, dict) else {}
    if not given and string(p, "query"):
        given = {"type": "search", "query": string(p, "query")}
    queries = given.get("queries")
    told = next(filter(None, (string(given, "query"), string(given, "url"), string(p, "query"))), "")
    if not told and isinstance(queries, list) and queries:
        told = str(queries[0])
    mark = f"web_search:{text_digest(squeezed(told))}"
    size = str(len(given))
    partner = fold.take(stream, mark)
    if partner is not None:
        richer = len(given) > int(partner[1])
        return [Amend(partner[0], {"arguments": given})] if richer else "mirrors a web search"
    key = fold.key(mark)
    fold.wait(stream, mark, key, size)
    event = fold.event(key, EventType.TOOL_CALL, "", time, tool="web_search", arguments=given)
    event.call_id = string(p, "call_id") or string(p, "id") or None
    return [event]


def _image(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    call = string(p, "id") or string(p, "call_id")
    if not call:
        return None
    given = {"prompt": string(p, "revised_prompt")} if string(p, "revised_prompt") else {}
    found = _tool_call(fold, p, "image_generation", given, time)
    result = string(p, "result")
    if result:
        note = f"[image of unknown type, {base64_size(result)} bytes]"
        found += _answer(fold, call, Output(note, None, p.get("status") == "failed" or None), time)
    return found


def _output(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    call = string(p, "call_id")
    if not call:
        return None
    return _answer(fold, call, output(p.get("output")), time)


def _tools_found(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    call = string(p, "call_id")
    if not call:
        return None
    names: list[str] = []
    for tool in objects(p.get("tools")):
        inner = objects(tool.get("tools"))
        names += [tool_name({"namespace": tool.get("name"), "name": one.get("name")}) for one in inner]
        names += [] if inner else [string(tool, "name")]
    fold.keep = {"tools": p.get("tools")}
    return _answer(fold, call, Output("\n".join(filter(None, names))), time)


def _answer(fold: Fold, call: str, result: Output, time: int | None) -> list[Item]:
    """The output item of a call: the response, or the rest of one that an end event has already given."""
    fold.act()
    entry = fold.memory.calls.get(call) or fold.remember(call, None, None)
    count = entry[3]
    entry[3] = count + 1
    if entry[2] and not count:
        changes: dict[str, Any] = {"text": result.text, "extra": result.extra}
        if result.exit_code is not None:
            changes["exit_code"] = result.exit_code
        if result.is_error is not None:
            changes["is_error"] = result.is_error
        return [Amend(f"out:{entry[4]}", {name: value for name, value in changes.items() if value != {}})]
    return [_response(fold, f"out:{entry[4]}:{count}" if count else f"out:{entry[4]}", call, entry, result, time)]


def _response(fold: Fold, key: str, call: str, entry: list[Any], result: Output, time: int | None) -> Event:
    event = fold.event(key, EventType.TOOL_RESPONSE, result.text, time, tool=entry[0], original_tool=entry[1])
    event.call_id, event.exit_code, event.is_error = call, result.exit_code, result.is_error
    event.extra = result.extra or None
    return event


def _ended(fold: Fold, call: str, result: Output, time: int | None) -> list[Item]:
    """An end event of a call: enriches the response where that is known, else stands in for it."""
    entry = fold.memory.calls.get(call) or fold.remember(call, None, None)
    if entry[3] or entry[2]:
        changes: dict[str, Any] = {"extra": result.extra} if result.extra else {}
        if result.exit_code is not None:
            changes["exit_code"] = result.exit_code
        if result.is_error is not None:
            changes["is_error"] = result.is_error
        return [Amend(f"out:{entry[4]}", changes)] if changes else []
    entry[2] = True
    return [_response(fold, f"out:{entry[4]}", call, entry, result, time)]


def _exec_end(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    call = string(p, "call_id")
    if not call:
        return None
    text = string(p, "aggregated_output") or "\n".join(filter(None, (string(p, "stdout"), string(p, "stderr"))))
    code = p.get("exit_code")
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
    extra = some(p, "cwd", "parsed_cmd", "duration", "status", "command", "source") or {}
    error = exit_code != 0 if exit_code is not None else None
    return _ended(fold, call, Output(text, exit_code, error, extra), time) or "mirrors a tool output"


def _patch_end(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    call = string(p, "call_id")
    if not call:
        return None
    changes = p.get("changes") if isinstance(p.get("changes"), dict) else {}
    brief: dict[str, Any] = {}
    for path, change in (changes or {}).items():
        brief[path] = some(change, "type", "move_path") if isinstance(change, dict) else None
        if isinstance(change, dict) and change.get("type") == "delete":
            fold.keep = {"changes": changes}
    success = p.get("success")
    text = "\n".join(filter(None, (string(p, "stdout"), string(p, "stderr"))))
    error = not success if isinstance(success, bool) else None
    return _ended(fold, call, Output(text, None, error, {"changes": brief}), time)


def _mcp_end(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    call = string(p, "call_id")
    if not call:
        return None
    result = p.get("result")
    extra = some(p, "duration") or {}
    told = p.get("invocation")
    if isinstance(told, dict):
        extra |= some(told, "server", "tool") or {}
    text, error = "", None
    if isinstance(result, dict) and "Err" in result:
        text, error = str(result["Err"]), True
    elif isinstance(result, dict) and isinstance(result.get("Ok"), dict):
        text = content_text(result["Ok"].get("content"))
        flag = result["Ok"].get("isError")
        error = flag if isinstance(flag, bool) else None
        structured = result["Ok"].get("structuredContent")
        if structured is not None:
            # The output item, which nearly always follows, has this as its text.
            text = json.dumps(structured, ensure_ascii=False)
    return _ended(fold, call, Output(text, None, error, extra), time) or "mirrors a tool output"


def _dynamic_end(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    call = string(p, "callId") or string(p, "call_id")
    if not call:
        return None
    success = p.get("success")
    error = not success if isinstance(success, bool) else None
    content = p.get("contentItems") or p.get("content_items")
    return _ended(fold, call, Output(content_text(content), None, error), time) or "mirrors a tool output"


def _call_facts(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    """Events that only add facts to a call: the picture's path, the agent that was started."""
    call = string(p, "call_id") or string(p, "event_id")
    if not call:
        return None
    extra = {name: value for name, value in p.items() if name not in ("type", "call_id", "event_id", "prompt")}
    entry = fold.memory.calls.get(call)
    return [Amend(f"call:{entry[4] if entry else call}", {"extra": {string(p, "type"): extra}})]


_CALL_FACTS = (
    "view_image_tool_call",
    "image_generation_end",
    "collab_agent_spawn_end",
    "collab_agent_interaction_end",
    "collab_waiting_end",
    "collab_close_end",
    "collab_resume_end",
    "sub_agent_activity",
)

HANDLERS: dict[tuple[str, str | None], Handler] = {
    ("response_item", "function_call"): _call,
    ("response_item", "custom_tool_call"): _call,
    ("response_item", "function_call_output"): _output,
    ("response_item", "custom_tool_call_output"): _output,
    ("response_item", "local_shell_call"): _local_shell,
    ("response_item", "local_shell_call_output"): _output,
    ("response_item", "web_search_call"): _web_search,
    ("response_item", "tool_search_call"): _tool_search,
    ("response_item", "tool_search_output"): _tools_found,
    ("response_item", "image_generation_call"): _image,
    ("event_msg", "exec_command_end"): _exec_end,
    ("event_msg", "patch_apply_end"): _patch_end,
    ("event_msg", "mcp_tool_call_end"): _mcp_end,
    ("event_msg", "dynamic_tool_call_response"): _dynamic_end,
    ("event_msg", "web_search_end"): _web_search,
    **{("event_msg", name): _call_facts for name in _CALL_FACTS},
}
