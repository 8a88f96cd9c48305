"""What stands where in a prompt: the system text first, stable text before what varies, examples and turns in order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import TypeVar

from smartcache.lint.requests import Said, Sent
from smartcache.lint.volatile import spans

Moved = tuple[Sent, tuple[int, int, str] | None]  # the request mended; part, letters into it, and what was there

MIN_COMMON_LETTERS = 128  # that two texts have in common, to be of one template
MIN_COMMON_SHARE = 0.02
MIN_TEXTS = 3  # of a template, to tell what it always says
MIN_STABLE_SHARE = 0.8  # of its texts that have a sentence which it always says
MIN_CHUNK_LETTERS = 200  # of what varies in one place, to be passages rather than a value
MAX_UNITS = 400
MAX_TEMPLATES = 100  # that texts are compared with; an application has a few
MIN_KNOWN_LETTERS = 20  # of a lone turn, to be known again
_Unit = TypeVar("_Unit")
_UNITS = re.compile(r"(?<=[.!?])\s+|\n+")


def system_first(requests: Sequence[Sent]) -> list[Moved]:
    """The system's turns first, where a request begins with another."""
    return [_system_first(request) for request in requests]


def stable_first(found: Sequence[Moved], *, long: bool) -> list[Moved]:
    """What most requests of one template share first, what varies behind it: passages (`long`), or values."""
    key = cache(_key)
    templates: dict[tuple[int, str], list[_Template]] = {}
    places: dict[tuple[int, Said], _Template] = {}
    for request, _ in found:
        for n, turn in enumerate(request.turns[: request.head]):
            if (n, turn) not in places:
                places[n, turn] = _Template.of(turn.text, templates.setdefault((n, turn.role), []), key)
    return [
        _stable_first(request, cause, [places[at] for at in enumerate(request.turns[: request.head])], long, key)
        for request, cause in found
    ]


def examples_in_order(requests: Sequence[Sent]) -> list[Moved]:
    """Examples and passages, as lines of the text before the dialogue or as pairs of turns, in the order of their first
    coming."""
    lines: dict[tuple[int, int], tuple[tuple[str, ...], int]] = {}
    pairs: dict[tuple[int, int], tuple[tuple[tuple[Said, ...], ...], int]] = {}
    found: list[Moved] = []
    for request in requests:
        turns, cause = list(request.turns), None
        for n, turn in enumerate(turns[: request.head]):
            whole = tuple(turn.text.split("\n"))
            if (moved := _as_first(whole, request.line, lines)) and cause is None:
                turns[n] = Said(turn.role, "\n".join(moved[0]))
                offset = len(turn.role) + 2 + len("\n".join(whole[: moved[1]])) + 1
                cause = (len(request.tools) + n, offset, f"the same lines in another order than in request {moved[2]}")
        start = request.head if request.has_system else 0
        talk = tuple(tuple(turns[n : n + 2]) for n in range(start, len(turns) - 1, 2))
        if (swapped := _as_first(talk, request.line, pairs)) and cause is None:
            turns[start : start + 2 * len(talk)] = chain.from_iterable(swapped[0])
            part = len(request.tools) + start + 2 * swapped[1]
            cause = (part, 0, f"the same examples in another order than in request {swapped[2]}")
        found.append((replace(request, turns=tuple(turns)) if cause else request, cause))
    return found


def untrimmed(requests: Sequence[Sent]) -> list[Moved]:
    """With the turns back that an earlier request of the conversation had and this one has not."""
    seen: dict[tuple[Said, Said | None], tuple[Sent, int]] = {}
    found = []
    for request in requests:
        mended, cause = _untrimmed(request, seen)
        turns = mended.turns
        for k, turn in enumerate(turns):
            if turn.role not in ("system", "developer"):
                seen[turn, turns[k + 1] if k + 1 < len(turns) else None] = (mended, k)
        found.append((mended, cause))
    return found


