"""What people put around a question that asks nothing: greetings, thanks, "can you tell me", and ways to say yes."""

from __future__ import annotations

import re

from smartcache.repair import LITERAL
from smartcache.word_classes import (
    AUXILIARIES,
    AYES,
    BARE_QUESTION_WORDS,
    BE,
    DENIED_AUXILIARIES,
    GREETINGS,
    JOINING,
    LINKING,
    NOES,
    OKAYS,
    OPENING_AUXILIARIES,
    PLEAS,
    PRAISE,
    PREPOSITIONS,
    SAYING,
    THANKS,
)
from smartcache.wording import one_of

MAX_LETTERS = 400  # a longer text is no question with a word before it
MIN_WORDS = 2  # that must be left of a question


def plainly(text: str, before: str = "") -> str:
    """The question alone: "Good evening, could you tell me where it is please?" asks "where it is?", and "That works
    for me" says "Yes." to the turn `before` it.

    As it is where nothing else is left, or where it may be a text to work on.
    """
    if len(text) > MAX_LETTERS:
        return text
    if answer := _answer(text, before):
        return answer
    if LITERAL.search(text):
        return text
    plain = _FIRST.sub("", text)
    if (last := _LAST.search(plain)) and plain[: last.start()].rpartition(" ")[2].lower() not in _TAKES:
        plain = plain[: last.start()] + last["end"]
    plain = _INDIRECT.sub("", plain)
    if plain == text or len(plain.split()) < MIN_WORDS:
        return text
    return plain[0].upper() + plain[1:] if text[0].isupper() else plain


def without_greeting(text: str) -> str:
    """What is left of a turn without greetings and offers: nothing of "Hello! How can I help you today?"."""
    return _GREETING.sub(" ", text) if len(text) <= MAX_LETTERS else text


def direct(question: str) -> str:
    """The question without "can you tell me" before it."""
    return INDIRECT.sub("", question, count=1)


def _answer(text: str, before: str) -> str | None:
    """ "Yes." or "No.", where a text says that and nothing else. Praise ("Perfect!") agrees to what was to be confirmed
    alone, and where nobody asked which: a hotel may be "perfect" or "fine"."""
    said, is_which = text.lower().replace("’", "'"), bool(_ASKS_WHICH.search(before))
    may_do = "?" in before and not is_which
    if _NO.fullmatch(text) or (may_do and _DO_NOT.fullmatch(said)):
        return "No."
    if "?" in text or _OR.search(before):
        return None
    said = _THANKS.sub("", said)
    parts, asked = [part for part in _PARTS.split(said) if part], frozenset(_WORD.findall(before.lower()))
    is_praise = not is_which and not asked & PRAISE & frozenset(_WORD.findall(said))
    said_yes = [bool(_YES.fullmatch(part) or (may_do and _DO.fullmatch(part))) for part in parts]
    if _TO_CONFIRM.search(before):
        said_yes = [yes or bool(_ACKNOWLEDGES.fullmatch(part)) for yes, part in zip(said_yes, parts, strict=True)]
    if not all(yes or (is_praise and _PRAISE.fullmatch(part)) for yes, part in zip(said_yes, parts, strict=True)):
        return None
    return "Yes." if any(said_yes) or (parts and _CONFIRM.search(before)) else None


_PARTS = re.compile(r"\s*[,.!;:]+\s*|\s+and\s+")
_PLEASE = rf"(?:{one_of(PLEAS | THANKS)}|thank\s+you|ty)"
_THANKS = re.compile(rf"[\s,.!]*\b{_PLEASE}(?: (?:a lot|very much|so much))?\s*(?=[,.!;:]|$)")
_WH = one_of(BARE_QUESTION_WORDS)
_AYE = one_of(AYES)
_THIS = r"(?:that|it|this|all|everything)"
_YES = re.compile(
    rf"(?:{_AYE} )?(?:{_AYE}|sure(?: thing)?|correct|exactly|absolutely|definitely|certainly|indeed"
    r"|(?:i )?(?:confirm|confirmed|agree|agreed)|(?:please )?(?:do (?:that|it|so)|proceed|go ahead)|please do"
    rf"|{_THIS}(?:'?s| is| are)? (?:all )?(?:right|correct)"
    rf"|{_THIS} (?:works|(?:will|would|should) (?:work|do))|works(?= for me)|(?:{_THIS} )?suits me(?: well)?"
    r"|i(?:'d| would) like that"
    r"|(?:you're|you are|that sounds) (?:right|correct)|you got (?:it|that)(?: right)?"
    r"|(?:the|all) (?:information|details|info)(?: you have)?(?: is| are)? (?:right|correct)"
    r"|that(?:'s| is) (?:exactly )?what i (?:want|need|wanted)(?: to do)?)(?: for me)?"
)
_PRAISE = re.compile(
    rf"(?:{_AYE} )?(?:{_THIS}(?:'?s|'?ll be| is| was| would be| will be)? )?(?:(?:all )?(?:sounds|looks|seems) )?"
    r"(?:all |just |very )?"
    rf"(?:{one_of(PRAISE | OKAYS)}|alright|right)"
    r"(?: (?:for|to|with) me)?"
)
_ACKNOWLEDGES = re.compile(rf"(?:{_AYE} )?(?:i )?(?:got it|that(?:'s| is) it|(?:please )?continue)")
_TO_CONFIRM = re.compile(r"\b(?:confirm\w*|verify|correct)\b", re.I)  # and not "Shall I stop here?"
_WORD = re.compile(r"\w+")
_SOMEBODY = rf"(?:{one_of(AYES | NOES)} )?(?:i|it|we|they)"
_DO = re.compile(rf"{_SOMEBODY} {one_of(AUXILIARIES)}")
_DO_NOT = re.compile(
    rf"\W*(?:{one_of(NOES)}[\s,.!]+)?{_SOMEBODY}(?: (?:{one_of(DENIED_AUXILIARIES)}|{one_of(AUXILIARIES)} not)"
    r"|(?:'m|'s|'re) not)\W*"
)
_ASKS_WHICH = re.compile(rf"\b{_WH}\b[^.!?]{{0,{MAX_LETTERS}}}\?", re.I)  # "right" may be a side, and "fine" how it is
_OR = re.compile(r"\bor\b|\b(?:anything|something) else\b|\bhow (?:are|do)\b", re.I)  # no yes answers that
_CONFIRM = re.compile(
    r"\b(?:confirm\w*|verify|correct|right|shall i|should i|would you like|do you want)\b|\bok(?:ay)?\?"
    rf"|(?:^|[.!?]\s)(?![^.!?]*\b{_WH}\b)[^.!?]{{3,200}}\?\s*$",  # "At seven?"
    re.I,
)
_TAKES = (  # a word before "please" or "thanks" that speaks of it
    (BE - {"am"})
    | SAYING
    | PREPOSITIONS
    | JOINING
    | frozenset("mean means word words called spell write like use uses using used put puts between".split())
)
_NO = re.compile(rf"\W*{one_of(NOES)}(?:[\s,.!]+{_PLEASE})?\W*", re.I)

