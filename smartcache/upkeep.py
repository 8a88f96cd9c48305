"""What keeps a cache right over time: news of the documents, reports of wrong answers, forgetting, and its counts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Self

from smartcache.assembly import Parts
from smartcache.events import Stats
from smartcache.explained import Explained
from smartcache.layers.recognition import Recognised
from smartcache.policy import HitPolicy
from smartcache.seen import SeenPrompt, seen_most
from smartcache.shadow import ShadowRecord
from smartcache.types import Answer, KnowledgeUpdate, Request

log = logging.getLogger("smartcache")
MAX_READ_REQUESTS = 10_000
NOT_FOUND = (
    "report_wrong found no such answer, and changed nothing: it was reported before, forgotten or never stored, or "
    "was asked for in another scope, of another model or with other options (what is bound is one: report it there)"
)


class Upkeep:
    """The parts of one cache, and everything asked of it beside answers; SmartCache adds the path of a request."""

    def __init__(self, parts: Parts) -> None:
        if not isinstance(parts, Parts):
            raise TypeError("a cache is made by SmartCache.open(path)")
        self.embedder, self.mode = parts.embedder, parts.mode
        self._events, self._entries, self._knowledge = parts.events, parts.entries, parts.knowledge
        self._answers, self._retrievals = parts.answers, parts.retrievals
        self._desk, self._flights, self._shadow = parts.desk, parts.flights, parts.shadow
        self._verification = parts.verification
        self._explainer = parts.explainer
        self._context, self._planned = parts.context, parts.planned

    def recognise(self, text: str) -> Recognised:
        """Which of the passages that searches found lately a prompt holds: its evidence, where only text is left."""
        return self._retrievals.recognise(text)

    def update_knowledge(self, update: KnowledgeUpdate) -> int:
        """Takes a change of the knowledge base in, whole or not at all.

        Returns how many answers it made stale, those included of which only a new search can tell. It may raise
        StoreError where the file cannot be written: this process serves nothing stale all the same; call it again.
        """
        return self._answers.update_knowledge(update)

    def known_chunks(self, source: str) -> frozenset[str]:
        """The ids of the chunks of `source` that updates of any process told of and that are not gone: what a knowledge
        base is compared with when it may have changed while no cache was open."""
        with self._events.fail_open("known_chunks"):
            self._answers.refresh()
        return self._knowledge.there(source)

    def is_told_of(self, source: str) -> bool:
        """Whether updates of any process tell of `source`, be it of nothing that is there now."""
        with self._events.fail_open("is_told_of"):
            self._answers.refresh()
        return self._knowledge.hears_of(source)

    def report_wrong(self, request: Request, answer: Answer) -> bool:
        """Never serves `answer` to `request` again, nor to what lies nearer to it than to the answer's own question.
        False, with a warning in the log, where no such answer is stored for such a request."""
        asked = self._desk.read(request)
        if not isinstance(answer, Answer):
            raise TypeError(f"the answer is the Answer that was served, not {type(answer).__name__}")
        with self._events.fail_open("report_wrong"):
            if self._answers.report_wrong(asked, answer):
                return True
            log.warning(NOT_FOUND)
        return False

    def explain(self, request: Request, count: int = 3, *, policy: HitPolicy | None = None) -> tuple[Explained, ...]:
        """Why a request would be answered from the cache, or not: of each of the `count` nearest stored questions
        whether it would be served, and what decides. Where none is compared, one without a question says why. Nothing
        is counted, and nothing stored. `policy`: as if the cache had that one, as CalibratedPolicy(max_wrong=0.005)."""
        if count < 1:
            raise ValueError(f"count is 1 or more, not {count!r}")
        if policy is not None and not hasattr(policy, "accepts"):
            raise TypeError(f"policy has no accepts: pass a HitPolicy, such as ThresholdPolicy(0.9), not {policy!r}")
        asked = self._desk.read(request)
        with self._events.fail_open("explain"):
            return self._explainer.explain(asked, count, policy)
        return ()

    def forget(
        self,
        *,
        scope: str | None = None,
        chunk_ids: Sequence[str] | None = None,
        older_than: float | None = None,
    ) -> int:
        """Removes the answers that meet every condition given, their text on disk included; returns how many.

        `older_than` is an age in seconds. `chunk_ids` are met by what rests on one of them or cites it, and by what may
        rest on anything. Retrievals of the scope, or that found one of the chunks, go too, and so does what shadow mode
        recorded of all that; a file that was found damaged and kept aside does not. Without an age, answers of the
        scope that are under way in this process are not stored either. Raises StoreError where the file cannot be
        written now, or where its log (`…-wal`) keeps the text because another program reads the file: nothing of it is
        served then; forget it again, or `close`, which tries again too.
        """
        if scope is None and chunk_ids is None and older_than is None:
            raise ValueError("say what to forget: scope=, chunk_ids= or older_than=; clear() forgets everything")
        try:
            return self._answers.forget_where(scope, chunk_ids, older_than)
        finally:
            self._forget_remembered(scope, chunk_ids)

    def clear(self, scope: str | None = None) -> None:
        """Removes every answer, or every answer of one scope, and what shadow mode recorded of it. Raises as
        `forget` does."""
        try:
            self._answers.forget_where(scope, None, None)
        finally:
            self._forget_remembered(scope)

    def _forget_remembered(self, scope: str | None, chunk_ids: Sequence[str] | None = None) -> None:
        ids = None if chunk_ids is None else [*self._knowledge.with_former(chunk_ids)]
        self._retrievals.forget(scope, ids)
        self._planned.forget(scope, ids)
        self._desk.forget_texts()
        if self._shadow:
            self._shadow.forget_texts()
        if self._verification:
            self._verification.forget_texts()

    def seen_most(self, limit: int = 10) -> list[SeenPrompt]:
        """The system prompts that most stored requests began with, scope by scope, for `LocalModel.warm`; over the
        last `MAX_READ_REQUESTS` used."""
        with self._events.fail_open("seen_most"):
            return seen_most(self._entries.requests(MAX_READ_REQUESTS), limit)
        return []

    def shadow_records(self) -> tuple[ShadowRecord, ...]:
        """What shadow mode would have served, by any process over this file, the oldest first. See
        `smartcache.shadow.compare`."""
        with self._events.fail_open("shadow_records"):
            return tuple(self._entries.shadows.all())
        return ()

    def stats(self) -> Stats:
        """What happened since this cache was opened, and what it holds."""
        entries = bytes = 0
        with self._events.fail_open("stats"):
            entries, bytes = self._entries.count(), self._entries.size_bytes()
        return self._events.stats(entries, bytes, self.mode)

    def close(self) -> None:
        """Writes what is pending. A closed cache stores and finds nothing; requests go to the model."""
        if self._verification:
            self._verification.close()
        with self._events.fail_open("close"):
            self._entries.close()

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: a copy of an application's chain shares the cache."""
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
