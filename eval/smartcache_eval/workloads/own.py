"""A workload from a file of JSON lines, one step a line: what an application logged and what would be right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from smartcache import ChunkRef, Turn
from smartcache_eval.folder import UnreadableWorkload
from smartcache_eval.steps import Step, conversation


def steps(path: Path) -> list[Step]:
    """Each line: `turns` (texts, user and assistant in turn, the user's question last; or objects with role and text),
    `truth`, and where wanted `group` (else the line is its own), `sort`, `seconds`, `evidence` ({id: version})."""
    found = list[Step]()
    place = str(path)
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            place = f"{path}, line {number},"
            if line.strip():
                found.append(_step(json.loads(line), len(found)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as cause:
        raise UnreadableWorkload(f"{place} cannot be read as a step: {type(cause).__name__}: {cause}") from cause
    return found


def _step(line: dict[str, Any], number: int) -> Step:
    return Step(
        _turns(line["turns"]),
        str(line["truth"]),
        str(line.get("group", number)),
        str(line.get("sort", "asked")),
        float(line.get("seconds", 0.0)),
        frozenset(ChunkRef(id, version) for id, version in line.get("evidence", {}).items()),
    )


def _turns(turns: list[Any]) -> tuple[Turn, ...]:
    if not turns:
        raise ValueError("a step needs at least one turn")
    if all(isinstance(turn, str) for turn in turns):
        return conversation(turns[:-1], turns[-1])
    return tuple(Turn(turn["role"], turn["text"], turn.get("data")) for turn in turns)
