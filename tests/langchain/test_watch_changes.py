"""watch_vectorstore while a store changes: what is told before and after, by whom, and what similarity lets stay."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_smartcache import SmartCacheRetriever, watch_vectorstore
from smartcache import Answer, Chunk, ChunkRef, KnowledgeUpdate, Request, RetrievalSimilarity, SmartCache, Turn
from smartcache.keys import content_version
from smartcache.testing import BagOfWordsEmbedder


def request(id: str) -> Request:
    return Request([Turn("user", f"What does document {id} say, in a word?")])


def keep(cache: Any, id: str, text: str, source: str = "house") -> None:
    """An answer that rests on one document."""
    ref = ChunkRef(id, content_version(text), source)
    cache.store(request(id), Answer(f"answer of {id}", evidence=frozenset([ref])))


def kept(cache: Any, *ids: str) -> list[bool]:
    return [cache.lookup(request(id)) is not None for id in ids]


def texts(**by_id: str) -> list[Document]:
    return [Document(id=id, page_content=text, metadata={"page": 1}) for id, text in by_id.items()]


class Calling(InMemoryVectorStore):
    """Calls `between` after each change of its own, before it returns."""

    between: Callable[[], object] = staticmethod(lambda: None)

    def add_documents(self, documents: list[Document], ids: Any = None, **kwargs: Any) -> list[str]:
        done = super().add_documents(documents, ids=ids, **kwargs)
        self.between()
        return done

    def delete(self, ids: Any = None, **kwargs: Any) -> None:
        if ids:
            super().delete(ids)
        else:
            self.store.clear()
        self.between()

    def drop_tables(self) -> None:
        self.delete()

    async def adrop_tables(self) -> None:
        self.delete()


class WithoutIds(Calling):
    """Cannot be asked by id."""

    get_by_ids = VectorStore.get_by_ids


def watched(cache: Any, kind: type[Calling] = Calling) -> Any:
    store = watch_vectorstore(kind(DeterministicFakeEmbedding(size=8)), cache, source="house")
    store.add_documents(texts(a="one", b="two"))
    for id, text in (("a", "one"), ("b", "two")):
        keep(cache, id, text)
    return store


# Told before the store changes.


@pytest.mark.parametrize("kind", [Calling, WithoutIds])
@pytest.mark.parametrize("change", [lambda s: s.delete(), lambda s: s.delete([]), lambda s: s.drop_tables()])
def test_nothing_is_served_while_a_change_runs_that_names_no_ids(cache: Any, kind: Any, change: Any) -> None:
    store, seen = watched(cache, kind), list[list[bool]]()
    store.between = lambda: seen.append(kept(cache, "a", "b"))
    change(store)
    assert seen == [[False, False]]


async def test_nor_by_coroutine(cache: Any) -> None:
    store, seen = watched(cache), list[list[bool]]()
    store.between = lambda: seen.append(kept(cache, "a", "b"))
    await store.adrop_tables()
    assert seen == [[False, False]]


def test_nor_while_a_store_without_ids_changes_one_document(cache: Any) -> None:
    store, seen = watched(cache, WithoutIds), list[list[bool]]()
    store.between = lambda: seen.append(kept(cache, "b"))
    store.delete(["a"])
    assert seen == [[False]]


def test_what_a_change_does_not_name_is_served_while_it_runs(cache: Any) -> None:
    store, seen = watched(cache), list[list[bool]]()
    store.between = lambda: seen.append(kept(cache, "a", "b"))
    store.delete(["a"])
    assert seen == [[False, True]]


def test_what_was_cleared_without_ids_and_added_again_leaves_answers_to_a_search(cache: Any) -> None:
    store = watched(cache)
    store.drop_tables()
    store.add_documents(texts(a="one", b="two"))
    retriever = SmartCacheRetriever(retriever=store.as_retriever(), cache=cache, source="house")
    found_again = [Chunk(ChunkRef("a", content_version("one"), "house"), "one")]
    assert kept(cache, "a", "b") == [False, False]
    assert (
        cache.answer(request("a"), lambda asked, found: "anew", search=lambda query: found_again).served_by == "exact"
    )
    assert cache.answer(request("b"), lambda asked, found: "anew", search=lambda query: ()).served_by == "model"
    assert {document.id for document in retriever.invoke("one")} == {"a", "b"}


@pytest.mark.parametrize("kind", [WithoutIds, Calling])
def test_facts_do_not_grow_with_changes_that_name_nothing(cache: Any, kind: Any) -> None:
    store = watched(cache, kind)
    for _ in range(2):
        store.drop_tables()
    before = len(cache.known_chunks("house"))
    for _ in range(20):
        store.drop_tables()
    assert len(cache.known_chunks("house")) == before


@pytest.mark.parametrize("kind", [WithoutIds, Calling])
def test_what_a_change_does_not_name_is_no_known_chunk(cache: Any, kind: Any) -> None:
    store = watched(cache, kind)
    store.drop_tables()
    assert cache.known_chunks("house") == {"a", "b"}


class Slow(Calling):
    """Calls `between` before all goes, as it is asked by another while it works."""

    def drop_tables(self) -> None:
        self.between()
        self.store.clear()


def test_an_answer_begun_before_all_went_is_in_doubt_once_it_is_gone(cache: Any) -> None:
    store, seen = watched(cache, Slow), list[bool]()
    retriever = SmartCacheRetriever(retriever=store.as_retriever(), cache=cache, source="house")

    def answer() -> None:
        cache.answer(request("c"), lambda asked, found: "over both", search=retriever.search)
        seen.extend(kept(cache, "c"))

    store.between = answer
    store.drop_tables()
    assert [*seen, *kept(cache, "c")] == [True, False]


# Two changes of one document at once.


class Waiting(InMemoryVectorStore):
    """Of two writers of one document: "late" begins first and writes first, then "early" begins, writes and ends."""

    def __init__(self) -> None:
        super().__init__(DeterministicFakeEmbedding(size=8))
        self.has_begun, self.may_write = threading.Event(), threading.Event()
        self.has_written, self.may_end = threading.Event(), threading.Event()

    def add_documents(self, documents: list[Document], ids: Any = None, **kwargs: Any) -> list[str]:
        text = documents[0].page_content
        if text == "v1":
            self.has_begun.set()
            assert self.may_write.wait(10)
        done = super().add_documents(documents, ids=ids, **kwargs)
        if text == "v2":
            self.has_written.set()
            assert self.may_end.wait(10)
        return done


def beside(store: Waiting, cache: Any) -> list[list[bool]]:
    """v2 is written, then v1; the writer of v1 ends first. What is kept of v1 and of v2, after each has ended."""
    seen = []
    first = threading.Thread(target=store.add_documents, args=(texts(a="v1"),))
    second = threading.Thread(target=store.add_documents, args=(texts(a="v2"),))
    first.start()
    assert store.has_begun.wait(10)
    second.start()
    assert store.has_written.wait(10)
    for done, thread in ((store.may_write, first), (store.may_end, second)):
        done.set()
        thread.join(10)
        seen.append([stays(cache, "v1"), stays(cache, "v2")])
    return seen


def stays(cache: Any, text: str) -> bool:
    """Whether an answer made now, from that text of document a, is kept."""
    asked = request(f"a, after {cache.stats().requests} others")
    ref = ChunkRef("a", content_version(text), "house")
    return cache.store(asked, Answer(text, evidence=frozenset([ref]))) and cache.lookup(asked) is not None


def test_of_two_writers_of_one_document_what_the_store_ends_up_with_is_known(cache: Any) -> None:
    store = watch_vectorstore(Waiting(), cache, source="house")
    assert beside(store, cache)[-1] == [True, False]
    assert store.store["a"]["text"] == "v1"


def test_while_another_writer_is_at_it_nothing_of_a_document_is_current(cache: Any) -> None:
    store = watch_vectorstore(Waiting(), cache, source="house")
    assert beside(store, cache)[0] == [False, False]


def test_a_lone_writer_is_taken_at_its_word(cache: Any) -> None:
    class Lagging(Calling):
        """Shows what it was given only later."""

        def get_by_ids(self, ids: Any, /) -> list[Document]:
            return [Document(id=id, page_content="one", metadata={"page": 1}) for id in ids]

    store = watched(cache, Lagging)
    store.add_documents(texts(a="changed"))
    assert (stays(cache, "one"), stays(cache, "changed")) == (False, True)


class Asked(Calling):
    """Calls `once_asked` with what it says it holds still on its way, once."""

    once_asked: Callable[[], object] | None = None
    before_writing: Callable[[str], object] = staticmethod(lambda text: None)

    def add_documents(self, documents: list[Document], ids: Any = None, **kwargs: Any) -> list[str]:
        self.before_writing(documents[0].page_content)
        return super().add_documents(documents, ids=ids, **kwargs)

    def get_by_ids(self, ids: Any, /) -> list[Document]:
        found = super().get_by_ids(ids)
        act, self.once_asked = self.once_asked, None
        if act:
            act()
        return found


def in_time(act: Callable[[], object]) -> bool:
    """Whether another thread gets it done."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(2)
    return not thread.is_alive()


