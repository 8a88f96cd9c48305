"""A stream of steps asked of one cache, from empty, with what it served each and how long that took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smartcache import Answer, Chunk, Event, KnowledgeUpdate, Request, SmartCache
from smartcache_eval.contestants import Contestant
from smartcache_eval.steps import Step
from smartcache_eval.vectors import KnownVectors

MAX_NEAREST = 16  # stored questions among which the one that was served is looked for
EMBEDDED_ANEW = 40  # lookups whose texts are embedded once more, alone, to see how long that takes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step got. `served`: the number of the step whose answer came, None where the model had to answer.
    `lookup_ms` leaves embedding out, None where nothing was looked up; `embedding_ms` is known of some steps only.
    `why`: what the cache said of an answer that was another question's."""

    served: int | None
    lookup_ms: float | None = None
    embedding_ms: float | None = None
    why: tuple[str, ...] = ()


def play(
    steps: Sequence[Step],
    contestant: Contestant,
    threshold: float | None = None,
    *,
    vectors: KnownVectors | None = None,
    timed: bool = False,
) -> list[Outcome]:
    """Asks the steps in order; each answer that a model gives is stored. `vectors`: what the contestant embeds with.
    With `timed`, some texts are embedded anew."""
    lookups: list[float] = []
    every = max(1, len(steps) // EMBEDDED_ANEW) if timed else 0
    outcomes, versions = [], dict[tuple[str, str], str]()
    with contestant.open(threshold, lambda event: _note(event, lookups)) as cache:
        for number, step in enumerate(steps):
            _tell_changes(cache, step, versions)
            embedding_seconds = vectors.seconds if vectors else 0.0
            if vectors:
                vectors.asked.clear()
            lookups.clear()
            answer = _ask(cache, contestant, step, number)
            served = int(answer.text) if answer.is_hit else None
            embedding_seconds = (vectors.seconds if vectors else 0.0) - embedding_seconds
            lookup_ms = 1e3 * max(0.0, lookups[0] - embedding_seconds) if lookups else None
            is_sampled = vectors and every and number % every == 0
            embedding_ms = 1e3 * vectors.anew_seconds(list(vectors.asked)) if vectors and is_sampled else None
            is_wrong = served is not None and steps[served].truth != step.truth
            why = _why(cache, contestant.request(step), answer) if is_wrong else ()
            outcomes.append(Outcome(served, lookup_ms, embedding_ms, why))
    return outcomes


def _ask(cache: SmartCache, contestant: Contestant, step: Step, number: int) -> Answer:
    return cache.answer(
        contestant.request(step), lambda _, __: Answer(str(number), evidence=step.evidence, finish_reason="stop")
    )


def _why(cache: SmartCache, request: Request, hit: Answer) -> tuple[str, ...]:
    explained = cache.explain(request, MAX_NEAREST)
    return next((one.reasons for one in explained if one.entry_id == hit.entry_id), ())


def _note(event: Event, lookups: list[float]) -> None:
    if event.kind in ("hit", "miss"):
        lookups.append(event.seconds)


def _tell_changes(cache: SmartCache, step: Step, versions: dict[tuple[str, str], str]) -> None:
    """Tells of each document that the step knows in another version than the steps before it."""
    for ref in step.evidence:
        if versions.setdefault((ref.source, ref.id), ref.version) != ref.version:
            cache.update_knowledge(KnowledgeUpdate(changed=[Chunk(ref, "")], source=ref.source))
        versions[ref.source, ref.id] = ref.version
