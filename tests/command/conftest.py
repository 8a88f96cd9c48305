"""A language model for the command's tests: it answers from the first passage and counts as a real one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from smartcache import Turn
from smartcache.testing import BagOfWordsEmbedder


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
    finish_reason: str = "stop"
    prompts: list[Sequence[Turn]] = field(default_factory=list)

    def generate(self, prompt: Sequence[Turn], /, *, max_new_tokens: int, stop: Sequence[str]) -> Text:
        words = " ".join(turn.text for turn in prompt).split()
        before = " ".join(turn.text for turn in self.prompts[-1]).split() if self.prompts else []
        shared = next((n for n, (a, b) in enumerate(zip(words, before, strict=False)) if a != b), 0)
        self.prompts.append(prompt)
        passages = prompt[0].text.partition("\n\n")[2]
        text = f"It says: {' '.join(passages.split())}"
        return Text(text, len(words), shared, finish_reason=self.finish_reason)

    def stream(
        self, prompt: Sequence[Turn], /, *, max_new_tokens: int, stop: Sequence[str], on_end: Callable[[Text], object]
    ) -> Iterator[str]:
        written = self.generate(prompt, max_new_tokens=max_new_tokens, stop=stop)
        yield from written.text.splitlines(keepends=True)
        on_end(written)


@pytest.fixture
def model() -> EchoModel:
    return EchoModel()


@pytest.fixture
def embedder() -> BagOfWordsEmbedder:
    return BagOfWordsEmbedder()
