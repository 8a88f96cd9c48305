"""What shapes an answer beside its question is part of the key, or the cache passes the request by and counts it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from pydantic import BaseModel

from llama_index_smartcache import SmartCacheLLM

BACK = "How long may goods be sent back?"


def served_by(response) -> str:
    told = getattr(response, "metadata", None) or response.additional_kwargs
    return told["smartcache"]["served_by"]


# Models whose prompt is shaped by a function.


def as_a_sailor(prompt: Any) -> str:
    return f"As a sailor: {prompt}"


def as_a_pirate(prompt: Any) -> str:
    return f"As a pirate: {prompt}"


CALLS = {
    "completion_to_prompt": lambda llm: llm.complete(BACK),
    "messages_to_prompt": lambda llm: llm.chat([ChatMessage(role="user", content=BACK)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_another_function_that_shapes_the_prompt_misses(make_llm, cache, name):
    shaped = [SmartCacheLLM(make_llm(**{name: to_prompt}), cache) for to_prompt in (as_a_sailor, as_a_pirate)]
    assert [served_by(CALLS[name](llm)) for llm in shaped] == ["model", "model"]


@pytest.mark.parametrize("name", CALLS)
def test_the_same_function_hits(make_llm, cache, name):
    shaped = [SmartCacheLLM(make_llm(**{name: as_a_pirate}), cache) for _ in range(2)]
    assert [served_by(CALLS[name](llm)) for llm in shaped] == ["model", "exact"]


def test_a_function_without_a_name_is_passed_by_and_counted(make_llm, cache):
    llm = SmartCacheLLM(make_llm(completion_to_prompt=lambda prompt: prompt), cache)
    assert [served_by(llm.complete(BACK)) for _ in range(2)] == ["model", "model"]
    assert cache.stats().bypasses == {"unstable_key": 2}


# Searches.


class Narrowing:
    """A vector store's own filter."""


def test_a_search_narrowed_by_an_object_is_passed_by_and_counted(index, engine_over, cache):
    for _ in range(2):
        response = engine_over(index, vector_store_kwargs={"filter": Narrowing()}).query(BACK)
        assert (served_by(response), response.source_nodes[0].node.ref_doc_id) == ("model", "returns")
    assert cache.stats().bypasses == {"unstable_key": 2}


def test_a_search_narrowed_by_values_is_cached(index, engine_over):
    given = [engine_over(index, vector_store_kwargs={"tenant": tenant}).query(BACK) for tenant in ("a", "b", "a")]
    assert list(map(served_by, given)) == ["model", "model", "exact"]


# Postprocessors.


def ranking(make_llm: Any, **settings: Any) -> LLMRerank:
    prompt = settings.pop("prompt", "Rank {context_str} for {query_str}")
    llm = make_llm(lambda prompt, count: "Doc: 1, Relevance: 9", **settings)
    return LLMRerank(llm=llm, choice_select_prompt=PromptTemplate(prompt), top_n=1)


@pytest.mark.parametrize("other", [{"model": "another"}, {"prompt": "Put {context_str} in order for {query_str}"}])
def test_another_model_or_prompt_that_ranks_misses(index, engine_over, make_llm, other):
    rankers = [ranking(make_llm), ranking(make_llm, **other)]
    given = [engine_over(index, node_postprocessors=[ranker]).query(BACK) for ranker in rankers]
    assert list(map(served_by, given)) == ["model", "model"]


def test_the_same_ranking_hits(index, engine_over, make_llm):
    given = [engine_over(index, node_postprocessors=[ranking(make_llm)]).query(BACK) for _ in range(2)]
    assert list(map(served_by, given)) == ["model", "exact"]


class Keep(BaseNodePostprocessor):
    """Keeps the nodes that a function says."""

    keeps: Any = None

    def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
        return [node for node in nodes if self.keeps(node)]


def everything(node: Any) -> bool:
    return True


def what_is_near(node: Any) -> bool:
    return node.score > 0.01


def test_nodes_kept_by_another_function_miss_and_by_the_same_hit(index, engine_over):
    chosen = (everything, what_is_near, everything)
    given = [engine_over(index, node_postprocessors=[Keep(keeps=keeps)]).query(BACK) for keeps in chosen]
    assert list(map(served_by, given)) == ["model", "model", "exact"]


# Copies.


def test_a_copy_shares_the_cache(llm, cache):
    cached = SmartCacheLLM(llm, cache)
    cached.complete(BACK)
    assert served_by(copy.deepcopy(cached).complete(BACK)) == "exact"


def test_a_pickled_copy_answers_from_a_cache_of_its_own(llm, cache):
    cached = SmartCacheLLM(llm, cache)
    cached.complete(BACK)
    elsewhere = pickle.loads(pickle.dumps(cached))
    assert [served_by(elsewhere.complete(BACK)) for _ in range(2)] == ["model", "exact"]
    assert served_by(cached.complete(BACK)) == "exact"


# Structured models.


class Fee(BaseModel):
    amount: int


class Charge(BaseModel):
    amount: int


def ask_for(output: type[BaseModel], llm: Any, cache: Any) -> Any:
    return SmartCacheLLM(llm.as_structured_llm(output), cache).chat([ChatMessage(role="user", content="How much?")])


def test_b35_a_structured_answer_comes_back_in_its_class(make_llm, cache):
    llm = make_llm(lambda prompt, count: f'{{"amount": {count}}}', is_chat_model=False)
    given = [ask_for(Fee, llm, cache) for _ in range(2)]
    assert [response.raw for response in given] == [Fee(amount=1)] * 2
    assert list(map(served_by, given)) == ["model", "exact"]


def test_b35_another_class_misses(make_llm, cache):
    llm = make_llm(lambda prompt, count: f'{{"amount": {count}}}', is_chat_model=False)
    assert [ask_for(output, llm, cache).raw for output in (Fee, Charge)] == [Fee(amount=1), Charge(amount=2)]
