"""One generation from its prompt to its account, alone or as a row of a batch."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smartcache.models.decoding import Decoder, Progress
    from smartcache.models.sampling import TokenChooser
    from smartcache.models.texts import TextPieces


@dataclass(frozen=True, slots=True)
class Generation:
    """What a model wrote.

    `token_ids` are the tokens it chose, an end-of-text token among them. `cached_tokens` of the `prompt_tokens` were
    not computed. `first_token_seconds` runs from the token ids of the prompt to the first new one; of it,
    `placed_seconds` went into finding and placing the known prefix. `finish_reason` is "stop" at an end-of-text token
    or a stop string (the text ends before it), "length" where the tokens or the context ran out. Not `exact` is one
    that rests on state which a prefix cache with `compress` had compressed, or which `reuse="blend"` took from other
    texts: of that, `recomputed_share` was computed anew (None where nothing was taken).
    """

    text: str
    token_ids: tuple[int, ...]
    prompt_tokens: int
    cached_tokens: int
    first_token_seconds: float
    placed_seconds: float
    seconds: float
    finish_reason: Literal["stop", "length"]
    exact: bool = True
    recomputed_share: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model has done since it was loaded; `bypasses` counts the generations that could not use the prefix cache
    as they were asked to, by reason."""

    generations: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    bypasses: Mapping[str, int] = field(default_factory=dict)


class Run:
    """One generation, a row of a batch or alone: iterate over its text, then ask for its account."""

    def __init__(
        self,
        decoder: Decoder,
        progress: Progress,
        limit: int,
        choose: TokenChooser,
        pieces: TextPieces,
        ends: frozenset[int],
        count: Callable[[Progress], None],
    ) -> None:
        self.progress, self.limit, self.choose = progress, limit, choose
        self._decoder, self._pieces, self._ends, self._count = decoder, pieces, ends, count
        self._finish_reason: Literal["stop", "length"] = "length"
        self.ended = False
        self._text: list[str] = []
        self._started, self._seconds = perf_counter(), 0.0

    def __iter__(self) -> Iterator[str]:
        self._started = perf_counter()
        try:
            with closing(self._decoder.run(self.progress, self.limit, self.choose)) as tokens:
                for token in tokens:
                    yield from self._told(self.take(token))
                    if self.ended:
                        self.progress.is_closed = True
                        break
            yield from self._told(self.finish())
        finally:
            self._count(self.progress)

    def take(self, token: int) -> str:
        """The text that is certain with one more token; `ended` tells then whether it was the last."""
        self.ended = token in self._ends
        if self.ended:
            self._finish_reason = "stop"
            return ""
        self._text.append(self._pieces.push(token))
        self.ended = self._pieces.stopped
        return self._text[-1]

    def finish(self) -> str:
        """The text that was held back; no token comes any more."""
        self._text.append(self._pieces.finish())
        if self._pieces.stopped:
            self._finish_reason = "stop"
        self._seconds = perf_counter() - self._started
        return self._text[-1]

    def pieces(self, on_end: Callable[[Generation], object] | None) -> Iterator[str]:
        yield from self
        if on_end:
            on_end(self.generation())

    def generation(self) -> Generation:
        return Generation(
            text="".join(self._text),
            token_ids=tuple(self.progress.tokens),
            prompt_tokens=len(self.progress.prompt),
            cached_tokens=self.progress.cached_tokens,
            first_token_seconds=self.progress.first_token_seconds,
            placed_seconds=self.progress.placed_seconds,
            seconds=self._seconds,
            finish_reason=self._finish_reason,
            exact=self.progress.exact,
            recomputed_share=self.progress.recomputed_share,
        )

    @staticmethod
    def _told(piece: str) -> Iterator[str]:
        if piece:
            yield piece
