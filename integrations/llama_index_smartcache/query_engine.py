"""A query engine that answers from the cache where that is right, and through another query engine otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_smartcache import configuration, endings
from llama_index_smartcache.arguments import check_engine, checked_cache
from llama_index_smartcache.coverage import warn_of_unwatched
from llama_index_smartcache.media import file_version
from llama_index_smartcache.nodes import NodeChunk, chunk_of, copied
from llama_index_smartcache.responses import Head, Keeping, as_stream, passed_by, restored, served, was_stream
from smartcache import Answer, Chunk, HitPolicy, Request, SmartCache, Turn
from smartcache.explained import Explained
from smartcache.paths import words


class SmartCacheQueryEngine(BaseQueryEngine):
    """Caches what `query_engine` answers, in `cache`.

    Its retriever is the search that tells whether a stored answer still holds, its synthesizer answers over the nodes
    in the order of the cache. An engine without a retriever in reach is cached too: its answers rest on their source
    nodes, and go stale whenever something is added.

    `scope` says who may share answers. `source` names the knowledge base (the same name goes to `watch_index`): engines
    share answers where it is equal, in other processes too; unnamed, it is the id of the retriever's index, or this
    very object where there is none. `variant` tells apart what cannot be seen in an engine, such as the settings of
    a retriever of your own. Prompts, model settings and LlamaIndex's own retriever settings are seen, at each call.

    Changes of an index are seen through `watch_index(index, cache)` alone. Where nothing watches one for this cache and
    source by the time of the first query, a warning goes to the log "smartcache", once for each index.

    `response.metadata["smartcache"]` says what happened: served_by, and on a hit similarity, age_seconds, entry_id.
    A hit brings the source nodes of the answer as it was made. Streams are cached as well; one that is left half read
    is not stored.
    """

    def __init__(
        self, query_engine: BaseQueryEngine, cache: SmartCache, scope: str = "", variant: str = "", source: str = ""
    ) -> None:
        check_engine(query_engine)
        super().__init__(callback_manager=query_engine.callback_manager)
        self._query_engine, self._cache = query_engine, checked_cache(cache)
        self._scope, self._variant, self._source = scope, variant, source
        retriever = configuration.retriever_of(query_engine)
        self._narrowed = configuration.Narrowed()
        self._knowledge = source or configuration.index_ids(retriever) or variant or uuid4().hex
        self._has_asked = False
        self._searches: tuple[Any, _Search | None] = (None, None)
        endings.listen()

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._query_engine.retrieve(query_bundle)

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        return self._query_engine.synthesize(query_bundle, nodes, additional_source_nodes)

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        return await self._query_engine.asynthesize(query_bundle, nodes, additional_source_nodes)

    def report_wrong(self, query: str | QueryBundle, response: RESPONSE_TYPE) -> bool:
        """Never again answers `query` with what it got, `response`; see `SmartCache.report_wrong`."""
        answer = served(response)
        request, _ = self._asked(query if isinstance(query, QueryBundle) else QueryBundle(query))
        return self._cache.report_wrong(request, answer)

    def explain(
        self, query: str | QueryBundle, *, count: int = 3, policy: HitPolicy | None = None
    ) -> tuple[Explained, ...]:
        """Why `query` would be answered from the cache, or not; see `SmartCache.explain`."""
        request, _ = self._asked(query if isinstance(query, QueryBundle) else QueryBundle(query))
        return self._cache.explain(request, count, policy=policy)

    def _get_prompts(self) -> PromptDictType:
        return self._query_engine._get_prompts()

    def _get_prompt_modules(self) -> PromptMixinType:
        return self._query_engine._get_prompt_modules()

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        self._query_engine._update_prompts(prompts_dict)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        request, search = self._asked(query_bundle)

        def generate(_: Request, chunks: tuple[Chunk, ...]) -> Iterator[Any]:
            return self._answered(query_bundle, chunks, searched=search is not None)

        pieces = self._cache.stream(request, generate, search=search, replay=self._replay(StreamingResponse))
        head: Head = next(pieces)
        if isinstance(head.response, StreamingResponse):
            return as_stream(head.told(), pieces)
        for _ in pieces:  # the end of it is the answer being stored
            pass
        return head.told()

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        request, search = self._asked(query_bundle)

        def generate(_: Request, chunks: tuple[Chunk, ...]) -> AsyncIterator[Any]:
            return self._aanswered(query_bundle, chunks, searched=search is not None)

        asearch = search.acall if search else None
        replay = self._replay(AsyncStreamingResponse)
        pieces = self._cache.astream(request, generate, search=asearch, replay=replay)
        head: Head = await anext(pieces)
        if isinstance(head.response, AsyncStreamingResponse):
            return as_stream(head.told(), pieces)
        async for _ in pieces:
            pass
        return head.told()

    def _asked(self, query_bundle: QueryBundle) -> tuple[Request, _Search | None]:
        """The request that a query is, and the search of this engine as it is set now."""
        if not self._has_asked:
            self._has_asked = True
            warn_of_unwatched(configuration.retriever_of(self._query_engine), self._cache, self._source)
        settings = configuration.fingerprint(configuration.engine_settings(self._query_engine))
        narrowed_to = self._narrowed.to(configuration.retriever_of(self._query_engine))
        embedded = {"texts": query_bundle.custom_embedding_strs, "vector": query_bundle.embedding}
        options = {"engine": settings, "knowledge": self._knowledge, "nodes": narrowed_to, "embedded": embedded}
        image = {"image": _image(query_bundle.image_path)} if query_bundle.image_path else None
        request = Request([Turn("user", query_bundle.query_str, image)], self._scope, self._variant, options)
        if not _searches(self._query_engine):
            return request, None
        if any([*embedded.values(), image]):
            return request, _Search(self._query_engine, self._source, query_bundle)
        if self._searches[0] != settings or self._searches[1] is None:
            self._searches = settings, _Search(self._query_engine, self._source)
        return request, self._searches[1]

    def _answered(self, query_bundle: QueryBundle, chunks: tuple[Chunk, ...], *, searched: bool) -> Iterator[Any]:
        """The head of the inner engine's response, its pieces where it streams, and the answer to store."""
        heard: list[str] = []
        with endings.hearing(heard):
            response = (
                self._query_engine.synthesize(query_bundle, copied(chunks))
                if searched
                else self._query_engine.query(query_bundle)
            )
        if isinstance(response, StreamingResponse):
            keeping = Keeping(response, self._source, heard, searched=searched)
            yield Head(response)
            said: list[Any] = []
            for piece in _heard(response.response_gen, heard):
                said.append(piece)
                yield piece
            yield _whole(keeping, said)
        else:
            yield from _at_once(response, self._source, heard, searched=searched)

    async def _aanswered(
        self, query_bundle: QueryBundle, chunks: tuple[Chunk, ...], *, searched: bool
    ) -> AsyncIterator[Any]:
        heard: list[str] = []
        with endings.hearing(heard):
            response = await (
                self._query_engine.asynthesize(query_bundle, copied(chunks))
                if searched
                else self._query_engine.aquery(query_bundle)
            )
        if isinstance(response, AsyncStreamingResponse):
            keeping = Keeping(response, self._source, heard, searched=searched)
            yield Head(response)
            said: list[Any] = []
            async for piece in _aheard(response.response_gen, heard):
                said.append(piece)
                yield piece
            yield _whole(keeping, said)
        else:
            for piece in _at_once(response, self._source, heard, searched=searched):
                yield piece

    def _replay(self, stream: type[Any]) -> Callable[[Answer], Iterator[Any]]:
        """How a hit comes: its head, then its words where the engine streams."""
        output, streams = configuration.output_class(self._query_engine), configuration.streams(self._query_engine)

        def replay(hit: Answer) -> Iterator[Any]:
            response = restored(hit, output)
            if isinstance(response, PydanticResponse) or not (was_stream(hit) if streams is None else streams):
                yield Head(response, hit)
                return
            yield Head(stream(iter(()), response.source_nodes, response.metadata), hit)
            yield from words(hit)

        return replay


