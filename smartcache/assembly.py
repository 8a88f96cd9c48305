"""Putting a cache together: which parts there are, and who knows whom."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from smartcache.asked import Desk
from smartcache.begun import Forgets
from smartcache.calibrated import CalibratedPolicy
from smartcache.embedding import Embedder
from smartcache.events import Events
from smartcache.facts import ReadTexts
from smartcache.flights import Flights
from smartcache.knowledge import Knowledge
from smartcache.layers.answers import AnswerLayer, Limits
from smartcache.layers.chunks import RetrievalCache
from smartcache.layers.explaining import Explainer
from smartcache.layers.orders import ContextOrder
from smartcache.layers.planned import PlannedContexts
from smartcache.layers.semantic import SemanticIndex
from smartcache.layers.shadow import Shadow
from smartcache.layers.verifying import Verification
from smartcache.policy import HitPolicy
from smartcache.reach import Reaches
from smartcache.recalibrated import Recalibrated
from smartcache.storage.entries import Entries
from smartcache.verifying import Verifier, VerifyWhen, checked_policy

Mode = Literal["semantic", "exact"]
_EMBEDDER = ("name", "dimension", "max_tokens", "count_tokens", "__call__")


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one cache."""

    mode: Mode
    embedder: Embedder | None
    events: Events
    entries: Entries
    knowledge: Knowledge
    answers: AnswerLayer
    retrievals: RetrievalCache
    desk: Desk
    flights: Flights
    shadow: Shadow | None
    verification: Verification | None
    explainer: Explainer
    context: ContextOrder
    planned: PlannedContexts


def assemble(
    path: str | Path | None,
    embedder: Embedder | None,
    policy: HitPolicy | None,
    mode: Mode,
    limits: Limits,
    events: Events,
    cache_sampled: bool,
    shadow: bool,
    verifier: Verifier | None,
    verify: VerifyWhen,
    context: ContextOrder,
    reaches: Reaches | None = None,
) -> Parts:
    """The parts, over the database at `path`. In "exact" mode no embedder is used, nor loaded."""
    _check(mode, embedder, policy, verifier, verify)
    policy = CalibratedPolicy() if policy is None else policy
    doubting = None if verifier is None else checked_policy(policy, verifier, verify)
    used = (embedder or _bundled_embedder()) if mode == "semantic" else None
    entries = Entries(path, strict=events.strict, on_damage=partial(events.trouble, "damaged"))
    knowledge, forgets, read_text = Knowledge(), Forgets(), ReadTexts()
    entries.load_knowledge(knowledge)
    own, learned = None, None
    if used and isinstance(policy, CalibratedPolicy):
        learned = policy.learned_for(used.name)
        entries.hits.scale = learned.name if learned else used.name
        policy = own = Recalibrated(policy, lambda: entries.evidence(limits.clock()))
    on_trouble = partial(events.trouble, "index")
    semantic = SemanticIndex(entries, used, policy, read_text, learned, on_trouble) if used else None
    answers = AnswerLayer(entries, knowledge, forgets, events, semantic, limits, own, reaches)
    return Parts(
        mode,
        used,
        events,
        entries,
        knowledge,
        answers,
        RetrievalCache(knowledge),
        Desk(knowledge, forgets, events, read_text, answers.refresh, cache_sampled=cache_sampled),
        Flights(on_given_up=lambda: events.emit("miss", "given_up")),
        Shadow(answers, entries, events, used, policy, limits.clock) if shadow else None,
        Verification(answers, events, own or doubting, verifier, verify) if doubting and verifier is not None else None,
        Explainer(entries, knowledge, semantic, learned, own, limits),
        context,
        PlannedContexts(held=context.held, tokens=context.tokens),
    )


def _check(
    mode: Mode, embedder: Embedder | None, policy: HitPolicy | None, verifier: Verifier | None, verify: VerifyWhen
) -> None:
    """Raises ValueError or TypeError for settings that no cache can be opened with."""
    if mode not in ("semantic", "exact"):
        raise ValueError(f"unknown mode {mode!r}: use 'semantic' or 'exact'")
    if wrong := next((name for name in _EMBEDDER if embedder is not None and not hasattr(embedder, name)), None):
        raise TypeError(f"embedder has no {wrong}: pass an Embedder, such as smartcache.models.SentenceEmbedder(path)")
    if policy is not None and not hasattr(policy, "accepts"):
        raise TypeError(f"policy has no accepts: pass a HitPolicy, such as ThresholdPolicy(0.9), not {policy!r}")
    if verifier is None and verify != "before":
        raise ValueError(f"verify={verify!r} says when a verifier is asked, and there is none: pass verifier= as well")


def _bundled_embedder() -> Embedder:
    from smartcache.models import default_embedder  # torch is loaded only where it is used

    return default_embedder()
