"""What two dialogues share and where they part, as numbers for a policy to weigh."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass, fields
from functools import cached_property

from smartcache.dialogue import Dialogue, replies, tells
from smartcache.facts import Facts, content_words, stem
from smartcache.focus import weighty_stems

# For each signal whether more of it speaks for one answer (1), against it (-1), or neither by itself (0).
MONOTONE = {
    "meaning": 1, "wording": 1, "stands_least": 0, "stands_most": 0, "histories": 0,
    "shared_least": 1, "shared_most": 1, "shared": 1, "told_least": 1, "told_most": 1,
    "unsaid": -1, "states_opposite": -1, "clashes": -1, "extras": -1, "reply_clashes": -1, "reply_extras": -1,
    "last_turns": 1, "said": 1, "same_words": 1, "asks_apart": -1, "left_least": -1, "left_most": -1,
    "words_least": -1, "words_most": -1, "words_shared": 1, "facts_agree": 1, "leaned_on": 1, "same_names": 1,
    "focus": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signals:
    """Of a question asked (A) and one that is stored (B). What is told of both holds in either order.

    Cosines: `meaning` of the two digests, `wording` of the questions, `said` and `last_turns` of what the users said
    before and of the turns just before, `leaned_on` of what the questions lean on by the rules, `focus` of what the
    questions differ in (all 1 where neither has any). `stands_least`, `stands_most`: logits that the questions stand
    alone. `histories`: how many have anything before them.

    Shares of the words that carry content: `shared_least` and `shared_most` of one question in the other, `shared` of
    both in common; `told_least` and `told_most` of one question in the other and what was said before it;
    `words_shared` the same as `shared`, of all words but the lightest.

    Counts: `unsaid` hard facts of a question that the other question does not have; `clashes` and `extras` of the hard
    facts that a user stated and the other dialogue lacks, on the side with fewer and with more; `reply_clashes` of
    questions that the users answered yes and no, `reply_extras` of those that one of them was not asked; `left_*` and
    `words_*` of a question's words that the other lacks. `asks_apart`: from 0 (both ask when) to 3 (when, where).
    Yes or no: `states_opposite`, `same_words`, `facts_agree` (no rule is against it), `same_names`.
    """

    meaning: float
    wording: float
    stands_least: float
    stands_most: float
    histories: float
    shared_least: float
    shared_most: float
    shared: float
    told_least: float
    told_most: float
    unsaid: float
    states_opposite: float
    clashes: float
    extras: float
    reply_clashes: float
    reply_extras: float
    last_turns: float
    said: float
    same_words: float
    asks_apart: float
    left_least: float
    left_most: float
    words_least: float
    words_most: float
    words_shared: float
    facts_agree: float
    leaned_on: float
    same_names: float
    focus: float

    def values(self) -> tuple[float, ...]:
        return tuple(float(getattr(self, field.name)) for field in fields(self))


@dataclass(frozen=True)
class Told:
    """What is read from a dialogue's texts, once: the part of the signals that needs no vector."""

    dialogue: Dialogue

    @cached_property
    def question(self) -> Facts:
        return self.dialogue.question_facts

    @cached_property
    def user(self) -> Facts:
        """The facts of all that the user said before."""
        return Facts.of("\n".join(text for role, text in self.spoken if role == "user"))

    @cached_property
    def assistant(self) -> Facts:
        return Facts.of("\n".join(text for role, text in self.spoken if role != "user"))

    @cached_property
    def spoken(self) -> tuple[tuple[str, str], ...]:
        """The turns before the question that tell anything."""
        return tuple(turn for turn in self.dialogue.history if tells(turn[1]))

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of the question's words that carry content."""
        return _stems(self.dialogue.question)

    @cached_property
    def all_words(self) -> frozenset[str]:
        return self.words.union(*(_stems(text) for _, text in self.spoken))

    @cached_property
    def weighty(self) -> frozenset[str]:
        return weighty_stems(self.dialogue.question)

    @cached_property
    def asks(self) -> str:
        return _asks(self.dialogue.question)

    @cached_property
    def plain(self) -> str:
        return self.dialogue.question.lower().strip(" ?.!？。！")

    @cached_property
    def replies(self) -> dict[frozenset[str], bool]:
        """What the user answered with yes or no, by the stems of what was asked."""
        return dict(replies(self.dialogue.history))

    def mentions(self, fact: str) -> bool:
        return self.question.mentions(fact) or self.user.mentions(fact) or self.assistant.mentions(fact)

    def refusal(self, other: Told) -> str | None:
        """Why the two can have no common answer, whatever else speaks for it, or None."""
        if self.question.opposes(other.question):
            return "polarity"
        if self.question.exchanges(other.question):
            return "order"
        heard = all(map(other.mentions, self.question.hard)) and all(map(self.mentions, other.question.hard))
        return None if heard else "facts"

    def shares(self, other: Told) -> dict[str, float]:
        """The signals that the texts alone give."""
        one_leans = bool(self.spoken) != bool(other.spoken)  # then one may have been told before what the other says
        shared = sorted((_share(self.words, other.words), _share(other.words, self.words)))
        told = sorted((_share(self.words, other.all_words), _share(other.words, self.all_words)))
        stated = sorted((_unmentioned(self.user, other), _unmentioned(other.user, self)))
        left = sorted(
            len(mine.words - (theirs.all_words if one_leans else theirs.words))
            for mine, theirs in ((self, other), (other, self))
        )
        words = sorted((len(self.weighty - other.weighty), len(other.weighty - self.weighty)))
        unsaid = [sum(not other.question.mentions(fact) for fact in self.question.hard)]
        unsaid += [sum(not self.question.mentions(fact) for fact in other.question.hard)]
        replies = self.replies.items()
        return {
            "shared_least": shared[0],
            "shared_most": shared[1],
            "shared": _jaccard(self.words, other.words),
            "told_least": told[0],
            "told_most": told[1],
            "unsaid": max(unsaid),
            "states_opposite": self.user.opposes(other.user),
            "clashes": stated[0],
            "extras": stated[1],
            "reply_clashes": sum(other.replies.get(asked, reply) != reply for asked, reply in replies),
            "reply_extras": len(self.replies.keys() ^ other.replies.keys()),
            "same_words": self.plain == other.plain,
            "asks_apart": _apart(self.asks, other.asks),
            "left_least": left[0],
            "left_most": left[1],
            "words_least": words[0],
            "words_most": words[1],
            "words_shared": _jaccard(self.weighty, other.weighty),
            "facts_agree": self.dialogue.conflict(other.dialogue) is None,
            "same_names": self.dialogue.names_the_same(other.dialogue),
        }


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, content_words(text)))


