"""What two dialogues share and where they part, as numbers for a policy to weigh."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, fields
from functools import cached_property

from smartcache.asks import asks, aspects, goes_on, kinds_apart
from smartcache.dialogue import Dialogue, replies
from smartcache.facts import Facts
from smartcache.focus import weights, weighty_stems
from smartcache.precise import is_done_to
from smartcache.small_words import SmallWords
from smartcache.stems import stem
from smartcache.telling import Sentence, stated
from smartcache.word_classes import PLEAS, THANKS

MAX_COMPARED = 12  # sentences that only one speaker said
MAX_TOLD = 2  # words of a user's case that another user need not have told

# For each signal whether more of it speaks for one answer (1), against it (-1), or neither by itself (0).
MONOTONE = {
    "meaning": 1, "wording": 1, "stands_least": 0, "stands_most": 0, "histories": 0, "one_after": 0,
    "shared_here": 1, "shared_there": 1, "shared": 1, "told_here": 1, "told_there": 1,
    "unsaid": -1, "states_opposite": -1, "clashes": -1, "extras": -1, "reply_clashes": -1, "reply_extras": -1,
    "last_turns": 1, "said": 1, "same_words": 1, "asks_apart": -1, "aspects_apart": -1,
    "left_here": -1, "left_there": -1,
    "words_here": -1, "words_there": -1, "words_shared": 1, "last_least": -1, "last_most": -1, "goes_on": -1,
    "facts_agree": 1, "leaned_on": 1, "same_names": 1, "focus": 1,
    "left_alike": 1, "told_beside": -1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signals:
    """Of a question asked and one that is stored, the same in either order. `here` and `there`: of the question with
    anything before it and of the other, where only one has; otherwise of the one with less and of the other.

    Cosines: `meaning` of the two digests, `wording` of the questions, `said` and `last_turns` of what the users said
    before and of the turns just before, `leaned_on` of what the questions lean on by the rules, `focus` of what stands
    in each other's place, `left_alike` of the words that only one question has (all 1 where neither has any).
    `stands_least`, `stands_most`: logits that the questions stand alone. `histories`: how many lean on what was said
    before, by the rules; `one_after`: whether just one of them was asked after anything.

    Shares of the words that carry content: `shared_*` of one question in the other, `told_*` of one question in the
    other and what was said before it, `shared` of both in common, `words_shared` the same of all words but the
    lightest.

    Counts: `unsaid` hard facts of a question that the other question does not have; `clashes` and `extras` of the hard
    facts that a user stated and the other dialogue lacks, on the side with fewer and with more; `reply_clashes` of
    questions that the users answered yes and no, `reply_extras` of those that one of them was not asked; `left_*` and
    `words_*` of a question's words that the other lacks (of those with content, and of all but the lightest),
    `last_*` of the words of the turn just before; `goes_on` of the questions that ask for what is next or else;
    `told_beside` of the sentences of a user's case that the other user did not tell; `aspects_apart` of what one asks
    of its subject and the other does not speak of ("the types of", "which team"). `asks_apart`: from 0 (both ask when)
    to 3 (when, where). Yes or no: `states_opposite`, `same_words`, `facts_agree` (no rule is against it), `same_names`.
    """

    meaning: float
    wording: float
    stands_least: float
    stands_most: float
    histories: float
    one_after: float
    shared_here: float
    shared_there: float
    shared: float
    told_here: float
    told_there: float
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
    aspects_apart: float
    left_here: float
    left_there: float
    words_here: float
    words_there: float
    words_shared: float
    last_least: float
    last_most: float
    goes_on: float
    facts_agree: float
    leaned_on: float
    same_names: float
    focus: float
    left_alike: float
    told_beside: float

    def by_name(self) -> dict[str, float]:
        return dict(zip(MONOTONE, self.values(), strict=True))

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
        return self.dialogue.facts_of(*(text for role, text in self.dialogue.spoken if role == "user"))

    @cached_property
    def assistant(self) -> Facts:
        return self.dialogue.facts_of(*(text for role, text in self.dialogue.spoken if role != "user"))

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of the question's words that carry content."""
        return _stems(self.question)

    @cached_property
    def all_words(self) -> frozenset[str]:
        return self.words | self.user_words | self.assistant_words

    @cached_property
    def user_words(self) -> frozenset[str]:
        return _stems(self.user)

    @cached_property
    def assistant_words(self) -> frozenset[str]:
        return _stems(self.assistant)

    @cached_property
    def weighty(self) -> frozenset[str]:
        return frozenset(stem for _, stem in self._weights)

    @cached_property
    def last_words(self) -> frozenset[str]:
        """The stems of all but the lightest words of the turn just before."""
        return weighty_stems(self.dialogue.spoken[-1][1]) if self.dialogue.spoken else frozenset()

    @cached_property
    def fact_stems(self) -> frozenset[str]:
        """The stems of the question's hard facts; none of a Chinese one, which is compared otherwise."""
        return frozenset() if self.dialogue.is_chinese else frozenset(map(stem, self.question.hard))

    @cached_property
    def heard_stems(self) -> frozenset[str]:
        """A dialogue without one of these does not mention any fact of that stem."""
        told = (self.question, self.user, self.assistant)
        spoken = {word.removesuffix("'s") for facts in told for word in facts.hard | facts.words}
        return frozenset(map(stem, spoken)).union(*(facts.stems for facts in told))

    @cached_property
    def small_words(self) -> SmallWords:
        return SmallWords.of(self.dialogue.question)

    @cached_property
    def asks(self) -> str:
        return asks(self.dialogue.question)

    @cached_property
    def aspects(self) -> frozenset[str]:
        return aspects(self.dialogue.question)

    @cached_property
    def goes_on(self) -> bool:
        """Whether the question asks for what comes after something that was said, and does not say after what."""
        return goes_on(self.dialogue.question)

    @cached_property
    def plain(self) -> str:
        return self.dialogue.question.lower().strip(" ?.!？。！")

    @cached_property
    def letter(self) -> str:
        """The letter or digit that a question ends with, as in "Option A"."""
        last = self.plain.rpartition(" ")[2]
        return last if len(last) == 1 and last.isalnum() and last.isascii() else ""

    @cached_property
    def choice(self) -> frozenset[str]:
        """What a reply of a word or two says ("Credit card.", "Louder"): its stems; none of a question."""
        turns = [*self.dialogue.history, ("", self.dialogue.question)] if self.dialogue.spoken else []
        said = tuple(stated(turns, "", self.dialogue.facts_of))
        return said[0].words - _POLITE if len(said) == 1 and said[0].is_choice else frozenset()

    @cached_property
    def replies(self) -> dict[frozenset[str], bool]:
        """What the user answered with yes or no, by the stems of what was asked."""
        return dict(replies(self.dialogue.history))

    def left(self, other: Told) -> str:
        """The question's words, but for the lightest, that the other question does not have."""
        return " ".join(word for word, stem in self._weights if stem not in other.weighty and stem not in other.words)

    @cached_property
    def _weights(self) -> list[tuple[str, str]]:
        """Those words, each with its stem."""
        return weights(self.dialogue.question)

    def _aspects_beside(self, other: Told) -> int:
        """How many aspects are asked for here that the other question does not speak of."""
        return len(self.aspects - other.aspects - other.words - other.weighty)

    def mentions(self, fact: str) -> bool:
        return self.question.mentions(fact) or self.user.mentions(fact) or self.assistant.mentions(fact)

    def refusal(self, other: Told) -> str | None:
        """Why the two can have no common answer, whatever else speaks for it, or None."""
        if self.question.opposes(other.question) or self.small_words.part_from(other.small_words):
            return "polarity"
        if self.question.exchanges(other.question):
            return "order"
        heard = all(map(other.mentions, self.question.hard)) and all(map(self.mentions, other.question.hard))
        if self._names_beside(other) and other._names_beside(self):
            return "facts"  # "How old is Ann's sister?", "How old is Eve's sister?", after both were named
        if self.choice and other.choice and self.choice != other.choice:
            return "facts"
        if not heard or (self._states_numbers_beside(other) and other._states_numbers_beside(self)):
            return "facts"
        if self.letter and other.letter and self.letter != other.letter:
            return "facts"
        is_of_the_user = self.dialogue.is_of_the_user or other.dialogue.is_of_the_user
        return (
            "context" if is_of_the_user and max(self._told_beside(other), other._told_beside(self)) > MAX_TOLD else None
        )

    def tells_beside(self, other: Told) -> list[Sentence]:
        """The sentences in which the user stated what the other user did not say, whether the question leans on them
        or not. "B" alone may be a choice."""
        return self._unmet(self.stated, other.stated, other.user_words)

    def finds_beside(self, other: Told) -> list[Sentence]:
        """The same of what the assistant said in a word or two ("A virus.")."""
        return [one for one in self._unmet(self.found, other.found, other.assistant_words) if one.is_choice]

    @cached_property
    def stated(self) -> tuple[Sentence, ...]:
        return tuple(stated(self.dialogue.history, "user", self.dialogue.facts_of))

    @cached_property
    def found(self) -> tuple[Sentence, ...]:
        return tuple(stated(self.dialogue.history, "assistant", self.dialogue.facts_of))

    def _unmet(self, own: Sequence[Sentence], others: Sequence[Sentence], said: Set[str]) -> list[Sentence]:
        """Those that the other speaker did not say: a choice in one sentence, which is not one that both have; another
        in any words, but those that say who did it to whom otherwise."""
        texts = frozenset(one.text for one in own)
        theirs, left = frozenset(one.text for one in others), [one for one in others if one.text not in texts]

        def is_met(one: Sentence) -> bool:
            if one.is_choice:
                return any(one.words <= other.words for other in left)
            turned = any(is_done_to(one.text, other.text) for other in left[:MAX_COMPARED])
            return not turned and _stems(self.dialogue.facts_of(one.text)) <= said

        return [one for one in own if one.text not in theirs and not is_met(one)]

    def _told_beside(self, other: Told) -> int:
        """How many words of their case the user told that the other dialogue does not have."""
        return len(_stems(self.dialogue.told_facts) - other.all_words)

    def _names_beside(self, other: Told) -> bool:
        """Whether the question names what the other question does not."""
        return not all(map(other.question.mentions, self.question.hard))

    def _states_numbers_beside(self, other: Told) -> bool:
        """Whether the user stated a number that the other dialogue does not have."""
        return not all(map(other.mentions, self.user.hard - self.user.names))

    def shares(self, other: Told) -> dict[str, float]:
        """The signals that the words alone give."""
        one_leans = bool(self.dialogue.spoken) != bool(other.dialogue.spoken)
        # where only one has anything before it, it may have been told there what the other says
        here, there = (self, other) if self.dialogue.spoken else (other, self)

        def both(value: Callable[[Told, Told], float]) -> tuple[float, float]:
            one, two = value(here, there), value(there, here)
            return (one, two) if one_leans else (min(one, two), max(one, two))

        shared = both(lambda one, two: _share(one.words, two.words))
        told = both(lambda one, two: _share(one.words, two.all_words))
        left = both(lambda one, two: len(one.words - (two.all_words if one_leans else two.words)))
        words = both(lambda one, two: len(one.weighty - two.weighty))
        last = sorted((len(self.last_words - other.last_words), len(other.last_words - self.last_words)))
        stated = sorted((_unmentioned(self.user, other), _unmentioned(other.user, self)))
        unsaid = [sum(not other.question.mentions(fact) for fact in self.question.hard)]
        unsaid += [sum(not self.question.mentions(fact) for fact in other.question.hard)]
        replies = self.replies.items()
        return {
            "shared_here": shared[0],
            "shared_there": shared[1],
            "shared": _jaccard(self.words, other.words),
            "told_here": told[0],
            "told_there": told[1],
            "unsaid": max(unsaid),
            "states_opposite": self.user.opposes(other.user),
            "clashes": stated[0],
            "extras": stated[1],
            "reply_clashes": sum(other.replies.get(asked, reply) != reply for asked, reply in replies),
            "reply_extras": len(self.replies.keys() ^ other.replies.keys()),
            "same_words": self.plain == other.plain,
            "asks_apart": kinds_apart(self.asks, other.asks),
            "aspects_apart": self._aspects_beside(other) + other._aspects_beside(self),
            "left_here": left[0],
            "left_there": left[1],
            "words_here": words[0],
            "words_there": words[1],
            "words_shared": _jaccard(self.weighty, other.weighty),
            "last_least": 0 if one_leans else last[0],
            "last_most": 0 if one_leans else last[1],
            "goes_on": self.goes_on + other.goes_on,
        }

    def agrees(self, other: Told) -> dict[str, float]:
        """The signals that the rules give, by all that either dialogue states."""
        return {
            "facts_agree": self.dialogue.conflict(other.dialogue) is None,
            "same_names": self.dialogue.names_the_same(other.dialogue),
        }


_POLITE = (PLEAS | THANKS).union(map(stem, PLEAS | THANKS))


def _stems(facts: Facts) -> frozenset[str]:
    return frozenset(map(stem, facts.content))


def _share(words: Set[str], others: Set[str]) -> float:
    """The share of `words` that is in `others`, 1 of none."""
    return len(words & others) / len(words) if words else 1.0


def _jaccard(words: Set[str], others: Set[str]) -> float:
    return len(words & others) / max(1, len(words | others))


def _unmentioned(stated: Facts, other: Told) -> int:
    return sum(not other.mentions(fact) for fact in stated.hard)
