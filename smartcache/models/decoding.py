"""One generation, token by token: what is known of the prompt is placed, the rest is computed, and both are kept.

The loop is ours and not transformers' `generate`: a stream needs no thread then, can be dropped at any token, and holds
the lock for one forward pass at a time, so that generations of several threads take turns.
"""

from __future__ import annotations

import inspect
from collections import Counter, deque
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import torch

from smartcache.models.chunk_places import Blend
from smartcache.models.kv import KVSegment, Room, layers_to_keep, own_cache
from smartcache.models.lean import lean_forward
from smartcache.models.packed import pack
from smartcache.models.rooms import IdleRooms
from smartcache.models.snapshots import BoundedRoom, KVBoundaries, takes_boundaries

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from transformers import Cache, PreTrainedModel

    from smartcache.layers.prefixes import NoPrefixCache, PrefixCache, PrefixMatch
    from smartcache.models.sampling import TokenChooser


MAX_BROKEN_OFF = 4  # left streams whose state may wait for the next call; of more the first ones are lost
MAX_FIRST_TOKENS = 1_024  # room for so many new ones at first: few generations write as many as they may


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
    is_closed: bool = False  # by the one who wrote it down, and not because nobody reads it any more
    begun: int = 0  # how often the prefix cache had forgotten something then
    blend: Blend | None = None
    recomputed_share: float | None = None  # where state was taken from elsewhere in other texts


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """A generation that is over: what was read and written, and how much of it is computed in `cache`."""

    progress: Progress
    text: list[int]
    computed: int
    cache: Cache | None


