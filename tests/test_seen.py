"""Which system prompts a cache has seen most, for warming a model before they come again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartcache import Answer, Request, SmartCache, Turn
from smartcache.keys import canonical, parts
from smartcache.seen import SeenPrompt


def store(cache: SmartCache, question: str, *system: Turn, scope: str = "", **options: object) -> None:
    cache.store(Request([*system, Turn("user", question)], scope=scope, options=options), Answer("Yes."))


def system(*texts: str) -> tuple[Turn, ...]:
    return tuple(Turn("system", text) for text in texts)


def test_the_most_frequent_comes_first_and_scopes_stay_apart() -> None:
    with SmartCache.open(mode="exact") as cache:
        for question in ("a?", "b?", "c?"):
            store(cache, question, *system("Be brief."), scope="bo", max_tokens=9)
        store(cache, "a?", *system("Be brief."), scope="ann")
        store(cache, "b?", *system("Be brief."), scope="ann")
        store(cache, "a?", *system("Be kind.", "Né à Łódź."))
        seen = cache.seen_most()
        assert seen == [
            SeenPrompt(system("Be brief."), "bo", 3),
            SeenPrompt(system("Be brief."), "ann", 2),
            SeenPrompt(system("Be kind.", "Né à Łódź."), "", 1),
        ]
        assert cache.seen_most(limit=2) == seen[:2]


def test_a_request_without_a_system_prompt_counts_for_none() -> None:
    with SmartCache.open(mode="exact") as cache:
        store(cache, "a?")
        cache.store(Request([Turn("user", "a?"), Turn("system", "Be brief."), Turn("user", "b?")]), Answer("Yes."))
        store(cache, "c?", Turn("system", "Look.", {"image": "…"}))
        assert cache.seen_most() == []


def test_what_was_forgotten_is_not_seen_any_more() -> None:
    with SmartCache.open(mode="exact") as cache:
        store(cache, "a?", *system("Be brief."), scope="bo")
        store(cache, "a?", *system("Be kind."), scope="ann")
        cache.forget(scope="bo")
        assert [prompt.scope for prompt in cache.seen_most()] == ["ann"]


def test_a_closed_cache_has_seen_nothing() -> None:
    cache = SmartCache.open(mode="exact")
    store(cache, "a?", *system("Be brief."))
    cache.close()
    assert cache.seen_most() == []


@given(st.lists(st.text() | st.binary() | st.none() | st.integers()))
def test_a_canonical_list_can_be_taken_apart(values: list[object]) -> None:
    assert parts(canonical(values)) == [canonical(value) for value in values]


@pytest.mark.parametrize("frame", [b"s5:ab", b"sab", b"sx:ab"])
def test_bytes_that_are_no_frame_are_refused(frame: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parts(frame)
