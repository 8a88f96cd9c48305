"""Several generations together: what their prompts share is computed once, and each forward writes a token of all.

Decoding one token reads every weight of the model, for one text as for eight: that is what rows in one forward save.
"""

from __future__ import annotations

import inspect
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import torch

from smartcache.models.batch_room import BatchRoom
from smartcache.models.decoding import MAX_FIRST_TOKENS, Decoder, Progress
from smartcache.models.kv import KVSegment, Room
from smartcache.storage.chains import shared_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smartcache.models.sampling import TokenChooser


class Row(Protocol):
    """One generation of a batch: `take` gets its tokens as they come, until it has `ended` or there are `limit`."""

    progress: Progress
    limit: int
    choose: TokenChooser
    ended: bool

    def take(self, token: int) -> str: ...
    def finish(self) -> str: ...


class BatchDecoder(Decoder):
    """A decoder that also writes after several prompts at once, each as it would alone."""

    def run_together(self, rows: Sequence[Row], max_rows: int) -> None:
        """Write all rows, at most `max_rows` of them in one forward."""
        if not self.keeps_any_token:  # this state cannot be cut, so none of it can be shared
            for row in rows:
                self._write_alone(row)
            return
        self._settle_broken_off()
        begun = self._prefixes.forgets
        for row in rows:
            row.progress.begun = begun  # of all: a row may rest on what one before it computed
        order = _by_branches([row.progress.prompt for row in rows])
        texts = [_Text(rows[number], list(rows[number].progress.prompt)) for number in order]
        size = max_rows if self._takes_gaps else 1
        groups = [texts[start : start + size] for start in range(0, len(texts), size)]
        started, before = perf_counter(), None
        for group, following in pairwise([*groups, []]):
            before = self._write(group, before, following, started)
        self._idle.shrink(self._prefixes.max_bytes - self._prefixes.bytes())

    def _write_alone(self, row: Row) -> None:
        with closing(self.run(row.progress, row.limit, row.choose)) as tokens:
            for token in tokens:
                row.take(token)
                if row.ended:
                    row.progress.is_closed = True
                    break
        row.finish()

    def _write(self, group: list[_Text], before: _Read | None, following: list[_Text], started: float) -> _Read | None:
        """Write one group; what the group that follows can begin with."""
        room, read = None, before
        for number, text in enumerate(group):
            own = room.row(number) if room else Room(self._layers_kept, len(text.tokens))
            began, progress = perf_counter(), text.row.progress
            read = self._read(progress, own, read)
            if room is None:  # the first one shows what state looks like
                more = min(max(other.row.limit for other in group), MAX_FIRST_TOKENS)
                room = BatchRoom(read.state, [len(other.tokens) for other in group], more)
                room.row(0).place([read.state], len(read.prompt))
            assert read.logits is not None
            text.take(read.logits)
            now, new = perf_counter(), len(progress.prompt) - progress.cached_tokens
            progress.first_token_seconds = now - started
            self._prefixes.computed(self._fingerprint, new, now - began - progress.placed_seconds)
        assert room is not None
        assert read is not None
        left = read.cut_to(following[0].row.progress.prompt) if following else None
        self._decode(group, room)
        return left

    @cached_property
    def _takes_gaps(self) -> bool:
        """A shorter text has empty slots before it, and only these two tell the model so."""
        return {"attention_mask", "position_ids"} <= set(inspect.signature(self._model.forward).parameters)

    @property
    def _layers_kept(self) -> int:
        assert isinstance(self._layers, int)
        return self._layers

    def _read(self, progress: Progress, room: Room, before: _Read | None) -> _Read:
        """Compute a prompt into the empty `room`, as far as it is not known and not shared with the one `before`."""
        started = perf_counter()
        prompt = progress.prompt
        shared = min(shared_length(before.prompt, prompt), len(prompt) - 1) if before else 0
        if before and before.logits is not None and before.prompt == prompt:
            room.place([before.state], len(prompt))
            progress.cached_tokens, progress.exact = shared, room.exact  # as for a prompt that is known in full
            progress.placed_seconds = perf_counter() - started
            return _Read(prompt, room.state(len(prompt)), before.logits)
        progress.cached_tokens = self._place_known(progress, room, shared)
        if before and progress.cached_tokens < shared:
            room.place([before.state], shared)
            progress.cached_tokens = shared
        progress.exact = room.exact
        progress.placed_seconds = perf_counter() - started
        logits = self._forward(prompt, progress.cached_tokens, room)
        self._keep(progress, prompt, len(prompt), room)
        return _Read(prompt, room.state(len(prompt)), logits)

    def _place_known(self, progress: Progress, room: Room, shared: int) -> int:
        """Place the known prefix where it is longer than `shared`; its length, or 0."""
        try:
            with self._known(progress) as known:
                if known.length > shared:
                    room.place(known.segments, known.length)
                    return known.length
        except Exception:  # a prefix that cannot be had is computed: trouble in reuse is never the caller's
            self._count_bypass("known prefix could not be placed")
            room.begin_again()
        return 0

    def _decode(self, texts: list[_Text], room: BatchRoom) -> None:
        """Write on, all texts at once; those that end leave."""
        self._dismiss(texts, room)
        together = room.together() if texts else None
        while together:
            logits = self._forward_all([text.tokens[-1] for text in texts], room, together)
            for text, own in zip(texts, logits[:, None], strict=True):
                text.take(own)
            some_left = self._dismiss(texts, room)
            has_grown = bool(texts) and room.grow()  # whether or not some left: the next token needs its place
            if some_left or has_grown:
                together = room.together() if texts else None

    def _dismiss(self, texts: list[_Text], room: BatchRoom) -> bool:
        """Let go of what is done, the last text takes the place of one that leaves; whether any left."""
        done = [number for number, text in enumerate(texts) if text.done]
        for number in reversed(done):
            text = texts[number]
            if len(text.row.progress.tokens) > 1:  # the prompt alone is kept already
                own = room.row(number)
                own.exact = text.row.progress.exact
                self._keep(text.row.progress, text.tokens, len(text.tokens) - 1, own)
            text.row.finish()
            room.leave(number)
            texts[number] = texts[-1]
            texts.pop()
        return bool(done)

    def _forward_all(self, newest: list[int], room: BatchRoom, together: Room) -> torch.Tensor:
        """The logits after the newest token of each row; shape (rows, vocabulary)."""
        with self._lock, torch.inference_mode():
            ids = torch.tensor(newest, device=self._model.device)[:, None]
            gaps = room.gaps(ids.device)
            if self._lean is not None:
                logits = self._lean(ids, together, gaps)
            else:
                network = self._model(input_ids=ids, cache=together, use_cache=True, **gaps, **self._last_only)
                logits = network.logits[:, -1].float()
            room.filled += 1
            return logits


