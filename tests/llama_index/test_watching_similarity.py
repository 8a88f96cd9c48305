"""A watched index beside what the cache knows of the search; and what a watch tells, and how much of it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_smartcache import watch_index
from llama_index_smartcache.inventory import Inventory
from llama_index_smartcache.nodes import chunk_of, copied
from smartcache import Answer, Request, RetrievalSimilarity, SmartCache, Turn
from smartcache.testing import BagOfWordsEmbedder

BACK = "How long may goods be sent back?"
ASKED = Request([Turn("user", BACK)])
NEAR = "How long may goods be sent back? Ninety days."
FAR = "The hub is blue and weighs a pound."


@pytest.fixture
def cache():
    """A cache that knows how the index ranks."""
    similarity = RetrievalSimilarity(BagOfWordsEmbedder(dimension=256), count=1)
    with SmartCache.open(mode="exact", strict=True, retrieval_similarity=similarity) as cache:
        yield cache


def searched(index: Any) -> Any:
    retriever = index.as_retriever(similarity_top_k=1)
    return lambda query: [chunk_of(node, "docs") for node in retriever.retrieve(query)]


def answer(index: Any, cache: Any, request: Request = ASKED) -> None:
    cache.answer(request, lambda request, found: Answer(found[0].text), search=searched(index))


@pytest.fixture
def watched(index, cache):
    watch_index(index, cache, source="docs")
    answer(index, cache)
    assert cache.lookup(ASKED)
    return index


def during(index: Any, act: Any) -> None:
    """Calls `act` while the next node is written, before it is there."""
    add = type(index.vector_store).add

    def add_late(nodes, **kwargs):
        act()
        return add(index.vector_store, nodes, **kwargs)

    object.__setattr__(index.vector_store, "add", add_late)


@pytest.mark.parametrize(("text", "stays"), [(FAR, True), (NEAR, False)])
def test_an_addition_leaves_the_answers_that_it_lies_too_far_from(watched, cache, text, stays):
    for number in range(3):  # the first far one, and those after it
        watched.insert_nodes([TextNode(text=f"{text} Part {number}")])
        assert (cache.lookup(ASKED) is not None) is stays


@pytest.mark.parametrize(("text", "stays"), [(FAR, True), (NEAR, False)])
def test_so_it_is_for_an_answer_that_was_begun_while_it_came(index, cache, text, stays):
    during(index, lambda: answer(index, cache))
    watch_index(index, cache, source="docs")
    index.insert_nodes([TextNode(text=text)])
    assert (cache.lookup(ASKED) is not None) is stays


@pytest.mark.parametrize(("text", "stays"), [(FAR, True), (NEAR, False)])
def test_news_is_told_before_the_index_changes(watched, cache, text, stays):
    seen = []
    during(watched, lambda: seen.append(cache.lookup(ASKED) is not None))
    watched.insert_nodes([TextNode(text=text)])
    assert seen == [stays]


def test_a_deletion_of_what_cannot_be_told_is_told_before_and_after(index, embedding, cache):
    other, seen = VectorStoreIndex.from_vector_store(Keeping(), embed_model=embedding), []

    def act(*args: Any, **kwargs: Any) -> None:
        seen.append(cache.lookup(ASKED) is not None)
        answer(index, cache)  # found before anything went
        seen.append(cache.lookup(ASKED) is not None)

    object.__setattr__(other.vector_store, "delete", act)
    watch_index(other, cache, source="docs")
    answer(index, cache)
    other.delete_ref_doc("battery")
    assert [*seen, cache.lookup(ASKED) is not None] == [False, True, False]


def test_a_node_that_cannot_be_copied_is_handed_out_but_for_what_can():
    class Client:
        def __deepcopy__(self, memo: object) -> Any:
            raise RuntimeError("a client is not copied")

    node = TextNode(text=NEAR, metadata={"client": Client(), "nested": {"page": 1}})
    (own,) = copied([chunk_of(node)])
    own.node.metadata["nested"]["page"] = 2
    assert own.node.metadata["client"] is node.metadata["client"]
    assert (own.node.text, node.metadata["nested"]) == (NEAR, {"page": 1})


def test_an_answer_begun_while_an_addition_fails_half_way_is_not_kept(index, cache):
    def fail() -> None:
        answer(index, cache)
        raise ConnectionError("the answer got lost")

    during(index, fail)
    watch_index(index, cache, source="docs")
    with pytest.raises(ConnectionError):
        index.insert_nodes([TextNode(text=NEAR)])
    assert cache.lookup(ASKED) is None


@pytest.mark.parametrize("embedded", [True, False])
def test_a_node_is_compared_by_the_text_that_is_embedded(watched, cache, embedded):
    hidden = {"excluded_embed_metadata_keys": [] if embedded else ["hint"], "excluded_llm_metadata_keys": ["hint"]}
    node = TextNode(text=FAR, metadata={"hint": f"{NEAR} " * 3}, **hidden)
    assert (NEAR in node.get_content(MetadataMode.EMBED)) is embedded
    watched.insert_nodes([node])
    assert (cache.lookup(ASKED) is None) is embedded


def test_what_was_found_is_compared_by_that_text_too(embedding, cache):
    far_as_prompted = TextNode(text=FAR, metadata={"hint": NEAR}, excluded_llm_metadata_keys=["hint"])
    index = VectorStoreIndex([far_as_prompted], embed_model=embedding)
    watch_index(index, cache, source="docs")
    answer(index, cache)
    index.insert_nodes([TextNode(text="May goods be old?")])  # nearer than what the prompt shows, farther than the hint
    assert cache.lookup(ASKED) is not None


class Keeping(SimpleVectorStore):
    """A vector store that keeps the texts itself."""

    stores_text: bool = True


@pytest.mark.parametrize("texts_are_kept", [True, False])
def test_a_deletion_of_what_cannot_be_told_is_never_far(index, embedding, cache, texts_are_kept):
    other = VectorStoreIndex.from_vector_store(Keeping(), embed_model=embedding) if texts_are_kept else index
    watch_index(other, cache, source="docs")
    answer(index, cache)
    other.delete_ref_doc("battery")
    assert (cache.lookup(ASKED) is None) is texts_are_kept


def test_what_is_added_again_after_a_restart_is_no_news(embedding, tmp_path):
    """Even where the vector store cannot be asked for what it holds."""
    node = TextNode(text="Returns: goods may be sent back.", id_="7", embedding=embedding.get_text_embedding("x"))
    for is_first in (True, False):
        with SmartCache.open(tmp_path / "cache.db", mode="exact", strict=True) as cache:
            other = VectorStoreIndex.from_vector_store(Keeping(), embed_model=embedding)
            watch_index(other, cache, source="docs")
            cache.answer(ASKED, lambda request, found: "said", search=lambda query: [chunk_of(node, "docs")])
            before = cache.lookup(ASKED)
            other.vector_store.add([node])
            assert before
            assert (cache.lookup(ASKED) is not None) is not is_first


def test_writes_leave_nothing_behind_but_what_they_wrote(embedding, cache):
    other = VectorStoreIndex.from_vector_store(Keeping(), embed_model=embedding)
    watch_index(other, cache, source="docs")
    told = []
    for number in range(5):
        other.insert_nodes([TextNode(text=f"Text {number}", id_=str(number))])
        other.delete_nodes(["unknown"])
        told.append(len(cache.known_chunks("docs")) - number)
    assert told == told[:1] * 5


def test_what_a_write_does_not_name_is_no_known_chunk(embedding, cache):
    other = VectorStoreIndex.from_vector_store(Keeping(), embed_model=embedding)
    watch_index(other, cache, source="docs")
    assert cache.known_chunks("docs") == frozenset()
    node = TextNode(text=NEAR, id_="new")
    other.insert_nodes([node])
    other.delete_nodes(["unknown"])
    assert cache.known_chunks("docs") == {chunk_of(node).ref.id}


def test_what_one_write_brings_and_another_beside_it_takes_is_not_taken_to_be_there(index, cache):
    watch_index(index, cache, source="docs")
    node = TextNode(text=NEAR, id_="new")
    index.insert_nodes([node])
    delete = type(index.vector_store).delete_nodes

    def add_meanwhile(node_ids, **kwargs):
        again = threading.Thread(target=index.insert_nodes, args=([TextNode(text=NEAR, id_="new")],))
        again.start()
        again.join(10)
        return delete(index.vector_store, node_ids, **kwargs)

    object.__setattr__(index.vector_store, "delete_nodes", add_meanwhile)
    index.delete_nodes(["new"])
    assert chunk_of(node).ref.id not in cache.known_chunks("docs")
    index.insert_nodes([TextNode(text=NEAR, id_="new")])
    assert chunk_of(node).ref.id in cache.known_chunks("docs")


def written_meanwhile(store: Any, meanwhile: Any) -> None:
    """Lets `meanwhile` begin and end in another thread after the next `store.add` has written and before it ends."""
    add = type(store).add

    def added(nodes: Any, **kwargs: Any) -> Any:
        done = add(store, nodes, **kwargs)
        object.__delattr__(store, "add")
        beside = threading.Thread(target=meanwhile)
        beside.start()
        beside.join(10)
        return done

    object.__setattr__(store, "add", added)


@pytest.fixture
def left_by_two_writes(index, cache):
    """Which of the texts "one" and "two" of a node the cache takes to be there, after "one" came beside a change."""

    def left(change: Any) -> list[bool]:
        watch_index(index, cache, source="docs")
        written_meanwhile(index.vector_store, lambda: change(index))
        index.insert_nodes([cut_from("a", "n", "one")])
        return [chunk_of(cut_from("a", "n", text)).ref.id in cache.known_chunks("docs") for text in ("one", "two")]

    return left


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.insert_nodes([cut_from("a", "n", "two")]),
        lambda index: index.delete_nodes(["n"]),
        lambda index: index.delete_ref_doc("a"),
        lambda index: index.vector_store.delete("a"),
    ],
)
def test_nothing_of_a_node_that_two_writes_at_once_leave_in_two_ways_is_taken_to_be_there(left_by_two_writes, change):
    assert left_by_two_writes(change) == [False, False]


@pytest.mark.parametrize(
    ("change", "there"),
    [
        (lambda index: index.insert_nodes([cut_from("a", "m", "two")]), [True, True]),
        (lambda index: index.insert_nodes([cut_from("a", "n", "one")]), [True, False]),
        (lambda index: index.delete_nodes(["m"]), [True, False]),
        (lambda index: index.vector_store.delete("b"), [True, False]),
    ],
)
def test_writes_at_once_of_other_nodes_or_of_the_same_text_count(left_by_two_writes, change, there):
    assert left_by_two_writes(change) == there


def test_what_goes_while_the_cache_is_told_that_it_came_is_not_taken_to_be_there(index, cache, monkeypatch):
    watch_index(index, cache, source="docs")
    node, tell, beside = cut_from("a", "n", "one"), cache.update_knowledge, list[threading.Thread]()

    def told(update: Any) -> int:
        if chunk_of(node, "docs").ref in [chunk.ref for chunk in update.added]:
            beside.append(threading.Thread(target=index.delete_nodes, args=(["n"],)))
            beside[-1].start()
            beside[-1].join(0.3)
        return tell(update)

    monkeypatch.setattr(cache, "update_knowledge", told)
    index.insert_nodes([node])
    (other,) = beside
    other.join(10)
    assert chunk_of(node).ref.id not in cache.known_chunks("docs")


def test_a_node_that_two_writes_left_in_two_ways_counts_again_once_it_is_written(index, cache, left_by_two_writes):
    left_by_two_writes(lambda index: index.insert_nodes([cut_from("a", "n", "two")]))
    index.insert_nodes([cut_from("a", "n", "two")])
    assert chunk_of(cut_from("a", "n", "two")).ref.id in cache.known_chunks("docs")


def cut_from(document: str, id: str, text: str = "The same text.") -> TextNode:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    return TextNode(text=text, id_=id, relationships=source)


def test_a_text_that_two_nodes_hold_is_gone_with_the_second(embedding, cache):
    index = VectorStoreIndex([], embed_model=embedding)
    watch_index(index, cache, source="docs")
    nothing = cache.known_chunks("docs")
    index.insert_nodes([cut_from("a", "1"), cut_from("a", "2"), cut_from("b", "3", "Another.")])
    counts = []
    for delete in (
        lambda: index.delete_nodes(["1"]),
        lambda: index.delete_nodes(["2"]),
        lambda: index.delete_ref_doc("b"),
    ):
        delete()
        counts.append(len(cache.known_chunks("docs") - nothing))
    assert counts == [2, 1, 0]


class Unwalked(dict):
    """A mapping that is asked by key alone."""

    def _walked(self, *args: Any) -> Any:
        raise AssertionError("a write went through all that the index holds")

    items = values = __iter__ = _walked


def test_a_write_goes_through_its_own_nodes_only():
    inventory = Inventory(is_complete=True, nodes=Unwalked())
    new, gone = inventory.add([cut_from("a", "1"), cut_from("a", "2", "Another.")], "docs")
    inventory.believed |= {chunk.ref.id for chunk in new}
    assert (len(new), gone) == (2, [])
    assert inventory.add([cut_from("a", "2", "Another.")], "docs") == ([], [])
    new, gone = inventory.add([cut_from("a", "2", "Edited.")], "docs")
    assert (len(new), len(gone)) == (1, 1)
    ids = inventory.held_by(documents=["a"], nodes=["1", "unknown"])
    assert sorted(ids) == ["1", "2"]
    assert len(inventory.going(ids)) == 1  # the edited one was not confirmed yet
    inventory.remove(ids)
    assert inventory.held_by(documents=["a"]) == []
