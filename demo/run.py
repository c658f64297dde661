"""The tour behind `make demo`: index the sample home, search it, open the first hit, and ask the same over MCP.

Every step is the real command in a process of its own. The sample home is `demo/home`, with invented sessions; data
goes to `.demo/` and nothing of the user's own is read.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTCROP = str(Path(sys.executable).with_name("outcrop"))
DATA = ROOT / ".demo"
QUESTION = "north field skipped when the clocks changed"

ENVIRONMENT = {
    "HOME": str(ROOT / "demo" / "home"),
    "OUTCROP_HOME": str(DATA),
    "OUTCROP_AUTO_INDEX": "0",  # nothing stays behind that follows the sample
    "PATH": os.environ.get("PATH", ""),
    "LANG": "C.UTF-8",
}


def main() -> int:
    shutil.rmtree(DATA, ignore_errors=True)
    show("1. Read the sessions of all agents in the sample home", "index")
    show("2. Search them", "events", QUESTION)
    hits = ask("search_sessions", query=QUESTION)["data"]["results"]
    first = hits[0]
    show("3. Open the session of the first hit,", "open", first["session"]["id"])
    show("   its turn,", "open", first["turn"]["id"])
    show("   and the event itself", "open", first["event"]["id"])
    show("4. Or find the whole session, and how to resume it", "search", QUESTION)
    print("\n5. The same over MCP, as an agent asks it")
    over_mcp(first["event"]["id"])
    print(closing())
    return 0


def show(heading: str, *arguments: str) -> None:
    """Run a command as a person would, in plain sight."""
    print(f"\n{heading}\n\n$ outcrop {shlex.join(arguments)}", flush=True)
    subprocess.run([OUTCROP, *arguments], env=ENVIRONMENT, check=True)


def ask(tool: str, **arguments: Any) -> dict[str, Any]:
    """One tool in process: `outcrop call`, whose answer is the envelope."""
    command = [OUTCROP, "call", tool, json.dumps(arguments)]
    answer: dict[str, Any] = json.loads(subprocess.run(command, env=ENVIRONMENT, check=True, stdout=PIPE).stdout)
    return answer


def over_mcp(event: str) -> None:
    """A whole MCP conversation on standard input and output. The event that it opens must be the one found before."""
    with subprocess.Popen(
        [OUTCROP, "mcp"], env=ENVIRONMENT, stdin=-1, stdout=-1, text=True, encoding="utf-8"
    ) as server:
        client = Client(server)
        client.request(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "outcrop-demo", "version": "1"},
        )
        client.notify("notifications/initialized")
        tools = client.request("tools/list")["tools"]
        print(f"\ntools/list: {', '.join(tool['name'] for tool in tools)}")
        found = client.request("tools/call", name="search_sessions", arguments={"query": QUESTION})
        print(f"\nsearch_sessions {json.dumps({'query': QUESTION})}\n{found['content'][0]['text']}")
        id = found["structuredContent"]["data"]["results"][0]["event"]["id"]
        opened = client.request("tools/call", name="open", arguments={"id": id})
        print(f"\nopen {json.dumps({'id': id})}\n{opened['content'][0]['text']}")
        client.end()
    if id != event:
        sys.exit(f"the first hits differ: {event} in process, {id} over MCP")


class Client:
    """As much of an MCP client as a tour needs: one request at a time, a line each."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self.server = server
        self.last = 0

    def notify(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        self.last += 1
        self._send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        assert self.server.stdout is not None
        answer = json.loads(self.server.stdout.readline())
        if answer.get("id") != self.last or "result" not in answer:
            sys.exit(f"{method} was answered with {answer}")
        result: dict[str, Any] = answer["result"]
        return result

    def end(self) -> None:
        """End the input, as a client does that has heard enough; the server then goes by itself."""
        assert self.server.stdin is not None
        self.server.stdin.close()
        if code := self.server.wait(timeout=30):
            sys.exit(f"the server ended with exit code {code}")

    def _send(self, message: dict[str, Any]) -> None:
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps(message) + "\n")
        self.server.stdin.flush()


def closing() -> str:
    command = shlex.quote(OUTCROP)
    return f"""
That was the sample. Your own history takes two commands:

  {command} index
  {command} events "what you remember of it"

Give it to your agents:

  Claude Code    claude mcp add outcrop -- {command} mcp
  Codex          in ~/.codex/config.toml:

                 [mcp_servers.outcrop]
                 command = {json.dumps(OUTCROP)}
                 args = ["mcp"]
"""


if __name__ == "__main__":
    sys.exit(main())
