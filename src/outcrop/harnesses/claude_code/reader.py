"""The fold over the records of one Claude Code transcript: which events, amendments and facts each record gives.

One API message is written as several records, one a content block, with the same message id; results, hooks and
progress stand between them. Every key is the record's uuid and the block's place, so history that was copied into
another file keeps its keys. State is bounded: what a finished message or an answered call needed is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from outcrop.harnesses import toolnames
from outcrop.harnesses.claude_code.fold import (
    CALLS,
    CHILDREN,
    MESSAGES,
    SPLIT,
    SUMMARIES,
    Envelope,
    Fold,
    forget,
    string,
)
from outcrop.harnesses.claude_code.parts import (
    MODEL_STOPS,
    SILENT_ATTACHMENTS,
    TOLD_ATTACHMENTS,
    attachment_text,
    exit_code,
    is_denied,
    result_extra,
    system_text,
    usage_of,
)
from outcrop.harnesses.claude_code.prompts import Prompt, Said, inner_text, is_local, recognise
from outcrop.harnesses.content import content_text, persisted_output
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, Amend, End, Event, EventType, Fact, Item, Parsed

_TITLES = {"custom-title": ("customTitle", "title.user"), "ai-title": ("aiTitle", "title.generated")}
_QUIET = {
    "file-history-snapshot": "names of backup files",
    "file-history-delta": "names of backup files",
    "last-prompt": "repeats the prompt",
    "mode": "a setting",
    "permission-mode": "a setting",
    "agent-color": "a setting",
    "agent-setting": "a setting",
    "bridge-session": "a setting",
    "atis-latch": "a setting",
    "speculation-accept": "a setting",
    "queue-status": "a setting",
}
_KEPT = frozenset({"tag", "frame-link", "relocated", "worktree-state", "content-replacement", "attribution-snapshot"})
_PROGRESS = {"agent_progress": "copied from the agent's own records"}
_RUNTIME = frozenset({"api_error", "turn_duration", "stop_hook_summary"})
_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_ATTACHED = frozenset({"text", "image", "document"})
_SYSTEM_FIELDS = ("durationMs", "compactMetadata", "microcompactMetadata", "retryAttempt", "maxRetries", "url")


class ClaudeReader(Fold):
    """The `Reader` of a transcript or of an agent's file."""

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind = record.get("type")
        uuid = string(record.get("uuid"))
        if kind == "progress":
            return self._progress(record, uuid)
        if isinstance(kind, str) and kind in _QUIET:
            return Parsed(kind, reason=_QUIET[kind])
        items: list[Item] = []
        self._identify(record, items)
        envelope = self._envelope(record, uuid, items)
        if uuid is not None:
            self._remember(uuid, items)
        if kind == "assistant":
            parsed = self._assistant(record, envelope)
        elif kind == "user":
            parsed = self._user(record, envelope)
        elif kind == "system":
            parsed = self._system(record, envelope)
        elif kind == "attachment":
            parsed = self._attachment(record, envelope)
        elif isinstance(kind, str):
            parsed = self._other(record, envelope, kind)
        else:
            parsed = self._unknown(record, envelope, "no type")
        if items:
            parsed.items = [*items, *parsed.items]
            parsed.reason = None
        return parsed

    # --- the model's messages

    def _assistant(self, record: dict[str, Any], envelope: Envelope) -> Parsed:
        message = record.get("message")
        if not isinstance(message, dict):
            return self._unknown(record, envelope, "assistant")
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list) and blocks is not None:
            return self._unknown(record, envelope, "assistant")
        model = string(message.get("model"))
        if model == "<synthetic>" or record.get("isApiErrorMessage") is True:
            return self._synthetic(record, envelope, blocks or [])
        self._error = None
        if model is not None:
            self._models[envelope.session or ""] = model
            forget(self._models, CHILDREN)
        group = self._message(message)
        items: list[Item] = list(self._superseded(record.get("supersedesUuids"), envelope))
        first = len(items)
        for index, block in enumerate(blocks or ()):
            item = self._block(block, index, envelope, group)
            if item is not None:
                items.append(item)
        if len(blocks or ()) > 1 and envelope.uuid is not None:
            self._split[envelope.uuid] = len(blocks or ())
            forget(self._split, SPLIT)
        for item in items[first:]:
            if isinstance(item, Event):
                item.model = item.generator = model
                item.partial = record.get("isAbortedMidStream") is True
        stop = string(message.get("stop_reason"))
        if stop in MODEL_STOPS and not group["calls"]:
            self._final(envelope, group, items, first, stop)
        self._usage(message, envelope, group, items, first)
        return Parsed("assistant", items, None if items else "an empty block")

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        """What is remembered of the API message that a record belongs to."""
        name = string(message.get("id"))
        group = self._messages.get(name) if name is not None else None
        if group is None:
            group = {"texts": [], "calls": False, "final": False, "usage": None, "key": None}
            if name is not None:
                self._messages[name] = group
                forget(self._messages, MESSAGES)
        return group

    def _block(self, block: Any, index: int, envelope: Envelope, group: dict[str, Any]) -> Item | None:
        kind = string(block.get("type")) if isinstance(block, dict) else None
        if kind == "text" or kind == "thinking":
            text = block.get(kind)
            if not isinstance(text, str) or not text.strip():
                if kind == "text" or not block.get("signature"):
                    return None
                return self._sealed(block["signature"], index, envelope)
            if kind == "text":
                return self._visible(text, index, EventType.ASSISTANT_RESPONSE, envelope, group)
            return self._visible(text, index, EventType.REASONING, envelope, group)
        if kind == "redacted_thinking":
            return self._sealed(block.get("data"), index, envelope)
        if kind == "tool_use" or kind in _SERVER_CALLS:
            if kind == "tool_use":
                group["calls"] = True
            return self._call(block, index, envelope)
        if kind is not None and kind.endswith("_tool_result"):
            return self._result(block, index, envelope, None)
        event = self._event(envelope, index, EventType.UNKNOWN, "", block)
        if kind == "fallback":
            event.type, event.text = EventType.SYSTEM, "the model fell back to another one"
        event.raw = block
        return event

    def _sealed(self, payload: Any, index: int, envelope: Envelope) -> Event:
        """Reasoning that is only there as ciphertext: opening it gives that payload."""
        event = self._event(envelope, index, EventType.REASONING, ENCRYPTED_PLACEHOLDER)
        event.extra = {"encrypted_content": payload} if payload else None
        return event

    def _visible(self, text: str, index: int, kind: EventType, envelope: Envelope, group: dict[str, Any]) -> Item:
        """A text block, or the amendment of the shorter one that it repeats: some versions write snapshots."""
        event = self._event(envelope, index, kind, text)
        for seen in group["texts"]:
            key, place, length, digest = seen
            if place != [kind.value, index] or key == event.key or len(text) < length:
                continue
            if text_digest(text[:length]) == digest:
                if group["final"] and len(text) > length:
                    continue
                seen[2:] = len(text), text_digest(text)
                return Amend(key, {"text": text}, envelope.session)
        if not any(seen[0] == event.key for seen in group["texts"]):
            group["texts"].append([event.key, [kind.value, index], len(text), text_digest(text)])
        return event

    def _call(self, block: dict[str, Any], index: int, envelope: Envelope) -> Event | None:
        name, call = string(block.get("name")) or "unknown", string(block.get("id"))
        event = self._event(envelope, index, EventType.TOOL_CALL, "", ["call", name, call, block.get("input")])
        event.tool, event.call_id, event.arguments = toolnames.canonical(name), call, block.get("input")
        event.original_tool = name if name != event.tool else None
        if call is not None:
            if call in self._calls and self._calls[call][2] != event.key:
                return None  # a longer snapshot of the message repeats its calls
            self._calls[call] = [event.tool, event.original_tool, event.key]
            forget(self._calls, CALLS)
        return event

    def _final(
        self, envelope: Envelope, group: dict[str, Any], items: list[Item], first: int, stop: str | None
    ) -> None:
        group["final"] = True
        last = items[-1] if len(items) > first else None
        if isinstance(last, Event):
            last.ends = End.FINAL
        elif isinstance(last, Amend):
            last.changes["ends"] = End.FINAL
        else:
            event = self._event(envelope, 0, EventType.RUNTIME, f"stopped: {stop}")
            event.ends = End.FINAL
            items.append(event)

    def _usage(
        self, message: dict[str, Any], envelope: Envelope, group: dict[str, Any], items: list[Item], first: int
    ) -> None:
        """Counted once a message, on its first event; the last record has the true numbers."""
        usage = usage_of(message)
        if usage is None or usage == group["usage"]:
            return
        if group["key"] is None:
            event = next((item for item in items[first:] if isinstance(item, Event)), None)
            if event is None:
                return
            event.extra = {**(event.extra or {}), "usage": usage}
            group["key"] = event.key
        elif any(isinstance(item, Event) and item.key == group["key"] for item in items[first:]):
            return
        else:
            items.append(Amend(group["key"], {"extra": {"usage": usage}}, envelope.session))
        group["usage"] = usage

    def _superseded(self, uuids: Any, envelope: Envelope) -> Iterator[Item]:
        for uuid in uuids if isinstance(uuids, list) else ():
            if isinstance(uuid, str):
                for index in range(self._split.get(uuid, 1)):
                    yield Amend(f"{uuid}:{index}", {"superseded": True}, envelope.session)

    def _synthetic(self, record: dict[str, Any], envelope: Envelope, blocks: list[Any]) -> Parsed:
        """A text that the program wrote in the model's place: no answer, no tokens, no model."""
        text = content_text(blocks)
        event = self._event(envelope, 0, EventType.RUNTIME, text)
        event.generator = self._models.get(envelope.session or "")
        if record.get("isApiErrorMessage") is True or text.startswith("API Error"):
            self._error = [envelope.session, event.key]
        return Parsed("assistant/synthetic", [event])

    # --- the user's records

    def _user(self, record: dict[str, Any], envelope: Envelope) -> Parsed:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            self._queue.heard(content)
            content = [{"type": "text", "text": content}]
        elif content is None and isinstance(message, dict):
            return Parsed("user", reason="an empty message")
        if not isinstance(content, list):
            return self._unknown(record, envelope, "user")
        items: list[Item] = []
        said: list[tuple[int, Any]] = []
        for index, block in enumerate(content):
            kind = string(block.get("type")) if isinstance(block, dict) else None
            if kind == "tool_result":
                items.append(self._result(block, index, envelope, record.get("toolUseResult")))
            elif kind in _ATTACHED:
                said.append((index, block))
            else:
                event = self._event(envelope, index, EventType.UNKNOWN, "", block)
                event.raw = block
                items.append(event)
        if said:
            items += self._said(record, envelope, said, items)
        return Parsed("user", items, None if items else "an empty message")

    def _said(
        self, record: dict[str, Any], envelope: Envelope, said: list[tuple[int, Any]], results: list[Item]
    ) -> list[Item]:
        """The texts and pictures of a user record: one prompt, or what the harness put in its place."""
        first = said[0][0]
        if record.get("isCompactSummary") is True:
            return [self._event(envelope, first, EventType.COMPACTION, content_text([block for _, block in said]))]
        if record.get("isMeta") is True or record.get("isVisibleInTranscriptOnly") is True:
            text = content_text([block for _, block in said])
            if text and recognise(text).said is Said.CAVEAT:
                self._caveat = envelope.uuid
            return [self._event(envelope, first, EventType.SYSTEM, text)] if text.strip() else []
        origin = record.get("origin")
        if isinstance(origin, dict) and origin.get("kind") not in (None, "human", "channel"):
            return [self._event(envelope, first, EventType.SYSTEM, content_text([block for _, block in said]))]
        items: list[Item] = []
        typed: list[str] = []
        context: list[str] = []
        at = first
        for index, block in said:
            text = content_text([block])
            prompt = recognise(text) if block.get("type") == "text" else Prompt(Said.TYPED, text)
            if prompt.context:
                context.append(prompt.context)
            if prompt.said is Said.TYPED:
                if prompt.text.strip():
                    at = index if not typed else at
                    typed.append(prompt.text)
            elif prompt.said is Said.INJECTED:
                context.append(prompt.text)
            else:
                items += self._recognised(record, envelope, index, prompt, bool(results))
        if typed:
            items += self._prompt(envelope, at, "\n".join(typed), opens=not results)
        elif context and not items and not results:
            return [self._event(envelope, first, EventType.SYSTEM, "\n".join(context))]
        bearer = (items or results)[-1] if context else None
        if isinstance(bearer, Event):
            bearer.extra = {**(bearer.extra or {}), "context": "\n".join(context)}
        return items

    def _prompt(self, envelope: Envelope, index: int, text: str, opens: bool) -> list[Item]:
        """A prompt. Coming by itself it shows that the agent had gone idle, after an API error too."""
        items: list[Item] = []
        event = self._event(envelope, index, EventType.USER_INPUT, text)
        if opens:
            if self._error is not None and self._error[0] == envelope.session:
                items.append(Amend(self._error[1], {"ends": End.CRASHED}, envelope.session))
            self._error = None
            event.opens = event.settles = True
            if envelope.session is None:
                self._opened = True
        return [*items, event]

    def _recognised(
        self, record: dict[str, Any], envelope: Envelope, index: int, prompt: Prompt, inside: bool
    ) -> list[Item]:
        said = prompt.said
        if said is Said.COMMAND:
            # Claude Code announces a command that it answers by itself with a caveat, its parent record.
            local = is_local(prompt.text) or (self._caveat is not None and record.get("parentUuid") == self._caveat)
            if not local:
                return self._prompt(envelope, index, prompt.text, opens=not inside)
            return [self._event(envelope, index, EventType.SYSTEM, prompt.text)]
        if said is Said.TEAMMATE and not self._opened and envelope.session is None:
            return self._prompt(envelope, index, prompt.text, opens=True)
        if said is Said.SUMMARY:
            return [self._event(envelope, index, EventType.COMPACTION, prompt.text)]
        if said in (Said.INTERRUPT, Said.STOPPED):
            event = self._event(envelope, index, EventType.RUNTIME, prompt.text)
            event.ends = End.INTERRUPTED if said is Said.INTERRUPT else End.STOPPED
            self._error = None
            return [event]
        if said is Said.SHELL:
            event = self._event(envelope, index, EventType.TOOL_CALL, "", ["shell", prompt.text])
            event.arguments = {"command": prompt.text}
            self._shell = event.key
        elif said is Said.SHELL_OUTPUT:
            event = self._event(envelope, index, EventType.TOOL_RESPONSE, prompt.text)
        else:
            if said is Said.CAVEAT:
                self._caveat = envelope.uuid
            return [self._event(envelope, index, EventType.SYSTEM, prompt.text)]
        event.tool, event.call_id, event.by_user = "Bash", self._shell, True
        return [event]

    def _result(self, block: dict[str, Any], index: int, envelope: Envelope, result: Any) -> Event:
        call = string(block.get("tool_use_id"))
        known = self._calls.pop(call, None) if call is not None else None
        tool = known[0] if known else None
        text = content_text(block.get("content"))
        extra = result_extra(result)
        failed = block.get("is_error") is True or text.startswith("<tool_use_error>")
        code = exit_code(text, tool, result, failed)
        if text.startswith("<persisted-output>"):
            text = self._spilled(text, result)
        event = self._event(envelope, index, EventType.TOOL_RESPONSE, text, ["result", call, text])
        event.tool, event.original_tool, event.call_id = tool, known[1] if known else None, call
        event.exit_code, event.is_error = code, failed or bool(code)
        event.generator = self._models.get(envelope.session or "")
        if is_denied(text):
            extra = {**(extra or {}), "denied": True}
        event.extra = extra
        return event

    def _spilled(self, text: str, result: Any) -> str:
        """An output that was too large for the transcript, from the session's own folder alone."""
        identity = self._identity
        outputs = identity.outputs
        if outputs is None and self._parent is not None:
            outputs = str(PurePath(identity.folder, self._parent, "tool-results"))
        path = string(result.get("persistedOutputPath")) if isinstance(result, dict) else None
        whole = persisted_output(text, self._side, outputs, path)
        stdout = result.get("stdout") if isinstance(result, dict) else None
        return stdout if whole is text and isinstance(stdout, str) and len(stdout) > len(text) else whole

    # --- everything else

    def _system(self, record: dict[str, Any], envelope: Envelope) -> Parsed:
        subtype = string(record.get("subtype")) or "notice"
        kind = f"system/{subtype}"
        text = system_text(record, subtype)
        if subtype == "local_command":
            prompt = recognise(text)
            text = prompt.text if prompt.said in (Said.COMMAND, Said.OUTPUT) else inner_text(text)
        runtime = EventType.RUNTIME if subtype in _RUNTIME else EventType.SYSTEM
        event = self._event(envelope, 0, runtime, text, [subtype, text])
        extra = {name: record[name] for name in _SYSTEM_FIELDS if record.get(name)}
        event.extra = extra or None
        if subtype == "turn_duration" or (subtype == "stop_hook_summary" and not record.get("hookErrors")):
            # A hook that reports an error may have sent the model on; what comes next will tell.
            event.ends = self._end(record, envelope)
        elif subtype == "api_error" and _exhausted(record):
            self._error = [envelope.session, event.key]
        return Parsed(kind, [event, *self._superseded(record.get("retractedMessageUuids"), envelope)])

    def _end(self, record: dict[str, Any], envelope: Envelope) -> End:
        if self._error is not None and self._error[0] == envelope.session:
            return End.CRASHED
        return End.STOPPED if record.get("preventedContinuation") is True else End.FINAL

    def _attachment(self, record: dict[str, Any], envelope: Envelope) -> Parsed:
        attachment = record.get("attachment")
        subtype = string(attachment.get("type")) if isinstance(attachment, dict) else None
        if not isinstance(attachment, dict) or subtype is None:
            return self._unknown(record, envelope, "attachment")
        kind = f"attachment/{subtype}"
        if subtype == "queued_command":
            text = content_text(attachment.get("prompt"))
            prompt = recognise(text)
            typed = attachment.get("commandMode") != "task-notification" and prompt.said in (Said.TYPED, Said.COMMAND)
            if self._queue.repeats(text):
                return Parsed(kind, reason="repeats the queued prompt")
            event = self._event(envelope, 0, EventType.USER_INPUT if typed else EventType.SYSTEM, prompt.text)
            return Parsed(kind, [event] if text.strip() else (), None if text.strip() else "an empty message")
        if subtype in SILENT_ATTACHMENTS:
            return Parsed(kind, reason="housekeeping of the harness", keep=attachment)
        if subtype not in TOLD_ATTACHMENTS:
            return self._unknown(record, envelope, kind)
        event = self._event(envelope, 0, EventType.SYSTEM, attachment_text(attachment))
        filename = string(attachment.get("filename"))
        event.extra = {"attachment": subtype, "filename": filename} if filename else {"attachment": subtype}
        return Parsed(kind, [event])

    def _progress(self, record: dict[str, Any], uuid: str | None) -> Parsed:
        data = record.get("data")
        subtype = string(data.get("type")) if isinstance(data, dict) else None
        if uuid is not None:
            self._last, self._counts = uuid, {}
            if record.get("isSidechain") is True and self._identity.agent is None:
                self._chain(record, uuid)
        return Parsed(f"progress/{subtype}", reason=_PROGRESS.get(subtype or "", "progress of a running tool"))

    def _other(self, record: dict[str, Any], envelope: Envelope, kind: str) -> Parsed:
        if kind in _TITLES:
            field, fact = _TITLES[kind]
            title = string(record.get(field))
            return Parsed(kind, [Fact(fact, title)]) if title else Parsed(kind, reason="an empty title")
        if kind == "agent-name":
            name = string(record.get("agentName"))
            return Parsed(kind, [Fact("agent", name)]) if name else Parsed(kind, reason="an empty name")
        if kind == "summary":
            return self._summary(record)
        if kind == "queue-operation":
            operation = string(record.get("operation")) or "operation"
            text = content_text(record.get("content"))
            event = self._event(envelope, 0, EventType.RUNTIME, text or operation, [operation, text])
            event.extra = {"operation": operation}
            items: list[Item] = [event]
            if (given := self._queue.take(operation, text)) is not None:
                items.append(self._event(envelope, 0, EventType.USER_INPUT, recognise(given).text, ["given", given]))
            return Parsed(f"{kind}/{operation}", items)
        if kind == "pr-link":
            text = " ".join(str(record[name]) for name in ("prRepository", "prNumber", "prUrl") if record.get(name))
            return Parsed(kind, [self._event(envelope, 0, EventType.SYSTEM, f"pull request {text}")])
        if kind in ("tool_use", "tool_result") and isinstance(record.get("message"), (dict, type(None))):
            return self._ancient(record, envelope, kind)
        if kind in _KEPT:
            return Parsed(kind, reason="a note of the harness", keep=record)
        return self._unknown(record, envelope, kind)

    def _ancient(self, record: dict[str, Any], envelope: Envelope, kind: str) -> Parsed:
        """Calls and results that early versions wrote as records of their own."""
        if kind == "tool_use":
            block = {"name": record.get("name") or record.get("tool_name"), "id": record.get("id")}
            block["input"] = record.get("input") if "input" in record else record.get("tool_input")
            call = self._call(block, 0, envelope)
            return Parsed(kind, [call] if call else (), None if call else "repeats a call")
        content = record.get("content") if "content" in record else record.get("tool_output")
        block = {"tool_use_id": record.get("tool_use_id"), "content": content, "is_error": record.get("is_error")}
        return Parsed(kind, [self._result(block, 0, envelope, record.get("toolUseResult"))])

    def _summary(self, record: dict[str, Any]) -> Parsed:
        """A title of the session that holds its leaf, which is often another one than this file's."""
        title, leaf = string(record.get("summary")), string(record.get("leafUuid"))
        if title is None or leaf is None:
            return Parsed("summary", reason="an empty title")
        if leaf[:8] in self._recent:
            return Parsed("summary", [Fact("title.summary", title)])
        self._summaries[leaf] = title[:400]
        forget(self._summaries, SUMMARIES)
        return Parsed("summary", reason="title of a record that is not here yet")

    def _unknown(self, record: dict[str, Any], envelope: Envelope, kind: str) -> Parsed:
        meaning = {name: value for name, value in record.items() if name not in ("timestamp", "cwd")}
        event = self._event(envelope, 0, EventType.UNKNOWN, "", meaning)
        event.raw = record
        return Parsed(kind, [event])


def _exhausted(record: dict[str, Any]) -> bool:
    attempt, most = record.get("retryAttempt"), record.get("maxRetries")
    return isinstance(attempt, int) and isinstance(most, int) and attempt >= most
