"""What a prompt rests on, told from its text."""

import pytest

from smartcache import ChunkRef, KnowledgeUpdate, SmartCache
from smartcache.layers.recognition import Recognised, recognised
from smartcache.testing import chunk

RED, BLUE = chunk("red", "The red valve."), chunk("blue", "The blue lever.")


def test_passages_come_in_the_order_of_their_places_with_the_query_beside_them() -> None:
    found = recognised("First: The blue lever. Then: The red valve. Which?", [("Which?", (RED, BLUE), True)])
    assert found == Recognised((BLUE, RED), "Which?", True)


def test_nothing_found_is_nothing_recognised() -> None:
    assert recognised("Which?", [("Which?", (RED,), True)]) == Recognised((), None, False)


def test_a_passage_of_the_query_that_is_not_there_makes_it_incomplete() -> None:
    assert not recognised("The red valve. Which?", [("Which?", (RED, BLUE), True)]).is_complete


def test_a_passage_of_another_query_need_not_be_there() -> None:
    retrieved = [("Which?", (RED,), True), ("What else?", (BLUE,), True)]
    assert recognised("The red valve. Which?", retrieved) == Recognised((RED,), "Which?", True)


def test_a_query_inside_a_passage_is_not_the_question() -> None:
    assert recognised("The red valve. Which?", [("red", (RED,), True)]).query is None


def test_a_passage_within_a_longer_one_counts_only_where_it_stands_alone() -> None:
    longer = chunk("longer", "The red valve. Turn it left.")
    retrieved = [("Which?", (RED, longer), True)]
    assert recognised("The red valve. Turn it left. Which?", retrieved).chunks == (longer,)
    assert recognised("The red valve. Turn it left. The red valve. Which?", retrieved).chunks == (longer, RED)


def test_all_documents_with_equal_text_count_but_none_that_has_changed_since() -> None:
    twin, gone = chunk("twin", RED.text), chunk("gone", RED.text)
    retrieved = [("Which?", (RED, twin), True), ("Which?", (gone,), False)]
    assert set(recognised("The red valve. Which?", retrieved).chunks) == {RED, twin}
    assert recognised("The red valve. Which?", retrieved[1:]).chunks == (gone,)


def test_a_cache_recognises_what_its_searches_found_and_knows_what_changed_since() -> None:
    with SmartCache.open(mode="exact") as cache:
        cache.retrieve("Which?", lambda query: [RED, BLUE])
        prompt = "The red valve. The blue lever. Which?"
        assert cache.recognise(prompt) == Recognised((RED, BLUE), "Which?", True)
        cache.update_knowledge(KnowledgeUpdate(removed=["blue"]))
        assert [found.ref for found in cache.recognise(prompt).chunks] == [RED.ref, BLUE.ref]
        assert cache.recognise("The red valve. Which?").chunks[0].ref == ChunkRef("red", RED.ref.version)


def test_a_passage_inside_the_question_is_none_of_the_prompt() -> None:
    heading, retrieved = chunk("heading", "Refund policy"), [("What is the Refund policy?", (RED,), True)]
    retrieved = [*retrieved, ("How are refunds made?", (chunk("heading", "Refund policy"),), True)]
    assert recognised("What is the Refund policy?", retrieved).chunks == ()
    assert recognised("Refund policy\nWhat is the Refund policy?", retrieved).chunks == (heading,)
    found = recognised("Refund policy\nThe red valve.\nWhat is the Refund policy?", retrieved)
    assert found == Recognised((heading, RED), "What is the Refund policy?", True)


def test_of_a_passage_that_was_asked_for_word_for_word_the_last_is_the_question() -> None:
    retrieved = [(RED.text, (RED,), True)]
    assert recognised("The red valve.", retrieved).chunks == ()
    assert recognised("Use this: The red valve.\nThe red valve.", retrieved) == Recognised((RED,), RED.text, True)


def test_a_heading_that_was_asked_for_once_is_a_passage_before_its_text() -> None:
    retrieved = [("Refund policy", (heading := chunk("heading", "Refund policy"), RED), True)]
    assert recognised("Refund policy\nThe red valve.\nHow?", retrieved) == Recognised((heading, RED), None, True)
    at_the_end = recognised("The red valve.\nRefund policy\n", retrieved)
    assert at_the_end == Recognised((RED,), "Refund policy", False)


def test_where_it_may_be_the_question_all_that_it_found_must_be_there() -> None:
    heading = chunk("heading", "Refund policy")
    retrieved = [("Refund policy", (RED, BLUE), True), ("What else?", (heading,), True)]
    assert not recognised("The red valve.\nQuestion: Refund policy\nAnswer:", retrieved).is_complete
    assert recognised("The red valve. The blue lever.\nQuestion: Refund policy\nAnswer:", retrieved).is_complete


@pytest.mark.parametrize("odd", ["\0", "\0\0", "a\0", "\1"])
def test_a_passage_may_hold_any_character(odd: str) -> None:
    found = recognised(f"The red valve.{odd}x{odd}. Which?", [("Which?", (RED, chunk("odd", odd)), True)])
    assert [passage.ref.id for passage in found.chunks] == ["red", "odd"]
    assert recognised("The red valve. Which?", [("Which?", (chunk("odd", odd),), True)]).chunks == ()


@pytest.mark.parametrize("odd", ["\0", "\0\0"])
def test_a_query_of_any_character_is_seen_where_it_stands(odd: str) -> None:
    assert recognised("The red valve.", [(odd, (RED,), True)]).query is None
    assert recognised(f"The red valve. {odd}", [(odd, (RED,), True)]).query == odd


class Counted(str):
    """A text that counts what is copied of it."""

    copied = 0

    def __getitem__(self, part: object) -> str:
        Counted.copied += len(str.__getitem__(self, part))
        return str.__getitem__(self, part)


def test_however_often_a_passage_stands_there_the_text_is_not_copied() -> None:
    text = Counted("- " * 500 + "Which?")
    assert recognised(text, [("Which?", (chunk("dash", "-"),), True)]).query == "Which?"
    assert Counted.copied == 0
