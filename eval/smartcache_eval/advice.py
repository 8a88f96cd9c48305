"""Which eviction policy and which size a trace wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smartcache.layers.eviction import POLICIES
from smartcache_eval.eviction_bench import distinct_blocks, hit_rate
from smartcache_eval.traces import Trace

SHARES = (0.01, 0.02, 0.05, 0.10, 0.25, 0.50, 1.0)
ENOUGH = 0.9  # of what a cache without end would find


@dataclass(frozen=True, slots=True)
class Advice:
    """`policy` with room for `blocks` finds `hit_rate` of all blocks asked for; `endless_hit_rate` is what a cache that
    never evicts would find. `hit_rates` holds every rate that was tried, by size and policy."""

    policy: str
    blocks: int
    hit_rate: float
    endless_hit_rate: float
    hit_rates: Mapping[int, Mapping[str, float]]

    def __str__(self) -> str:
        if not self.endless_hit_rate:
            return "no block ever returns in this trace: no cache would find anything"
        return (
            f"{self.policy} with room for {self.blocks:,} blocks: finds {self.hit_rate:.1%} of the blocks"
            f" (a cache without end: {self.endless_hit_rate:.1%})"
        )


def advice_on(trace: Trace) -> Advice:
    """The smallest size tried at which the best policy finds at least `ENOUGH` of what can be found at all."""
    distinct = distinct_blocks(trace)
    endless = hit_rate(trace, "fifo", distinct)
    rates: dict[int, dict[str, float]] = {}
    for share in SHARES:
        blocks = max(1, int(distinct * share))
        rates[blocks] = {policy: hit_rate(trace, policy, blocks) for policy in POLICIES}
        best = max(rates[blocks], key=lambda policy: rates[blocks][policy])
        if rates[blocks][best] >= ENOUGH * endless:
            break
    return Advice(best, blocks, rates[blocks][best], endless, rates)
