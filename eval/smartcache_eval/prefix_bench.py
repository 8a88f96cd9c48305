"""Time to first token of the bundled model over a long beginning: never seen (cold), and seen before (warm)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from smartcache.models import Generation, LocalModel
from smartcache_eval.figures import Figure

ROUNDS = 3
SHARED_SENTENCES = 80


def prefix_figures() -> Iterator[Figure]:
    """In each round a beginning of its own is read cold, and then again under another question."""
    model = LocalModel.load()
    _ask(model, "warm-up", "Which shelf?")  # the first run of all pays for threads and memory
    pairs = [
        (_ask(model, f"depot {number}", "Where is part 70?"), _ask(model, f"depot {number}", "What is on shelf 12?"))
        for number in range(ROUNDS)
    ]
    cold = median(first.first_token_seconds for first, _ in pairs) * 1e3
    warm = median(second.first_token_seconds for _, second in pairs) * 1e3
    again = pairs[-1][1]
    conditions = (
        f"median of {ROUNDS}, {again.prompt_tokens} prompt tokens, {again.cached_tokens} of them known when warm"
    )
    yield Figure("first token, cold", cold, "ms", conditions)
    yield Figure("first token, warm", warm, "ms", conditions)
    yield Figure("warm / cold", warm / cold, "", conditions)


def _ask(model: LocalModel, name: str, question: str) -> Generation:
    shelves = " ".join(f"Shelf {number} holds part {number * 7}." for number in range(1, SHARED_SENTENCES))
    return model.generate(f"The {name} has these shelves. {shelves}\n\nQuestion: {question}\nAnswer:", max_new_tokens=1)
