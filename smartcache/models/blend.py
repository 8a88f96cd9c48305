"""State of chunks away from the beginning: taken from where each follows the prompt's fixed text, moved, and mended.

A chunk's state is computed right after what stands before the first chunk, and kept by the prefix cache as the exact
state that it is of that shorter text: so no chunk takes itself for the beginning, which is what EPIC mends by computing
the first tokens of each. Where nothing stands before the first chunk, nothing is taken. In a prompt its keys are turned
to where it stands; then the tokens that the other chunks change most, by how far their values in the second layer are
off, are computed anew, as in CacheBlend. What comes of it is never kept.
"""

from __future__ import annotations

from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, Any

import torch

from smartcache.models.batch import BatchDecoder
from smartcache.models.blend_layers import blend_layers, step
from smartcache.models.decoding import Progress
from smartcache.models.kv import Room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import Cache

    from smartcache.models.blend_layers import BlendLayers

JUDGED_BY = 1  # the layer whose values tell how much the text before a token matters to it


class BlendDecoder(BatchDecoder):
    """A decoder that also takes what it holds of a prompt's chunks, where that is asked for. Such a generation is not
    exact, and leaves nothing."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._blending = blend_layers(self._model, self._lean) if self.keeps_any_token else None

    def _advance(self, progress: Progress, text: list[int], cache: Cache | None) -> int:
        if progress.blend is None or not self._blends(progress) or not isinstance(cache, Room):
            return super()._advance(progress, text, cache)
        known, was_exact = progress.cached_tokens, cache.exact
        try:
            return self._blend(progress, text, cache)
        except Exception:  # what cannot be had is computed: trouble in reuse is never the caller's
            self._count_bypass("blend: chunks could not be placed")
            cache.cut(known)
            cache.exact = was_exact
            progress.cached_tokens, progress.exact, progress.recomputed_share = known, was_exact, None
            return known

    def _keep(self, progress: Progress, text: list[int], computed: int, cache: Cache | None) -> None:
        if progress.recomputed_share is None:
            super()._keep(progress, text, computed, cache)

    def _leave(self, progress: Progress, tokens: list[int], cache: Cache | None) -> None:
        if progress.recomputed_share is None:
            super()._leave(progress, tokens, cache)

    def _blends(self, progress: Progress) -> bool:
        assert progress.blend is not None
        if self._blending is None:
            self._count_bypass("blend: not for this kind of model")
        elif not self._prefixes.max_bytes:
            self._count_bypass("blend: no prefix cache")
        elif progress.blend.places and not progress.blend.places[0].start:
            self._count_bypass("blend: no text before the first chunk")
        else:
            if progress.blend.lost:
                self._count_bypass("blend: other tokens alone than in the prompt")
            return True
        return False

    def _blend(self, progress: Progress, text: list[int], room: Room) -> int:
        """Have `room` hold all of the text but its last token."""
        blend, layers, end = progress.blend, self._blending, len(text) - 1
        assert blend is not None
        assert layers is not None
        first = min(blend.places[0].stop, end) if blend.places else 0
        known, exact = progress.cached_tokens, max(progress.cached_tokens, first)
        beyond = [range(max(place.start, exact), min(place.stop, end)) for place in blend.places]
        if not any(beyond):
            return known
        if exact > known:  # the first chunk stands where it is computed
            self._forward(text[:exact], known, room)
            self._prefixes.store(self.tree(progress.scope), text[:exact], room.state(exact), begun=progress.begun)
        beginning = blend.places[0].start
        room.stretch(end)
        computed_now = 0
        for place, rest, alone in zip(blend.places, beyond, blend.alone(text), strict=True):
            if rest:
                chunk, computed = self._chunk(progress, alone, beginning, room)
                computed_now += min(computed, len(rest))
                self._place(chunk, beginning - place.start, rest, room, layers)
        held = torch.tensor(list(chain(*beyond)), device=self._model.device)
        anew = self._mend(text[exact:end], held, blend.recompute, room, exact)
        progress.exact, progress.recomputed_share = False, anew / len(held)
        progress.cached_tokens = known + max(len(held) - computed_now - anew, 0)
        return end

    def _chunk(self, progress: Progress, tokens: list[int], beginning: int, room: Room) -> tuple[Room, int]:
        """A room with the state of a chunk after the beginning, which `room` has too, and how many tokens were computed
        for it."""
        own = Room(len(room.layers), len(tokens))
        with self._known(Progress([*tokens, tokens[-1]], progress.scope)) as known:
            if known.length < beginning:
                own.place([room.state(beginning)], beginning)
            else:
                own.place(known.segments, known.length)
        computed = len(tokens) - own.get_seq_length()
        if computed:
            self._forward(tokens, len(tokens) - computed, own)
            self._prefixes.store(self.tree(progress.scope), tokens, own.state(len(tokens)), begun=progress.begun)
        return own, computed

    def _place(self, chunk: Room, moved: int, place: range, room: Room, layers: BlendLayers) -> None:
        """Write the state of tokens that lie `moved` places away in `chunk`."""
        now = torch.arange(place.start, place.stop, device=self._model.device)
        was = slice(place.start + moved, place.stop + moved)
        with torch.inference_mode():
            turn = layers.turning(now + moved, now)
            own, all_there = chunk.state(chunk.get_seq_length()), room.state(room.get_seq_length())
            for (own_keys, own_values), (keys, values) in zip(own.layers, all_there.layers, strict=True):
                keys[..., place.start : place.stop, :] = turn(own_keys[..., was, :])
                values[..., place.start : place.stop, :] = own_values[..., was, :]

    def _mend(self, ids: Sequence[int], held: torch.Tensor, share: float, room: Room, start: int) -> int:
        """Compute what is new of `ids`, which begin at `start`, and a share of what is `held`; how much of that."""
        layers, end, count = self._blending, start + len(ids), ceil(share * len(held))
        assert layers is not None
        with self._lock, torch.inference_mode():
            at = torch.arange(start, end, device=held.device)
            hidden = layers.embed(torch.tensor([list(ids)], device=held.device))
            wanted = torch.ones_like(at, dtype=torch.bool)
            wanted[held - start] = False
            if count:
                hidden = step(layers, 0, hidden, room, at)
                computed = layers.values(JUDGED_BY, hidden)[:, held - start]
                taken = room.state(end).layers[JUDGED_BY][1].transpose(1, 2).flatten(2)[:, held]
                off = (computed - taken).float().norm(dim=-1)[0]
                wanted[held[off.topk(count).indices] - start] = True
            hidden, at = hidden[:, wanted], at[wanted]
            for number in range(1 if count else 0, len(room.layers) if len(at) else 0):
                hidden = step(layers, number, hidden, room, at)
            return count
