"""Names as SQLite can keep them: a file's name need not be text, and a name that is lost is an answer that stays."""

from __future__ import annotations

import json

_ESCAPED = "\ufdd0"  # a code point that is no character, and so begins no name


def to_column(name: str) -> str:
    """`name`, or a form of it that UTF-8 has where it holds lone surrogates; two names never share one."""
    return name if _is_plain(name) else _ESCAPED + json.dumps(name)


def from_column(kept: str) -> str:
    """What `to_column` was given."""
    return str(json.loads(kept.removeprefix(_ESCAPED))) if kept.startswith(_ESCAPED) else kept


def _is_plain(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return not name.startswith(_ESCAPED)
