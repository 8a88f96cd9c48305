"""The state of a dialogue: what must be equal for an answer to be shared, and what need only be near."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from smartcache.chinese import Asking, is_chinese, same_but_small_talk
from smartcache.embedding import Embedder, RememberedVectors
from smartcache.facts import Facts, content_words
from smartcache.keys import canonical, digest
from smartcache.politeness import plainly, without_greeting
from smartcache.repair import mended
from smartcache.standing import DEFINITE, stands_alone
from smartcache.stems import stem
from smartcache.telling import asks_something, stated
from smartcache.types import Request, Turn
from smartcache.word_classes import AUXILIARIES, AYES, FIRST_PERSON, NOES, ORDINALS, SECOND_PERSON
from smartcache.wording import one_of

# Options that cannot change the answer. A written list of what is left out: all that is not on it is in the key.
NEUTRAL_OPTIONS = frozenset(
    "tags callbacks metadata run_name run_id timeout request_timeout max_retries stream streaming verbose cache "
    "max_concurrency extra_headers".split()
)

RICH_WORDS = 4  # a question with so many words that carry meaning tells what it is about


@dataclass(frozen=True)
class Dialogue:
    """A conversation up to its question: the texts alone, as they are kept with an answer.

    `history` holds the user's and the assistant's turns before the question, in order, as (role, text), without what a
    speaker took back in the same breath. `question` is without the politeness around it, `wording` with it, where there
    is any. `read` gives the facts of a text.
    """

    history: tuple[tuple[str, str], ...]
    question: str
    read: Callable[[str], Facts] = field(default=Facts.of, repr=False, compare=False)
    wording: str = ""

    @classmethod
    def of(cls, request: Request, read: Callable[[str], Facts] = Facts.of) -> Dialogue:
        spoken = [turn for turn in request.turns if turn.role in ("user", "assistant")]
        last = next((n for n in range(len(spoken) - 1, -1, -1) if spoken[n].role == "user"), len(spoken))
        history = tuple((turn.role, mended(turn.text)) for turn in spoken[:last])
        asked = mended(spoken[last].text if last < len(spoken) else request.query)
        question = plainly(asked, history[-1][1] if history else "")
        return cls(history, question, read, "" if question == asked else asked)

    @cached_property
    def context(self) -> tuple[tuple[str, str], ...]:
        """The turns that the question leans on: none where it stands alone. Greetings count for nothing."""
        if self.asking:
            return () if self.asking.subject is not None else self.history
        return () if not self.spoken or self.stands_alone else self.spoken

    @cached_property
    def spoken(self) -> tuple[tuple[str, str], ...]:
        """The turns before the question that say anything."""
        before = ["", *(text if role != "user" else "" for role, text in self.history)]
        turns = zip(self.history, before, strict=False)
        return tuple((role, text) for (role, text), asked in turns if self._tells(text, asked))

    def facts_of(self, *texts: str) -> Facts:
        """The facts of some of the turns, one after the other; each is read once."""
        if texts not in self._joined:
            self._joined[texts] = Facts.joined(map(self._read, texts))
        return self._joined[texts]

    def _tells(self, text: str, before: str) -> bool:
        """Not of greetings, but where they answer the turn `before`: "What should it say?"."""
        asked = without_greeting(before)
        is_answer = asks_something(asked) and any(map(str.isalnum, asked))
        known = self._read(text if is_answer else without_greeting(text))
        return bool(known.content or known.hard or known.negations or known.states_a_side)

    def _read(self, text: str) -> Facts:
        if text not in self._known:
            self._known[text] = self.read(text)
        return self._known[text]

    @cached_property
    def _known(self) -> dict[str, Facts]:
        return {}

    @cached_property
    def _joined(self) -> dict[tuple[str, ...], Facts]:
        return {}

    @cached_property
    def asking(self) -> Asking | None:
        """The question taken apart, where it is Chinese and asks for a property of something."""
        return Asking.of([text for _, text in self.history], self.question)

    @cached_property
    def is_chinese(self) -> bool:
        return is_chinese(self.question)

    @cached_property
    def stands_alone(self) -> bool:
        """Whether the question means the same whatever was said before. In doubt it does not."""
        if not self.question_stands_alone or self._is_instructed:
            return False
        names = frozenset(word.lower() for word in _PROPER.findall(self.question)) & self.question_facts.names
        if names and self.question_facts.content <= self.question_facts.names:
            return False  # "San Francisco": an answer to something
        tells_its_subject = bool(names) or len(self.question_facts.content) >= RICH_WORDS
        if self._has_stated and (_OF_THE_USER.match(self.question) or not tells_its_subject):
            return False
        if self._has_stated and not names and DEFINITE.search(self.question):
            return False  # "the device": what the user has
        if self._has_stated and frozenset(map(stem, self.told_facts.content)) & frozenset(
            map(stem, self.question_facts.content - self.question_facts.names)
        ):
            return False  # "What is the dog tax?", after "I have two dogs"
        return not self._other_names or (tells_its_subject and not _OF_THE_OTHER.search(self.question))

    @cached_property
    def question_stands_alone(self) -> bool:
        """Whether it would, had nothing been said before."""
        return stands_alone(self.question, self._read)

    @property
    def _has_stated(self) -> bool:
        """Whether the user has told anything of a case, and not only asked."""
        return any(
            self._read(text).content or _REPLY.match(text)
            for role, text in self.history
            if role == "user" and _tells_a_case(text)
        )

    @cached_property
    def told_facts(self) -> Facts:
        """The facts of all that the user told before, and did not ask."""
        return self.facts_of(*(text for role, text in self.history if role == "user" and _tells_a_case(text)))

    @property
    def _is_instructed(self) -> bool:
        """Whether the user said how to answer: "in French", "in one word"."""
        return any(role == "user" and _INSTRUCTS.match(text) for role, text in self.history)

    @property
    def is_of_the_user(self) -> bool:
        """Whether the question is about the user's own case: "Can I get it?"."""
        return bool(_OF_THE_USER.match(self.question))

    @property
    def _other_names(self) -> frozenset[str]:
        """What was named before and is not in the question, which may be about it."""
        return self.facts_of(*(text for _, text in self.history)).names - self.question_facts.words

    @cached_property
    def replies(self) -> frozenset[tuple[frozenset[str], bool]]:
        """What the user answered with yes or no, as far as the question leans on it: the stems of what was asked, and
        the answer."""
        return frozenset(replies(self.history if self.context else ()))

    @cached_property
    def query(self) -> str:
        """What to search the knowledge base for: the question, after what the user said before if it leans on it."""
        return "\n".join([*([self.said] if self.said else []), self.wording or self.question])

    @property
    def transcript(self) -> str:
        """The whole of it as text, a line a turn: what a language model can be asked about."""
        return "\n".join(f"{role}: {text}" for role, text in (*self.history, ("user", self.wording or self.question)))

    @cached_property
    def facts(self) -> Facts:
        """The hard facts of the question and of what it leans on."""
        return self.facts_of(*(text for _, text in self.context), self.question)

    @cached_property
    def question_facts(self) -> Facts:
        return self._read(self.question)

    @cached_property
    def said(self) -> str:
        """What the user said before, as far as the question leans on it."""
        return "\n".join(text for role, text in self.context if role == "user")

    @cached_property
    def stated(self) -> tuple[str, ...]:
        """The sentences of that which are no question: what the user is, has or wants."""
        return tuple(sentence.text for sentence in stated(self.context, "user", self.facts_of))

    @cached_property
    def said_facts(self) -> Facts:
        """Of plain replies none: whether they were yes or no is in `replies`."""
        return self.facts_of(*(text for role, text in self.context if role == "user" and not self._is_bare(text)))

    def _is_bare(self, text: str) -> bool:
        """Whether it says yes or no, and nothing beside it: "Yes, left" does."""
        reply = _BARE.match(text)
        rest = self._read(text[reply.end("plain") :]) if reply else None
        return bool(rest and not (rest.content or rest.hard or rest.states_a_side))

    @cached_property
    def earlier_facts(self) -> Facts:
        """The facts of what the user said before, where a question that stands alone may still mean it by "the device";
        none where it names what it means."""
        may_mean_it = DEFINITE.search(self.question) and not self.context and not self.question_facts.names
        return self.facts_of(*(text for role, text in self.history if role == "user" and may_mean_it))

    @cached_property
    def asked_facts(self) -> Facts:
        """The facts of the question after what the user said before, as far as it leans on that."""
        return Facts.joined([self.said_facts, self.question_facts])

    def names_the_same(self, other: Dialogue) -> bool:
        """Whether the user named something before, and the same in both dialogues."""
        return bool(self.said_facts.names) and self.said_facts.names == other.said_facts.names

    def conflict(self, other: Dialogue) -> str | None:
        """Why the two can have no common answer, however near they lie, or None."""
        if self.asking or other.asking:
            return self.asking.conflict(other.asking) if self.asking and other.asking else "facts"
        if bool(self.context) != bool(other.context) or self.earlier_facts.part_from(other.earlier_facts):
            return "context"
        if self.is_chinese and not same_but_small_talk(*([text for _, text in one.context] for one in (self, other))):
            return "context"
        if self.replies != other.replies:
            return "context"
        if self.question_facts.opposes(other.question_facts) or self.said_facts.denies(other.said_facts):
            return "polarity"
        if self.asked_facts.exchanges(other.asked_facts) or self._points_into(other):
            return "order"
        return None if self.facts.agree(other.facts) else "facts"

    def _points_into(self, other: Dialogue) -> bool:
        """Whether one asks for the first or the last of what was listed before, and that stood in another order."""
        if not (_PLACED.search(self.question) or _PLACED.search(other.question)):
            return False
        return self._listed != other._listed

    @property
    def _listed(self) -> tuple[str, ...]:
        return tuple(word for _, text in self.history[-2:] for word in self._read(text).order)


