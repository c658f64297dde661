"""`outcrop open ID`: a session, a turn or an event, for people or as the envelope."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from outcrop.cli import context, output
from outcrop.contracts import mcp_v1
from outcrop.errors import InvalidRequest


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", nargs="?", help="session:…, turn:… or event:…, as printed by other commands"
    )
    parser.add_argument(
        "--limit", metavar="N", type=int, help="show the first N turns of a session, or events of a turn"
    )
    parser.add_argument("--cursor", metavar="C", help="go on where an earlier page ended; stands alone")
    parser.add_argument("--json", action="store_true", help="print the envelope")


def run(args: Namespace) -> int:
    if args.id is None and args.cursor is None:
        raise InvalidRequest("an ID or --cursor is needed")
    given = {"id": args.id, "limit": args.limit, "cursor": args.cursor}
    arguments = {name: value for name, value in given.items() if value is not None}
    envelope = mcp_v1.call("open", arguments, context.attended(args.json))
    output.answer(envelope, args.json, _show)
    return output.exit_code(envelope)


def _show(envelope: dict[str, Any]) -> None:
    print("\n".join(_lines(envelope["data"], output.Ink(sys.stdout))))


def _lines(data: dict[str, Any], ink: output.Ink) -> list[str]:
    match data["kind"]:
        case "session":
            lines = _session(data, ink)
        case "turn":
            lines = _turn(data, ink)
        case _:
            return _event(data, ink)
    if data["next_cursor"]:
        lines += ["", f"more: outcrop open --cursor {data['next_cursor']}"]
    return lines


def _session(data: dict[str, Any], ink: output.Ink) -> list[str]:
    session, traversal = data["session"], data["traversal"]
    lines = [
        ink.bold(output.clean(session["display_label"])),
        f"{session['id']}  {output.clean(session['harness'])}  {session['mode']}  {_state(session)}",
        f"{output.moment(session['started_at'])} to {output.moment(session['updated_at'])}",
        f"{session['turn_count']} turns, {session['event_count']} events",
    ]
    if session.get("parent_session_id"):
        lines.append(f"{session['relation']} of {session['parent_session_id']}")
    for turn in data["turns"]:
        name = ink.bold(f"turn {turn['ordinal']}")
        lines += ["", f"{name}  {output.moment(turn['started_at'])}  {_state(turn)}"]
        lines += [f"  {line}" for line in [turn["id"], *_summary(turn)]]
    if not data["turns"]:
        lines.append(f"first turn {traversal['first_turn_id']}, last turn {traversal['last_turn_id']}")
    return lines


def _turn(data: dict[str, Any], ink: output.Ink) -> list[str]:
    turn, traversal = data["turn"], data["traversal"]
    title = output.clean(data["session"]["title"] or "untitled session")
    lines = [
        ink.bold(f"turn {turn['ordinal']} of {title}"),
        f"{turn['id']}  {_state(turn)}",
        f"session {turn['session_id']}",
        f"{output.moment(turn['started_at'])}, {turn['event_count']} events",
        *_summary(data["summary"]),
    ]
    for event in data["events"]:
        tool = f" {output.clean(event['tool_name'])}" if event["tool_name"] else ""
        name = ink.bold(f"{event['ordinal']}. {event['type']}{tool}")
        lines += ["", f"{name}  {event['id']}"]
        lines.append(f"   {_shown(event['summary'], event['truncated'])}")
    if not data["events"]:
        lines.append(f"first event {traversal['first_event_id']}, last event {traversal['last_event_id']}")
    return lines


def _event(data: dict[str, Any], ink: output.Ink) -> list[str]:
    event, content, traversal = data["event"], data["content"], data["traversal"]
    facts = [event["type"], event["tool_name"], event["model"] or event["originating_model"]]
    if "exit_code" in content:
        facts.append(f"exit code {content['exit_code']}")
    if content.get("is_error"):
        facts.append("error")
    lines = [
        ink.bold(output.clean("  ".join(fact for fact in facts if fact))),
        f"{event['id']}  {output.moment(event['timestamp'])}",
        f"turn {event['turn_id']}",
        f"session {event['session_id']}",
    ]
    near = [(word, traversal[f"{word}_event_id"]) for word in ("previous", "next") if traversal[f"{word}_event_id"]]
    lines += [f"{word} {event_id}" for word, event_id in near]
    return [ink.dim(line) if place else line for place, line in enumerate(lines)] + ["", output.clean(content["text"])]


def _summary(part: dict[str, Any]) -> list[str]:
    lines = []
    for name, label in (("user_input", "user  "), ("final_response", "answer")):
        if part[name] is not None:
            lines.append(f"{label}  {_shown(part[name]['text'], part[name]['truncated'])}")
    if part["tools_called"]:
        lines.append(f"tools   {output.clean(', '.join(part['tools_called']))}")
    return lines


def _shown(text: str, truncated: bool) -> str:
    return output.clean(text) + (" …" if truncated else "")


def _state(part: dict[str, Any]) -> str:
    return "completed" if part["completed"] else "not completed"
