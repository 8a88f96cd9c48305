"""The queue of the background writer: what has to be done is not lost for what only may be."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import pytest

from smartcache.storage.write_behind import Running, WriteBehind


@dataclass(frozen=True, slots=True)
class Text:
    """A job that replaces those that begin as it does; each letter is a byte."""

    text: str
    optional: bool = False

    @property
    def nbytes(self) -> int:
        return len(self.text)

    def replaces(self, older: object) -> bool:
        return isinstance(older, Text) and self.text.startswith(older.text)

    def required(self) -> Text:
        return replace(self, optional=False)


class Held:
    """A queue of ten bytes whose thread has "x" in hand until `done`; `written` is what it did."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self._begun, self._go = threading.Event(), threading.Event()
        self.queue: WriteBehind[Text] = WriteBehind(self._work, 10)
        self.queue.put(Text("x"))
        assert self._begun.wait(10)

    def _work(self, running: Running[Text]) -> None:
        self._begun.set()
        self._go.wait(10)
        self.written.append(running.job.text)

    def done(self) -> list[str]:
        self._go.set()
        assert self.queue.close(10)
        return self.written[1:]


def test_one_that_finds_no_room_leaves_those_it_would_replace() -> None:
    held = Held()
    assert held.queue.put(Text("other"))
    assert held.queue.put(Text("ab"))
    assert not held.queue.put(Text("abcdef"))
    assert held.done() == ["other", "ab"]


def test_one_that_finds_room_replaces_them() -> None:
    held = Held()
    assert held.queue.put(Text("ab"))
    assert held.queue.put(Text("abcdef"))
    assert held.done() == ["abcdef"]


def test_an_optional_one_takes_over_the_duty_of_what_it_replaces() -> None:
    held = Held()
    assert held.queue.put(Text("ab"))
    assert held.queue.put(Text("abcd", optional=True))
    assert not held.queue.put(Text("others"))
    assert held.done() == ["abcd"]


def test_an_optional_one_makes_room() -> None:
    held = Held()
    assert held.queue.put(Text("abcd", optional=True))
    assert held.queue.put(Text("others"))
    assert held.done() == ["others"]


def test_what_is_at_work_takes_room_too() -> None:
    held = Held()
    assert held.queue.put(Text("abcde"))
    assert not held.queue.put(Text("fghij"))
    assert held.queue.put(Text("fghi"))
    assert held.done() == ["abcde", "fghi"]


def test_what_no_thread_can_do_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    queue: WriteBehind[Text] = WriteBehind(lambda running: written.append(running.job.text), 10)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError("no more threads")))
        with pytest.raises(RuntimeError, match="no more threads"):
            queue.put(Text("a"))
    assert (len(queue), queue.flush(1)) == (0, True)
    assert queue.put(Text("b"))
    assert queue.close(10)
    assert written == ["b"]


def test_one_alone_may_be_larger() -> None:
    held = Held()
    assert held.queue.put(Text("a" * 50))
    assert held.done() == ["a" * 50]
