"""The dialogue state: what a question leans on, and what two dialogues must have in common."""

from __future__ import annotations

import pytest

from smartcache import Request, Turn
from smartcache.dialogue import Dialogue, replies
from smartcache.facts import Facts
from smartcache.standing import stands_alone


@pytest.mark.parametrize(
    "question",
    [
        "How do I reset the hub to factory settings?",
        "Who founded Acme?",
        "Is it possible to export my data as CSV?",
        "How long does it take to charge the battery fully?",
        "Is there a fee for early cancellation?",
        "What's the warranty on the Halden One?",
        "电影霸王别姬的导演是谁？",
    ],
)
def test_a_question_that_names_what_it_is_about_stands_alone(question):
    assert stands_alone(question)


@pytest.mark.parametrize(
    "question",
    [
        "How old is she?",
        "And in winter?",
        "What about the Pro plan?",
        "Why?",
        "How much is it?",
        "Tell me more about that",
        "What is the price?",
        "the second one",
        "Yes, please",
        "Does Ann like them?",
        "他什么时候出生的？",
        "那北京的呢？",
        "Cuándo nació su hermano menor",
        "Wo wohnt seine ältere Schwester jetzt",
        "Combien gagne son frère aujourd'hui",
        "National team timespan?",
    ],
)
def test_a_question_that_points_back_or_says_too_little_does_not(question):
    assert not stands_alone(question)


def test_a_sign_and_a_number_name_nothing_and_a_word_does():
    assert Facts.of("What is 12 + 7?").names == frozenset()
    assert Facts.of("Who led Operation Torch?").names == {"operation", "torch"}


def dialogue(*said: str) -> Dialogue:
    roles = ("user", "assistant")
    return Dialogue.of(Request([Turn(roles[n % 2], text) for n, text in enumerate(said)]))


@pytest.mark.parametrize("greeting", ["Hi", "Hi, how can I help you?", "Sure!"])
def test_greetings_are_nothing_to_lean_on(greeting):
    assert dialogue("Hello!", greeting, "What does it cost?").context == ()


@pytest.mark.parametrize(("asked", "counts"), [("What should it say?", True), ("Hi, how can I help you?", False)])
def test_a_greeting_may_be_an_answer(asked, counts):
    said = dialogue("I want a card", asked, "Good morning", "Fine.", "What does it cost?").spoken
    assert (("user", "Good morning") in said) is counts


def test_the_context_of_a_leaning_question_is_all_that_was_said():
    assert dialogue("Who runs Acme?", "Ann", "How old is she?").context == (
        ("user", "Who runs Acme?"),
        ("assistant", "Ann"),
    )


def test_the_query_of_a_leaning_question_holds_what_the_user_said_before():
    assert dialogue("Who runs Acme?", "Ann", "How old is she?").query == "Who runs Acme?\nHow old is she?"


def test_the_query_of_a_question_that_stands_alone_is_the_question():
    assert dialogue("Who runs Acme?", "Ann", "When was Birk founded?").query == "When was Birk founded?"


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (("Who runs Acme?", "Ann", "How old is she?"), ("Who runs Birk?", "Bo", "How old is she?"), "facts"),
        (("I have the Pro plan", "Good", "Why so?"), ("I don't have the Pro plan", "Good", "Why so?"), "polarity"),
        (("Who runs Acme?", "Ann", "How old is she?"), ("How old is she?",), "context"),
        (("Is port 80 open?",), ("Is port 80 closed?",), "polarity"),
        (("Is port 80 open?",), ("Is port 81 open?",), "facts"),
        (("Is port 80 open?",), ("is Port 80 OPEN",), None),
        (("Who runs Acme?", "Ann", "How old is she?"), ("who runs acme", "ann", "how old is she"), None),
    ],
)
def test_why_two_dialogues_have_no_common_answer(one, other, conflict):
    assert dialogue(*one).conflict(dialogue(*other)) == conflict
    assert dialogue(*other).conflict(dialogue(*one)) == conflict


@pytest.mark.parametrize(
    ("text", "hard"),
    [
        ("Is port 6379 open?", {"6379"}),
        ("It costs $1,000.00 or 12.5%", {"1000", "12.5%"}),
        ("Release v2.3.1 of max_tokens", {"v2.3.1", "max_tokens"}),
        ('The "red button" on it', {"red", "button"}),
        ("Ask Frank Zappa's band", {"frank", "zappa"}),
        ("two or three of them", {"2", "3"}),
        ("What is 12 + 7?", {"12", "+", "7"}),
        ("What is the weather like?", set()),
        ("《霸王别姬》是哪年的？", {"霸王别姬"}),
        ("Write to ann@acme.com", {"ann@acme.com"}),
    ],
)
def test_the_hard_facts_of_a_text(text, hard):
    assert Facts.of(text).hard == hard


