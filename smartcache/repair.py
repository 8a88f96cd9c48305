"""Spoken slips mended: "in Warsaw, no, sorry, in Europe" asks about Europe."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smartcache.word_classes import AUXILIARIES, AYES, BARE_QUESTION_WORDS, BE, DO, HAVE, QUESTION_WORDS, SAYING
from smartcache.wording import NUMBER_WORDS, one_of

MAX_LETTERS = 2_000  # a longer text is written, and not spoken
MAX_SLIPS = 10
MAX_BROKEN_OFF = 3  # words before "instead", where it may stand for "or instead": "How instead what is it?"
MAX_TAKEN_BACK = 5  # words before the slip among which the one is looked for that begins the sentence anew


def mended(text: str) -> str:
    """The text without what its speaker took back, where a phrase says so ("I mean", "no wait", "or rather", "oops"),
    or where the sentence begins anew after "no", "uh" and the like; otherwise as it is.

    Taken back is all from the word on with which the sentence begins anew, or else the one word, the one name, or the
    one number before the phrase.
    """
    if len(text) > MAX_LETTERS or LITERAL.search(text):
        return text
    for _ in range(MAX_SLIPS):
        if not (words := _mended_once(text)):
            break
        text = " ".join(words)
    return text


def _mended_once(text: str) -> list[str]:
    """The words that are left without the first slip; none where there is none."""
    for slip in _SLIP.finditer(text):
        if _breaks_off(text, slip):
            before, after = _around(text, slip)
            place = _begins_anew(before, after)
            return [*before[: -1 if place is None else place], *after] if _says(before, after) else []
    for halt in _HALT.finditer(text):
        before, after = _around(text, halt)
        if _says(before, after) and (place := _shown_anew(before, halt["halt"], after)) is not None:
            return [*before[:place], *after]
    return []


def _around(text: str, slip: re.Match[str]) -> tuple[list[str], list[str]]:
    before = text[: slip.start()].split()
    return before[: len(before) - (_plain(" ".join(before[-1:])) == "or")], text[slip.end() :].split()


def _says(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether there is something to take back: "Sorry, I meant Rome" takes back what was said in another turn."""
    return bool(after) and not all(_FILLER.fullmatch(_plain(word)) for word in before)


def _breaks_off(text: str, slip: re.Match[str]) -> bool:
    """Whether a phrase stands by itself: it is no choice ("Is it red or rather pink?"), no title ("the song Sorry"),
    and not what the word before it speaks of ("to say sorry", "is there no wait time")."""
    before, phrase, after = text[: slip.start()], slip["phrase"], text[slip.end() :]
    if phrase[:2].lower() == "or":
        return _plain((before.split() or [""])[0]) not in AUXILIARIES
    if slip["gap"].strip() or not before or before[-1] in "?!":
        return True
    last, is_title = _plain(before.split()[-1]), phrase[0].isupper() and phrase[1:2].islower()
    return not is_title and last not in _SAID and (last not in _TAKES or _plain(after.split()[0]) in _OPENINGS)


def _begins_anew(before: Sequence[str], after: Sequence[str]) -> int | None:
    """From which of the words before a slip on it is taken back; None where no word shows it."""
    first = _plain(after[0])
    if first in _OPENINGS:
        return next((place for place, word in enumerate(before) if _plain(word) == first), 0)
    for place in range(len(before) - 1, max(0, len(before) - MAX_TAKEN_BACK) - 1, -1):
        if _plain(before[place]) == first:
            return place
    if not before:
        return None
    if _is_number(before[-1]) and _is_number(after[0]):
        return len(before) - 1
    place = len(before)
    while place > 1 and _is_name(before[place - 1]) and _is_name(after[0]):
        place -= 1
    return place if place < len(before) else None


def _shown_anew(before: Sequence[str], halt: str, after: Sequence[str]) -> int | None:
    """The same behind a mere "no" or "uh", which may also mean what it says or fill a pause: only where it shows."""
    first, second = _plain(after[0]), _plain(" ".join(after[1:2]))
    is_choice = halt[:2].lower() == "or" and (
        _plain(before[0]) in AUXILIARIES or ("no" not in halt and _CHOICE.search(" ".join(before)))
    )
    if is_choice or before[-1][-1] in ".?!" or _plain(before[-1]) in _SAID:
        return None
    if first in _OPENINGS:  # "What happens uh when I cancel?" does not begin anew
        asks = first in BARE_QUESTION_WORDS and (first not in _JOINING or second in AUXILIARIES)
        may_mean_it = _INSTEAD.match(halt) and len(before) > MAX_BROKEN_OFF
        return _begins_anew(before, after) if asks and not may_mean_it else None
    is_title = halt == "no" and before[-1][-1].isalpha() and _is_name(after[0])  # "Ashita no Joe"
    is_unit = _is_number(before[-1]) and len(halt.split()) == 1  # "100 Ah"
    is_list = any(_plain(word) in ("or", "and") for word in after[1:MAX_TAKEN_BACK])  # "Norway, um, Oslo or Bergen"
    return None if is_title or is_unit or is_list or _LATER.search(halt) else _begins_anew(before, after)


