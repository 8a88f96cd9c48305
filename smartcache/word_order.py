"""Whether two texts of the same words have two of them in each other's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import combinations, pairwise

from smartcache.stems import stem
from smartcache.word_classes import DETERMINERS
from smartcache.wording import ALIGNING, PERSONS, SENTENCE_STARTERS


def exchanged(steps: Sequence[str], others: Sequence[str], named: Set[str] | None = None) -> bool:
    """Whether of two words each follows in one text what the other follows in the other. `steps`: the words as they
    come, after ""; `named`: the stems of those that alone have their place, where the rest is in other words."""
    if named is not None and len(named) < 2:
        return False
    places, also = _places(steps), _places(others)
    left, came = _moves(places, also), _moves(also, places)
    moved = [word for word in sorted(left.keys() & came) if named is None or word in named]
    return any(left[one] & came[two] and left[two] & came[one] for one, two in combinations(moved, 2))


def goes_back(steps: Sequence[str], others: Sequence[str]) -> bool:
    """Whether one text goes from A to B and the other from B to A: "a list to a set", "a set into a list"."""
    ways, also = _ways(steps), _ways(others)
    return any((end, start) in also for start, end in ways - also)


def _ways(steps: Sequence[str]) -> frozenset[tuple[str, str]]:
    words = [word if word in _TO else stem(word) for word in steps if word not in DETERMINERS]
    return frozenset((words[n - 1], words[n + 1]) for n in range(1, len(words) - 1) if words[n] in _TO)


_TO = frozenset(("to", "into"))


def is_turned_round(order: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two of the same words, not side by side, are exchanged and all others stay; a person ("I", "you") may
    stand beside the other."""
    moved = [place for place, pair in enumerate(zip(order, other, strict=False)) if pair[0] != pair[1]]
    if len(order) != len(other) or len(moved) != 2:
        return False
    first, last = moved
    is_person = not PERSONS.keys().isdisjoint((order[first], order[last]))
    return (last - first > 1 or is_person) and (order[first], order[last]) == (other[last], other[first])


def _places(steps: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """What each word follows, articles and their like aside, by their stems; of Chinese, each sign."""
    places: dict[str, frozenset[str]] = {}
    kept = [
        word if word in SENTENCE_STARTERS else stem(word.removesuffix("'s"))
        for word in steps
        if word not in DETERMINERS
    ]
    for before, word in pairwise(kept):
        if word:
            places[word] = places[word] | {before} if word in places else frozenset((before,))
    return places


def _moves(places: Mapping[str, frozenset[str]], others: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """What a word that carries meaning follows here and not there, where both have it; what is lined up with others
    ("A and B") may stand in any order."""
    words = (places.keys() & others.keys()) - SENTENCE_STARTERS - ALIGNING
    moved = {word: places[word] - others[word] for word in words}
    return {word: before for word, before in moved.items() if before and before.isdisjoint(ALIGNING)}
