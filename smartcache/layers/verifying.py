"""Doubtful answers: near, but not near enough to be served before a verifier was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace

from smartcache.asked import Asked
from smartcache.events import Events
from smartcache.layers.answers import AnswerLayer, Hit
from smartcache.scopes import in_scope
from smartcache.verifying import DoubtingPolicy, Lenient, Verifier, VerifyWhen, name_of

MAX_VERIFIED = 2  # doubtful answers that a request has verified, the nearest first
MAX_WAITING = 256

_is_verifying: ContextVar[bool] = ContextVar("smartcache_is_verifying", default=False)


class Verification:
    """Looks answers up with the doubtful ones among them. That two requests were found to have one answer is kept, so
    that they are doubtful no more: the verifier is not asked again, and each is served what is stored for the other.

    "before": the verifier is asked while the request waits. "after": the model answers, and a background thread asks
    the verifier; it serves once an answer of the request's own is not there or no longer right.
    """

    def __init__(
        self, answers: AnswerLayer, events: Events, policy: DoubtingPolicy, verifier: Verifier, when: VerifyWhen
    ) -> None:
        self._answers, self._events, self._policy, self._verifier = answers, events, policy, verifier
        self._name = name_of(verifier)
        self._later = Later() if when == "after" else None

    def lookup(self, asked: Asked, refusals: list[str]) -> Iterator[Hit]:
        """What may be served, then what is doubtful. Whoever `check`s a doubtful one gets it again, if it holds."""
        if _is_verifying.get():  # a verifier that asks the cache itself would be asked about its own questions
            yield from self._answers.lookup(asked, refusals)
            return
        doubtful = []
        for hit in self._judged(asked, refusals):
            if hit.is_doubtful:
                doubtful.append(hit)
            else:
                yield hit
        for hit in doubtful:
            if refusals.count("unverified") == MAX_VERIFIED:
                return
            yield hit
            if not self._later and self._is_verified(asked, hit):
                # that took time: who knows what has happened to the entry since
                yield from (now for now in self._judged(asked, []) if now.entry.id == hit.entry.id)

    def check(self, asked: Asked, hit: Hit, refusals: list[str]) -> None:
        """Verifies a doubtful hit, now or later; where it may not be served now, that is added to `refusals`."""
        if self._later is None:
            self._verify(asked, hit)
        elif not self._later.put((asked.key, hit.entry.key), lambda: self._verify(asked, hit)):
            self._events.emit("verified", "dropped")
        if self._later or not self._is_verified(asked, hit):
            refusals.insert(0, "unverified")

    def forget_texts(self) -> None:
        """Drops what waits to be verified."""
        if self._later:
            self._later.clear()

    def close(self) -> None:
        if self._later:
            self._later.close()

    def _judged(self, asked: Asked, refusals: list[str]) -> Iterator[Hit]:
        """All that the policy accepts or doubts, the nearest first."""
        policy = Lenient(self._policy)
        for hit in self._answers.lookup(asked, refusals, policy):
            doubts = hit.layer == "semantic" and policy.doubted_last() and not self._is_verified(asked, hit)
            yield replace(hit, is_doubtful=doubts)

    def _is_verified(self, asked: Asked, hit: Hit) -> bool:
        return self._answers.is_verified(asked, hit, self._name)

    def _verify(self, asked: Asked, hit: Hit) -> None:
        ended = "failed"
        try:
            with _verifying(), self._events.fail_open("verify"):
                verdict = self._asked(asked, hit)
                if not isinstance(verdict, bool):
                    raise TypeError(f"the verifier gave {type(verdict).__name__}: return True or False, as by bool(…)")
                if verdict:
                    self._answers.store_verified(asked, hit, self._name)
                ended = "same" if verdict else "different"
        finally:
            self._events.emit("verified", ended)

    def _asked(self, asked: Asked, hit: Hit) -> object:
        """What the verifier says. In the main thread SystemExit and KeyboardInterrupt end the process, as a signal
        wants it; no signal arrives in any other, so there they are the verifier's own failure."""
        try:
            with in_scope(asked.request.scope):
                return self._verifier(asked.dialogue, hit.entry.dialogue)
        except (SystemExit, KeyboardInterrupt) as error:
            if threading.current_thread() is threading.main_thread():
                raise
            raise RuntimeError(f"the verifier raised {error!r}") from error


class Later:
    """Work that waits for one background thread: bounded, dropped rather than waited for, and not held up for when the
    process ends. The thread lives as long as there is work."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._waiting: dict[tuple[str, str], Callable[[], None]] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def put(self, key: tuple[str, str], work: Callable[[], None]) -> bool:
        """Queues `work`, unless work of the same key waits already; False where there is no room for it."""
        with self._lock:
            if self._is_closed or (key not in self._waiting and len(self._waiting) >= self._max_waiting):
                return False
            self._waiting.setdefault(key, work)
            if self._thread is None or not self._thread.is_alive():  # after a fork it is the parent's alone
                self._thread = threading.Thread(target=self._run, name="smartcache-verifying", daemon=True)
                self._thread.start()
            return True

    def clear(self) -> None:
        with self._lock:
            self._waiting.clear()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._waiting.clear()

    def _run(self) -> None:
        while work := self._next():
            with suppress(BaseException):  # counted where it happened, and raised to nobody
                work()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if not self._waiting:
                self._thread = None
                return None
            return self._waiting.pop(next(iter(self._waiting)))


@contextmanager
def _verifying() -> Iterator[None]:
    token = _is_verifying.set(True)
    try:
        yield
    finally:
        _is_verifying.reset(token)
