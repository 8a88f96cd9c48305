"""The eviction policies: the plain ones beside `cachetools`, all of them on what they are known for."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path

import cachetools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smartcache.layers.eviction import POLICIES, eviction_policy

EACH_POLICY = pytest.mark.parametrize("policy", POLICIES)
SHARED = Path(os.environ.get("SMARTCACHE_DATA") or Path(__file__).parent.parent.parent / "shared" / "data")
ORACLES = {"lru": cachetools.LRUCache, "lfu": cachetools.LFUCache, "fifo": cachetools.FIFOCache}

keys = st.lists(st.integers(0, 12), max_size=200)


def hits_of(policy: str, trace: Sequence[int], capacity: int) -> list[bool]:
    """Which requests of `trace` a flat cache of `capacity` keys answers."""
    order = eviction_policy(policy, capacity)
    here: set[int] = set()
    hits = []
    for key in trace:
        hits.append(key in here)
        if key in here:
            order.touch(key)
            continue
        order.expect(key, 1)
        if len(here) == capacity:
            victim = next(order.victims())
            order.evict(victim)
            here.remove(victim)
        order.add(key, 1)
        here.add(key)
    return hits


def oracle_hits_of(policy: str, trace: Sequence[int], capacity: int) -> list[bool]:
    cache: cachetools.Cache[int, int] = ORACLES[policy](capacity)
    hits = []
    for key in trace:
        hits.append(key in cache)
        if key in cache:
            cache[key]
        else:
            cache[key] = 0
    return hits


def best_possible_hits(trace: Sequence[int], capacity: int) -> int:
    """What a cache that knows the future finds: it lets go what is needed again last (Belady 1966)."""
    upcoming: dict[int, int] = {}
    next_use = [len(trace)] * len(trace)
    for at in range(len(trace) - 1, -1, -1):
        next_use[at] = upcoming.get(trace[at], len(trace))
        upcoming[trace[at]] = at
    here: dict[int, int] = {}
    hits = 0
    for at, key in enumerate(trace):
        hits += key in here
        if key not in here and len(here) == capacity:
            del here[max(here, key=lambda held: here[held])]
        here[key] = next_use[at]
    return hits


def published_trace(name: str) -> list[int]:
    path = SHARED / "caffeine-traces" / "raw" / "lirs" / f"{name}.trace.gz"
    if not path.exists():
        pytest.skip(f"needs {path.name} under $SMARTCACHE_DATA or ../shared/data")
    return [int(line) for line in gzip.open(path, "rt") if line.strip().isdigit()]


@pytest.mark.parametrize("policy", ORACLES)
@given(trace=keys, capacity=st.integers(1, 8))
def test_a_plain_policy_hits_where_cachetools_hits(policy: str, trace: list[int], capacity: int) -> None:
    assert hits_of(policy, trace, capacity) == oracle_hits_of(policy, trace, capacity)


@pytest.mark.parametrize("policy", ORACLES)
@pytest.mark.parametrize(("name", "capacity"), [("multi1", 500), ("cs", 400), ("ps", 1000), ("gli", 1000)])
def test_a_plain_policy_hits_where_cachetools_hits_on_published_traces(policy: str, name: str, capacity: int) -> None:
    trace = published_trace(name)
    assert hits_of(policy, trace, capacity) == oracle_hits_of(policy, trace, capacity)


@EACH_POLICY
@given(trace=keys, capacity=st.integers(1, 8))
def test_no_policy_hits_more_than_one_that_knows_the_future(policy: str, trace: list[int], capacity: int) -> None:
    assert sum(hits_of(policy, trace, capacity)) <= best_possible_hits(trace, capacity)


@EACH_POLICY
@given(trace=keys)
def test_where_everything_fits_every_return_is_a_hit(policy: str, trace: list[int]) -> None:
    assert sum(hits_of(policy, trace, 13)) == len(trace) - len(set(trace))


@pytest.mark.parametrize(("policy", "found"), [("lru", False), ("fifo", False), ("lirs", True), ("adaptive", True)])
def test_lirs_keeps_part_of_a_loop_that_does_not_fit_and_lru_nothing(policy: str, found: bool) -> None:
    """The example that LIRS is built on; what fits of a loop can be found in each round."""
    hits = hits_of(policy, list(range(12)) * 50, 10)
    assert (sum(hits[300:]) > 100) is found


@pytest.mark.parametrize(("policy", "found"), [("lru", 0), ("fifo", 0), ("arc", 4), ("lfu", 4), ("lirs", 4)])
def test_what_was_used_twice_outlives_a_scan_except_where_only_order_counts(policy: str, found: int) -> None:
    trace = [0, 1, 2, 3] * 3 + list(range(100, 140)) + [0, 1, 2, 3]
    assert sum(hits_of(policy, trace, 8)[-4:]) == found


@pytest.mark.parametrize(("policy", "found"), [("lfu", False), ("lfu-da", True)])
def test_with_aging_what_was_popular_once_makes_room(policy: str, found: bool) -> None:
    trace = [0, 1, 2, 3] * 20 + [10, 11, 12] * 100
    assert (sum(hits_of(policy, trace, 4)[-30:]) == 30) is found


@pytest.mark.parametrize(
    ("name", "capacity"), [("multi1", 500), ("multi2", 1000), ("multi3", 1500), ("sprite", 400), ("gli", 1000)]
)
def test_adaptive_is_never_worse_than_the_worst_and_close_to_the_best(name: str, capacity: int) -> None:
    trace = published_trace(name)
    rates = {policy: sum(hits_of(policy, trace, capacity)) / len(trace) for policy in POLICIES}
    adaptive = rates.pop("adaptive")
    assert min(rates.values()) <= adaptive
    assert max(rates.values()) - 0.05 <= adaptive


def test_lirs_finds_almost_all_that_can_be_found_of_the_published_loop() -> None:
    trace = published_trace("loop")[:30_000]
    assert sum(hits_of("lru", trace, 500)) == 0
    assert sum(hits_of("lirs", trace, 500)) >= 0.95 * best_possible_hits(trace, 500)


@EACH_POLICY
@given(
    steps=st.lists(st.tuples(st.sampled_from(["use", "split", "evict", "forget"]), st.integers(0, 9)), max_size=80),
    capacity=st.integers(1, 60),
)
@settings(max_examples=50, deadline=None)
def test_the_victims_are_exactly_what_is_there(policy: str, steps: list[tuple[str, int]], capacity: int) -> None:
    order = eviction_policy(policy, capacity)
    sizes: dict[int, int] = {}
    for number, (step, key) in enumerate(steps):
        if step == "use" and key in sizes:
            order.touch(key)
        elif step == "use":
            order.expect(key, 1 + key)
            order.add(key, 1 + key)
            sizes[key] = 1 + key
        elif step == "split" and sizes.get(key, 0) > 1:
            order.split(key, 100 + number, 1)
            sizes[key] -= 1
            sizes[100 + number] = 1
        elif step == "evict" and sizes:
            victim = next(order.victims())
            order.evict(victim)
            del sizes[victim]
        elif step == "forget" and key in sizes:
            order.forget(key)
            del sizes[key]
        assert sorted(order.victims()) == sorted(sizes)


@pytest.mark.parametrize("policy", ["lfu", "lfu-da"])
def test_the_head_of_a_split_inherits_how_often_it_was_used(policy: str) -> None:
    order = eviction_policy(policy, 10)
    for key in (1, 2, 3):
        order.add(key, 2)
    for key in (1, 1, 2, 3):
        order.touch(key)
    order.split(1, 4, 1)
    assert list(order.victims()) == [2, 3, 1, 4]
    order.touch(4)
    assert list(order.victims()) == [2, 3, 1, 4], "three uses and one more"


def test_the_head_of_a_split_is_as_old_as_the_rest_for_fifo() -> None:
    order = eviction_policy("fifo", 10)
    for key in (1, 2, 3):
        order.add(key, 2)
    order.split(1, 4, 1)
    assert list(order.victims()) == [1, 4, 2, 3]


def test_an_unknown_policy_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(ValueError, match="use one of lru, lfu, fifo, arc, lirs, lfu-da, adaptive"):
        eviction_policy("random", 10)
