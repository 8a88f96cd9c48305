"""A question that holds the words of a passage: a heading, a title, a name."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_smartcache import ChatSmartCache
from langchain_smartcache.prompts import prompt_of
from smartcache import Chunk, ChunkRef, KnowledgeUpdate
from smartcache.keys import content_version

HEADING, BODY, ASKED = "Refund policy", "Refunds take five days.", "What is the Refund policy?"
RATES, RATED = "Members pay no postage.", "Who pays postage?"


def chunk(id: str, text: str) -> Chunk:
    return Chunk(ChunkRef(id, content_version(text), "kb"), text)


@pytest.fixture
def found(cache: Any) -> Any:
    """Makes the cache know both passages as what a search found, for a query or several."""

    def found(*queries: str) -> None:
        for query in queries:
            cache.retrieve(query, lambda _: (chunk("heading", HEADING), chunk("body", BODY)))

    return found


@pytest.mark.parametrize("queries", [["How long does it take?"], [ASKED]], ids=["never asked", "asked before"])
def test_what_a_question_only_mentions_is_no_document_of_the_prompt(cache: Any, found: Any, queries: Any) -> None:
    found(*queries)
    assert prompt_of([HumanMessage(ASKED)], cache).passages is None


@pytest.mark.parametrize("queries", [["How long does it take?"], [ASKED]], ids=["never asked", "asked before"])
def test_what_stands_beside_it_is(cache: Any, found: Any, queries: Any) -> None:
    found(*queries)
    messages = [SystemMessage(f"Use this:\n{HEADING}\n{BODY}"), HumanMessage(ASKED)]
    prompt = prompt_of(messages, cache)
    assert [passage.ref.id for passage in prompt.passages or ()] == ["heading", "body"]
    assert prompt.turns[-1].text == ASKED


def test_so_it_is_in_a_template_of_one_line(cache: Any, found: Any) -> None:
    found(ASKED)
    prompt = prompt_of([HumanMessage(f"Context: {HEADING} {BODY} Question: {ASKED}")], cache)
    assert [passage.ref.id for passage in prompt.passages or ()] == ["heading", "body"]
    assert prompt.turns[-1].text == ASKED


def test_a_heading_that_was_asked_for_once_is_a_document_beside_its_text(cache: Any, found: Any) -> None:
    found(HEADING)
    prompt = prompt_of([SystemMessage(f"Use this:\n{HEADING}\n{BODY}"), HumanMessage("How long?")], cache)
    assert [passage.ref.id for passage in prompt.passages or ()] == ["heading", "body"]


@pytest.mark.parametrize(
    "messages",
    [
        [HumanMessage(f"Context: {RATES} Question: {RATED}"), AIMessage("Yes."), HumanMessage(f"Context: {BODY} How?")],
        [SystemMessage(RATES), HumanMessage(f"Summarise this: {BODY}")],
    ],
    ids=["rewritten query", "summary"],
)
def test_what_may_be_a_document_beside_others_leaves_it_open_which_they_are(
    cache: Any, found: Any, messages: Any
) -> None:
    found("How long does it take?")
    cache.retrieve(RATED, lambda _: (chunk("rates", RATES),))
    assert prompt_of(messages, cache).passages is None
    found_elsewhere = prompt_of([SystemMessage(f"{HEADING}\n{BODY}"), *messages], cache).passages
    assert {passage.ref.id for passage in found_elsewhere or ()} == {"heading", "body", "rates"}


def test_an_answer_over_it_is_not_served_after_its_edit(model: Any, cache: Any, found: Any) -> None:
    found("How long does it take?")
    cache.retrieve(RATED, lambda _: (chunk("rates", RATES),))
    chat, prompt = ChatSmartCache(model=model, cache=cache), [SystemMessage(RATES), HumanMessage(f"Shorten: {BODY}")]
    assert [chat.invoke(prompt).content for _ in range(2)] == ["answer number 1", "answer number 1"]
    cache.update_knowledge(KnowledgeUpdate(changed=[chunk("body", "Refunds take nine days.")], source="kb"))
    assert chat.invoke(prompt).content == "answer number 2"


def test_the_search_is_asked_then_and_an_edit_of_what_it_found_is_seen(model: Any, cache: Any) -> None:
    texts = {"heading": HEADING, "body": BODY}

    def search(query: str) -> tuple[Chunk, ...]:
        return tuple(chunk(id, text) for id, text in texts.items())

    cache.retrieve(ASKED, search)
    chat = ChatSmartCache(model=model, cache=cache, search=search)
    assert [chat.invoke(ASKED).content for _ in range(2)] == ["answer number 1", "answer number 1"]
    texts["body"] = "Refunds take nine days."
    cache.update_knowledge(KnowledgeUpdate(changed=[chunk("body", texts["body"])], source="kb"))
    assert chat.invoke(ASKED).content == "answer number 2"
