"""What a tool's name tells: whether it is one of this product's own tools, and which mode it gives a session.

Own tools are known by the server in front of their name and keep one canonical name however a harness spells them
(ruling 11); a bare `open` of somebody else stays what it is. Names are data: any text is a valid name here.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

OWN_TOOLS = frozenset({"search_sessions", "open", "list_sessions", "file_attention"})
"""The four MCP tools, by their canonical names."""

_SERVERS = frozenset({"moraine", "outcrop"})
_WEB = frozenset(
    {
        "websearch",
        "webfetch",
        "websearchcall",
        "websearchpreview",
        "searchweb",
        "googlewebsearch",
        "bravewebsearch",
        "fetchurl",
        "fetchwebpage",
        "fetchwebcontent",
        "readurl",
        "readurlcontent",
        "openurl",
    }
)


class Category(StrEnum):
    """What a tool call makes of its session's mode (ruling 29)."""

    WEB = "web"
    OWN = "own"
    TOOL = "tool"


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """The name to store: that of the own tool which `name` spells, otherwise `name` as it stands.

    Own spellings put a server called moraine or outcrop before the tool: `mcp__moraine__open`, `outcrop__open`,
    `mcp__plugin_outcrop_outcrop__open`, `outcrop.open`, with any `__2` that tells name clashes apart.
    """
    return _own(name) or name


@lru_cache(maxsize=4096)
def category(tool: str, original: str | None = None) -> Category:
    """Category of a call by the stored name and, where that differs, the spelling in the record.

    The stored name of an own tool may be a plain `open`: only the original spelling tells whose it is.
    """
    if _own(original or tool) is not None:
        return Category.OWN
    plain = tool.rsplit("__", 1)[-1]
    squashed = "".join(char for char in plain.lower() if char.isalnum())
    return Category.WEB if squashed in _WEB else Category.TOOL


def _own(name: str) -> str | None:
    folded = name.lower()
    if "moraine" not in folded and "outcrop" not in folded:
        return None
    for server in _SERVERS:  # OpenCode and Crush join server and tool by one underscore
        for tool in OWN_TOOLS:
            if folded in (f"{server}_{tool}", f"mcp_{server}_{tool}"):
                return tool
    words = folded.replace(".", "__").replace("/", "__").replace(":", "__").split("__")
    if len(words) > 2 and words[-1].isdecimal():
        words.pop()
    if len(words) < 2 or words[-1] not in OWN_TOOLS:
        return None
    server = words[-2]
    qualified = server in _SERVERS or (server.startswith("plugin_") and not _SERVERS.isdisjoint(server.split("_")))
    return words[-1] if qualified else None