@dataclass(slots=True)
class _Text:
    """A prompt and what was written after it so far."""

    row: Row
    tokens: list[int]

    @property
    def done(self) -> bool:
        return self.row.ended or len(self.row.progress.tokens) >= self.row.limit

    def take(self, logits: torch.Tensor) -> None:
        token = self.row.choose(self.tokens, logits)
        self.tokens.append(token)
        self.row.progress.tokens.append(token)
        self.row.take(token)


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """A prompt that was computed: its state, as a view of a room, and the logits after it; a part of one has none."""

    prompt: list[int]
    state: KVSegment
    logits: torch.Tensor | None

    def cut_to(self, prompt: list[int]) -> _Read | None:
        """What `prompt` shares with it, in memory of its own."""
        shared = shared_length(self.prompt, prompt)
        whole = shared == len(self.prompt)
        return _Read(self.prompt[:shared], self.state[:shared], self.logits if whole else None) if shared else None


def _by_branches(prompts: list[list[int]]) -> list[int]:
    """The prompts' numbers in an order where no earlier one shares more with a prompt than the one just before it: a
    walk of their tree, in each branch the first prompt first."""
    ranked = sorted(range(len(prompts)), key=prompts.__getitem__)
    shared = [0, *(shared_length(prompts[left], prompts[right]) for left, right in pairwise(ranked))]
    order, branches = [], [range(len(ranked))] if ranked else []
    while branches:
        branch = branches.pop()
        if len(branch) == 1:
            order.append(ranked[branch[0]])
            continue
        fork = min(shared[at] for at in branch[1:])
        cuts = [branch.start, *(at for at in branch[1:] if shared[at] == fork), branch.stop]
        parts = [range(start, stop) for start, stop in pairwise(cuts)]
        branches += sorted(parts, key=lambda part: min(ranked[at] for at in part), reverse=True)
    return order