def _tells_a_case(text: str) -> bool:
    """Whether it may say what its speaker has or wants: it is no question, nor does it ask to be told about a topic."""
    return not asks_something(text) and not _TOPIC.match(text)


def replies(history: Sequence[tuple[str, str]]) -> Iterator[tuple[frozenset[str], bool]]:
    """What the user answered with yes or no: the stems of what was asked, and the answer."""
    for (_, asked), (role, text) in pairwise(history):
        if role == "user" and _REPLY.match(text):
            yield frozenset(map(stem, content_words(asked))), not _NO.match(text)


def request_bytes(request: Request) -> bytes:
    """The canonical form of a whole request: two requests with equal bytes mean the same to the model."""
    turns = [[turn.role, turn.text, turn.data] for turn in request.turns]
    return canonical([request.scope, request.variant, relevant_options(request.options), turns])


def partition_key(request: Request, embedder: Embedder, digest_name: str = "") -> str:
    """The key of all that must be equal for a semantic hit: scope, model, options, system prompt, tools, and what the
    vectors are made by."""
    hard = [[turn.role, turn.text, turn.data] for turn in request.turns if is_hard(turn)]
    vectors = [embedder.name, embedder.dimension, *([digest_name] if digest_name else [])]
    return digest("partition", request.scope, request.variant, relevant_options(request.options), hard, vectors)


