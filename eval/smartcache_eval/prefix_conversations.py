"""Conversations, one alone and many in turn: how much of what was said before is computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, TypeAlias

from smartcache import PrefixCache, Turn
from smartcache.layers.prefixes import NoPrefixCache
from smartcache.models import Generation, LocalModel
from smartcache_eval.prefix_cases import Bench
from smartcache_eval.prefix_report import Conversation, Crowd, PrefixSizes
from smartcache_eval.word_prompts import WordPrompts

Load: TypeAlias = Callable[[PrefixCache[Any] | NoPrefixCache], LocalModel]


def measured_conversation(bench: Bench, sizes: PrefixSizes) -> Conversation:
    """As many conversations as rounds, each with a system prompt of its own; medians by turn."""
    runs = []
    for _ in range(sizes.rounds):
        talk = _Talk(bench.words, sizes)
        runs.append([talk.go_on(bench.warm) for _ in range(sizes.turns)])
        bench.warm.prefix_cache.clear()
    by_turn = list(zip(*runs, strict=True))
    shares = [[_reused_share(*pair) for pair in zip(before, now, strict=True)] for before, now in pairwise(by_turn)]
    return Conversation(
        reused_share=[0.0, *map(median, shares)],
        first_token_s=[median(one.first_token_seconds for one in turn) for turn in by_turn],
        prompt_tokens=[int(median(one.prompt_tokens for one in turn)) for turn in by_turn],
    )


def measured_crowd(bench: Bench, load: Load, conversations: int, sizes: PrefixSizes) -> list[Crowd]:
    """The same prompts without a cache, and under each policy with room for half of them."""
    asked, without = _without_cache(bench, conversations, sizes)
    ends = asked[-conversations:]
    held_tokens = sum(map(bench.warm.count_tokens, ends)) + conversations * sizes.answer_tokens
    max_bytes = held_tokens * _bytes_per_token(bench) // 2
    return [_crowd(load, policy, max_bytes, asked, without, conversations, sizes) for policy in sizes.policies]


class _Talk:
    """A conversation as it grows: a system prompt, then questions of random words and what the model answers."""

    def __init__(self, words: WordPrompts, sizes: PrefixSizes) -> None:
        self._words, self._sizes = words, sizes
        self.turns = [Turn("system", words.text(sizes.system_tokens))]

    def go_on(self, model: LocalModel) -> Generation:
        self.turns.append(Turn("user", self._words.text(self._sizes.question_tokens)))
        answer = model.generate(self.turns, max_new_tokens=self._sizes.answer_tokens)
        self.turns.append(Turn("assistant", answer.text))
        return answer


def _without_cache(bench: Bench, conversations: int, sizes: PrefixSizes) -> tuple[list[list[Turn]], list[Generation]]:
    """What is asked, conversation by conversation in turn, and how it goes where nothing is ever known."""
    talks = [_Talk(bench.words, sizes) for _ in range(conversations)]
    asked, without = [], []
    for _ in range(sizes.crowd_turns):
        for talk in talks:
            without.append(talk.go_on(bench.cold))
            asked.append(talk.turns[:-1])
    return asked, without


def _crowd(
    load: Load,
    policy: str,
    max_bytes: int,
    asked: Sequence[Sequence[Turn]],
    without: Sequence[Generation],
    conversations: int,
    sizes: PrefixSizes,
) -> Crowd:
    model = load(PrefixCache(max_bytes, policy=policy))
    ran = [model.generate(prompt, max_new_tokens=sizes.answer_tokens) for prompt in asked]
    return Crowd(
        conversations=conversations,
        policy=policy,
        max_bytes=max_bytes,
        reused_share=sum(one.cached_tokens for one in ran) / sum(one.prompt_tokens for one in ran),
        first_token_s=median(one.first_token_seconds for one in ran),
        no_cache_first_token_s=median(one.first_token_seconds for one in without),
    )


def _bytes_per_token(bench: Bench) -> int:
    bench.warm.generate(bench.words.text(2), max_new_tokens=1)
    held = bench.warm.prefix_cache.bytes() // len(bench.warm.prefix_cache)
    bench.warm.prefix_cache.clear()
    return held


def _reused_share(before: Generation, now: Generation) -> float:
    return now.cached_tokens / (before.prompt_tokens + len(before.token_ids))
