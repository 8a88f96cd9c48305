"""The order of chunks in a prompt: one order for one set, the longest beginning known, and no chunk too far back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartcache import Chunk, ChunkRef, ContextOrder, PlannedContexts, Request, SmartCache, Turn, plan_context
from smartcache.layers.prompts import TokenCounts
from smartcache.testing import FakeModel, FakeSearch, chunk

CHUNKS = [chunk(str(number), f"text {number}", score=number / 10) for number in range(5)]
C0, C1, C2, C3, C4 = CHUNKS
ORDERS = ("given", "hash", "popularity", "cache-aware")


def planned(*contexts, **settings):
    known = PlannedContexts(**settings)
    for chunks in contexts:
        known.record(chunks)
    return known


def by_hash(chunks):
    return plan_context(chunks, order="hash").chunks


@given(st.permutations(CHUNKS))
def test_the_same_set_is_the_same_prefix_in_any_order(shuffled):
    assert by_hash(shuffled) == by_hash(CHUNKS)


@given(st.permutations(CHUNKS))
def test_the_same_set_comes_again_as_it_was_planned(shuffled):
    assert plan_context(shuffled, planned=planned([C3, C1, C4, C0, C2])).chunks == (C3, C1, C4, C0, C2)


@given(st.lists(st.sampled_from(CHUNKS)), st.sampled_from(ORDERS), st.sampled_from([None, 0, 1, 3]))
def test_each_chunk_is_in_the_plan_once(chunks, order, max_shift):
    plan = plan_context(chunks, order=order, max_shift=max_shift, planned=planned([C2, C1], [C4, C0]))
    assert sorted(plan.chunks, key=lambda c: c.ref) == sorted(set(chunks), key=lambda c: c.ref)


@pytest.mark.parametrize("order", ORDERS)
def test_citation_numbers_follow_the_chunk_and_not_its_place(order):
    plan = plan_context([C2, C0, C0, C1], order=order, planned=planned([C1, C0]))
    assert plan.numbers == {C2.ref: 1, C0.ref: 2, C1.ref: 3}


def test_a_chunk_that_comes_twice_keeps_its_first_place():
    plan = plan_context([C2, C0, C1, C2], order="given", max_shift=0)
    assert plan.chunks == (C2, C0, C1)
    assert plan.numbers == {C2.ref: 1, C0.ref: 2, C1.ref: 3}


@pytest.mark.parametrize("order", ORDERS)
def test_the_callers_list_and_scores_stay_as_they_are(order):
    chunks = [C2, C0, C2]
    plan = plan_context(chunks, order=order, planned=planned([C0]))
    assert chunks == [C2, C0, C2]
    assert {one.ref: one.score for one in plan.chunks} == {C2.ref: 0.2, C0.ref: 0.0}


def test_equal_text_under_two_ids_is_two_chunks():
    assert len(plan_context([chunk("a", "same"), chunk("b", "same")]).chunks) == 2


def test_the_order_given_can_be_kept():
    assert plan_context([C2, C0, C0, C1], order="given", planned=planned([C0, C1])).chunks == (C2, C0, C1)


def test_without_anything_planned_the_order_is_by_hash():
    assert plan_context(CHUNKS).chunks == by_hash(CHUNKS)
    assert plan_context(CHUNKS, order="popularity").chunks == by_hash(CHUNKS)


def test_hash_order_knows_nothing_of_what_was_planned():
    known = planned(by_hash(CHUNKS)[::-1], by_hash(CHUNKS)[-1:])
    assert plan_context(CHUNKS, order="hash", planned=known).chunks == by_hash(CHUNKS)
    assert plan_context(CHUNKS, order="popularity", planned=known).chunks != by_hash(CHUNKS)


def test_what_was_in_most_prompts_comes_first():
    known = planned([C0, C3], [C1, C3], [C1, C4, C3])
    assert plan_context([C0, C1, C3], order="popularity", planned=known).chunks == (C3, C1, C0)


def test_the_longest_known_beginning_comes_first_and_the_rest_by_popularity():
    known = planned([C4, C2, C0], [C1, C3], [C3], [C3])
    assert plan_context([C0, C1, C2, C3], planned=known).chunks[:2] == (C1, C3)
    assert plan_context([C0, C1, C2, C3, C4], planned=known).chunks == (C4, C2, C0, C3, C1)


def test_a_beginning_with_more_text_is_longer():
    long = chunk("long", "text " * 100)
    assert plan_context([C0, C1, long], planned=planned([C0, C1], [long])).chunks[0] == long


def test_of_equal_beginnings_the_one_used_most_comes_first():
    assert plan_context([C0, C1], planned=planned([C0], [C1], [C1])).chunks[0] == C1
    assert plan_context([C0, C1], planned=planned([C0], [C0], [C1])).chunks[0] == C0


def test_a_plan_says_how_many_chunks_it_shares():
    known = planned([C3, C1, C4])
    assert plan_context([C1, C2, C3], planned=known).shared == 2
    assert plan_context([C1, C2, C4], planned=known).shared == 0


def test_another_text_under_the_same_id_is_not_shared():
    known = planned([chunk("a", "old"), C1])
    assert plan_context([chunk("a", "old"), C1], planned=known).shared == 2
    assert plan_context([chunk("a", "new"), C1], planned=known).shared == 0


@given(
    st.permutations(CHUNKS), st.sampled_from(ORDERS), st.integers(0, 4), st.lists(st.permutations(CHUNKS), max_size=4)
)
def test_no_chunk_moves_back_further_than_is_allowed(shuffled, order, max_shift, before):
    plan = plan_context(shuffled, order=order, max_shift=max_shift, planned=planned(*before))
    assert all(place <= shuffled.index(one) + max_shift for place, one in enumerate(plan.chunks))


@given(st.permutations(CHUNKS), st.integers(0, 4))
def test_within_the_bound_each_place_has_the_first_by_hash_that_leaves_room_for_the_others(shuffled, max_shift):
    def leaves_room(begin):
        left = [rank for rank, one in enumerate(shuffled) if one not in begin]
        return all(place <= rank + max_shift for place, rank in enumerate(left, len(begin)))

    expected = list[Chunk]()
    while len(expected) < len(shuffled):
        left = [one for one in by_hash(shuffled) if one not in expected]
        expected.append(next(one for one in left if leaves_room([*expected, one])))
    assert list(plan_context(shuffled, order="hash", max_shift=max_shift).chunks) == expected


class Counted(ChunkRef):
    """A reference that counts how often it is looked up, and so how often it is compared."""

    looked_up = 0

    def __hash__(self):
        Counted.looked_up += 1
        return super().__hash__()


def looked_up(count):
    refs = [Counted(str(number), "1") for number in range(count)]
    Counted.looked_up = 0
    plan_context([Chunk(ref, "text") for ref in refs], order="hash", max_shift=count // 2)
    return Counted.looked_up


def test_the_work_of_a_bound_does_not_grow_with_the_cube_of_the_chunks():
    assert looked_up(80) < 5 * looked_up(20)


def test_without_any_shift_the_order_given_is_kept():
    assert plan_context([C3, C1, C2], max_shift=0, planned=planned([C1, C2])).chunks == (C3, C1, C2)


def test_a_plan_says_what_the_guard_cost():
    plan = plan_context([C0, C1, C2, C3], max_shift=1, planned=planned([C3, C2, C1], [C1, C0]))
    assert plan.chunks[:2] == (C1, C0)
    assert (plan.shared, plan.shared_unguarded) == (2, 3)


def test_a_guard_that_lets_everything_pass_costs_nothing():
    plan = plan_context([C0, C1, C2], max_shift=2, planned=planned([C2, C1]))
    assert (plan.shared, plan.shared_unguarded) == (2, 2)


def test_of_long_beginnings_the_one_that_a_prefix_cache_holds_is_taken():
    known = planned([C0, C1, C2], [C3, C4], held=lambda chunks: 90 if chunks[0] == C3 else 10)
    assert plan_context(CHUNKS, planned=known).chunks[:2] == (C3, C4)
    assert plan_context(CHUNKS, planned=planned([C0, C1, C2], [C3, C4])).chunks[:3] == (C0, C1, C2)


@pytest.mark.parametrize("make", [lambda order: plan_context(CHUNKS, order=order), lambda order: ContextOrder(order)])
def test_an_unknown_order_is_refused(make):
    with pytest.raises(ValueError, match="use one of 'given', 'hash', 'popularity', 'cache-aware'"):
        make("random")


@pytest.mark.parametrize(
    "make", [lambda shift: plan_context(CHUNKS, max_shift=shift), lambda shift: ContextOrder(max_shift=shift)]
)
def test_a_shift_is_a_whole_number_of_places(make):
    with pytest.raises(ValueError, match="must be 0 or more"):
        make(-1)
    for wrong in (1.5, float("nan"), True, "2"):
        with pytest.raises(TypeError, match="a whole number of places"):
            make(wrong)
    assert make(2) is not None


class Asking:
    """A cache, a model and a search; tells the chunks of each prompt in their order."""

    def __init__(self, **settings):
        self.cache = SmartCache.open(mode="exact", strict=True, **settings)
        self.prompts, self.asked = [], 0

    def __call__(self, chunks, scope=""):
        self.asked += 1
        model = FakeModel(lambda request, chunks: self.prompts.append(chunks) or "ok")
        self.cache.answer(Request([Turn("user", f"question {self.asked}")], scope), model, search=FakeSearch(chunks))
        return self.prompts[-1]


def test_a_cache_orders_by_what_it_planned_itself():
    asking = Asking()
    before = asking(CHUNKS[:3])
    extended = next(more for more in ([one, *CHUNKS[:3]] for one in (C3, C4)) if by_hash(more)[:3] != before)
    assert asking(extended)[:3] == before


def test_what_one_scope_planned_decides_nothing_in_another():
    asking = Asking()
    begun = asking([by_hash(CHUNKS)[-1]], "a")
    assert asking(CHUNKS, "b") == by_hash(CHUNKS)
    assert asking(CHUNKS, "a")[:1] == begun


@pytest.mark.parametrize(
    "forget", [{"scope": "a"}, {"chunk_ids": [by_hash(CHUNKS)[-1].ref.id]}], ids=["scope", "chunk"]
)
def test_what_is_forgotten_decides_nothing(forget):
    asking = Asking()
    asking([by_hash(CHUNKS)[-1]], "a")
    asking.cache.forget(**forget)
    assert asking(CHUNKS, "a") == by_hash(CHUNKS)


def test_a_cache_keeps_the_order_that_it_was_told():
    assert Asking(context=ContextOrder("given"))([C3, C0, C2]) == (C3, C0, C2)
    assert Asking(context=ContextOrder("given"))([C3, C0, C3, C2]) == (C3, C0, C2)
    assert Asking(context=ContextOrder(max_shift=0))([C3, C0, C2]) == (C3, C0, C2)


def test_a_beginning_is_as_long_as_its_tokens_where_they_are_counted_and_as_its_letters_otherwise():
    letters, words = chunk("letters", "internationalisation"), chunk("words", "a b c d")
    counted = []
    tokens = TokenCounts(lambda text: counted.append(text) or len(text.split())).of
    for context, first in ((ContextOrder(), letters), (ContextOrder(tokens=tokens), words)):
        asking = Asking(context=context)
        asking([letters])
        asking([words])
        assert asking([letters, words])[0] == asking([words, letters])[0] == first
    assert sorted(counted) == ["a b c d\n", "internationalisation\n"], "each once"


def test_a_prefix_cache_that_cannot_be_asked_is_our_trouble():
    def held(chunks):
        raise OSError("gone")

    asking = Asking(context=ContextOrder(held=held))
    asking.cache._events.strict = False
    asking(CHUNKS[:3])
    assert asking(CHUNKS[:3]) == by_hash(CHUNKS[:3])
    assert asking.cache.stats().troubles == {"plan": 1}


def test_an_order_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="pass a ContextOrder"):
        SmartCache.open(mode="exact", context="hash")
