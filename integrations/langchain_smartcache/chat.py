"""A LangChain chat model that answers from the cache where that is right, and from the model it wraps otherwise."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, model_validator

from langchain_smartcache.arguments import checked_cache, refuse_scope, warn_of_unread_scope
from langchain_smartcache.configuration import options_of, schema_of, variant_of
from langchain_smartcache.payload import Form, answer_of
from langchain_smartcache.prompts import Found, prompt_of
from langchain_smartcache.replay import Seen, chunks_of, hit_chunks, hit_result, live_result
from langchain_smartcache.reporting import BoundChat, served
from langchain_smartcache.structured import with_model_replaced
from smartcache import Answer, Chunk, HitPolicy, Request, SmartCache, Turn
from smartcache.explained import Explained
from smartcache.paths import AsyncSearch, Search

FOR_THE_CACHE = ("cache", "sample_index")  # options of a call that the model behind never sees


class ChatSmartCache(BaseChatModel):
    """Caches `invoke`, `stream`, `batch` and their async twins of any chat model; all of them share what is stored.

        model = ChatSmartCache(model=ChatOpenAI(temperature=0), cache=SmartCache.open("answers.db"), scope="tenant")

    `scope` says who may share answers; no message and no option of a call can change it, and a call that brings a
    `scope` raises TypeError. Where the tenant comes with the call, use `configurable_fields(scope=...)`: without it, a
    scope in `config["configurable"]` is not read, as LangChain never reads one for a field that is not configurable,
    and a warning says so.
    `search` finds passages for a question, as in
    `SmartCacheRetriever.search`: where a chain's documents cannot be recognised in the prompt, it confirms hits and
    names the evidence. The documents in the prompt go to the model as they are, whatever it finds.

    A prompt in which the user says more than a line's question beside recognised documents is compared whole: nobody
    can tell the question in it from its scaffolding.

    For one call: `invoke(..., cache=False)` passes the cache by, `cache="refresh"` answers anew and stores, and
    `sample_index=n` keeps the n-th draw of a sampled answer apart. A model or call with a temperature above 0 is not
    cached otherwise (see `SmartCache.open(cache_sampled=True)`).

    `response_metadata["smartcache"]` says what happened, as `live_result` and `hit_result` document. On a hit
    `usage_metadata` is zero, so that summing it bills nothing twice; the original is kept there.
    """

    model_config = ConfigDict(extra="forbid")

    model: BaseChatModel
    smart_cache: SmartCache = Field(exclude=True)
    scope: str = ""
    search: Callable[[str], Sequence[Chunk]] | None = Field(default=None, exclude=True)
    bound: dict[str, Any] = Field(default_factory=dict)
    """Options that the model behind holds inside where no field tells them: tools it was bound to."""
    streaming: bool = False
    """As LangChain reads it: `invoke` goes through `stream`."""

    @model_validator(mode="before")
    @classmethod
    def _take_cache(cls, values: Any) -> Any:
        """`cache=` is our cache. LangChain's field of that name is False: its own cache must not answer as well."""
        if not isinstance(values, Mapping):
            return values
        given = values["smart_cache"] if "smart_cache" in values else values.get("cache")
        return {**values, "smart_cache": checked_cache(given), "cache": False}

    @model_validator(mode="after")
    def _take_surroundings(self) -> ChatSmartCache:
        """The callbacks, tags and output form of the model behind are ours as well: its own run is not started."""
        for name in ("callbacks", "tags", "metadata", "output_version"):
            setattr(self, name, _joined(getattr(self, name), getattr(self.model, name)))
        return self

    def invoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        warn_of_unread_scope(config, self.scope)
        return super().invoke(input, config, **kwargs)

    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        warn_of_unread_scope(config, self.scope)
        return await super().ainvoke(input, config, **kwargs)

    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[AIMessageChunk]:
        warn_of_unread_scope(config, self.scope)
        return super().stream(input, config, **kwargs)

    def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        warn_of_unread_scope(config, self.scope)
        return super().astream(input, config, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = self._call(messages, stop, kwargs)
        results: list[ChatResult] = []

        def generate(request: Request, chunks: tuple[Chunk, ...]) -> Answer:
            if self.model.rate_limiter:
                self.model.rate_limiter.acquire(blocking=True)
            live = self.model._generate
            results.append(live(messages, stop=stop, **_told(live, run_manager), **call.passed))
            return answer_of(results[-1], call.form)

        hits: list[ChatResult] = []
        restore = _into(hits, call.form)
        self.smart_cache.answer(call.request, generate, search=call.search, restore=restore)
        return hits[-1] if hits else live_result(results[-1])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = await asyncio.to_thread(self._call, messages, stop, kwargs)
        results: list[ChatResult] = []

        async def generate(request: Request, chunks: tuple[Chunk, ...]) -> Answer:
            if self.model.rate_limiter:
                await self.model.rate_limiter.aacquire(blocking=True)
            live = self.model._agenerate
            results.append(await live(messages, stop=stop, **_told(live, run_manager), **call.passed))
            return answer_of(results[-1], call.form)

        hits: list[ChatResult] = []
        restore = _into(hits, call.form)
        await self.smart_cache.aanswer(call.request, generate, search=call.asearch, restore=restore)
        return hits[-1] if hits else live_result(results[-1])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        call = self._call(messages, stop, kwargs)

        def generate(request: Request, chunks: tuple[Chunk, ...]) -> Iterator[ChatGenerationChunk | Answer]:
            if self.model.rate_limiter:
                self.model.rate_limiter.acquire(blocking=True)
            seen = Seen()
            if self.model._should_stream(async_api=False, **{**call.passed, "stream": True}):
                live = self.model._stream
                for chunk in live(messages, stop=stop, **_told(live, run_manager), **call.passed):
                    yield seen.passed_on(chunk)
            else:
                whole = self.model._generate
                result = whole(messages, stop=stop, **_told(whole, run_manager), **call.passed)
                for chunk in chunks_of(result.generations[0], result.llm_output, split="whole"):
                    yield seen.passed_on(chunk)
            yield seen.answer(call.form)

        yield from self.smart_cache.stream(call.request, generate, search=call.search, replay=call.replay)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        call = await asyncio.to_thread(self._call, messages, stop, kwargs)

        async def generate(request: Request, chunks: tuple[Chunk, ...]) -> AsyncIterator[ChatGenerationChunk | Answer]:
            if self.model.rate_limiter:
                await self.model.rate_limiter.aacquire(blocking=True)
            seen = Seen()
            if self.model._should_stream(async_api=True, **{**call.passed, "stream": True}):
                live = self.model._astream
                async for chunk in live(messages, stop=stop, **_told(live, run_manager), **call.passed):
                    yield seen.passed_on(chunk)
            else:
                whole = self.model._agenerate
                result = await whole(messages, stop=stop, **_told(whole, run_manager), **call.passed)
                for chunk in chunks_of(result.generations[0], result.llm_output, split="whole"):
                    yield seen.passed_on(chunk)
            yield seen.answer(call.form)

        async for chunk in self.smart_cache.astream(call.request, generate, search=call.asearch, replay=call.replay):
            yield chunk

    def _call(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> _Call:
        refuse_scope(options)
        prompt = prompt_of(messages, self.smart_cache)
        in_key = options_of(self.model, stop, {**self.bound, **options})
        if prompt.is_whole and in_key.get("cache") not in (False, "refresh"):
            in_key["cache"] = "exact"
        if not messages:  # what is asked then is for the model behind to say
            in_key["cache"] = False
        request = Request(prompt.turns or (Turn("user", ""),), self.scope, variant_of(self.model), in_key)
        passed = {name: value for name, value in options.items() if name not in FOR_THE_CACHE}
        return _Call(request, passed, Found(prompt.passages) if prompt.passages else self.search)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """As the model behind binds them; they are part of every key."""
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        bound = self.model.bind_tools(tools, **chosen, **kwargs)
        binding = bound if isinstance(bound, RunnableBinding) else RunnableBinding(bound=bound)
        model, options = binding.bound, dict(binding.kwargs)
        if not isinstance(model, BaseChatModel):
            raise TypeError(
                f"{type(self.model).__name__}.bind_tools gave a {type(model).__name__}: it cannot be cached"
            )
        in_model = {} if "tools" in options else {"tools": [schema_of(tool) for tool in tools], **chosen}
        ours = self.model_copy(update={"model": model, "bound": self.bound | in_model})
        return BoundChat(bound=ours, kwargs=options, config=binding.config)

    def bind(self, **kwargs: Any) -> Any:  # a BoundChat; what LangChain calls its own has no public name
        return BoundChat(bound=self, kwargs=kwargs)

    def report_wrong(
        self,
        input: LanguageModelInput,
        message: BaseMessage,
        *,
        config: RunnableConfig | None = None,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> bool:
        """Never again answers `input` with what it got, `message`; see `SmartCache.report_wrong`. The options are those
        of the call; of `config` only what was made configurable counts (`configurable_fields`), a scope for one."""
        answer = served(message)
        return self.smart_cache.report_wrong(self._request(input, config, stop, kwargs), answer)

    def explain(
        self,
        input: LanguageModelInput,
        *,
        count: int = 3,
        policy: HitPolicy | None = None,
        config: RunnableConfig | None = None,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> tuple[Explained, ...]:
        """Why `invoke` would answer `input` from the cache, or not; see `SmartCache.explain`. The options are those of
        the call, as for `report_wrong`."""
        return self.smart_cache.explain(self._request(input, config, stop, kwargs), count, policy=policy)

    def _request(self, input: Any, config: Any, stop: list[str] | None, options: dict[str, Any]) -> Request:
        warn_of_unread_scope(config, self.scope)
        return self._call(self._convert_input(input).to_messages(), stop, options).request

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **kwargs: Any) -> Runnable[Any, Any]:
        """As the model behind does it, with its calls through the cache."""
        if type(self.model).with_structured_output is BaseChatModel.with_structured_output:
            return super().with_structured_output(schema, include_raw=include_raw, **kwargs)
        own = self.model.with_structured_output(schema, include_raw=include_raw, **kwargs)
        return with_model_replaced(own, type(self.model), lambda model: self.model_copy(update={"model": model}))

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """The arguments as they were given: `cache` is ours, not LangChain's field of that name."""
        for name, value in super().__repr_args__():
            if name != "cache":
                yield ("cache" if name == "smart_cache" else name), value

    @property
    def _llm_type(self) -> str:
        return f"smartcache-{self.model._llm_type}"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return self.model._identifying_params

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return self.model._get_ls_params(stop=stop, **kwargs)

    def _resolve_model_profile(self) -> Any:
        return self.model.profile

    def get_token_ids(self, text: str) -> list[int]:
        return self.model.get_token_ids(text)

    def get_num_tokens(self, text: str) -> int:
        return self.model.get_num_tokens(text)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call: what the cache is asked, what the model gets, and how to search for what the answer rests on."""

    request: Request
    passed: dict[str, Any]
    search: Search | None

    @property
    def form(self) -> Form | None:
        """The class that the answer is asked for in, where it is one."""
        form = self.passed.get("response_format")
        return form if isinstance(form, type) and issubclass(form, BaseModel) else None

    def replay(self, hit: Answer) -> Iterator[ChatGenerationChunk]:
        return hit_chunks(hit, self.form)

    @property
    def asearch(self) -> AsyncSearch | None:
        search = self.search
        return search if search is None or isinstance(search, Found) else lambda query: asyncio.to_thread(search, query)


def _joined(ours: Any, theirs: Any) -> Any:
    """Both, once each, where they are lists or mappings; else ours, if there is one."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return [*ours, *(one for one in theirs if one not in ours)]
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {**theirs, **ours}
    return theirs if ours is None else ours


def _into(hits: list[ChatResult], form: Form | None) -> Callable[[Answer], None]:
    """Restores a hit and puts it there."""
    return lambda hit: hits.append(hit_result(hit, form))


def _told(method: Callable[..., Any], run_manager: Any) -> dict[str, Any]:
    """The run for callbacks, where the model's method takes one."""
    takes_it = run_manager is not None and "run_manager" in inspect.signature(method).parameters
    return {"run_manager": run_manager} if takes_it else {}
