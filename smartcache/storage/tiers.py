"""What the prefix cache keeps below its tree: blocks in host memory and on disk, written behind, fetched when it pays.

Everything is kept in both as soon as it is stored, so evicting it from above loses nothing and waits for nothing.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from threading import Condition, Lock
from time import perf_counter
from typing import TYPE_CHECKING, Generic

import numpy as np

from smartcache.storage.block_files import BlockFiles
from smartcache.storage.chains import Block, Chain, root_of, shared_length
from smartcache.storage.pace import Pace, is_slower
from smartcache.storage.segments import SegmentT
from smartcache.storage.shelf import BlockMemory
from smartcache.storage.tensor_files import FORMAT
from smartcache.storage.transit import Continuation, Found, Writing
from smartcache.storage.write_behind import Running, WriteBehind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from smartcache.storage.segments import Codec
    from smartcache.storage.shelf import Shelf

FORMS = (None, "int8")


@dataclass(frozen=True, slots=True)
class TierUsage:
    """What the lower tiers hold and did. `waiting`: how much is queued to be written. `max_error`: how far a number
    that was loaded may be from the one computed, 0 where nothing is compressed. `reasons` counts what was not kept or
    not loaded, and why."""

    ram_bytes: int = 0
    disk_bytes: int = 0
    waiting: int = 0
    loaded_tokens: int = 0
    max_error: float = 0.0
    reasons: Mapping[str, int] = field(default_factory=dict)


class Tiers(Generic[SegmentT]):
    """Blocks of state by tree and tokens, in host memory and on disk; with neither, nothing is ever there.

    Any number of threads may call. What goes wrong here is counted and never raised; a tree whose codec is not known
    is left alone.
    """

    def __init__(
        self,
        disk_path: str | Path | None = None,
        disk_max_bytes: int = 0,
        ram_max_bytes: int = 0,
        compress: str | None = None,
        queue_bytes: int = 0,
        block_tokens: int = 64,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        if compress not in FORMS:
            raise ValueError(f"compress is {compress!r}: it must be None or 'int8'")
        if compress and disk_path is None and not ram_max_bytes:
            raise ValueError(f"compress={compress!r} is for what is kept below: give a disk_path or ram_max_bytes")
        require_bytes(disk_max_bytes=disk_max_bytes, ram_max_bytes=ram_max_bytes)
        if not isinstance(block_tokens, int | np.integer) or block_tokens < 1:
            raise ValueError(f"block_tokens is {block_tokens!r}: it must be a whole number of at least 1")
        self._lock = Lock()
        self._reasons: Counter[str] = Counter()
        self._compress, self._block_tokens, self._clock = compress, block_tokens, clock
        self._memory = BlockMemory(ram_max_bytes)
        self._files = None if disk_path is None else BlockFiles(_folder(disk_path), disk_max_bytes, self._count)
        shelves: tuple[Shelf | None, ...] = (self._memory if ram_max_bytes else None, self._files)
        self._shelves = tuple(shelf for shelf in shelves if shelf is not None)
        self.active = bool(self._shelves)
        self._queue: WriteBehind[Writing[SegmentT]] = WriteBehind(self._write, queue_bytes)
        self._codecs: dict[str, Codec[SegmentT]] = {}
        self._computing: dict[str, Pace] = {}
        self._loading: dict[Shelf, Pace] = {shelf: Pace() for shelf in self._shelves}
        self._pauses = self._fetching = self._loaded_tokens = 0
        self._no_fetch = Condition(self._lock)
        self._max_error = 0.0

    def use_codec(self, name: str, codec: Codec[SegmentT]) -> None:
        """Keep the trees `name` and `name/…` with `codec`."""
        with self._lock:
            self._codecs[name] = codec

    def keeps(self, tree: str) -> bool:
        """Whether state of `tree` is kept here."""
        return self.active and self._name(tree) is not None

    def computed(self, name: str, tokens: int, seconds: float) -> None:
        """The model of `name` took so long for so many tokens at once. Less than a block says nothing of a block."""
        if tokens >= self._block_tokens:
            with self._lock:
                self._computing.setdefault(name, Pace()).add(tokens, seconds)

    def keep(
        self,
        tree: str,
        tokens: tuple[int, ...],
        segments: Sequence[SegmentT],
        known: int,
        new: SegmentT | None = None,
    ) -> None:
        """Have the state of `tokens` written soon, as far as it is not there, and counted as used: `segments` hold the
        first `known` of them, the last segment may reach beyond; `new` holds the rest."""
        if not self.active or not tokens or self._pauses or self._name(tree) is None:
            return
        parts, at = [], 0
        for segment in segments:
            parts.append((at, min(at + len(segment), known), segment))
            at = parts[-1][1]
        if new is not None:
            parts.append((known, len(tokens), new))
        nbytes = sum(part.nbytes for *_, part in parts)
        job = Writing(tree, tokens, tuple(parts), nbytes, optional=new is None)
        try:
            if not self._queue.put(job) and new is not None:
                self._count("not written: too much is waiting")
        except RuntimeError:  # no thread can be started: there are too many, or the process is ending
            self._count("not written: no thread")

    def fetch(self, tree: str, tokens: tuple[int, ...], known: int) -> Continuation[SegmentT] | None:
        """The state that follows the first `known` of `tokens`, if it is here and sooner loaded than computed."""
        name = self._name(tree)
        if not self.active or name is None or not self._begins_to_fetch():
            return None
        try:
            chain = self._chain(tree, tokens)
            run = self._worth(self._run(chain, known), known, name)
            return self._load(chain, run, known, self._codecs[name]) if run else None
        except Exception:  # the model computes it then
            self._count("could not be loaded")
            return None
        finally:
            with self._no_fetch:
                self._fetching -= 1
                self._no_fetch.notify_all()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is fetched, nor queued, until the block ends; it begins when what is being fetched is there."""
        with self._lock:
            self._pauses += 1
        try:
            with self._no_fetch:
                self._no_fetch.wait_for(lambda: not self._fetching)
            yield
        finally:
            with self._lock:
                self._pauses -= 1

    def forget(self, tree: str, tokens: tuple[int, ...]) -> None:
        """Delete what begins with `tokens`, also what is yet to be written. Call it while paused."""
        if not self.active:
            return
        self._queue.cancel(
            lambda job: job.tree == tree and shared_length(job.tokens, tokens) in (len(tokens), len(job.tokens))
        )
        chain = self._chain(tree, tokens)
        for shelf in self._shelves:
            shelf.forget(chain)

    def clear(self) -> None:
        """Delete everything, also what is yet to be written. Call it while paused."""
        self._queue.cancel(lambda _: True)
        for shelf in self._shelves:
            shelf.clear()

    def flush(self, timeout_seconds: float | None = None) -> bool:
        """Wait until all that was queued is written; False where that takes longer."""
        return self._queue.flush(timeout_seconds)

    def close(self) -> None:
        """Write what was queued, and take nothing more."""
        self._queue.close()

    def usage(self) -> TierUsage:
        disk_bytes = self._files.bytes() if self._files else 0
        waiting = len(self._queue)
        with self._lock:
            reasons = dict(self._reasons)
            return TierUsage(self._memory.bytes(), disk_bytes, waiting, self._loaded_tokens, self._max_error, reasons)

    def _begins_to_fetch(self) -> bool:
        with self._lock:
            self._fetching += not self._pauses
            return not self._pauses

    def _name(self, tree: str) -> str | None:
        with self._lock:
            return next((name for name in self._codecs if tree == name or tree.startswith(f"{name}/")), None)

    def _chain(self, tree: str, tokens: tuple[int, ...]) -> Chain:
        root = root_of(tree, FORMAT, self._compress, self._block_tokens)
        return Chain.of(root, tokens, self._block_tokens)

    def _run(self, chain: Chain, known: int) -> list[Found]:
        """The blocks from the one that holds the token after the `known` ones, as far as they follow one another."""
        run: list[Found] = []
        for block, tokens in chain.blocks(known // self._block_tokens):
            found = self._find(block, tokens) if len(tokens) == self._block_tokens else None
            if found is None:  # the last one: any that begins as this one does
                others = [(shelf, other) for shelf in self._shelves for other in shelf.after(block.parent)]
                begun = [Found(shelf, other, shelf.tokens_of(other), tokens) for shelf, other in others]
                best = max(begun, key=lambda one: (one.shared, -one.block.nbytes), default=None)
                return run + ([best] if best and best.shared else [])
            run.append(found)
        return run

    def _find(self, block: Block, tokens: tuple[int, ...]) -> Found | None:
        there = ((shelf, shelf.find(block)) for shelf in self._shelves)
        return next((Found(shelf, found, tokens, tokens) for shelf, found in there if found is not None), None)

    def _worth(self, run: list[Found], known: int, name: str) -> list[Found]:
        """`run`, as far as loading it is sooner than computing what it holds."""
        offset = known % self._block_tokens
        if not run or (len(run) == 1 and run[0].shared <= offset):
            return []
        kept = list(run)
        with self._lock:
            computing = self._computing.get(name, Pace())
            while kept:
                gain = kept[-1].shared - (offset if len(kept) == 1 else 0)
                if not is_slower(self._loading[kept[-1].shelf], kept[-1].block.nbytes, computing, gain):
                    break
                kept.pop()
            if not kept:
                self._loading[run[0].shelf].doubt()
        if len(kept) < len(run):
            self._count("not loaded: computing is sooner")
        return kept

    def _load(
        self, chain: Chain, run: list[Found], known: int, codec: Codec[SegmentT]
    ) -> Continuation[SegmentT] | None:
        started = self._clock()
        tokens = chain.tokens[: known - known % self._block_tokens]
        segments: list[SegmentT] = []
        bytes_from: Counter[Shelf] = Counter()
        for found in run:
            segment = self._read(found, codec)
            if segment is None:
                break
            segments.append(segment)
            tokens += found.tokens
            bytes_from[found.shelf] += found.block.nbytes
        length = shared_length(tokens, chain.tokens)
        if length <= known:
            return None
        if known % self._block_tokens:
            segments[0] = segments[0][known % self._block_tokens :]
        joined = codec.join(segments)
        for shelf in self._shelves:
            shelf.used(chain.keys[: len(tokens) // self._block_tokens])
        self._memory.make_room()
        with self._lock:
            slowest = max(bytes_from, key=self._shelves.index)
            self._loading[slowest].add(bytes_from[slowest], self._clock() - started)
            self._loaded_tokens += length - known
        return Continuation(tokens, length, joined)

    def _read(self, found: Found, codec: Codec[SegmentT]) -> SegmentT | None:
        packed = found.shelf.read(found.block, found.tokens)
        if packed is None:
            return None
        try:
            segment = codec.unpack(packed)
            if len(segment) != found.block.count:
                raise ValueError(f"it holds {len(segment)} tokens")
        except ValueError:
            found.shelf.set_aside(found.block, "no state of this model")
            return None
        memory = self._shelves[0]
        # The memory comes before the disk; but a block there without those before it would escape being forgotten.
        if memory is not found.shelf and (found.block.parent == found.block.root or memory.has(found.block.parent)):
            memory.put(found.block, found.tokens, packed)
        with self._lock:
            self._max_error = max(self._max_error, packed.max_error)
        return segment

    def _write(self, running: Running[Writing[SegmentT]]) -> None:
        job = running.job
        name = self._name(job.tree)
        try:
            if name is not None:
                chain = self._chain(job.tree, job.tokens)
                self._put(running, chain, self._codecs[name])
                for shelf in self._shelves:
                    shelf.used(chain.keys)
                    shelf.make_room()
        except Exception:  # a full disk, say: what is not kept will be computed
            self._count("could not be written")

    def _put(self, running: Running[Writing[SegmentT]], chain: Chain, codec: Codec[SegmentT]) -> None:
        """Whatever of the chain is missing, from its start on and as long as a shelf could hold all of it."""
        room = {shelf: shelf.max_bytes for shelf in self._shelves}
        for number, (block, tokens) in enumerate(chain.blocks()):
            packed = None
            for shelf in tuple(room):
                if running.cancelled:
                    return
                if not shelf.holds(block, tokens):
                    if packed is None:
                        start = number * self._block_tokens
                        pieces = running.job.state(start, start + len(tokens))
                        packed = codec.pack(pieces[0] if len(pieces) == 1 else codec.join(pieces), self._compress)
                    if packed.nbytes > room[shelf]:
                        del room[shelf]
                        if shelf is self._files:
                            self._count("not written: no room for all of it")
                        continue
                    shelf.put(block, tokens, packed)
                    shelf.replace_shorter(block, tokens)
                there = shelf.find(block)
                room[shelf] -= there.nbytes if there else 0

    def _count(self, reason: str) -> None:
        with self._lock:
            self._reasons[reason] += 1


def require_bytes(**limits: object) -> None:
    """Raises TypeError or ValueError for a limit that is no number of bytes."""
    for name, limit in limits.items():
        if not isinstance(limit, Real):
            raise TypeError(f"{name} is {limit!r}: it must be a number of bytes")
        if not float(limit) >= 0:  # nor is NaN
            raise ValueError(f"{name} is {limit}: it must be 0 or more")


def _folder(path: str | Path) -> Path:
    if not str(path):
        raise ValueError("disk_path is empty: give the folder that keeps the state, '.' for this one")
    folder = Path(path).expanduser()
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"disk_path is the file {str(folder)!r}: it must be a folder")
    return folder
