"""Who is compared: SmartCache as it ships, and the same class with the settings that make it another kind of cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smartcache import CalibratedPolicy, Embedder, Event, HitPolicy, Request, SmartCache, ThresholdPolicy, Turn
from smartcache.calibrated import MAX_WRONG
from smartcache_eval.steps import Step

THRESHOLDS = (0.70, 0.80, 0.85, 0.90, 0.93, 0.95, 0.97, 0.985, 1.0)
BOUNDS = (0.003, 0.005, 0.008, 0.012, 0.02, 0.03, 0.05, 0.10, 0.20)
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


@dataclass(frozen=True, slots=True)
class Contestant:
    """One kind of cache.

    `request`: what it is asked of a step. `embedder`: None compares whole requests to the letter. `policy`: from a
    threshold; None stands for the setting that it ships with. `thresholds`: those its curve is drawn from. Where
    `is_chosen` holds, one of them is chosen on the part for choosing, and otherwise it takes part as it ships.
    """

    name: str
    request: Callable[[Step], Request]
    embedder: Embedder | None = None
    policy: Callable[[float | None], HitPolicy | None] = lambda _: None
    thresholds: Sequence[float] = ()
    is_chosen: bool = False

    def open(self, threshold: float | None, on_event: Callable[[Event], object]) -> SmartCache:
        mode: Literal["semantic", "exact"] = "semantic" if self.embedder else "exact"
        policy = self.policy(threshold)
        return SmartCache.open(embedder=self.embedder, policy=policy, mode=mode, on_event=on_event, strict=True)


def contestants(embedder: Embedder, max_wrong: float = MAX_WRONG) -> tuple[Contestant, ...]:
    """None, exact only, last message only, whole prompt, ours, and an oracle."""
    last, whole = _WholeText(embedder), _WholeText(embedder)
    return (
        Contestant("none", lambda step: replace_options(step.request, cache=False)),
        Contestant("exact", lambda step: step.request),
        Contestant("last message", lambda step: last.request(step.turns[-1].text), last, _plain, THRESHOLDS, True),
        Contestant("whole prompt", lambda step: whole.request(whole.rendered(step)), whole, _plain, THRESHOLDS, True),
        ours(embedder, max_wrong),
        Contestant("oracle", lambda step: Request([Turn("user", step.truth)])),
    )


def ours(embedder: Embedder, max_wrong: float = MAX_WRONG) -> Contestant:
    """SmartCache as it ships, but for the bound of its policy where that is another; its curve moves that bound."""

    def policy(moved: float | None) -> CalibratedPolicy:
        return CalibratedPolicy(max_wrong if moved is None else moved)

    return Contestant("ours", lambda step: step.request, embedder, policy, BOUNDS)


def replace_options(request: Request, **options: object) -> Request:
    return Request(request.turns, request.scope, request.variant, {**(request.options or {}), **options})


def _plain(threshold: float | None) -> ThresholdPolicy:
    return ThresholdPolicy(1.0 if threshold is None else threshold)


class _WholeText:
    """Compares texts by the cosine of their vectors and nothing else, as most semantic caches do: each text is asked as
    one word that tells nothing, so that no rule about words can help."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._texts = embedder, dict[str, str]()
        self.name, self.dimension, self.max_tokens = f"{embedder.name}, whole text", embedder.dimension, 256

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        return self._embedder([self._texts[text] for text in texts])

    def count_tokens(self, text: str, /) -> int:
        return 1

    def request(self, text: str) -> Request:
        word = "w" + sha256(text.encode()).hexdigest()[:24].translate(_LETTERS)
        self._texts[word] = text
        return Request([Turn("user", word)])

    def rendered(self, step: Step) -> str:
        """The conversation as one text, without its oldest turns where the embedder could not read it all."""
        lines = [f"{turn.role}: {turn.text}" for turn in step.turns]
        while len(lines) > 1 and self._embedder.count_tokens("\n".join(lines)) > self._embedder.max_tokens:
            del lines[0]
        return "\n".join(lines)
