"""Why a request would be answered from the cache, or not: the nearest stored questions, with what decides of each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from smartcache.asked import Asked
from smartcache.calibrated import CalibratedPolicy
from smartcache.evidence import strength
from smartcache.explained import Explained, Weighed
from smartcache.knowledge import Knowledge, Verdict
from smartcache.layers.judging import Case
from smartcache.layers.semantic import SemanticIndex
from smartcache.learned import Learned, kind_of
from smartcache.policy import Candidate, HitPolicy
from smartcache.reasons import REFUSALS, SIGNALS, reasons
from smartcache.recalibrated import Bar, Everything, Recalibrated
from smartcache.state import State
from smartcache.storage.entries import Entries
from smartcache.storage.rows import Entry

if TYPE_CHECKING:
    from smartcache.layers.answers import Limits

MAX_SIGNALS = 6


class Explainer:
    """Goes the way of a lookup, counts nothing and keeps nothing."""

    def __init__(
        self,
        entries: Entries,
        knowledge: Knowledge,
        semantic: SemanticIndex | None,
        learned: Learned | None,
        own: Recalibrated | None,
        limits: Limits,
    ) -> None:
        self._entries, self._knowledge, self._semantic = entries, knowledge, semantic
        self._learned, self._own, self._limits = learned, own, limits

    def explain(self, asked: Asked, count: int, policy: HitPolicy | None = None) -> tuple[Explained, ...]:
        """The same request where it is stored, then near ones, the nearest first: `count` in all. Where none can be
        compared, one without a stored question says why. `policy`: another than the cache's own."""
        if isinstance(policy, CalibratedPolicy):
            policy = Recalibrated(policy, lambda: self._entries.evidence(self._limits.clock()))
        if why := asked.bypass or ("refresh" if asked.refresh else None):
            return (_nothing(why),)
        self._entries.refresh_knowledge(self._knowledge)
        exact = self._entries.by_key(asked.key)
        found = [self._exact(exact)] if exact and exact.request == asked.bytes else []
        refusals = ["exact_mode"] if self._semantic is None or asked.exact_only else []
        state = self._semantic.state(asked, refusals) if self._semantic and not refusals else None
        if self._semantic and state:
            entries = map(self._entries.by_id, self._semantic.nearest(asked, state, count))
            found += [
                self._near(entry, asked, state, self._semantic, policy) for entry in entries if _is_other(entry, asked)
            ]
        return tuple(found[:count]) or (_nothing(next(iter(refusals), "new")),)

    def _exact(self, entry: Entry) -> Explained:
        out, is_current = self._out_of_date(entry)
        why = "it is the same request" if out is None else REFUSALS[out]
        return Explained(
            entry.dialogue.question, entry.dialogue.history, entry.id, 1.0, out, (why,), is_current=is_current
        )

    def _near(
        self, entry: Entry, asked: Asked, state: State, semantic: SemanticIndex, policy: HitPolicy | None
    ) -> Explained:
        partition, now = entry.partition, self._limits.clock()
        own = policy if isinstance(policy, Recalibrated) else None if policy else self._own
        similarity, ruling = semantic.judge(partition, entry.id, asked, state, now, policy)
        _, whole = semantic.judge(partition, entry.id, asked, state, now, Everything())
        stored = semantic.case(partition, entry.id, len(state.question))
        signals = semantic.signals(Case(asked.told, state), stored) if stored else None
        candidate = whole.candidate
        if self._learned and signals:
            near = candidate or Candidate(asked.dialogue.question, entry.dialogue.question, similarity)
            kind, sure = int(kind_of(signals.by_name())), self._learned.sure(signals)
            candidate = replace(near, confidence=sure, histories=kind)
        parts = self._learned.parts(signals) if self._learned and signals else {}
        weighed = [
            Weighed(name, float(getattr(signals, name)), part, SIGNALS[name]) for name, part in parts.items() if part
        ]
        bar = own.bar(candidate) if own and candidate else None
        out, is_current = self._out_of_date(entry)
        refusal = ruling.refusal or out
        return Explained(
            entry.dialogue.question,
            entry.dialogue.history,
            entry.id,
            similarity,
            refusal,
            (*_verdict(refusal, candidate, bar), *(reasons(asked.told, stored.told, refusal) if stored else ())),
            candidate.confidence if candidate else None,
            bar,
            tuple(weighed[:MAX_SIGNALS]),
            is_current,
        )

    def _out_of_date(self, entry: Entry) -> tuple[str | None, bool]:
        """Why an answer is too old for any question, and whether the knowledge base still supports it."""
        is_current = self._knowledge.judge(entry.basis) in (Verdict.CURRENT, Verdict.RECHECK)
        return "expired" if self._limits.is_expired(entry) else None if is_current else "stale", is_current


def _nothing(refusal: str) -> Explained:
    return Explained(None, (), 0, 0.0, refusal, (REFUSALS.get(refusal, refusal),))


def _is_other(entry: Entry | None, asked: Asked) -> TypeGuard[Entry]:
    return entry is not None and entry.key != asked.key


def _verdict(refusal: str | None, candidate: Candidate | None, bar: Bar | None) -> tuple[str, ...]:
    """How far a pair is from the bar, where the bar decides."""
    if refusal not in (None, "far") or candidate is None or bar is None:
        return ("they are near enough" if refusal is None else REFUSALS["far"],) if refusal in (None, "far") else ()
    what = "alike" if candidate.confidence is None else "sure"
    if refusal is None:
        said = f"{strength(candidate):.3f} {what}, and {bar.needed:.3f} is enough"
    elif bar.needed > 1:
        said = f"{strength(candidate):.3f} {what}, where it is never enough: nothing of this kind keeps the bound"
    else:
        said = f"{strength(candidate):.3f} {what}, where {bar.needed:.3f} is needed"
    if not bar.is_raised:
        return (said,)
    why = f"{bar.reported:.0f} of {bar.served:.0f} hits were reported wrong"
    return said, f"the bar was raised from {bar.promised:.3f}: {why}"
