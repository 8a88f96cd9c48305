"""What was planned lately: bounded, forgotten by scope and by chunk, and without any text."""

from __future__ import annotations

import copy
import gc
import threading

import pytest

from smartcache import PlannedContexts
from smartcache.testing import chunk

A, B, C, D = (chunk(name, f"the text of {name}") for name in "abcd")


def test_the_bound_counts_places_and_the_longest_unused_end_goes_first():
    planned = PlannedContexts(3)
    planned.record([A, B])
    planned.record([C])
    planned.record([A])
    planned.record([D])
    assert len(planned) == 3
    assert (planned.shared([A, B]), planned.shared([C]), planned.shared([D])) == (1, 1, 1)


def test_a_beginning_outlives_what_follows_it():
    planned = PlannedContexts(3)
    planned.record([A, B, C])
    planned.record([D])
    assert (planned.shared([A, B, C]), planned.shared([D])) == (2, 1)


def test_popularity_is_bounded_too():
    planned = PlannedContexts(2)
    for one in (A, B, C):
        planned.record([one])
    assert [planned.uses(one) for one in (A, B, C)] == [0, 1, 1]


def test_scopes_are_apart():
    planned = PlannedContexts()
    planned.record([A, B], scope="acme")
    assert (planned.shared([A, B], scope="acme"), planned.shared([A, B])) == (2, 0)
    assert (planned.uses(A, scope="acme"), planned.uses(A)) == (1, 0)


def test_a_scope_is_forgotten_alone():
    planned = PlannedContexts()
    planned.record([A, B], scope="acme")
    planned.record([A, B], scope="other")
    planned.forget("acme")
    assert (planned.shared([A, B], scope="acme"), planned.uses(A, scope="acme")) == (0, 0)
    assert (planned.shared([A, B], scope="other"), planned.uses(A, scope="other")) == (2, 1)


def test_a_chunk_is_forgotten_with_all_that_followed_it():
    planned = PlannedContexts()
    planned.record([A, B, C])
    planned.record([D])
    planned.forget(chunk_ids=["b"])
    assert (planned.shared([A, B, C]), planned.uses(B), planned.shared([D]), len(planned)) == (1, 0, 1, 2)


def test_both_conditions_must_be_met():
    planned = PlannedContexts()
    planned.record([A], scope="acme")
    planned.record([A], scope="other")
    planned.forget("acme", ["a"])
    assert (planned.shared([A], scope="acme"), planned.shared([A], scope="other")) == (0, 1)


def test_without_a_condition_all_is_forgotten():
    planned = PlannedContexts()
    planned.record([A, B])
    planned.forget()
    assert (len(planned), planned.shared([A])) == (0, 0)


def test_no_text_is_kept():
    planned = PlannedContexts()
    planned.record([chunk("kept", "a secret that nobody else says")])
    seen, waiting = set(), [planned]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen and not isinstance(one, type):
            seen.add(id(one))
            waiting.extend(gc.get_referents(one))
            assert not (isinstance(one, str) and "secret that" in one)
    assert planned.uses(chunk("kept", "a secret that nobody else says")) == 1


def test_a_walk_may_not_leave_what_is_allowed():
    planned = PlannedContexts()
    planned.record([A, B, C])
    assert planned.longest([A, B, C]) == (A, B, C)
    assert planned.longest([A, B, C], allows=lambda chunks: C not in chunks) == (A, B)


def test_threads_may_record_and_ask_at_once():
    planned, failed = PlannedContexts(5), []

    def work(first):
        try:
            for turn in range(200):
                planned.record([(A, B, C, D)[(first + turn + step) % 4] for step in range(3)])
                planned.longest([A, B, C, D])
                planned.forget(chunk_ids=["abcd"[turn % 4]])
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, len(planned) <= 5) == ([], True)


def test_a_copy_of_an_application_knows_the_same_prompts():
    planned = PlannedContexts()
    assert copy.deepcopy({"planned": planned})["planned"] is planned


def test_a_bound_below_one_is_refused():
    with pytest.raises(ValueError, match="must be at least 1"):
        PlannedContexts(0)
