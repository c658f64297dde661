"""The database: sessions with their transcripts, and a session of its own for each worker of a session.

A transcript is the JSON list in the session's row, and behind it the rows of a reserved thread; of two rows for one
place the later counts, under the name of the earlier. What a worker did stands in rows of its thread, what it was asked
and answered in episodes. Rows are named by their numbers, which are never given twice; the list by its places.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from outcrop.harnesses import jsonl, sqlite
from outcrop.harnesses.nac import WORKER

ORCHESTRATOR = "__orchestrator__"
_PRIMARY = "__nac_primary_tools__"
"""A thread that repeats, shortened, the calls of a transcript."""
_SESSION = ("cwd", "model", "base_url", "backend", "reasoning_effort", "host_id", "created_at", "updated_at")
_TABLES = (
    "sessions", "episodes", "thread_events", "session_presentations", "session_run_recovery",
    "orchestrator_compaction_checkpoints", "workspace_revisions", "session_forks", "traditional_children",
)  # fmt: skip

Row = dict[str, Any]


class NacDatabase:
    """The `Container` of a database in one consistent state. Raises sqlite3.Error where it cannot be read."""

    def __init__(self, path: str) -> None:
        self._db = sqlite.open_read_only(path)
        try:
            self._columns = {name: sqlite.columns(self._db, name) for name in _TABLES}
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    def sessions(self) -> Iterator[tuple[str, str]]:
        events = self._counts("thread_events")
        episodes = self._counts("episodes")
        about = [self._signs(name) for name in
                 ("session_presentations", "session_run_recovery", "orchestrator_compaction_checkpoints",
                  "workspace_revisions")]  # fmt: skip
        workers: dict[str, dict[str, None]] = {}
        for session, thread in [*events, *episodes]:
            if thread not in (ORCHESTRATOR, _PRIMARY):
                workers.setdefault(session, {})[thread] = None
        columns = self._columns["sessions"]
        if "session_id" not in columns:
            return
        length = "length(messages_json)" if "messages_json" in columns else "0"
        wanted = sqlite.wanted(columns, "session_id", "updated_at")
        for row in self._db.execute(f"SELECT {wanted}, {length} FROM sessions ORDER BY updated_at DESC, session_id"):
            native = row["session_id"]
            if not isinstance(native, str) or not native:
                continue
            signs = [row["updated_at"], row[2], events.get((native, ORCHESTRATOR)), *(of.get(native) for of in about)]
            yield native, "|".join(map(str, signs))
            for thread in workers.get(native, {}):
                yield f"{native}{WORKER}{thread}", f"{events.get((native, thread))}|{episodes.get((native, thread))}"

    def records(self, native: str) -> Iterator[Row]:
        session, _, worker = native.partition(WORKER)
        row = self._row("sessions", "session_id", session, *_SESSION, "messages_json", "token_usages_json")
        remote = bool(row.get("host_id"))
        about = {name: row.get(name) for name in ("model", "backend", "reasoning_effort", "created_at", "base_url")}
        about |= {"record": "session", "id": native, "cwd": None if remote else row.get("cwd"), "remote": remote}
        if worker:
            yield about | {"parent": session, "relation": "subagent", "agent": worker, "created_at": None}
            yield from self._work(session, worker)
            return
        yield from self._conversation(session, row, about)

    # A session

    def _conversation(self, session: str, row: Row, about: Row) -> Iterator[Row]:
        fork = self._row("session_forks", "fork_session_id", session, "source_session_id", "source_message_idx")
        child = self._row("traditional_children", "child_session_id", session, "parent_session_id", "description")
        if fork:
            about |= {"parent": fork["source_session_id"], "relation": "fork"}
        elif child:
            about |= {"parent": child["parent_session_id"], "relation": "subagent", "agent": child["description"]}
        messages = list(self._messages(session, row.get("messages_json")))
        usages, rest = _usages(row.get("token_usages_json"))
        answers = [one for one in messages if _answers(one["message"])]
        if usages and len(usages) == len(answers):
            for answer, usage in zip(answers, usages, strict=True):
                answer["usage"] = usage
            usages = []
        title = self._row("session_presentations", "session_id", session, "title").get("title")
        yield about | {"title": title, "usage": usages or None, "usage_unattributed": rest}
        branches = self._branches(session)
        shared = fork.get("source_message_idx")
        source = fork.get("source_session_id")
        told = self._keys(source) if isinstance(source, str) and isinstance(shared, int) else {}
        for message in messages:
            message["branch"] = _branch(branches, message["idx"])
            there = told.get(message["idx"]) if message["idx"] <= (shared or 0) else None
            message["copied"] = [source, there] if there else None
        yield from _with_summaries(messages, self._all("orchestrator_compaction_checkpoints", session,
                                                       "id", "summary", "created_at"))  # fmt: skip
        if not any(message["time"] for message in messages):
            yield {"record": "saved", "time": row.get("updated_at")}
        recovery = self._row("session_run_recovery", "session_id", session, "run_id", "status")
        if recovery:
            yield recovery | {"record": "recovery"}

    def _keys(self, session: str) -> dict[int, str]:
        """Names of the messages of another session by their places."""
        head = self._row("sessions", "session_id", session, "messages_json").get("messages_json")
        return {message["idx"]: message["key"] for message in self._messages(session, head)}

    def _messages(self, session: str, head: Any) -> Iterator[Row]:
        listed = _loaded(head)
        first = listed if isinstance(listed, list) else []
        for idx, message in enumerate(first):
            yield {"record": "message", "idx": idx, "key": f"head{idx}", "time": None, "message": message}
        later: dict[int, Row] = {}
        for row in self._events(session, ORCHESTRATOR):
            told = _loaded(row["event_json"])
            entry = told.get("nac_transcript_message") if isinstance(told, dict) else None
            place = entry.get("idx") if isinstance(entry, dict) else None
            if isinstance(entry, dict) and isinstance(place, int):
                told = _loaded(entry.get("message"))
            else:
                place = len(first) + len(later)
            if place >= len(first):
                key = later[place]["key"] if place in later else f"row{row['id']}"
                later[place] = {
                    "record": "message", "idx": place, "key": key, "time": row["created_at"], "message": told
                }  # fmt: skip
        yield from (later[idx] for idx in sorted(later))

    def _branches(self, session: str) -> list[tuple[int | None, str]]:
        """(messages so far, branch) of each run, in order."""
        rows = self._all("workspace_revisions", session, "id", "transcript_len", "branch")
        return [
            (row["transcript_len"] if isinstance(row["transcript_len"], int) else None, row["branch"])
            for row in rows if isinstance(row["branch"], str) and row["branch"]
        ]  # fmt: skip

    # A worker

    def _work(self, session: str, worker: str) -> Iterator[Row]:
        """The tasks of a worker in their order: what was asked, what was done, what came of it."""
        names = ("id", "thread_name", "action", "content", "status", "created_at")
        episodes = [row for row in self._all("episodes", session, *names) if row["thread_name"] == worker]
        runs: list[list[Row]] = []
        for row in self._events(session, worker):
            event = _loaded(row["event_json"])
            record = {"record": "event", "key": f"row{row['id']}", "time": row["created_at"], "event": event}
            if not runs or (isinstance(event, dict) and event.get("type") == "thread_started"):
                runs.append([])
            runs[-1].append(record)
        for time, task, run, episode in _paired(runs, episodes):
            answer = f"episode{episode['id']}" if episode else ""
            yield {"record": "task", "key": run[0]["key"] if run else answer, "action": task, "time": time}
            for record in run:
                yield record | {"answer": episode.get("content"), "done": bool(episode)}
            if episode:
                yield {"record": "episode", "key": answer, "content": episode["content"], "status": episode["status"],
                       "time": episode["created_at"]}  # fmt: skip

    # Rows

    def _events(self, session: str, thread: str) -> Iterable[Row]:
        if not {"session_id", "thread_name", "event_json"} <= self._columns["thread_events"]:
            return []
        wanted = sqlite.wanted(self._columns["thread_events"], "id", "event_json", "created_at")
        query = f"SELECT {wanted} FROM thread_events WHERE session_id = ? AND thread_name = ? ORDER BY id"
        return map(dict, self._db.execute(query, (session, thread)))

    def _row(self, table: str, key: str, value: str, *names: str) -> Row:
        if key not in self._columns[table]:
            return {}
        wanted = sqlite.wanted(self._columns[table], *names)
        row = self._db.execute(f"SELECT {wanted} FROM {table} WHERE {key} = ?", (value,)).fetchone()
        return dict(row) if row is not None else {}

    def _all(self, table: str, session: str, *names: str) -> list[Row]:
        if not {"session_id", "id"} <= self._columns[table]:
            return []
        wanted = sqlite.wanted(self._columns[table], *names)
        return [dict(row) for row in self._db.execute(
            f"SELECT {wanted} FROM {table} WHERE session_id = ? ORDER BY id", (session,))]  # fmt: skip

    def _counts(self, table: str) -> dict[tuple[str, str], str]:
        """Number, newest id and newest contents of the rows of each thread."""
        if not {"session_id", "thread_name", "id"} <= self._columns[table]:
            return {}
        rows = self._db.execute(
            f"SELECT session_id, thread_name, count(*), max(id) FROM {table} GROUP BY session_id, thread_name"
        )
        names = sorted({"event_json", "action", "content", "status"} & self._columns[table])
        told = sqlite.recent(self._db, table, ("session_id", "thread_name"), *names)
        return {(row[0], row[1]): f"{row[2]}@{row[3]}+{told.get((row[0], row[1]))}" for row in rows}

    def _signs(self, table: str) -> dict[str, str]:
        """What tells of a change in the rows of each session."""
        columns = self._columns[table]
        if "session_id" not in columns:
            return {}
        wanted = sqlite.wanted(columns, "title", "run_id", "status", "id", "summary", "branch")
        found: dict[str, str] = {}
        for row in self._db.execute(f"SELECT session_id, {wanted} FROM {table}"):
            found[row[0]] = f"{found.get(row[0], '')}{tuple(row)[1:]}"
        return found


def _loaded(value: Any) -> Any:
    """The value of a JSON cell; what is no JSON stays as it is, for the reader to report."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return jsonl.document(value.encode("utf-8", "replace") if isinstance(value, str) else value)
    except ValueError:
        return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _answers(message: Any) -> bool:
    """Whether a message ends a response: text, and no calls."""
    return (
        isinstance(message, dict)
        and message.get("role") == "assistant"
        and bool(message.get("content"))
        and not message.get("tool_calls")
    )


