"""Why two questions do not share an answer, in words that need no knowledge of the cache."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smartcache.facts import Facts
from smartcache.focus import weighty_stems
from smartcache.signals import Told

REFUSALS = {
    "new": "nothing is stored in this scope, for this model, system prompt and options",
    "far": "they are not near enough",
    "facts": "they differ in a name, a number or a quoted word",
    "polarity": "one asks the opposite of the other",
    "order": "the same words stand in each other's place",
    "context": "what they lean on in their conversations differs",
    "exact_only": "the stored answer is for the same request only",
    "stale": "a document that the answer rests on changed, or it has to be searched for anew",
    "expired": "the answer is too old",
    "reported_wrong": "the answer was reported wrong for this question, or for one nearer to it",
    "too_long": "the question, or what it leans on, is longer than the embedder reads",
    "unknown_words": "the question holds words that the embedder does not know",
    "broken_text": "the conversation holds half a sign (a lone surrogate), which no embedder reads",
    "non_text": "the user sent more than text",
    "no_question": "the last turn is not the user's",
    "empty_question": "the question is empty",
    "exact_mode": "only the same request is compared here",
    "refresh": "a new answer is asked for",
    "sampling": "the request asks for a draw, and another draw would be another answer",
    "requested": "the request passes the cache by",
    "unstable_key": "an option has no stable form",
}
SIGNALS = {
    "meaning": "how near the two lie, each with what was said before it",
    "wording": "how near the two questions lie by themselves",
    "stands_least": "how surely the question that leans more stands alone",
    "stands_most": "how surely the question that leans less stands alone",
    "histories": "how many of the two lean on what was said before",
    "one_after": "just one of the two was asked after anything",
    "shared_here": "how much of the one question is in the other",
    "shared_there": "how much of the other question is in the one",
    "shared": "how many words of the two questions are shared",
    "told_here": "how much of the one question is in the other dialogue",
    "told_there": "how much of the other question is in the one dialogue",
    "unsaid": "names and numbers that only one question has",
    "states_opposite": "one user said the opposite of the other",
    "clashes": "names and numbers that a user told and the other dialogue lacks, on the side with fewer",
    "extras": "names and numbers that a user told and the other dialogue lacks, on the side with more",
    "reply_clashes": "yes here and no there to the same question",
    "reply_extras": "questions with yes or no that only one user was asked",
    "last_turns": "how near the turns just before lie",
    "said": "how near lies what the users said before",
    "same_words": "the two questions have the same words",
    "asks_apart": "how far apart lies what is asked for: when, where, who",
    "aspects_apart": "what one asks of its subject and the other does not speak of",
    "left_here": "words of the one question that the other lacks",
    "left_there": "words of the other question that the one lacks",
    "words_here": "words of the one question that the other lacks, small ones too",
    "words_there": "words of the other question that the one lacks, small ones too",
    "words_shared": "how many words of the two questions are shared, small ones too",
    "last_least": "words of the turns just before that only one has, on the side with fewer",
    "last_most": "words of the turns just before that only one has, on the side with more",
    "goes_on": "how many of the two ask for what is next or else",
    "facts_agree": "no rule stands against the two",
    "leaned_on": "how near lies what the two lean on",
    "same_names": "the users named the same things",
    "focus": "how near lies what stands in each other's place in the two",
    "left_alike": "how near lie the words that only one question has",
    "told_beside": "sentences about their case that only one user told",
}  # of each signal, what a reader may make of it
MAX_NAMED = 4  # words or facts in one reason


def reasons(asked: Told, stored: Told, refusal: str | None) -> tuple[str, ...]:
    """What stands against a stored answer, the plainest first; what is in the texts is told of a hit too."""
    differences = [*_asks_apart(asked, stored), *_differences(asked, stored)]
    told_below = (None, "far", "facts", "context", *(["polarity"] if _asks_apart(asked, stored) else []))
    found = [*([] if refusal in told_below else [_refused(refusal)]), *differences]
    if refusal in ("facts", "context") and not found:
        found = [_refused(refusal)]
    return tuple(dict.fromkeys(found))


def _refused(refusal: str | None) -> str:
    return REFUSALS.get(refusal or "", refusal or "")


def _asks_apart(asked: Told, stored: Told) -> list[str]:
    if asked.asks and stored.asks and asked.asks != stored.asks:
        return [f"one asks {_asking(asked.asks)}, the other {_asking(stored.asks)}"]
    return []


def _differences(asked: Told, stored: Told) -> Iterator[str]:
    yield from _unmentioned(asked.question, stored, asked.dialogue.question)
    yield from _unmentioned(stored.question, asked, stored.dialogue.question)
    for told, other in ((asked, stored), (stored, asked)):
        said = "\n".join(text for role, text in told.dialogue.spoken if role == "user")
        yield from _unmentioned(told.user, other, said, "said before, ")
    for question, reply in asked.replies.items():
        if stored.replies.get(question, reply) != reply:
            yield f"the user answered {_yes(reply)} here and {_yes(not reply)} there to the same question"
    if bool(asked.dialogue.spoken) != bool(stored.dialogue.spoken):
        one = "the question asked" if asked.dialogue.spoken else "the stored question"
        yield f"only {one} has turns before it"
    if asked.dialogue.is_chinese or stored.dialogue.is_chinese:
        return  # written without spaces: a word would be all of it
    here, there = _others(asked, stored), _others(stored, asked)
    if here and there:
        yield f"one says {here}, the other {there}"
    elif here or there:
        yield f"only one says {here or there}"


def _unmentioned(facts: Facts, other: Told, text: str, before: str = "") -> Iterator[str]:
    missing = sorted(fact for fact in facts.hard if not other.mentions(fact))[:MAX_NAMED]
    if missing:
        named = [_as_written(fact, text) for fact in missing]
        yield f"{before}{_listed(named)} {'is' if len(named) == 1 else 'are'} not mentioned in the other"


def _others(told: Told, other: Told) -> str:
    """The words of a question that the other lacks, as they are written; names and numbers were told already."""
    words = re.findall(r"[^\W_]+(?:[-'][^\W_]+)*", told.dialogue.question)
    known = told.question.hard | {told.asks}
    heard = other.weighty | other.all_words
    own = [word for word in words if weighty_stems(word) - heard and word.lower() not in known]
    return _listed([f"“{word}”" for word in dict.fromkeys(own)][:MAX_NAMED])


def _asking(kind: str) -> str:
    return "for a yes or no" if kind == "yes or no" else kind


def _as_written(fact: str, text: str) -> str:
    found = re.search(re.escape(fact), text, re.I)
    return found[0] if found else fact


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _yes(reply: bool) -> str:
    return "yes" if reply else "no"
