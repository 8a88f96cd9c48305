"""Copies of a caller's objects, so that nothing it does to its own later changes what is kept."""

from __future__ import annotations

from copy import deepcopy
from typing import TypeVar

T = TypeVar("T")


def own_copy(value: T) -> T:
    """A copy that shares nothing, or the value itself where it cannot be copied: a lock, a client."""
    try:
        return deepcopy(value)
    except Exception:  # whatever an object inside it raises
        return value
