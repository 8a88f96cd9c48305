"""The requests of a log, read from the forms that logs come in: OpenAI's, turns, Anthropic's, or plain prompts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from smartcache.errors import SmartCacheError

_SPOKEN = re.compile(r"^(system|user|assistant|tool): ", re.M)
_PLAIN = ("prompt", "input", "text")


class UnreadablePrompts(SmartCacheError, ValueError):
    """What was to be looked at is no template, no log and no prompt, or not in a form that is known here."""


@dataclass(frozen=True, slots=True)
class Said:
    """One turn of a prompt as it is sent."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: its tools as JSON, in their order, before its turns; `line` is where in the log it was."""

    line: int
    tools: tuple[str, ...]
    turns: tuple[Said, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """What the prompt is made of, in the order of the usual chat templates."""
        return (*(f"{tool}\n" for tool in self.tools), *(f"{turn.role}: {turn.text}\n" for turn in self.turns))

    @property
    def head(self) -> int:
        """How many turns come before the dialogue: the system's, or the first where there is no such."""
        count = next(
            (n for n, turn in enumerate(self.turns) if turn.role not in ("system", "developer")), len(self.turns)
        )
        return count or min(1, len(self.turns))

    @property
    def has_system(self) -> bool:
        return bool(self.turns) and self.turns[0].role in ("system", "developer")


def requests_in(text: str, source: str) -> list[Sent]:
    """The requests of a log of JSON lines, or of one JSON list. Raises UnreadablePrompts where a line is none."""
    if text.lstrip("\ufeff \r\n\t").startswith("[") and (whole := _list_in(text)) is not None:
        return requests_of(whole, source)
    found = []
    for line, row in enumerate(text.lstrip("\ufeff").split("\n"), 1):
        if row.strip():
            try:
                found.append((line, json.loads(row)))
            except ValueError as error:
                raise UnreadablePrompts(f"{source}:{line} is not JSON: {error}") from None
    return _sent(found, source)


def requests_of(rows: Iterable[Any], source: str) -> list[Sent]:
    """The requests that JSON values stand for."""
    return _sent(enumerate(rows, 1), source)


def _list_in(text: str) -> list[Any] | None:
    try:
        whole = json.loads(text.lstrip("\ufeff"))
    except ValueError:
        return None
    return (
        whole if isinstance(whole, list) and all(isinstance(one, dict) and "role" not in one for one in whole) else None
    )


def _sent(rows: Iterable[tuple[int, Any]], source: str) -> list[Sent]:
    found = [_read(line, row, f"{source}:{line}") for line, row in rows]
    return [one for one in found if one.turns]


def _read(line: int, row: Any, where: str) -> Sent:
    if isinstance(row, Mapping) and (
        inner := next((row[k] for k in ("body", "request") if isinstance(row.get(k), Mapping)), None)
    ):
        row = inner
    if isinstance(row, str):
        return Sent(line, (), _spoken(row))
    if isinstance(row, list):
        return Sent(line, (), _turns(row, where))
    if isinstance(row, Mapping):
        defined = row.get("tools") or row.get("functions") or []
        if not isinstance(defined, list):
            raise UnreadablePrompts(f'{where}: "tools" is a list, not {type(defined).__name__}')
        tools = tuple(json.dumps(tool, ensure_ascii=False) for tool in defined)
        for name in ("messages", "turns"):
            if isinstance(row.get(name), list):
                system = [{"role": "system", "content": row["system"]}] if row.get("system") else []
                return Sent(line, tools, _turns([*system, *row[name]], where))
        for name in _PLAIN:
            if isinstance(row.get(name), str):
                return Sent(line, tools, _spoken(row[name]))
    raise UnreadablePrompts(f'{where} has no "messages", "turns" or "prompt": it is no request that is known here')


def _turns(rows: list[Any], where: str) -> tuple[Said, ...]:
    if wrong := next((row for row in rows if not isinstance(row, Mapping) or "role" not in row), None):
        raise UnreadablePrompts(f'{where}: a turn has a "role" and a "content" or "text", unlike {str(wrong)[:40]}')
    return tuple(Said(str(row["role"]), _text(row)) for row in rows)


def _text(row: Mapping[str, Any]) -> str:
    content = row.get("content", row.get("text"))
    if isinstance(content, list):
        content = "\n".join(map(_part, content))
    calls = json.dumps(row["tool_calls"], ensure_ascii=False) if row.get("tool_calls") else ""
    return f"{content or ''}{calls}"


def _part(part: Any) -> str:
    text = part.get("text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else json.dumps(part)


def _spoken(text: str) -> tuple[Said, ...]:
    """A plain prompt; one that is written out as "user: …" is read as its turns."""
    if not _SPOKEN.match(text):
        return (Said("user", text),) if text else ()
    cut = _SPOKEN.split(text)
    return tuple(Said(role, said.rstrip("\n")) for role, said in zip(cut[1::2], cut[2::2], strict=True))
