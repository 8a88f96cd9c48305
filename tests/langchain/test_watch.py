"""watch_vectorstore: what a store's changes do to answers that rest on its documents."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_smartcache import SmartCacheRetriever, watch_vectorstore
from smartcache import Answer, ChunkRef, Request, Turn
from smartcache.keys import content_version


def request(id: str) -> Request:
    return Request([Turn("user", f"What does document {id} say, in a word?")])


def keep(cache: Any, id: str, text: str, source: str = "house") -> None:
    """An answer that rests on one document."""
    ref = ChunkRef(id, content_version(text), source)
    cache.store(request(id), Answer(f"answer of {id}", evidence=frozenset([ref])))


def kept(cache: Any, *ids: str) -> list[bool]:
    return [cache.lookup(request(id)) is not None for id in ids]


def texts(**by_id: str) -> list[Document]:
    return [Document(id=id, page_content=text, metadata={"source": "guide"}) for id, text in by_id.items()]


@pytest.fixture
def store(cache: Any) -> InMemoryVectorStore:
    store = watch_vectorstore(InMemoryVectorStore(DeterministicFakeEmbedding(size=8)), cache, source="house")
    store.add_documents(texts(a="one", b="two"))
    for id, text in (("a", "one"), ("b", "two")):
        keep(cache, id, text)
    return store


EDITS = {
    "add_documents": lambda store: store.add_documents(texts(a="changed")),
    "add_documents with ids": lambda store: store.add_documents([Document(page_content="changed")], ids=["a"]),
    "add_texts": lambda store: store.add_texts(["changed"], ids=["a"]),
    "delete": lambda store: store.delete(["a"]),
    "delete ids=": lambda store: store.delete(ids=["a"]),
}
ASYNC_EDITS = {
    "aadd_documents": lambda store: store.aadd_documents(texts(a="changed")),
    "aadd_texts": lambda store: store.aadd_texts(["changed"], ids=["a"]),
    "adelete": lambda store: store.adelete(["a"]),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_change_makes_stale_what_rests_on_it_and_nothing_else(store: Any, cache: Any, edit: Any) -> None:
    edit(store)
    assert kept(cache, "a", "b") == [False, True]


@pytest.mark.parametrize("edit", ASYNC_EDITS.values(), ids=ASYNC_EDITS)
async def test_a_change_by_coroutine_does_the_same(store: Any, cache: Any, edit: Any) -> None:
    await edit(store)
    assert kept(cache, "a", "b") == [False, True]


def test_a_document_added_puts_the_source_in_doubt_and_no_other_source(store: Any, cache: Any) -> None:
    keep(cache, "c", "three", source="garden")
    store.add_documents(texts(new="four"))
    assert kept(cache, "a", "c") == [False, True]


def test_deleting_and_adding_equal_text_keeps_the_answers(store: Any, cache: Any) -> None:
    store.delete(["a", "b"])
    assert kept(cache, "a", "b") == [False, False]
    store.add_documents(texts(a="one", b="two"))
    assert kept(cache, "a", "b") == [True, True]


def test_an_id_that_is_used_again_does_not_revive_the_old_text(store: Any, cache: Any) -> None:
    store.delete(["a"])
    store.add_documents(texts(a="another"))
    assert kept(cache, "a") == [False]


def test_new_metadata_alone_forgets_what_was_found_with_the_old(store: Any, cache: Any) -> None:
    retriever = SmartCacheRetriever(retriever=store.as_retriever(), cache=cache, source="house")
    assert {document.metadata["source"] for document in retriever.invoke("one")} == {"guide"}
    store.add_documents([Document(id="a", page_content="one", metadata={"source": "new guide"})])
    assert {document.metadata["source"] for document in retriever.invoke("one")} == {"guide", "new guide"}


def test_the_watched_store_stays_the_object_that_it_was(store: Any) -> None:
    assert isinstance(store, InMemoryVectorStore)
    assert sorted(document.id for document in store.similarity_search("one", k=5)) == ["a", "b"]


class Failing(InMemoryVectorStore):
    """Breaks after the first document of a call, and at every delete, while `is_broken`."""

    is_broken = False

    def add_documents(self, documents: list[Document], ids: Any = None, **kwargs: Any) -> list[str]:
        done = super().add_documents(documents[:1] if self.is_broken else documents, ids=None, **kwargs)
        if self.is_broken:
            raise ConnectionError("half way")
        return done

    def delete(self, ids: Any = None, **kwargs: Any) -> None:
        if self.is_broken:
            raise ConnectionError("not deleted")
        super().delete(ids, **kwargs)


@pytest.fixture
def failing(cache: Any) -> Failing:
    store = watch_vectorstore(Failing(DeterministicFakeEmbedding(size=8)), cache, source="house")
    store.add_documents(texts(a="one", b="two"))
    for id, text in (("a", "one"), ("b", "two")):
        keep(cache, id, text)
    store.is_broken = True
    return store


def test_an_update_that_fails_half_way_serves_nothing_of_what_it_changed(failing: Any, cache: Any) -> None:
    with pytest.raises(ConnectionError):
        failing.add_documents(texts(a="changed", b="changed too"))
    assert kept(cache, "a", "b") == [False, True]  # b was not reached, and the store says so


def test_a_retry_after_a_failure_is_not_skipped(failing: Any, cache: Any) -> None:
    with pytest.raises(ConnectionError):
        failing.add_documents(texts(a="changed", b="changed too"))
    failing.is_broken = False
    failing.add_documents(texts(a="changed", b="changed too"))
    keep(cache, "a", "changed")
    assert kept(cache, "a", "b") == [True, False]


def test_a_delete_that_fails_leaves_the_answers_that_still_hold(failing: Any, cache: Any) -> None:
    with pytest.raises(ConnectionError):
        failing.delete(["a"])
    assert kept(cache, "a", "b") == [True, True]


def test_an_answer_begun_before_an_addition_ended_is_not_stored(store: Any, cache: Any) -> None:
    cache.lookup(request("late"))
    store.add_documents(texts(late="four"))
    keep(cache, "late", "older text", source="house")
    assert kept(cache, "late") == [False]


class Anonymous(VectorStore):
    """A store that gives no ids with its documents and cannot be asked by id."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add_texts(self, texts: Any, metadatas: Any = None, *, ids: Any = None, **kwargs: Any) -> list[str]:
        ids = ids or [f"n{len(self.texts) + n}" for n, _ in enumerate(texts)]
        self.texts |= zip(ids, texts, strict=True)
        return ids

    def delete(self, ids: Any = None, **kwargs: Any) -> bool:
        for id in ids or list(self.texts):
            self.texts.pop(id, None)
        return True

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [Document(page_content=text) for text in self.texts.values()][:k]

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("LangChain wants the method; no test makes a store so")


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.delete(["a"]),
        lambda store: store.delete(),
        lambda store: store.add_texts(["changed"], ids=["a"]),
        lambda store: store.add_texts(["more"]),
    ],
    ids=["delete", "delete all", "edit", "add"],
)
def test_a_store_without_ids_is_searched_again_after_any_change(cache: Any, change: Any) -> None:
    store = watch_vectorstore(Anonymous(), cache)
    store.add_texts(["one", "two"], ids=["a", "b"])
    retriever = SmartCacheRetriever(retriever=store.as_retriever(), cache=cache)
    assert [document.page_content for document in retriever.invoke("?")] == ["one", "two"]
    change(store)
    assert [document.page_content for document in retriever.invoke("?")] == list(store.texts.values())


