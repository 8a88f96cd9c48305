"""What people put around a question that asks nothing: greetings, thanks, "can you tell me", and ways to say yes."""

from __future__ import annotations

import re

from smartcache.repair import LITERAL

MAX_LETTERS = 400  # a longer text is no question with a word before it
MIN_WORDS = 2  # that must be left of a question
MAX_AGREEING = 14  # words of a plain yes


def plainly(text: str) -> str:
    """The question alone: "Good evening, could you tell me where it is please?" asks "where it is?", and "That works
    for me" says "Yes.".

    As it is where nothing else is left, or where it may be a text to work on.
    """
    if len(text) > MAX_LETTERS:
        return text
    if answer := _answer(text):
        return answer
    if LITERAL.search(text):
        return text
    plain = _LAST.sub(lambda last: last["end"], _INDIRECT.sub("", _FIRST.sub("", text)))
    if plain == text or len(plain.split()) < MIN_WORDS:
        return text
    return plain[0].upper() + plain[1:] if text[0].isupper() else plain


def direct(question: str) -> str:
    """The question without "can you tell me" before it."""
    return INDIRECT.sub("", question, count=1)


def _answer(text: str) -> str | None:
    """ "Yes." or "No.", where a text says that and nothing else."""
    if _NO.fullmatch(text):
        return "No."
    words = re.findall(r"[\w'’]+", text.lower().replace("’", "'"))
    if not words or len(words) > MAX_AGREEING or "?" in text or words[0] in _OPENINGS:
        return None
    is_side = _SIDE.issuperset(words)  # of left and right
    return "Yes." if _AGREES.intersection(words) and _AGREEING.issuperset(words) and not is_side else None


_AGREES = frozenset(
    """yes yeah yep yup ya yea sure ok okay alright right correct exactly absolutely definitely certainly indeed perfect
    perfectly great good fine nice cool awesome excellent wonderful lovely fantastic works confirm confirmed agree
    agreed proceed""".split()
)
_AGREEING = _AGREES | frozenset(
    """that that's thats this it it's is are sounds sound looks look seems seem work would will be to me for i i'm am
    the of all details information everything you got have your you're please go ahead with as so just what want wanted
    do thanks thank very much really""".split()
)
_SIDE = frozenset("the right".split())
_OPENINGS = frozenset("what who which where when why how is are was were would will do does did can could have".split())
_NO = re.compile(r"\W*(?:no|nope|nah)(?:[\s,.!]+(?:thanks|thank\s+you|thx))?\W*", re.I)

_WH = r"(?:who|what|which|where|when|why|how)"
_ASKS = rf"(?=(?:{_WH}|is|are|do|does|did|can|could|will|would|should|i)\b)"
_FIRST = re.compile(
    rf"""^\W*(?:
        (?:hi|hello|hey|good\s+(?:morning|afternoon|evening|day)|greetings)(?:\s+(?:there|all|team|again))?
            (?:\s*[,.!]\s*|\s+{_ASKS})
        |(?:sorry|apologies)\s+(?:to\s+(?:bother|disturb|interrupt)\s+you|for\s+(?:bothering|disturbing)\s+you)
            (?:\s+again)?[,.]?\s+(?:but\s+)?
        |(?:excuse\s+me|pardon\s+me|(?:i\s+have\s+|just\s+)?(?:a\s+|one\s+)?(?:quick|more|short)\s+question)
            \s*[,.:;!-]+\s*
        |(?:ok(?:ay)?|thanks|thank\s+you|great|perfect|all?\s*right|cool|nice|awesome)
            (?:\s+(?:a\s+lot|very\s+much|so\s+much))?\s*[,.!]+\s+
        |(?:pls|plz|please)(?:\s*,\s*|\s+(?=(?-i:[a-z])))
    )+(?=\w)""",
    re.I | re.X,
)
_LAST = re.compile(
    r"""[,.!\s]+(?:(?:pls|plz|please|thanks|thx|thank\s+you|cheers|ty)
        (?:\s+(?:a\s+lot|so\s+much|very\s+much|in\s+advance))?[,\s]*)+(?P<end>\W*)$""",
    re.I | re.X,
)
_LEAD = (
    r"^\W*(?:(?:and|but|so|also|then|ok|okay|well|please|hi|hello|hey|thanks|great|sorry)\W+)*"
    r"(?:(?:can|could|would|will) (?:you|someone|anyone|anybody) (?:please |kindly |also )*"
    r"(?:tell|show|explain|give|let|remind|inform|say|advise)\b(?: to)?(?: (?:me|us))?(?: (?:know|understand))?"
    r"|do you (?:happen to )?(?:know|remember)|(?:please )?(?:tell|show|remind|inform) (?:me|us)"
    r"|(?:please )?let (?:me|us) know"
    r"|(?:i|we)(?:'d| would)? (?:like|want|need|wish|love) to (?:know|find out|learn|ask|understand|see)"
    r"|i(?:'m| am) (?:just )?(?:wondering|curious|asking)|i (?:just )?wonder(?:ed)?|any idea|may i (?:know|ask)"
    r"|(?:can|could) (?:i|we) (?:know|ask|find out|get to know))\b\W*"
)
INDIRECT = re.compile(rf"{_LEAD}(?:(?:about|of|to|on)\s+)?(?=\S)", re.I)
_INDIRECT = re.compile(rf"{_LEAD}(?={_WH}\b)", re.I)