def relabel(store: Any) -> None:
    """A change after which the store is asked what it holds."""
    store.add_documents([Document(id="a", page_content="one", metadata={"page": 2})])


def while_asked_after_a_change(store: Any, act: Callable[[], object]) -> None:
    """Relabels document a; `act` is called when the store has been asked, after the change, what it holds."""
    store.between = lambda: setattr(store, "between", lambda: None) or setattr(store, "once_asked", act)
    relabel(store)


def test_another_write_need_not_wait_until_a_store_has_said_what_it_holds(cache: Any) -> None:
    store, done = watched(cache, Asked), list[bool]()
    while_asked_after_a_change(store, lambda: done.append(in_time(lambda: store.add_documents(texts(z="z")))))
    assert done == [True]


def test_nor_until_the_cache_was_told_before_another_change(cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, done, tell = watched(cache), list[bool](), cache.update_knowledge

    def told(update: KnowledgeUpdate) -> int:
        monkeypatch.setattr(cache, "update_knowledge", tell)
        done.append(in_time(lambda: store.add_documents(texts(z="z"))))
        return tell(update)

    monkeypatch.setattr(cache, "update_knowledge", told)
    store.delete(["a"])
    assert done == [True]


def test_what_a_store_said_before_a_whole_other_write_is_asked_again(cache: Any) -> None:
    store = watched(cache, Asked)
    while_asked_after_a_change(store, lambda: in_time(lambda: store.add_documents(texts(a="v9"))))
    assert (stays(cache, "one"), stays(cache, "v9")) == (False, True)


def test_so_it_is_where_the_other_had_begun_before(cache: Any) -> None:
    store, has_begun, may_write = watched(cache, Asked), threading.Event(), threading.Event()

    def wait(text: str) -> None:
        if text == "v9":
            has_begun.set()
            assert may_write.wait(10)

    store.before_writing = wait
    other = threading.Thread(target=store.add_documents, args=(texts(a="v9"),))
    other.start()
    assert has_begun.wait(10)
    while_asked_after_a_change(store, lambda: (may_write.set(), other.join(10)))
    assert (stays(cache, "one"), stays(cache, "v9")) == (False, True)


async def test_a_write_that_a_store_makes_by_another_of_its_own_is_no_rival(cache: Any) -> None:
    asked = list[Any]()

    class Counting(Calling):
        def get_by_ids(self, ids: Any, /) -> list[Document]:
            asked.append(ids)
            return super().get_by_ids(ids)

        async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
            return self.add_documents(documents, **kwargs)

    store = watched(cache, Counting)
    asked.clear()
    await store.aadd_documents(texts(a="changed"))
    assert asked == [["a"], ["a"]]  # before, by either
    assert (stays(cache, "one"), stays(cache, "changed")) == (False, True)


# Metadata.


class Adding(Calling):
    """Gives metadata back with more than it was given."""

    def get_by_ids(self, ids: Any, /) -> list[Document]:
        found = super().get_by_ids(ids)
        return [doc.model_copy(update={"metadata": {**doc.metadata, "_collection": "c"}}) for doc in found]


@pytest.mark.parametrize("kind", [Calling, Adding])
def test_documents_added_again_as_they_were_keep_their_answers(cache: Any, kind: Any) -> None:
    store = watched(cache, kind)
    retriever = SmartCacheRetriever(retriever=store.as_retriever(), cache=cache, source="house")
    cache.answer(request("c"), lambda asked, found: "over both", search=retriever.search)
    store.add_documents(texts(a="one", b="two"))
    assert kept(cache, "a", "b", "c") == [True, True, True]
    store.similarity_search = None  # what was found is remembered
    assert len(cache.retrieve(request("c").query, retriever.search)) == 2


@pytest.mark.parametrize("kind", [Calling, Adding])
def test_new_metadata_is_searched_for_again_and_the_same_text_keeps_its_answers(cache: Any, kind: Any) -> None:
    store = watched(cache, kind)
    retriever = SmartCacheRetriever(retriever=store.as_retriever(), cache=cache, source="house")
    assert {document.metadata["page"] for document in retriever.invoke("one")} == {1}
    store.add_documents([Document(id="a", page_content="one", metadata={"page": 2})])
    assert {document.metadata["page"] for document in retriever.invoke("one")} == {1, 2}
    assert kept(cache, "a", "b") == [True, True]


def test_an_answer_that_a_filter_no_longer_finds_is_not_confirmed(cache: Any) -> None:
    store = watched(cache)
    on_page_1 = {"filter": lambda document: document.metadata["page"] == 1}
    inner = store.as_retriever(search_kwargs=on_page_1)
    retriever = SmartCacheRetriever(retriever=inner, cache=cache, source="house")
    cache.answer(request("c"), lambda asked, found: "over both", search=retriever.search)
    store.add_documents([Document(id="a", page_content="one", metadata={"page": 2})])
    assert cache.answer(request("c"), lambda asked, found: "over b", search=retriever.search).text == "over b"


def test_new_metadata_leaves_what_another_source_has_under_the_same_id(cache: Any) -> None:
    store = watched(cache)
    keep(cache, "c", "a bridge", source="other")
    other = ChunkRef("a", content_version("a bridge"), "other")
    cache.store(request("d"), Answer("of the other a", evidence=frozenset([other])))
    store.add_documents([Document(id="a", page_content="one", metadata={"page": 2})])
    assert kept(cache, "c", "d") == [True, True]


# Where it is known how the search ranks.


@pytest.fixture
def ranked() -> Any:
    """A cache that knows how the store ranks, the store, and a search for the nearest."""
    similarity = RetrievalSimilarity(BagOfWordsEmbedder(), count=1)
    with SmartCache.open(mode="exact", strict=True, retrieval_similarity=similarity) as cache:
        store = watch_vectorstore(Ranking(DeterministicFakeEmbedding(size=8)), cache, "house")
        retriever = SmartCacheRetriever(retriever=store.as_retriever(), cache=cache, source="house")
        yield cache, store, retriever


class Ranking(Calling):
    """Finds the nearest document by its words."""

    def similarity_search(self, query: str, k: int = 1, **kwargs: Any) -> list[Document]:
        embedder = BagOfWordsEmbedder()
        near = sorted(
            self.store, key=lambda id: -float((embedder([query]) @ embedder([self.store[id]["text"]]).T).item())
        )
        return self.get_by_ids(near[:1])


def answered(cache: Any, retriever: Any, question: str = "hello big world") -> Request:
    asked = Request([Turn("user", question)])
    cache.answer(asked, lambda request, found: found[0].text, search=retriever.search)
    return asked


def test_a_document_that_lies_farther_leaves_an_answer_and_a_nearer_one_does_not(ranked: Any) -> None:
    cache, store, retriever = ranked
    store.add_documents(texts(a="hello world", b="zebra"))
    asked = answered(cache, retriever)
    store.add_documents(texts(c="quantum zebra"))
    store.add_texts(["another zebra"])
    assert cache.lookup(asked) is not None
    store.add_documents(texts(d="hello big world"))
    assert cache.lookup(asked) is None


def test_a_change_that_names_nothing_is_never_far(ranked: Any) -> None:
    cache, store, retriever = ranked
    store.add_documents(texts(a="hello world", b="zebra"))
    asked = answered(cache, retriever)
    store.drop_tables()
    assert cache.lookup(asked) is None


def test_an_answer_begun_while_a_far_document_is_added_is_kept(ranked: Any) -> None:
    cache, store, retriever = ranked
    store.add_documents(texts(a="hello world", b="zebra"))
    asked = list[Request]()
    store.between = lambda: asked.append(answered(cache, retriever))
    store.add_documents(texts(c="quantum zebra"))
    assert cache.lookup(asked[0]) is not None


def test_news_of_documents_is_told_by_hand_as_well(ranked: Any) -> None:
    cache, store, retriever = ranked
    store.add_documents(texts(a="hello world"))
    asked = answered(cache, retriever)
    cache.update_knowledge(KnowledgeUpdate(added=retriever.search("hello world"), source="house"))
    assert cache.lookup(asked) is not None
