"""Chains over documents: the prompt tells what it rests on, and an answer dies with its documents."""

import copy
import threading
from enum import Enum
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import PrivateAttr

from langchain_smartcache import ChatSmartCache, SmartCacheRetriever, watch_vectorstore
from smartcache.testing import BagOfWordsEmbedder

TEMPLATE = (
    "You answer questions of tenants about their homes. Use the context below and nothing else, and say so where it "
    "does not help. Context:\n\n{context}\n\nQuestion: {question}\nAnswer in one sentence, politely, without lists."
)


class Words(Embeddings):
    def __init__(self) -> None:
        self._embedder = BagOfWordsEmbedder(dimension=2048)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [row.tolist() for row in self._embedder(texts)]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Fixed(BaseRetriever):
    """Finds what it is told to find, and counts."""

    found: list[Document]
    _asked: list[str] = PrivateAttr(default_factory=list)

    def _get_relevant_documents(self, query: str, *, run_manager: Any, **kwargs: Any) -> list[Document]:
        self._asked.append(query)
        return [document.model_copy(deep=True) for document in self.found]


def document(id: str, text: str, **metadata: Any) -> Document:
    return Document(id=id, page_content=text, metadata=metadata)


def joined(documents: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


def chain(retriever: Any, model: Any, cache: Any, *, template: str = TEMPLATE) -> Any:
    prompt = ChatPromptTemplate.from_messages([("human", template)])
    chat = ChatSmartCache(model=model, cache=cache)
    filled = {"context": retriever | joined, "question": RunnablePassthrough()}
    return filled | prompt | chat | StrOutputParser()


HEATING = document("heating", "The heating is turned on in the cellar, at the red valve behind the boiler.")
WATER = document("water", "Water is shut off under the kitchen sink with the blue lever on the left.")
PAUL = document("paul", "Paul lives on the third floor and pays his rent in cash on Mondays.")


@pytest.fixture
def ask(model: Any, cache: Any) -> Any:
    """Asks over given documents: each set of them is another retriever's."""
    chains: dict[str, Any] = {}

    def ask(question: str, *documents: Document, template: str = TEMPLATE) -> str:
        key = template + repr([d.id for d in documents])
        if key not in chains:
            retriever = SmartCacheRetriever(retriever=Fixed(found=list(documents)), cache=cache)
            chains[key] = chain(retriever, model, cache, template=template)
        return chains[key].invoke(question)

    return ask


def test_the_same_question_over_other_chunks_misses(ask: Any) -> None:
    assert ask("What is my rent this month?", PAUL) == "answer number 1"
    assert ask("What is my rent this month?", WATER) == "answer number 2"
    assert ask("What is my rent this month?", PAUL) == "answer number 1"


def test_different_questions_over_the_same_chunks_miss(ask: Any) -> None:
    questions = ["Where is the red valve?", "Who is Paul, and when does he pay?", "Is the water cold?"]
    assert [ask(question, HEATING, WATER, PAUL) for question in questions] == [f"answer number {n}" for n in (1, 2, 3)]


def test_a_paraphrase_over_the_same_chunks_hits(ask: Any, cache: Any) -> None:
    ask("Where can I turn the heating on?", HEATING, WATER)
    assert ask("where can I turn on the heating", HEATING, WATER) == "answer number 1"
    assert cache.stats().semantic == 1


def test_a_question_ahead_of_the_chunks_is_found_too(ask: Any, cache: Any) -> None:
    template = "Question: {question}\nContext:\n{context}\nAnswer:"
    ask("Where can I turn the heating on?", HEATING, template=template)
    assert ask("where can I turn on the heating", HEATING, template=template) == "answer number 1"
    assert cache.stats().semantic == 1


def test_another_template_around_the_same_question_and_chunks_misses(ask: Any) -> None:
    ask("Where can I turn the heating on?", HEATING)
    assert ask("Where can I turn the heating on?", HEATING, template="{context} {question}") == "answer number 2"


def test_the_question_alone_is_embedded(ask: Any, cache: Any) -> None:
    ask("Where can I turn the heating on?", HEATING, WATER)
    assert cache.embedder.texts == ["Where can I turn the heating on?"]


def test_context_in_the_system_message_is_a_hard_condition_too(model: Any, cache: Any) -> None:
    prompt = ChatPromptTemplate.from_messages([("system", "Use this: {context}"), ("human", "{question}")])
    chat = ChatSmartCache(model=model, cache=cache)
    answers = []
    asked = [("Where is the valve?", HEATING), ("Where is the valve?", WATER), ("where is the valve", HEATING)]
    for question, found in asked:
        retriever = SmartCacheRetriever(retriever=Fixed(found=[found]), cache=cache)
        filled = {"context": retriever | joined, "question": RunnablePassthrough()}
        answers.append((filled | prompt | chat).invoke(question).content)
    assert answers == ["answer number 1", "answer number 2", "answer number 1"]


async def test_the_same_holds_for_coroutines(model: Any, cache: Any) -> None:
    retriever = SmartCacheRetriever(retriever=Fixed(found=[HEATING]), cache=cache)
    rag = chain(retriever, model, cache)
    assert await rag.ainvoke("Where can I turn the heating on?") == "answer number 1"
    assert await rag.ainvoke("where can I turn on the heating") == "answer number 1"
    assert [piece async for piece in rag.astream("where can I turn on the heating")] == ["answer", " number", " 1"]


def test_documents_are_the_callers_own_copies_and_carry_their_reference(cache: Any) -> None:
    inner = Fixed(found=[document("heating", "The red valve", nested={"page": 1})])
    retriever = SmartCacheRetriever(retriever=inner, cache=cache, source="house")
    first = retriever.invoke("valve")[0]
    first.page_content = "X"
    first.metadata["nested"]["page"] = 2
    second = retriever.invoke("valve")[0]
    assert (second.page_content, second.metadata["nested"]) == ("The red valve", {"page": 1})
    id, version, source = second.metadata["smartcache_ref"]
    assert (id, source, second.id) == ("heating", "house", "heating")
    assert version
    assert inner._asked == ["valve"]


@pytest.fixture
def with_client() -> InMemoryVectorStore:
    """A store whose documents hold, beside what is plain, an object that cannot be copied."""

    class Handing(InMemoryVectorStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            return [Document(id=id, page_content=d["text"], metadata=d["metadata"]) for id, d in self.store.items()]

    return Handing(Words())


def test_documents_that_cannot_be_copied_are_found_and_stored_all_the_same(cache: Any, with_client: Any) -> None:
    store = watch_vectorstore(with_client, cache, source="house")
    retriever = SmartCacheRetriever(retriever=store.as_retriever(), cache=cache, source="house")
    client = threading.Lock()
    store.add_documents([document("heating", "The red valve", client=client, nested={"page": 1})])
    for _ in range(2):
        found = retriever.invoke("valve")[0]
        assert (found.id, found.page_content, found.metadata["client"]) == ("heating", "The red valve", client)
        assert found.metadata["nested"] == {"page": 1}
        found.metadata["nested"]["page"] = 2  # the caller's own, but for the client
    assert store.store["heating"]["metadata"]["nested"] == {"page": 1}
    assert cache.known_chunks("house") == {"heating"}


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda retriever: retriever.model_copy(deep=True),
    "in a chain": lambda retriever: copy.deepcopy(retriever | joined).first,
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_retriever_can_be_copied_and_finds_what_it_found(cache: Any, copied: Any) -> None:
    retriever = SmartCacheRetriever(retriever=Fixed(found=[HEATING]), cache=cache)
    retriever.invoke("valve")
    other = copied(retriever)
    assert other.cache is cache
    assert [found.id for found in other.invoke("valve")] == [found.id for found in other.invoke("valve")] == ["heating"]
    assert len(other.retriever._asked) <= 2  # what it finds itself is remembered


@pytest.mark.parametrize("change", ["update", "assign"])
def test_another_retriever_in_the_same_place_is_another_search(cache: Any, change: str) -> None:
    class Other(Fixed):
        def _get_relevant_documents(self, query: str, *, run_manager: Any, **kwargs: Any) -> list[Document]:
            return [WATER]

    retriever = SmartCacheRetriever(retriever=Fixed(found=[HEATING]), cache=cache)
    assert [found.id for found in retriever.invoke("valve")] == ["heating"]
    other = Other(found=[HEATING])
    if change == "update":
        retriever = retriever.model_copy(update={"retriever": other})
    else:
        retriever.retriever = other
    assert [found.id for found in retriever.invoke("valve")] == ["water"]


class How(Enum):
    BOTH = object()
    NEITHER = threading.Lock()


class Choosing(Fixed):
    how: Any = How.BOTH


def test_a_choice_without_a_plain_value_goes_by_its_name(cache: Any) -> None:
    inner = Choosing(found=[HEATING])
    retriever = SmartCacheRetriever(retriever=inner, cache=cache)
    for how in (How.BOTH, How.BOTH, How.NEITHER):
        inner.how = how
        retriever.invoke("valve")
    assert len(inner._asked) == 2
    assert cache.stats().troubles == {}


class Untold(dict[str, Any]):
    """Options that cannot be read."""

    def items(self) -> Any:
        raise RuntimeError("not now")


def test_a_search_whose_settings_cannot_be_told_is_made_each_time_and_counted(cache: Any) -> None:
    inner = Choosing(found=[HEATING], how=Untold())
    retriever = SmartCacheRetriever(retriever=inner, cache=cache)
    assert [retriever.invoke("valve")[0].id for _ in range(2)] == ["heating", "heating"]
    assert len(inner._asked) == 2
    assert cache.stats().troubles == {"retriever": 2}


def test_another_setting_of_the_retriever_is_another_search(cache: Any) -> None:
    store = InMemoryVectorStore(Words())
    store.add_documents([HEATING, WATER, PAUL])
    inner = store.as_retriever(search_kwargs={"k": 1})
    retriever = SmartCacheRetriever(retriever=inner, cache=cache)
    assert len(retriever.invoke("the red valve")) == 1
    inner.search_kwargs = {"k": 2}
    assert len(retriever.invoke("the red valve")) == 2
    assert len(retriever.invoke("the red valve", filter=lambda d: d.id == "water")) == 1
    assert len(retriever.invoke("the red valve")) == 2


def test_scopes_do_not_share_what_was_found(cache: Any) -> None:
    inner = Fixed(found=[HEATING])
    ours, theirs = (SmartCacheRetriever(retriever=inner, cache=cache, scope=scope) for scope in ("ours", "theirs"))
    for retriever in (ours, theirs, ours):
        retriever.invoke("valve")
    assert len(inner._asked) == 2


@pytest.fixture
def house(model: Any, cache: Any) -> Any:
    """A watched store with three documents, and a chain over the best two."""
    store = watch_vectorstore(InMemoryVectorStore(Words()), cache, source="house")
    store.add_documents([HEATING, WATER, PAUL])
    inner = store.as_retriever(search_kwargs={"k": 2})
    return store, chain(SmartCacheRetriever(retriever=inner, cache=cache, source="house"), model, cache)


QUESTION, REWORDED = "Where can I turn the heating on?", "where can I turn on the heating"


def edit(store: Any) -> None:
    store.add_documents([document("heating", "The heating is turned on at the thermostat in the hall.")])


CHANGES = {
    "edit": edit,
    "delete": lambda store: store.delete(["heating"]),
    "add": lambda store: store.add_documents(
        [document("new", "The heating is turned on by the janitor where you ask.")]
    ),
    "add texts": lambda store: store.add_texts(["Where the heating can be turned on is written in the hall."]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_answer_is_stale_after_its_documents_changed(house: Any, change: Any) -> None:
    store, rag = house
    assert rag.invoke(QUESTION) == rag.invoke(REWORDED) == "answer number 1"
    change(store)
    assert rag.invoke(REWORDED) == "answer number 2"
    assert rag.invoke(QUESTION) == "answer number 2"


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.add_documents([document("bins", "Bins are emptied every second Friday.")]),
        lambda store: store.delete(["paul"]),
        lambda store: store.add_documents([HEATING]),
        lambda store: (store.delete(["heating"]), store.add_documents([HEATING])),
    ],
    ids=["add another", "delete another", "add the same again", "delete and add the same"],
)
def test_an_answer_lives_on_where_the_prompt_is_still_the_same(house: Any, change: Any, cache: Any) -> None:
    store, rag = house
    rag.invoke("Where is the heating turned on with the red valve, and the water with the blue lever?")
    change(store)
    answer = rag.invoke("Where is the heating turned on with the red valve, and the water with the blue lever?")
    assert answer == "answer number 1"


def test_a_paraphrase_finds_nothing_stale_without_a_new_search(model: Any, cache: Any) -> None:
    store = watch_vectorstore(InMemoryVectorStore(Words()), cache)
    store.add_documents([HEATING])
    chat = ChatSmartCache(model=model, cache=cache)
    chat.invoke(QUESTION)
    edit(store)
    assert chat.invoke(REWORDED).content == "answer number 2"


def test_a_document_that_was_cut_on_its_way_makes_the_prompt_rest_on_everything(model: Any, cache: Any) -> None:
    retriever = SmartCacheRetriever(retriever=Fixed(found=[HEATING, WATER]), cache=cache)
    prompt = ChatPromptTemplate.from_messages([("human", TEMPLATE)])
    cut = retriever | (lambda documents: documents[0].page_content + documents[1].page_content[:20])
    rag = {"context": cut, "question": RunnablePassthrough()} | prompt | ChatSmartCache(model=model, cache=cache)
    assert rag.invoke(QUESTION).content == rag.invoke(QUESTION).content == "answer number 1"
    other = watch_vectorstore(InMemoryVectorStore(Words()), cache, source="elsewhere")
    other.add_documents([PAUL])
    assert rag.invoke(QUESTION).content == "answer number 2"


def test_a_search_confirms_answers_whose_documents_cannot_be_recognised(model: Any, cache: Any) -> None:
    store = watch_vectorstore(InMemoryVectorStore(Words()), cache)
    store.add_documents([HEATING, WATER])
    retriever = SmartCacheRetriever(retriever=store.as_retriever(search_kwargs={"k": 1}), cache=cache)
    chat = ChatSmartCache(model=model, cache=cache, search=retriever.search)
    assert chat.invoke(QUESTION).content == "answer number 1"
    store.add_documents([PAUL])
    assert chat.invoke(QUESTION).content == "answer number 1"
    edit(store)
    assert chat.invoke(QUESTION).content == "answer number 2"


def test_an_update_while_the_model_writes_is_not_stored_as_current(house: Any, model: Any) -> None:
    store, rag = house
    plain = model.reply

    def reply(call: int, messages: Any) -> Any:
        from langchain_core.messages import AIMessage

        edit(store)
        return AIMessage(f"answer number {call}")

    model.reply = reply
    assert rag.invoke(QUESTION) == "answer number 1"
    model.reply = plain
    assert rag.invoke(QUESTION) == "answer number 2"
