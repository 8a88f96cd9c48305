"""How much of each prompt is the beginning of an earlier one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from smartcache.lint.requests import Sent


def letters_shared(requests: Iterable[Sent]) -> list[int]:
    """For each request, the letters of its prompt that some earlier prompt begins with too: that one is its neighbour
    among the earlier ones in the order of the alphabet."""
    seen: list[str] = []
    found = []
    for request in requests:
        prompt = "".join(request.parts)
        place = bisect_left(seen, prompt)
        found.append(max((common_length(prompt, one) for one in seen[max(0, place - 1) : place + 1]), default=0))
        seen.insert(place, prompt)
    return found


def share(letters: Sequence[int], requests: Sequence[Sent]) -> float:
    """Of all letters of all prompts."""
    return sum(letters) / max(1, sum(map(length, requests)))


def length(request: Sent) -> int:
    return sum(map(len, request.parts))


def common_length(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
