"""What the prefix cache costs where it finds nothing, and how fast a token after the first is written."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from smartcache.models import LocalModel
from smartcache_eval.prefix_cases import Bench
from smartcache_eval.prefix_report import PrefixSizes


def overhead_at_zero_hits(bench: Bench, sizes: PrefixSizes) -> float:
    """The share that the cache adds to a request that finds nothing, looking and storing included: the same prompt
    with and without it, in turn and in both orders."""
    ratios = []
    for number in range(sizes.zero_hit_pairs):
        prompt = bench.words.text(sizes.zero_hit_tokens)
        models = (bench.warm, bench.cold) if number % 2 else (bench.cold, bench.warm)
        seconds = {model.prefix_cache: _request_seconds(model, prompt) for model in models}
        ratios.append(seconds[bench.warm.prefix_cache] / seconds[bench.cold.prefix_cache])
    bench.warm.prefix_cache.clear()
    return median(ratios) - 1


def decode_ratio(bench: Bench, sizes: PrefixSizes) -> float:
    """Our seconds for each token after the first over those of transformers' own loop, as many tokens after the same
    prompt, in turn."""
    ratios = []
    for _ in range(sizes.rounds):
        prompt = bench.words.text(sizes.system_tokens)
        ours = bench.warm.generate(prompt, max_new_tokens=sizes.decoded_tokens)
        count = len(ours.token_ids)
        if count < 2:
            continue  # the model had nothing to say after these words
        theirs = bench.plain.decode_seconds(bench.warm.tokens_of(prompt), count)
        ratios.append((ours.seconds - ours.first_token_seconds) / (count - 1) / theirs)
    return median(ratios)


def _request_seconds(model: LocalModel, prompt: str) -> float:
    started = perf_counter()
    model.generate(prompt, max_new_tokens=1)
    return perf_counter() - started
