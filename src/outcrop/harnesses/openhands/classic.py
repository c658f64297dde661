"""Events of the older generation: an action of user or agent, or an observation of what an action caused.

Ids are numbers inside a conversation. With an action the model's own call is recorded, which says more than the action.
"""

from __future__ import annotations

from typing import Any

from outcrop.calls import RAW
from outcrop.harnesses.content import attachment_note, parsed_arguments
from outcrop.harnesses.json_values import string
from outcrop.harnesses.openhands.values import code_of, items, mapping, time_ms
from outcrop.harnesses.toolnames import canonical
from outcrop.model import End, Event, EventType, Parsed

_STATES = {
    "awaiting_user_input": End.FINAL,
    "finished": End.FINAL,
    "stopped": End.CANCELLED,
    "rejected": End.STOPPED,
    "error": End.CRASHED,
}
"""Ends that states of the agent give a turn."""
_QUIET_ARGS = frozenset(
    {"thought", "blocking", "hidden", "confirmation_state", "is_confirmed", "action_risk", "security_risk",
     "keep_prompt", "kernel_init_code", "include_extra", "final_thought"}
)  # fmt: skip
_CONTEXT = frozenset({"recall", "microagent", "recall_failed", "system", "task_tracking", "agent_think"})


class Classic:
    """What becomes of the events of one conversation, one after the other."""

    def __init__(self, state: dict[str, Any] | None, session: str | None = None, cwd: str | None = None) -> None:
        known = state or {}
        self._session = session
        self.cwd: str | None = cwd
        self.branch: str | None = None
        self.model: str | None = None
        self.zone: int | None = None
        self._calls: dict[str, list[str | None]] = dict(known.get("calls", {}))
        self._asked: bool = known.get("asked", False)
        self._said: bool = known.get("said", False)
        self._key = ""
        self._time: int | None = None
        self._own: str | None = None

    def state(self) -> dict[str, Any]:
        return {"calls": dict(self._calls), "asked": self._asked, "said": self._said}

    def feed(self, event: dict[str, Any], place: int) -> Parsed:
        """Take the next event; `place` names one that has no id."""
        id = event.get("id")
        self._key = str(id) if isinstance(id, int | str) and not isinstance(id, bool) else f"at{place}"
        self._time = time_ms(event.get("timestamp"), self.zone)
        metadata = mapping(event.get("tool_call_metadata"))
        self._own = string(metadata.get("model_response"), "model") or None
        action, observation = string(event, "action"), string(event, "observation")
        if action:
            found = self._action(action, event, metadata)
            return self._parsed(f"action/{action}", found)
        if observation:
            return self._parsed(f"observation/{observation}", self._observation(observation, event, metadata))
        return self._parsed("?", [self._unknown(event)])

    def _parsed(self, kind: str, found: list[Event] | str) -> Parsed:
        if isinstance(found, str):
            return Parsed(kind, reason=found)
        return Parsed(kind, found, None if found else "says nothing")

    # Actions

    def _action(self, action: str, event: dict[str, Any], metadata: dict[str, Any]) -> list[Event] | str:
        args = mapping(event.get("args")) or {
            name: value for name, value in event.items() if name not in ("action", "id")
        }
        source = string(event, "source") or ("agent" if self._asked else "user")
        thought = string(args, "thought")
        if action == "message":
            return self._message(event, args, source)
        if action == "finish":
            said = string(args, "final_thought") or thought or string(args, "message") or string(event, "message")
            return [self._answer(said, metadata)] if said.strip() else [self._runtime("finish", End.FINAL)]
        if action in ("change_agent_state", "agent_state_changed"):
            return [self._runtime(string(args, "agent_state"), None)]
        if action == "think":
            return [self._event("", EventType.REASONING, thought)] if thought else "says nothing"
        if action == "condensation":
            summary = string(args, "summary")
            return [self._event("", EventType.COMPACTION, summary)]
        if action in _CONTEXT or action == "condensation_request":
            said = string(args, "content") or string(args, "query")
            return [self._event("", EventType.SYSTEM, said)]
        if action in ("null", "start", "pause", "resume", "stop"):
            return f"an action {action} does nothing" if action == "null" else [self._runtime(action, None)]
        found = [self._event("thought", EventType.ASSISTANT_RESPONSE, thought)] if thought.strip() else []
        return [*found, self._call(action, args, source, metadata)]

    def _message(self, event: dict[str, Any], args: dict[str, Any], source: str) -> list[Event] | str:
        said = string(args, "content") or string(event, "message")
        pictures = items(args.get("image_urls")) or items(args.get("images_urls"))
        notes = [attachment_note({"type": "image", "url": url}) for url in pictures]
        if source == "user":
            prompt = self._event("", EventType.USER_INPUT, said)
            prompt.opens, self._asked, self._said = True, True, False
            found = [prompt]
        elif said.strip():
            answer = self._event("", EventType.ASSISTANT_RESPONSE, said)
            answer.ends = End.FINAL if args.get("wait_for_response") is True else None
            self._said = True
            found = [answer]
        else:
            found = []
        return [*found, *([self._event("attached", EventType.SYSTEM, "\n".join(notes))] if notes else [])]

    def _answer(self, said: str, metadata: dict[str, Any]) -> Event:
        event = self._event("", EventType.ASSISTANT_RESPONSE, said)
        event.ends, self._said = End.FINAL, True
        event.extra = _usage(metadata)
        return event

    def _call(self, action: str, args: dict[str, Any], source: str, metadata: dict[str, Any]) -> Event:
        event = self._event("", EventType.TOOL_CALL, "")
        name = (
            string(metadata, "function_name") or (string(args, "name") if action == "call_tool_mcp" else "") or action
        )
        event.tool = canonical(name)
        event.original_tool = name if event.tool != name else None
        event.call_id = string(metadata, "tool_call_id") or self._key
        given = _model_arguments(metadata)
        event.arguments = given if given is not None else {
            name: value for name, value in args.items() if name not in _QUIET_ARGS and value is not None
        }  # fmt: skip
        event.by_user = source == "user"
        event.extra = _usage(metadata)
        self._calls[self._key] = [event.tool, event.original_tool, event.call_id]
        return event

    # Observations

    def _observation(self, kind: str, event: dict[str, Any], metadata: dict[str, Any]) -> list[Event] | str:
        extras = mapping(event.get("extras")) or event
        content = string(event, "content")
        if kind == "null":
            return "nothing was observed"
        if kind == "agent_state_changed":
            state = string(extras, "agent_state")
            return [self._runtime(state, _STATES.get(state) if self._asked else None)]
        if kind in ("think", "condense") or (kind in _CONTEXT and kind != "task_tracking"):
            return [self._event("", EventType.SYSTEM, content)] if content.strip() else "says nothing"
        cause = event.get("cause")
        known = self._calls.get(str(cause)) or self._of_call(string(metadata, "tool_call_id"))
        if known is None and kind == "error":
            return [self._runtime(content or string(event, "message"), None)]
        inner = mapping(extras.get("metadata"))
        response = self._event("", EventType.TOOL_RESPONSE, content)
        if known is None:
            # The oldest exports name neither ids nor causes: a result follows its call.
            known = next(reversed(self._calls.values()), None) if cause is None else None
        if known is not None:
            response.tool, response.original_tool, response.call_id = known
        response.exit_code = code_of(inner.get("exit_code", extras.get("exit_code")))
        if kind in ("error", "user_rejected"):
            response.is_error = True
        elif response.exit_code is not None:
            response.is_error = response.exit_code != 0
        elif isinstance(extras.get("error"), bool):
            response.is_error = extras["error"]
        elif isinstance(event.get("success"), bool) and kind != "run":
            response.is_error = not event["success"]
        response.cwd = string(inner, "working_dir") or string(extras, "working_dir") or self.cwd
        path = string(extras, "path")
        response.extra = {"paths": [path]} if path and kind in ("edit", "write") else None
        return [response]

    def _of_call(self, id: str) -> list[str | None] | None:
        return next((call for call in self._calls.values() if id and call[2] == id), None)

    # What events are made with

    def _runtime(self, said: str, ends: End | None) -> Event:
        event = self._event("", EventType.RUNTIME, said)
        event.ends = ends
        return event

    def _unknown(self, raw: Any) -> Event:
        event = self._event("", EventType.UNKNOWN, "")
        event.raw = raw
        return event

    def _event(self, part: str, kind: EventType, said: str) -> Event:
        key = f"{self._key}:{part}" if part else self._key
        event = Event(key, kind, said, self._time, session=self._session, cwd=self.cwd, branch=self.branch)
        if kind in (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL):
            event.model = self._own
        if kind not in (EventType.USER_INPUT, EventType.SYSTEM, EventType.RUNTIME, EventType.UNKNOWN):
            event.generator = self._own or self.model
        return event


def _model_arguments(metadata: dict[str, Any]) -> Any:
    """The arguments of the model's own call; None where they are not recorded."""
    id = string(metadata, "tool_call_id")
    for choice in items(mapping(metadata.get("model_response")).get("choices")):
        for call in items(mapping(mapping(choice).get("message")).get("tool_calls")):
            function = mapping(mapping(call).get("function"))
            if id and string(call, "id") == id:
                given = function.get("arguments")
                if isinstance(given, str):
                    return parsed_arguments(given) if given.strip() else {}
                return given if isinstance(given, dict) else {RAW: str(given)}
    return None


def _usage(metadata: dict[str, Any]) -> dict[str, Any] | None:
    usage = mapping(mapping(metadata.get("model_response")).get("usage"))
    counts = {name: value for name, value in usage.items() if isinstance(value, int) and value}
    return {"usage": counts} if counts else None
