"""What a reader remembers between records, as a dataclass whose fields are plain JSON, and as the state it is kept in.

A state of another version may lack fields or have others: what is missing begins anew, what is unknown is left out.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    M = TypeVar("M", bound=DataclassInstance)


def recalled(memory: type[M], state: dict[str, Any] | None) -> M:
    """A memory as it was kept, or a fresh one. It shares nothing with the state."""
    names = {slot.name for slot in fields(memory)}
    return memory(**{name: deepcopy(value) for name, value in (state or {}).items() if name in names})


def kept(memory: DataclassInstance) -> dict[str, Any]:
    """All of a memory that differs from a fresh one. It shares nothing with the memory."""
    fresh = type(memory)()
    held = ((slot.name, getattr(memory, slot.name)) for slot in fields(memory))
    return {name: deepcopy(value) for name, value in held if value != getattr(fresh, name)}
