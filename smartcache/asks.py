"""What a question asks for: the kind of answer that it wants, the aspect of its subject, and whether it goes on."""

from __future__ import annotations

import re

from smartcache.politeness import direct
from smartcache.stems import stem
from smartcache.word_classes import (
    ARTICLES,
    AUXILIARIES,
    BE,
    DEMANDS,
    DEMONSTRATIVES,
    DENIED_AUXILIARIES,
    KINDS_OF_PLACE,
    KINDS_OF_TIME,
    LINKING,
    OKAYS,
    OWNERS,
    THIRD_PERSON,
)
from smartcache.wording import ASKING, LIGHT_WORDS, POINTING, WHAT_IT_COSTS, one_of

MAX_LETTERS = 1_000  # of a longer question only its beginning is read


def asks(question: str) -> str:
    """What kind of answer a question wants: when, where, who …, "yes or no", or "" where its words do not say."""
    question = direct(question[:MAX_LETTERS])
    if _YES_OR_NO.match(question):
        return "yes or no"
    found = [(match.start(), kind) for kind, pattern in _KINDS if (match := pattern.search(question))]
    return min(found, key=lambda one: one[0])[1] if found else ""


def kinds_apart(one: str, other: str) -> int:
    """How far two kinds of answer lie apart: 0 the same, 1 where one question does not say, 2 "what", which may ask for
    anything, 3 two kinds."""
    if one == other:
        return 0
    if not one or not other:
        return 1
    return 2 if "what" in (one, other) and "yes or no" not in (one, other) else 3


def aspects(question: str) -> frozenset[str]:
    """The stems of what a question asks of its subject: "types" in "the types of plans", "team" in "which team"."""
    found = [match[1].split()[-1].lower() for pattern in _ASPECTS for match in pattern.finditer(question[:MAX_LETTERS])]
    return frozenset(stem(word) for word in found if word not in _NO_ASPECT and stem(word) not in ASKING | POINTING)


def goes_on(question: str) -> bool:
    """Whether a question asks for what comes after something that was said, and does not say after what."""
    question = question[:MAX_LETTERS]
    return bool(_GOES_ON.search(question)) and not _BESIDE.search(question)


_KINDS = tuple(
    (kind, re.compile(pattern, re.I))
    for kind, pattern in (
        (
            "how many",
            rf"\bhow (?:many|much)\b|\bwhat (?:number|amount|price|cost)\b|\b{WHAT_IT_COSTS}\b",
        ),
        ("when", rf"\bwhen\b|\b(?:what|which) {one_of(KINDS_OF_TIME)}\b|\bhow (?:long|old)\b"),
        ("where", rf"\bwhere\b|\b(?:what|which) {one_of(KINDS_OF_PLACE)}\b"),
        ("who", r"\bwho(?:m|se)?\b|\b(?:what|which) person\b"),
        ("why", r"\bwhy\b|\bhow come\b|\bwhat (?:reason|cause|caused)\b"),
        ("how", r"\bhow\b"),
        ("what", r"\bwh(?:at|ich)\b"),
    )
)
_YES_OR_NO = re.compile(
    rf"^\W*(?:(?:{one_of(LINKING | OKAYS)}|please|well)\W+)*"
    r"(?:(?:in addition to|other than|besides|aside from|apart from|along with) [^,]*, )?"
    rf"{one_of(AUXILIARIES | DENIED_AUXILIARIES | {'if', 'whether'})}\b",
    re.I,
)
_GOES_ON = re.compile(
    r"\b(?:next|then|afterwards?|later|previous(?:ly)?|again)\W*$|\bnext (?:after|in|at)\b"
    r"|\b(?:else|others?|more)\b(?!.*\b(?:than|but)\b)|\banother\b",
    re.I,
)
_BESIDE = re.compile(  # "Besides that, …?" says it no more than "…?" does
    r"\b(?:besides(?!,)|except(?: for)?|(?:apart|aside) from|other than|in addition to)\s+"
    rf"(?!{one_of(DEMONSTRATIVES | THIRD_PERSON)}\b)(?=\w)",
    re.I,
)
_WANTED = (
    rf"(?:what|which)(?:'s|\s+(?:{one_of(BE - {'am'})}|will be))?\s+"
    rf"(?:{one_of(ARTICLES | OWNERS | {'some', 'any'})}\s+)?"
)
_ASPECTS = (
    re.compile(rf"\b{_WANTED}((?:[\w'-]+\s+){{0,2}}[\w'-]+)\s+(?:of|for|behind|between)\b", re.I),
    re.compile(rf"\b(?:what|which)\s+((?!{one_of(BE - {'am'} | {'be'})}\b)[\w'-]+)\b", re.I),
    re.compile(r"\bhow (?:many|much)\s+([\w'-]+)\b", re.I),
    re.compile(
        rf"\b{one_of(DEMANDS)}\s+(?:me\s+|us\s+)?(?:about\s+)?(?:the|some)\s+([\w'-]+)\s+of\b",
        re.I,
    ),
)
_NO_ASPECT = (
    LIGHT_WORDS
    | AUXILIARIES
    | frozenset(
        """been about if name names kind kinds type sort sorts else thing things number amount list example examples
        it he she they that this happened happens going made makes caused causes cause""".split()
    )
)