class Decoder:
    """Yields the tokens that a model writes after a prompt, with prefix reuse where the model's cache allows it."""

    def __init__(
        self,
        model: PreTrainedModel,
        prefixes: PrefixCache[KVSegment] | NoPrefixCache,
        fingerprint: str,
        *,
        packed: bool = False,
    ) -> None:
        self._model = model
        self._prefixes = prefixes
        self._fingerprint = fingerprint
        self._lock = Lock()
        accepted = inspect.signature(model.forward).parameters
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._layers = layers_to_keep(model)
        self._idle = IdleRooms()
        self._lean = lean_forward(model, self._layers) if packed and isinstance(self._layers, int) else None
        if packed and self._lean is None:
            pack(model)
        bounded = isinstance(self._layers, str) and takes_boundaries(model)
        # some of these models take every call for the beginning of the text, unless they are told
        self._told_positions = isinstance(self._layers, str) and "position_ids" in accepted
        self._boundaries: KVBoundaries | None = KVBoundaries(cast(Any, prefixes)) if bounded else None
        self.bypasses: Counter[str] = Counter()
        self._broken_off: deque[_Left] = deque(maxlen=MAX_BROKEN_OFF)
        prefixes.tell_of_forgetting(self)

    @property
    def keeps_any_token(self) -> bool:
        """Whether the state of this model can be cut at any token."""
        return isinstance(self._layers, int)

    def run(self, progress: Progress, limit: int, choose: TokenChooser) -> Generator[int, None, None]:
        """At most `limit` tokens after `progress.prompt`; the caller decides where to end sooner."""
        self._settle_broken_off()
        started = perf_counter()
        cache = self._cache(progress, limit)
        progress.placed_seconds = perf_counter() - started
        text = list(progress.prompt)
        computed = self._advance(progress, text, cache)
        settles = True
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
                    self._keep(progress, text, computed, cache)
        except GeneratorExit:
            # A reader that leaves may be the garbage collector, in the midst of anything: it must wait for no lock.
            settles = progress.is_closed
            raise
        finally:
            left = _Left(progress, text, computed, cache)
            if settles:
                self._settle(left)
            elif self._prefixes.max_bytes and progress.begun == self._prefixes.forgets:
                self._broken_off.append(left)  # for the next one who comes

    def example(self) -> KVSegment:
        """State of this model, of one token: what it is made of shows in it."""
        assert isinstance(self._layers, int)
        room = Room(self._layers, 1)
        self._forward([0], 0, room)
        return room.state(1)[:1]

    def warm(self, tokens: list[int], scope: str) -> int:
        """Compute and keep the state of all `tokens`; how many of them were computed."""
        # a match leaves out the last token: here none may be left out
        self._settle_broken_off()
        progress = Progress([*tokens, tokens[-1]], scope)
        cache = self._cache(progress, 0)
        if not isinstance(cache, Room | BoundedRoom):
            return 0
        computed = self._advance(progress, tokens, cache)
        if computed < len(tokens):
            self._forward(tokens, computed, cache)
        self._settle(_Left(progress, tokens, len(tokens), cache))
        return len(tokens) - progress.cached_tokens

    def clear(self) -> None:
        """Let go of all state that is not the prefix cache's: it may hold what was forgotten there."""
        self._idle.clear()
        self._broken_off.clear()

    def forget(self, tokens: Sequence[int], scope: str) -> int:
        """Delete the state of what begins with `tokens`; how many tokens lost theirs in memory."""
        return (self._boundaries or self._prefixes).forget(self.tree(scope), tokens)

    def held(self, tokens: Sequence[int], scope: str) -> int:
        """How many tokens of the beginning have their state in memory, as `scope` finds it."""
        return max(self._prefixes.held(self.tree(one), tokens) for one in (scope, ""))

    def _settle(self, left: _Left) -> None:
        """Keep what a generation computed, and leave its room to who comes next."""
        self._keep(left.progress, left.text, left.computed, left.cache)
        self._leave(left.progress, left.text[: left.computed], left.cache)

    def _settle_broken_off(self) -> None:
        while self._broken_off:
            try:
                left = self._broken_off.popleft()
            except IndexError:  # another thread was quicker
                return
            self._settle(left)

    def _cache(self, progress: Progress, limit: int) -> Cache | None:
        """A cache that holds what is known of the prompt, with place for it and some of the `limit` tokens to be
        written; `None` where the model takes none."""
        progress.begun = self._prefixes.forgets
        capacity = len(progress.prompt) + min(limit, MAX_FIRST_TOKENS)
        if self._boundaries is not None:
            return self._bounded_room(progress, self._boundaries, capacity)
        if isinstance(self._layers, str):
            self._count_bypass(self._layers)
            return own_cache(self._model)
        try:
            with self._known(progress) as known:
                room = self._idle.take(progress.prompt, known.length) or Room(self._layers, capacity)
                room.place(known.segments, known.length)
        except Exception:  # a prefix that cannot be had is computed: trouble in reuse is never the caller's
            self._count_bypass("known prefix could not be placed")
            return Room(self._layers, capacity)
        progress.cached_tokens, progress.exact = known.length, room.exact
        return room

    def _bounded_room(self, progress: Progress, boundaries: KVBoundaries, capacity: int) -> BoundedRoom:
        """A room that begins at the longest boundary of the prompt that is stored."""
        config, prompt_tokens, keeps = self._model.config, len(progress.prompt), self._prefixes.max_bytes > 0
        trees = [self.tree(scope) for scope in dict.fromkeys((progress.scope, ""))]
        room = BoundedRoom(config, capacity)
        try:
            with boundaries.match(trees, progress.prompt) as known:
                room.begin(known, prompt_tokens, keeps=keeps)
        except Exception:  # as above: what cannot be had is computed
            self._count_bypass("known prefix could not be placed")
            return BoundedRoom(config, capacity)
        progress.cached_tokens = known.length
        return room

    def _advance(self, progress: Progress, text: list[int], cache: Cache | None) -> int:
        """Compute up to each boundary whose state must be taken there and then; how much is computed now."""
        computed = progress.cached_tokens
        if not isinstance(cache, BoundedRoom):
            return computed
        for end in cache.stops:
            self._forward(text[:end], computed, cache)
            computed = end
            try:
                cache.mark(end)
            except Exception:  # as in _keep: the generation goes on without this boundary
                self._count_bypass("state could not be kept")
        return computed

    def _forward(self, text: list[int], computed: int, cache: Cache | None) -> torch.Tensor:
        """The logits after `text`, of which the cache holds the first `computed` tokens; shape (1, vocabulary)."""
        new = text[computed:] if cache is not None else text
        reading = cache.reading() if isinstance(cache, BoundedRoom) else nullcontext()
        with self._lock, torch.inference_mode(), reading:
            ids = torch.tensor([new], device=self._model.device)
            if self._lean is not None and isinstance(cache, Room):
                return self._lean(ids, cache)
            carried: dict[str, Any] = {"use_cache": False} if cache is None else {"cache": cache, "use_cache": True}
            if cache is not None and self._told_positions:
                carried["position_ids"] = torch.arange(computed, len(text), device=ids.device)[None]
            logits: torch.Tensor = self._model(input_ids=ids, **carried, **self._last_only).logits
            return logits[:, -1].float()

    def _keep(self, progress: Progress, text: list[int], computed: int, cache: Cache | None) -> None:
        tree = self.tree(progress.scope)
        try:
            if isinstance(cache, BoundedRoom) and self._boundaries is not None:
                cache.keep(self._boundaries, tree, text, computed, begun=progress.begun)
            elif isinstance(cache, Room) and computed:
                self._prefixes.store(tree, text, cache.state(computed), begun=progress.begun)
        except Exception:  # the caller has a right answer: trouble in keeping the state is ours alone
            self._count_bypass("state could not be kept")

    def _leave(self, progress: Progress, tokens: list[int], cache: Cache | None) -> None:
        """Leave the room to who comes next. Where nothing is kept, nothing is left."""
        budget = self._prefixes.max_bytes
        if isinstance(cache, Room) and tokens and budget:
            self._idle.give(tokens, cache, budget - self._prefixes.bytes())
            if progress.begun != self._prefixes.forgets:  # it may hold what was forgotten meanwhile
                self._idle.clear()

    def tree(self, scope: str) -> str:
        """Under which state is kept: what one scope computed, no other finds, not even by how quick it is."""
        return f"{self._fingerprint}/{scope}" if scope else self._fingerprint

    @contextmanager
    def _known(self, progress: Progress) -> Iterator[PrefixMatch[KVSegment]]:
        """The longest prefix known in the generation's scope, or to all: the scope "" is everyone's."""
        with ExitStack() as pinned:
            best = pinned.enter_context(self._prefixes.match(self.tree(progress.scope), progress.prompt))
            if progress.scope and best.length < len(progress.prompt) - 1:
                everyones = pinned.enter_context(self._prefixes.match(self.tree(""), progress.prompt))
                best = max(best, everyones, key=lambda match: match.length)
            yield best

    def _count_bypass(self, reason: str) -> None:
        with self._lock:
            self.bypasses[reason] += 1
