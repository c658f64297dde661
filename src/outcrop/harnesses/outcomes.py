"""What a native record may come to, and which events stem from a model."""

from __future__ import annotations

from outcrop.model import EventType, Item

Outcome = list[Item] | str | None
"""What a record came to: items, the reason for none, or None where its shape or its kind is not understood."""

GENERATED = frozenset({EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL, EventType.TOOL_RESPONSE})
"""Types of the events that belong to what a model generates."""
