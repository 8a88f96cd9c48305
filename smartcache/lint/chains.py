"""LangChain prompts, saved as JSON or as objects, read by their form: LangChain itself is not needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from smartcache.lint.requests import UnreadablePrompts
from smartcache.lint.templates import Piece, Style, pieces

_STYLES: Mapping[str, Style] = {"jinja2": "double", "mustache": "double", "f-string": "braces"}


def is_saved_prompt(value: Any) -> bool:
    return isinstance(value, Mapping) and ("lc" in value or "_type" in value)


def pieces_of(prompt: Any, source: str) -> list[Piece]:
    """What a prompt is made of, in the order in which it is sent. Raises UnreadablePrompts for what is no prompt."""
    texts = list(_walked(prompt))
    if not texts:
        raise UnreadablePrompts(f"{source} is no LangChain prompt: it has neither `messages` nor a `template`")
    found, line, place = list[Piece](), 1, 0
    for text, style in texts:
        found += [Piece(line, place, expression=text)] if style is None else pieces(text, style, line, place)
        line, place = line + text.count("\n") + 1, place + len(text) + 1
    return found


def _walked(prompt: Any) -> Iterator[tuple[str, Style | None]]:
    """Each text of a prompt with the style of its placeholders; with None it is a placeholder's name."""
    if isinstance(prompt, str):
        yield prompt, "braces"
        return
    if isinstance(prompt, Sequence):
        yield from chain.from_iterable(map(_walked, prompt))
        return
    style = _STYLES.get(str(_of(prompt, "template_format") or "f-string"), "braces")
    if (few := _of(prompt, "example_prompt")) is not None:
        yield from _few_shot(prompt, few, style)
    elif isinstance(messages := _of(prompt, "messages"), list):
        yield from chain.from_iterable(map(_walked, messages))
    elif isinstance(template := _of(prompt, "template"), str):
        yield template, style
    elif isinstance(name := _of(prompt, "variable_name"), str):
        yield name, None
    elif isinstance(content := _of(prompt, "content"), str):
        yield content.replace("{", "{{").replace("}", "}}"), "braces"  # a message: nothing is filled in
    elif (inner := _of(prompt, "prompt")) is not None:
        yield from _walked(inner)


def _few_shot(prompt: Any, few: Any, style: Style) -> Iterator[tuple[str, Style | None]]:
    if isinstance(prefix := _of(prompt, "prefix"), str) and prefix:
        yield prefix, style
    if _of(prompt, "example_selector") is not None:
        yield "examples", None
    else:  # the same ones in every request: as good as text
        for example in _of(prompt, "examples") or []:
            yield " ".join(map(str, example.values())).replace("{", "{{").replace("}", "}}"), "braces"
    if isinstance(suffix := _of(prompt, "suffix"), str):
        yield suffix, style


def _of(prompt: Any, name: str) -> Any:
    """A field of an object, or of what was saved of one."""
    if isinstance(prompt, Mapping):
        return prompt.get("kwargs", prompt).get(name)
    return getattr(prompt, name, None)
