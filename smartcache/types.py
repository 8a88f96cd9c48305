"""The values that travel through the cache: frozen, small, and free of every other module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Role = Literal["system", "user", "assistant", "tool"]
ServedBy = Literal["model", "exact", "semantic"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation.

    `data` holds what is not text, as JSON values: tool calls, tool-call ids, images. It is a hard condition: turns with
    equal text and different data are different turns.
    """

    role: Role
    text: str
    data: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise ValueError(f"unknown role {self.role!r}: use one of {', '.join(get_args(Role))}")
        if not isinstance(self.text, str):
            raise TypeError(
                f"a turn's text is a str, not {type(self.text).__name__}; non-text content goes into `data`"
            )


@dataclass(frozen=True, slots=True)
class Request:
    """What the application asks: a conversation whose last turn awaits an answer.

    `scope` says who may share the answer (a tenant, a user); equal or it is a miss. `variant` names the model that
    answers. `options` holds every sampling option and tool that can change the answer.
    """

    turns: tuple[Turn, ...]
    scope: str = ""
    variant: str = ""
    options: Mapping[str, Any] | None = None

    def __init__(
        self, turns: Sequence[Turn], scope: str = "", variant: str = "", options: Mapping[str, Any] | None = None
    ) -> None:
        turns = (turns,) if isinstance(turns, Turn) else tuple(turns)
        if not turns:
            raise ValueError("a request needs at least one Turn, as in Request([Turn('user', 'How do I …?')])")
        if wrong := next((turn for turn in turns if not isinstance(turn, Turn)), None):
            raise TypeError(
                f"turns are Turns, not {type(wrong).__name__}, as in Request([Turn('user', 'How do I …?')])"
            )
        for name, value in (("scope", scope), ("variant", variant)):
            if not isinstance(value, str):
                raise TypeError(f"{name} is a str, not {type(value).__name__}")
        object.__setattr__(self, "turns", turns)
        object.__setattr__(self, "scope", scope)
        object.__setattr__(self, "variant", variant)
        object.__setattr__(self, "options", options)

    @property
    def query(self) -> str:
        """The text of the last user turn, or of the last turn where no user spoke."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user"), self.turns[-1].text)


@dataclass(frozen=True, slots=True, order=True)
class ChunkRef:
    """Which text a chunk is: `id` within `source`, at `version` (a hash of its content, or any string that changes
    when the content does)."""

    id: str
    version: str
    source: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.id, str) and isinstance(self.version, str) and isinstance(self.source, str):
            return  # so many are read that each word counts
        for name, value in (("id", self.id), ("version", self.version), ("source", self.source)):
            _require_str(f"a chunk's {name}", value)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage that a search found; `score` is the retriever's similarity (larger is nearer), where it is known."""

    ref: ChunkRef
    text: str
    score: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.ref, ChunkRef):
            raise TypeError(f"a chunk's ref is a ChunkRef, not {type(self.ref).__name__}: ChunkRef(id, version)")
        _require_str("a chunk's text", self.text)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the application gets back.

    `evidence` is the set of chunks that the answer rests on; the empty set means that it rests on none, and `None` that
    this is unknown: such an answer goes stale at any update. `citations[n - 1]` is the chunk that "[n]" in the text
    means. `payload` is a JSON value that an adapter stores beside the text to restore its own object.
    `finish_reason` is the provider's word for how the answer ended, or `None` where it has none. An answer that is
    `exact_only` is never served to a question that is merely near. `served_by`, `similarity`, `age_seconds` and
    `entry_id` tell what happened: the last three are set on a hit only.
    """

    text: str
    evidence: frozenset[ChunkRef] | None = None
    payload: Any = None
    served_by: ServedBy = "model"
    finish_reason: str | None = None
    citations: tuple[ChunkRef, ...] = ()
    exact_only: bool = False
    similarity: float | None = None
    age_seconds: float | None = None
    entry_id: int | None = None

    @property
    def is_hit(self) -> bool:
        return self.served_by != "model"


@dataclass(frozen=True, slots=True)
class KnowledgeUpdate:
    """What changed in one source: chunks that are new, chunks whose content is another one now, ids that are gone.

    An id told as changed that no update spoke of before is taken for an edit of what was there all the time: an answer
    that does not rest on it stays. New text under an id that updates told was gone is an addition, however it is told.
    With `replaces`, what is added is all that the source holds: see `replace`.
    """

    added: tuple[Chunk, ...] = ()
    changed: tuple[Chunk, ...] = ()
    removed: frozenset[str] = field(default_factory=frozenset)
    source: str = ""
    replaces: bool = False

    def __init__(
        self,
        added: Sequence[Chunk] = (),
        changed: Sequence[Chunk] = (),
        removed: Sequence[str] | frozenset[str] | set[str] = (),
        source: str = "",
        replaces: bool = False,
    ) -> None:
        if isinstance(removed, str):
            raise TypeError("removed is a sequence of chunk ids, not one str: write removed=[id]")
        added, changed, removed = tuple(added), tuple(changed), frozenset(removed)
        if wrong := next((chunk for chunk in (*added, *changed) if not isinstance(chunk, Chunk)), None):
            raise TypeError(f"added and changed hold Chunks, not {type(wrong).__name__}")
        for id in removed:
            _require_str("a removed chunk's id", id)
        object.__setattr__(self, "added", added)
        object.__setattr__(self, "changed", changed)
        object.__setattr__(self, "removed", removed)
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "replaces", replaces)

    @classmethod
    def replace(cls, source: str, chunks: Sequence[Chunk]) -> KnowledgeUpdate:
        """All that `source` holds now: whatever else it held is gone, also what no update ever told of. What is there
        as it was keeps its answers."""
        chunks = tuple(chunks)
        update = cls(chunks, source=source, replaces=True)
        if other := next((chunk.ref for chunk in chunks if chunk.ref.source not in ("", source)), None):
            raise ValueError(f"chunk {other.id!r} is of source {other.source!r}, not of {source!r}, which is replaced")
        return update


def _require_str(what: str, value: object) -> None:
    """5 and "5" are one in a database and two in memory: an update of the one would miss the other."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is a str, not {type(value).__name__}: write str(...)")
