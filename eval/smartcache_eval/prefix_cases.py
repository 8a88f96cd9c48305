"""Time to the first token over a beginning that is known or not, beside transformers' own way, in turn."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import perf_counter

from smartcache.models import Generation, LocalModel
from smartcache.models.decoding import Progress
from smartcache_eval.peers.plain_transformers import PlainTransformers
from smartcache_eval.prefix_report import PrefixCase, PrefixSizes
from smartcache_eval.word_prompts import WordPrompts

COMPARED_TOKENS = 8


class Bench:
    """The three that are measured side by side: ours, ours without a cache, and transformers as it is."""

    def __init__(self, warm: LocalModel, cold: LocalModel, plain: PlainTransformers) -> None:
        self.warm, self.cold, self.plain = warm, cold, plain
        self.words = WordPrompts(warm)


def measured_case(bench: Bench, shared: int, sizes: PrefixSizes) -> PrefixCase:
    """Every round has a beginning of its own, and every run in it an ending of its own."""
    rounds = [_measured_round(bench, shared, sizes) for _ in range(sizes.rounds)]
    seconds = {name: median(value for one in rounds for value in one.seconds[name]) for name in rounds[0].seconds}
    return PrefixCase(
        shared=shared,
        new=sizes.new,
        **seconds,
        ratio=seconds["warm_s"] / seconds["cold_s"],
        ideal=sizes.new / (shared + sizes.new),
        placed_share=seconds["placed_s"] / seconds["suffix_forward_s"],
        cached_tokens=min(one.cached_tokens for one in rounds),
        equals_cold=all(one.equals_cold for one in rounds),
    )


def suffix_forward_seconds(model: LocalModel, prompt: str) -> float:
    """The forward pass over what is not known of a prompt, with the known state in place: nothing is found or copied
    on the clock. The one place of the benchmark that looks into a LocalModel."""
    tokens, decoder = model.tokens_of(prompt), model._decoder
    progress = Progress(tokens)
    room = decoder._cache(progress, 0)
    started = perf_counter()
    int(decoder._forward(tokens, progress.cached_tokens, room).argmax())
    seconds = perf_counter() - started
    decoder._leave(progress, tokens, room)  # the next run finds what it would have found without this one
    return seconds


@dataclass(frozen=True, slots=True)
class _Round:
    seconds: dict[str, list[float]]
    cached_tokens: int
    equals_cold: bool


def _measured_round(bench: Bench, shared: int, sizes: PrefixSizes) -> _Round:
    words, plain = bench.words, bench.plain
    beginning = words.text(shared - words.first_tokens)
    first, last, *endings = words.endings(2 + 2 * sizes.warm_runs, sizes.new)
    cold = bench.warm.generate(beginning + first, max_new_tokens=1)
    if (cold.prompt_tokens, cold.cached_tokens > words.first_tokens) != (shared + sizes.new, False):
        raise RuntimeError(f"a beginning of random words was known: {cold.cached_tokens} tokens of it")
    transformers_cold = plain.cold_seconds(bench.warm.tokens_of(beginning + first), sizes.new)
    warm: list[Generation] = []
    transformers, suffix = [], []
    for ending, other in zip(endings[::2], endings[1::2], strict=True):
        warm.append(bench.warm.generate(beginning + ending, max_new_tokens=1))
        transformers.append(plain.warm_seconds(bench.warm.tokens_of(beginning + ending)[shared:]))
        suffix.append(suffix_forward_seconds(bench.warm, beginning + other))
    equal = written(bench.warm, beginning + last) == written(bench.cold, beginning + last)
    bench.warm.prefix_cache.clear()  # the next round needs none of it
    seconds = {
        "cold_s": [cold.first_token_seconds],
        "warm_s": [one.first_token_seconds for one in warm],
        "placed_s": [one.placed_seconds for one in warm],
        "suffix_forward_s": suffix,
        "transformers_cold_s": [transformers_cold],
        "transformers_warm_s": transformers,
    }
    return _Round(seconds, min(one.cached_tokens for one in warm), equal)


def written(model: LocalModel, prompt: str) -> tuple[int, ...]:
    return model.generate(prompt, max_new_tokens=COMPARED_TOKENS).token_ids
