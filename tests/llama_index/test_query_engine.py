"""A cached query engine: the same responses as without, from the cache where that is right."""

from __future__ import annotations

import asyncio
import threading

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import AsyncStreamingResponse, PydanticResponse, Response, StreamingResponse
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters
from pydantic import BaseModel

from llama_index_smartcache import SmartCacheQueryEngine
from smartcache import SmartCache
from smartcache.testing import BagOfWordsEmbedder, TableEmbedder

BACK = "How long may goods be sent back?"
BACK_IN_OTHER_WORDS = "May goods be sent back how long?"
HOURS = "How many hours does the hub run on one charge?"


def served_by(response) -> str:
    return response.metadata["smartcache"]["served_by"]


def fields(response) -> tuple:
    metadata = {name: value for name, value in (response.metadata or {}).items() if name != "smartcache"}
    return type(response), response.response, response.source_nodes, metadata


# The path of a query.


def test_a_new_question_goes_through_the_inner_engine(index, engine_over, llm):
    response = engine_over(index).query(BACK)
    assert (served_by(response), str(response)) == ("model", "answer 1 of the model")
    assert "within thirty days" in llm.prompts[0]


def test_the_same_question_again_is_the_same_response_field_by_field(index, engine_over, llm):
    engine = engine_over(index)
    first, again = engine.query(BACK), engine.query(BACK)
    assert (served_by(again), llm.calls) == ("exact", 1)
    assert fields(again) == fields(first)
    assert again.source_nodes[0].score == pytest.approx(first.source_nodes[0].score)


def test_in_shadow_mode_the_inner_engine_answers_each_time(index, llm):
    with SmartCache.open(embedder=BagOfWordsEmbedder(), shadow=True, strict=True) as cache:
        engine = SmartCacheQueryEngine(index.as_query_engine(llm=llm, similarity_top_k=1), cache)
        assert [served_by(engine.query(text)) for text in (BACK, BACK_IN_OTHER_WORDS)] == ["model", "model"]
        assert (llm.calls, [record.layer for record in cache.shadow_records()]) == (2, ["semantic"])


def test_a_near_question_is_served_semantically(index, engine_over):
    engine = engine_over(index)
    engine.query(BACK)
    mark = engine.query(BACK_IN_OTHER_WORDS).metadata["smartcache"]
    assert mark["served_by"] == "semantic"
    assert mark["similarity"] == pytest.approx(1.0)
    assert mark["age_seconds"] >= 0
    assert mark["entry_id"]


def test_another_question_misses(index, engine_over):
    engine = engine_over(index)
    engine.query(BACK)
    assert served_by(engine.query(HOURS)) == "model"


async def test_async_queries_are_cached(index, engine_over, llm):
    engine = engine_over(index)
    first, again = await engine.aquery(BACK), await engine.aquery(BACK)
    assert (served_by(first), served_by(again), llm.calls) == ("model", "exact", 1)
    assert fields(again) == fields(first)


async def test_plain_and_async_queries_share_answers(index, engine_over, llm):
    engine = engine_over(index)
    await engine.aquery(BACK)
    assert (served_by(engine.query(BACK)), llm.calls) == ("exact", 1)


def test_an_answer_survives_a_restart(tmp_path, index, llm):
    for expected in ("model", "exact"):
        with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(), strict=True) as cache:
            engine = SmartCacheQueryEngine(index.as_query_engine(llm=llm), cache, source="docs")
            assert served_by(engine.query(BACK)) == expected


def test_what_the_model_raises_is_raised(index, engine_over, make_llm):
    def fail(prompt, count):
        raise ConnectionError("no model today")

    with pytest.raises(ConnectionError, match="no model today"):
        engine_over(index, llm=make_llm(fail)).query(BACK)


# B57: the embedder of the cache.


def test_b57_another_embedder_finds_nothing_of_the_first_ones(tmp_path, index, llm):
    for name, question, expected in (("a", BACK, "model"), ("b", BACK_IN_OTHER_WORDS, "model"), ("a", BACK, "exact")):
        with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(name=name), strict=True) as cache:
            engine = SmartCacheQueryEngine(index.as_query_engine(llm=llm), cache, source="docs")
            assert served_by(engine.query(question)) == expected


