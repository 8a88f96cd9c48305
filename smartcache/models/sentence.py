"""Sentence embeddings from any sentence-transformers model: cheap to make, loaded when first asked."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from smartcache.errors import MissingExtra
from smartcache.models.sentence_folder import SentenceFolder

if TYPE_CHECKING:
    from collections.abc import Sequence


_PROBED = "How do I open the door?"


class SentenceEmbedder:
    """Unit vectors for texts, by a model folder that sentence-transformers wrote.

    The folder's files are read when it is made, the weights only to name them; torch is loaded at the first call.
    `name` is the same on every machine and another one for other weights, pooling or prompt. `prompt` is put before
    every text (some models want "query: "). Texts beyond `max_tokens` are cut by the model: ask
    `count_tokens` first. The same text in another batch may differ in the last bits. Any number of threads may call;
    they take turns.
    """

    def __init__(
        self, name_or_path: str | Path, name: str | None = None, *, prompt: str = "", device: str | None = None
    ) -> None:
        folder = SentenceFolder.find(name_or_path)
        self._folder = folder.path
        self._prompt = prompt
        self._device = device
        self._lock = Lock()
        self._loaded: Any = None
        self.dimension = folder.dimension()
        self.max_tokens = folder.max_tokens()
        self.name = f"{name or Path(name_or_path).name}@{folder.digest(prompt)[:12]}"

    def __call__(self, texts: Sequence[str], /) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Shape (len(texts), dimension), float32, rows of length 1."""
        if isinstance(texts, str):
            raise TypeError("texts is a sequence of str, not one str: write embedder([text])")
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        with self._lock:
            rows = self._model().encode(
                [self._prompt + text for text in texts],
                prompt="",  # a default prompt of the folder would be a second one
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        return np.ascontiguousarray(rows, dtype=np.float32)

    def count_tokens(self, text: str, /) -> int:
        """How many tokens the model would read, special tokens and prompt included, were there no limit."""
        return len(self._token_ids(text))

    def reads(self, text: str, /) -> bool:
        """Whether the model has a token for every word: all that it does not know is one and the same to it."""
        return self._unknown() not in self._token_ids(text)

    def _token_ids(self, text: str) -> list[int]:
        with self._lock:
            found = self._model().tokenizer(self._prompt + text, truncation=False, verbose=False)
            return list(found["input_ids"])

    def _unknown(self) -> int | None:
        with self._lock:
            return getattr(self._model().tokenizer, "unk_token_id", None)

    def _model(self) -> Any:
        """The model, loaded at the first call; the caller holds the lock."""
        if self._loaded is None:
            self._loaded = loaded("SentenceTransformer", self._folder, device=self._device)
            _pack(self._loaded)
        return self._loaded


def _pack(model: Any) -> None:
    """Lays its weights out for few rows, where that can be done: a question is embedded in some 60 % of the time."""
    from smartcache.models.packed import pack, packs

    if packs(model):
        pack(model, lambda whole: whole.encode([_PROBED], prompt="", show_progress_bar=False, convert_to_tensor=True))


def loaded(kind: str, folder: Path, **settings: Any) -> Any:
    """A model of sentence-transformers, by the name of its class. Raises MissingExtra where that is not installed."""
    try:
        import sentence_transformers
    except ModuleNotFoundError as missing:
        raise MissingExtra("sentence-transformers", "local") from missing
    from smartcache.models.quiet import quiet

    with quiet():
        return getattr(sentence_transformers, kind)(str(folder), **settings)
