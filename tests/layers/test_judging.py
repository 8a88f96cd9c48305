"""What decides by the learned confidence: the signals of two states, and that no more is read than is needed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from smartcache.dialogue import Dialogue, partition_key
from smartcache.embedding import RememberedVectors
from smartcache.layers.judging import ByConfidence, Case, leans_on_nothing, near_signals, told_apart
from smartcache.signals import Told
from smartcache.state import State
from smartcache.testing import BagOfWordsEmbedder
from smartcache.types import Request, Turn

AXES = np.eye(8, dtype=np.float32)


def test_the_vectors_give_a_signal_for_each_part_of_a_state():
    one = State(AXES[0], AXES[1], AXES[2], AXES[3], AXES[4], 2.0)
    other = State(AXES[0], AXES[1], AXES[5], AXES[3], AXES[6], -1.0)
    assert near_signals(one, other) == near_signals(other, one)
    assert near_signals(one, other) == {
        "meaning": 0.0,
        "wording": 1.0,
        "stands_least": -1.0,
        "stands_most": 2.0,
        "histories": 2,
        "one_after": False,
        "last_turns": 0.0,
        "said": 1.0,
        "leaned_on": 1.0,
    }


@pytest.mark.parametrize(("last", "alike", "histories"), [((None, None), 1, 0), ((AXES[1], None), 0, 1)])
def test_nothing_is_like_nothing_and_unlike_anything(last, alike, histories):
    near = near_signals(*(State(AXES[0], row, AXES[0], row, row, 0.0) for row in last))
    assert (near["last_turns"], near["said"], near["histories"]) == (alike, alike, histories)
    assert near["one_after"] == histories


class Sure:
    """Weights that are as sure as told of what is known of a pair, and note how much that is."""

    telling = staticmethod(lambda sentence: 1.0)

    def __init__(self, *confidences):
        self.confidences, self.known = list(confidences), []

    def at_best(self, known):
        self.known.append(len(known))
        self.names = [*known]
        return self.confidences.pop(0)

    def sure(self, signals):
        return self.at_best(signals.values())


def judged(learned, one="Is the API free for students?", other="Is the API free for teachers?"):
    embedder = BagOfWordsEmbedder()
    vectors = RememberedVectors(embedder)
    cases = [Case(Told(Dialogue((), text)), State(*vectors([text]), standing=8.0)) for text in (one, other)]
    policy = SimpleNamespace(accepts=lambda candidate: candidate.confidence >= 0.5)
    ruling = ByConfidence(vectors, learned).judge(*cases, age_seconds=0.0, policy=policy)
    return ruling, embedder.texts[2:]


def test_what_cannot_be_sure_by_its_vectors_is_read_no_further():
    learned = Sure(0.4)
    ruling, _ = judged(learned, other="Is the API closed for students?")
    assert (ruling.refusal, ruling.signals, learned.known) == ("far", None, [9])


def test_what_cannot_be_sure_by_its_words_has_nothing_embedded():
    learned = Sure(0.9, 0.4)
    ruling, embedded = judged(learned)
    assert (ruling.refusal, ruling.signals, embedded) == ("far", None, [])
    assert "facts_agree" not in learned.names, "no rule was asked either"


def test_what_cannot_be_sure_by_the_rules_has_nothing_embedded():
    learned = Sure(0.9, 0.9, 0.4)
    ruling, embedded = judged(learned)
    assert (ruling.refusal, ruling.signals, embedded) == ("far", None, [])
    assert "facts_agree" in learned.names


@pytest.mark.parametrize(("confidence", "refusal"), [(0.9, None), (0.4, "far")])
def test_the_last_word_has_the_confidence_with_all_signals(confidence, refusal):
    ruling, embedded = judged(Sure(0.9, 0.9, 0.9, confidence))
    assert (ruling.refusal, ruling.candidate.confidence) == (refusal, confidence)
    assert embedded == ["students?", "teachers?"]


@pytest.mark.parametrize(("told", "refusal"), [("What is worth seeing downtown?", None), ("What is worth it?", "far")])
def test_what_was_said_before_the_one_may_be_what_the_other_says(told, refusal):
    """Then the bar is that of pairs of which one leans: 0.5, and not 0.9."""
    vectors = RememberedVectors(BagOfWordsEmbedder())
    asked, stored = "Which public museums are free today?", "Which public museums downtown are free today?"
    states = [State(*vectors([asked]), said=vectors([told])[0], last=vectors([told])[0], standing=8.0)]
    states += [State(*vectors([stored]), standing=8.0)]
    dialogues = Dialogue((("user", told), ("assistant", "A lot.")), asked), Dialogue((), stored)
    cases = [Case(Told(dialogue), state) for dialogue, state in zip(dialogues, states, strict=True)]
    policy = SimpleNamespace(accepts=lambda candidate: candidate.confidence >= (0.9, 0.5)[candidate.histories])
    ruling = ByConfidence(vectors, Sure(0.6, 0.6, 0.6, 0.6)).judge(*cases, age_seconds=0.0, policy=policy)
    assert (ruling.refusal, ruling.candidate.histories) == (refusal, int(refusal is None))


@pytest.mark.parametrize(("last_turns", "is_apart"), [(0.3, True), (0.95, False)])
def test_what_goes_on_after_two_things_is_two_questions(last_turns, is_apart):
    case = Case(Told(Dialogue((), "What else can I do?")), State(AXES[0], AXES[1]))
    known = {"histories": 2, "goes_on": 2, "last_turns": last_turns, "facts_agree": True}
    assert told_apart(case, case, known) is is_apart
    assert not told_apart(case, case, known | {"goes_on": 1})


def test_where_a_rule_is_against_it_what_they_differ_in_is_not_embedded():
    """One leans on nothing, the other tells its subject: no conflict of facts in the questions themselves."""
    vectors = RememberedVectors(BagOfWordsEmbedder())
    told = [
        Told(Dialogue((("user", "I have a small car"), ("assistant", "Good.")), "Is it free for students?")),
        Told(Dialogue((), "Is it free for teachers?")),
    ]
    cases = [Case(one, State.of(one.dialogue, vectors)) for one in told]
    policy = SimpleNamespace(accepts=lambda candidate: True)
    ruling = ByConfidence(vectors, Sure(1, 1, 1, 1)).judge(*cases, age_seconds=0.0, policy=policy)
    assert (ruling.signals.facts_agree, ruling.signals.focus) == (False, 0.0)


ANN = (("user", "Tell me about Ann Lee"), ("assistant", "She painted the doors of Oslo."))


@pytest.mark.parametrize(
    ("one", "other", "leans"),
    [
        (Dialogue(ANN, "What did she do next?"), Dialogue((), "What did Ann Lee do next?"), True),
        (Dialogue(ANN, "What did she do?"), Dialogue((), "What did Ann Lee do?"), False),
        (Dialogue(ANN, "What did she do next?"), Dialogue((), "What did Ann Lee do after the doors of Oslo?"), False),
        (Dialogue((), "What did Ann Lee do next?"), Dialogue((), "What did Ann Lee do?"), True),
        (Dialogue((), "What did Ann Lee do next?"), Dialogue((), "And what did Ann Lee do next?"), False),
    ],
)
def test_what_came_next_leans_on_what_was_before_whoever_is_named(one, other, leans):
    vectors = RememberedVectors(BagOfWordsEmbedder())
    asked, stored = (Case(Told(side), State.of(side, vectors)) for side in (one, other))
    known = near_signals(asked.state, stored.state) | asked.told.shares(stored.told)
    assert leans_on_nothing(asked, stored, known) is leans
    assert leans_on_nothing(stored, asked, known) is leans


def test_vectors_of_another_digest_are_kept_apart():
    request, embedder = Request([Turn("user", "Who?")]), BagOfWordsEmbedder()
    keys = {partition_key(request, embedder, name) for name in ("", "digest 1", "digest 2")}
    assert len(keys) == 3
    assert partition_key(request, embedder, "digest 1") in keys
