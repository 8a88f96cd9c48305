"""How much of a prompt the orders of its chunks let it share with prompts before, and what that is worth: time to the
first token, and whether the answer stays as right.

Many requests go through a prefix cache without any state, by the tokens of the bundled model; a few through the model.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any, get_args

from smartcache import ContextOrder, PlannedContexts, PrefixCache, plan_context
from smartcache.layers.orders import Order
from smartcache.layers.prompts import build_prompt
from smartcache_eval.context_traffic import Retrieved, bank_traffic, musique_traffic
from smartcache_eval.figures import Figure
from smartcache_eval.folder import public_folder

if TYPE_CHECKING:
    from smartcache import Chunk, ContextPlan
    from smartcache.layers.planned import Held
    from smartcache.models import LocalModel

REQUESTS = 1_000
ROOM_TOKENS = 20_000
MODEL_REQUESTS = 12
MODEL_QUESTIONS = 4
SYSTEM = "Answer the question by the passages below, in as few words as you can."
ORDERS = {
    **{order: ContextOrder(order) for order in get_args(Order)},
    "cache-aware, max_shift 2": ContextOrder(max_shift=2),
}
ANSWER_TOKENS = 12
NORMAL = 1.96


@dataclass(frozen=True, slots=True)
class Shared:
    """What a run of requests shared with those before; `guard_cost` is the share of chunks that a guard kept apart."""

    tokens: float
    chunks: float
    guard_cost: float


def context_figures() -> Iterator[Figure]:
    """The four orders, and the default under a guard: reuse over two kinds of traffic, then the model's time and F1."""
    from smartcache.models import LocalModel

    model, folder = LocalModel.load(), public_folder()
    traffics = {"bank": bank_traffic(folder, REQUESTS), "musique": musique_traffic(folder, REQUESTS)}
    for name, traffic in traffics.items():
        for room, told in ((10**9, "room for all"), (ROOM_TOKENS, f"room for {ROOM_TOKENS:,} tokens")):
            yield from _reuse_figures(name, traffic, model.tokens_of, room, told)
    yield from _model_figures(musique_traffic(folder, 400), LocalModel.load)


def reuse(
    traffic: Sequence[Retrieved], order: ContextOrder, tokens_of: Callable[[str], list[int]], room: int
) -> Shared:
    """What the prompts of `traffic` share in this order, where a prefix cache has room for so many tokens."""
    prefixes, seen = PrefixCache[_State](room), _TokensOnce(tokens_of)
    planned = PlannedContexts(held=lambda chunks: prefixes.held("model", seen.beginning(chunks)))
    reused = asked = shared = chunks = unguarded = 0
    for request in traffic:
        plan = _planned(request, order, planned)
        beginning = seen.beginning(plan.chunks)
        tokens = [*beginning, *seen.of(build_prompt(request.question).text)]
        with prefixes.match("model", tokens) as known:
            reused, asked = reused + known.length, asked + len(tokens)
            ends = list(accumulate(map(len, map(seen.of, build_prompt("", plan, system=SYSTEM).parts))))[1:]
            shared, chunks = shared + sum(end <= known.length for end in ends), chunks + len(ends)
        unguarded += plan.shared_unguarded - plan.shared
        prefixes.store("model", tokens, _State(len(tokens)))
    return Shared(reused / asked, shared / chunks, unguarded / chunks)


def f1(answer: str, right: Sequence[str]) -> float:
    """By words, without case, articles and punctuation, against the right answer that is nearest."""
    return max((_f1(_words(answer), _words(one)) for one in right), default=0.0)


