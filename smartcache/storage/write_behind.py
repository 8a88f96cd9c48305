"""Work that waits for one background thread: bounded, dropped rather than waited for, and taken back on demand."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Condition, Thread
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


class Job(Protocol):
    """Something to do; where room is short, what is `optional` goes first."""

    @property
    def nbytes(self) -> int: ...
    @property
    def optional(self) -> bool: ...
    def replaces(self, older: object, /) -> bool: ...
    def required(self) -> Self: ...


JobT = TypeVar("JobT", bound=Job)


@dataclass(slots=True)
class Running(Generic[JobT]):
    """The job that the thread has in hand; it has to look at `cancelled` before each step that leaves something."""

    job: JobT
    cancelled: bool = False


class WriteBehind(Generic[JobT]):
    """Jobs of at most `max_bytes` together with the one at work, done one after the other; a single one that waits may
    be larger.

    `work` must not raise. The thread lives as long as there is work, and the process waits for it: what was queued is
    done before the process ends, if it is not killed.
    """

    def __init__(self, work: Callable[[Running[JobT]], None], max_bytes: int) -> None:
        self._work = work
        self._max_bytes = max_bytes
        self._changed = Condition()
        self._waiting: deque[JobT] = deque()
        self._running: Running[JobT] | None = None
        self._thread: Thread | None = None
        self._closed = False

    def __len__(self) -> int:
        with self._changed:
            return len(self._waiting) + (self._running is not None)

    def put(self, job: JobT) -> bool:
        """Queue `job` in place of those that it replaces; False where there is no room for it. Once closed, nothing is
        queued."""
        with self._changed:
            if self._closed:
                return True
            others = [other for other in self._waiting if not job.replaces(other)]
            if any(not other.optional for other in self._waiting if job.replaces(other)):
                job = job.required()  # what it replaces had to be done
            if self._is_full(others, job):
                others = [other for other in others if not other.optional]
            if self._is_full(others, job):
                return False
            self._waiting = deque([*others, job])
            if not self._alive():
                self._start()
            return True

    def cancel(self, unwanted: Callable[[JobT], bool]) -> None:
        """Take back the jobs that are `unwanted`; returns when none of them is at work any more."""
        with self._changed:
            self._take_out(unwanted)
            running = self._running
            if running is not None and unwanted(running.job):
                running.cancelled = True
                self._changed.wait_for(lambda: self._running is not running or not self._alive())

    def flush(self, timeout_seconds: float | None = None) -> bool:
        """Wait until all that was queued is done; False where that takes longer."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._alive() or (not self._waiting and self._running is None), timeout_seconds
            )

    def close(self, timeout_seconds: float | None = None) -> bool:
        """Take no more jobs, and wait for those that there are."""
        with self._changed:
            self._closed = True
        return self.flush(timeout_seconds)

    def _is_full(self, others: list[JobT], job: JobT) -> bool:
        """The job in hand holds its state too."""
        held = [*others, *([self._running.job] if self._running else [])]
        return bool(others) and sum(other.nbytes for other in held) + job.nbytes > self._max_bytes

    def _take_out(self, unwanted: Callable[[JobT], bool]) -> None:
        self._waiting = deque(job for job in self._waiting if not unwanted(job))

    def _start(self) -> None:
        """Raises RuntimeError where no thread can be started, and then nothing waits."""
        self._thread = Thread(target=self._run, name="smartcache-tiers")
        try:
            self._thread.start()
        except RuntimeError:
            self._waiting.clear()
            raise

    def _alive(self) -> bool:
        """After a fork the thread is the parent's alone."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        while (running := self._next()) is not None:
            self._work(running)

    def _next(self) -> Running[JobT] | None:
        with self._changed:
            self._running = None
            self._changed.notify_all()
            if not self._waiting:
                self._thread = None
                return None
            job = self._waiting.popleft()
            self._running = Running(job)
            return self._running
