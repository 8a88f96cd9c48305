"""Prompts of random common words, a token each: every run gets a beginning that nothing can know by accident."""

from __future__ import annotations

from random import Random
from typing import Protocol

WORDS = (
    "time year people way day man thing woman life child world school state family student group country problem hand "
    "part place case week company system program question work government number night point home water room mother "
    "area money story fact month lot right study book eye job word business issue side kind head house service friend "
    "father power hour game line end member law car city community name president team minute idea body information "
    "back parent face others level office door health person art war history party result change morning reason "
    "research girl guy moment air teacher force education"
).split()


class TokenCounter(Protocol):
    """What is needed of a LocalModel."""

    def tokens_of(self, prompt: str, /) -> list[int]: ...


class WordPrompts:
    """Texts that a model reads as an exact number of tokens; joined, they add up.

    Raises ValueError where the model's tokenizer knows too few of the words as one token.
    """

    def __init__(self, model: TokenCounter, seed: int = 0) -> None:
        self._random = Random(seed)
        self._words = [word for word in WORDS if len(model.tokens_of(f" {WORDS[0]} {word}")) == _first(model) + 1]
        if len(self._words) < len(WORDS) // 2:
            raise ValueError("this model's tokenizer splits common English words: the benchmark cannot count tokens")
        self.first_tokens = _first(model) - 1  # what the tokenizer puts before every text

    def text(self, tokens: int) -> str:
        return _joined(self._random.choices(self._words, k=tokens))

    def endings(self, count: int, tokens: int) -> list[str]:
        """Texts that differ from their first token on."""
        return [
            _joined([first, *self._random.choices(self._words, k=tokens - 1)])
            for first in self._random.sample(self._words, count)
        ]


def _first(model: TokenCounter) -> int:
    return len(model.tokens_of(f" {WORDS[0]}"))


def _joined(words: list[str]) -> str:
    return "".join(f" {word}" for word in words)
