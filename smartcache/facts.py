"""The hard facts of a text: what must be equal however near two questions lie. Rules only, no model, no network."""

from __future__ import annotations

import re
import threading
import unicodedata
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from smartcache.precise import PASSIVE, precise_facts, precise_sides, units_apart
from smartcache.stems import is_a_form, stem
from smartcache.word_classes import AGREEING, AYES, NOES
from smartcache.word_order import exchanged, goes_back, is_turned_round
from smartcache.wording import (
    ANTONYMS,
    CHINESE_ANTONYMS,
    CHINESE_NEGATION,
    CHINESE_NOT_NEGATION,
    INTERROGATIVES,
    NEGATIONS,
    NOT_NEGATION,
    NUMBER_WORDS,
    OPPOSITE_PREFIXES,
    PERSONS,
    SENTENCE_STARTERS,
    one_of,
)

MAX_REWORDED = 4  # stems that one of two texts has and the other has not; beyond, only names have their place


@dataclass(frozen=True, slots=True)
class Facts:
    """What a text states or asks that no similarity may blur.

    `hard`: numbers, identifiers, quoted strings and the words of names, in small letters. `words`: every word of the
    text, so that a name written small still counts as mentioned; `stems`: theirs; `order`: those of the words that
    carry content, as they come. `content`: the words that carry meaning. `steps`: every word, Chinese sign and sign of
    an operation as they come, after "". `sides`: (axis, side) of each opposite, as in open / closed. `negations`: how
    many. `asks`: when, where, who, where the question says so.
    """

    hard: frozenset[str]
    words: frozenset[str]
    stems: frozenset[str]
    order: tuple[str, ...]
    content: frozenset[str]
    steps: tuple[str, ...]
    sides: frozenset[tuple[int, int]]
    negations: int
    asks: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Facts:
        """Most texts have no digit, no quote and no denial: where a search cannot find anything, it is not made."""
        text = _plain(text)
        words = [word.lower() for word in _WORD.findall(text)]
        stemmed, own = [*map(stem, words)], frozenset(words)
        stems, numbers = frozenset(stemmed), frozenset(map(_number, own & NUMBER_WORDS.keys()))
        return cls(
            hard=numbers.union(_hard(text), precise_facts(text, own)),
            words=own | numbers,
            stems=stems,
            order=tuple(
                PERSONS.get(word) or stem
                for word, stem in zip(words, stemmed, strict=True)
                if word in PERSONS or word not in SENTENCE_STARTERS
            ),
            content=frozenset(filter(_carries_meaning, own)),
            steps=("", *map(str.lower, _STEP.findall(text))),
            sides=frozenset(_sides(text, stems | own)).union(precise_sides(text, own)),
            negations=_negations(text, words),
            asks=_asks(text),
        )

    @classmethod
    def joined(cls, parts: Iterable[Facts]) -> Facts:
        """The facts of several texts, one after the other."""
        parts = [part for part in parts if part.steps]
        if len(parts) == 1:
            return parts[0]
        return cls(
            hard=frozenset().union(*[part.hard for part in parts]),
            words=frozenset().union(*[part.words for part in parts]),
            stems=frozenset().union(*[part.stems for part in parts]),
            order=tuple([word for part in parts for word in part.order]),
            content=frozenset().union(*[part.content for part in parts]),
            steps=tuple([word for part in parts for word in part.steps]),
            sides=frozenset().union(*[part.sides for part in parts]),
            negations=sum([part.negations for part in parts]),
            asks=frozenset().union(*[part.asks for part in parts]),
        )

    @property
    def names(self) -> frozenset[str]:
        """The hard facts that name something: all but bare numbers and signs."""
        return frozenset(fact for fact in self.hard if any(letter.isalpha() for letter in fact))

    @property
    def states_a_side(self) -> bool:
        """Whether it takes a side of an opposite, beside yes and no, "can" and "must"."""
        return any(axis not in (_ANSWERS, _MAY) for axis, _ in self.sides)

    def mentions(self, fact: str) -> bool:
        """Whether the text has a fact, also in small letters or another form of its word: of a name that is "Jones's",
        and never "Jon"."""
        if fact in self.hard or fact in self.words or f"{fact}'s" in self.words:
            return True
        stemmed = stem(fact)
        if not fact.isalpha() or stemmed not in self.stems:
            return False
        return any(is_a_form(fact, word, word in self.hard) for word in self.words if stem(word) == stemmed)

    def agree(self, other: Facts) -> bool:
        """Whether each text mentions every hard fact of the other."""
        return all(map(other.mentions, self.hard)) and all(map(self.mentions, other.hard))

    def part_from(self, other: Facts) -> bool:
        """Whether both texts state hard facts, and not the same."""
        return bool(self.hard and other.hard) and not self.agree(other)

    def exchanges(self, other: Facts) -> bool:
        """Whether two words stand in each other's place, as in "from A to B" and "from B to A", or on either side of
        what joins them, as in "A bites B" and "B bites A"."""
        if (PASSIVE in self.sides) != (PASSIVE in other.sides):
            return self._names_stay(other)
        if is_turned_round(self.order, other.order) or goes_back(self.steps, other.steps):
            return True
        is_reworded = len(self.stems ^ other.stems) > MAX_REWORDED
        named = frozenset(map(stem, self.hard & other.hard))
        return exchanged(self.steps, other.steps, named if is_reworded else None)

    def _names_stay(self, other: Facts) -> bool:
        """Whether two names stay in their order, though one "defeated" and the other "was defeated by"."""
        shared = frozenset(map(stem, self.names & other.names))
        named, also = ([word for word in one.order if word in shared] for one in (self, other))
        return len(set(named)) > 1 and named == also

    def opposes(self, other: Facts) -> bool:
        """Whether one asks the opposite of the other, or something else about the same."""
        return self.denies(other) or bool(self.asks and other.asks and self.asks != other.asks)

    def denies(self, other: Facts) -> bool:
        """Whether one says the opposite of the other."""
        return (
            self.negations % 2 != other.negations % 2
            or _differ_on_a_shared_axis(self.sides, other.sides)
            or _is_prefixed_opposite(self.stems, other.stems)
            or _is_prefixed_opposite(other.stems, self.stems)
        )


