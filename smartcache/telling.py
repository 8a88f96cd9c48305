"""What users tell of their case, side by side: what one told that the other did not, and whether it can matter."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from smartcache.embedding import RememberedVectors, Vector, cosine
from smartcache.facts import Facts
from smartcache.focus import focus, weighty_stems
from smartcache.precise import is_done_to
from smartcache.word_classes import (
    AUXILIARIES,
    BARE_QUESTION_WORDS,
    DENIED_AUXILIARIES,
    FIRST_PERSON,
    FIRST_PERSON_SHORT,
    JOINING,
    OPENING_AUXILIARIES,
    PRONOUNS,
)
from smartcache.wording import one_of

MIN_TELLING = -1.4  # a logit: of what tells of a case one sentence in thirty lies below it, of small talk four in five
MIN_ALIKE = 0.8  # cosine of two wordings of one sentence
MAX_CHOICE, MAX_CHOICE_WORDS = 2, 3  # words, all but the lightest and all
MAX_SENTENCES = 12  # sentences that only one user told
MAX_CHANGED = 6  # turns that are compared with each other, the last ones
MIN_SHARED = 0.5  # of the words of two texts that one may deny the other in
Read = Callable[[str], Facts]


@dataclass(frozen=True)
class Telling:
    """Whether a sentence tells anything of its speaker's case ("I am a student"), or is small talk ("One moment
    please"): a logit, linear in the sentence's vector of dimension w. `weight`: (w,)."""

    weight: Vector
    bias: float

    def __call__(self, sentence: Vector) -> float:
        return float(self.weight @ sentence) + self.bias


@dataclass(frozen=True, slots=True)
class Sentence:
    """What a speaker stated: its `words`, by their stems, all but the lightest; `is_choice`: a word or two ("The
    second", "In cash"), which mean just that; `counts`: it is no small talk, as it has a name, a number or a letter, or
    takes up what was said just before."""

    text: str
    words: frozenset[str]
    is_choice: bool
    counts: bool


@dataclass(frozen=True, slots=True)
class Beside:
    """What two users told that the other did not: how `alike` it is, from 0 to 1 (of who told less, the sentence that
    is met worst; 1 where one told nothing), and how many sentences of it are met by `none` of the other's."""

    alike: float
    none: int


def beside(
    told: Sequence[Sentence], also_told: Sequence[Sentence], vectors: RememberedVectors, telling: Telling
) -> Beside:
    fewer, more = sorted((_of_a_case(told, vectors, telling), _of_a_case(also_told, vectors, telling)), key=len)
    if len(more) > MAX_SENTENCES:
        return Beside(0.0 if fewer else 1.0, len(more))  # two long stories: nobody compares them sentence by sentence
    alike = [[_alike(one, other, vectors) for other in more] for one in fewer]
    best, best_of_more = [*map(max, alike)], [*map(max, zip(*alike, strict=True))]
    if len(fewer) == len(more):
        best += best_of_more
    unmet = max(len(more) - best_of_more.count(1.0), len(fewer) - best[: len(fewer)].count(1.0))
    return Beside(min(best, default=1.0), unmet)


def stated(turns: Sequence[tuple[str, str]], role: str, read: Read) -> Iterator[Sentence]:
    """The sentences of one role's turns, of (role, text), that ask nothing."""
    for (_, before), (speaker, text) in pairwise([("", ""), *turns]):
        if speaker == role:
            offered = weighty_stems(before)
            yield from (_sentence(one, offered, read) for one in statements(text))


def statements(text: str) -> Iterator[str]:
    """The sentences of a text that ask nothing."""
    return (one for one in _BETWEEN.split(text) if one.strip(_MARKS).strip() and not asks_something(one))


def asks_something(text: str) -> bool:
    """Whether it is a question, with its mark or without; "What I have is a Mac." is none."""
    return bool(QUESTION.search(text)) and not text.rstrip().endswith(".")


