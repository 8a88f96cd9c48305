"""Traces, hit rates by policy, and the advice drawn from them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartcache.layers.eviction import POLICIES
from smartcache_eval.advice import advice_on
from smartcache_eval.eviction_bench import hit_rate
from smartcache_eval.traces import UnreadableTrace, mooncake_trace, read_trace

EACH_POLICY = pytest.mark.parametrize("policy", POLICIES)
LOOP = [[number] for number in range(40)] * 20
RECENT = [[number // 3] for number in range(300)]

# requests over words: a block is the number of one prefix, as in a real trace
words = st.lists(st.text("ab", min_size=1, max_size=6), max_size=40)


def blocks_of(asked: list[str]) -> list[list[int]]:
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(word[:end], len(numbers)) for end in range(1, len(word) + 1)] for word in asked]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from smartcache_eval.command import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)


@EACH_POLICY
@given(asked=words)
def test_with_room_for_all_every_known_prefix_is_found(policy: str, asked: list[str]) -> None:
    trace = blocks_of(asked)
    total, distinct = sum(map(len, trace)), len({block for request in trace for block in request})
    if total:
        assert hit_rate(trace, policy, distinct) == pytest.approx(1 - distinct / total)


@EACH_POLICY
@given(asked=words, capacity=st.integers(1, 12))
def test_less_room_never_finds_more_than_all_room(policy: str, asked: list[str], capacity: int) -> None:
    trace = blocks_of(asked)
    if any(trace):
        assert hit_rate(trace, policy, capacity) <= hit_rate(trace, policy, 1_000)


@EACH_POLICY
def test_a_block_counts_only_with_all_blocks_before_it(policy: str) -> None:
    assert hit_rate([[1, 2, 3], [9, 2, 3]], policy, 10) == 0
    assert hit_rate([[1, 2, 3], [1, 2, 9]], policy, 10) == pytest.approx(2 / 6)


@EACH_POLICY
def test_a_request_longer_than_the_cache_leaves_its_beginning(policy: str) -> None:
    assert hit_rate([[1, 2, 3, 4]] * 2, policy, 3) == pytest.approx(3 / 8)


def test_a_loop_wants_lirs_where_it_does_not_fit() -> None:
    rates = {policy: hit_rate(LOOP, policy, 30) for policy in POLICIES}
    assert rates["lru"] == 0
    assert max(rates, key=lambda policy: rates[policy]) == "lirs"


def test_the_advice_is_the_smallest_size_that_finds_nearly_all() -> None:
    loop, recent = advice_on(LOOP), advice_on(RECENT)
    assert (loop.blocks, recent.blocks) == (40, 1)
    assert recent.hit_rate == recent.endless_hit_rate == pytest.approx(2 / 3)


def test_a_trace_without_a_return_wants_no_cache() -> None:
    assert "no cache would find anything" in str(advice_on([[1], [2], [3]]))


def test_lists_of_blocks_and_single_keys_are_read_zipped_or_not(tmp_path: Path) -> None:
    lists, keys = tmp_path / "lists.jsonl", tmp_path / "keys.trace.gz"
    lists.write_text('{"hash_ids": [4, 5, 4]}\n\n{"hash_ids": []}\n{"hash_ids": [4]}\n')
    keys.write_bytes(gzip.compress(b"a\nb\n*\na\n"))
    assert read_trace(lists) == [[4, 5], [4]]
    assert read_trace(keys) == [[0], [1], [0]]


@pytest.mark.parametrize(
    ("text", "told"), [("", "holds no request"), ('{"hash_ids": 3}', "request 1"), ('{"a": 1}', "request 1")]
)
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(UnreadableTrace, match=told):
        read_trace(path)


def test_advise_prints_the_advice_as_a_table_and_as_json(tmp_path: Path) -> None:
    path = tmp_path / "loop.trace"
    path.write_text("".join(f"{block}\n" for (block,) in LOOP))
    assert "with room for 40 blocks" in run("advise", str(path)).stdout
    advice = json.loads(run("advise", str(path), "--json").stdout)
    assert advice["blocks"] == 40
    assert set(advice["hit_rates"]["40"]) == set(POLICIES)


@pytest.mark.parametrize("arguments", [("advise", "missing.trace"), ("bench", "eviction")])
def test_a_trace_that_is_not_there_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMARTCACHE_DATA", str(tmp_path))
    done = run(*arguments)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    ("policy", "found"),
    [("lru", 0.262), ("lfu", 0.187), ("fifo", 0.262), ("arc", 0.265), ("lfu-da", 0.249), ("adaptive", 0.273)],
)
def test_the_measured_rates_on_the_mooncake_trace_stay(policy: str, found: float) -> None:
    try:
        trace = mooncake_trace()
    except UnreadableTrace as absent:
        pytest.skip(str(absent))
    assert hit_rate(trace, policy, 4_392) == pytest.approx(found, abs=0.001)