PAGES = [Document(page_content=f"page {n} of the guide", metadata={"source": "guide"}) for n in range(4)]


@pytest.fixture
def indexed(cache: Any) -> Any:
    """Runs LangChain's `index()` over a watched store, and says which pages' answers are kept."""
    store = watch_vectorstore(InMemoryVectorStore(DeterministicFakeEmbedding(size=8)), cache)
    records = InMemoryRecordManager(namespace="guide")
    records.create_schema()

    class Indexed:
        def run(self, documents: list[Document], cleanup: Any) -> Any:
            return index(
                documents, records, store, cleanup=cleanup, source_id_key="source", batch_size=2, key_encoder="sha256"
            )

        def keep_all(self) -> None:
            for id, held in store.store.items():
                keep(cache, id, held["text"], source="")

        def kept(self) -> dict[str, bool]:
            return {id: kept(cache, id)[0] for id in self.ids}

        def remember_ids(self) -> None:
            self.ids = {id: held["text"] for id, held in store.store.items()}

    return Indexed()


@pytest.mark.parametrize("cleanup", [None, "incremental", "full", "scoped_full"])
def test_indexing_the_same_pages_again_keeps_every_answer(indexed: Any, cleanup: Any) -> None:
    indexed.run(PAGES, cleanup)
    indexed.remember_ids()
    indexed.keep_all()
    indexed.run(PAGES, cleanup)
    assert all(indexed.kept().values())
    assert len(indexed.ids) == 4


