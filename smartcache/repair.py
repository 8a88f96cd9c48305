"""Spoken slips mended: "in Warsaw, no, sorry, in Europe" asks about Europe."""

from __future__ import annotations

import re

from smartcache.word_classes import AUXILIARIES, BARE_QUESTION_WORDS, BE, DO, QUESTION_WORDS, SAYING
from smartcache.wording import one_of

MAX_LETTERS = 2_000  # a longer text is written, and not spoken
MAX_TAKEN_BACK = 5  # words before the slip among which the one is looked for that begins the sentence anew


def mended(text: str) -> str:
    """The text without what its speaker took back, where a phrase says so ("I mean", "no wait", "or rather", "oops");
    otherwise as it is.

    Taken back is all from the word on with which the sentence begins anew, or else the one word before the phrase.
    """
    if len(text) > MAX_LETTERS or LITERAL.search(text):
        return text
    while found := next((slip for slip in _SLIP.finditer(text) if _breaks_off(text, slip)), None):
        before, after = text[: found.start()].split(), text[found.end() :].split()
        if not after or not any(_plain(word) not in _HEDGES for word in before):
            return text  # "Sorry, I meant Rome" takes back what was said in another turn
        text = " ".join([*before[: _kept(before, _plain(after[0]))], *after])
    return text


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


def _kept(before: list[str], first: str) -> int:
    """How many of the words before a slip stand."""
    earliest = 0 if first in _OPENINGS else max(0, len(before) - MAX_TAKEN_BACK)
    same = [place for place in range(earliest, len(before)) if _plain(before[place]) == first]
    if same:
        return same[0] if first in _OPENINGS else same[-1]
    return 0 if first in _OPENINGS else len(before) - 1


def _plain(word: str) -> str:
    return word.lower().strip(".,;:!?\"'")


LITERAL = re.compile(  # a text to work on, where every word counts
    r"[\"“”«»`]|\b(?:translate|correct|summari[sz]e|proofread|rewrite|paraphrase|repeat|spell|poem|lyrics|phrase|sentence)\b",
    re.I,
)
_OPENINGS = QUESTION_WORDS | (BE - {"am"}) | DO | {"can", "could"}
_SAID = SAYING | {"that"}
_TAKES = (  # before a phrase they need it, unless a question begins there
    BE | DO | frozenset("i'm be been i he she they there so very feel feels what a to use".split())
)
_HEDGES = frozenset("no wait sorry uh um er oh oops actually rather instead yes yeah well".split())
_HEDGE = r"(?:no|wait|sorry|uh+|um+|er+|oh|oops|i\s+mean(?:t)?|actually|rather|instead)"
_SLIP = re.compile(
    rf"""(?<![\s,.;—–-])(?P<gap>[\s,.;—–-]+)(?P<phrase>
        (?:or|no|uh+|um+|er+|oh|oops)[,\s]+(?:no\s+)?
            (?:wait|sorry|i\s+mean(?:t)?|rather|better\s+yet|scratch\s+that|make\s+that|actually|i'm\s+sorry)
        |i\s+mean(?:t)?(?!\s+(?:to|it|that|by)\b)|scratch\s+that|oops
        |no\s+no
        |(?:or\s+)?sorry(?!\s+(?:to|for|that|about|but|if|i)\b)
        |(?:(?<!or\s)no|er+|uh+|um+|ah+|actually)(?=\s+(?:tell\s+me\s+|tell\s+)?{one_of(BARE_QUESTION_WORDS)}\b)
    )
    (?:[,\s]+(?:{_HEDGE}|i\s+want(?:ed)?\s+to\s+(?:know|ask)|i\s+mean(?:t)?\s+to\s+(?:say|ask)
        |tell(?:\s+me)?|what\s+i\s+(?:mean(?:t)?|want(?:ed)?)\s+(?:to\s+(?:say|ask|know)\s+)?(?:was|is)))*
    [\s,.:—–-]+(?=\S)""",
    re.I | re.X,
)
