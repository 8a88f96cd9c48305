"""A request under way: its keys, and what was known when it began."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from smartcache.begun import Begun, Forgets, Moment
from smartcache.dialogue import Dialogue, request_bytes
from smartcache.errors import UnstableKey
from smartcache.events import Events
from smartcache.facts import ReadTexts
from smartcache.keys import digest
from smartcache.knowledge import Knowledge
from smartcache.policy import samples
from smartcache.signals import Told
from smartcache.types import Answer, Request


@dataclass(frozen=True, slots=True)
class Asked:
    """One request with its keys. `began`: what was known and forgotten by then. `bypass`: why the cache has no part in
    it, or None. `refresh`: answer anew, and store. `exact_only`: no near question will do. `tell` reads the dialogue,
    which an exact hit has no need of."""

    request: Request
    began: Moment
    bypass: str | None = None
    refresh: bool = False
    exact_only: bool = False
    key: str = ""
    bytes: bytes = b""
    tell: Callable[[], Told] = field(default=lambda: Told(Dialogue((), "")), compare=False)

    @property
    def told(self) -> Told:
        return self.tell()

    @property
    def dialogue(self) -> Dialogue:
        return self.told.dialogue

    @property
    def sequence(self) -> int:
        """How many knowledge updates were known when it began."""
        return self.began.updates

    @property
    def is_fresh(self) -> bool:
        """Whether nothing remembered may be used."""
        return self.refresh or self.bypass is not None

    @property
    def flight(self) -> str | None:
        """The key under which equal requests wait for one call, None where each is on its own."""
        return None if self.is_fresh else self.key


class Desk:
    """Takes requests in. `options["cache"]` may be False (pass the cache by), "refresh", or "exact" (compare the whole
    request and embed nothing: for prompts whose question cannot be told from what surrounds it)."""

    def __init__(
        self,
        knowledge: Knowledge,
        forgets: Forgets,
        events: Events,
        read_text: ReadTexts,
        refresh: Callable[[], object],
        *,
        cache_sampled: bool,
    ) -> None:
        """`refresh`: takes in what other processes told."""
        self._read_text, self._refresh = read_text, refresh
        self._knowledge, self._forgets, self._events = knowledge, forgets, events
        self._cache_sampled = cache_sampled
        self._begun = Begun()

    def ask(self, request: Request) -> Asked:
        """The request with its keys; one that passes the cache by is counted."""
        asked = self.read(request)
        if asked.bypass:
            self._events.emit("bypass", asked.bypass)
        return asked

    def begin(self, asked: Asked, hit: Answer | None) -> None:
        """Notes when a request began that was not answered here: its answer may be stored later."""
        if hit is None and asked.bypass is None:
            self._begun.note(asked.key, asked.began)

    def forget_texts(self) -> None:
        """Drops what was read of texts only to be quick."""
        self._read_text.clear()

    def up_to_date(self, asked: Asked) -> Asked:
        """The request as it is taken up, after all that other processes told by now: what is made from here on is no
        older than that. What was forgotten since it was asked stays so. It may wait for the file."""
        with self._events.fail_open("news"):
            self._refresh()
        sequence = self._knowledge.sequence
        return asked if sequence == asked.sequence else replace(asked, began=replace(asked.began, updates=sequence))

    def ask_to_store(self, request: Request) -> Asked:
        """The request as of when it was looked up, or as of now where it was not."""
        asked = self.up_to_date(self.read(request))
        return replace(asked, began=self._begun.end(asked.key, asked.began), refresh=False)

    def read(self, request: Request) -> Asked:
        """The request with its keys, uncounted."""
        if not isinstance(request, Request):
            raise TypeError(
                f"a request is a Request, not {type(request).__name__}: Request([Turn('user', 'How do I …?')])"
            )
        began = Moment(self._knowledge.sequence, self._forgets.count(request.scope))
        tell = cache(lambda: Told(Dialogue.of(request, self._read_text)))
        choice = (request.options or {}).get("cache")
        try:
            raw = request_bytes(request)
        except UnstableKey as error:
            self._events.emit("trouble", "unstable_key", error=error)
            return Asked(request, began, "unstable_key", tell=tell)
        bypass = "sampling" if samples(request.options) and not self._cache_sampled else None
        bypass = "requested" if choice is False else bypass
        refresh, exact_only = choice == "refresh", choice == "exact"
        return Asked(request, began, bypass, refresh, exact_only, digest(raw), raw, tell)
