"""What the requests of a log would be with one cause mended, and where the cause was; one function for each."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType

from smartcache.lint.layout import examples_in_order, stable_first, system_first, untrimmed
from smartcache.lint.requests import Said, Sent
from smartcache.lint.volatile import spans

_CONTEXT_LETTERS = 24


@dataclass(frozen=True, slots=True)
class Cause:
    """Where one request has a cause: `part` and `offset` in it; `value`, where causes of one `kind` that all have the
    same value are none."""

    part: int
    offset: int
    what: str
    kind: str = ""
    value: str | None = None


Mended = tuple[Sent, tuple[Cause, ...]]
Mend = Callable[[Sequence[Sent]], list[Mended]]


def same_bytes(requests: Sequence[Sent]) -> list[Mended]:
    """White space, line ends, byte order marks and Unicode forms."""
    plain = cache(_plain)  # the turns of a conversation come again in each of its requests
    return [_texts_changed(request, plain, _how_written) for request in requests]


def sorted_json(requests: Sequence[Sent]) -> list[Mended]:
    """JSON objects in texts and tools, with their keys in order."""
    found, in_order = [], cache(_sorted_json)
    for request in requests:
        tools = tuple(map(in_order, request.tools))
        causes = [Cause(n, 0, "the keys of a tool") for n, tool in enumerate(tools) if tool != request.tools[n]]
        changed, more = _texts_changed(request, in_order, lambda text, place: "the keys of a JSON object")
        found.append((replace(changed, tools=tools), (*causes[:1], *more)))
    return found


def same_tools(requests: Sequence[Sent]) -> list[Mended]:
    """Each tool as it was first defined."""
    first: dict[str, tuple[str, int]] = {}
    found = []
    for request in requests:
        tools, causes = [], []
        for n, tool in enumerate(request.tools):
            definition, line = first.setdefault(_name_of(tool), (tool, request.line))
            if definition != tool:
                causes.append(Cause(n, 0, f"the tool {_name_of(tool)!r} is defined otherwise than in request {line}"))
            tools.append(definition)
        found.append((replace(request, tools=tuple(tools)), tuple(causes)))
    return found


def sorted_tools(requests: Sequence[Sent]) -> list[Mended]:
    """Tools in the order of their names."""
    return [_tools_sorted(request) for request in requests]


def without_values(requests: Sequence[Sent], code: str) -> list[Mended]:
    """Dates and times, or ids, out of what comes before the dialogue."""
    return [_values_out(request, code) for request in requests]


MENDS: MappingProxyType[str, Mend] = MappingProxyType(
    {
        "whitespace": same_bytes,
        "json-order": sorted_json,
        "tools-changed": same_tools,
        "tools-order": sorted_tools,
        "timestamp": partial(without_values, code="timestamp"),
        "id": partial(without_values, code="id"),
        "examples-order": lambda requests: _with_causes(examples_in_order(requests)),
        "chunks-first": lambda requests: _with_causes(stable_first(system_first(requests), long=True)),
        "user-value": lambda requests: _with_causes(stable_first([(one, None) for one in requests], long=False)),
        "trimmed": lambda requests: _with_causes(untrimmed(requests)),
    }
)


def _with_causes(found: Sequence[tuple[Sent, tuple[int, int, str] | None]]) -> list[Mended]:
    return [(request, () if cause is None else (Cause(*cause),)) for request, cause in found]


def _texts_changed(request: Sent, change: Callable[[str], str], told: Callable[[str, int], str]) -> Mended:
    """The request with every text changed; the cause is where the first one was."""
    turns, causes = [], []
    for n, turn in enumerate(request.turns):
        text = change(turn.text)
        turns.append(turn if text == turn.text else Said(turn.role, text))
        if text != turn.text:
            place = next((i for i, (a, b) in enumerate(zip(text, turn.text, strict=False)) if a != b), 0)
            offset = len(turn.role) + 2 + place
            causes.append(Cause(len(request.tools) + n, offset, f"{told(turn.text, place)} in the {turn.role} turn"))
    return (replace(request, turns=tuple(turns)) if causes else request), tuple(causes)


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFC", text.replace("\ufeff", "").replace("\r\n", "\n").replace("\r", "\n"))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" *\n", "\n", re.sub(r"[^\S\n]+", " ", text))).strip()


def _how_written(text: str, place: int) -> str:
    if "\ufeff" in text:
        return "a byte order mark"
    if "\r" in text:
        return "other line ends"
    if unicodedata.normalize("NFC", text) != text:
        return "another Unicode form"
    return "other white space"


def _sorted_json(text: str) -> str:
    decoder, written, done = json.JSONDecoder(), [], 0
    for found in re.finditer(r'\{\s*"', text):
        if found.start() < done:
            continue
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        written += [text[done : found.start()], json.dumps(value, sort_keys=True, ensure_ascii=False)]
        done = end
    return "".join([*written, text[done:]])


def _name_of(tool: str) -> str:
    """What a tool goes by: providers' own ({"type": "web_search"}, {"google_search": {}}) have no name."""
    told = json.loads(tool)
    inner = told.get("function", told) if isinstance(told, dict) else told
    if not isinstance(inner, dict):
        return str(inner)
    named = next((inner[key] for key in ("name", "server_label", "type") if inner.get(key)), None)
    return str(named or " ".join(sorted(inner)))


def _tools_sorted(request: Sent) -> Mended:
    tools = tuple(sorted(request.tools, key=_name_of))
    moved = next((n for n, (a, b) in enumerate(zip(tools, request.tools, strict=True)) if a != b), None)
    if moved is None:
        return request, ()
    return replace(request, tools=tools), (
        Cause(moved, 0, f"the tool {_name_of(request.tools[moved])!r} in another order"),
    )


def _values_out(request: Sent, code: str) -> Mended:
    causes, parts = list[Cause](), list[str]()
    for n, (before, text) in enumerate(_texts_before_dialogue(request)):
        done, kept = 0, []
        for start, end in spans(code, text):
            value, context = text[start:end], text[max(0, start - _CONTEXT_LETTERS) : start].rpartition("\n")[2]
            causes.append(Cause(n, before + start, f"{value!r} after {context!r}", f"{n} {context}", value))
            kept.append(text[done:start])
            done = end
        parts.append("".join([*kept, text[done:]]))
    count = len(request.tools)
    turns = [Said(old.role, new) for old, new in zip(request.turns, parts[count:], strict=False)]
    mended = replace(request, tools=tuple(parts[:count]), turns=(*turns, *request.turns[len(turns) :]))
    return (mended if causes else request), tuple(causes)


def _texts_before_dialogue(request: Sent) -> Iterator[tuple[int, str]]:
    """Each with the letters of its part that come before it."""
    yield from ((0, tool) for tool in request.tools)
    yield from ((len(turn.role) + 2, turn.text) for turn in request.turns[: request.head])
