"""Prompts whose beginning stays the same: what is where, and what the question's own values leave alone."""

from __future__ import annotations

from smartcache import plan_context
from smartcache.layers.prompts import TokenCounts, build_prompt
from smartcache.testing import chunk

ONE, TWO = chunk("1", "  The first text.\n\n"), chunk("2", "The second text.")


def test_what_is_fixed_comes_first_and_the_question_last():
    prompt = build_prompt("Why?", [ONE, TWO], system="Be short.", examples=["Q: a\nA: b"], volatile={"time": "noon"})
    assert prompt.text == "Be short.\nQ: a\nA: b\nThe first text.\nThe second text.\ntime: noon\nWhy?"


def test_what_changes_with_each_request_leaves_the_beginning_alone():
    prompts = [build_prompt(q, [ONE, TWO], system="S", volatile={"time": t}) for q, t in (("a", "1"), ("b", "2"))]
    assert len({prompt.beginning for prompt in prompts}) == 1
    assert len({prompt.ending for prompt in prompts}) == 2


def test_another_last_chunk_leaves_the_parts_before_alone():
    one, other = (build_prompt("Why?", [ONE, last], system="S") for last in (TWO, chunk("3", "A third.")))
    assert one.parts[:2] == other.parts[:2]


def test_a_plan_gives_its_order():
    plan = plan_context([ONE, TWO], order="given")
    assert build_prompt("Why?", plan).text == build_prompt("Why?", [ONE, TWO]).text


def test_a_conversation_has_the_shared_part_in_the_systems_turn():
    system, user = build_prompt("Why?", [TWO], system="Be short.").turns
    assert (system.role, system.text) == ("system", "Be short.\nThe second text.\n")
    assert (user.role, user.text) == ("user", "Why?")
    assert [turn.role for turn in build_prompt("Why?").turns] == ["user"]


def test_a_label_comes_before_its_text():
    assert build_prompt("Why?", [ONE], label=lambda one: f"[{one.ref.id}]").parts == ("[1]\nThe first text.\n",)


def test_what_is_empty_is_left_out():
    assert build_prompt("Why?", [chunk("0", " \n"), TWO], system="").parts == ("The second text.\n",)


def test_a_chunk_is_counted_once():
    counted = []
    counts = TokenCounts(lambda text: counted.append(text) or len(text))
    assert counts.of(TWO) == counts.of(TWO) == len("The second text.\n")
    assert counts.of(chunk("2", "Another text.")) == len("Another text.\n")
    assert counted == ["The second text.\n", "Another text.\n"]


def test_the_memory_of_counts_is_bounded():
    counted = []
    counts = TokenCounts(lambda text: counted.append(text) or len(text), max_chunks=1)
    for one in (ONE, TWO, ONE):
        counts.of(one)
    assert len(counted) == 3
