"""What the benchmark of the prefix cache is asked for, and what it hands over: seconds, medians of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from smartcache_eval.figures import Figure


@dataclass(frozen=True, slots=True)
class PrefixSizes:
    """How much to measure: the whole benchmark as it stands, or a `reduced` one for a first look."""

    shared: tuple[int, ...] = (512, 1_024, 2_048, 4_096)
    new: int = 32
    rounds: int = 3
    warm_runs: int = 5  # to each cold one
    turns: int = 10
    crowds: tuple[int, ...] = (2, 8, 32)
    crowd_turns: int = 6
    policies: tuple[str, ...] = ("lfu-da",)
    system_tokens: int = 256
    question_tokens: int = 24
    answer_tokens: int = 16
    zero_hit_pairs: int = 15
    zero_hit_tokens: int = 512
    decoded_tokens: int = 48

    @classmethod
    def reduced(cls) -> PrefixSizes:
        """One or two minutes on two cores."""
        return cls(shared=(512, 1_024), rounds=1, turns=4, crowds=(2,), zero_hit_pairs=5, decoded_tokens=16)


@dataclass(frozen=True, slots=True)
class PrefixCase:
    """A beginning of `shared` tokens, never seen (`cold_s`) and seen before (`warm_s`), with `new` tokens after it.

    `ideal` is the share of the tokens that is new; `ratio` is warm / cold. `suffix_forward_s`: the same new tokens over
    a state that is in place already; `placed_s`, of each warm run, went into finding and placing the prefix, and
    `placed_share` is that over `suffix_forward_s`. `transformers_warm_s`: transformers' own way, a copied DynamicCache.
    """

    shared: int
    new: int
    cold_s: float
    warm_s: float
    ratio: float
    ideal: float
    suffix_forward_s: float
    placed_s: float
    placed_share: float
    transformers_cold_s: float
    transformers_warm_s: float
    cached_tokens: int
    equals_cold: bool


@dataclass(frozen=True, slots=True)
class Conversation:
    """By turn: the share of the previous turn's tokens, prompt and answer, that was reused (0 in the first turn), and
    the time to the first token."""

    reused_share: list[float]
    first_token_s: list[float]
    prompt_tokens: list[int]


@dataclass(frozen=True, slots=True)
class Crowd:
    """Conversations that take turns, with room for half of what they hold in the end: the share of all prompt tokens
    that was reused, and the time to the first token beside that of the same prompts without a cache."""

    conversations: int
    policy: str
    max_bytes: int
    reused_share: float
    first_token_s: float
    no_cache_first_token_s: float


@dataclass(frozen=True, slots=True)
class PeerCase:
    """As a PrefixCase, of a peer: `equals_cold` compares what it writes with its own cold run."""

    shared: int
    new: int
    cold_s: float
    warm_s: float
    ratio: float
    equals_cold: bool


@dataclass(frozen=True, slots=True)
class PeerReport:
    """A peer that is installed; `trouble` says why it has no cases, or not all."""

    name: str
    version: str
    cases: tuple[PeerCase, ...]
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class PrefixReport:
    """`overhead_at_zero_hits`: what the cache adds to a request that finds nothing, storing included, as a share.
    `decode_ratio`: our seconds for a token after the first over those of transformers' own loop; below 1 is
    faster."""

    cases: list[PrefixCase]
    conversation: Conversation
    overhead_at_zero_hits: float
    decode_ratio: float
    crowded: list[Crowd]
    peers: list[PeerReport]

    def figures(self, sizes: PrefixSizes) -> Iterator[Figure]:
        """The same, one by one."""
        runs = f"median of {sizes.rounds} rounds in turn, {sizes.warm_runs} warm runs each"
        for case in self.cases:
            over = f"{case.shared:,} shared + {case.new} new tokens; {runs}"
            yield Figure("first token, cold", case.cold_s * 1e3, "ms", over)
            yield Figure("first token, warm", case.warm_s * 1e3, "ms", over)
            yield Figure("warm / cold", case.ratio, "", f"{over}; the ideal is {case.ideal:.3f}")
            yield Figure("finding and placing the prefix", case.placed_share, "of the forward over the new", over)
            yield Figure("first token, transformers' own way", case.transformers_warm_s * 1e3, "ms", over)
        later = self.conversation.reused_share[1:]
        if later:
            turns = f"the least of turns 2 to {len(later) + 1} of a conversation"
            yield Figure("reused of the previous turn", 100 * min(later), "%", turns)
        pairs = f"median of {sizes.zero_hit_pairs} pairs, {sizes.zero_hit_tokens} tokens that share nothing"
        yield Figure("cost where nothing hits", 100 * self.overhead_at_zero_hits, "%", pairs)
        yield Figure("decoding, ours / transformers'", self.decode_ratio, "", f"{sizes.decoded_tokens} tokens, greedy")
        for crowd in self.crowded:
            room = f"{crowd.conversations} conversations in turn, {crowd.policy}, room for half of them"
            yield Figure("prompt tokens reused", 100 * crowd.reused_share, "%", room)
