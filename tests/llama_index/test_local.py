"""A local model as a LlamaIndex LLM, over a model that only says what it was asked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock

from llama_index_smartcache import LocalModelLLM, SmartCacheLLM, SmartCacheQueryEngine
from smartcache import Turn


@dataclass
class Said:
    text: str
    prompt_tokens: int = 12
    cached_tokens: int = 8
    first_token_seconds: float = 0.5
    finish_reason: str = "stop"
    exact: bool = False
    recomputed_share: float | None = 0.2


@dataclass
class EchoModel:
    """Stands in for LocalModel: no weights, every call kept."""

    text: str = "It lasts ten hours."
    name: str = "echo@1"
    context_tokens: int = 8192
    finish_reason: str = "stop"
    calls: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)

    def generate(self, prompt, **options):
        self.calls.append((prompt, options))
        return Said(self.text, finish_reason=self.finish_reason)

    def stream(self, prompt, *, on_end, **options):
        yield from re.findall(r"\S+ ?", self.text)
        on_end(self.generate(prompt, **options))


MESSAGES = [ChatMessage(role="system", content="Be short."), ChatMessage(role="user", content="How long does it last?")]
TURNS = [Turn("system", "Be short."), Turn("user", "How long does it last?")]


@pytest.fixture
def model():
    return EchoModel()


@pytest.fixture
def local(model):
    return LocalModelLLM(model=model, max_new_tokens=32)


def test_a_chat_is_answered_from_its_turns(local, model):
    response = local.chat(MESSAGES)
    assert (response.message.content, response.message.role.value) == ("It lasts ten hours.", "assistant")
    assert model.calls == [(TURNS, {"max_new_tokens": 32})]


def test_a_response_tells_what_the_prefix_cache_saved_and_whether_it_is_exact(local):
    told = {"prompt_tokens": 12, "cached_tokens": 8, "first_token_seconds": 0.5, "finish_reason": "stop"}
    told |= {"exact": False, "recomputed_share": 0.2}
    assert local.chat(MESSAGES).additional_kwargs == told
    assert local.complete("Once").additional_kwargs == told
    assert list(local.stream_chat(MESSAGES))[-1].additional_kwargs == told
    assert list(local.stream_complete("Once"))[-1].additional_kwargs == told


def test_a_completion_continues_its_prompt(local, model):
    assert local.complete("Once upon").text == "It lasts ten hours."
    assert model.calls[0][0] == "Once upon"


def test_keywords_go_to_the_model(model):
    LocalModelLLM(model=model, options={"seed": 1}).chat(MESSAGES, max_tokens=5, stop=["x"])
    assert model.calls[0][1] == {"max_new_tokens": 5, "seed": 1, "stop": ["x"]}


def test_the_metadata_is_the_models(local):
    metadata = local.metadata
    assert (metadata.model_name, metadata.context_window, metadata.num_output) == ("echo@1", 8192, 32)
    assert metadata.is_chat_model


def test_streams_grow_to_the_text(local):
    pieces = list(local.stream_chat(MESSAGES))
    assert "".join(piece.delta for piece in pieces) == pieces[-1].message.content == "It lasts ten hours."
    assert [piece.text for piece in local.stream_complete("Once")][:2] == ["It ", "It lasts "]


async def test_it_works_in_coroutines(local):
    assert (await local.achat(MESSAGES)).message.content == "It lasts ten hours."
    pieces = [piece async for piece in await local.astream_chat(MESSAGES)]
    assert pieces[-1].message.content == "It lasts ten hours."


def test_an_image_is_refused_with_what_to_do(local):
    with pytest.raises(ValueError, match="give messages with one text each"):
        local.chat([ChatMessage(role="user", blocks=[ImageBlock(image=b"A")])])


def test_a_local_model_may_be_cached(local, model, cache):
    cached = SmartCacheLLM(llm=local, cache=cache)
    for expected in ("model", "exact"):
        assert cached.chat(MESSAGES).additional_kwargs["smartcache"]["served_by"] == expected
    assert len(model.calls) == 1


@pytest.mark.parametrize(("reason", "served_by"), [("length", "model"), ("stop", "exact")])
def test_b43_a_stream_is_cached_where_it_ended_by_itself(model, cache, reason, served_by):
    model.finish_reason = reason
    cached = SmartCacheLLM(llm=LocalModelLLM(model=model), cache=cache)
    list(cached.stream_chat(MESSAGES))
    assert list(cached.stream_chat(MESSAGES))[-1].additional_kwargs["smartcache"]["served_by"] == served_by


def test_a_local_model_answers_a_cached_query_engine(index, local, model, cache):
    engine = SmartCacheQueryEngine(index.as_query_engine(llm=local), cache)
    for expected in ("model", "exact"):
        response = engine.query("How many hours does the hub run?")
        assert (str(response), response.metadata["smartcache"]["served_by"]) == ("It lasts ten hours.", expected)
    assert len(model.calls) == 1


def test_a_name_where_a_model_is_wanted_says_how_to_load_it():
    with pytest.raises(TypeError, match=r"give LocalModel\.load\('org/model'\)"):
        LocalModelLLM("org/model")
