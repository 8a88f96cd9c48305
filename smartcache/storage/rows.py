"""An entry as a row of the database: what goes in comes back, field by field, or is known to be damaged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from smartcache.dialogue import Dialogue
from smartcache.errors import DamagedStore
from smartcache.facts import Facts
from smartcache.knowledge import Basis
from smartcache.storage.columns import basis_from, basis_text, from_column, refs, to_column
from smartcache.types import Answer, ChunkRef


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored answer with all it takes to judge whether it may be served.

    `state`: the bytes of its dialogue's State, None where the answer is served exactly only. `fact_stems`: those of the
    hard facts of its question, to see soon that another has no answer here. `id`: 0 until stored.
    """

    key: str
    request: bytes
    partition: str
    scope: str
    dialogue: Dialogue
    state: bytes | None
    answer: Answer
    basis: Basis
    created_at: float
    id: int = 0
    fact_stems: frozenset[str] = frozenset()


def restorable(answer: Answer) -> bool:
    """Whether an answer comes back from disk as it went in."""
    try:
        return bool(json.loads(json.dumps(answer.payload, allow_nan=False)) == answer.payload)
    except (TypeError, ValueError, RecursionError):
        return False


def fields_of(entry: Entry) -> dict[str, str | bytes | None]:
    """The columns of an entry that a checksum is over, and the checksum."""
    answer = entry.answer
    fields: dict[str, str | bytes | None] = {
        "key": entry.key,
        "request": entry.request,
        "partition": entry.partition,
        "scope": to_column(entry.scope),
        "dialogue": dialogue_text(entry.dialogue),
        "state": entry.state,
        "answer": json.dumps(
            [answer.text, answer.payload, answer.finish_reason, refs(answer.citations), answer.exact_only]
        ),
        "basis": basis_text(entry.basis),
    }
    return fields | {"checksum": _checksum(fields.values())}


def size_bytes(fields: Mapping[str, str | bytes | None]) -> int:
    return sum(len(value) for value in fields.values() if value is not None)


def entry_from(
    id: int, key: str, request: bytes, partition: str, scope: str, dialogue: str, state: bytes | None, answer: str,
    basis: str, created_at: float, checksum: str, checked: int | None,
) -> Entry:  # fmt: skip
    """The entry that a row holds. Raises DamagedStore where it is not what was stored."""
    if checksum != _checksum((key, request, partition, scope, dialogue, state, answer, basis)):
        raise DamagedStore(f"entry {id} is not what was stored; it is kept aside")
    text, payload, finish_reason, citations, exact_only = json.loads(answer)
    rests_on = basis_from(basis, checked)
    cited = tuple(ChunkRef(*ref) for ref in citations)
    replayed = Answer(
        text, rests_on.evidence, payload, finish_reason=finish_reason, citations=cited, exact_only=exact_only
    )
    told = dialogue_from(dialogue)
    return Entry(key, request, partition, from_column(scope), told, state, replayed, rests_on, created_at, id)


def dialogue_text(dialogue: Dialogue) -> str:
    wording = [dialogue.wording] if dialogue.wording else []
    return json.dumps([dialogue.history, dialogue.question, *wording])


def dialogue_from(column: str | bytes, read: Callable[[str], Facts] = Facts.of) -> Dialogue:
    """Raises ValueError where the column holds none."""
    try:
        history, question, *wording = json.loads(column)
        told = Dialogue(tuple((role, said) for role, said in history), question, read, *wording)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"{error}: no dialogue") from error
    if not all(
        isinstance(text, str) for text in (question, told.wording, *(part for turn in told.history for part in turn))
    ):
        raise ValueError("a turn of it is no text")
    return told


def _checksum(parts: Iterable[str | bytes | None]) -> str:
    raws = [part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part or b"" for part in parts]
    return hashlib.sha256(b"".join([b"%d:%b" % (len(raw), raw) for raw in raws])).hexdigest()