@pytest.mark.parametrize("cleanup", ["incremental", "full", "scoped_full"])
def test_a_page_that_was_dropped_takes_its_answers_along_and_no_others(indexed: Any, cleanup: Any) -> None:
    indexed.run(PAGES, cleanup)
    indexed.remember_ids()
    indexed.keep_all()
    indexed.run(PAGES[:3], cleanup)
    assert {indexed.ids[id]: is_kept for id, is_kept in indexed.kept().items()} == {
        page.page_content: page is not PAGES[3] for page in PAGES
    }


def test_a_vanished_source_is_seen_by_full_cleanup(indexed: Any) -> None:
    indexed.run(PAGES, "full")
    indexed.remember_ids()
    indexed.keep_all()
    indexed.run([], "full")
    assert not any(indexed.kept().values())


# Methods of a store's own.


class Updating(InMemoryVectorStore):
    """A store with more ways to write than LangChain names."""

    def update_document(self, document_id: str, document: Document) -> None:
        self.update_documents([document_id], [document])

    def update_documents(self, ids: list[str], documents: list[Document]) -> None:
        for id, document in zip(ids, documents, strict=True):
            self.store[id] = {**self.store[id], "text": document.page_content}

    async def adelete_collection(self) -> None:
        self.store.clear()

    def delete_collection(self) -> None:
        self.store.clear()


@pytest.fixture
def updating(cache: Any) -> Any:
    store = watch_vectorstore(Updating(DeterministicFakeEmbedding(size=8)), cache, source="house")
    store.add_documents(texts(a="one", b="two"))
    for id, text in (("a", "one"), ("b", "two")):
        keep(cache, id, text)
    return store


UPDATES = {
    "update_document": lambda store, text: store.update_document("a", Document(page_content=text)),
    "update_document by name": lambda store, text: store.update_document(
        document_id="a", document=Document(page_content=text)
    ),
    "update_documents": lambda store, text: store.update_documents(["a"], [Document(page_content=text)]),
}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_an_update_makes_stale_what_rests_on_it_and_nothing_else(updating: Any, cache: Any, update: Any) -> None:
    update(updating, "changed")
    assert kept(cache, "a", "b") == [False, True]


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_an_update_with_equal_text_keeps_the_answers(updating: Any, cache: Any, update: Any) -> None:
    update(updating, "one")
    assert kept(cache, "a", "b") == [True, True]


def test_a_collection_that_is_dropped_leaves_no_answer(updating: Any, cache: Any) -> None:
    updating.delete_collection()
    assert kept(cache, "a", "b") == [False, False]


async def test_a_collection_that_is_dropped_by_coroutine_leaves_no_answer(updating: Any, cache: Any) -> None:
    await updating.adelete_collection()
    assert kept(cache, "a", "b") == [False, False]
