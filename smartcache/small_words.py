"""What small words change: two questions of the same content that differ in tense, in "can" or "must", in "to" or
"from", in "all" or "any", or in who does it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Self

from smartcache.asks import MAX_LETTERS
from smartcache.politeness import direct
from smartcache.stems import stem
from smartcache.word_classes import (
    AMOUNTS,
    AUXILIARIES,
    BE,
    BE_AFTER_ANOTHER,
    DENIED_AUXILIARIES,
    DETERMINERS,
    DO,
    FIRST_PERSON,
    FIRST_PERSON_SHORT,
    GREETINGS,
    HE,
    JOINING,
    OKAYS,
    OWNERS,
    PAST_AUXILIARIES,
    PLEAS,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    SHE,
    SHORT_QUESTIONS,
    THANKS,
    THEY,
)
from smartcache.wording import one_of

MAX_OTHER = 3  # small words that one has and the other has not: with more it is another wording
POLITE = PLEAS | THANKS | GREETINGS | OKAYS | frozenset("kindly thank just then so and well now".split())


@dataclass(frozen=True, slots=True)
class SmallWords:
    """What of a question its small words say. `stems`: of all its words; `content`: of those that are not small;
    `said`: its tenses, past forms, modals, amounts and persons, and whether it asks for who does it or what is done;
    `owners`: (owner, the stem of what is theirs)."""

    words: frozenset[str]
    stems: frozenset[str]
    content: frozenset[str]
    said: tuple[Set[str], ...]
    owners: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, question: str) -> Self:
        question = " ".join(direct(question[:MAX_LETTERS]).replace("’", "'").split())
        words = [word for word in _WORD.findall(question.lower()) if word not in POLITE]
        said = (
            _sides(words, _TENSES),
            _past_forms(words),
            _modals(question, words),
            _sides(words, _AMOUNTS),
            _persons(words),
            _asked(_IS_WHAT, question),
            _asked(_DOES, question),
        )
        content = frozenset(stem(word.removesuffix("'s")) for word in words if word not in _SMALL)
        owners = frozenset((owner.removesuffix("'s"), stem(owned)) for owner, owned in _OWNED.findall(question.lower()))
        return cls(frozenset(words), frozenset(map(stem, words)), content, said, owners)

    def part_from(self, other: Self) -> bool:
        """Whether two questions have the same words but the small ones, and those make them two questions."""
        if self.content != other.content:
            return False
        if max(len(self.stems - other.stems), len(other.stems - self.stems)) > MAX_OTHER:
            return False
        clashes = any(one and also and one != also for one, also in zip(self.said, other.said, strict=True))
        return clashes or self._owns_otherwise(other) or _lead_elsewhere(self.words, other.words)

    def _owns_otherwise(self, other: Self) -> bool:
        """Whether a thing changes hands between two who are in both questions: "my dog bit his cat", "his dog bit my
        cat"; "Can my wife use my card?", "Can I use my wife's card?"."""
        left, came = self.owners - other.owners, other.owners - self.owners
        swapped = [(one, two) for one, thing in left for two, also in came if thing == also and one != two]
        return any(one in other.owning and two in self.owning for one, two in swapped)

    @property
    def owning(self) -> frozenset[str]:
        """Whom the question names, that may own something."""
        return frozenset(word.removesuffix("'s") for word in self.words)


def _sides(words: list[str], kinds: Mapping[str, str]) -> Set[str]:
    return {kinds[word] for word in words if word in kinds}


def _past_forms(words: list[str]) -> Set[str]:
    """Whether a question without an auxiliary is about the past: "How many people lived there?"."""
    if not words or words[0] not in _ASKING or _sides(words, _TENSES | _MODALS):
        return frozenset()
    return {"past" if any(word.endswith("ed") for word in words) else "present"}


def _persons(words: list[str]) -> Set[str]:
    """The person it is about, where it is one: "Do I need a visa?", "Does she need a visa?"; "you" may be anybody."""
    persons = _sides(words, _PERSONS)
    return persons if len(persons) == 1 else frozenset()


def _modals(question: str, words: list[str]) -> Set[str]:
    return {"must"} if _HAVE_TO.search(question) else _sides(words, _MODALS)