class ReadTexts:
    """The facts of texts, each read once, of the last `max_texts`. Safe to share between threads."""

    def __init__(self, *, max_texts: int = 5_000) -> None:
        self._max_texts = max_texts
        self._facts: OrderedDict[str, Facts] = OrderedDict()
        self._cleared = 0
        self._lock = threading.Lock()

    def __call__(self, text: str) -> Facts:
        with self._lock:
            known, cleared = self._facts.get(text), self._cleared
        if known is None:
            known = Facts.of(text)
            with self._lock:
                if cleared == self._cleared:
                    self._facts[text] = known
                while len(self._facts) > self._max_texts:
                    self._facts.popitem(last=False)
        return known

    def clear(self) -> None:
        """Drops all; what is being read just now is not remembered either."""
        with self._lock:
            self._cleared += 1
            self._facts.clear()


def asks_of(text: str) -> frozenset[str]:
    """What a text asks for, as in its Facts."""
    return _asks(_plain(text))


def content_words(text: str) -> frozenset[str]:
    """The words that carry meaning: not the ones that any sentence may start with, names and numbers among them."""
    return frozenset(word for word in map(str.lower, _WORD.findall(_plain(text))) if _carries_meaning(word))


def _carries_meaning(word: str) -> bool:
    return word not in SENTENCE_STARTERS and (len(word) > 2 or not word.isascii())


