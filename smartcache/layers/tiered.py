"""The part of a prefix cache that speaks of its lower tiers: what to write them with, and when they are at rest."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Generic, Protocol, Self
from weakref import WeakSet

from smartcache.storage.segments import SegmentT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smartcache.storage.segments import Codec
    from smartcache.storage.tiers import Tiers, TierUsage


class Forgetful(Protocol):
    """Holds state beside a prefix cache."""

    def clear(self) -> None: ...


class Tiered(Generic[SegmentT]):
    """A cache above `tiers`: what is queued has been written once it is closed, or its process has ended."""

    def __init__(self, tiers: Tiers[SegmentT]) -> None:
        self._tiers = tiers
        self._told: WeakSet[Forgetful] = WeakSet()
        self._told_lock = Lock()

    @property
    def has_tiers(self) -> bool:
        return self._tiers.active

    def tell_of_forgetting(self, holder: Forgetful) -> None:
        """Clear `holder`, as long as it lives, whenever something is forgotten here: it may hold a part of that."""
        with self._told_lock:
            self._told.add(holder)

    @contextmanager
    def _told_of_it(self) -> Iterator[None]:
        """Clears the holders when the block ends, however it does."""
        try:
            yield
        finally:
            with self._told_lock:
                holders = list(self._told)
            for holder in holders:
                holder.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def use_codec(self, fingerprint: str, codec: Codec[SegmentT]) -> None:
        """How state of `fingerprint`, and of `fingerprint/…`, is written and read; without one it stays in memory."""
        self._tiers.use_codec(fingerprint, codec)

    def keeps_below(self, fingerprint: str) -> bool:
        """Whether state of `fingerprint` is kept beyond this memory: there are tiers, and a codec for it."""
        return self._tiers.keeps(fingerprint)

    def computed(self, fingerprint: str, tokens: int, seconds: float) -> None:
        """How long the model of `fingerprint` took for so many tokens: what a load is measured against."""
        self._tiers.computed(fingerprint, tokens, seconds)

    def tiers(self) -> TierUsage:
        """What is kept beside `bytes()`, in host memory and on disk."""
        return self._tiers.usage()

    def flush(self) -> None:
        """Wait until all that was stored so far is written."""
        self._tiers.flush()

    def close(self) -> None:
        """Write what is queued. What is stored afterwards stays in memory only."""
        self._tiers.close()
