"""SmartCache: the path of one request. Read `_path` from top to bottom; the public methods below lead to it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, Literal, Self

from smartcache import paths
from smartcache.asked import Asked
from smartcache.assembly import assemble
from smartcache.embedding import Embedder
from smartcache.events import Event, Events
from smartcache.knowledge import Basis, Verdict
from smartcache.layers.answers import Hit, Limits
from smartcache.layers.orders import ContextOrder, ContextPlan, checked_order, plan_context
from smartcache.layers.shadow import Shadow
from smartcache.lifetimes import Lifetime
from smartcache.paths import Path
from smartcache.policy import HitPolicy
from smartcache.reach import RetrievalSimilarity, checked_reaches
from smartcache.scopes import asearch_within, astream_within, awithin, search_within, stream_within, within
from smartcache.types import Answer, Chunk, Request, Turn
from smartcache.upkeep import Upkeep
from smartcache.verifying import Verifier, VerifyWhen

MAX_RECHECKS = 3  # searches a lookup may ask for, to see whether what it found is still supported


class SmartCache(Upkeep):
    """Answers requests from what was answered before where that is right, and from the model otherwise.

    Made by `SmartCache.open`. Safe to share between threads and tasks; the file may be shared between processes.
    """

    @classmethod
    def open(
        cls,
        path: str | FilePath | None = None,
        *,
        embedder: Embedder | None = None,
        policy: HitPolicy | None = None,
        mode: Literal["semantic", "exact"] = "semantic",
        max_entries: int = 100_000,
        max_bytes: int = 2**30,
        ttl_seconds: Lifetime = None,
        clock: Callable[[], float] = time.time,
        on_event: Callable[[Event], object] | None = None,
        strict: bool = False,
        cache_sampled: bool = False,
        shadow: bool = False,
        verifier: Verifier | None = None,
        verify: VerifyWhen = "before",
        retrieval_similarity: RetrievalSimilarity | None = None,
        context: ContextOrder | None = None,
    ) -> Self:
        """A cache in memory, or in the file `path` (in `smartcache.db` where `path` is a folder).

        `embedder`: None is the bundled local model. `mode`: "exact" compares whole requests only and embeds nothing.
        `ttl_seconds`: how long an answer lives by `clock`, None for ever; or a mapping from the question's intent, or a
        function of the question. `on_event` is told of each Event. `strict`
        raises the cache's own trouble instead of counting it. `cache_sampled` also keeps answers to requests that ask
        for a draw (temperature above 0). `shadow` serves nothing and records what would have been served: every answer
        is the model's, and nothing is verified; see `shadow_records`. `verifier(asked, stored)` is asked about what the
        policy only doubts: "before" that may be served, or "after", while the model answers; see
        `smartcache.verifying`. `retrieval_similarity`: how your search ranks, so that a new chunk that it would not
        find leaves an answer. `context`: the order of the chunks in a prompt. Raises ForeignStore where `path` is
        another program's file.
        """
        limits = Limits(max_entries, max_bytes, ttl_seconds, clock)
        events, order = Events(on_event, strict), checked_order(context)
        reaches = checked_reaches(retrieval_similarity)
        parts = (path, embedder, policy, mode, limits, events, cache_sampled, shadow, verifier, verify, order, reaches)
        return cls(assemble(*parts))

    def _path(self, asked: Asked, search: object, restore: paths.Restore | None) -> Path[Answer]:
        """One request, top to bottom: exact answer, semantic answer, search, context, model, store."""
        if asked.bypass is None and (hit := (yield from self._find(asked, search, restore))):
            return hit
        asked = self._desk.up_to_date(asked)  # what is found took in the news with its row
        chunks = (yield from self._retrieve(asked, asked.dialogue.query, search)) if search else None
        plan = self._plan(asked, chunks or ())
        answer = paths.with_evidence((yield paths.GenerateStep(plan.chunks)), plan.chunks if search else None)
        self._note_planned(asked, plan)
        self._store(asked, answer, chunks)
        return answer

    def _plan(self, asked: Asked, chunks: tuple[Chunk, ...]) -> ContextPlan:
        with self._events.fail_open("plan"):  # in its scope: a model that is asked what it holds, holds it by scope
            return within(asked.request, self._ordered)(chunks)
        return plan_context(chunks)

    def _ordered(self, request: Request, chunks: tuple[Chunk, ...]) -> ContextPlan:
        order, max_shift = self._context.order, self._context.max_shift
        return plan_context(chunks, order=order, planned=self._planned, max_shift=max_shift, scope=request.scope)

    def _note_planned(self, asked: Asked, plan: ContextPlan) -> None:
        """What entered a prompt may be held for the next one; not if it was to be forgotten meanwhile."""
        if plan.chunks:
            self._answers.keep(asked, lambda: self._planned.record(plan.chunks, scope=asked.request.scope))

    def _find(self, asked: Asked, search: object, restore: paths.Restore | None) -> Path[Answer | None]:
        """The exact answer, else a near one, if the knowledge base still supports it and the caller can restore it."""
        if self._shadow:
            yield from self._watch(asked, search, self._shadow)
            return None
        layer = self._verification or self._answers
        with self._events.lookup() as outcome:
            for tried, hit in enumerate(layer.lookup(asked, outcome.refusals)):
                if not (basis := (yield from self._supported(hit, asked, search, tried < MAX_RECHECKS))):
                    outcome.refusals.append("stale")
                elif self._verification and hit.is_doubtful:
                    self._verification.check(asked, hit, outcome.refusals)
                elif self._restores(answer := self._answers.served(hit), restore):
                    outcome.layer = hit.layer
                    self._answers.note_served(hit, basis)
                    return answer
                else:
                    outcome.refusals.append("not_restorable")
        return None

    def _watch(self, asked: Asked, search: object, shadow: Shadow) -> Path[None]:
        """In shadow mode: what `_find` would have served, or only the policy kept it from, is recorded."""
        with self._events.lookup() as outcome:
            watch = shadow.watch()
            for tried, hit in enumerate(self._answers.lookup(asked, outcome.refusals, watch)):
                if not (yield from self._supported(hit, asked, search, tried < MAX_RECHECKS)):
                    outcome.refusals.append("stale")
                elif watch.would_serve(hit):
                    outcome.refusals.insert(0, "shadow")
                    break
                else:
                    outcome.refusals.append("far")
            shadow.record(asked, watch)

    def _restores(self, hit: Answer, restore: paths.Restore | None) -> bool:
        """Whether the caller can make its own object of a hit: what another version wrote it may not understand."""
        with self._events.fail_open("restore"):
            if restore:
                restore(hit)
            return True
        return False

    def _supported(self, hit: Hit, asked: Asked, search: object, may_search: bool) -> Path[Basis | None]:
        """What a hit rests on now; None where that changed, or where only a search could tell and there is none."""
        basis, verdict = self._answers.judged(hit)
        if verdict is Verdict.CURRENT or (verdict is Verdict.RECHECK and not search):
            return basis
        if verdict is Verdict.STALE or not search or not may_search:
            return None
        found = yield from self._retrieve(asked, hit.entry.dialogue.query, search)
        if not self._knowledge.confirms(basis, found):
            return None
        now = Basis.of(basis.evidence, found, asked.sequence)
        kept = {ref: content for ref, content in basis.contents.items() if ref in (basis.evidence or ())}
        return replace(now, contents=now.contents | kept, checked=basis.checked)

    def _retrieve(self, asked: Asked, query: str, search: object) -> Path[tuple[Chunk, ...]]:
        scope = asked.request.scope
        known = None if asked.is_fresh or self._shadow else self._remembered(scope, query, search)
        if known is not None:
            return known
        sequence = self._knowledge.sequence
        found = paths.checked((yield paths.SearchStep(query)))
        self._answers.keep(asked, lambda: self._retrievals.store(scope, query, search, found, sequence))
        return found

    def _remembered(self, scope: str, query: str, search: object) -> tuple[Chunk, ...] | None:
        """What a search found before, if all that is known by now says that it finds the same."""
        with self._events.fail_open("retrieve"):
            self._answers.refresh()
            return self._retrievals.lookup(scope, query, search)
        return None

    def _store(self, asked: Asked, answer: Answer, chunks: tuple[Chunk, ...] | None) -> bool:
        is_stored = False
        with self._events.fail_open("store"):
            is_stored = self._answers.store(asked, answer, Basis.of(answer.evidence, chunks, asked.sequence), chunks)
        if self._shadow:
            self._shadow.compare(asked, answer)
        return is_stored

    def answer(
        self,
        request: Request,
        generate: paths.Generate,
        *,
        search: paths.Search | None = None,
        restore: paths.Restore | None = None,
    ) -> Answer:
        """A stored answer, or what `generate(request, chunks)` gives over the chunks that `search(query)` finds.

        `query` is the question, after the earlier questions that it leans on. What the two functions raise is raised.
        `restore(hit)` is where an adapter makes its own object of a hit: if it raises, that hit is a miss.
        """
        asked = self._desk.ask(request)
        with self._flights.join(asked.flight):
            path = self._path(asked, search, restore)
            return paths.walk(path, search_within(request.scope, search), within(request, generate))

    def stream(
        self,
        request: Request,
        generate_stream: paths.GenerateStream,
        *,
        search: paths.Search | None = None,
        replay: paths.Replay = paths.words,
    ) -> Iterator[Any]:
        """As `answer`, piece by piece: the model's pieces as they come, or `replay(hit)`.

        An `Answer` among the pieces is not passed on: it is stored as the whole. Without one, the strings joined are.
        A stream that its reader leaves, or that raises, is not stored. A hit that `replay` raises for is a miss.
        """
        asked, replayed = self._desk.ask(request), list[Any]()
        with self._flights.join(asked.flight):
            path = self._path(asked, search, lambda hit: replayed.extend(tuple(replay(hit))))
            searched = search_within(request.scope, search)
            yield from paths.stream(path, searched, stream_within(request, generate_stream))
            yield from replayed

    async def aanswer(
        self,
        request: Request,
        generate: paths.AsyncGenerate,
        *,
        search: paths.AsyncSearch | None = None,
        restore: paths.Restore | None = None,
    ) -> Answer:
        """As `answer`, for coroutines; the cache's own work, `restore` with it, runs beside the event loop."""
        asked = self._desk.ask(request)
        async with self._flights.ajoin(asked.flight):
            path = self._path(asked, search, restore)
            return await paths.awalk(path, asearch_within(request.scope, search), awithin(request, generate))

    async def astream(
        self,
        request: Request,
        generate_stream: paths.AsyncGenerateStream,
        *,
        search: paths.AsyncSearch | None = None,
        replay: paths.Replay = paths.words,
    ) -> AsyncIterator[Any]:
        """As `stream`, for coroutines."""
        asked, replayed = self._desk.ask(request), list[Any]()
        async with self._flights.ajoin(asked.flight):
            path = self._path(asked, search, lambda hit: replayed.extend(tuple(replay(hit))))
            searched = asearch_within(request.scope, search)
            async for piece in paths.astream(path, searched, astream_within(request, generate_stream)):
                yield piece
            for piece in replayed:
                yield piece

    def lookup(self, request: Request, *, restore: paths.Restore | None = None) -> Answer | None:
        """The stored answer, or None. A `store` of the same request that follows counts as begun now."""
        asked = self._desk.ask(request)
        hit = None if asked.bypass else paths.walk_alone(self._find(asked, None, restore))
        self._desk.begin(asked if hit else self._desk.up_to_date(asked), hit)
        return hit

    def store(self, request: Request, answer: Answer) -> bool:
        """Keeps an answer that was made elsewhere. False where it must not be kept; `stats().not_stored` says why."""
        return self._store(self._desk.ask_to_store(request), answer, None)

    def retrieve(self, query: str, search: paths.Search, *, scope: str = "") -> tuple[Chunk, ...]:
        """What `search(query)` finds, from memory as long as no update can have changed it."""
        asked = self._desk.read(Request([Turn("user", query)], scope))
        return paths.walk_alone(self._retrieve(asked, query, search), search_within(scope, search))