def _sentence(text: str, offered: frozenset[str], read: Read) -> Sentence:
    words, plain = weighty_stems(text), text.lower().split()
    is_choice = len(words) <= MAX_CHOICE and len(plain) <= MAX_CHOICE_WORDS and plain[0] not in _FIRST_PERSON
    last = plain[-1].strip(_MARKS)
    if is_choice:
        words |= {last}  # "Option A"
    counts = (
        (len(last) == 1 and last.isalnum() and last != "i")
        or bool(read(text).hard)
        or bool(is_choice and words & offered)
    )
    return Sentence(text, words or frozenset(plain), is_choice, counts)


def changed(said: Sequence[str], also_said: Sequence[str], read: Read, vectors: RememberedVectors) -> float:
    """How alike what stands in each other's place in two speakers' turns is, from 0 to 1: the words that differ where
    the rest is the same ("You are in the trial", "You are past the trial"), and 0 where one denies the other."""
    own = [text for text in said if text not in also_said][-MAX_CHANGED:]
    others = [text for text in also_said if text not in said][-MAX_CHANGED:]
    pairs = [(one, other) for one in own for other in others]
    if any(_denies(read(one), read(other)) or read(one).exchanges(read(other)) for one, other in pairs):
        return 0.0
    differing = [found for pair in pairs if (found := focus(*pair))]
    return min((cosine(*vectors(found)) if all(found) else 0.0 for found in differing), default=1.0)


def _denies(one: Facts, other: Facts) -> bool:
    """Whether one of two texts of much the same words says the opposite of the other."""
    shared, words = len(one.stems & other.stems), len(one.stems | other.stems)
    return shared >= MIN_SHARED * words and one.opposes(other)


def _of_a_case(told: Sequence[Sentence], vectors: RememberedVectors, telling: Telling) -> list[Sentence]:
    """Those that are no small talk, as far as the embedder can tell."""
    doubted = [one.text for one in told if not one.counts and _is_seen(one.text, vectors)]
    small_talk = {text for text, vector in zip(doubted, vectors(doubted), strict=True) if telling(vector) < MIN_TELLING}
    return [one for one in told if one.counts or one.text not in small_talk]


def _is_seen(text: str, vectors: RememberedVectors) -> bool:
    return vectors.fits(text) and vectors.reads(text)


def _alike(one: Sentence, other: Sentence, vectors: RememberedVectors) -> float:
    if one.is_choice and other.is_choice:
        return float(one.words == other.words)
    if not (_is_seen(one.text, vectors) and _is_seen(other.text, vectors)):
        return float(one.text == other.text)
    nearness = cosine(*vectors([one.text, other.text]))
    if nearness < 1.0 and is_done_to(one.text.strip(_MARKS), other.text.strip(_MARKS)):
        return 0.0
    if differing := focus(one.text, other.text):
        return min(nearness, cosine(*vectors(differing)) if all(differing) else 0.0)
    return 1.0 if nearness >= MIN_ALIKE else nearness


_BEFORE_A_PERSON = frozenset("am had shall may might must".split())  # "May I go", and not "May 5 works"
QUESTION = re.compile(
    rf"[?？吗呢]\s*$|^\W*(?:{one_of(JOINING)} )?"
    rf"(?:wh\w+|how|{one_of(AUXILIARIES - _BEFORE_A_PERSON | DENIED_AUXILIARIES)}"
    rf"|{one_of(_BEFORE_A_PERSON)} {one_of(PRONOUNS)})\b",
    re.I,
)
_FIRST_PERSON = (FIRST_PERSON - {"me", "mine", "us", "ours"}) | FIRST_PERSON_SHORT
_MARKS = ".,:;!?()[]\"'" + string.whitespace
_BETWEEN = re.compile(  # "I am vegan, is there anything for me?" tells and asks
    rf"(?<=[.!?;])\s+|\n|,\s+(?={one_of(OPENING_AUXILIARIES | BARE_QUESTION_WORDS)}\b)",
    re.I,
)