_ASKS = rf"(?={one_of(BARE_QUESTION_WORDS | OPENING_AUXILIARIES | {'i'})}\b)"
_FIRST = re.compile(
    rf"""^\W*(?:
        (?:{one_of(GREETINGS)}|good\s+(?:morning|afternoon|evening|day)|greetings)(?:\s+(?:there|all|team|again))?
            (?:\s*[,.!]\s*|\s+{_ASKS})
        |(?:sorry|apologies)\s+(?:to\s+(?:bother|disturb|interrupt)\s+you|for\s+(?:bothering|disturbing)\s+you)
            (?:\s+again)?[,.]?\s+(?:but\s+)?
        |(?:thanks|thank\s+you)\s+for\s+(?:(?:your|all|the|that|so|much|help|support|info|information|reply|answer|quick|fast)\s*)+
            [,.!]+\s+
        |(?:excuse\s+me|pardon\s+me|(?:i\s+have\s+|just\s+)?(?:a\s+|one\s+)?(?:quick|more|short)\s+(?:question|thing))
            \s*[,.:;!-]+\s*
        |(?:{one_of(OKAYS | PRAISE - {"good", "fine", "excellent", "wonderful", "lovely"})}
            |thanks|thank\s+you|all?\s*right)
            (?:\s+(?:a\s+lot|very\s+much|so\s+much))?\s*[,.!]+\s+
        |{one_of(PLEAS)}(?:\s*,\s*|\s+(?=(?-i:[a-z])))
    )+(?=\w)""",
    re.I | re.X,
)
_GREETING = re.compile(
    rf"\b(?:{one_of(GREETINGS)}|good (?:morning|afternoon|evening|day)|greetings|welcome(?: back)?)\b(?: there\b)?"
    r"|\b(?:how|what) (?:can|may|could) (?:i|we) (?:help|assist|do for) you(?: with)?(?: (?:today|now|then))?\b"
    r"|\b(?:nice|good|great) to (?:meet|see|hear from) you\b|\bhow are you(?: (?:doing|today))*\b",
    re.I,
)
_LAST = re.compile(
    rf"""[,.!\s]+(?:(?:{_PLEASE}|cheers)
        (?:\s+(?:a\s+lot|so\s+much|very\s+much|in\s+advance))?[,\s]*)+(?P<end>\W*)$""",
    re.I | re.X,
)
_LEAD = (
    rf"^\W*(?:(?:{one_of(LINKING - {'or'} | OKAYS | GREETINGS)}|well|please|thanks|great|sorry)\W+)*"
    r"(?:(?:can|could|would|will) (?:you|someone|anyone|anybody) (?:please |kindly |also )*"
    r"(?:tell|show|explain|give|let|remind|inform|say|advise)\b(?: to)?(?: (?:me|us))?(?: (?:know|understand))?"
    r"|would you mind (?:telling|showing|explaining to) (?:me|us)"
    r"|do you (?:happen to )?(?:know|remember)|(?:please )?(?:tell|show|remind|inform) (?:me|us)"
    r"|(?:please )?let (?:me|us) know"
    r"|(?:i|we)(?:'d| would)? (?:like|want|need|wish|love) to (?:know|find out|learn|ask|understand|see)"
    r"|i(?:'m| am| was) (?:just )?(?:wondering|curious|asking)|i (?:just )?wonder(?:ed)?|any idea|may i (?:know|ask)"
    r"|(?:can|could) (?:i|we) (?:know|ask|find out|get to know))\b\W*"
)
INDIRECT = re.compile(rf"{_LEAD}(?:(?:about|of|to|on)\s+)?(?=\S)", re.I)
_INDIRECT = re.compile(rf"{_LEAD}(?={_WH}\b)", re.I)
