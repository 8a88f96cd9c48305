"""What a column holds: names as SQLite can keep them (that of a file need not be text), and what an answer rests on."""

from __future__ import annotations

import json
from collections.abc import Iterable

from smartcache.knowledge import Basis
from smartcache.types import ChunkRef

_ESCAPED = "\ufdd0"  # a code point that is no character, and so begins no name


def to_column(name: str) -> str:
    """`name`, or a form of it that UTF-8 has where it holds lone surrogates; two names never share one."""
    return name if _is_plain(name) else _ESCAPED + json.dumps(name)


def from_column(kept: str) -> str:
    """What `to_column` was given."""
    return str(json.loads(kept.removeprefix(_ESCAPED))) if kept.startswith(_ESCAPED) else kept


def basis_text(basis: Basis) -> str:
    contents = sorted((*refs([ref])[0], content) for ref, content in basis.contents)
    evidence = None if basis.evidence is None else refs(sorted(basis.evidence))
    return json.dumps([evidence, None if basis.found is None else refs(sorted(basis.found)), basis.sequence, contents])


def basis_from(text: str, checked: int | None = None) -> Basis:
    evidence, found, sequence, contents = json.loads(text)
    return Basis(
        None if evidence is None else frozenset(ChunkRef(*ref) for ref in evidence),
        None if found is None else frozenset(ChunkRef(*ref) for ref in found),
        sequence,
        frozenset((ChunkRef(id, version, source), content) for id, version, source, content in contents),
        checked,
    )


def refs(refs: Iterable[ChunkRef]) -> list[tuple[str, str, str]]:
    return [(ref.id, ref.version, ref.source) for ref in refs]


def _is_plain(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return not name.startswith(_ESCAPED)