EXCHANGED = [
    ("How do I convert PDF to Word?", "How do I convert Word to PDF?"),
    ("how do i move money from checking to savings?", "how do i move money from savings to checking?"),
    ("Does Ann manage Bob at work?", "Does Bob manage Ann at work?"),
    ("What is 20 percent of 50?", "What is 50 percent of 20?"),
    ("What is 10 - 3?", "What is 3 - 10?"),
    ("如何从北京坐火车到上海?", "如何从上海坐火车到北京?"),
]
IN_ANY_ORDER = [
    ("What is the difference between A1 and B2?", "What is the difference between B2 and A1?"),
    ("Which is faster, Python or Java?", "Which is faster, Java or Python?"),
    ("How do I enable VPN on iOS 17?", "On iOS 17, how do I enable VPN?"),
    ("How do I reset the hub to factory settings?", "to factory settings, how do I reset the hub"),
    ("北京和上海有什么区别?", "上海和北京有什么区别?"),
    ("如何重置我的密码?", "我的密码如何重置?"),
]


@pytest.mark.parametrize(("one", "other"), EXCHANGED)
def test_the_same_words_in_each_others_place_ask_something_else(one, other):
    assert Dialogue((), one).conflict(Dialogue((), other)) == "order"


@pytest.mark.parametrize(("one", "other"), IN_ANY_ORDER)
def test_the_same_words_in_another_order_may_ask_the_same(one, other):
    assert Dialogue((), one).conflict(Dialogue((), other)) is None


def test_a_detail_corrected_the_other_way_round_is_another_dialogue():
    postgres = (("user", "I use Postgres"), ("user", "no, I meant MySQL"))
    mysql = (("user", "I use MySQL"), ("user", "no, I meant Postgres"))
    assert Dialogue(postgres, "how do I reset it?").conflict(Dialogue(mysql, "how do I reset it?")) == "order"
    assert Dialogue(postgres, "how do I reset it?").conflict(Dialogue(postgres, "how can I reset it?")) is None


@pytest.mark.parametrize(("one", "other"), [("😀", "😡"), ("½", "¼"), ("€ 5", "£ 5")])
def test_a_sign_that_an_embedder_may_not_know_is_a_hard_fact(one, other):
    texts = [f"what does {sign} mean in a text message?" for sign in (one, other)]
    assert Dialogue((), texts[0]).conflict(Dialogue((), texts[1])) == "facts"
    assert Dialogue((), texts[0]).conflict(Dialogue((), f"in a text message, what does {one} mean?")) is None


def test_hardly_ever_is_a_negation():
    one, other = Dialogue((), "Can employees hardly ever enter?"), Dialogue((), "Can employees ever enter?")
    assert one.conflict(other) == "polarity"


RESET_IT = "How do I reset the device to factory settings?"


def after(*said: str, question: str = RESET_IT) -> Dialogue:
    return Dialogue(tuple(("user", text) for text in said), question)


def test_what_the_device_is_may_have_been_said_before():
    assert after("I have a Halden One").conflict(after("I have a Halden Two")) == "facts"
    assert after("I have a Halden One").conflict(after()) == "context"
    assert after("I have a Halden One").conflict(after("I have got a Halden One")) is None


def test_a_question_that_stands_alone_needs_no_history_on_both_sides():
    question = "How do I reset the Halden Two to factory settings?"
    assert after("I have a Halden One", question=question).conflict(after(question=question)) is None
    assert after("What a day").conflict(after()) is None


PLACE = ("Do you know Pizza Fen?", "Yes, what would you like to know?")
OTHER_PLACE = ("I am thinking about Duckling for next week.", "Good choice.")
CASE = ("I have run a store for years.", "What do you want to know?")


@pytest.mark.parametrize(
    ("history", "question"),
    [
        (PLACE, "Do you offer live music on weekends?"),
        (PLACE, "Are there any elevators available at the site?"),
        (PLACE, "What is the charge for WiFi?"),
        (PLACE, "Are pets allowed inside?"),
        (OTHER_PLACE, "Is outdoor seating available?"),
        (CASE, "Can I get an urgent authorisation online?"),
        (CASE, "Does this apply to me in Finland?"),
        (CASE, "Do I have to pay the tax in Finland?"),
        (("Where do you want to go?",), "San Francisco."),
    ],
)
def test_a_question_that_does_not_tell_its_subject_leans_on_what_was_named_or_stated(history, question):
    roles = ("user", "assistant") if len(history) % 2 == 0 else ("assistant", "user")
    said = tuple((roles[n % 2], text) for n, text in enumerate(history))
    assert not Dialogue(said, question).stands_alone


