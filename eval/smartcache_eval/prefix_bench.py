"""The benchmark of the prefix cache: what a known beginning saves, what the cache costs, and what the peers do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from smartcache import PrefixCache
from smartcache.errors import SmartCacheError
from smartcache.layers.prefixes import NoPrefixCache
from smartcache.models import LocalModel
from smartcache.models.bundled import bundled_model_path
from smartcache_eval.figures import Figure
from smartcache_eval.peers.plain_transformers import PlainTransformers
from smartcache_eval.prefix_cases import Bench, measured_case
from smartcache_eval.prefix_conversations import Load, measured_conversation, measured_crowd
from smartcache_eval.prefix_costs import decode_ratio, overhead_at_zero_hits
from smartcache_eval.prefix_peers import measured_peers
from smartcache_eval.prefix_report import PeerReport, PrefixReport, PrefixSizes


class TooLong(SmartCacheError, ValueError):
    """What is to be shared does not fit the model."""


def prefix_report(sizes: PrefixSizes, pythons: Sequence[Path] = ()) -> PrefixReport:
    """On the bundled model; `pythons` are interpreters whose environments may hold peers."""
    bench, load = _bundled_bench(sizes)
    return measured(bench, load, sizes, [*measured_peers(bench.warm, bench.words, sizes, pythons)])


def prefix_figures(sizes: PrefixSizes) -> Iterator[Figure]:
    """The figures of the report, without the peers."""
    bench, load = _bundled_bench(sizes)
    yield from measured(bench, load, sizes).figures(sizes)


def measured(bench: Bench, load: Load, sizes: PrefixSizes, peers: Sequence[PeerReport] = ()) -> PrefixReport:
    """`load` makes another model like the bench's around a prefix cache."""
    for model in (bench.warm, bench.cold):  # the first run of all pays for threads and memory
        model.generate(bench.words.text(min(sizes.shared)), max_new_tokens=2)
    bench.warm.prefix_cache.clear()
    return PrefixReport(
        cases=[measured_case(bench, shared, sizes) for shared in sizes.shared],
        conversation=measured_conversation(bench, sizes),
        overhead_at_zero_hits=overhead_at_zero_hits(bench, sizes),
        decode_ratio=decode_ratio(bench, sizes),
        crowded=[crowd for count in sizes.crowds for crowd in measured_crowd(bench, load, count, sizes)],
        peers=list(peers),
    )


def _bundled_bench(sizes: PrefixSizes) -> tuple[Bench, Load]:
    path = bundled_model_path()

    def load(prefix_cache: PrefixCache[Any] | NoPrefixCache) -> LocalModel:
        return LocalModel.load(path, prefix_cache=prefix_cache)

    warm = load(PrefixCache())
    require_fit(sizes, warm.context_tokens)
    return Bench(warm, load(NoPrefixCache()), PlainTransformers.load(path)), load


def require_fit(sizes: PrefixSizes, context_tokens: int | None) -> None:
    longest = max(sizes.shared) + sizes.new
    if context_tokens is not None and longest > context_tokens:
        raise TooLong(f"{longest:,} tokens do not fit: this model reads {context_tokens:,}, {sizes.new} of them new")
