"""How long an exact lookup and a store take, in memory, next to nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter

from smartcache import Answer, Request, SmartCache, Turn
from smartcache_eval.figures import Figure

ENTRIES = 2_000


def answer_figures() -> Iterator[Figure]:
    """Stores `ENTRIES` answers, then asks for each, then for as many that are not there."""
    conditions = f"median of {ENTRIES:,} in turn, in memory, mode exact"
    asked = [_request(f"What does option {number} do?") for number in range(ENTRIES)]
    unknown = [_request(f"What did option {number} do?") for number in range(ENTRIES)]
    with SmartCache.open(mode="exact", max_entries=ENTRIES) as cache:
        yield Figure("answer stored", _median_us(asked, lambda one: cache.store(one, _answer(one))), "µs", conditions)
        yield Figure("exact hit", _median_us(asked, lambda one: _expect(cache, one, found=True)), "µs", conditions)
        yield Figure("exact miss", _median_us(unknown, lambda one: _expect(cache, one, found=False)), "µs", conditions)


def _request(text: str) -> Request:
    return Request([Turn("user", text)])


def _answer(request: Request) -> Answer:
    return Answer(f"About this: {request.query}", evidence=frozenset(), finish_reason="stop")


def _expect(cache: SmartCache, request: Request, *, found: bool) -> None:
    if (cache.lookup(request) is not None) is not found:
        raise RuntimeError(f"the cache gave a wrong result while it was measured: {request.query}")


def _median_us(requests: list[Request], do: Callable[[Request], object]) -> float:
    return median(_seconds(do, request) for request in requests) * 1e6


def _seconds(do: Callable[[Request], object], request: Request) -> float:
    start = perf_counter()
    do(request)
    return perf_counter() - start
