"""Sessions written message by message, read by the real ingest, and searched through the endpoint of the contract.

A corpus is told as in the numbered cases: `U` a prompt, `A` an answer, `T` the output of a tool. Every session is a
transcript of Claude Code in a HOME of its own.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from outcrop.cli import context
from outcrop.config import Config
from outcrop.contracts.vault import service
from outcrop.contracts.vault.exposure import Transport
from outcrop.contracts.vault.local import LocalService
from outcrop.harnesses import Environment
from outcrop.ingest.pipeline import Summary, index
from outcrop.store.embedded.read import EmbeddedStore

START = datetime(2026, 5, 1, 9, tzinfo=UTC)


class Message(NamedTuple):
    role: str
    text: str


def U(text: str) -> Message:
    return Message("user", text)


def A(text: str) -> Message:
    return Message("assistant", text)


def T(text: str) -> Message:
    return Message("tool", text)


@dataclass
class Vault:
    """A HOME, its store, and the service over it. `found` and `hits` raise for anything but results."""

    folder: Path
    transport: Transport = Transport.IPC
    written: int = 0
    _stores: list[EmbeddedStore] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def config(self) -> Config:
        return Config(self.store, self.store / "config.toml")

    def add(
        self,
        *messages: Message,
        cwd: str | None = "/srv/app",
        branch: str = "main",
        at: datetime | None = None,
        session: str | None = None,
        title: str | None = None,
        path: str | None = None,
    ) -> str:
        """Write a session, a minute after the one before unless `at` says when it was last used; its id."""
        self.written += 1
        name = session or str(uuid.uuid5(uuid.NAMESPACE_URL, f"session {self.written}"))
        last = at or START + timedelta(minutes=self.written)
        records = self.records(name, messages, cwd, branch, last)
        if title is not None:
            records.append({"type": "custom-title", "customTitle": title, "sessionId": name})
        place = self.path(name) if path is None else self.home / ".claude" / "projects" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        return name

    def path(self, session: str) -> Path:
        return self.home / ".claude" / "projects" / "-work" / f"{session}.jsonl"

    def append(self, session: str, *messages: Message, cwd: str | None = "/srv/app") -> None:
        """More messages at the end of a session, an hour later."""
        later = self.records(
            session, messages, cwd, "main", START + timedelta(hours=1 + self.written), f"more {self.written}"
        )
        self.written += 1
        with self.path(session).open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(record) + "\n" for record in later)

    def records(
        self, session: str, messages: tuple[Message, ...], cwd: str | None, branch: str, last: datetime, salt: str = ""
    ) -> list[dict[str, Any]]:
        records = []
        for number, (role, text) in enumerate(messages):
            time = last - timedelta(seconds=len(messages) - 1 - number)
            blocks: list[tuple[str, Any]] = [("user", text)]
            if role == "assistant":
                blocks = [("assistant", [{"type": "text", "text": text}])]
            elif role == "tool":
                call = f"toolu_{salt}{number}"
                blocks = [
                    ("assistant", [{"type": "tool_use", "id": call, "name": "Run", "input": {}}]),
                    ("user", [{"type": "tool_result", "tool_use_id": call, "content": text}]),
                ]
            for part, (kind, content) in enumerate(blocks):
                message: dict[str, Any] = {"role": kind, "content": content}
                if kind == "assistant":
                    message |= {
                        "id": f"msg_{session}_{salt}{number}",
                        "type": "message",
                        "model": "m",
                        "stop_reason": "end_turn",
                    }
                record: dict[str, Any] = {
                    "type": kind,
                    "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{session} {salt} {number} {part}")),
                    "sessionId": session,
                    "timestamp": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                    "version": "2.1.39",
                    "gitBranch": branch,
                    "isSidechain": False,
                    "message": message,
                }
                records.append(record if cwd is None else {**record, "cwd": cwd})
        return records

    def index(self, full: bool = False) -> Summary:
        return index(self.config, Environment(self.home, {}, "linux"), full=full)

    def ask(self, query: str, /, **request: Any) -> dict[str, Any]:
        """The response to a request through the registered service, as it goes over the wire."""
        return self.send({"query": query, **request})

    def send(self, request: Any) -> dict[str, Any]:
        self.serve()
        try:
            return service.search_sessions(request, self.catalog.agents, self.transport).wire()
        finally:
            service.set_session_search_service(None)

    def status(self, request: Any = None) -> dict[str, Any]:
        self.serve()
        try:
            return service.search_status({} if request is None else request, self.transport).wire()
        finally:
            service.set_session_search_service(None)

    def serve(self) -> None:
        if not self._stores:
            self._stores.append(EmbeddedStore(self.store))
        local = LocalService(self._stores[0], self.catalog, lambda: void(self.index()))
        service.set_session_search_service(local)

    @property
    def catalog(self) -> Any:
        return context.catalog(self.config)

    def results(self, query: str, /, **request: Any) -> dict[str, Any]:
        response = self.ask(query, **request)
        assert response["kind"] == "results", response
        assert (response["page"]["cursor"] is not None) is response["page"]["hasMore"]
        return response

    def hits(self, query: str, /, **request: Any) -> list[dict[str, Any]]:
        return list(self.results(query, **request)["hits"])

    def ids(self, query: str, /, **request: Any) -> list[str]:
        return [hit["sessionId"] for hit in self.hits(query, **request)]

    def route(self, query: str, /, **request: Any) -> tuple[str, list[str] | None, int]:
        """The rung, the repaired words, and how many sessions."""
        response = self.results(query, debug=True, **request)
        debug = response["debug"]
        assert debug["plannerReport"]["route"] == debug["route"]
        return debug["route"], debug.get("repairedTerms"), len(response["hits"])

    def close(self) -> None:
        for store in self._stores:
            store.close()
        self._stores.clear()


def void(_: object) -> None:
    """Takes a value and gives none."""


def environment(vault: Vault) -> dict[str, str]:
    return {"HOME": str(vault.home), "OUTCROP_HOME": str(vault.store), "PATH": os.environ["PATH"]}
