"""One call for many equal requests, and nobody who waits for himself."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from smartcache import Request, SmartCache, Turn
from smartcache.flights import Flights


@pytest.fixture
def flights():
    return Flights(max_wait_seconds=5.0)


def waits(flights: Flights, key: str) -> bool:
    """Whether another thread would wait for `key` now."""
    over = threading.Event()
    thread = threading.Thread(target=lambda: [flights.join(key).__enter__(), over.set()])
    thread.start()
    return not over.wait(0.2)


def in_a_thread(work) -> float:
    """How many seconds `work` took in a thread of its own."""
    started = time.perf_counter()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return time.perf_counter() - started


def test_another_waits_until_the_first_is_over(flights):
    with flights.join("a"):
        assert waits(flights, "a")
    assert not waits(flights, "a")


def test_two_that_ask_each_others_question_do_not_wait_for_each_other(flights):
    both = threading.Barrier(2)

    def ask(one, other):
        with flights.join(one):
            both.wait()
            with flights.join(other):
                pass
            both.wait()

    thread = threading.Thread(target=ask, args=("b", "a"))
    thread.start()
    assert in_a_thread(lambda: ask("a", "b")) < 1.0
    thread.join()


def test_streams_that_end_in_another_order_leave_no_mark(flights):
    def interleaved():
        first, second = flights.join("a"), flights.join("b")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        with flights.join("b"):  # still held by this thread: not waited for
            pass
        second.__exit__(None, None, None)
        with flights.join("a"):
            assert waits(flights, "a")

    assert in_a_thread(interleaved) < 1.0


def test_a_stream_that_another_thread_closes_leaves_no_mark(flights):
    held = flights.join("a")
    held.__enter__()
    in_a_thread(lambda: held.__exit__(None, None, None))
    with flights.join("a"):
        assert waits(flights, "a")


def test_a_loop_that_ends_under_a_half_read_stream_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    cache = SmartCache.open(mode="exact", strict=True)
    streams: list[Any] = []

    async def pieces(request: Any, chunks: Any) -> AsyncIterator[str]:
        for piece in "abc":
            await asyncio.sleep(0)
            yield piece

    async def read_one() -> None:
        streams.append(cache.astream(Request([Turn("user", "who")]), pieces))
        await anext(streams[0])

    asyncio.run(read_one())
    assert caplog.records == []
    assert cache.answer(Request([Turn("user", "who")]), lambda *_: "me").text == "me"