def is_hard(turn: Turn) -> bool:
    """Whether a turn must be equal to the letter: system prompts, tool results, and whatever carries more than text."""
    return turn.role in ("system", "tool") or bool(turn.data)


def relevant_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (options or {}).items() if name not in NEUTRAL_OPTIONS}


def unseen_reason(dialogue: Dialogue, turns: Sequence[Turn], vectors: RememberedVectors) -> str | None:
    """Why a text embedding cannot stand for this conversation, or None where it can."""
    if turns[-1].role != "user":
        return "no_question"
    if any(turn.data for turn in turns if turn.role == "user"):
        return "non_text"
    if not dialogue.question.strip():
        return "empty_question"
    if any(_SURROGATE.search(text) for text in (dialogue.question, *(text for _, text in dialogue.history))):
        return "broken_text"
    seen = [dialogue.question, *(text for _, text in dialogue.context)]
    if not all(map(vectors.fits, seen)):
        return "too_long"
    if not all(map(vectors.reads, seen)):
        return "unknown_words"
    return None


_SURROGATE = re.compile(r"[\ud800-\udfff]")  # half a sign: no tokenizer takes it
_TOPIC = re.compile(r"^\W*(?:please )?(?:tell me about|describe|explain)\b", re.I)
_NO = re.compile(rf"^\W*(?:(?:{one_of(NOES)}|not|never|i'm not|i \w+(?:n't| not))\b|不|没)", re.I)
_PLACED = re.compile(
    rf"\b{one_of(ORDINALS | {'last', 'latter', 'former', 'next', 'other'})} (?:one|option|item|of)"
    rf"|\b(?:latter|former)\b|\bthe {one_of(ORDINALS | {'last'})}\W*$",
    re.I,
)
_INSTRUCTS = re.compile(
    r"^\W*(?:please |from now on,? |always |never |do not |don't )*"
    r"(?:answer|reply|respond|speak|talk|write|explain|keep|be|use|format|translate|act|pretend|give)\b",
    re.I,
)
_PLAIN_REPLY = rf"{one_of(AYES | NOES)}|not really|not yet|not at all|never"
_REPLY = re.compile(
    rf"^\W*(?:{_PLAIN_REPLY}|i (?:do|am|can|have|did)|i(?:'m not| \w+n't| \w+ not)"
    r"|对|是的?|不是|没有|有)\b[\w ',]{0,12}\W*$",
    re.I,
)
_BARE = re.compile(rf"^\W*(?P<plain>{_PLAIN_REPLY})\b[\w ',]{{0,12}}\W*$", re.I)
_PROPER = re.compile(r"\b[A-Z][a-zà-ÿ]+(?:-[A-Z]?[a-z]+)*\b")  # "WiFi" and "ATM" tell of no one thing
_OF_THE_USER = re.compile(  # "Can I get it?", and not "How do I get it?"
    rf"^\W*{one_of(AUXILIARIES)}\b.*\b{one_of(FIRST_PERSON)}\b",
    re.I,
)
_OF_THE_OTHER = re.compile(rf"\b{one_of(SECOND_PERSON | {'here', 'they', 'their'})}\b|\bat the \w+\W*$", re.I)
