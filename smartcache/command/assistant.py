"""An assistant over a folder of documents: the cache in front, a local model that answers from passages behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from smartcache import Answer, Chunk, Request, SmartCache, Turn
from smartcache.command.documents import Documents
from smartcache.models.bundled import is_bundled_model_converted

SMALL_MODEL = "The bundled model is small and makes things up"
SENTENCE_ENDS = (". ", "\n")  # as stop strings: the answer is one sentence


class Written(Protocol):
    """What a model's `generate` returns, as far as it is needed here."""

    @property
    def text(self) -> str: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def cached_tokens(self) -> int: ...
    @property
    def first_token_seconds(self) -> float: ...
    @property
    def finish_reason(self) -> str: ...


class WritingModel(Protocol):
    """What an assistant needs of a `LocalModel`."""

    @property
    def name(self) -> str: ...
    def generate(self, prompt: Sequence[Turn], /, *, max_new_tokens: int, stop: Sequence[str]) -> Written: ...
    def stream(
        self,
        prompt: Sequence[Turn],
        /,
        *,
        max_new_tokens: int,
        stop: Sequence[str],
        on_end: Callable[[Any], object],  # gets the whole, a Written, after its last piece
    ) -> Iterator[str]: ...


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer and what it cost. A hit computes no token, so its counts are zero; its first token is there when the
    answer is."""

    answer: Answer
    first_token_seconds: float
    prompt_tokens: int = 0
    cached_tokens: int = 0


class Assistant:
    """Answers the last turn of a conversation, from the cache or from the passages that the documents have for it.

    `stop` are strings that end an answer, `options` what else the answers depend on.
    """

    def __init__(
        self,
        cache: SmartCache,
        model: WritingModel,
        documents: Documents,
        *,
        system: str,
        max_new_tokens: int,
        stop: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._cache, self._model, self._documents = cache, model, documents
        self._system, self._max_new_tokens, self._stop = system, max_new_tokens, tuple(stop)
        self._options = {**(options or {}), "max_new_tokens": max_new_tokens, "stop": list(stop)}

    def reply(
        self,
        conversation: Sequence[Turn],
        *,
        scope: str = "",
        payload: Any = None,
        on_piece: Callable[[str], object] | None = None,
    ) -> Reply:
        """Answers `conversation`. `payload` is kept with an answer that the model makes, and comes back with it;
        `on_piece` gets what the model writes as it comes, and nothing on a hit."""
        started = perf_counter()
        written: list[tuple[Written, float]] = []

        def generate(request: Request, chunks: Sequence[Chunk]) -> Answer:
            waited_seconds = perf_counter() - started
            found = self._write(prompt(request, chunks), on_piece)
            written.append((found, waited_seconds + found.first_token_seconds))
            return Answer(_whole(found, self._stop), payload=payload, finish_reason=found.finish_reason)

        answer = self._cache.answer(self._request(conversation, scope), generate, search=self._documents.search)
        if not written:
            return Reply(answer, perf_counter() - started)
        found, first_token_seconds = written[0]
        return Reply(answer, first_token_seconds, found.prompt_tokens, found.cached_tokens)

    def _write(self, turns: Sequence[Turn], on_piece: Callable[[str], object] | None) -> Written:
        if on_piece is None:
            return self._model.generate(turns, max_new_tokens=self._max_new_tokens, stop=self._stop)
        ended: list[Written] = []
        for piece in self._model.stream(
            turns, max_new_tokens=self._max_new_tokens, stop=self._stop, on_end=ended.append
        ):
            on_piece(piece)
        return ended[0]

    def _request(self, conversation: Sequence[Turn], scope: str) -> Request:
        turns = [Turn("system", self._system), *conversation]
        return Request(turns, scope=scope, variant=self._model.name, options=self._options)


def loading_line(name: str | None = None) -> str:
    """What to say before a model is loaded, the bundled one without a name; what is slow only once is said then."""
    if name is None and not is_bundled_model_converted():
        return "Loading the language model (the first run converts it once, about 20 s) …"
    return "Loading the language model …"


def prompt(request: Request, chunks: Sequence[Chunk]) -> list[Turn]:
    """What the model reads: the system text, the passages, the conversation, and the question last.

    What changes least comes first, so that prompts share long beginnings.
    """
    system, *conversation = request.turns
    return [Turn("system", "\n\n".join([system.text, *(chunk.text for chunk in chunks)])), *conversation]


def _whole(found: Written, stop: Sequence[str]) -> str:
    """The text, with the full stop that ended it."""
    text = found.text.strip()
    ended_by_stop = any("." in mark for mark in stop) and found.finish_reason == "stop"
    return f"{text}." if ended_by_stop and text and text[-1].isalnum() else text
