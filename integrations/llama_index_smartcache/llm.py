"""An LLM that answers from the cache where that is right, and through another LLM otherwise."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM, ToolSelection
from pydantic import ConfigDict, Field

from llama_index_smartcache.arguments import checked_cache, refuse_scope
from llama_index_smartcache.configuration import (
    fingerprint,
    model_settings,
    output_class_of,
    stable,
    tool_settings,
    wrapped,
)
from llama_index_smartcache.endings import finish_reason
from llama_index_smartcache.messages import Form, R, Rendered, is_rendered, turn_of
from llama_index_smartcache.responses import served
from smartcache import Answer, HitPolicy, Request, SmartCache, Turn
from smartcache.explained import Explained

# Per-call choices for the cache alone; the model never sees them.
OURS = frozenset({"cache", "sample_index"})
INHERITED = (
    "callback_manager", "system_prompt", "messages_to_prompt", "completion_to_prompt", "output_parser",
    "pydantic_program_mode", "query_wrapper_prompt",
)  # fmt: skip


class SmartCacheLLM(FunctionCallingLLM):
    """Caches what `llm` answers, in `cache`: chat, completion, both as streams, tool calls, all also async.

    `scope` says who may share answers. The key holds the model's class, metadata and settings and every keyword, as
    they are at the call. A temperature above 0, set on the model or given in the call, asks for a draw: it passes the
    cache by unless `SmartCache.open(cache_sampled=True)` or `sample_index=` says which draw. `cache=False` passes one
    call by, `cache="refresh"` answers it anew.

    A conversation may be answered from a near one. A completion, a message made from a prompt template, and anything
    the user says on more than one line are compared whole: nobody can tell the question in them from its scaffolding.
    So are answers that call tools.

    A pickled copy, as in an ingestion pipeline's workers, has a cache of its own: exact, and in memory.

    `response.additional_kwargs["smartcache"]` says what happened. Every field of a hit is as the model gave it, the
    token counts of that first call among them, except a `raw` that is a provider's own object: it is None, and
    `raw_dropped` says so. A hit fires no LLM event: no tokens were used.
    """

    model_config = ConfigDict(extra="forbid")

    cached_llm: LLM = Field(exclude=True)
    cache: Any = Field(exclude=True)
    scope: str = ""

    def __init__(self, llm: LLM, cache: SmartCache, scope: str = "", **fields: Any) -> None:
        inherited = {name: getattr(llm, name) for name in INHERITED}
        super().__init__(cached_llm=llm, cache=checked_cache(cache), scope=scope, **(inherited | fields))

    def __getstate__(self) -> dict[str, Any]:
        bare = self.model_copy()  # LlamaIndex drops what cannot be pickled, and from the object itself
        del vars(bare)["cache"]
        return super(SmartCacheLLM, bare).__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.cache = SmartCache.open(mode="exact")

    @classmethod
    def class_name(cls) -> str:
        return "SmartCacheLLM"

    @property
    def metadata(self) -> LLMMetadata:
        return self.cached_llm.metadata

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        request = self._chat_request(messages, kwargs)
        return self._answered(self._chats, request, lambda: self.cached_llm.chat(messages, **_for_model(kwargs)))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        request = self._chat_request(messages, kwargs)
        return await self._aanswered(
            self._chats, request, lambda: self.cached_llm.achat(messages, **_for_model(kwargs))
        )

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        request = self._chat_request(messages, kwargs)
        return self._streamed(self._chats, request, lambda: self.cached_llm.stream_chat(messages, **_for_model(kwargs)))

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        request = self._chat_request(messages, kwargs)
        return self._astreamed(
            self._chats, request, lambda: self.cached_llm.astream_chat(messages, **_for_model(kwargs))
        )

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        request, call = self._completion_request(prompt, formatted, kwargs), _for_model(kwargs)
        return self._answered(self._texts, request, lambda: self.cached_llm.complete(prompt, formatted, **call))

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        request, call = self._completion_request(prompt, formatted, kwargs), _for_model(kwargs)
        return await self._aanswered(self._texts, request, lambda: self.cached_llm.acomplete(prompt, formatted, **call))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        request, call = self._completion_request(prompt, formatted, kwargs), _for_model(kwargs)
        return self._streamed(self._texts, request, lambda: self.cached_llm.stream_complete(prompt, formatted, **call))

    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseAsyncGen:
        request, call = self._completion_request(prompt, formatted, kwargs), _for_model(kwargs)
        return self._astreamed(
            self._texts, request, lambda: self.cached_llm.astream_complete(prompt, formatted, **call)
        )

    def report_wrong(
        self, asked: str | Sequence[ChatMessage], response: ChatResponse | CompletionResponse, **kwargs: Any
    ) -> bool:
        """Never again answers `asked` (a prompt, or messages) with what it got, `response`; see
        `SmartCache.report_wrong`. The keywords are those of the call."""
        answer = served(response)
        return bool(self.cache.report_wrong(self._request_of(asked, kwargs), answer))

    def explain(
        self, asked: str | Sequence[ChatMessage], *, count: int = 3, policy: HitPolicy | None = None, **kwargs: Any
    ) -> tuple[Explained, ...]:
        """Why `asked` (a prompt, or messages) would be answered from the cache, or not; see `SmartCache.explain`. The
        other keywords are those of the call."""
        found: tuple[Explained, ...] = self.cache.explain(self._request_of(asked, kwargs), count, policy=policy)
        return found

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return self._with_tools.get_tool_calls_from_response(response, error_on_no_tool_call, **kwargs)

    def _prepare_chat_with_tools(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self._with_tools._prepare_chat_with_tools(*args, **kwargs)

    def _prepare_chat_with_tools_compat(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self._with_tools._prepare_chat_with_tools_compat(*args, **kwargs)

    def _validate_chat_with_tools_response(self, *args: Any, **kwargs: Any) -> ChatResponse:
        return self._with_tools._validate_chat_with_tools_response(*args, **kwargs)

    def _extend_messages(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        """Through here comes every message that LlamaIndex makes from a template."""
        return [_rendered(message) for message in super()._extend_messages(messages)]

    @property
    def _with_tools(self) -> FunctionCallingLLM:
        if not isinstance(self.cached_llm, FunctionCallingLLM):
            raise TypeError(f"{type(self.cached_llm).__name__} calls no tools: wrap a FunctionCallingLLM")
        return self.cached_llm

    @property
    def _chats(self) -> Form[ChatResponse]:
        return Form(ChatResponse, output_class_of(self.cached_llm))

    @property
    def _texts(self) -> Form[CompletionResponse]:
        return Form(CompletionResponse, output_class_of(self.cached_llm))

    def _request_of(self, asked: str | Sequence[ChatMessage], kwargs: dict[str, Any]) -> Request:
        if isinstance(asked, str):
            return self._completion_request(asked, kwargs.pop("formatted", False), kwargs)
        return self._chat_request(asked, kwargs)

    def _chat_request(self, messages: Sequence[ChatMessage], kwargs: Mapping[str, Any]) -> Request:
        options = self._options("chat", kwargs, whole=is_rendered(messages))
        return self._request(list(map(turn_of, messages)) or [Turn("user", "")], options)

    def _completion_request(self, prompt: str, formatted: bool, kwargs: Mapping[str, Any]) -> Request:
        options = self._options("complete", {**kwargs, "formatted": formatted}, whole=True)
        return self._request([Turn("user", prompt)], options)

    def _request(self, turns: list[Turn], options: dict[str, Any]) -> Request:
        return Request(turns, self.scope, self.metadata.model_name, options)

    def _options(self, call: str, kwargs: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
        refuse_scope(kwargs)
        model = wrapped(self.cached_llm)
        options = {name: stable(tool_settings(value)) for name, value in kwargs.items()}
        options.setdefault("temperature", getattr(model, "temperature", None))
        if whole:
            options.setdefault("cache", "exact")
        return options | {"llama_index": [call, fingerprint(model_settings(model))]}

    def _answered(self, form: Form[R], request: Request, call: Callable[[], R]) -> R:
        live: list[R] = []

        def generate(*_: Any) -> Answer:
            live.append(call())
            return form.answer(live[-1], _reasons(live))

        hits: list[R] = []
        self.cache.answer(request, generate, restore=lambda hit: hits.append(form.restored(hit)))
        return hits[-1] if hits else form.marked(live[-1], None)

    async def _aanswered(self, form: Form[R], request: Request, call: Callable[[], Awaitable[R]]) -> R:
        live: list[R] = []

        async def generate(*_: Any) -> Answer:
            live.append(await call())
            return form.answer(live[-1], _reasons(live))

        hits: list[R] = []
        await self.cache.aanswer(request, generate, restore=lambda hit: hits.append(form.restored(hit)))
        return hits[-1] if hits else form.marked(live[-1], None)

    def _streamed(self, form: Form[R], request: Request, call: Callable[[], Iterator[R]]) -> Generator[R, None, None]:
        def generate(*_: Any) -> Iterator[R | Answer]:
            live = _Stream(form)
            for piece in call():
                yield live.passed(piece)
            yield live.answer()

        pieces: Generator[R, None, None] = self.cache.stream(request, generate, replay=form.replay)
        return pieces

    def _astreamed(
        self, form: Form[R], request: Request, call: Callable[[], Awaitable[AsyncIterator[R]]]
    ) -> AsyncGenerator[R, None]:
        async def generate(*_: Any) -> AsyncIterator[R | Answer]:
            live = _Stream(form)
            async for piece in await call():
                yield live.passed(piece)
            yield live.answer()

        pieces: AsyncGenerator[R, None] = self.cache.astream(request, generate, replay=form.replay)
        return pieces


class _Stream:
    """A model's stream as it passes by."""

    def __init__(self, form: Form[Any]) -> None:
        self._form, self._last, self._said, self._heard = form, None, list[str](), list[str]()

    def passed(self, piece: Any) -> Any:
        """The piece as its reader gets it: a copy, so that what is done to it is not stored."""
        self._last = piece
        self._said.append(piece.delta or "")
        self._heard += _reasons([piece])
        return self._form.marked(_own(piece), None)

    def answer(self) -> Answer:
        if self._last is None:
            return Answer("")
        return self._form.streamed(self._last, self._heard, "".join(self._said))


def _reasons(responses: Sequence[Any]) -> list[str]:
    return [reason for reason in map(finish_reason, responses) if reason]


def _for_model(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name not in OURS}


def _own(piece: Any) -> Any:
    """A copy that shares nothing with the piece but what cannot be copied, and so is not stored either."""
    try:
        return piece.model_copy(deep=True)
    except TypeError:
        return piece.model_copy()


def _rendered(message: ChatMessage) -> ChatMessage:
    return Rendered(role=message.role, blocks=message.blocks, additional_kwargs=message.additional_kwargs)
