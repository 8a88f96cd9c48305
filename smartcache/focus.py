"""Where two texts differ: what is left once the words that both begin and end with are set aside."""

from __future__ import annotations

from smartcache.facts import asks_of
from smartcache.stems import stem
from smartcache.wording import ASKING, LIGHT_WORDS, POINTING

LONG_FRAME_WORDS = 8  # a frame as long as this is a template, or a question but for one addition
SHORT_FRAME_WORDS = 1
LONG_NAME_WORDS = 2


def focus(one: str, other: str) -> tuple[str, str] | None:
    """What each of two texts has in the other's place, or None where they differ in wording alone.

    In "Is it free for students?" and "Is it free for teachers?" that is "students" and "teachers", which must mean the
    same for the two to be one question, however near the whole texts lie. Texts that share less than they differ in are
    another wording: None. So are a word put in where little is shared, light words ("can" for "do"), the same
    words in another order or form, and two ways to ask when, where, who or how many.
    """
    words, others = one.split(), other.split()
    start, end = _shared(words, others)
    left, right = words[start : len(words) - end], others[start : len(others) - end]
    frame = start + end
    weighty = [_weighty(part) for part in (left, right)]
    if not any(part - POINTING for part in weighty):
        return None  # "it" and "that"; he and she are told apart elsewhere
    if heads := _heads(left, right, words[len(words) - end :]):
        return heads
    if frame < SHORT_FRAME_WORDS or weighty[0] == weighty[1]:
        return None
    if frame < LONG_FRAME_WORDS and (not all(weighty) or frame < max(len(left), len(right))):
        return None
    asks = asks_of(" ".join(left))
    if asks and asks == asks_of(" ".join(right)):
        return None
    if not any(part - ASKING for part in weighty) and (asks := asks_of(one)) and asks == asks_of(other):
        return None  # "How much does it cost?", "What does it cost?"
    return " ".join(left), " ".join(right)


def _heads(left: list[str], right: list[str], shared: list[str]) -> tuple[str, str] | None:
    """What is asked of the same thing, as "types" and "causes" before "of inflation"; "" where the thing itself is."""
    if shared and _plain(shared[0]) == "of" and left and right:
        heads = left[-1], right[-1]
        return heads if _weighty([heads[0]]) != _weighty([heads[1]]) else None
    for one, other in ((left, right), (right, left)):
        if shared and not _weighty(one) and len(other) > 1 and _plain(other[-1]) == "of" and _weighty(other):
            return " ".join(left), " ".join(right)
    return None


def unnamed(one: str, other: str, names: frozenset[str]) -> tuple[str, str] | None:
    """What two texts say of a long name that both have, or None where there is none, or one says all that the other
    does.

    A long name makes any two texts about it near: "Who criticized Richard Pipes?" and "What is Richard Pipes known
    for?" lie as near as two wordings of one question do.
    """
    if len(names) < LONG_NAME_WORDS:
        return None
    left, right = (
        " ".join(word for word in text.split() if _plain(word).removesuffix("'s").removesuffix("’s") not in names)
        for text in (one, other)
    )
    same_kind = asks_of(left) == asks_of(right)
    said, also_said = (_weighty(text.split()) - (ASKING if same_kind else frozenset()) for text in (left, right))
    return None if said <= also_said or also_said <= said else (left, right)


def weighty_stems(text: str) -> frozenset[str]:
    """The stems of all words but the lightest, those that ask and those that point."""
    return frozenset(stem for _, stem in weights(text))


def weights(text: str) -> list[tuple[str, str]]:
    """Those words, as they come and as they stand, each with its stem."""
    stems = ((word, stem(plain)) for word in text.split() if (plain := _plain(word)) and plain not in LIGHT_WORDS)
    return [(word, stem) for word, stem in stems if stem not in ASKING and stem not in POINTING]


def _shared(words: list[str], others: list[str]) -> tuple[int, int]:
    """How many words both begin with, and how many of the rest both end with; case and punctuation aside."""
    plain, plain_others = [*map(_plain, words)], [*map(_plain, others)]
    shortest = min(len(words), len(others))
    start = next((n for n in range(shortest) if plain[n] != plain_others[n]), shortest)
    rest = shortest - start
    return start, next((n for n in range(rest) if plain[-1 - n] != plain_others[-1 - n]), rest)


def _weighty(words: list[str]) -> frozenset[str]:
    return frozenset(stem(plain) for word in words if (plain := _plain(word)) and plain not in LIGHT_WORDS)


def _plain(word: str) -> str:
    plain = word.lower().strip(".,;:!?¿¡()[]{}\"'“”‘’«»…")
    return "what" if plain == "which" else plain
