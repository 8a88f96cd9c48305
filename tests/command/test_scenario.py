"""The demo's script is consistent: every label can be true, and every document it names is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartcache.command.documents import Documents
from smartcache.command.scenario import Add, Ask, Delete, Edit, Scenario, copy_knowledge_base, shipped_scenario
from smartcache.command.truth import Truth
from smartcache.testing import BagOfWordsEmbedder

SHARED = {"reworded", "repeated", "history irrelevant", "untouched"}


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return shipped_scenario()


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    copy_knowledge_base(tmp_path)
    return Documents(tmp_path, BagOfWordsEmbedder())


def shareable(scenario: Scenario, documents: Documents) -> dict[tuple[str, str], bool]:
    """For each turn, by conversation and text, whether an earlier answer is right for it; plays the changes."""
    truth, found = Truth(scenario.classes), {}
    for step in scenario.steps:
        if isinstance(step, Ask):
            found[step.conversation, step.text] = truth.may_share(truth.asked(step))
            continue
        step.apply(documents.folder)
        update = documents.refresh()
        assert update is not None
        truth.changed({chunk.ref.id for chunk in (*update.added, *update.changed)} | update.removed)
    return found


def test_the_knowledge_base_has_forty_documents_and_more(documents: Documents) -> None:
    assert len(documents.files) >= 40


def test_every_class_rests_on_sections_that_are_there_or_come(scenario: Scenario, documents: Documents) -> None:
    known = {chunk.ref.id for chunk in documents.chunks}
    for step in scenario.steps:
        if isinstance(step, Add):
            step.apply(documents.folder)
    documents.refresh()
    known |= {chunk.ref.id for chunk in documents.chunks}
    assert set().union(*scenario.classes.values()) <= known


def test_every_turn_has_a_known_class(scenario: Scenario) -> None:
    assert {ask.answer_class for ask in scenario.asks} == scenario.classes.keys()


def test_one_document_is_edited_one_added_one_deleted(scenario: Scenario) -> None:
    changes = [type(step) for step in scenario.steps if not isinstance(step, Ask)]
    assert sorted(kind.__name__ for kind in changes) == ["Add", "Delete", "Edit"]


def test_every_situation_occurs(scenario: Scenario) -> None:
    assert len({ask.situation for ask in scenario.asks}) == 10


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_turn_that_should_hit_has_an_answer_to_share(scenario: Scenario, documents: Documents, seed: int) -> None:
    found = shareable(scenario.arranged(seed), documents)
    twins = [(ask.answer_class, ask.tenant) for ask in scenario.asks if found[ask.conversation, ask.text]]
    expected = [(ask.answer_class, ask.tenant) for ask in scenario.asks if ask.situation in SHARED]
    assert sorted(twins) == sorted(expected)


def test_a_turn_that_should_miss_has_none(scenario: Scenario, documents: Documents) -> None:
    found = shareable(scenario, documents)
    assert [a.text for a in scenario.asks if a.situation not in SHARED and found[a.conversation, a.text]] == []


def test_a_repeated_question_was_asked_before_in_the_same_words(scenario: Scenario) -> None:
    for place, ask in enumerate(scenario.asks):
        if ask.situation == "repeated":
            assert ask.text in [earlier.text for earlier in scenario.asks[:place]]


def test_a_seed_changes_the_order_and_nothing_else(scenario: Scenario) -> None:
    arranged = scenario.arranged(7)
    assert arranged.asks != scenario.asks
    assert sorted(arranged.asks, key=repr) == sorted(scenario.asks, key=repr)
    assert arranged == scenario.arranged(7)


def test_a_seed_keeps_the_order_within_every_conversation(scenario: Scenario) -> None:
    def by_conversation(one: Scenario) -> dict[str, list[str]]:
        return {ask.conversation: [a.text for a in one.asks if a.conversation == ask.conversation] for ask in one.asks}

    assert by_conversation(scenario.arranged(7)) == by_conversation(scenario)


def test_an_edit_whose_text_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("4.90 and 4.90", encoding="utf-8")
    with pytest.raises(ValueError, match="does not hold"):
        Edit("a.md", "4.90", "5.90").apply(tmp_path)


def ask(answer_class: str, tenant: str = "a") -> Ask:
    return Ask("Ann", tenant, "ann-1", "What?", answer_class, "new")


def test_an_answer_of_its_own_class_and_tenant_is_right() -> None:
    truth = Truth({"price": frozenset({"p.md#price"})})
    first, second = truth.asked(ask("price")), truth.asked(ask("price"))
    assert truth.judge(second, first) == "right"


def test_an_answer_of_another_class_is_wrong() -> None:
    truth = Truth({"price": frozenset(), "size": frozenset()})
    first, second = truth.asked(ask("price")), truth.asked(ask("size"))
    assert truth.judge(second, first) == "wrong"


def test_an_answer_of_another_tenant_is_wrong() -> None:
    truth = Truth({"price": frozenset()})
    first, second = truth.asked(ask("price", "a")), truth.asked(ask("price", "b"))
    assert truth.judge(second, first) == "wrong"


def test_an_answer_from_before_a_change_that_it_rests_on_is_stale() -> None:
    truth = Truth({"price": frozenset({"p.md#price"})})
    first = truth.asked(ask("price"))
    truth.changed({"p.md#price"})
    assert truth.judge(truth.asked(ask("price")), first) == "stale"


def test_an_answer_from_before_another_change_is_right() -> None:
    truth = Truth({"price": frozenset({"p.md#price"})})
    first = truth.asked(ask("price"))
    truth.changed({"p.md#size"})
    assert truth.judge(truth.asked(ask("price")), first) == "right"


def test_a_deletion_takes_the_document_away(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text", encoding="utf-8")
    Delete("a.md").apply(tmp_path)
    assert not (tmp_path / "a.md").exists()
