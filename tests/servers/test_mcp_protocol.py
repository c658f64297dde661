"""The protocol of both eras against a real process that has no history yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from wire import Client, call, listing, notification, request

from outcrop.servers import mcp

TOOLS = ["search_sessions", "open", "list_sessions", "file_attention"]
VALID: dict[str, Any] = {
    "search_sessions": {"query": "falcon"},
    "list_sessions": {"start_datetime": "2026-05-01T00:00:00Z", "end_datetime": "2026-05-02T00:00:00Z"},
    "file_attention": {"path": "src/beam.py"},
}
INVALID: dict[str, Any] = {
    "search_sessions": {"query": "   "},
    "open": {"id": " nonsense "},
    "list_sessions": {"start_datetime": "yesterday", "end_datetime": "2026-05-02T00:00:00Z"},
    "file_attention": {"path": "src/"},
}
META = {mcp.VERSION_KEY: mcp.STATELESS_VERSIONS[0], mcp.CAPABILITIES_KEY: {}}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Client(tmp_path_factory.mktemp("home")) as client:
        yield client


@pytest.fixture(scope="module")
def tools(client: Client) -> dict[str, Any]:
    return {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}


def test_C001_the_tools_are_listed_with_object_schemas(tools: dict[str, Any]) -> None:
    assert list(tools) == TOOLS
    for tool in tools.values():
        assert tool["inputSchema"]["type"] == "object"
        assert tool["description"]
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])


def test_C002_every_tool_is_read_only(tools: dict[str, Any]) -> None:
    assert all(tool["annotations"]["readOnlyHint"] is True for tool in tools.values())


@pytest.mark.parametrize(
    ("name", "required"),
    [
        ("search_sessions", ["query"]),
        ("open", []),
        ("list_sessions", ["start_datetime", "end_datetime"]),
        ("file_attention", ["path"]),
    ],
)
def test_C003_input_schemas_are_closed(tools: dict[str, Any], name: str, required: list[str]) -> None:
    schema = tools[name]["inputSchema"]
    assert schema["additionalProperties"] is False
    assert schema.get("required", []) == required


def test_C004_sources_are_named(client: Client, tools: dict[str, Any]) -> None:
    told = client.request("initialize", {"protocolVersion": "2025-11-25"})["result"]["instructions"]
    assert "claude" in told
    assert "codex" in told
    for name in ("search_sessions", "list_sessions", "file_attention"):
        assert tools[name]["inputSchema"]["properties"]["source"]["description"]


def test_the_tool_list_is_small(client: Client) -> None:
    client.send(request(1, "tools/list"))
    line = client.line()
    assert line is not None
    assert len(line) <= 9 * 1024


@pytest.mark.parametrize("version", mcp.HANDSHAKE_VERSIONS)
def test_C005_a_supported_version_is_echoed(client: Client, version: str) -> None:
    result = client.request("initialize", {"protocolVersion": version, "capabilities": {}})["result"]
    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert result["serverInfo"]["name"] == "outcrop"


@pytest.mark.parametrize("params", [{"protocolVersion": "1999-01-01"}, {"protocolVersion": 7}, {}])
def test_C006_an_unknown_version_gets_the_newest(client: Client, params: dict[str, Any]) -> None:
    assert client.request("initialize", params)["result"]["protocolVersion"] == "2025-11-25"


def test_instructions_teach_the_way_from_search_to_event(client: Client) -> None:
    told = client.request("initialize", {})["result"]["instructions"]
    places = [told.index(word) for word in ("search_sessions", "event id", "turn id", "next_cursor")]
    assert places == sorted(places)


def test_C007_ping(client: Client) -> None:
    assert client.request("ping")["result"] == {}


@pytest.mark.parametrize("method", ["resources/list", "prompts/list", "logging/setLevel", "", "tools"])
def test_C008_unknown_methods(client: Client, method: str) -> None:
    client.send(notification(method), notification("notifications/initialized"), request("u", method))
    answer = client.receive()
    assert answer["id"] == "u"
    assert answer["error"]["code"] == -32601


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":',
        b"nonsense",
        b"\xff\xfe{}",
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b"[" * 100_000,
        b"\x00",
    ],
)
def test_C009_broken_json_is_answered_and_survived(client: Client, frame: bytes) -> None:
    client.raw(frame + b"\n")
    answer = client.receive()
    assert answer["id"] is None
    assert answer["error"]["code"] == -32700
    assert client.request("ping")["result"] == {}


@pytest.mark.parametrize(
    ("frame", "id", "code"),
    [
        ({"jsonrpc": "1.0", "id": 5, "method": "ping"}, 5, -32600),
        ({"id": 5, "method": "ping"}, 5, -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None, -32600),
        ({"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}, None, -32600),
        ({"jsonrpc": "2.0", "id": 5}, 5, -32600),
        ({"jsonrpc": "2.0", "id": 5, "method": 3}, 5, -32600),
        ({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": [1]}, 5, -32602),
        ([], None, -32600),
        ([{"jsonrpc": "2.0", "id": 5, "method": "ping"}], None, -32600),
        ("ping", None, -32600),
        (3, None, -32600),
        (None, None, -32600),
    ],
)
def test_invalid_requests(client: Client, frame: Any, id: Any, code: int) -> None:
    client.send(frame)
    answer = client.receive()
    assert answer["id"] == id
    assert answer["error"]["code"] == code


def test_responses_are_not_answered(client: Client) -> None:
    client.send({"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 1, "error": {}}, request(2, "ping"))
    assert client.receive()["id"] == 2


@pytest.mark.parametrize("params", [None, {}, {"arguments": {}}, {"name": 7}, {"name": None, "arguments": {}}])
def test_C010_a_call_without_a_name(client: Client, params: Any) -> None:
    error = client.request("tools/call", params)["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("invalid params:")


@pytest.mark.parametrize("name", ["nope", "", "Search_Sessions", "open "])
def test_C011_an_unknown_tool_is_a_result(client: Client, name: str) -> None:
    result = client.tool(name, {})
    assert result["isError"] is True
    assert name in result["content"][0]["text"]
    assert result["structuredContent"]["tool"] == name
    assert result["structuredContent"]["error"]["code"] == "invalid_request"


@pytest.mark.parametrize("name", VALID)
def test_C012_shape_of_success(client: Client, tools: dict[str, Any], name: str) -> None:
    result = client.tool(name, VALID[name])
    envelope = result["structuredContent"]
    assert result["isError"] is False
    assert envelope["schema_version"] == f"moraine.mcp.{name}.v1"
    assert envelope["tool"] == name
    assert isinstance(envelope["request"], dict)
    assert isinstance(envelope["data"], dict)
    assert type(envelope["performance"]["elapsed_ms"]) is int
    assert envelope["performance"]["elapsed_ms"] >= 0
    # No history is no error, but nothing may be said to be absent without saying that nothing was read yet.
    assert any(warning.startswith("coverage_partial:") for warning in envelope["warnings"])
    jsonschema.validate(envelope, tools[name]["outputSchema"])


@pytest.mark.parametrize("name", INVALID)
def test_C013_C014_C015_C018_C019_C024_shape_of_errors(client: Client, tools: dict[str, Any], name: str) -> None:
    answer = client.request("tools/call", {"name": name, "arguments": INVALID[name]})
    assert "error" not in answer
    result = answer["result"]
    envelope = result["structuredContent"]
    assert result["isError"] is True
    assert envelope["schema_version"] == "moraine.mcp.error.v1"
    assert envelope["tool"] == name
    assert envelope["request"] == INVALID[name]
    assert envelope["error"]["code"] in ("invalid_request", "invalid_id")
    assert envelope["error"]["message"]
    assert envelope["warnings"] == []
    assert envelope["performance"]["elapsed_ms"] >= 0
    jsonschema.validate(envelope, tools[name]["outputSchema"])


@pytest.mark.parametrize("name", TOOLS)
def test_C016_every_result_has_text(client: Client, name: str) -> None:
    for arguments in (VALID.get(name, {"id": "x"}), INVALID[name], None, {"nonsense": 1}):
        content = client.tool(name, arguments)["content"]
        assert content[0]["type"] == "text"
        assert content[0]["text"].strip()


def test_C020_ids_keep_their_type(client: Client) -> None:
    client.send(listing(1), listing("1"), listing("a"), listing(2**60), listing(-5), listing(1.5), listing(""))
    answers = [client.receive()["id"] for _ in range(7)]
    assert {(type(id), id) for id in answers} == {(type(id), id) for id in (1, "1", "a", 2**60, -5, 1.5, "")}


@pytest.mark.parametrize("name", TOOLS)
def test_C021_arguments_left_out(client: Client, name: str) -> None:
    envelope = client.request("tools/call", {"name": name})["result"]["structuredContent"]
    assert envelope["error"]["code"] == "invalid_request"
    assert envelope["request"] is None


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("arguments", [["x"], "x", 3, True])
def test_C022_arguments_that_are_no_object(client: Client, name: str, arguments: Any) -> None:
    envelope = client.tool(name, arguments)["structuredContent"]
    assert envelope["error"]["code"] == "invalid_request"
    assert envelope["request"] == arguments


def test_C023_blank_lines_and_crlf(client: Client) -> None:
    client.raw(
        b'\r\n\n  \n{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n\r\n\t{"jsonrpc":"2.0","id":2,"method":"ping"} \n'
    )
    assert list(client.answers(2)) == [1, 2]


def test_text_of_every_script_comes_back(client: Client) -> None:
    query = "\ud800 lone, \U0001f600, 日本, \u2028, \x7f"
    client.raw(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}\n')
    assert client.receive()["id"] == "\ud800"
    assert client.tool("nope", {"query": query})["structuredContent"]["request"] == {"query": query}


def test_stateless_discovery(client: Client) -> None:
    result = client.request("server/discover", {"_meta": META})["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["resultType"] == "complete"
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert "claude" in result["instructions"]
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "private"
    assert result["_meta"][mcp.SERVER_KEY]["name"] == "outcrop"


def test_stateless_list_and_calls_need_no_handshake(client: Client) -> None:
    listed = client.request("tools/list", {"_meta": META})["result"]
    assert listed["resultType"] == "complete"
    assert "ttlMs" in listed
    result = client.request("tools/call", {"name": "open", "arguments": {"id": "x"}, "_meta": META})["result"]
    assert result["resultType"] == "complete"
    assert result["structuredContent"]["error"]["code"] == "invalid_id"


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({mcp.VERSION_KEY: "2026-07-28"}, -32602),
        ({mcp.VERSION_KEY: 3, mcp.CAPABILITIES_KEY: {}}, -32602),
        ({mcp.VERSION_KEY: "2026-07-28", mcp.CAPABILITIES_KEY: 1}, -32602),
        ({mcp.VERSION_KEY: "2031-01-01", mcp.CAPABILITIES_KEY: {}}, -32022),
    ],
)
@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call"])
def test_stateless_requests_must_carry_their_envelope(
    client: Client, method: str, meta: dict[str, Any], code: int
) -> None:
    error = client.request(method, {"name": "open", "_meta": meta})["error"]
    assert error["code"] == code
    if code == -32022:
        assert error["data"] == {"supported": ["2026-07-28"], "requested": "2031-01-01"}


def test_discovery_without_envelope_makes_clients_fall_back(client: Client) -> None:
    assert client.request("server/discover")["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["ping", "initialize", "logging/setLevel"])
def test_what_the_stateless_era_removed(client: Client, method: str) -> None:
    assert client.request(method, {"_meta": META})["error"]["code"] == -32601


def test_a_progress_token_does_not_make_a_request_stateless(client: Client) -> None:
    assert client.request("ping", {"_meta": {"progressToken": 1}})["result"] == {}


def test_an_id_of_an_earlier_answer_may_be_used_again(client: Client) -> None:
    for _ in range(3):
        client.send(call(9, "open", id="x"))
        assert client.receive()["id"] == 9


def test_a_server_writes_nothing_into_the_home(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.tool("list_sessions", VALID["list_sessions"])
        client.close_input()
        assert client.leave() == 0
    assert list(tmp_path.rglob("*")) == []
