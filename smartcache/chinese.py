"""What a Chinese question asks, of what: read by rules from its words and from what was talked of before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smartcache.wording_chinese import (
    ABOUT,
    BESIDE,
    FUNCTION_WORDS,
    INTRODUCED,
    JOINED,
    KINDS,
    LEADING,
    NOT_TURNED,
    PAYS,
    POINTING,
    TELLS_OF_IT,
    TRAILING,
    TURNED,
    TURNS_AWAY,
    UNLIKE_NAMES,
    UNLIKE_NAMES_ASKED,
)

MAX_LETTERS, MAX_SAID_LETTERS = 300, 1_000  # of a question, and of a turn before it


@dataclass(frozen=True, slots=True)
class Asking:
    """A Chinese question, taken apart.

    `about`: which properties it asks for, each by one word for all its wordings. `rest`: what no rule explains, letter
    by letter. `subject`: what it asks them of, None where neither it nor the history says so without doubt. `said`: the
    turns before it. `pointing`: the pronouns that tell a man from a woman.
    """

    subject: str | None
    about: frozenset[str]
    rest: str
    said: tuple[str, ...]
    pointing: frozenset[str]

    @classmethod
    def of(cls, history: Sequence[str], question: str) -> Asking | None:
        """None where the question is not Chinese, or asks for no property that has a word of its own, and where there
        is too much to read."""
        if len(question) > MAX_LETTERS or max(map(len, history), default=0) > MAX_SAID_LETTERS:
            return None
        if not is_chinese(question):
            return None
        *stated, last = _clauses(question)
        said = (*history, *stated)
        named, about, rest = _taken_apart(last)
        if not about:
            return None
        if named and said and "《" not in last and not _is_told(named, last, said):
            named, rest = None, f"{named}{rest}"
        if "门票" in about:
            rest += "".join(sorted(set(PAYS.findall("，".join(said)))))
        kinds = frozenset(KINDS[name] for name in about if name in KINDS)
        subject = talked_of(said, kinds) if named is None else named
        turned = "不" if TURNED.search(NOT_TURNED.sub("", _normal_text(last).replace(named or "？", ""))) else ""
        return cls(subject, about, turned + rest, said, frozenset("他她") & frozenset(last))

    @property
    def text(self) -> str:
        """The question by itself, in the same words for all its wordings."""
        return " ".join(filter(None, (self.subject, *sorted(self.about), self.rest)))

    def conflict(self, other: Asking) -> str | None:
        """Why the two can have no common answer, or None."""
        if (self.about, self.rest) != (other.about, other.rest):
            return "facts"
        if self.subject is not None or other.subject is not None:
            is_same = self.subject == other.subject and not _is_changed_copy(self.said, other.said)
            return None if is_same else "context"
        is_another = self.pointing and other.pointing and self.pointing != other.pointing
        return "context" if is_another or not same_but_small_talk(self.said, other.said) else None


def is_chinese(text: str) -> bool:
    return not text.isascii() and any("\u4e00" <= letter <= "\u9fff" for letter in text)


def focus(one: str, other: str) -> tuple[str, str] | None:
    """What each of two questions has in the other's place, letter by letter; None where that carries no content, or
    they share less than they differ in."""
    left, right = _CLOSED.sub("", one), _CLOSED.sub("", other)
    shortest = min(len(left), len(right))
    start = next((n for n in range(shortest) if left[n] != right[n]), shortest)
    end = next((n for n in range(shortest - start) if left[-1 - n] != right[-1 - n]), shortest - start)
    here, there = left[start : len(left) - end], right[start : len(right) - end]
    is_wording = not any(_left(part) or _ASKING.search(part) for part in (here, there))
    return None if is_wording or start + end < max(len(here), len(there)) else (here, there)


def talked_of(history: Sequence[str], kinds: frozenset[str] = frozenset()) -> str | None:
    """What was named last in the history, None in doubt: where several were, something that may be of another kind, or
    where the talk may have turned to what no rule sees."""
    known = known_names(history)
    all_places = kinds == {"place"} and kinds.issuperset(filter(None, known.values()))
    for text in reversed(history):
        plain = _normal_text(text)
        named = {name for name in known if name in plain}
        longest = {one for one in named if not any(one != other and one in other for other in named)}
        if len(longest) == 1 and not BESIDE.search(text):
            name = longest.pop()
            is_of_kind = known[name] in kinds or all_places or (len(known) == 1 and not (kinds and known[name]))
            is_other = re.search(f"{_BY}{re.escape(name)}|{re.escape(name)}{_MORE}", plain)
            return name if is_of_kind and not is_other else None
        if longest or TURNS_AWAY.search(TELLS_OF_IT.sub("", text)):
            return None
    return None


def known_names(history: Sequence[str]) -> dict[str, str]:
    """What was named, with the kind of thing that it is, "" where nothing told."""
    known: dict[str, str] = {}
    for text in history:
        for name, kind in _named(text):
            known[name] = kind or known.get(name, "")
    return known


def _named(text: str) -> Iterator[tuple[str, str]]:
    """The names in a turn, each with the kind of thing it is, "" where nothing tells."""
    clauses = [clause.strip() for clause in re.split(r"[，。！？；,!?;…]+", text)]
    for place, clause in enumerate(clauses):
        for pattern, kind in INTRODUCED:
            for found in pattern.finditer(clause):
                if "《" in found[0]:
                    yield _normal(found["name"]), kind
                    continue
                listed = clauses[place + 1 : place + 3] if _LISTS.search(found[0]) else []
                for part in (found["name"], *listed):
                    yield from ((name, kind) for name in map(_name, _LINE_UP.split(part)) if name)
    if re.search(r"[?？]\s*$", text):
        asked = next(clause for clause in reversed(clauses) if clause or clause is clauses[0])
        named, about, _ = _taken_apart(asked)
        if named and len(named) > 2 and about and not UNLIKE_NAMES.search(named) and "《" not in text:
            kinds = {KINDS[one] for one in about if one in KINDS}
            yield named, kinds.pop() if len(kinds) == 1 else ""


def _taken_apart(clause: str) -> tuple[str | None, frozenset[str], str]:
    """The name in a question, the properties that it asks for, and what is left."""
    plain = _CLOSED.sub("", clause)
    titled = re.search(r"(?<![跟和与像比])《([^》]+)》", plain)
    if titled:
        plain = plain[: titled.start()] + "，" + plain[titled.end() :]
    about, first = set(), len(plain)
    masked = plain
    for name, pattern in ABOUT:
        for found in list(pattern.finditer(masked)):
            about.add(name)
            first = min(first, found.start())
            masked = masked[: found.start()] + "，" * len(found[0]) + masked[found.end() :]
    if titled:
        return _normal(titled[1]), frozenset(about), _left(masked)
    before = TRAILING.sub("", LEADING.sub("", masked[:first]))
    if about and _is_name(before):
        return _normal(before), frozenset(about), _left(masked[first:])
    return None, frozenset(about), _left(masked)


def _is_told(name: str, question: str, said: Sequence[str]) -> bool:
    """Whether a piece of a question is surely a name, and no part of what was talked of before: a short one must have
    been named there."""
    if len(name) <= 2:
        return name in known_names(said)
    after = _normal_text(question).partition(name)[2]
    is_told = JOINED.search(after) or any(name in _normal_text(text) for text in said)
    return bool(is_told) and not UNLIKE_NAMES_ASKED.search(name)


def _left(text: str) -> str:
    return re.sub(r"[，、,：:]+", "", FUNCTION_WORDS.sub("，", text))


def _name(text: str) -> str | None:
    stripped = TRAILING.sub("", LEADING.sub("", re.sub(r"等.{0,6}$", "", text.strip())))
    is_name = _is_name(stripped) and not UNLIKE_NAMES.search(stripped) and not _taken_apart(stripped)[1]
    return _normal(stripped) if is_name else None


def _is_name(text: str) -> bool:
    """Whether a piece of text may be a name: it points at nothing and is more than words that carry none."""
    return (
        2 <= len(text) <= 20
        and not POINTING.search(text)
        and "，" not in text
        and len(_left(text)) >= 2
        and len(_left(text)) * 2 >= len(text)
    )


def _normal(name: str) -> str:
    return _normal_text(re.sub(r"[（(].*", "", name))


def _normal_text(text: str) -> str:
    return re.sub(r"[\s·•・《》【】]", "", text).lower()


def _clauses(text: str) -> list[str]:
    """The clauses of a question that say something, or all of it; the last of them asks."""
    found = [clause for clause in re.split(r"[，。！？；,!?;]", text) if _left(clause) or _taken_apart(clause)[1]]
    return found or [text]


def same_but_small_talk(said: Sequence[str], other: Sequence[str]) -> bool:
    """Whether all that one said was said in the other too, and what was said besides names nothing and asks nothing."""
    here, there = set(said), set(other)
    fewer, more = sorted((here, there), key=len)
    return (bool(fewer) or not more) and fewer <= more and all(map(_is_small_talk, more - fewer))


def _is_changed_copy(said: Sequence[str], other: Sequence[str]) -> bool:
    """Whether one history is the other with something put in its place: what is changed may be what is asked of,
    whatever name was read from it."""
    here, there = set(said), set(other)
    shared = len(here & there)
    return bool(here - there and there - here) and 2 * shared >= min(len(here), len(there))


def _is_small_talk(text: str) -> bool:
    return len(text) <= 16 and not any(_named(text)) and not any(_taken_apart(one)[1] for one in _clauses(text))


_CLOSED = re.compile(r"[\s？?。！!，,~…]+")
_ASKING = re.compile(r"[什谁哪几多何怎啥咋不没]")
_BY = r"(?:距离?|离|位于|邻|靠近|[在近])"  # where another thing is
_MORE = r"(?:\d|系列|第.[集部季])"  # one of several that share a name
_LINE_UP = re.compile(r"、|(?<=[^\s]{2})(?:以及|[和与及])(?=[^\s]{2})")
_LISTS = re.compile(r"有|比如|例如")
