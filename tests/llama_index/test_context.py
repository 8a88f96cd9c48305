"""Context in an order that prompts share."""

from __future__ import annotations

import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

from llama_index_smartcache import CITATION, CacheAwareContext, SmartCacheQueryEngine
from llama_index_smartcache.nodes import chunk_of

NODES = {name: TextNode(text=f"Fact {name}.", id_=name) for name in "abc"}


def found(names: str) -> list[NodeWithScore]:
    return [NodeWithScore(node=NODES[name], score=1 - place / 10) for place, name in enumerate(names)]


def ordered(names: str, **settings) -> list[NodeWithScore]:
    return CacheAwareContext(**settings).postprocess_nodes(found(names))


def ids(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node_id for node in nodes]


def test_b34_the_same_set_has_the_same_order():
    assert ids(ordered("abc")) == ids(ordered("cab")) == ids(ordered("aabc"))
    assert sorted(ids(ordered("abc"))) == ["a", "b", "c"]


def test_b34_a_citation_number_follows_its_node():
    assert {node.node_id: node.metadata[CITATION] for node in ordered("cab")} == {"c": 1, "a": 2, "b": 3}


def test_b34_the_prompt_shows_no_citation_number():
    assert [node.node.get_content(MetadataMode.LLM) for node in ordered("a")] == ["Fact a."]
    assert [node.node.get_content(MetadataMode.EMBED) for node in ordered("a")] == ["Fact a."]


def test_b34_scores_stay_with_their_nodes():
    assert {node.node_id: node.score for node in ordered("cab")} == {"c": 1.0, "a": 0.9, "b": 0.8}


def test_b34_the_callers_nodes_are_left_as_they_are():
    nodes = found("cab")
    CacheAwareContext().postprocess_nodes(nodes)
    assert ids(nodes) == ["c", "a", "b"]
    assert all(CITATION not in node.metadata for node in nodes)


def test_the_given_order_may_be_kept():
    assert ids(ordered("cab", order="given")) == ["c", "a", "b"]


async def test_it_works_in_coroutines():
    assert ids(await CacheAwareContext().apostprocess_nodes(found("cab"))) == ids(ordered("abc"))


def test_prompts_of_an_uncached_engine_share_their_context(index, llm):
    engine = index.as_query_engine(llm=llm, similarity_top_k=2, node_postprocessors=[CacheAwareContext()])
    for question in ("goods sent back", "hours on one charge"):
        engine.query(question)
    contexts = {prompt.split("Query:")[0] for prompt in llm.prompts}
    assert len(contexts) == 1


def test_a_citation_number_changes_no_answer_of_a_cached_engine(index, llm, cache):
    inner = index.as_query_engine(llm=llm, similarity_top_k=2, node_postprocessors=[CacheAwareContext()])
    engine = SmartCacheQueryEngine(inner, cache)
    first, again = engine.query("goods sent back"), engine.query("goods sent back")
    assert again.metadata["smartcache"]["served_by"] == "exact"
    assert again.source_nodes == first.source_nodes


@pytest.mark.parametrize("is_async", [False, True])
async def test_each_scope_of_a_cached_engine_has_an_order_of_its_own(index, llm, cache, is_async):
    context = CacheAwareContext()
    inner = index.as_query_engine(llm=llm, similarity_top_k=2, node_postprocessors=[context])
    for scope in ("acme", "globex"):
        engine = SmartCacheQueryEngine(inner, cache, scope=scope)
        _ = await engine.aquery("goods sent back") if is_async else engine.query("goods sent back")
    planned = context._planned
    chunks = [chunk_of(NodeWithScore(node=node)) for node in index.docstore.docs.values()]
    assert {scope: [planned.uses(one, scope=scope) for one in chunks] for scope in ("", "acme", "globex")} == {
        "": [0, 0],
        "acme": [1, 1],
        "globex": [1, 1],
    }
