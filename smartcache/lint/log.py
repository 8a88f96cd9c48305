"""What keeps the requests of a log from sharing: each cause is mended in turn, and the gain is measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from smartcache.lint.findings import Finding, Sharing
from smartcache.lint.mends import MENDS, Cause
from smartcache.lint.requests import Sent
from smartcache.lint.sharing import length, letters_shared, share

MIN_GAIN = 0.002  # of all letters, for a cause to be worth a word
MIN_LOST_LETTERS = 64  # that a request could share more, for a cause to count


@dataclass(frozen=True, slots=True)
class _Mending:
    """The requests with some codes mended, and what was found on the way."""

    requests: list[Sent]
    shared: list[int]
    causes: dict[str, list[tuple[Cause, ...]]]

    @staticmethod
    def of(requests: Sequence[Sent], codes: Iterable[str]) -> _Mending:
        mended, causes = list(requests), dict[str, list[tuple[Cause, ...]]]()
        for code in MENDS:
            if code in set(codes):
                found = MENDS[code](mended)
                mended, causes[code] = [request for request, _ in found], [there for _, there in found]
        return _Mending(mended, letters_shared(mended), causes)

    @property
    def total(self) -> float:
        return share(self.shared, self.requests)


def examined(requests: Sequence[Sent], source: str, ignore: Collection[str] = ()) -> tuple[list[Finding], Sharing]:
    """The findings of a log, and what mending them would bring."""
    now = _Mending.of(requests, ())
    whole = _Mending.of(requests, [code for code in MENDS if code not in ignore])
    codes = [code for code, found in whole.causes.items() if any(found)]
    for code in reversed(codes):  # of two that mend the same, the first stays
        fewer = [one for one in codes if one != code]
        without = _Mending.of(requests, fewer)
        if whole.total - without.total < MIN_GAIN or not any(_lost(whole, without)):
            codes, whole = fewer, without
    whole = _Mending.of(requests, codes)
    findings: list[Finding] = []
    for code in codes:
        blocked = _lost(whole, _Mending.of(requests, [one for one in codes if one != code]))
        findings += _findings(code, source, requests, now, whole, blocked)
    by_code = {code: _Mending.of(requests, [code]).total for code in dict.fromkeys(one.code for one in findings)}
    pairs = [
        (early / max(1, length(a)), late / max(1, length(b)))
        for early, a, late, b in zip(now.shared, requests, whole.shared, whole.requests, strict=True)
    ]
    return findings, Sharing(now.total, whole.total, by_code, tuple(pairs))


def _lost(whole: _Mending, without: _Mending) -> list[bool]:
    """Which requests share less for want of one mending."""
    return [more - less >= MIN_LOST_LETTERS for more, less in zip(whole.shared, without.shared, strict=True)]


def _findings(
    code: str, source: str, requests: Sequence[Sent], now: _Mending, whole: _Mending, blocked: list[bool]
) -> Iterable[Finding]:
    """One for each kind of cause, at the first request that has it."""
    causes = _own_causes(code, requests, now, whole, blocked)
    values = defaultdict[str, set[str | None]](set)
    for cause in chain.from_iterable(whole.causes[code]):
        values[cause.kind].add(cause.value)
    met = defaultdict[str, list[tuple[int, int, str, float]]](list)
    for n, request in enumerate(requests):
        told = set[str]()
        for place, cause in causes[n]:
            lost = whole.shared[n] - place
            is_same = values[cause.kind] != {None} and len(values[cause.kind]) == 1
            if lost >= MIN_LOST_LETTERS and not is_same and cause.kind not in told:
                told.add(cause.kind)
                met[cause.kind].append((request.line, place, cause.what, min(1.0, lost / max(1, length(request)))))
    for found in met.values():
        line, place, what, _ = found[0]
        yield Finding(code, source, line, place, what, fmean(one[3] for one in found), len(found))


def _own_causes(
    code: str, requests: Sequence[Sent], now: _Mending, whole: _Mending, blocked: list[bool]
) -> list[list[tuple[int, Cause]]]:
    """The causes of each request that is kept from sharing, with their places. One that is as it should be has none of
    its own: an earlier one is not, and the place is where the two part."""
    found, last = list[list[tuple[int, Cause]]](), None
    for n, request in enumerate(requests):
        own = whole.causes[code][n]
        last = own[0] if own else last
        starts = [sum(map(len, request.parts[: cause.part])) + cause.offset for cause in own]
        if not own and last and last.value is None:
            own, starts = (last,), [now.shared[n]]
        found.append(list(zip(starts, own, strict=True)) if blocked[n] else [])
    return found