@pytest.mark.parametrize(
    ("history", "question"),
    [
        ((), "Do you offer live music on weekends?"),
        (("What is the weather in Bern today?", "Sunny."), "How do I reset the hub to factory settings?"),
        (("Hi there!", "Hello!"), "Are pets allowed inside the hotel rooms?"),
        (PLACE, "Who wrote the opera Carmen?"),
        (CASE, "Who wrote the opera Carmen?"),
        (CASE, "How do I export a spreadsheet with hidden formulas?"),
    ],
)
def test_one_that_tells_it_stands_alone_after_anything(history, question):
    said = tuple((("user", "assistant")[n % 2], text) for n, text in enumerate(history))
    assert Dialogue(said, question).stands_alone


ELIGIBLE = "Can I get an urgent authorisation online?"


def test_what_was_answered_with_yes_or_no_must_be_the_same():
    def case(*answers: str) -> Dialogue:
        asked = ("Are you an agent?", "Have you sent the form?", "Are you abroad?")
        talk = [text for pair in zip(asked, answers, strict=False) for text in pair]
        return dialogue("May I ask about a rule?", *talk[:-1], talk[-1], "What else?", ELIGIBLE)

    assert case("Yes", "No").conflict(case("Yes", "Yes")) == "context"
    assert case("Yes", "No").conflict(case("No", "Yes")) == "context"
    assert case("Yes", "No").conflict(case("Yes")) == "context"
    assert case("Yes", "No").conflict(case("yes.", "nope")) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("When can the technician call me?", "When can I call the technician?"),
        ("Will she write to him?", "Will he write to her?"),
    ],
)
def test_who_does_it_to_whom_is_not_exchanged(one, other):
    assert Dialogue((), one).conflict(Dialogue((), other)) == "order"
    assert Dialogue((), one).conflict(Dialogue((), one.replace("?", ", please?"))) is None


def test_a_question_that_names_what_it_means_stands_alone_after_any_history():
    question = "How do I reset the Halden Two to factory settings?"
    assert after("I was in Oslo", question=question).conflict(after("I was in Rome", question=question)) is None


def test_whether_the_user_named_the_same():
    about = dialogue("Do you know Pizza Fen?", "Yes.", "Do they deliver?")
    assert about.names_the_same(dialogue("A friend told me of Pizza Fen.", "Ah.", "Do they deliver?"))
    assert not about.names_the_same(dialogue("Do you know Pizza Hut?", "Yes.", "Do they deliver?"))
    nothing = dialogue("do you know it?", "Yes.", "Do they deliver?")
    assert not nothing.names_the_same(nothing)


@pytest.mark.parametrize(
    ("reply", "is_yes"),
    [
        ("yup", True),
        ("Nah", False),
        ("no", False),
        ("Not yet", False),
        ("Yes, please", True),
        ("No, thanks", False),
        ("No, I don't.", False),
        ("I do not", False),
        ("I am not sure", False),
        ("I do", True),
    ],
)
def test_a_reply_is_yes_or_no_by_its_first_word(reply, is_yes):
    assert [answer for _, answer in replies((("assistant", "Is the door red?"), ("user", reply)))] == [is_yes]
    assert [*replies((("assistant", "In which month?"), ("user", "November")))] == []


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        ("Yes, please", "No, thanks", "context"),
        ("Yes, I do.", "No, I don't.", "context"),
        ("Yes, left", "Yes, right", "polarity"),
        ("Yes, on", "Yes, off", "polarity"),
        ("Yes, Monday", "Yes, Friday", "polarity"),
        ("Yes, please", "Yes", None),
        ("No, thanks", "nope", None),
        ("Yes, left", "Yes, left pls", None),
    ],
)
def test_yes_and_no_are_hard_and_so_is_what_is_said_beside_them(one, other, conflict):
    sides = [
        dialogue("I want to paint it", "Do you have a pet?", reply, "Fine.", "Can I do it?") for reply in (one, other)
    ]
    assert sides[0].conflict(sides[1]) == sides[1].conflict(sides[0]) == conflict