# B03: what is compared is the question, whatever the chunks and the template around it.


def test_b03_other_questions_over_the_same_chunks_miss(index, engine_over, llm):
    engine = engine_over(index, similarity_top_k=2)
    for question in ("tell a joke", "1+1?", "weather?"):
        assert served_by(engine.query(question)) == "model"
    assert llm.calls == 3


def test_b03_the_question_over_the_same_chunks_hits(index, engine_over):
    engine = engine_over(index, similarity_top_k=2)
    engine.query("tell a joke")
    assert served_by(engine.query("a joke, tell")) == "semantic"


# B10: everything that shapes the answer is in the key, as it is at the call.


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", 1.0), ("model", "another"), ("system_prompt", "Speak French.")]
)
def test_b10_another_setting_of_the_model_misses(index, engine_over, llm, name, value):
    engine = engine_over(index)
    engine.query(BACK)
    setattr(llm, name, value)
    assert served_by(engine.query(BACK)) == "model"


def test_b10_the_setting_put_back_hits(index, engine_over, llm):
    engine = engine_over(index)
    engine.query(BACK)
    llm.temperature = 1.0
    llm.temperature = 0.0
    assert served_by(engine.query(BACK)) == "exact"


def test_b10_another_prompt_misses(index, engine_over):
    engine = engine_over(index)
    engine.query(BACK)
    template = PromptTemplate("As a pirate: {context_str} {query_str}")
    engine.update_prompts({"response_synthesizer:text_qa_template": template})
    assert served_by(engine.query(BACK)) == "model"


@pytest.mark.parametrize(
    "settings",
    [
        {"similarity_top_k": 2},
        {"filters": MetadataFilters(filters=[ExactMatchFilter(key="page", value=1)])},
        {"response_mode": "refine"},
    ],
    ids=["top k", "filters", "response mode"],
)
def test_b10_another_retriever_or_synthesizer_misses(index, engine_over, settings):
    engine_over(index).query(BACK)
    assert served_by(engine_over(index, **settings).query(BACK)) == "model"


def test_b10_an_equal_engine_hits(index, engine_over):
    engine_over(index).query(BACK)
    assert served_by(engine_over(index).query(BACK)) == "exact"


def test_b10_another_index_misses_unless_both_are_named_one_source(index, engine_over, embedding):
    other = VectorStoreIndex.from_documents([Document(text="Returns: never.", id_="returns")], embed_model=embedding)
    engine_over(index).query(BACK)
    assert served_by(engine_over(other).query(BACK)) == "model"
    engine_over(index, source="docs").query(BACK)
    assert served_by(engine_over(index, source="docs").query(BACK)) == "exact"


def test_b10_custom_embedding_texts_are_part_of_the_key(index, engine_over):
    engine = engine_over(index)
    engine.query(QueryBundle(BACK, custom_embedding_strs=["battery hours"]))
    assert served_by(engine.query(BACK)) == "model"
    assert served_by(engine.query(QueryBundle(BACK, custom_embedding_strs=["battery hours"]))) == "exact"


# B22: tenants.


def test_b22_another_scope_misses(index, llm):
    with SmartCache.open(embedder=TableEmbedder({("my balance", "what is my balance"): 0.99}), strict=True) as cache:
        for scope, question in (("a", "my balance"), ("b", "my balance"), ("c", "what is my balance")):
            engine = SmartCacheQueryEngine(index.as_query_engine(llm=llm), cache, scope=scope)
            assert served_by(engine.query(question)) == "model"
        engine = SmartCacheQueryEngine(index.as_query_engine(llm=llm), cache, scope="a")
        assert served_by(engine.query("what is my balance")) == "semantic"


# B15: equal text does not merge documents.


def test_b15_two_documents_with_equal_text_keep_their_names(engine_over, embedding):
    documents = [Document(text="The fee is low.", id_=name) for name in ("A", "B")]
    index = VectorStoreIndex.from_documents(documents, embed_model=embedding)
    engine = engine_over(index, similarity_top_k=2)
    for _ in range(2):
        response = engine.query("How low is the fee?")
        assert {node.node.ref_doc_id for node in response.source_nodes} == {"A", "B"}


