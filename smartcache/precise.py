"""What must be equal to the letter and is no name: signs of code, units, days, ordinals; and who does it to whom."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smartcache.stems import stem
from smartcache.word_classes import ARTICLES, AUXILIARIES, BE, BE_AFTER_ANOTHER, DO, HE, ORDINALS, OWNERS, SHE
from smartcache.wording import one_of

# Words of a kind of which one text has one and another text another: each line is an axis, each word a side of it.
# Plural and singular are one side, and so are the words that are joined by "=".
_AXES = tuple(
    {word: side for side, words in enumerate(line.split()) for word in words.split("=")}
    for line in (
        "seconds=sec minute=minutes=min hour=hours=hr=hrs day=days=date=dates week=weeks month=months year=years=yr "
        "decade",
        "dollar=dollars=usd euro=euros=eur pound=pounds=gbp yen=jpy yuan=cny rupee=rupees=inr franc=francs=chf",
        "celsius fahrenheit kelvin",
        "mg=milligram=milligrams g=gram=grams kg=kilo=kilos=kilogram=kilograms oz=ounce=ounces lb=lbs ton=tons",
        "ml=milliliter=millilitre l=liter=litre=liters=litres gallon=gallons",
        "mm=millimeter cm=centimeter=centimetre m=meter=metre=meters=metres km=kilometer=kilometers mile=miles ft=feet",
        "thousand million=millions billion=billions trillion",
        "monday=mondays tuesday=tuesdays wednesday=wednesdays thursday=thursdays friday=fridays saturday=saturdays "
        "sunday=sundays",
        "january february april june july august september october november december",
        "today=tonight tomorrow yesterday",
        "adult=adults child=children=kids",
        "all=every some",
        "acute chronic",
        "even odd",
        "profit=profits loss=losses",
        f"{'='.join(HE)} {'='.join(SHE)}",
        "red blue green yellow black white orange purple pink brown grey=gray",
        "small medium large",
    )
)
FIRST_AXIS = 10_000  # above all others
_SIDES = {
    word: [(axis, sides[word]) for axis, sides in enumerate(_AXES, start=FIRST_AXIS) if word in sides]
    for word in {word for sides in _AXES for word in sides}
}

_UNITS = tuple("am pm kg km cm mm kb mb gb tb ms mph ghz mhz min hr hrs".split())
_UNIT = re.compile(rf"(?<![\w.])(\d+(?:\.\d+)?)({'|'.join(_UNITS)})\b", re.I)
_MEASURED = re.compile(rf"(?<=\d )(?:{'|'.join(_UNITS)})\b", re.I)
_MEASURES = FIRST_AXIS - 3  # the axis of the units that follow a number

_FROM_NOW = FIRST_AXIS - 4  # the axis of "this week", "next week" and "last week"
_TIMES = {
    word: side
    for side, words in enumerate(("this current", "next coming following upcoming", "last past previous"))
    for word in words.split()
}
_NEARBY = re.compile(  # "the last week of May" is no such time
    rf"\b({one_of(_TIMES)}) (?:week|weekend|month|year|quarter|semester|term|season|night|summer|winter|spring|autumn"
    r"|fall|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b(?! of\b)",
    re.I,
)
_ORDINALS = (ORDINALS - {"first", "second"}) | {"latter", "former"}
_SECOND = re.compile(r"\bthe second\b|\bsecond (?:one|option|answer|item|step|time|thing|point)\b", re.I)
_PARTS = frozenset("half quarter twice thrice double triple".split())
_CODE = re.compile(
    r"(?<!\w)--?[A-Za-z][\w-]*"  # -l and -L
    r"|(?<=\s)(?:[=<>!&|+*/%~^]{2,3}|[<>=])(?=\s)"  # == and ===
    r"|(?<![\w.])\.[A-Za-z]\w+"  # .net
    r"|(?<!\w)\w\s?(?:[-+*/^]|[<>=!]=?)\s?\w(?!\w)|(?<![\w!])!(?=\w)"  # a+b, x<y, !x
    r"|(?<!\w)(?:\+\+|--)\w+|\b\w+(?:\+\+|--)(?!\w)|\b[A-Za-z][+#]+(?!\w)"  # ++x, x++, C#
    r"|\b\w+(?=\(\))|(?<!\w)\*{1,2}\w+"  # strip(), **kwargs
)
_DIGIT = re.compile(r"\d")
_SIGN = re.compile(r"[-=<>!&|+*/%~^#(.]")  # without any of these there is no code
_OBJECT = re.compile(rf"\bwhom?\s+{one_of(DO)}\b", re.I)  # "Who did A buy?"
_SUBJECT = re.compile(  # "Who bought A?"
    rf"\bwho\s+(?!(?:{one_of(AUXILIARIES)}|else|to)\b)\w+"
    rf"|\bwho\s+{one_of(BE - {'am'})}\b[^?]{{0,80}}\bby\b|\bby whom\b",
    re.I,
)
_PASSIVE = re.compile(rf"\b(?:{one_of(BE - {'am'} | BE_AFTER_ANOTHER)}|get|got)\b(?:\s+\w+){{0,4}}?\s+\w+\s+by\b", re.I)
PASSIVE = (FIRST_AXIS - 1, 0)
_UNDERGOES = re.compile(rf"\b(?:{one_of(BE - {'am'} | BE_AFTER_ANOTHER)}|get|got)\s+(?:\w+ly\s+)?([\w-]+)", re.I)
_DOES = re.compile(
    rf"(?:^|[,;]\s+|\band\s+)(?:i|we|((?:{one_of(OWNERS | ARTICLES)} )?\w+))\s+(?:(?:just|have|has|had) )?([\w-]+)",
    re.I,
)
_LONG_WORD = re.compile(r"\w{3,}")
_ROMAN = re.compile(r"(?<=\w )(?:i{2,3}|iv|vi{1,3}|ix)\b", re.I)


def is_done_to(text: str, other: str) -> bool:
    """Whether one text says who did it and the other to whom it was done, or that somebody else did it: "I was sued",
    "I sued them"; "I was bitten by a dog", "My dog bit them"; "I hit a car", "Someone hit my car"."""
    undergone, also = ({stem(verb.lower()) for verb in _UNDERGOES.findall(one)} for one in (text, other))
    doing, also_doing = map(_doing, (text, other))
    if (undergone - also) & {verb for verb, _ in also_doing} or (also - undergone) & {verb for verb, _ in doing}:
        return True
    if _by_others(doing - also_doing) & also_doing or _by_others(also_doing - doing) & doing:
        return True
    words, others = (set(map(stem, _LONG_WORD.findall(one.lower()))) for one in (text, other))
    return not words.isdisjoint(others) and bool(_PASSIVE.search(text)) != bool(_PASSIVE.search(other))


def _doing(text: str) -> set[tuple[str, bool]]:
    """The stems of what is done in a text, and whether its speaker does it."""
    return {(stem(verb.lower()), not who) for who, verb in _DOES.findall(text)}


def _by_others(doing: set[tuple[str, bool]]) -> set[tuple[str, bool]]:
    """The same done by the other side: by others what the speaker does."""
    return {(verb, not is_own) for verb, is_own in doing}


def units_apart(text: str) -> str:
    """The text with a space between a number and its unit: "5 pm" for "5pm"."""
    return _UNIT.sub(r"\1 \2", text)


def precise_facts(text: str, words: frozenset[str]) -> Iterator[str]:
    """Signs of code as they are written; ordinals, parts and Roman numbers. `words`: of the text, in small letters."""
    if _SIGN.search(text):
        yield from _CODE.findall(text)
    yield from words & _ORDINALS
    yield from words & _PARTS
    small, is_ascii = text.lower(), text.isascii()  # of other letters some count as one of these in another case
    if ("second" in small or not is_ascii) and _SECOND.search(text):
        yield "2nd"
    if not is_ascii or " i" in small or " v" in small:
        yield from (found.lower() for found in _ROMAN.findall(text))


def precise_sides(text: str, words: frozenset[str]) -> Iterator[tuple[int, int]]:
    """(axis, side) of each word that is one of a kind, as Monday is of the days; of a time told from now, whether it is
    this, the next or the last; and of "who", whether it asks for who does something or for whom it is done to."""
    if _DIGIT.search(text):
        units = (unit.lower().replace("hrs", "hr") for unit in _MEASURED.findall(text))
        yield from ((_MEASURES, _UNITS.index(unit)) for unit in units if unit in _UNITS)  # "ſ" is an "s" to a pattern
    if "who" in words or "whom" in words:
        if _OBJECT.search(text):
            yield FIRST_AXIS - 2, 0
        elif _SUBJECT.search(text):
            yield FIRST_AXIS - 2, 1
    if words & _TIMES.keys():
        yield from ((_FROM_NOW, _TIMES[when.lower()]) for when in _NEARBY.findall(text) if when.lower() in _TIMES)
    if "by" in words and _PASSIVE.search(text):
        yield PASSIVE
    for word in words & _SIDES.keys():
        yield from _SIDES[word]
