"""The prefix cache on letters: what is found, what is kept once, what goes first, and that the bytes add up."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from smartcache.layers.eviction import POLICIES
from smartcache.layers.prefixes import NoPrefixCache, PrefixCache


@dataclass(frozen=True, slots=True)
class Letters:
    """A state whose step n is letter n, three bytes each, so that a wrong slice shows."""

    text: str

    def __len__(self) -> int:
        return len(self.text)

    def __getitem__(self, steps: slice) -> Letters:
        return Letters(self.text[steps])

    @property
    def nbytes(self) -> int:
        return 3 * len(self.text)


def tokens_of(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def store(prefixes: PrefixCache[Letters], text: str, fingerprint: str = "model") -> int:
    return prefixes.store(fingerprint, tokens_of(text), Letters(text))


def known(prefixes: PrefixCache[Letters] | NoPrefixCache, text: str, fingerprint: str = "model") -> str:
    """The known prefix of `text`, read from the segments that the match hands out."""
    with prefixes.match(fingerprint, tokens_of(text)) as match:
        return "".join(segment.text for segment in match.segments)[: match.length]


def prefix_cache(*texts: str, max_bytes: int = 3_000, policy: str = "lru") -> PrefixCache[Letters]:
    prefixes: PrefixCache[Letters] = PrefixCache(max_bytes, policy=policy)
    for text in texts:
        store(prefixes, text)
    return prefixes


def test_the_longest_known_prefix_is_found_to_the_token() -> None:
    assert known(prefix_cache("abcde"), "abcxy") == "abc"


def test_the_last_token_of_a_prompt_is_never_taken_from_the_cache() -> None:
    assert known(prefix_cache("abcde"), "abcde") == "abcd"


def test_nothing_is_found_where_the_first_token_differs() -> None:
    assert known(prefix_cache("abcde"), "xbcde") == ""


def test_a_prefix_made_of_several_stored_parts_comes_in_order() -> None:
    assert known(prefix_cache("abc", "abcdef", "abcdxy", "abcdefghi"), "abcdefghij") == "abcdefghi"


@pytest.mark.parametrize("prompt", ["", "a"])
def test_a_prompt_of_at_most_one_token_finds_nothing(prompt: str) -> None:
    assert known(prefix_cache("abc"), prompt) == ""


def test_prefixes_of_two_fingerprints_never_meet() -> None:
    prefixes = prefix_cache("abcde")
    assert (known(prefixes, "abcde", "other"), known(prefixes, "abcde", "model")) == ("", "abcd")


def test_a_shared_prefix_is_stored_and_counted_once() -> None:
    prefixes = prefix_cache("abcdef", "abcxyz")
    assert (prefixes.bytes(), len(prefixes)) == (27, 9)


def test_storing_says_how_many_tokens_are_new() -> None:
    prefixes = prefix_cache("abc")
    assert [store(prefixes, text) for text in ("abcde", "abcde", "ab", "xy")] == [2, 0, 0, 2]


def test_state_may_cover_only_the_first_tokens() -> None:
    prefixes: PrefixCache[Letters] = PrefixCache(3_000)
    prefixes.store("model", tokens_of("abcdef"), Letters("abc"))
    assert known(prefixes, "abcdefg") == "abc"


def test_state_longer_than_its_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="covers 3 tokens, but only 2"):
        prefix_cache().store("model", [1, 2], Letters("abc"))


def test_the_least_recently_used_leaf_goes_first() -> None:
    prefixes = prefix_cache("ab", "cd", "ef", max_bytes=18)
    known(prefixes, "ab.")
    store(prefixes, "gh")
    assert [known(prefixes, text + ".") for text in ("ab", "cd", "ef", "gh")] == ["ab", "", "ef", "gh"]


@pytest.mark.parametrize(("policy", "kept"), [("lru", "cd"), ("fifo", "cd"), ("lfu", "ab"), ("lfu-da", "ab")])
def test_a_policy_says_which_leaf_goes_first(policy: str, kept: str) -> None:
    prefixes = prefix_cache("ab", "cd", max_bytes=12, policy=policy)
    for text in ("ab.", "ab.", "cd."):
        known(prefixes, text)
    store(prefixes, "ef")
    assert [text for text in ("ab", "cd") if known(prefixes, text + ".")] == [kept]


def test_storing_what_is_known_counts_as_no_use() -> None:
    prefixes = prefix_cache("ab", "cd", *["ab"] * 3, max_bytes=12, policy="lfu")
    known(prefixes, "cd.")
    store(prefixes, "ef")
    assert (known(prefixes, "ab."), known(prefixes, "cd.")) == ("", "cd")


def test_splitting_a_popular_sequence_leaves_its_end_as_popular() -> None:
    prefixes = prefix_cache("abcd", "xy", max_bytes=21, policy="lfu")
    for text in ("abcd.", "abcd.", "xy."):
        known(prefixes, text)
    store(prefixes, "abz")
    store(prefixes, "uvw")
    assert [known(prefixes, text + ".") for text in ("abcd", "xy", "uvw")] == ["abcd", "", "uvw"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_prefix_outlives_what_hangs_on_it(policy: str) -> None:
    prefixes = prefix_cache("abcd", "abef", max_bytes=18, policy=policy)
    store(prefixes, "gh")
    assert sorted(known(prefixes, text + ".") for text in ("abcd", "abef")) in (["ab", "abcd"], ["ab", "abef"])
    assert known(prefixes, "gh.") == "gh"


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_in_use_is_not_evicted(policy: str) -> None:
    prefixes = prefix_cache("ab", "cd", max_bytes=12, policy=policy)
    with prefixes.match("model", tokens_of("ab.")):
        known(prefixes, "cd.")
        store(prefixes, "ef")
    assert [known(prefixes, text + ".") for text in ("ab", "cd", "ef")] == ["ab", "", "ef"]


def test_what_was_in_use_can_be_evicted_afterwards() -> None:
    prefixes = prefix_cache("ab", "cd", max_bytes=12)
    with prefixes.match("model", tokens_of("ab.")):
        pass
    known(prefixes, "cd.")
    store(prefixes, "ef")
    assert known(prefixes, "ab.") == ""


def test_a_branch_inside_a_prefix_in_use_leaves_all_of_it_in_use() -> None:
    prefixes = prefix_cache("abcd", max_bytes=18)
    with prefixes.match("model", tokens_of("abcd.")):
        store(prefixes, "abxy")
        store(prefixes, "efg")
        assert known(prefixes, "abcd.") == "abcd"
    store(prefixes, "efghij")
    assert known(prefixes, "abcd.") == ""


def test_nothing_is_stored_beside_what_is_in_use_when_it_finds_no_room() -> None:
    prefixes = prefix_cache("abcd", max_bytes=12)
    with prefixes.match("model", tokens_of("abcd.")):
        stored = store(prefixes, "xy")
    assert (stored, known(prefixes, "abcd.")) == (0, "abcd")


def test_a_state_above_the_budget_is_not_stored_and_evicts_nothing() -> None:
    prefixes = prefix_cache("ab", max_bytes=9)
    assert (store(prefixes, "wxyz"), known(prefixes, "ab.")) == (0, "ab")


def test_a_match_stays_right_after_its_prefix_is_cleared() -> None:
    prefixes = prefix_cache("abcd")
    with prefixes.match("model", tokens_of("abcd.")) as match:
        prefixes.clear()
        assert [segment.text for segment in match.segments] == ["abcd"]


def test_clear_forgets_everything() -> None:
    prefixes = prefix_cache("abcd", "abxy")
    prefixes.clear()
    assert (known(prefixes, "abcd"), prefixes.bytes(), len(prefixes)) == ("", 0, 0)


def test_forget_drops_a_sequence_and_keeps_what_others_share_with_it() -> None:
    prefixes = prefix_cache("abcd", "abxy", "abxyz")
    assert prefixes.forget("model", tokens_of("abx")) == 3
    assert [known(prefixes, text + ".") for text in ("abxyz", "abcd")] == ["ab", "abcd"]


def test_forget_drops_the_whole_way_to_a_sequence_that_shares_nothing() -> None:
    prefixes = prefix_cache("ab", "abcd", "xy")
    assert prefixes.forget("model", tokens_of("abcd")) == 4
    assert [known(prefixes, text + ".") for text in ("abcd", "xy")] == ["", "xy"]


def test_forget_of_an_unknown_sequence_drops_nothing() -> None:
    prefixes = prefix_cache("abcd")
    assert (prefixes.forget("model", tokens_of("abx")), prefixes.forget("other"), len(prefixes)) == (0, 0, 4)


def test_forget_without_tokens_drops_one_fingerprint() -> None:
    prefixes = prefix_cache("abcd", "xy")
    store(prefixes, "abcd", "other")
    assert prefixes.forget("model") == 6
    assert (known(prefixes, "abcd", "other"), len(prefixes)) == ("abc", 4)


def test_an_error_inside_the_block_releases_the_prefix() -> None:
    prefixes = prefix_cache("ab", max_bytes=6)
    with pytest.raises(RuntimeError), prefixes.match("model", tokens_of("ab.")):
        raise RuntimeError
    assert store(prefixes, "cd") == 2


def test_a_state_that_finds_no_room_beside_what_is_in_use_evicts_nothing() -> None:
    prefixes = prefix_cache(max_bytes=3 * 10)
    store(prefixes, "x")
    store(prefixes, "abcde")
    with prefixes.match("model", tokens_of("abcde.")):
        assert store(prefixes, "zzzzzz") == 0
        assert known(prefixes, "x.") == "x"
        assert store(prefixes, "zzzzz") == 5
    assert known(prefixes, "x.") == "", "it was the room for the last one"


def test_an_unknown_policy_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(ValueError, match="use one of lru, lfu, fifo, arc, lirs, lfu-da, adaptive"):
        PrefixCache(policy="random")


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="must be 0 or more"):
        PrefixCache(-1)


def test_the_twin_without_memory_never_finds_anything() -> None:
    prefixes = NoPrefixCache()
    assert (prefixes.store("model", tokens_of("abc"), Letters("abc")), known(prefixes, "abc")) == (0, "")


def test_threads_that_share_a_cache_read_only_the_state_of_their_own_tokens() -> None:
    prefixes = prefix_cache(max_bytes=90)
    wrong: list[str] = []

    def converse(name: int) -> None:
        for step in range(60):
            text = "ab" + chr(100 + (name + step) % 7) * 3 + str(step % 5)
            store(prefixes, text)
            if not text.startswith(known(prefixes, text)):
                wrong.append(text)

    threads = [threading.Thread(target=converse, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (wrong, prefixes.bytes()) == ([], 3 * len(prefixes))


class AgainstADict(RuleBasedStateMachine):
    """Any sequence of calls, beside a plain dict that never evicts: what is found is always a prefix that was stored,
    everything stored is found as long as nothing had to go, and the counts are those of the distinct prefixes."""

    texts = st.text("ab", min_size=1, max_size=8)
    names = st.sampled_from(["one", "two"])
    budget = 45
    policy = "lfu-da"

    def __init__(self) -> None:
        super().__init__()
        self.prefixes: PrefixCache[Letters] = PrefixCache(self.budget, policy=self.policy)
        self.stored: dict[tuple[str, str], None] = {}
        self.evicted = False

    @rule(text=texts, name=names, pinned=texts)
    def store(self, text: str, name: str, pinned: str) -> None:
        with self.prefixes.match(name, tokens_of(pinned)) as match:
            new = store(self.prefixes, text, name)
            assert len(known(self.prefixes, pinned, name)) >= match.length
        if new:
            self.stored |= {(name, text[:end]): None for end in range(1, len(text) + 1)}
        self.evicted |= 3 * len(self.stored) > self.budget

    @rule(text=texts, name=names)
    def match(self, text: str, name: str) -> None:
        found = known(self.prefixes, text, name)
        assert text[:-1].startswith(found)
        assert not found or (name, found) in self.stored
        if not self.evicted:
            assert found == next((text[:n] for n in range(len(text) - 1, 0, -1) if (name, text[:n]) in self.stored), "")

    @rule(name=names)
    def forget(self, name: str) -> None:
        self.prefixes.forget(name)
        self.stored = {key: None for key in self.stored if key[0] != name}

    @rule()
    def clear(self) -> None:
        self.prefixes.clear()
        self.stored, self.evicted = {}, False

    @invariant()
    def bytes_add_up(self) -> None:
        live = {
            (name, text[:end])
            for name, text in self.stored
            for end in range(1, len(known(self.prefixes, text + ".", name)) + 1)
        }
        assert self.prefixes.bytes() == 3 * len(self.prefixes) == 3 * len(live) <= self.budget


@pytest.mark.parametrize("policy", POLICIES)
def test_any_sequence_of_calls_beside_a_dict(policy: str) -> None:
    machine = type(f"AgainstADict_{policy}", (AgainstADict,), {"policy": policy})
    run_state_machine_as_test(machine, settings=settings(max_examples=60, stateful_step_count=30, deadline=None))