# B36: what the caller does to a response stays with the caller.


def test_b36_a_response_is_the_callers_own(index, engine_over):
    engine = engine_over(index)
    first = engine.query(BACK)
    kept = fields(engine.query(BACK))
    for response in (first, engine.query(BACK)):
        response.response = "tampered"
        response.source_nodes[0].node.metadata["page"] = 99
        response.source_nodes[0].node.set_content("tampered")
        response.source_nodes.append(response.source_nodes[0])
        response.metadata.clear()
    assert fields(engine.query(BACK)) == kept


def test_b36_metadata_that_cannot_be_written_is_not_stored_and_counted(cache, llm):
    node = TextNode(text="The fee is low.", id_="fee", metadata={"lock": threading.Lock()})
    engine = SmartCacheQueryEngine(RetrieverQueryEngine(Fixed([node]), synthesizer(llm)), cache)
    assert [served_by(engine.query("How low is the fee?")) for _ in range(2)] == ["model", "model"]
    assert cache.stats().not_stored == {"not_restorable": 2}


# B35: structured answers.


class Fee(BaseModel):
    amount: int


def test_b35_a_structured_response_comes_back_in_its_class(index, cache, make_llm):
    llm = make_llm(lambda prompt, count: f'{{"amount": {count}}}', is_chat_model=False)
    inner = index.as_query_engine(llm=llm.as_structured_llm(Fee), similarity_top_k=1)
    engine = SmartCacheQueryEngine(inner, cache)
    first, again = engine.query("What is the fee?"), engine.query("What is the fee?")
    assert isinstance(again, PydanticResponse)
    assert (again.response, served_by(again), llm.calls) == (Fee(amount=1), "exact", 1)
    assert fields(again) == fields(first)


# B41: streams.


def test_b41_a_stream_is_read_and_written(index, engine_over, llm):
    engine = engine_over(index, streaming=True)
    first, again = engine.query(BACK), None
    text = "".join(first.response_gen)
    again = engine.query(BACK)
    assert isinstance(again, StreamingResponse)
    pieces = list(again.response_gen)
    assert ("".join(pieces), served_by(first), served_by(again), llm.calls) == (text, "model", "exact", 1)
    assert len(pieces) > 1
    assert again.source_nodes == first.source_nodes


async def test_b41_an_async_stream_is_read_and_written(index, engine_over, llm):
    engine = engine_over(index, streaming=True)
    first = await engine.aquery(BACK)
    text = "".join([piece async for piece in first.async_response_gen()])
    again = await engine.aquery(BACK)
    assert isinstance(again, AsyncStreamingResponse)
    assert "".join([piece async for piece in again.async_response_gen()]) == text
    assert (served_by(again), llm.calls) == ("exact", 1)


def test_b41_plain_and_streamed_queries_share_answers(index, engine_over, llm):
    plain, streamed = engine_over(index), engine_over(index, streaming=True)
    text = str(plain.query(BACK))
    assert str(streamed.query(BACK)) == text
    str(streamed.query(HOURS))
    assert isinstance(plain.query(HOURS), Response)
    assert llm.calls == 2


def test_b41_a_stream_left_half_read_is_not_stored(index, engine_over, cache):
    engine = engine_over(index, streaming=True)
    pieces = engine.query(BACK).response_gen
    next(pieces)
    pieces.close()
    assert cache.stats().stored == 0
    assert served_by(engine.query(BACK)) == "model"


# B43: poisoned entries.


@pytest.mark.parametrize("ending", ["length", "content_filter"])
@pytest.mark.parametrize("streaming", [False, True])
def test_b43_an_answer_that_was_cut_is_not_stored(index, engine_over, cache, make_llm, ending, streaming):
    engine = engine_over(index, llm=make_llm(ending=ending), streaming=streaming)
    for _ in range(2):
        response = engine.query(BACK)
        str(response)
        assert served_by(response) == "model"
    assert cache.stats().not_stored == {f"finish_{ending}": 2}


