"""Whether a question says by itself what it is about, or leans on what was said before it."""

from __future__ import annotations

import re
from collections.abc import Callable

from smartcache.facts import Facts
from smartcache.wording import (
    ANAPHORA,
    CHINESE_ANAPHORA,
    ELLIPTIC_START,
    NOT_ANAPHORA,
    SENTENCE_STARTERS,
)

MAX_LETTERS = 2_000  # a longer question is a document


def stands_alone(question: str, read: Callable[[str], Facts] = Facts.of) -> bool:
    """Whether a question can be understood without what was said before. In doubt it cannot."""
    if len(question) > MAX_LETTERS:
        return False
    if not question.isascii() and CHINESE_ANAPHORA.search(question):
        return False
    if ELLIPTIC_START.search(question):
        return False
    if ANAPHORA.search(question) or "example" in question.lower():  # with no word that points, none is left of them
        spoken = _CAPITAL_INSIDE.sub(" ", NOT_ANAPHORA.sub(" ", question))
        if ANAPHORA.search(spoken):
            return False
    if not question.isascii() and any("\u4e00" <= letter <= "\u9fff" for letter in question):
        return len(question) >= 8
    facts = read(question)
    if len(facts.words) > 2 and not facts.words & SENTENCE_STARTERS:
        return False  # another language, whose pronouns nobody here knows, or key words ("Wedding date first wife?")
    if facts.names:
        return True
    words = [word for word in facts.content if not word[0].isdigit()]
    return len(words) >= (4 if DEFINITE.search(question) else 3)


DEFINITE = re.compile(r"\bthe\b|\w's\b", re.I)  # "the film": which one may have been said before
_CAPITAL_INSIDE = re.compile(r"(?<=[^.!?\s]\s)[A-Z][\w-]*")  # "Halden One" points at nothing
