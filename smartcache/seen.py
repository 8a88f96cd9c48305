"""Which system prompts the stored requests began with: what is worth computing before anyone asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from smartcache.keys import canonical, parts
from smartcache.types import Turn

_SYSTEM, _NOTHING = parts(canonical(["system", None]))


@dataclass(frozen=True, slots=True)
class SeenPrompt:
    """The system turns that `count` stored requests of a scope began with. What a scope's users asked is that scope's
    alone: its state must be warmed under it."""

    turns: tuple[Turn, ...]
    scope: str
    count: int


def seen_most(requests: Iterable[bytes], limit: int) -> list[SeenPrompt]:
    """The system prompts of `requests`, as `request_bytes` wrote them: the most frequent first, at most `limit`; of
    two that are as frequent, the one that comes first in `requests`."""
    counts = Counter(beginning for request in requests if (beginning := _beginning(request)))
    return [
        SeenPrompt(tuple(Turn("system", text) for text in texts), scope, count)
        for (scope, *texts), count in counts.most_common(limit)
    ]


def _beginning(request: bytes) -> tuple[str, ...]:
    """The scope and the texts of the leading system turns; empty without any, or where a request cannot be read."""
    try:
        scope, _variant, _options, turns = parts(request)
        texts = []
        for role, text, carried in map(parts, parts(turns)):
            if role != _SYSTEM or carried != _NOTHING:
                break
            texts.append(_text(text))
        return (_text(scope), *texts) if texts else ()
    except ValueError:
        return ()


def _text(frame: bytes) -> str:
    [letters] = parts(frame)
    return letters.decode("utf-8", "surrogatepass")
