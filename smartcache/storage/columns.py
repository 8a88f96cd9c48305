"""What a column holds: names as SQLite can keep them (that of a file need not be text), and what an answer rests on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from smartcache.knowledge import Basis
from smartcache.types import ChunkRef

_ESCAPED = "\ufdd0"  # a code point that is no character, and so begins no name


def to_column(name: str) -> str:
    """`name`, or a form of it that UTF-8 has where it holds lone surrogates; two names never share one."""
    return name if _is_plain(name) else _ESCAPED + json.dumps(name)


def from_column(kept: str) -> str:
    """What `to_column` was given."""
    return str(json.loads(kept.removeprefix(_ESCAPED))) if kept.startswith(_ESCAPED) else kept


def name_in(kept: object) -> str | None:
    """The column of the first name in a list that is kept as JSON, such as a ref; SQLite's own functions end a name at
    a NUL."""
    try:
        return to_column(json.loads(str(kept))[0])
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def basis_text(basis: Basis) -> str:
    contents = sorted((*refs([ref])[0], content) for ref, content in basis.contents.items())
    evidence = None if basis.evidence is None else refs(sorted(basis.evidence))
    return json.dumps([evidence, None if basis.found is None else refs(sorted(basis.found)), basis.sequence, contents])


def basis_from(text: str, checked: int | None = None) -> Basis:
    evidence, found, sequence, contents = json.loads(text)
    texts = {ChunkRef(id, version, source): content for id, version, source, content in contents}
    known = {(ref.id, ref.version, ref.source): ref for ref in texts}  # one object each: to make and compare few
    rests_on = None if evidence is None else _known_refs(evidence, known)
    searched = rests_on if found == evidence else None if found is None else _known_refs(found, known)
    return Basis(rests_on, searched, sequence, texts, checked)


def refs(refs: Iterable[ChunkRef]) -> list[tuple[str, str, str]]:
    return [(ref.id, ref.version, ref.source) for ref in refs]


def _known_refs(
    kept: Iterable[tuple[str, str, str]], known: Mapping[tuple[str, str, str], ChunkRef]
) -> frozenset[ChunkRef]:
    return frozenset(
        [known.get((id, version, source)) or ChunkRef(id, version, source) for id, version, source in kept]
    )


def _is_plain(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return not name.startswith(_ESCAPED)
