"""Why a question hit or missed, as a table: of a cache file, or of two texts alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from smartcache import Answer, Embedder, HitPolicy, Request, SmartCache, SmartCacheError, Turn
from smartcache.command.kept import no_answers_in, opened, trouble_told
from smartcache.command.settings import settings_of
from smartcache.explained import Explained
from smartcache.storage.database import file_in
from smartcache.storage.entries import Entries
from smartcache.storage.inventory import answers_by_scope
from smartcache.types import Role

MAX_READ_REQUESTS = 1_000
MAX_SETTINGS = 20
_ROLE = re.compile(r"\s*(user|assistant)\s*:\s*", re.I)
_NAMED = re.compile(r"\s*([^\W\d]+)\s*:(?!//)")
_BREAK = re.compile(r"\n| \| ")


class UnknownRole(SmartCacheError):
    """A turn is of nobody who speaks in a dialogue."""


class NoAnswers(SmartCacheError):
    """A scope was asked for that has none."""


def explained_pair(asked: str, stored: str, embedder: Embedder, policy: HitPolicy) -> tuple[Explained, ...]:
    """What the policy makes of two texts."""
    with SmartCache.open(embedder=embedder, policy=policy, strict=True) as cache:
        cache.store(Request(turns_of(_BREAK.split(stored))), Answer("…"))
        return cache.explain(Request(turns_of(_BREAK.split(asked))), 1)


def explained(
    file: Path,
    ask: str,
    before: Sequence[str],
    scope: str | None,
    load_embedder: Callable[[], Embedder],
    count: int,
    policy: HitPolicy,
) -> tuple[Explained, ...]:
    """What is nearest in a cache file, under each setting (scope, model, options, system prompt) that was used last.
    Raises NoCacheFile where there is none, NoAnswers where `scope` has none."""
    with opened(file):  # what is wrong with it is told in a line
        scopes = answers_by_scope(file_in(file))
    if scope is not None and scope not in scopes:
        raise NoAnswers(no_answers_in(scope, scopes))
    _check_roles(before)
    turns, found, embedder = turns_of([*before, ask]), list[Explained](), load_embedder()
    with trouble_told(file, "name another file"):
        settings = settings_of(_requests(file), scope, MAX_SETTINGS)
        with SmartCache.open(file, embedder=embedder, policy=policy, strict=True) as cache:
            for setting in settings:
                system = [turn for turn in setting.turns if turn.role == "system"]
                request = Request([*system, *turns], setting.scope, setting.variant, setting.options)
                found += cache.explain(request, count)
    near = {one.entry_id: one for one in found if one.question is not None}
    return tuple(sorted(near.values(), key=lambda one: -one.similarity)[:count]) or tuple(found[:1]) or _EMPTY


def turns_of(texts: Sequence[str]) -> list[Turn]:
    """The turns that texts stand for: by the role before the colon, else the user's and the assistant's in turn; the
    last is the user's."""
    found: list[Turn] = []
    for place, text in enumerate(texts):
        named = _ROLE.match(text)
        role: Role = "user" if place % 2 == 0 or place == len(texts) - 1 else "assistant"
        if named:
            role, text = ("user" if named[1].lower() == "user" else "assistant"), text[named.end() :]
        found.append(Turn(role, text.strip()))
    return found


def as_json_of(found: Iterable[Explained]) -> dict[str, Any]:
    return {"explained": [asdict(one) | {"is_served": one.is_served, "bar": _bar_of(one)} for one in found]}


def show(found: Iterable[Explained], console: Console) -> None:
    """A table a stored question."""
    for one in found:
        table = Table(show_header=False, title_justify="left", title_style="bold")
        verdict = Text("served", "green") if one.is_served else Text(f"not served: {one.refusal}", "red")
        table.add_row("verdict", verdict)
        for role, text in one.turns:
            table.add_row(role, Text(text))
        if one.question is not None:
            table.add_row("stored", Text(one.question))
            table.add_row("similarity", f"{one.similarity:.3f}")
        table.add_row("because", Text("\n".join(one.reasons)))
        for signal in one.signals:
            table.add_row(Text(signal.name, "dim"), f"{signal.value:7.2f} adds {signal.part:+.2f}  {signal.phrase}")
        console.print(table)


def _check_roles(before: Sequence[str]) -> None:
    for text in before:
        if (named := _NAMED.match(text)) and not _ROLE.match(text):
            raise UnknownRole(f'a turn is "user: …" or "assistant: …", not "{named[1]}: …"')


def _bar_of(one: Explained) -> dict[str, Any] | None:
    """The bar; "never" where no confidence reaches it."""
    if one.bar is None:
        return None
    told = {name: "never" if getattr(one.bar, name) > 1 else getattr(one.bar, name) for name in ("promised", "needed")}
    return asdict(one.bar) | told


def _requests(file: Path) -> list[bytes]:
    entries = Entries(file, strict=True)
    try:
        return entries.requests(MAX_READ_REQUESTS)
    finally:
        entries.close()


_EMPTY = (Explained(None, (), 0, 0.0, "new", ("the file holds no answers that could be compared",)),)
