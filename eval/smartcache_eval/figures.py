"""What a benchmark hands over: one number with its unit and the conditions under which it was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` is a median where several runs were made; `conditions` says how many, and over what."""

    name: str
    value: float
    unit: str
    conditions: str