class _Search:
    """What an engine's retriever finds, as chunks."""

    def __init__(self, engine: BaseQueryEngine, source: str, like: QueryBundle | None = None) -> None:
        self._engine, self._source, self._like = engine, source, like

    def __call__(self, query: str) -> tuple[NodeChunk, ...]:
        return self._chunks(self._engine.retrieve(self._bundle(query)))

    async def acall(self, query: str) -> tuple[NodeChunk, ...]:
        bundle, retrieve = self._bundle(query), getattr(self._engine, "aretrieve", None)
        found = await (retrieve(bundle) if retrieve else asyncio.to_thread(self._engine.retrieve, bundle))
        return self._chunks(found)

    def _bundle(self, query: str) -> QueryBundle:
        like = self._like or QueryBundle(query)
        return QueryBundle(query, like.image_path, like.custom_embedding_strs, like.embedding)

    def _chunks(self, found: Sequence[NodeWithScore]) -> tuple[NodeChunk, ...]:
        own = copied(map(chunk_of, found))  # a store in memory hands out the very nodes that it keeps
        return tuple(chunk_of(node, self._source) for node in own)


def _image(path: str) -> Any:
    """A question's image by what it shows: one that cannot be read has no stable form."""
    try:
        return [path, file_version(path)]
    except OSError:
        return configuration.Unstable()


def _searches(engine: BaseQueryEngine) -> bool:
    """Whether an engine's query is its retrieve and its synthesize, so that each may be called apart."""
    home = {name: next(kind for kind in type(engine).__mro__ if name in vars(kind))
            for name in ("_query", "retrieve", "synthesize")}  # fmt: skip
    apart = BaseQueryEngine not in (home["retrieve"], home["synthesize"])
    return apart and issubclass(home["retrieve"], home["_query"]) and issubclass(home["synthesize"], home["_query"])


def _at_once(response: Any, source: str, heard: list[str], *, searched: bool) -> Iterator[Any]:
    if isinstance(response, Response | PydanticResponse):
        keeping = Keeping(response, source, heard, searched=searched)
        yield Head(response)
        yield keeping.answer()
    else:  # a plain stream inside a coroutine, or a response of another kind: handed on as it is
        yield Head(response)
        yield passed_by("passed_by")


def _whole(keeping: Keeping, said: list[Any]) -> Answer:
    if not all(isinstance(piece, str) for piece in said):
        return passed_by("stream_of_objects")
    return keeping.answer("".join(said))


def _heard(pieces: Iterator[Any], heard: list[str]) -> Iterator[Any]:
    """The pieces of a stream; how its model calls end is heard while they are read, not in between."""
    while True:
        with endings.hearing(heard):
            piece = next(pieces, _END)
        if piece is _END:
            return
        yield piece


async def _aheard(pieces: AsyncIterator[Any], heard: list[str]) -> AsyncIterator[Any]:
    while True:
        with endings.hearing(heard):
            piece = await anext(pieces, _END)
        if piece is _END:
            return
        yield piece


_END = object()