@dataclass(frozen=True, slots=True)
class _Template:
    """Texts that have sentences in common; `counts` says in how many of them a sentence is."""

    seed: frozenset[str]
    counts: Counter[str]
    texts: set[str]

    @staticmethod
    def of(text: str, known: list[_Template], key: Callable[[str], str]) -> _Template:
        keys = frozenset(map(key, _UNITS.split(text)))
        if not (template := next((one for one in known if one.is_of(keys)), None)):
            template = _Template(keys, Counter(), set())
            known += [template] if len(known) < MAX_TEMPLATES else []
        template.texts.add(text)
        template.counts.update(keys)
        return template

    def is_of(self, keys: frozenset[str]) -> bool:
        common = sum(map(len, self.seed & keys))
        least = min(sum(map(len, self.seed)), sum(map(len, keys)))
        return common >= max(MIN_COMMON_LETTERS, MIN_COMMON_SHARE * least)

    def is_stable(self, key: str) -> bool:
        return self.counts[key] >= MIN_STABLE_SHARE * len(self.texts)


def _key(unit: str) -> str:
    """A sentence as it is compared: dates and ids are causes of their own, as is white space."""
    for code in ("timestamp", "id"):
        for start, end in reversed(spans(code, unit)):
            unit = unit[:start] + unit[end:]
    return " ".join(unit.split()).strip(" ,")


def _system_first(request: Sent) -> Moved:
    late = [turn for turn in request.turns if turn.role in ("system", "developer")]
    if not late or request.has_system:
        return request, None
    rest = [turn for turn in request.turns if turn.role not in ("system", "developer")]
    what = f"a turn of the {rest[0].role} before the system text"
    return replace(request, turns=(*late, *rest)), (len(request.tools), 0, what)


def _stable_first(
    request: Sent, cause: tuple[int, int, str] | None, templates: list[_Template], long: bool, key: Callable[[str], str]
) -> Moved:
    turns = list(request.turns)
    for n, template in enumerate(templates):
        units = [unit for unit in _UNITS.split(turns[n].text) if unit]
        stable = [template.is_stable(key(unit)) for unit in units]
        last = max((i for i, known in enumerate(stable) if known), default=0)
        moved = [unit for unit, known in zip(units[:last], stable, strict=False) if not known]
        if len(template.texts) < MIN_TEXTS or not moved or (sum(map(len, moved)) >= MIN_CHUNK_LETTERS) is not long:
            continue
        first = [unit for unit, known in zip(units, stable, strict=True) if known]
        rest = [unit for unit, known in zip(units, stable, strict=True) if not known]
        turns[n] = Said(turns[n].role, "\n".join([*first, *rest]))
        offset = len(turns[n].role) + 2 + request.turns[n].text.find(moved[0])
        cause = cause or (len(request.tools) + n, offset, f"{moved[0][:60]!r} before text that most requests share")
    return replace(request, turns=tuple(turns)), cause


def _as_first(
    units: tuple[_Unit, ...], line: int, seen: dict[tuple[int, int], tuple[tuple[_Unit, ...], int]]
) -> tuple[tuple[_Unit, ...], int, int] | None:
    """The units in the order of an earlier request that began with the same ones in another order, as many as possible;
    with the first place that differs, and that request's line. Remembers this one, once for all its beginnings."""
    own, earlier, total = (units, line), list[tuple[int, tuple[tuple[_Unit, ...], int]]](), 0
    for count, unit in enumerate(units[:MAX_UNITS], 1):
        total += hash(unit)
        if (known := seen.setdefault((count, total), own)) is not own:
            earlier.append((count, known))
    places = {id(known): _first_difference(known[0], units) for known in {id(k): k for _, k in earlier}.values()}
    for count, known in reversed(earlier):
        place = places[id(known)]
        if place < count and Counter(known[0][:count]) == Counter(units[:count]):
            return (*known[0][:count], *units[count:]), place, known[1]
    return None


def _first_difference(one: Sequence[object], other: Sequence[object]) -> int:
    shorter = min(len(one), len(other))
    return next((n for n in range(shorter) if one[n] != other[n]), shorter)


def _untrimmed(request: Sent, seen: dict[tuple[Said, Said | None], tuple[Sent, int]]) -> Moved:
    turns = request.turns
    for i, turn in enumerate(turns[:-1]):
        before = seen.get((turn, turns[i + 1]))
        if before is None and len(turn.text) >= MIN_KNOWN_LETTERS:
            before = seen.get((turn, None))
        if before and before[1] > i and before[0].turns[:i] == turns[:i]:
            earlier, k = before
            what = f"{k - i} turns of request {earlier.line} are dropped before the {turn.role} turn {turn.text[:30]!r}"
            return replace(request, turns=(*earlier.turns[:k], *turns[i:])), (len(request.tools) + i, 0, what)
    return request, None
