"""Computing the state of the system prompts seen most ahead of time, into a folder that the application reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import shorten
from time import perf_counter
from typing import Any, Protocol

from smartcache import PrefixCache, SmartCacheError, Turn
from smartcache.command.kept import counted, opened
from smartcache.seen import SeenPrompt

MAX_SHOWN_LETTERS = 60


class NothingToWarm(SmartCacheError, ValueError):
    """No prompts were named, none were found, or none fits the model."""


class NotAFolder(SmartCacheError, ValueError):
    """State is kept in a folder."""


class UnreadablePrompts(SmartCacheError, ValueError):
    """A file of prompts is no text, or not in a form that is known here."""


class NotKept(SmartCacheError, RuntimeError):
    """State was computed, but is not on disk."""


class WarmModel(Protocol):
    """What is needed of a LocalModel."""

    fingerprint: str

    @property
    def prefix_cache(self) -> Any: ...
    def warm(self, prefixes: Sequence[Sequence[Turn]], *, scope: str = "") -> int: ...


def prompts_to_warm(cache: Path | None, file: Path | None, scope: str, limit: int) -> list[SeenPrompt]:
    """Those of `file`, for `scope`, then the `limit` seen most in `cache`, each for the scope that it was seen in."""
    prompts = [] if file is None else [SeenPrompt((Turn("system", text),), scope, 0) for text in _texts(file)]
    if cache is not None:
        with opened(cache) as answers:
            prompts += answers.seen_most(limit)
    if not prompts:
        where = "say where system prompts are: a cache file, or --file PROMPTS"
        raise NothingToWarm(where if cache is None and file is None else f"no system prompt in {cache or file}")
    return prompts


@contextmanager
def kept_on_disk(folder: Path) -> Iterator[PrefixCache[Any]]:
    """A prefix cache that writes what it holds to `folder`, where the application's finds it."""
    if folder == Path():  # also of an empty text: a variable that is not set
        raise NotAFolder("--kv is empty or this folder: name a folder of its own for the state")
    if folder.exists() and not folder.is_dir():
        raise NotAFolder(f"{folder} is a file: --kv is the folder that keeps the state")
    kept: PrefixCache[Any] = PrefixCache(disk_path=folder)
    with kept:
        yield kept


def warmed(model: WarmModel, prompts: Sequence[SeenPrompt], tell: Callable[[str], object]) -> None:
    """Computes and keeps them all; a prompt that the model cannot take is told and left out. Raises NotKept where
    not all of it reached the disk."""
    kept = model.prefix_cache
    if not kept.keeps_below(model.fingerprint):
        raise NotKept(
            "this model's state stays in memory: only that of models whose layers all see every token is kept"
        )
    started, done = perf_counter(), 0
    for prompt in prompts:
        began = perf_counter()
        try:
            tokens = model.warm([prompt.turns], scope=prompt.scope)
        except ValueError as error:
            tell(f"left out, {str(error).removeprefix('prompts[0]: ')}: {_shown(prompt)}")
            continue
        kept.flush()  # or too much would wait to be written
        done += 1
        tell(f"{counted(tokens, 'new token')} in {perf_counter() - began:.1f} s: {_shown(prompt)}")
    if not done:
        raise NothingToWarm("none of the system prompts fits the model")
    if trouble := [f"{reason} ({times})" for reason, times in kept.tiers().reasons.items() if "written" in reason]:
        raise NotKept(f"not all of it is on disk: {', '.join(trouble)}")
    tell(f"{counted(done, 'system prompt')} warmed in {perf_counter() - started:.1f} s")


def _texts(file: Path) -> list[str]:
    """A `.jsonl` holds a prompt a line, as a string or as {"system": …}; any other file is one prompt."""
    try:
        text = file.read_text(encoding="utf-8")
    except ValueError as error:
        raise UnreadablePrompts(f"{file} cannot be read as prompts: {error}") from error
    lines = text.split("\n") if file.suffix == ".jsonl" else [json.dumps(text)]
    texts = [_text(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    return [one for one in texts if one.strip()]


def _text(file: Path, number: int, line: str) -> str:
    with suppress(ValueError):
        told = json.loads(line)
        text = told.get("system") if isinstance(told, dict) else told
        if isinstance(text, str):
            return text
    raise UnreadablePrompts(f'{file}, line {number}: a line is a string in JSON, or an object with a string "system"')


def _shown(prompt: SeenPrompt) -> str:
    text = shorten(" ".join(turn.text for turn in prompt.turns), MAX_SHOWN_LETTERS, placeholder=" …")
    seen = f", seen in {counted(prompt.count, 'request')}" if prompt.count else ""
    return f"{text!r} for {f'scope {prompt.scope!r}' if prompt.scope else 'everyone'}{seen}"