async def test_b43_an_async_answer_that_was_cut_is_not_stored(index, engine_over, cache, make_llm):
    engine = engine_over(index, llm=make_llm(ending="length"))
    await engine.aquery(BACK)
    assert cache.stats().not_stored == {"finish_length": 1}


def test_b43_an_empty_answer_is_not_stored(index, engine_over, cache, make_llm):
    engine = engine_over(index, llm=make_llm(lambda prompt, count: ""))
    engine.query(BACK)
    assert cache.stats().not_stored == {"empty": 1}


def test_b43_an_answer_that_ended_is_stored(index, engine_over, make_llm):
    engine = engine_over(index, llm=make_llm(ending="stop"))
    engine.query(BACK)
    assert served_by(engine.query(BACK)) == "exact"


# B34: the order in which a retriever finds things.


class Fixed(BaseRetriever):
    """Finds the same nodes for every query."""

    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes

    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=node, score=0.5) for node in self.nodes]


def synthesizer(llm):
    return get_response_synthesizer(llm=llm)


def test_b34_the_same_nodes_in_any_order_make_the_same_prompt(cache, llm):
    nodes = [TextNode(text=f"Fact number {n}.", id_=f"n{n}") for n in range(3)]
    for order in ((0, 1, 2), (2, 0, 1), (0, 0, 1, 2)):
        engine = RetrieverQueryEngine(Fixed([nodes[n] for n in order]), synthesizer(llm))
        SmartCacheQueryEngine(engine, cache).query("What are the facts?")
    assert len(set(llm.prompts)) == 1


# Engines whose retriever is out of reach.


class Opaque(BaseQueryEngine):
    """Answers by itself, over one document."""

    def __init__(self, inner):
        super().__init__(callback_manager=None)
        self.inner = inner

    def _query(self, query_bundle):
        return self.inner.query(query_bundle)

    async def _aquery(self, query_bundle):
        return await self.inner.aquery(query_bundle)

    def _get_prompt_modules(self):
        return {}


def test_an_engine_without_a_retriever_is_cached(index, cache, llm):
    engine = SmartCacheQueryEngine(Opaque(index.as_query_engine(llm=llm)), cache)
    first, again = engine.query(BACK), engine.query(BACK)
    assert (served_by(again), llm.calls) == ("exact", 1)
    assert fields(again) == fields(first)


async def test_a_plain_stream_inside_a_coroutine_is_handed_on_and_counted(index, cache, llm):
    class Odd(Opaque):
        async def _aquery(self, query_bundle):
            return self.inner.query(query_bundle)

    engine = SmartCacheQueryEngine(Odd(index.as_query_engine(llm=llm, streaming=True)), cache)
    response = await engine.aquery(BACK)
    assert str(response) == "answer 1 of the model"
    assert cache.stats().not_stored == {"finish_passed_by": 1}


def test_two_objects_over_unnamed_retrievers_share_nothing(cache, llm):
    for text in ("The fee is 5.", "The fee is 9."):
        engine = RetrieverQueryEngine(Fixed([TextNode(text=text, id_="fee")]), synthesizer(llm))
        assert served_by(SmartCacheQueryEngine(engine, cache).query("What is the fee?")) == "model"


# B59: threads and tasks.


def test_b59_threads_may_share_an_engine(index, engine_over, make_llm):
    llm = make_llm(lambda prompt, count: "days" if "sent back" in prompt.split("Query:")[-1] else "hours")
    engine, wrong = engine_over(index, llm=llm), []

    def ask(question, expected):
        for _ in range(5):
            if str(engine.query(question)) != expected:
                wrong.append(question)

    threads = [threading.Thread(target=ask, args=pair) for pair in ((BACK, "days"), (HOURS, "hours")) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert llm.calls == 2


async def test_b59_tasks_may_share_an_engine(index, engine_over, llm):
    engine = engine_over(index)
    responses = await asyncio.gather(*(engine.aquery(BACK) for _ in range(8)))
    assert {str(response) for response in responses} == {"answer 1 of the model"}
    assert llm.calls == 1
