"""Envelopes: which class a failure gets, what is told of it, and how large the published schemas are."""

from __future__ import annotations

import errno
import json
import sqlite3
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from outcrop.contracts import mcp_v1
from outcrop.contracts.catalog import Catalog
from outcrop.contracts.mcp_v1 import text
from outcrop.contracts.mcp_v1.envelope import NOTHING_INDEXED, Context
from outcrop.errors import BackendFailure, StoreMissing
from outcrop.store import Snapshot, open_store

CATALOG = Catalog(
    {"claude-code": "Claude Code", "codex": "Codex"}, ("claude", "claude-cowork", "codex"), {"claude": "claude-code"}
)
SESSION = "session:ses_00000000000000000000000001"
TIMES = {"start_datetime": "2026-05-01T00:00:00Z", "end_datetime": "2026-05-02T00:00:00Z"}


class FailingStore:
    """A store that cannot be read, for a given reason."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def snapshot(self, cancelled: object = None, project: object = None) -> AbstractContextManager[Snapshot]:
        raise self.error

    def close(self) -> None:
        pass


def ask(error: Exception, tool: str = "open", **given: Any) -> dict[str, Any]:
    envelope = mcp_v1.call(tool, given or {"id": SESSION}, Context(FailingStore(error), CATALOG))
    jsonschema.validate(envelope, mcp_v1.TOOLS[tool].output_schema)
    return envelope


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("near /home/someone/outcrop.db: SELECT")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (sqlite_error(sqlite3.SQLITE_FULL), "resource_exhausted"),
        (sqlite_error(sqlite3.SQLITE_NOMEM), "resource_exhausted"),
        (sqlite_error(sqlite3.SQLITE_CORRUPT), "backend_failure"),
        (sqlite3.DatabaseError("file is not a database"), "backend_failure"),
        (OSError(errno.ENOSPC, "No space left", "/home/someone/outcrop.db"), "resource_exhausted"),
        (OSError(errno.EACCES, "Permission denied", "/home/someone/outcrop.db"), "backend_failure"),
        (MemoryError(), "resource_exhausted"),
        (BackendFailure("the store is damaged"), "backend_failure"),
        (ZeroDivisionError("/home/someone SELECT"), "internal_error"),
    ],
)
def test_every_failure_has_a_class_and_a_clean_message(error: Exception, code: str) -> None:
    envelope = ask(error)
    assert envelope["error"]["code"] == code
    assert "someone" not in json.dumps(envelope)
    assert "SELECT" not in json.dumps(envelope)
    assert envelope["request"] == {"id": SESSION}


def test_a_store_that_was_never_written_is_an_empty_history(tmp_path: Path) -> None:
    context = Context(open_store(tmp_path), CATALOG)
    listed = mcp_v1.call("list_sessions", TIMES, context)
    assert listed["data"]["sessions"] == []
    assert listed["warnings"] == [NOTHING_INDEXED]
    found = mcp_v1.call("search_sessions", {"query": "beacon"}, context)
    assert found["data"]["results"] == []
    assert found["warnings"] == [NOTHING_INDEXED]
    assert mcp_v1.call("search_sessions", {"query": "a", "within_id": SESSION}, context)["error"]["code"] == "not_found"
    assert mcp_v1.call("open", {"id": SESSION}, context)["error"]["details"] == {"reason": "nothing_indexed"}


def test_a_caller_that_waits_no_longer_gets_its_own_codes() -> None:
    context = Context(FailingStore(AssertionError("never reached")), CATALOG, cancelled=lambda: True)
    assert mcp_v1.call("open", {"id": SESSION}, context)["error"]["code"] == "cancelled"
    context = Context(FailingStore(AssertionError("never reached")), CATALOG, deadline=time.monotonic())
    assert mcp_v1.call("open", {"id": SESSION}, context)["error"]["code"] == "deadline_exceeded"


def test_elapsed_time_counts_from_the_arrival_of_the_frame() -> None:
    context = Context(FailingStore(StoreMissing("none")), CATALOG)
    envelope = mcp_v1.call("list_sessions", TIMES, context, time.monotonic() - 2)
    assert 2000 <= envelope["performance"]["elapsed_ms"] < 60_000


def test_the_published_tools_stay_small_and_strict() -> None:
    context = Context(FailingStore(StoreMissing("none")), CATALOG)
    assert list(mcp_v1.TOOLS) == ["search_sessions", "open", "list_sessions", "file_attention"]
    listing = []
    for tool in mcp_v1.TOOLS.values():
        schema = tool.input_schema(context)
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert schema["additionalProperties"] is False
        listing.append([tool.name, tool.description, tool.annotations, schema, tool.output_schema])
    required = [listed[3].get("required", []) for listed in listing]
    assert required == [["query"], [], ["start_datetime", "end_datetime"], ["path"]]  # C003
    assert len(json.dumps(listing, separators=(",", ":"))) <= 9_000


def test_C004_source_descriptions_name_the_sources_that_hold_data() -> None:
    catalog = Catalog(CATALOG.harnesses, CATALOG.sources, holding=lambda: ("codex",))
    context = Context(FailingStore(StoreMissing("none")), catalog)
    for name in ("search_sessions", "list_sessions", "file_attention"):
        described = mcp_v1.TOOLS[name].input_schema(context)["properties"]["source"]["description"]
        assert "codex" in described
        assert "cowork" not in described


def test_the_text_of_an_error_says_what_and_why() -> None:
    context = Context(FailingStore(StoreMissing("none")), CATALOG)
    told = text.render(mcp_v1.call("open", {"id": "nope"}, context))
    assert told.startswith("open error (invalid_id): id is not a valid Moraine MCP ID")
    assert "session:ses_" in told


@pytest.mark.parametrize("body", ["", "short", "é" * 9000, "日本" * 100_000, "x" * 16384, "x" * 16385, "😀" * 4097])
def test_text_is_cut_at_16_kilobytes_of_whole_characters(body: str) -> None:
    head, left = text.cut(body)
    assert body.startswith(head)
    assert len(head) + left == len(body)
    assert len(head.encode()) <= 16384
    assert left == 0 or len(head.encode()) > 16384 - 4


def test_contracts_import_no_harness() -> None:
    for file in (Path(mcp_v1.__file__).parent.parent).rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        assert "outcrop.harnesses" not in source
        assert "outcrop.ingest" not in source
