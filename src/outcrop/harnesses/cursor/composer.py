"""The fold over one conversation of Cursor's databases: heads, bubbles and the state that the conversation is in.

Keys are the bubbles' ids and the part of the bubble, so a value that changes in place replaces its events. The order
is that of the conversation's list, never that of times or keys.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.cursor.titles import title_of
from outcrop.harnesses.cursor.values import (
    arguments_of,
    folder_of,
    local_path,
    model_name,
    moment,
    parsed,
    result_of,
    rich_text,
    string,
    tool_of,
)
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Fact, Item, Parsed, Relation

_USER, _AI = (1, "user"), (2, "ai")
_RUNNING = frozenset({"", "pending", "loading", "running", "streaming", "generating", "created"})
_STOPPED = frozenset({"cancelled", "canceled", "rejected", "aborted"})
_STATUS_ENDS = {
    "completed": End.FINAL,
    "aborted": End.INTERRUPTED,
    "cancelled": End.CANCELLED,
    "error": End.CRASHED,
    "failed": End.CRASHED,
}
_HEAD_EXTRA = (
    "unifiedMode", "forceMode", "isAgentic", "agentBackend", "subtitle", "contextUsagePercent", "totalLinesAdded",
    "totalLinesRemoved",
)  # fmt: skip
_REASONS = {
    "abandoned": "a message that is no longer in the conversation",
    "missing": "a message that is not there yet",
    "broken": "a value that is no JSON",
}


class ComposerReader:
    """The `Reader` of one conversation; always folded from its beginning. `folder` is that of its workspace."""

    def __init__(self, native: str | None, folder: str | None = None) -> None:
        self._native = native
        self._cwd = folder
        self._model: str | None = None
        self._done = True
        self._dated = False
        self._ended = False

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {}

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind = string(record.get("kind")) or "record"
        if kind == "composer":
            return self._head(record)
        if kind == "chat":
            title = title_of(record.get("name"))
            return Parsed(kind, [Fact("title.generated", title)] if title else (), None if title else "no title yet")
        if kind in ("bubble", "chat-bubble"):
            return self._bubble(record)
        if kind == "status":
            return self._status(record)
        if kind in _REASONS:
            return Parsed(kind, reason=_REASONS[kind])
        event = Event(f"unknown:{text_digest(repr(sorted(record.items(), key=str)))}", EventType.UNKNOWN, raw=record)
        return Parsed(kind, [event])

    def _head(self, record: dict[str, Any]) -> Parsed:
        title, many = title_of(record.get("name")), bool(record.get("messages"))
        if not many and title is None:
            return Parsed("composer", reason="an empty conversation without a name")
        items: list[Item] = []
        if title is not None:
            items.append(Fact("title.generated", title))
        if (subtitle := string(record.get("subtitle"))) is not None:
            items.append(Fact("summary", subtitle))
        created = moment(record.get("createdAt"))
        if created is not None:
            items.append(Fact("created", created))
        version = record.get("_v")
        if isinstance(version, int):
            items.append(Fact("version", f"composer {version}"))
        origin = record.get("subagentInfo")
        parent = string(origin.get("parentComposerId")) if isinstance(origin, dict) else None
        if parent is not None:
            items += [Fact("parent", parent), Fact("relation", Relation.SUBAGENT)]
        workspace = record.get("workspaceIdentifier")
        uri = workspace.get("uri") if isinstance(workspace, dict) else None
        path = string(uri.get("fsPath")) if isinstance(uri, dict) and uri.get("scheme", "file") == "file" else None
        self._cwd = path or self._cwd
        config = record.get("modelConfig")
        self._model = model_name(config.get("modelName")) if isinstance(config, dict) else None
        self._done = string(record.get("status")) in _STATUS_ENDS
        if many:
            event = Event("composer", EventType.SYSTEM, string(record.get("unifiedMode")) or "conversation", created)
            extra = {name: record[name] for name in _HEAD_EXTRA if record.get(name) not in (None, "")}
            event.extra, event.cwd = extra or None, self._cwd
            items.append(event)
        return Parsed("composer", items)

    def _bubble(self, record: dict[str, Any]) -> Parsed:
        bubble = record.get("bubble")
        kind = bubble.get("type") if isinstance(bubble, dict) else None
        if not isinstance(bubble, dict) or isinstance(kind, bool) or kind not in (*_USER, *_AI):
            return Parsed("bubble", [self._unknown(record)])
        id = string(bubble.get("bubbleId")) or string(bubble.get("id")) or string(record.get("id"))
        if id is None:
            id = text_digest(f"{kind} {bubble.get('text')}")
        time = moment(bubble.get("createdAt")) or moment(record.get("time"))
        if time is None and self._dated and record.get("last") and not self._done:
            return Parsed("bubble", reason="a message that is still being made")
        self._dated = self._dated or time is not None
        self._ended = False if kind in _USER else self._ended
        items = self._user(bubble, id) if kind in _USER else self._agent(bubble, id)
        for item in items:
            item.time, item.cwd = time, item.cwd or self._cwd
        return Parsed("bubble", items, None if items else "an empty message")

    def _user(self, bubble: dict[str, Any], id: str) -> list[Event]:
        text = string(bubble.get("text")) or rich_text(bubble.get("richText"))
        pictures = bubble.get("images")
        number = len(pictures) if isinstance(pictures, list) else 0
        text = "\n".join([*([text] if text else []), *["[image]"] * number])
        if not text:
            return []
        event = Event(f"{id}:user", EventType.USER_INPUT, text, opens=True, settles=True)
        files = bubble.get("relevantFiles")
        named = [name for name in files if isinstance(name, str)] if isinstance(files, list) else []
        event.extra = {"files": named} if named else None
        self._model = self._model_of(bubble) or self._model
        return [event]

    def _agent(self, bubble: dict[str, Any], id: str) -> list[Event]:
        items: list[Event] = []
        self._model = self._model_of(bubble) or self._model
        items += self._thought(bubble.get("thinking"), id, bubble.get("thinkingDurationMs"))
        if text := string(bubble.get("text")) or string(bubble.get("rawText")):
            items.append(Event(f"{id}:text", EventType.ASSISTANT_RESPONSE, text))
        tool = bubble.get("toolFormerData")
        if isinstance(tool, dict) and tool:
            items += self._tool(tool, id)
        elif tool not in (None, {}):
            unknown = Event(f"{id}:unknown", EventType.UNKNOWN, raw=bubble)
            items.append(unknown)
        for item in items:
            item.generator = self._model
            if item.type is not EventType.TOOL_RESPONSE:
                item.model = self._model_of(bubble)
        if items and (usage := _usage(bubble.get("tokenCount"))):
            items[-1].extra = {**(items[-1].extra or {}), "usage": usage}
        duration = bubble.get("turnDurationMs")
        if items and isinstance(duration, (int, float)) and not isinstance(duration, bool):
            items[-1].ends, self._ended = items[-1].ends or End.FINAL, True
            items[-1].extra = {**(items[-1].extra or {}), "turn_ms": duration}
        return items

    @staticmethod
    def _model_of(bubble: dict[str, Any]) -> str | None:
        info = bubble.get("modelInfo")
        return model_name(info.get("modelName") if isinstance(info, dict) else bubble.get("modelType"))

    @staticmethod
    def _thought(thinking: Any, id: str, duration: Any) -> list[Event]:
        text = thinking.get("text") if isinstance(thinking, dict) else thinking
        sealed = string(thinking.get("signature")) if isinstance(thinking, dict) else None
        if string(text) is None and sealed is None:
            return []
        event = Event(f"{id}:thinking", EventType.REASONING, string(text) or ENCRYPTED_PLACEHOLDER)
        if string(text) is None:
            event.extra = {"encrypted_content": sealed}
        elif isinstance(duration, (int, float)):
            event.extra = {"thinking_ms": duration}
        return [event]

    def _tool(self, tool: dict[str, Any], id: str) -> list[Event]:
        name = string(tool.get("name")) or f"tool {tool.get('tool')}"
        arguments = arguments_of(tool.get("params"), tool.get("rawArgs"))
        used = tool_of(name, arguments)
        call = Event(f"{id}:call", EventType.TOOL_CALL, tool=used.name, original_tool=used.original)
        native = string(tool.get("toolCallId"))
        call.call_id = native.split("\n", 1)[0] if native else f"{id}:call"
        call.arguments = _mcp_arguments(arguments) if used.server else arguments
        call.extra = {"mcp": list(used.server)} if used.server else None
        call.cwd = folder_of(arguments)
        status = tool.get("status")
        status = status if isinstance(status, str) else ""
        has_result = any(string(tool.get(part)) or isinstance(tool.get(part), dict) for part in ("result", "error"))
        if status in _RUNNING and not (has_result and not status):
            return [call]
        told = result_of(name, tool.get("result") or None, tool.get("error") or None)
        response = Event(f"{id}:result", EventType.TOOL_RESPONSE, told.text, call_id=call.call_id)
        response.tool, response.original_tool = used.name, used.original
        response.exit_code = told.exit_code
        response.is_error = status not in ("", "completed", "success") or told.rejected or bool(told.exit_code)
        extra = {"status": status, "decision": tool.get("userDecision"), "result": told.rest}
        response.extra = {name: value for name, value in extra.items() if value} or None
        if status in _STOPPED:
            # If the agent goes on, its next activity takes this back.
            response.ends = End.CANCELLED
        return [call, response]

    def _status(self, record: dict[str, Any]) -> Parsed:
        status = string(record.get("status"))
        end = _STATUS_ENDS.get(status or "")
        if end is None:
            return Parsed("status", reason="the conversation is not known to have ended")
        if record.get("last") in _USER and end is End.FINAL:
            return Parsed("status", reason="the last prompt has no answer yet")
        if self._ended and end is End.FINAL:
            return Parsed("status", reason="the last answer says so itself")
        event = Event("status", EventType.RUNTIME, f"conversation {status}", moment(record.get("time")))
        event.ends, event.cwd = end, self._cwd
        return Parsed("status", [event])

    def _unknown(self, record: dict[str, Any]) -> Event:
        bubble = record.get("bubble")
        id = bubble.get("bubbleId") if isinstance(bubble, dict) else None
        name = id if isinstance(id, str) else text_digest(repr(bubble))
        return Event(f"{name}:unknown", EventType.UNKNOWN, raw=bubble)


def workspace_folder(text: str | None) -> str | None:
    """The folder that a workspace's database belongs to, by the text of the `workspace.json` beside it."""
    found = parsed(text)
    return local_path(found.get("folder")) if isinstance(found, dict) else None


def _mcp_arguments(arguments: Any) -> Any:
    """The arguments that an MCP tool was given, which stand one level deeper as JSON in a text."""
    tools = arguments.get("tools") if isinstance(arguments, dict) else None
    first = tools[0] if isinstance(tools, list) and tools else None
    inner = first.get("parameters") if isinstance(first, dict) else None
    value = parsed(inner)
    return value if isinstance(value, dict) else arguments


def _usage(counts: Any) -> dict[str, int] | None:
    if not isinstance(counts, dict):
        return None
    names = {"inputTokens": "input", "outputTokens": "output"}
    found = {names[name]: value for name, value in counts.items() if name in names and isinstance(value, int) and value}
    return found or None
