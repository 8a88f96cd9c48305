"""Chinese questions: what they ask, of what, and which of them may share an answer."""

from __future__ import annotations

import pytest

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.chinese import Asking, focus, talked_of
from smartcache.lexical import ByScript
from smartcache.testing import BagOfWordsEmbedder

FILM = ("你看过《无间道》吗？", "看过，很经典。")
PALACE = ("我想去故宫这个景点。", "好啊。")


def served(stored: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    """Whether the answer to the first conversation, kept, is given to the second."""

    def request(said: tuple[str, ...]) -> Request:
        roles = ("user", "assistant") if len(said) % 2 else ("assistant", "user")
        return Request([Turn(roles[place % 2], text) for place, text in enumerate(said)])  # type: ignore[arg-type]  # roles

    with SmartCache.open(embedder=ByScript(BagOfWordsEmbedder())) as cache:
        cache.answer(request(stored), lambda *_: Answer("kept", finish_reason="stop"))
        return cache.answer(request(asked), lambda *_: Answer("new", finish_reason="stop")).is_hit


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        (("故宫的门票多少钱？",), ("请问故宫门票价格是多少",)),
        (("故宫几点开门？",), ("故宫的开放时间是什么？",)),
        (("《无间道》的导演是谁？",), (*FILM, "它的导演是谁？")),
        (("《无间道》的导演是谁？",), ("你好", "你好呀", "《无间道》是谁执导的？")),
        ((*FILM, "导演是谁？"), (*FILM, "不好意思，稍等一下。", "没关系。", "好的，谢谢。那它的导演呢？")),
        ((*PALACE, "门票多少钱？"), ("故宫的门票多少钱？",)),
        (("听说过天坛公园吗？", "听说过。", "那里几点开放？"), ("天坛公园什么时候开放？",)),
        (("知道周星驰吗？", "当然。", "他多大了？"), ("周星驰是哪年出生的？",)),
        (("如何从北京坐火车到上海?",), ("请问如何从北京坐火车到上海?",)),
    ],
)
def test_other_words_for_the_same_question_are_served(stored, asked):
    assert served(stored, asked)


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        (("故宫的门票多少钱？",), ("天坛的门票多少钱？",)),
        (("故宫的门票多少钱？",), ("故宫的电话是多少？",)),
        (("故宫的门票多少钱？",), ("故宫学生的门票多少钱？",)),
        (("故宫的门票多少钱？",), ("我是学生。", "好的。", "故宫的门票多少钱？")),
        (("故宫最贵的门票多少钱？",), ("故宫最便宜的门票多少钱？",)),
        (("故宫几点开门？",), ("故宫几点关门？",)),
        (("故宫哪天开放？",), ("故宫哪天不开放？",)),
        (("《无间道》的导演是谁？",), ("《无间道2》的导演是谁？",)),
        (("北京大学在哪里？",), ("北京大学医学院在哪里？",)),
        ((*FILM, "它的导演是谁？"), ("你看过《英雄》吗？", "看过，很经典。", "它的导演是谁？")),
        ((*FILM, "它的导演是谁？"), (*FILM, "它的主演是谁？")),
        ((*FILM, "为什么？"), ("你看过《英雄》吗？", "看过，很经典。", "为什么？")),
        (("知道周星驰吗？", "当然。", "他多大了？"), ("知道周星驰吗？", "当然。", "他的妻子多大了？")),
        ((*PALACE, "门票多少钱？"), (*PALACE, "旁边的景山公园怎么样？", "不错。", "门票多少钱？")),
        (("如何从北京坐火车到上海?",), ("如何从广州坐火车到上海?",)),
    ],
)
def test_a_question_about_something_else_is_not_served(stored, asked):
    assert not served(stored, asked)


def test_a_history_with_something_put_in_its_place_is_another_whatever_name_was_read():
    said = (*FILM, "和《英雄》像吗？", "有点像。", "说回《无间道》吧。", "好的。")
    one, longer, changed = (
        Asking.of(history, "导演是谁？")
        for history in (said, (*said, "稍等。", "好。"), (*said[:2], "和《十面埋伏》像吗？", *said[3:]))
    )
    assert one.subject == longer.subject == changed.subject == "无间道"
    assert one.conflict(longer) is None
    assert one.conflict(changed) == "context"


@pytest.mark.parametrize(
    ("history", "name"),
    [
        (FILM, "无间道"),
        (("去过故宫吗？", "去过。", "旁边的景山公园怎么样？", "不错。"), "景山公园"),
        (("周边有颐和园，圆明园等。", "圆明园你去过吗？"), "圆明园"),
    ],
)
def test_what_was_named_last_is_what_is_talked_of(history, name):
    assert talked_of(history, frozenset(["place", "work"])) == name


@pytest.mark.parametrize(
    "history",
    [
        (),
        ("你好", "你好呀"),
        ("周边有颐和园，圆明园等。",),
        ("《逆光》好听吗？", "好听，收录在专辑《逆光之城》里。"),
        ("知道《英雄》吗？", "知道。", "主演都有谁？", "有好几位呢。"),
        ("去过颐和园吗？", "去过。", "我说的是圆明园。"),
        ("去过故宫吗？", "去过，故宫2也去过。"),
        ("去过故宫吗？", "门口在故宫东边。"),
    ],
)
def test_in_doubt_nothing_is_talked_of(history):
    assert talked_of(history, frozenset(["place", "work"])) is None


def test_something_of_another_kind_is_not_what_is_asked_of():
    assert talked_of(FILM, frozenset(["person"])) is None
    assert talked_of(FILM, frozenset(["work"])) == "无间道"


@pytest.mark.parametrize("question", ["Who directed it?", "如何重置密码？", "你好"])
def test_a_question_for_no_property_is_not_taken_apart(question):
    assert Asking.of((), question) is None


def test_two_questions_are_compared_where_they_differ():
    assert focus("怎么从北京去上海？", "怎么从广州去上海？") == ("北京", "广州")
    assert focus("怎么从北京去上海？", "请问怎么从北京去上海") is None