def _reuse_figures(
    name: str, traffic: Sequence[Retrieved], tokens_of: Callable[[str], list[int]], room: int, told: str
) -> Iterator[Figure]:
    shares = {label: reuse(traffic, order, tokens_of, room) for label, order in ORDERS.items()}
    for label, share in shares.items():
        conditions = (
            f"{len(traffic):,} requests of {len(traffic[0].chunks)} chunks, {told}; chunks {100 * share.chunks:.1f} %; "
            f"{share.tokens / shares['hash'].tokens:.2f} x hash"
        )
        if ORDERS[label].max_shift is not None:
            conditions += f"; the guard keeps {100 * share.guard_cost:.1f} % of the chunks from a longer beginning"
        yield Figure(f"{name}, {told}, {label}: tokens reused", 100 * share.tokens, "%", conditions)


def _model_figures(traffic: Sequence[Retrieved], load: Callable[[], LocalModel]) -> Iterator[Figure]:
    """Of the questions asked most, every request in turn, by a model that begins without any state."""
    often = [question for question, _ in Counter(one.question for one in traffic).most_common(MODEL_QUESTIONS)]
    few = [one for one in traffic if one.question in often][:MODEL_REQUESTS]
    for label in (*get_args(Order), "blend"):
        model, order = load(), ORDERS.get(label, ContextOrder("given"))
        planned = PlannedContexts(held=_held_by(model))
        made, scores = [], []
        for request in few:
            plan = _planned(request, order, planned)
            prompt = build_prompt(request.question, plan, system=SYSTEM)
            own: dict[str, Any] = {"reuse": "blend", "chunks": prompt.chunks} if label == "blend" else {}
            made.append(model.generate(prompt.turns, max_new_tokens=ANSWER_TOKENS, **own))
            scores.append(f1(made[-1].text, request.answers))
        conditions = (
            f"{len(few)} requests, {sum(one.prompt_tokens for one in made) // len(made):,} tokens each, "
            f"{MODEL_QUESTIONS} questions, the bundled model; load {os.getloadavg()[0]:.1f}"
        )
        share = sum(one.cached_tokens for one in made) / sum(one.prompt_tokens for one in made)
        yield Figure(f"musique, {label}: tokens reused by the model", 100 * share, "%", conditions)
        seconds = [one.first_token_seconds for one in made]
        yield Figure(f"musique, {label}: time to first token, mean", 1e3 * mean(seconds), "ms", conditions)
        yield Figure(f"musique, {label}: time to first token, median", 1e3 * median(seconds), "ms", conditions)
        margin = 100 * NORMAL * stdev(scores) / len(scores) ** 0.5
        yield Figure(f"musique, {label}: F1", 100 * mean(scores), "%", f"+/- {margin:.1f}; {conditions}")


def _held_by(model: LocalModel) -> Held:
    return lambda chunks: model.held_tokens(build_prompt("", chunks, system=SYSTEM).turns)


def _planned(request: Retrieved, order: ContextOrder, planned: PlannedContexts) -> ContextPlan:
    plan = plan_context(request.chunks, order=order.order, planned=planned, max_shift=order.max_shift)
    planned.record(plan.chunks)
    return plan


class _TokensOnce:
    """The tokens of prompts, each part of them read once."""

    def __init__(self, tokens_of: Callable[[str], list[int]]) -> None:
        self._tokens_of = tokens_of
        self._known: dict[str, list[int]] = {}

    def of(self, part: str) -> list[int]:
        if part not in self._known:
            self._known[part] = self._tokens_of(part)
        return self._known[part]

    def beginning(self, chunks: Sequence[Chunk]) -> list[int]:
        return [token for part in build_prompt("", chunks, system=SYSTEM).parts for token in self.of(part)]


@dataclass(frozen=True, slots=True)
class _State:
    """Stands for the state of so many tokens: a byte each."""

    nbytes: int

    def __len__(self) -> int:
        return self.nbytes

    def __getitem__(self, steps: slice) -> _State:
        return replace(self, nbytes=len(range(*steps.indices(self.nbytes))))


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in ("a", "an", "the")]


def _f1(answer: Sequence[str], right: Sequence[str]) -> float:
    common = (Counter(answer) & Counter(right)).total()
    return 2 * common / (len(answer) + len(right)) if common else 0.0
