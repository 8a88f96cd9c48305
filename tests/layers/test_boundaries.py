"""State that cannot be cut, on letters: found only where it was stored, and within the budget of the one cache."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from smartcache.layers.boundaries import MARK, MIN_TOKENS, TOKEN_BYTES, Boundaries, BoundaryMatch, Stretch
from smartcache.layers.eviction import POLICIES
from smartcache.layers.prefixes import NoPrefixCache, PrefixCache

LETTER, TAIL = 3, 5  # bytes


@dataclass(frozen=True, slots=True)
class Letters:
    """What can be cut: step n is letter n."""

    text: str

    def __len__(self) -> int:
        return len(self.text)

    def __getitem__(self, steps: slice) -> Letters:
        return Letters(self.text[steps])

    @property
    def nbytes(self) -> int:
        return LETTER * len(self.text)


@dataclass(frozen=True, slots=True)
class Whole:
    """What cannot: it knows all that it was computed from."""

    text: str
    nbytes: int = TAIL


class Memory:
    """A prefix cache and its boundaries, asked with texts."""

    def __init__(self, max_bytes: int = 10_000, policy: str = "lru", *, cuts: bool = True) -> None:
        self.prefixes: PrefixCache[Stretch[Letters, Whole]] = PrefixCache(max_bytes, policy=policy)
        self.boundaries = Boundaries(self.prefixes)
        self._cuts = cuts

    def store(self, text: str, name: str = "model") -> bool:
        cut = Letters(text) if self._cuts else None
        return self.boundaries.store(name, tokens_of(text), Stretch(len(text), cut, Whole(text)))

    def match(self, text: str, *names: str) -> BoundaryMatch[Letters, Whole]:
        with self.boundaries.match(names or ("model",), tokens_of(text)) as match:
            return match

    def known(self, text: str, *names: str) -> str:
        """The boundary found for `text`, after a look at whether both parts of its state are right."""
        match = self.match(text, *names)
        found = text[: match.length]
        assert (match.tail.text if match.tail else "") == found
        assert "".join(cut.text for cut in match.cuts) == (found if self._cuts else "")
        return found


def tokens_of(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def memory(*texts: str, max_bytes: int = 10_000, cuts: bool = True) -> Memory:
    made = Memory(max_bytes, cuts=cuts)
    for text in texts:
        assert made.store(text)
    return made


@pytest.mark.parametrize("cuts", [True, False])
def test_the_longest_stored_boundary_is_found(cuts: bool) -> None:
    assert memory("ab", "abcd", "abcdefgh", "abxy", cuts=cuts).known("abcdef") == "abcd"


@pytest.mark.parametrize("text", ["abc.", "abcdx", "abx", "xbcd."])
def test_nothing_is_found_between_boundaries(text: str) -> None:
    assert memory("abcde").known(text) == ""


def test_the_last_token_of_a_prompt_is_never_taken_from_the_cache() -> None:
    stored = memory("abc", "abcd")
    assert (stored.known("abcd"), stored.known("abcde")) == ("abc", "abcd")


@pytest.mark.parametrize("prompt", ["", "a"])
def test_a_prompt_of_at_most_one_token_finds_nothing(prompt: str) -> None:
    assert memory("a").known(prompt) == ""


def test_boundaries_of_two_fingerprints_never_meet() -> None:
    assert memory("abc").known("abcd", "other") == ""


def test_of_several_fingerprints_the_longest_boundary_is_taken() -> None:
    stored = memory("ab")
    stored.store("abcd", "other")
    assert [stored.known(text, "model", "other") for text in ("abcde", "abcx")] == ["abcd", "ab"]


def test_a_match_says_where_a_text_parts_from_an_earlier_one() -> None:
    match = memory("abcdef").match("abcxyz")
    assert (match.length, match.parting) == (0, 3)


def test_a_boundary_can_be_added_where_texts_part() -> None:
    stored = memory("abcdef", "abc")
    assert (stored.known("abcxyz"), stored.known("abcdefg")) == ("abc", "abcdef")


def test_what_can_be_cut_is_stored_once_for_all_boundaries_of_a_text() -> None:
    stored = memory("abc", "abcdef", "abcdxy")
    distinct, marks = len("abcdefxy"), 3
    assert stored.prefixes.bytes() == LETTER * distinct + TAIL * marks + TOKEN_BYTES * (distinct + marks)


def test_storing_says_whether_it_is_new() -> None:
    assert [memory("abc").store(text) for text in ("abc", "ab", "abcd")] == [False, True, True]


@pytest.mark.parametrize("state", [Stretch(3, Letters("abc")), Stretch(2, Letters("ab"), Whole("ab"))])
def test_state_that_is_not_that_of_the_boundary_is_refused(state: Stretch[Letters, Whole]) -> None:
    with pytest.raises(ValueError, match="at the end of the 3 tokens, with its tail"):
        memory().boundaries.store("model", tokens_of("abc"), state)


def test_a_boundary_can_go_while_a_later_one_of_the_same_text_stays() -> None:
    letter, mark = LETTER + TOKEN_BYTES, TAIL + TOKEN_BYTES
    stored = memory("ab", "abcd", max_bytes=4 * letter + mark + letter + mark)
    stored.known("abcd.")
    assert stored.store("x")
    assert [stored.known(text) for text in ("abc", "abcd.", "x.")] == ["", "abcd", "x"]


def test_a_boundary_in_use_is_not_evicted_and_can_be_afterwards() -> None:
    stored = memory("ab", max_bytes=memory("ab").prefixes.bytes())
    with stored.boundaries.match(("model",), tokens_of("ab.")) as match:
        assert not stored.store("xy")
        assert match.tail == Whole("ab")
    assert stored.store("xy")
    assert stored.known("ab.") == ""


def test_what_is_forgotten_in_the_cache_is_forgotten_here() -> None:
    stored = memory("abcd", "abxy")
    stored.prefixes.forget("model", tokens_of("abx"))
    assert (stored.known("abxyz"), stored.known("abcde")) == ("", "abcd")
    stored.prefixes.clear()
    assert (stored.known("abcde"), stored.prefixes.bytes(), len(stored.prefixes)) == ("", 0, 0)


def test_a_cache_that_keeps_nothing_has_no_boundaries() -> None:
    boundaries: Boundaries[Letters, Whole] = Boundaries(NoPrefixCache())
    assert not boundaries.store("model", tokens_of("ab"), Stretch(2, Letters("ab"), Whole("ab")))
    with boundaries.match(("model",), tokens_of("abc")) as match:
        assert match == BoundaryMatch()


@pytest.mark.parametrize(
    ("length", "parting", "ends"),
    [
        (0, 0, [99]),
        (0, 3, [99]),  # too little in common
        (0, 40, [40, 99]),
        (30, 40, [99]),
        (30, 30 + MIN_TOKENS, [30 + MIN_TOKENS, 99]),
        (0, 99, [99]),
        (90, 90, []),  # so near that it is computed again as fast
        (99, 99, []),
        (0, 90, [90]),
    ],
)
def test_the_ends_to_store_are_where_texts_part_and_before_the_last_token(
    length: int, parting: int, ends: list[int]
) -> None:
    assert BoundaryMatch(length, parting=parting).ends(100) == ends


class AgainstADict(RuleBasedStateMachine):
    """Any sequence of calls, beside a plain dict that never evicts: what is found is a boundary that was stored, all of
    them are found as long as nothing had to go, and the bytes are those of what is there."""

    texts = st.text("ab", min_size=1, max_size=8)
    names = st.sampled_from(["one", "two"])
    budget = 600
    policy = "lfu-da"

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory(self.budget, self.policy)
        self.stored: dict[tuple[str, str], None] = {}
        self.evicted = False

    @rule(text=texts, name=names, pinned=texts)
    def store(self, text: str, name: str, pinned: str) -> None:
        with self.memory.boundaries.match((name,), tokens_of(pinned)) as match:
            new = self.memory.store(text, name)
            assert len(self.memory.known(pinned, name)) >= match.length
        if new:
            self.stored[name, text] = None
        prefixes = {(owner, text[:end]) for owner, text in self.stored for end in range(1, len(text) + 1)}
        self.evicted |= self._size(len(prefixes), len(self.stored)) > self.budget

    @rule(text=texts, names=st.permutations(["one", "two"]))
    def match(self, text: str, names: list[str]) -> None:
        found = self.memory.known(text, *names)
        assert not found or any((name, found) in self.stored for name in names)
        if not self.evicted:
            stored = {text for _, text in self.stored}
            assert found == next((text[:n] for n in range(len(text) - 1, 0, -1) if text[:n] in stored), "")

    @rule(name=names)
    def forget(self, name: str) -> None:
        self.memory.prefixes.forget(name)
        self.stored = {key: None for key in self.stored if key[0] != name}

    @rule()
    def clear(self) -> None:
        self.memory.prefixes.clear()
        self.stored, self.evicted = {}, False

    @invariant()
    def bytes_add_up(self) -> None:
        letters, marks = set(), set()
        for name, text in self.stored:
            with self.memory.prefixes.match(name, [*tokens_of(text), MARK, MARK]) as match:
                letters |= {(name, text[:end]) for end in range(1, min(match.length, len(text)) + 1)}
                marks |= {(name, text)} if match.length > len(text) else set()
        assert self.memory.prefixes.bytes() == self._size(len(letters), len(marks)) <= self.budget

    @staticmethod
    def _size(letters: int, marks: int) -> int:
        return (LETTER + TOKEN_BYTES) * letters + (TAIL + TOKEN_BYTES) * marks


@pytest.mark.parametrize("policy", POLICIES)
def test_any_sequence_of_calls_beside_a_dict(policy: str) -> None:
    machine = type(f"AgainstADict_{policy}", (AgainstADict,), {"policy": policy})
    run_state_machine_as_test(machine, settings=settings(max_examples=20, stateful_step_count=25, deadline=None))