_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "`": '"'})
_WORD = re.compile(r"[^\W_]+(?:[-'_.][^\W_]+)*")
MIN_CUT = 200  # letters without a space
_LONG = re.compile(rf"[!-~]{{{MIN_CUT},}}")
_ACCENTS = re.compile("(?<=[A-Za-z]{2})[\u0300-\u036f]+|(?<=[A-Za-z])[\u0300-\u036f]+(?=[A-Za-z])")  # "ñ" is no "n"
_LETTER = re.compile(r"(?<!\w)(?![\u3400-\u9fff\u3040-\u30ff])[^\W\d_](?!\w)")
_QUOTED = re.compile(r'"([^"\n]{1,80})"|«([^»\n]{1,80})»|《([^》\n]{1,80})》|「([^」\n]{1,80})」')
_ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s<>\"')]+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.]+|(?<![\w.~-])(?:[\w.~-]*+/)+[\w.-]+"
)
_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:[.,:/-]\d+)*(?:\s?(?:%|°[CF]?))?")
_OPERATION = re.compile(r"(?<=\d)\s*([-+*/×÷^])\s*(?=\d)")
_IDENTIFIER = re.compile(
    r"\b(?=\w*\d)(?=\w*[A-Za-z_])[\w]+(?:[-.:]\w+)*\b|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*\b|(?<!\w)[$@#][A-Za-z][\w-]*"
)
_MAY = next(axis for axis, (side, _) in enumerate(ANTONYMS) if "can" in side)
_ANSWERS = -1  # the axis of yes and no, where a text begins with one
_ANSWER = re.compile(
    rf"^\W*(?:(?P<yes>{one_of(AYES | AGREEING)})|{one_of(NOES)})\b(?!\s+(?:one|longer|more)\b)",
    re.I,
)
_NO_AND = re.compile(rf"^\W*{one_of(NOES)}\s*[,.;!]", re.I)
_SPELLED = frozenset(("US", "IT", "WHO"))  # names, though "us", "it" and "who" are none
_SIGNS = frozenset(("So", "Sc", "No", "Sm"))  # emoji, currencies, fractions, "≤": an embedder may know none of them
_STEP = re.compile(r"[\u3400-\u9fff\u3040-\u30ff]|[^\W_]+(?:[-'_.][^\W_]+)*|[-+*/×÷^<>=]+")
_SENTENCE = re.compile(r"(?<=[.!?。！？:;\n])\s*")
_NAME = re.compile(r"[A-Z][\w&'-]*|[A-Z]{2,}")
_KINDS = {f"kind{n}": kind for n, (_, kind) in enumerate(INTERROGATIVES)}
_ASKS = re.compile(  # no two of them begin at one place
    rf"\b(?=[wh])(?:{'|'.join(f'(?P<kind{n}>{asks})' for n, (asks, _) in enumerate(INTERROGATIVES))})\b", re.I
)
_DIGIT = re.compile(r"\d")
_MARKED = re.compile(r"[\d_$@#]|[a-z][A-Z]")  # without any of these there is no identifier


def _plain(text: str) -> str:
    """The text without accents, with plain apostrophes, and its units apart from their numbers. What is longer than any
    word is cut, and told apart by its checksum."""
    if len(text) >= MIN_CUT:
        text = _LONG.sub(lambda long: f"{long[0][:40]}_{zlib.crc32(long[0].encode('utf-8', 'replace')):x}", text)
    if text.isascii():
        text = text.replace("`", '"')
    else:
        text = _ACCENTS.sub("", unicodedata.normalize("NFD", text.translate(_APOSTROPHES)))
        text = unicodedata.normalize("NFC", text)
    return units_apart(text) if _DIGIT.search(text) else text


def _hard(text: str) -> Iterator[str]:
    if '"' in text or not text.isascii():
        for groups in _QUOTED.findall(text):
            yield from (word.lower() for word in _WORD.findall("".join(groups)))
        yield from (letter for letter in text if not letter.isascii() and unicodedata.category(letter) in _SIGNS)
        yield from (found.lower() for found in _LETTER.findall(text) if not found.isascii())
    if "/" in text or "@" in text or "www." in text:
        yield from (found.lower() for found in _ADDRESS.findall(text))
    if _MARKED.search(text):
        yield from (found.lower() for found in _IDENTIFIER.findall(text))
    if _DIGIT.search(text):
        yield from map(_number, _NUMBER.findall(text))
        yield from _OPERATION.findall(text)
    for sentence in _SENTENCE.split(text):
        if not sentence.islower():
            yield from _names(sentence)


