"""What a question is for: the kinds of answers that bear a wrong one less than others."""

from __future__ import annotations

import pytest

from smartcache.intents import INTENTS, intent_of

OF_EACH = [
    ("code", "Why does this Python function raise?"),
    ("code", "What does len() return?"),
    ("code", "Fix it:\n```\nx = 1\n```"),
    ("code", "How do I sort in C++?"),
    ("code", "这个函数怎么写？"),
    ("translation", "Translate good morning"),
    ("translation", "How do you say bread in French?"),
    ("translation", "请翻译这句话"),
    ("summary", "Summarise the text below"),
    ("summary", "TL;DR of the report?"),
    ("summary", "总结一下"),
    ("creative", "Write me a short poem about rain"),
    ("creative", "Let's brainstorm names"),
    ("creative", "写一首关于雨的诗"),
    ("factual", "Who wrote Carmen?"),
    ("factual", "  how many people live in Bern"),
    ("factual", "What's the capital of France?"),
    ("factual", "门票多少钱？"),
    ("general", "Hello there"),
    ("general", "How do I reset my hub?"),
    ("general", "Tell me about the film"),
    ("general", ""),
]


@pytest.mark.parametrize(("intent", "question"), OF_EACH)
def test_the_words_of_a_question_tell_its_intent(intent, question):
    assert intent_of(question) == intent


def test_every_intent_is_known():
    assert {intent for intent, _ in OF_EACH} == set(INTENTS)


@pytest.mark.parametrize(
    ("first", "question"),
    [
        ("code", "Translate this function to Rust"),
        ("translation", "Translate and summarize the letter"),
        ("summary", "Summarize: who wrote Carmen?"),
        ("creative", "Write a poem\nWho wrote Carmen?"),
    ],
)
def test_of_two_intents_the_one_that_bears_less_counts(first, question):
    assert intent_of(question) == first


@pytest.mark.parametrize("question", ["I recode nothing", "a scripted play", "the jsonish thing", "Write to me soon"])
def test_a_word_that_only_begins_so_tells_nothing(question):
    assert intent_of(question) == "general"
