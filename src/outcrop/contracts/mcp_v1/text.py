"""The text block of an answer, for models and people that see no structured content (ruling 19).

Made from the envelope alone. Every id that a next step needs is in it; an event's text is cut at 16 KB with a line
that says how much more there is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

BODY = 16 * 1024
"""Bytes of UTF-8 of an event's content."""


def render(envelope: dict[str, Any]) -> str:
    """Plain text of any envelope, of success and of error."""
    if "error" in envelope:
        return _error(envelope)
    lines = _TOOLS[envelope["tool"]](envelope["request"], envelope["data"])
    lines += [f"warning: {warning}" for warning in envelope["warnings"]]
    return "\n".join(lines)


def cut(text: str, limit: int = BODY) -> tuple[str, int]:
    """The head of a text within `limit` bytes of UTF-8, and how many characters were left out."""
    if len(text) * 4 <= limit:
        return text, 0
    head = text[:limit].encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
    return head, len(text) - len(head)


def _error(envelope: dict[str, Any]) -> str:
    error = envelope["error"]
    told = f"{envelope['tool']} error ({error['code']}): {error['message']}"
    details = {name: value for name, value in error.get("details", {}).items() if name != "example"}
    return f"{told}\ndetails: {json.dumps(details, ensure_ascii=False)}" if details else told


def _search(request: dict[str, Any], data: dict[str, Any]) -> list[str]:
    count = data["result_count"]
    more = ", more exist" if data["truncated"] else ""
    lines = [f'{count} hit{"" if count == 1 else "s"} for "{request["query"]}"{more}']
    for hit in data["results"]:
        event, session = hit["event"], hit["session"]
        title = session["title"] or "untitled session"
        lines.append(f"{hit['rank']}. {event['type']} {event['timestamp']} {session['harness']}: {title}")
        lines.append(f"   {_line(hit['snippet'])}")
        lines.append(f"   {hit['id']} in {hit['open']['turn_id']} of {hit['open']['session_id']}")
    return lines


def _list(request: dict[str, Any], data: dict[str, Any]) -> list[str]:
    count = data["result_count"]
    plural = "" if count == 1 else "s"
    lines = [f"{count} session{plural} between {request['start_datetime']} and {request['end_datetime']}"]
    for row in data["sessions"]:
        session = row["session"]
        state = "completed" if session["completed"] else "not completed"
        lines.append(f"{row['rank']}. {session['display_label']}")
        lines.append(
            f"   {session['harness']} {session['mode']}, {session['started_at']} to {session['updated_at']},"
            f" {session['turn_count']} turns, {session['event_count']} events, {state}"
        )
        lines.append(f"   {row['id']}")
    return lines + _more(data)


def _attention(request: dict[str, Any], data: dict[str, Any]) -> list[str]:
    summary = data["summary"]
    touches, sessions = summary["total_touches"], summary["distinct_sessions"]
    whose = "this project" if data["scope"] == "project" else "all projects"
    lines = [
        f"{touches} touch{'' if touches == 1 else 'es'} of {data['tail']} in {sessions}"
        f" session{'' if sessions == 1 else 's'} of {whose}"
    ]
    lines += [f"root {root['root']}: {root['touch_count']}" for root in data["roots"]]
    if summary["ambiguous"]:
        lines.append("more than one working tree: these may be different files")
    for row in data.get("sessions", ()):
        session = row["session"]
        lines.append(
            f"{row['rank']}. {session['harness']} {session['first_touch']} to {session['last_touch']},"
            f" {session['touch_count']} by {', '.join(session['tools']) or 'a tool without a name'}"
        )
        lines.append(f"   {row['open']['session_id']}, last {row['open']['event_id']} in {row['open']['turn_id']}")
    for row in data.get("events", ()):
        event = row["event"]
        root = event["worktree_root"] or "unknown root"
        lines.append(f"{row['rank']}. {event['tool_name']} {event['timestamp']} {event['harness']} in {root}")
        lines.append(f"   {' '.join(event['action_preview'].split())}")
        lines.append(f"   {row['id']} in {row['open']['turn_id']} of {row['open']['session_id']}")
    if data["truncated"]:
        lines.append("there are more: raise limit or narrow the time")
    return lines


def _open(request: dict[str, Any], data: dict[str, Any]) -> list[str]:
    kinds: dict[str, Callable[[dict[str, Any]], list[str]]] = {"session": _session, "turn": _turn, "event": _event}
    lines = kinds[data["kind"]](data)
    around = [f"{name}: {value}" for name, value in data["traversal"].items() if value is not None]
    return lines + _more(data) + around


def _session(data: dict[str, Any]) -> list[str]:
    session = data["session"]
    state = "completed" if session["completed"] else "not completed"
    lines = [
        f"Session {session['display_label']}",
        f"{session['id']} {session['harness']} {session['mode']}, {session['started_at']} to {session['updated_at']},"
        f" {session['turn_count']} turns, {session['event_count']} events, {state}",
    ]
    for turn in data["turns"]:
        lines.append(f"{turn['ordinal']}. {turn['id']} {turn['started_at']}, {turn['event_count']} events")
        lines += [f"   {line}" for line in _summary(turn)]
    return lines


def _turn(data: dict[str, Any]) -> list[str]:
    turn = data["turn"]
    state = "completed" if turn["completed"] else "not completed"
    lines = [
        f"Turn {turn['ordinal']} of {data['session']['title'] or 'untitled session'}",
        f"{turn['id']} {turn['started_at']} to {turn['updated_at']}, {turn['event_count']} events, {state}",
        *_summary(data["summary"]),
    ]
    for event in data["events"]:
        tool = f" {event['tool_name']}" if event["tool_name"] else ""
        text = _line({"text": event["summary"], "truncated": event["truncated"]})
        lines.append(f"{event['ordinal']}. {event['type']}{tool} {event['timestamp']} {event['id']}")
        lines.append(f"   {text}")
    return lines


def _event(data: dict[str, Any]) -> list[str]:
    event, content = data["event"], data["content"]
    facts = [event["type"], event["tool_name"], event["timestamp"], event["model"]]
    if "exit_code" in content:
        facts.append(f"exit code {content['exit_code']}")
    if content.get("is_error"):
        facts.append("error")
    title = data["session"]["title"] or "untitled session"
    lines = [
        f"Event {event['ordinal']} of turn {data['turn']['ordinal']} of {title}",
        f"{event['id']} {', '.join(str(fact) for fact in facts if fact is not None)}",
        "",
    ]
    body, left = cut(content["text"])
    lines.append(body)
    if left:
        lines.append(f"[{left} more characters: the structured content holds all of it]")
    return [*lines, ""]


def _summary(part: dict[str, Any]) -> list[str]:
    lines = []
    for name, label in (("user_input", "user"), ("final_response", "answer")):
        if part[name] is not None:
            lines.append(f"{label}: {_line(part[name])}")
    if part["tools_called"]:
        lines.append(f"tools: {', '.join(part['tools_called'])}")
    return lines


def _line(preview: dict[str, Any]) -> str:
    text = " ".join(preview["text"].split())
    return f"{text} …" if preview["truncated"] and not text.endswith("…") else text


def _more(data: dict[str, Any]) -> list[str]:
    following = data.get("next_cursor")
    return [f"next_cursor: {following}"] if following else []


_TOOLS: dict[str, Callable[[dict[str, Any], dict[str, Any]], list[str]]] = {
    "search_sessions": _search,
    "open": _open,
    "list_sessions": _list,
    "file_attention": _attention,
}
