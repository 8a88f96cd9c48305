"""A local Hugging Face model as a LangChain chat model, with the prefix KV cache inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, UsageMetadata
from langchain_core.messages.ai import InputTokenDetails
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, field_validator

from langchain_smartcache.messages import turn_of
from smartcache import Turn

if TYPE_CHECKING:
    from smartcache.models import Generation

SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "do_sample", "seed")


class ChatLocalModel(BaseChatModel):
    """A chat model over a `LocalModel`: no prompt's known prefix is computed twice.

        chat = ChatLocalModel(model=LocalModel.load("org/model"), max_tokens=200)

    Greedy unless a sampling option is set, here or in a call. `usage_metadata["input_token_details"]["cache_read"]`
    counts the prompt tokens that were not computed; `response_metadata["exact"]` is that of the Generation. It reads
    text: other content raises ValueError. Answers from a cache are another layer: wrap it in `ChatSmartCache`.
    """

    model_config = ConfigDict(extra="forbid")

    model: Any  # a LocalModel, whose module imports torch
    max_tokens: int = 256
    stop: list[str] | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    do_sample: bool | None = None
    seed: int | None = None
    streaming: bool = False  # as LangChain reads it: `invoke` goes through `stream`

    @field_validator("model")
    @classmethod
    def _is_a_model(cls, model: Any) -> Any:
        if isinstance(model, str | Path):
            raise ValueError(f"model is a LocalModel: give LocalModel.load({str(model)!r})")
        return model

    @property
    def model_name(self) -> str:
        return str(self.model.name)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        written = self.model.generate(_turns(messages), **self._options(stop, kwargs))
        message = AIMessage(written.text, usage_metadata=_usage(written), response_metadata=self._metadata(written))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        ends: list[Generation] = []
        for piece in self.model.stream(_turns(messages), on_end=ends.append, **self._options(stop, kwargs)):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        last = AIMessageChunk(
            content="",
            usage_metadata=_usage(ends[0]),
            response_metadata=self._metadata(ends[0]),
            chunk_position="last",
        )
        yield ChatGenerationChunk(message=last)

    def _options(self, stop: list[str] | None, given: dict[str, Any]) -> dict[str, Any]:
        """A call's options over those set here, under LocalModel's names; one that it does not know raises there."""
        own = {name: value for name in SAMPLING if (value := getattr(self, name)) is not None}
        options = own | {name: value for name, value in given.items() if name not in ("stream", "max_tokens")}
        count = given.get("max_tokens") or self.max_tokens
        return {"max_new_tokens": count, "stop": stop or self.stop or (), **options}

    def _metadata(self, written: Generation) -> dict[str, Any]:
        told = {"finish_reason": written.finish_reason, "model_name": self.model_name, "exact": written.exact}
        return told if written.recomputed_share is None else told | {"recomputed_share": written.recomputed_share}

    @property
    def _llm_type(self) -> str:
        return "smartcache-local"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in SAMPLING}
        return {"model_name": self.model_name, "max_tokens": self.max_tokens, "stop": self.stop, **settings}


def _turns(messages: Sequence[BaseMessage]) -> list[Turn]:
    turns = [turn_of(message) for message in messages]
    for block in (block for turn in turns for block in (turn.data or {}).get("content", [])):
        if not isinstance(block, dict) or block.get("type") != "text":
            kind = block.get("type") if isinstance(block, dict) else type(block).__name__
            raise ValueError(f"a local model reads text, not {kind!r} content")
    return [Turn(turn.role, turn.text) for turn in turns]


def _usage(written: Generation) -> UsageMetadata:
    prompt, new = written.prompt_tokens, len(written.token_ids)
    return UsageMetadata(
        input_tokens=prompt,
        output_tokens=new,
        total_tokens=prompt + new,
        input_token_details=InputTokenDetails(cache_read=written.cached_tokens),
    )
