"""A language model for the command's tests: it answers from the first passage and counts as a real one does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from smartcache import Turn
from smartcache.testing import BagOfWordsEmbedder


@dataclass(frozen=True)
class Counts:
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0


@dataclass(frozen=True)
class Text:
    text: str
    prompt_tokens: int
    cached_tokens: int
    first_token_seconds: float = 0.25
    finish_reason: str = "stop"


@dataclass
class EchoModel:
    """Answers with the passages it was given, and reuses what it shares with its last prompt, word by word."""

    name: str = "echo"
    usage: Counts = Counts()
    prompts: list[Sequence[Turn]] = field(default_factory=list)

    def generate(self, prompt: Sequence[Turn], /, *, max_new_tokens: int, stop: Sequence[str]) -> Text:
        words = " ".join(turn.text for turn in prompt).split()
        before = " ".join(turn.text for turn in self.prompts[-1]).split() if self.prompts else []
        shared = next((n for n, (a, b) in enumerate(zip(words, before, strict=False)) if a != b), 0)
        self.prompts.append(prompt)
        self.usage = Counts(self.usage.prompt_tokens + len(words), self.usage.cached_tokens + shared)
        passages = prompt[0].text.partition("\n\n")[2]
        return Text(f"It says: {' '.join(passages.split())}", len(words), shared)

    def stream(self, prompt: Sequence[Turn], /, *, max_new_tokens: int, stop: Sequence[str]) -> Iterator[str]:
        yield from self.generate(prompt, max_new_tokens=max_new_tokens, stop=stop).text.splitlines(keepends=True)


@pytest.fixture
def model() -> EchoModel:
    return EchoModel()


@pytest.fixture
def embedder() -> BagOfWordsEmbedder:
    return BagOfWordsEmbedder()