def _names(sentence: str) -> Iterator[str]:
    """Words with a capital, except the first of a sentence where nothing else tells that it is a name."""
    words = sentence.split()
    for place, raw in enumerate(words):
        if raw.islower():
            continue
        word = raw.strip(".,;:!?()[]{}\"'“”«»…")
        if not _NAME.fullmatch(word) or (word.lower() in SENTENCE_STARTERS and word not in _SPELLED):
            continue
        follows = words[place + 1 : place + 2]
        if place or word.endswith("'s") or word.isupper() or (follows and _NAME.match(follows[0])):
            yield word.removesuffix("'s").rstrip("-").lower()


def _number(found: str) -> str:
    plain = NUMBER_WORDS.get(found, found).replace("−", "-").replace(" ", "")
    if "," in plain and re.fullmatch(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?%?", plain):
        plain = plain.replace(",", "")
    return re.sub(r"\.0+(?=%|$)", "", plain) if "." in plain else plain


def _sides(text: str, words: frozenset[str]) -> Iterator[tuple[int, int]]:
    if answer := _ANSWER.match(text):
        yield _ANSWERS, int(answer["yes"] is None)
    opposed = _opposed()
    words |= {stem(part) for word in words if "-" in word for part in word.split("-")}  # "left-handed"
    words |= {word.removesuffix("'s") for word in words if word.endswith("'s")}  # "men's", "women's"
    for word in words & opposed.keys():
        yield from opposed[word]
    if text.isascii():
        return
    for axis, chinese in enumerate(CHINESE_ANTONYMS, start=len(ANTONYMS)):
        yield from ((axis, side) for side, term in enumerate(chinese) if term in text)


@cache
def _opposed() -> Mapping[str, list[tuple[int, int]]]:
    """The sides that each term takes; made once, at the first text."""
    found: dict[str, list[tuple[int, int]]] = {}
    for axis, pair in enumerate(ANTONYMS):
        for side, terms in enumerate(pair):
            for term in terms:
                found.setdefault(term, []).append((axis, side))
    return found


def _differ_on_a_shared_axis(one: frozenset[tuple[int, int]], other: frozenset[tuple[int, int]]) -> bool:
    if not one or not other or one == other:
        return False
    shared = {axis for axis, _ in one} & {axis for axis, _ in other}
    return {pair for pair in one if pair[0] in shared} != {pair for pair in other if pair[0] in shared}


def _asks(text: str) -> frozenset[str]:
    return frozenset(_KINDS[found.lastgroup or ""] for found in _ASKS.finditer(text))


def _negations(text: str, words: Sequence[str]) -> int:
    """How many. `words`: of the text, in small letters."""
    small = text.lower()
    if "no" in small or "n't" in small:  # otherwise NOT_NEGATION finds nothing
        words = [word.lower() for word in _WORD.findall(NOT_NEGATION.sub(" ", text))]
    english: int = sum(word in NEGATIONS or word.endswith("n't") for word in words)
    if english > 1 and _NO_AND.match(text):
        english -= 1  # "No, not yet" says no more than "Not yet"
    return english if text.isascii() else english + len(CHINESE_NEGATION.findall(CHINESE_NOT_NEGATION.sub("", text)))


def _is_prefixed_opposite(stems: frozenset[str], others: frozenset[str]) -> bool:
    """Whether one text has "lock" where the other has "unlock" instead."""
    here, there = stems - others, others - stems
    prefixed = [word for word in there if len(word) > 4 and word.startswith(OPPOSITE_PREFIXES)] if here else []
    return any(word.removeprefix(prefix) in here for word in prefixed for prefix in OPPOSITE_PREFIXES)
