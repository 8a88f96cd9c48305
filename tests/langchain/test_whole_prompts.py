"""Prompts whose question cannot be told from its surroundings: one word in them may change the answer."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import Generation
from langchain_core.prompts import ChatPromptTemplate

from langchain_smartcache import ChatSmartCache, SmartLLMCache

HOUSE = (
    "The house stands on a hill above the harbour and was built by the family of the present owner. It has two floors "
    "and a garden with old apple trees behind it, and a path that leads down to the water. The roof is made of slate "
    "and the windows look to the south."
)
TEMPLATES = {
    "lines": "Answer from the context only.\nContext:\n{context}\n\nQuestion: {question}",
    "one long line": "Answer from the context only. Context: {context} Question: {question}",
}
QUESTION, REWORDED = "What colour does the front door have?", "Which colour does the front door have?"


def over(colour: str) -> str:
    return f"The front door is {colour}. {HOUSE}"


@pytest.fixture
def chat(model: Any, cache: Any) -> ChatSmartCache:
    return ChatSmartCache(model=model, cache=cache)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_a_question_in_other_words_over_another_context_misses(chat: Any, template: str) -> None:
    chain = ChatPromptTemplate.from_template(template) | chat
    assert chain.invoke({"context": over("red"), "question": QUESTION}).content == "answer number 1"
    assert chain.invoke({"context": over("blue"), "question": REWORDED}).content == "answer number 2"


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_the_same_prompt_hits(chat: Any, template: str) -> None:
    chain = ChatPromptTemplate.from_template(template) | chat
    for _ in range(2):
        assert chain.invoke({"context": over("red"), "question": QUESTION}).content == "answer number 1"


def after(colour: str) -> list[Any]:
    asked = TEMPLATES["lines"].format(context=over(colour), question=QUESTION)
    return [HumanMessage(asked), AIMessage("See above."), HumanMessage("And is it painted nicely?")]


def test_a_follow_up_on_another_context_misses(chat: Any) -> None:
    assert [chat.invoke(after(colour)).content for colour in ("red", "blue")] == ["answer number 1", "answer number 2"]


def test_a_follow_up_on_the_same_context_hits(chat: Any) -> None:
    assert [chat.invoke(after("red")).content for _ in range(2)] == ["answer number 1"] * 2


def test_a_call_cannot_make_a_whole_prompt_near(chat: Any) -> None:
    prompts = [
        TEMPLATES["lines"].format(context=over(c), question=q) for c, q in (("red", QUESTION), ("blue", REWORDED))
    ]
    assert [chat.invoke(prompt, cache=True).content for prompt in prompts] == ["answer number 1", "answer number 2"]


def test_a_question_of_one_line_is_served_when_near(chat: Any) -> None:
    chat.invoke("Where can I turn the heating on?")
    assert chat.invoke("Where can I turn on the heating?").content == "answer number 1"


def test_langchains_own_hook_compares_them_whole_too(cache: Any) -> None:
    hook = SmartLLMCache(cache)
    red, blue = (
        TEMPLATES["lines"].format(context=over(c), question=q) for c, q in (("red", QUESTION), ("blue", REWORDED))
    )
    hook.update(red, "settings", [Generation(text="red")])
    assert hook.lookup(blue, "settings") is None
    assert hook.lookup(red, "settings") == [Generation(text="red")]
