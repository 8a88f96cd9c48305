"""One call for many equal requests: the first flies, the others wait for it and then look again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import monotonic

WAIT_SECONDS = 0.5

# The flights that this thread or task holds. Those that are over stay in it until the next: they hold nobody up.
_aboard: ContextVar[frozenset[Future[None]]] = ContextVar("smartcache_aboard", default=frozenset())


class Flights:
    """Requests that are being answered now, by key.

    `join(key)` yields at once for the first, and for the others when the first is over, however it ended; for the key
    None, always at once. Nobody waits twice, nor longer than `max_wait_seconds` (a stream that its reader leaves half
    read is over when it is closed), nor while others may wait for it: a `generate` that asks the cache, who has a
    stream half read, and a plain call inside a running event loop. `on_given_up` is called for each who is cancelled
    while it waits.
    """

    def __init__(self, max_wait_seconds: float = 120.0, *, on_given_up: Callable[[], object] = lambda: None) -> None:
        self._max_wait_seconds, self._on_given_up = max_wait_seconds, on_given_up
        # No lock around these: a flight may end in the garbage collector, in the midst of anything, and each step here
        # is one of a dict's own, which no thread sees halfway.
        self._flights: dict[str, Future[None]] = {}

    @contextmanager
    def join(self, key: str | None) -> Iterator[None]:
        mine, flight = self._board(key)
        try:
            if not mine and flight and not _in_event_loop():
                with self._told():
                    _wait(flight, self._max_wait_seconds)
            yield
        finally:
            self._leave(key, flight if mine else None)

    def ajoin(self, key: str | None) -> _Joined:
        return _Joined(self, key)

    async def _await(self, flight: Future[None]) -> None:
        with self._told():
            await asyncio.wait([asyncio.wrap_future(flight)], timeout=self._max_wait_seconds)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._on_given_up()
            raise

    def _board(self, key: str | None) -> tuple[bool, Future[None] | None]:
        if key is None:
            return False, None
        held = frozenset(flight for flight in _aboard.get() if not flight.done())
        mine: Future[None] = Future()
        flight = self._flights.setdefault(key, mine)
        if flight is not mine:
            return False, None if held else flight
        _aboard.set(held | {flight})
        return True, flight

    def _leave(self, key: str | None, flight: Future[None] | None) -> None:
        if flight is None or key is None:
            return
        self._flights.pop(key, None)
        flight.set_result(None)


class _Joined:
    """What `ajoin` gives. No async generator: a loop that ends would close that one beside the stream it is in."""

    def __init__(self, flights: Flights, key: str | None) -> None:
        self._flights, self._key = flights, key
        self._mine: Future[None] | None = None

    async def __aenter__(self) -> None:
        mine, flight = self._flights._board(self._key)
        if mine:
            self._mine = flight
        elif flight:
            await self._flights._await(flight)

    async def __aexit__(self, *_: object) -> None:
        self._flights._leave(self._key, self._mine)


def _wait(flight: Future[None], seconds: float) -> None:
    """Until the flight is over, or so long; in short pieces, since one that ends in the garbage collector of the thread
    that waits may find it about to sleep, and wake nobody."""
    until = monotonic() + seconds
    while not flight.done() and (left := until - monotonic()) > 0:
        with suppress(TimeoutError):
            flight.result(min(left, WAIT_SECONDS))


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
