"""What a finding is, and for each code what it means and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

REMEDIES = MappingProxyType(
    {
        "timestamp": "put the date or time into the last user turn, or leave the time of day out",
        "id": "leave the id out of the prompt, or put it behind all that is the same; send it as metadata instead",
        "user-value": "put what differs by user or request behind the text that all share",
        "json-order": "write JSON with sorted keys and fixed separators: json.dumps(value, sort_keys=True)",
        "tools-order": "send the tools in one order, for example by name",
        "tools-changed": "keep each tool's definition the same; put what changes into the last user turn",
        "trimmed": "keep what was sent, or drop many turns at once and seldom: all that follows is new to the model",
        "chunks-first": "put retrieved text behind the system text and the examples, just before the question",
        "examples-order": "send the examples in one order, and choose them once for all requests",
        "whitespace": "write the same text with the same bytes: \\n line ends, no byte order mark, NFC, equal spaces",
        "question-first": "put the question last, behind the instructions",
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that keeps prompts from sharing their beginning.

    `source` is the file or name that was read; `line` the line in it (of a log: the first request with it), from 1.
    `place` is where it stands in the prompt, in letters. `lost_share` is the part of the prompt behind that place that
    is the same elsewhere and cannot be shared; `requests` in how many requests (0 for a template).
    """

    code: str
    source: str
    line: int
    place: int
    what: str
    lost_share: float
    requests: int = 0

    @property
    def remedy(self) -> str:
        return REMEDIES[self.code]


@dataclass(frozen=True, slots=True)
class Sharing:
    """How much of the prompts of a log, in shares of their letters, is shared with an earlier request: `now`, with
    everything mended (`mended`), and with one code alone mended (`by_code`). `per_request` holds the first two for
    each request."""

    now: float
    mended: float
    by_code: dict[str, float]
    per_request: tuple[tuple[float, float], ...]
