"""The reader of one chat session, from the records that `records` makes of it. It always folds from the beginning.

A request is a turn. Its own id names what belongs to it: texts and thoughts by their number in it, calls by their id.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from urllib.parse import unquote, urlsplit

from outcrop.calls import RAW
from outcrop.harnesses import jsonl, toolnames
from outcrop.harnesses.copilot_vscode.records import local_path, metadata, plain, prompt_of
from outcrop.harnesses.moments import written_ms
from outcrop.ids import text_digest
from outcrop.model import End, Event, EventType, Fact, Item, Parsed

_COMPLETE, _CANCELLED, _FAILED = 1, 2, 3
"""States of an answer; 0 is pending, 4 waits for the user."""
_DENIED = 0
_NOT_SHOWN = "shown by the editor alone"


class ChatReader:
    """Reads one session. `hint` is the file's name, `folder` the workspace's folder."""

    def __init__(self, hint: str | None, folder: str | None) -> None:
        self._hint = hint
        self._native: str | None = None
        self._cwd = folder
        self._model: str | None = None
        self._hidden = False
        self._counts: Counter[str] = Counter()

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {}

    def feed(self, record: dict[str, Any]) -> Parsed:
        shape, of, data = record.get("record"), record.get("of"), record.get("data")
        if shape == "session" and isinstance(data, dict):
            return Parsed("session", self._session(data))
        if self._native is None:
            self._native = self._hint
        if isinstance(of, str):
            if shape == "request" and isinstance(data, dict):
                return Parsed("request", [self._request(of, data)])
            if shape == "text" and isinstance(data, str):
                return self._said(of, data)
            if shape == "part":
                return self._part(of, data, record.get("call"))
            if shape == "end" and isinstance(data, dict):
                return self._end(of, data)
        return Parsed("broken", [self._unknown("", record)])

    def _session(self, data: dict[str, Any]) -> list[Item]:
        own = data.get("sessionId")
        self._native = own if isinstance(own, str) and own else self._hint
        items: list[Item] = []
        created = written_ms(data.get("creationDate"))
        extra = {name: data[name] for name in ("initialLocation", "responderUsername", "repoData") if data.get(name)}
        start = self._event("session", EventType.SYSTEM, "", extra=extra or None)
        start.time = created
        items.append(start)
        if created is not None:
            items.append(Fact("created", created))
        title = data.get("customTitle")
        if isinstance(title, str) and title.strip():
            items.append(Fact("title.generated", title))
        return items

    def _request(self, of: str, data: dict[str, Any]) -> Event:
        model = data.get("modelId")
        self._model = model if isinstance(model, str) and model else None
        self._hidden = bool(data.get("isHidden") or data.get("shouldBeRemovedOnSend"))
        extra: dict[str, Any] = {}
        for name in ("confirmation", "slashCommand", "modeInfo"):
            if data.get(name):
                extra[name] = data[name]
        agent = data.get("agent")
        if isinstance(agent, dict) and isinstance(agent.get("id"), str):
            extra["agent"] = agent["id"]
        if attached := _attachments(data.get("variableData")):
            extra["attachments"] = attached
        event = self._event(f"{of}:prompt", EventType.USER_INPUT, prompt_of(data.get("message")), extra=extra or None)
        event.time = written_ms(data.get("timestamp"))
        # A confirmation is a click on a button of the answer before: nothing new was asked.
        event.opens = event.settles = not data.get("confirmation")
        return event

    def _said(self, of: str, words: str) -> Parsed:
        if not words.strip():
            return Parsed("text", reason="nothing but white space")
        return Parsed("text", [self._made(self._numbered(f"{of}:text"), EventType.ASSISTANT_RESPONSE, words)])

    def _part(self, of: str, part: Any, call: Any) -> Parsed:
        kind = part.get("kind") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(kind, str):
            return Parsed("part", [self._unknown(of, part)])
        if kind == "toolInvocationSerialized":
            return Parsed(kind, self._tool(of, part, call if isinstance(call, dict) else {}))
        if kind == "thinking":
            words = plain(part)
            if not words.strip():
                return Parsed(kind, reason="end of a thought")
            return Parsed(kind, [self._made(self._numbered(f"{of}:thinking"), EventType.REASONING, words)])
        if kind in ("textEditGroup", "notebookEditGroup"):
            return self._edit(of, kind, part)
        if kind in ("warning", "errorDetails"):
            words = plain(part.get("content", part.get("message")))
            return Parsed(kind, [self._event(self._numbered(f"{of}:{kind}"), EventType.RUNTIME, words)])
        if kind in _NOISE:
            return Parsed(kind, reason=_NOISE[kind], keep=part if _NOISE[kind] == _NOT_SHOWN else None)
        return Parsed(kind, [self._unknown(of, part)])

    def _edit(self, of: str, kind: str, part: dict[str, Any]) -> Parsed:
        path = local_path(part.get("uri"))
        if path is None:
            return Parsed(kind, reason="edits nothing on disk", keep=part)
        event = self._made(self._numbered(f"{of}:edit"), EventType.TOOL_RESPONSE, "")
        event.tool, event.extra = "edit", {"paths": [path]}
        return Parsed(kind, [event])

    def _tool(self, of: str, part: dict[str, Any], call: dict[str, Any]) -> list[Item]:
        shown, asked = part.get("toolId"), call.get("name")
        name = asked if isinstance(asked, str) and asked else shown if isinstance(shown, str) and shown else None
        native = next((id for id in (call.get("id"), part.get("toolCallId")) if isinstance(id, str) and id), None)
        key = self._numbered(f"{of}:call:{native}" if native else f"{of}:call")
        special = part.get("toolSpecificData")
        special = special if isinstance(special, dict) else {}
        details = part.get("resultDetails")
        message = plain(part.get("invocationMessage"))
        request = self._made(key, EventType.TOOL_CALL, message)
        request.arguments = _arguments(call.get("arguments"), special, details)
        if isinstance(shown, str) and shown and shown != name:
            request.extra = {"tool_id": shown}
        response = self._made(f"{key}:result", EventType.TOOL_RESPONSE, _result(call, special, details))
        state = special.get("terminalCommandState")
        code = state.get("exitCode") if isinstance(state, dict) else None
        response.exit_code = code if type(code) is int else None
        response.is_error = _failed(part, details, response.exit_code)
        if paths := _paths(details):
            response.extra = {"results": paths}
        past = plain(part.get("pastTenseMessage"))
        response.text = response.text or past
        for event in (request, response):
            event.call_id = native
            if name is not None:
                event.tool = toolnames.canonical(name)
                event.original_tool = name if event.tool != name else None
        done = part.get("isComplete") is True or response.text or response.is_error is not None
        return [request, response] if done else [request]

    def _end(self, of: str, data: dict[str, Any]) -> Parsed:
        items: list[Item] = []
        result = data.get("result")
        known = metadata(result)
        summary = known.get("summary")
        if isinstance(summary, dict) and isinstance(summary.get("text"), str) and summary["text"].strip():
            items.append(self._event(f"{of}:summary", EventType.COMPACTION, summary["text"]))
        state = data.get("modelState")
        value = state.get("value") if isinstance(state, dict) else state
        error = result.get("errorDetails") if isinstance(result, dict) else None
        error = error if isinstance(error, dict) else None
        ends: End | None = None
        if value == _CANCELLED or data.get("isCanceled") is True or (error and error.get("code") == "canceled"):
            ends = End.CANCELLED
        elif value == _FAILED or error:
            ends = End.CRASHED
        elif value == _COMPLETE or (value is None and isinstance(result, dict)):
            ends = End.FINAL
        if ends is None:
            return Parsed("end", items, None if items else "the answer has not ended")
        event = self._event(f"{of}:end", EventType.RUNTIME, plain(error.get("message")) if error else "")
        event.ends, event.time = ends, _ended(data, state, result)
        usage = {name: known[name] for name in ("promptTokens", "outputTokens") if type(known.get(name)) is int}
        extra: dict[str, Any] = {"usage": usage} if usage else {}
        if isinstance(known.get("resolvedModel"), str):
            extra["resolved_model"] = known["resolvedModel"]
        event.extra = extra or None
        return Parsed("end", [*items, event])

    def _event(self, key: str, kind: EventType, words: str, **more: Any) -> Event:
        return Event(key, kind, words, cwd=self._cwd, superseded=self._hidden, **more)

    def _made(self, key: str, kind: EventType, words: str) -> Event:
        return self._event(key, kind, words, generator=self._model)

    def _numbered(self, name: str) -> str:
        self._counts[name] += 1
        return name if self._counts[name] == 1 else f"{name}#{self._counts[name]}"

    def _unknown(self, of: str, raw: Any) -> Event:
        mark = self._numbered(f"{of}:unknown:{text_digest(json.dumps(raw, sort_keys=True, default=str))}")
        return self._event(mark, EventType.UNKNOWN, "", raw=raw)


def workspace_folder(note: str | None) -> str | None:
    """The folder that a `workspace.json` names, where it is one of this machine."""
    try:
        read = jsonl.document(note.encode("utf-8", "replace")) if note else None
        uri = read.get("folder") if isinstance(read, dict) else None
        parts = urlsplit(uri) if isinstance(uri, str) else None
    except ValueError:
        return None
    if parts is None or parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = unquote(parts.path)
    return path[1:] if path[2:3] == ":" else path or None


def _arguments(asked: Any, special: dict[str, Any], details: Any) -> Any:
    """What the model asked for; where that is not recorded, what the editor shows of it."""
    if asked is not None:
        return asked if isinstance(asked, dict) else {RAW: asked}
    line = special.get("commandLine")
    command = special.get("command")
    if isinstance(line, dict):
        command = next(
            (line[n] for n in ("userEdited", "toolEdited", "original") if isinstance(line.get(n), str)), None
        )
    if isinstance(command, str):
        return {"command": command}
    if isinstance(special.get("rawInput"), dict):
        return special["rawInput"]
    told = {
        name: special[name] for name in ("agentName", "description", "prompt") if isinstance(special.get(name), str)
    }
    if told:
        return told
    shown = details.get("input") if isinstance(details, dict) else None
    if isinstance(shown, str) and shown:
        try:
            value = jsonl.document(shown.encode("utf-8", "replace"))
        except ValueError:
            return {RAW: shown}
        return value if isinstance(value, dict) else {RAW: value}
    return None


def _result(call: dict[str, Any], special: dict[str, Any], details: Any) -> str:
    given = call.get("result")
    if isinstance(given, str) and given:
        return given
    shown = details.get("output") if isinstance(details, dict) else None
    if isinstance(shown, str):
        return shown
    if isinstance(shown, list):
        parts = [one for one in shown if isinstance(one, dict) and one.get("isText") is not False]
        return "\n".join(words for one in parts if (words := plain(one)))
    output = special.get("terminalCommandOutput")
    if isinstance(output, dict) and isinstance(output.get("text"), str):
        return str(output["text"])
    told = special.get("result")
    return told if isinstance(told, str) else ""


def _failed(part: dict[str, Any], details: Any, exit_code: int | None) -> bool | None:
    confirmed = part.get("isConfirmed")
    if confirmed is False or (isinstance(confirmed, dict) and confirmed.get("type") == _DENIED):
        return True
    if exit_code is not None:
        return exit_code != 0
    told = details.get("isError") if isinstance(details, dict) else None
    return told if isinstance(told, bool) else None


def _paths(details: Any) -> list[str]:
    """Files that a result lists: results of a search, so no touches."""
    listed = details if isinstance(details, list) else ()
    uris = [one.get("uri", one) for one in listed if isinstance(one, dict)]
    return [path for uri in uris if (path := local_path(uri))]


def _attachments(variables: Any) -> list[str]:
    listed = variables.get("variables") if isinstance(variables, dict) else None
    found = []
    for one in listed if isinstance(listed, list) else ():
        value = one.get("value") if isinstance(one, dict) else None
        path = local_path(value.get("uri", value)) if isinstance(value, dict) else None
        name = one.get("name") if isinstance(one, dict) else None
        if path or isinstance(name, str):
            found.append(path or str(name))
    return found


def _ended(data: dict[str, Any], state: Any, result: Any) -> int | None:
    """When an answer ended: stated, or the request's time and how long it took."""
    stated = written_ms(state.get("completedAt")) if isinstance(state, dict) else None
    timings = result.get("timings") if isinstance(result, dict) else None
    took = timings.get("totalElapsed") if isinstance(timings, dict) else None
    began = written_ms(data.get("timestamp"))
    if stated is not None or began is None or type(took) is not int or not 0 <= took < 1e10:
        return stated
    return began + took


_NOISE: dict[str, str] = {
    name: reason
    for reason, names in {
        "announces a call": "prepareToolInvocation",
        "progress": "progressMessage progressTaskSerialized mcpServersStarting",
        "a mark for the editor": "undoStop codeblockUri clearToPreviousToolInvocation disabledClaudeHooks",
        _NOT_SHOWN: "command confirmation elicitationSerialized extensions externalEdit hook multiDiffData "
        "planReview pullRequest questionCarousel treeData workspaceEdit",
    }.items()
    for name in names.split()
}
