"""What keeps the prompts of an application from sharing their beginning: in a template, a LangChain prompt or a log."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from smartcache.lint import log
from smartcache.lint.chains import is_saved_prompt, pieces_of
from smartcache.lint.findings import REMEDIES, Finding, Sharing
from smartcache.lint.requests import Sent, UnreadablePrompts, requests_in, requests_of
from smartcache.lint.templates import findings_in, pieces, written_findings

__all__ = ["REMEDIES", "Finding", "LintReport", "Sharing", "UnreadablePrompts", "lint", "report"]

_ATTRIBUTE = re.compile(r"[\w.]+:[\w.]+")
_MAX_SHOWN_LETTERS = 60


@dataclass(frozen=True, slots=True)
class LintReport:
    """The findings, the worst first; of a log also how many requests it has, and what they share."""

    source: str
    findings: tuple[Finding, ...]
    requests: int = 0
    sharing: Sharing | None = None


def lint(prompts: Any, *, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """What breaks the beginnings that prompts share, the worst first; codes in `ignore` are left out.

    `prompts` is a path to a template, to a log of JSON lines or to a saved LangChain prompt; "module:attribute" of one
    that a module holds; a LangChain prompt itself; or a list of requests as they are sent. Raises UnreadablePrompts for
    anything else, and ValueError for a code that there is not.
    """
    return report(prompts, ignore=ignore).findings


def report(prompts: Any, *, ignore: Collection[str] = ()) -> LintReport:
    """As `lint`, with what the requests of a log share now, and would with each finding mended."""
    if unknown := sorted(set(ignore) - set(REMEDIES)):
        raise ValueError(f"there is no code {unknown[0]!r}: the codes are {', '.join(sorted(REMEDIES))}")
    if isinstance(prompts, str | Path):
        return _of_name(prompts, ignore)
    if isinstance(prompts, Sequence) and prompts and all(isinstance(one, Mapping | str | list) for one in prompts):
        return _of_log(requests_of(prompts, "request"), "request", ignore)
    return _of_prompt(prompts, type(prompts).__name__, ignore)


def _of_name(name: str | Path, ignore: Collection[str]) -> LintReport:
    source, path = str(name), Path(name)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadablePrompts(f"{source} is no text in UTF-8: {error}") from None
    except (OSError, ValueError) as error:  # no such file, a folder, a text that is too long for a path or has a NUL
        if _ATTRIBUTE.fullmatch(source):
            return _of_prompt(_attribute(source), source, ignore)
        shown = source if len(source) < _MAX_SHOWN_LETTERS else f"{source[:_MAX_SHOWN_LETTERS]}…"
        reason = getattr(error, "strerror", None) or error
        raise UnreadablePrompts(
            f"{shown!r} cannot be read: {reason}. It is a path to prompts, or module:attribute; a template that is at "
            "hand as text goes into a file"
        ) from None
    if not text.strip("\ufeff \r\n\t"):
        raise UnreadablePrompts(f"{source} is empty")
    if path.suffix == ".json" and is_saved_prompt(saved := _json(text)):
        return _of_prompt(saved, source, ignore)
    if path.suffix in (".jsonl", ".ndjson", ".json") or isinstance(
        _json(text.lstrip("\ufeff").split("\n", 1)[0]), dict
    ):
        return _of_log(requests_in(text, source), source, ignore)
    return _report(source, [*written_findings(text, source), *findings_in(pieces(text), source)], ignore)


def _of_prompt(prompt: Any, source: str, ignore: Collection[str]) -> LintReport:
    found = pieces(prompt) if isinstance(prompt, str) else pieces_of(prompt, source)
    return _report(source, findings_in(found, source), ignore)


def _of_log(requests: list[Sent], source: str, ignore: Collection[str]) -> LintReport:
    if not requests:
        raise UnreadablePrompts(f"{source} has no requests")
    findings, sharing = log.examined(requests, source, ignore)
    return _report(source, findings, ignore, len(requests), sharing)


def _report(
    source: str, findings: Any, ignore: Collection[str], requests: int = 0, sharing: Sharing | None = None
) -> LintReport:
    kept = [one for one in findings if one.code not in ignore]
    worst = sorted(kept, key=lambda one: -one.lost_share * max(1, one.requests))
    return LintReport(source, tuple(worst), requests, sharing)


def _attribute(name: str) -> Any:
    module, _, path = name.partition(":")
    before = sys.path[:]
    try:
        sys.path.insert(0, str(Path.cwd()))  # as when Python runs a file that lies here
        found = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # a module may raise anything while it is loaded
        raise UnreadablePrompts(f"{name} cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        sys.path[:] = before
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text.lstrip("\ufeff"))
    except ValueError:
        return None