def _lead_elsewhere(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether one has "to" or "in" where the other has "from" or "out"."""
    here, there = words - others, others - words
    apart = any((one in here and two in there) or (two in here and one in there) for one, two in _LEADING)
    return apart or any(word in here | there for word in _LEADING_ALONE)


def _asked(pattern: re.Pattern[str], question: str) -> Set[str]:
    """Whether "what" and "which team" are who does it ("What causes A?", "What is made from A?") or what it is done to
    ("What does A cause?", "What is A made from?"); nothing where neither shows."""
    found = pattern.match(question)
    return {"object" if found["object"] else "subject"} if found else frozenset()


_WORD = re.compile(r"[a-z0-9]+(?:[-'][a-z]+)*")
_TENSES = {
    **dict.fromkeys(PAST_AUXILIARIES, "past"),
    **dict.fromkeys("wasn't weren't didn't hadn't".split(), "past"),
    **dict.fromkeys((BE | DO) - PAST_AUXILIARIES | SHORT_QUESTIONS, "present"),
    **dict.fromkeys("isn't aren't don't doesn't i'm it's".split(), "present"),
    **dict.fromkeys("will won't i'll it'll".split(), "present"),  # "When does it start?", "When will it start?"
}
_OWNED = re.compile(rf"\b({one_of(OWNERS)}|[a-z]+'s)\s+([a-z]+)\b(?!')")
_PERSONS = {
    **dict.fromkeys(FIRST_PERSON | FIRST_PERSON_SHORT, "I"),
    **dict.fromkeys(HE | {"he's"}, "he"),
    **dict.fromkeys(SHE | {"she's"}, "she"),
    **dict.fromkeys(THEY | {"they're"}, "they"),
}
_ASKING = frozenset("who what which how".split())
_MODALS = {
    **dict.fromkeys("can could may might can't couldn't".split(), "can"),
    **dict.fromkeys("should ought shouldn't".split(), "should"),
    **dict.fromkeys("must mustn't".split(), "must"),
}
_HAVE_TO = re.compile(r"\b(?:have|has|had|need|needs|needed|got|required|obliged) to\b|\bmust\b", re.I)
_AMOUNTS = {
    **dict.fromkeys("all every each everyone everybody".split(), "all"),
    **dict.fromkeys("any anyone anybody".split(), "any"),
    **dict.fromkeys("some someone somebody".split(), "some"),
    "most": "most",
    "only": "only",
    "both": "both",
    "either": "either",
}
_LEADING = (
    ("to", "from"), ("into", "from"), ("onto", "from"), ("in", "out"), ("up", "in"), ("up", "down"), ("on", "off"),
    ("up", "out"), ("in", "outside"), ("inside", "outside"), ("over", "under"), ("above", "below"), ("into", "out"),
    ("with", "without"), ("before", "after"), ("on", "under"), ("since", "until"), ("by", "after"), ("at", "before"),
    ("back", "up"), ("for", "against"), ("during", "after"), ("during", "before"), ("until", "after"),
)  # fmt: skip
_LEADING_ALONE = ("from", "without", "except", "only", "not", "against", "before", "after", "until", "unless")
_AUXILIARY = one_of(AUXILIARIES | {"be"})
_PLACING = one_of("from of for in with by to on".split())
_IS_WHAT = re.compile(
    rf"^\W*what(?:'s| {one_of(BE - {'am'})})\s+(?:.*\s(?P<object>{_PLACING})\W*$|.*\b{_PLACING}\s)",
    re.I,
)
_DOES = re.compile(
    rf"^\W*(?:(?:what|who|whom)|(?:what|which)\s+(?!{_AUXILIARY}\b)[\w-]+)\s+"
    rf"(?:(?P<object>{one_of(DO)}|don't|doesn't|didn't)\b|(?!{_AUXILIARY}\b|\w+n't|\w*'|else\b|of\b|to\b)[a-z]+)",
    re.I,
)
_SMALL = (
    POLITE
    | DETERMINERS
    | PRONOUNS
    | AUXILIARIES
    | BE_AFTER_ANOTHER
    | DENIED_AUXILIARIES
    | QUESTION_WORDS
    | SHORT_QUESTIONS
    | FIRST_PERSON_SHORT
    | JOINING
    | PREPOSITIONS
    | AMOUNTS
    | frozenset(
        """having ought need needs needed got get required obliged if then not no only back there here it's
        it'll""".split()
    )
)
