"""Prompts whose beginning stays the same: what is fixed first, then the chunks, what is new with each request last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from smartcache.layers.orders import ContextPlan
from smartcache.layers.planned import key_of
from smartcache.types import Chunk, Turn


@dataclass(frozen=True, slots=True)
class ContextPrompt:
    """A prompt in parts: `parts` is what others can share, the fixed text first and then a part for each chunk;
    `ending` holds what is new with each request, the question last. The last `chunk_count` parts are the chunks.

    A part ends in one line break and the next begins with no whitespace: tokenizers that cut there, as those of GPT-2's
    and Llama 3's kind do, give a part the same tokens alone and in the whole.
    """

    parts: tuple[str, ...]
    ending: str
    chunk_count: int = 0

    @property
    def chunks(self) -> tuple[str, ...]:
        """The parts that are chunks: what `LocalModel.generate(…, reuse="blend", chunks=…)` asks for."""
        return self.parts[len(self.parts) - self.chunk_count :]

    @property
    def beginning(self) -> str:
        return "".join(self.parts)

    @property
    def text(self) -> str:
        """The whole, for a model that continues texts."""
        return self.beginning + self.ending

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The whole as a conversation: what is shared is the system's turn, what is new the user's."""
        user = Turn("user", self.ending)
        return (Turn("system", self.beginning), user) if self.parts else (user,)


def build_prompt(
    question: str,
    chunks: Sequence[Chunk] | ContextPlan = (),
    *,
    system: str = "",
    examples: Sequence[str] = (),
    volatile: Mapping[str, str] | None = None,
    label: Callable[[Chunk], str] | None = None,
) -> ContextPrompt:
    """System text and examples, then the chunks in their order, then `volatile` (the time, the user, ids: what no other
    prompt shares, a line each), then the question.

    `label(chunk)`, such as its title, is put before its text: it must be the same in every prompt, so no number. Parts
    lose the whitespace around them, and those that are empty are left out.
    """
    ordered = chunks.chunks if isinstance(chunks, ContextPlan) else chunks
    fixed, texts = [system, *examples], [_labelled(chunk, label) for chunk in ordered]
    lines = [f"{name}: {value}" for name, value in (volatile or {}).items()]
    parts = tuple(_part(text) for text in [*fixed, *texts] if text.strip())
    chunk_count = sum(bool(text.strip()) for text in texts)
    return ContextPrompt(parts, "\n".join([*lines, question.strip()]), chunk_count)


class TokenCounts:
    """How many tokens each chunk adds to a prompt of `build_prompt`; `count` (as `LocalModel.count_tokens`) is asked
    once for each of the last `max_chunks` chunks. `ContextOrder(tokens=TokenCounts(model.count_tokens).of)` has the
    planner count so. Only hashes are kept. Safe to share between threads."""

    def __init__(
        self, count: Callable[[str], int], *, label: Callable[[Chunk], str] | None = None, max_chunks: int = 10_000
    ) -> None:
        self._count, self._label, self._max_chunks = count, label, max_chunks
        self._known: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def of(self, chunk: Chunk) -> int:
        text = _labelled(chunk, self._label)
        key = key_of(Chunk(chunk.ref, text))
        with self._lock:
            known = self._known.get(key)
        if known is None:
            known = self._count(_part(text)) if text.strip() else 0
        with self._lock:
            self._known[key] = known
            self._known.move_to_end(key)
            while len(self._known) > self._max_chunks:
                self._known.popitem(last=False)
        return known


def _labelled(chunk: Chunk, label: Callable[[Chunk], str] | None) -> str:
    return f"{label(chunk).strip()}\n{chunk.text.strip()}" if label else chunk.text


def _part(text: str) -> str:
    return text.strip() + "\n"