def _is_name(word: str) -> bool:
    plain = word.strip(".,;:!?\"'()")
    return not plain.islower() and plain[:1].isalpha() and plain not in ("I", "I'm")


def _is_number(word: str) -> bool:
    plain = _plain(word)
    return plain[:1].isdigit() or plain in NUMBER_WORDS


def _plain(word: str) -> str:
    return word.lower().strip(".,;:!?\"'")


LITERAL = re.compile(  # a text to work on, where every word counts
    r"[\"“”«»`]|\b(?:translate|correct|summari[sz]e|proofread|rewrite|paraphrase|repeat|spell|poem|lyrics|phrase|sentence)\b",
    re.I,
)
_OPENINGS = QUESTION_WORDS | (BE - {"am"}) | DO | {"can", "could"}
_JOINING = frozenset("when where".split())
_SAID = SAYING | {"that"}
_TAKES = (  # before a phrase they need it, unless a question begins there
    BE | DO | HAVE | frozenset("i'm be been i he she they there so very feel feels what a to use with".split())
)
_UH = r"(?:uh+|um+|er+m?|ah+|ugh+|hm+|oo+[hf]*|(?:wh)?oops|shoot|dang(?:\s+it)?|darn(?:\s+it)?)"
_HEDGE = rf"(?:nope|no|wait|sorry|oh|{_UH}|i\s+mean(?:t)?|i\s+guess|actually|rather|instead|well)"
_FILLER = re.compile(rf"{_HEDGE}|{one_of(AYES)}|or|")
_SLIP = re.compile(
    rf"""(?<![\s,.;—–-])(?P<gap>[\s,.;—–-]+)(?P<phrase>
        (?:or|no|oh|{_UH})[,\s]+(?:no\s+)?
            (?:wait|sorry|i\s+mean(?:t)?|rather|better\s+yet|scratch\s+that|make\s+that|actually|i'm\s+sorry
                |(?:i\s+|that\s+)?should\s+(?:be|say))
        |no[,\s]+{_UH}|{_UH}[,\s]+(?:no|instead)\b(?=[\s,]+{_UH}|\s+\w)
        |i\s+mean(?:t)?(?!\s+(?:to|it|that|by)\b)|scratch\s+that|oops
        |no\s+no
        |(?:or\s+)?sorry(?!\s+(?:to|for|that|about|but|if|i)\b)
    )
    (?:[,\s]+(?:{_HEDGE}|(?:change|make)\s+(?:that|it)(?:\s+to)?|i\s+want(?:ed)?\s+to\s+(?:know|ask)
        |i\s+mean(?:t)?\s+to\s+(?:say|ask)|let\s+me\s+(?:say|ask)
        |tell(?:\s+me)?|what\s+i\s+(?:mean(?:t)?|want(?:ed)?)\s+(?:to\s+(?:say|ask|know)\s+)?(?:was|is)))*
    [\s,.:—–-]+(?=\S)""",
    re.I | re.X,
)
_HALT = re.compile(
    rf"""(?<![\s,.;—–-])[\s,.;—–-]+(?P<halt>
        (?:(?<!yes\s)or[,\s]+(?:no|{_UH})|(?<!or\s)(?-i:no|nope)|(?-i:{_UH})|actually|never\s?mind|rather|instead)
        (?:[,\s]+(?:{_HEDGE}|(?:change|make)\s+(?:that|it)(?:\s+to)?|let\s+me\s+(?:say|ask)|tell(?:\s+me)?))*
    )[\s,.:—–-]+(?=\S)""",
    re.I | re.X,
)
_LATER = re.compile(r"actually|never\s?mind|rather|instead", re.I)
_INSTEAD = re.compile(r"rather|instead", re.I)
_CHOICE = re.compile(r"\b(?:which|whether|between|either|both|prefer|than|\w+er)\b", re.I)
