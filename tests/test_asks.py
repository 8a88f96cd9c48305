"""What a question asks for: the kind of answer, and the aspect of its subject."""

import pytest

from smartcache.asks import asks, aspects, goes_on, kinds_apart


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Where is it?", "where"),
        ("Can you tell me where it is?", "where"),
        ("Do you know if it is open?", "yes or no"),
        ("Is it open?", "yes or no"),
        ("Might I go?", "yes or no"),
        ("Couldn't they wait?", "yes or no"),
        ("I would like to know how much it costs", "how many"),
        ("What year was it?", "when"),
        ("What does the Plus plan cost?", "how many"),
        ("What does the Plus plan do?", "what"),
        ("Fix the light", ""),
    ],
)
def test_the_kind_of_answer_is_read_behind_how_it_is_asked(question, kind):
    assert asks(question) == kind


def test_kinds_lie_the_farther_apart_the_surer_they_are_two():
    found = [kinds_apart("when", other) for other in ("when", "", "what", "where")]
    assert found == [0, 1, 2, 3]
    assert kinds_apart("yes or no", "what") == 3


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What are the types of bonds?", {"typ"}),
        ("What is the largest share of it?", {"shar"}),
        ("Which team did he play for?", {"team"}),
        ("How many seats are there?", {"seat"}),
        ("Tell me about the origins of jazz", {"origin"}),
        ("What is a bond?", set()),
        ("What is the name of it?", set()),
        ("What year was it?", set()),
    ],
)
def test_an_aspect_is_what_is_asked_of_the_subject(question, found):
    assert aspects(question) == found


def test_a_question_goes_on_where_it_does_not_say_after_what():
    assert goes_on("What did he do next?")
    assert goes_on("What did he do next after it?")
    assert goes_on("How did others see him?")
    assert not goes_on("What is next to it?")
    assert not goes_on("What else is there besides Rome?")
    assert not goes_on("Aside from Rome, is there any other city?")
    assert goes_on("Besides, is there any other city?")
    assert goes_on("Aside from that, is there any other city?")
    assert goes_on("Is there another city?")
