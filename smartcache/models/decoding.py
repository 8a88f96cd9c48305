"""One generation, token by token: what is known of the prompt is placed, the rest is computed, and both are kept.

The loop is ours and not transformers' `generate`: a stream needs no thread then, can be dropped at any token, and holds
the lock for one forward pass at a time, so that generations of several threads take turns.
"""

from __future__ import annotations

import inspect
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from smartcache.models.kv import KVSegment, Room, layers_to_keep, own_cache

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from transformers import Cache, PreTrainedModel

    from smartcache.layers.prefixes import NoPrefixCache, PrefixCache, PrefixMatch
    from smartcache.models.sampling import TokenChooser


@dataclass(slots=True)
class Progress:
    """What one generation has done so far."""

    prompt: list[int]
    scope: str = ""
    tokens: list[int] = field(default_factory=list)
    cached_tokens: int = 0
    exact: bool = True
    placed_seconds: float = 0.0
    first_token_seconds: float = 0.0


class Decoder:
    """Yields the tokens that a model writes after a prompt, with prefix reuse where the model's cache allows it."""

    def __init__(
        self, model: PreTrainedModel, prefixes: PrefixCache[KVSegment] | NoPrefixCache, fingerprint: str
    ) -> None:
        self._model = model
        self._prefixes = prefixes
        self._fingerprint = fingerprint
        self._lock = Lock()
        accepted = inspect.signature(model.forward).parameters
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._layers = layers_to_keep(model)
        self.bypasses: Counter[str] = Counter()

    def run(self, progress: Progress, limit: int, choose: TokenChooser) -> Generator[int, None, None]:
        """At most `limit` tokens after `progress.prompt`; the caller decides where to end sooner."""
        started = perf_counter()
        cache = self._cache(progress, len(progress.prompt) + limit)
        progress.placed_seconds = perf_counter() - started
        text = list(progress.prompt)
        computed = progress.cached_tokens
        try:
            for number in range(limit):
                logits = self._forward(text, computed, cache)
                computed = len(text)
                token = choose(text, logits)
                text.append(token)
                progress.tokens.append(token)
                if number == 0:
                    progress.first_token_seconds = perf_counter() - started
                    new, seconds = len(progress.prompt) - progress.cached_tokens, progress.first_token_seconds
                    self._prefixes.computed(self._fingerprint, new, seconds - progress.placed_seconds)
                yield token
                if number == 0:  # the first token is out; others may use the prompt while the rest is written
                    self._keep(text, computed, cache, progress.scope)
        finally:
            self._keep(text, computed, cache, progress.scope)

    def warm(self, tokens: list[int], scope: str) -> None:
        """Compute and keep the state of all `tokens`."""
        # a match leaves out the last token: here none may be left out
        progress = Progress([*tokens, tokens[-1]], scope)
        cache = self._cache(progress, len(tokens))
        if isinstance(cache, Room) and progress.cached_tokens < len(tokens):
            self._forward(tokens, progress.cached_tokens, cache)
            self._keep(tokens, len(tokens), cache, scope)

    def _cache(self, progress: Progress, capacity: int) -> Cache | None:
        """A cache that holds what is known of the prompt; `None` where the model takes none."""
        if isinstance(self._layers, str):
            self._count_bypass(self._layers)
            return own_cache(self._model)
        room = Room(self._layers, capacity)
        try:
            with self._known(progress) as known:
                if known.length:
                    room.place(known.segments, known.length)
        except Exception:  # a prefix that cannot be had is computed: trouble in reuse is never the caller's
            self._count_bypass("known prefix could not be placed")
            return Room(self._layers, capacity)
        progress.cached_tokens, progress.exact = known.length, room.exact
        return room

    def _forward(self, text: list[int], computed: int, cache: Cache | None) -> torch.Tensor:
        """The logits after `text`, of which the cache holds the first `computed` tokens; shape (1, vocabulary)."""
        new = text[computed:] if cache is not None else text
        with self._lock, torch.inference_mode():
            ids = torch.tensor([new], device=self._model.device)
            carried = {"cache": cache, "use_cache": True} if cache is not None else {"use_cache": False}
            logits: torch.Tensor = self._model(input_ids=ids, **carried, **self._last_only).logits
            return logits[:, -1].float()

    def _keep(self, text: list[int], computed: int, cache: Cache | None, scope: str) -> None:
        if not isinstance(cache, Room) or not computed:
            return
        try:
            self._prefixes.store(self._tree(scope), text, cache.state(computed))
        except Exception:  # the caller has a right answer: trouble in keeping the state is ours alone
            self._count_bypass("state could not be kept")

    def _tree(self, scope: str) -> str:
        """Under which state is kept: what one scope computed, no other finds, not even by how quick it is."""
        return f"{self._fingerprint}/{scope}" if scope else self._fingerprint

    @contextmanager
    def _known(self, progress: Progress) -> Iterator[PrefixMatch[KVSegment]]:
        """The longest prefix known in the generation's scope, or to all: the scope "" is everyone's."""
        with ExitStack() as pinned:
            scopes = dict.fromkeys((progress.scope, ""))
            found = [pinned.enter_context(self._prefixes.match(self._tree(s), progress.prompt)) for s in scopes]
            yield max(found, key=lambda match: match.length)

    def _count_bypass(self, reason: str) -> None:
        with self._lock:
            self.bypasses[reason] += 1