def _usages(cell: Any) -> tuple[list[Any], Any]:
    """The usage of each completed response, and what belongs to none."""
    value = _loaded(cell)
    if isinstance(value, dict):
        listed = value.get("response_usages")
        return (listed if isinstance(listed, list) else []), value.get("unattributed_usage")
    return (value if isinstance(value, list) else []), None


def _branch(branches: list[tuple[int | None, str]], idx: int) -> str | None:
    """The branch of the run that wrote a message; without counts only where there was never another."""
    found = next((branch for length, branch in branches if length is not None and idx < length), None)
    named = {branch for _, branch in branches}
    return found or (named.pop() if len(named) == 1 else None)


def _with_summaries(messages: list[Row], summaries: list[Row]) -> Iterator[Row]:
    """Messages, and each summary before the first message that is later than it."""
    rest = [{"record": "compaction", **summary} for summary in summaries]
    for message in messages:
        time = message["time"]
        while rest and isinstance(time, str) and time > str(rest[0]["created_at"]):
            yield rest.pop(0)
        yield message
    yield from rest


def _paired(runs: list[list[Row]], episodes: list[Row]) -> list[tuple[Any, str, list[Row], Row]]:
    """(time, task, rows, episode or {}) of every task. Either half may be missing: old rows were not kept."""
    left = list(episodes)
    found: list[tuple[Any, str, list[Row], Row]] = []
    for run in runs:
        started = run[0]["event"] if isinstance(run[0]["event"], dict) else {}
        action = started.get("action") if started.get("type") == "thread_started" else None
        same = [one for one in left if one["action"] == action]
        episode = same[0] if same else left[0] if left and len(runs) == len(episodes) else {}
        if episode:
            left.remove(episode)
        task = action if isinstance(action, str) else episode.get("action")
        found.append((run[0]["time"], task if isinstance(task, str) else "", run, episode))
    found += [(one["created_at"], one["action"] if isinstance(one["action"], str) else "", [], one) for one in left]
    return sorted(found, key=lambda one: json.dumps(one[0], default=str))