def _share(words: Set[str], others: Set[str]) -> float:
    """The share of `words` that is in `others`, 1 of none."""
    return len(words & others) / len(words) if words else 1.0


def _jaccard(words: Set[str], others: Set[str]) -> float:
    return len(words & others) / max(1, len(words | others))


def _unmentioned(stated: Facts, other: Told) -> int:
    return sum(not other.mentions(fact) for fact in stated.hard)


def _asks(question: str) -> str:
    """What kind of answer a question wants: when, where, who …, "yes or no", or "" where its words do not say."""
    if _YES_OR_NO.match(question):
        return "yes or no"
    found = [(match.start(), kind) for kind, pattern in _ASKING if (match := pattern.search(question))]
    return min(found, key=lambda one: one[0])[1] if found else ""


def _apart(asked: str, other: str) -> int:
    """How far two kinds of answer lie apart: 0 the same, 1 where one question does not say, 2 "what", which may ask for
    anything, 3 two kinds."""
    if asked == other:
        return 0
    if not asked or not other:
        return 1
    return 2 if "what" in (asked, other) and "yes or no" not in (asked, other) else 3


_ASKING = tuple(
    (kind, re.compile(pattern, re.I))
    for kind, pattern in (
        ("how many", r"\bhow (?:many|much)\b|\bwhat (?:number|amount|price|cost)\b"),
        ("when", r"\bwhen\b|\b(?:what|which) (?:time|year|date|day|month)\b|\bhow (?:long|old)\b"),
        ("where", r"\bwhere\b|\b(?:what|which) (?:place|city|country|town|location)\b"),
        ("who", r"\bwho(?:m|se)?\b|\b(?:what|which) person\b"),
        ("why", r"\bwhy\b|\bhow come\b|\bwhat (?:reason|cause|caused)\b"),
        ("how", r"\bhow\b"),
        ("what", r"\bwh(?:at|ich)\b"),
    )
)
_YES_OR_NO = re.compile(
    r"^\W*(?:(?:and|but|so|or|also|then|ok|okay|well|please)\W+)*(?:(?:in addition to|other than|besides) [^,]*, )?"
    r"(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had|may|must|am)\b",
    re.I,
)
