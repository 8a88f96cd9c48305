"""Whether a stored question has the answer to the one asked: by rules and similarities, or by what was learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from smartcache import chinese
from smartcache.dialogue import Dialogue
from smartcache.embedding import RememberedVectors, Vector, cosine
from smartcache.focus import focus, unnamed
from smartcache.learned import Learned, is_same, kind_of
from smartcache.policy import Candidate, HitPolicy
from smartcache.signals import Signals, Told
from smartcache.state import State
from smartcache.telling import Beside, Telling, beside, changed

MIN_FOCUS = 0.88  # cosine of what two dialogues differ in


@dataclass(frozen=True)
class Case:
    """One side of a pair: a dialogue, its vectors, and what is read from it once."""

    told: Told
    state: State

    @property
    def dialogue(self) -> Dialogue:
        return self.told.dialogue


@dataclass(frozen=True, slots=True)
class Ruling:
    """Why a stored answer is none for what was asked, None where it is; and what the policy was asked last."""

    refusal: str | None
    candidate: Candidate | None = None
    signals: Signals | None = None


class Judge(Protocol):
    def judge(self, asked: Case, stored: Case, age_seconds: float, policy: HitPolicy) -> Ruling: ...


@dataclass(frozen=True)
class ByRules:
    """Everything that was stated must agree; then the policy judges how near the two are."""

    vectors: RememberedVectors

    def judge(self, asked: Case, stored: Case, age_seconds: float, policy: HitPolicy) -> Ruling:
        if conflict := asked.dialogue.conflict(stored.dialogue):
            return Ruling(conflict)
        one, other = asked.state, stored.state
        if (one.context is None) != (other.context is None):  # kept when another rule told what stands alone
            return Ruling("context")
        candidate = Candidate(
            asked.dialogue.question,
            stored.dialogue.question,
            cosine(one.question, other.question),
            # the turns before a Chinese question were compared as they are: their vectors only find it
            context_similarity=None if asked.dialogue.is_chinese else _cosine(one.context, other.context),
            same_names=asked.dialogue.names_the_same(stored.dialogue),
            age_seconds=age_seconds,
        )
        if not policy.accepts(candidate):
            return Ruling("far", candidate)
        stated = ("\n".join(dialogue.stated) for dialogue in (asked.dialogue, stored.dialogue))
        nearness = focus_similarity(asked.dialogue, stored.dialogue, self.vectors, focus(*stated))
        candidate = replace(candidate, focus_similarity=nearness)
        return Ruling(None if nearness is None or policy.accepts(candidate) else "far", candidate)


@dataclass(frozen=True)
class ByConfidence:
    """What no dialogue may differ in must agree; then the policy judges how surely the two have one answer."""

    vectors: RememberedVectors
    learned: Learned

    def judge(self, asked: Case, stored: Case, age_seconds: float, policy: HitPolicy) -> Ruling:
        """The cheapest signals first: where even the best of the others could not make it a hit, they are not read. Two
        questions of the same words that stand alone are one, unless one user told more of their case."""
        known = near_signals(asked.state, stored.state)
        are_same = asked.told.plain == stored.told.plain and not known["histories"]
        candidate = Candidate(
            asked.dialogue.question,
            stored.dialogue.question,
            known["wording"],
            confidence=1.0 if are_same else self.learned.at_best(known),
            histories=int(known["histories"]),
            age_seconds=age_seconds,
        )
        may_lean = known["one_after"] and not known["histories"]  # which its words will tell
        if not (policy.accepts(candidate) or (may_lean and policy.accepts(replace(candidate, histories=1)))):
            return Ruling("far", candidate)
        if refusal := asked.told.refusal(stored.told):
            return Ruling(refusal)
        known |= asked.told.shares(stored.told)
        if leans_on_nothing(asked, stored, known):
            return Ruling("context")
        candidate = replace(
            candidate, confidence=1.0 if are_same else self.learned.at_best(known), histories=int(kind_of(known))
        )
        if not policy.accepts(candidate):
            return Ruling("far", candidate)
        known |= asked.told.agrees(stored.told)
        if told_apart(asked, stored, known):
            return Ruling(asked.dialogue.conflict(stored.dialogue) or "facts")
        candidate = replace(candidate, confidence=1.0 if is_same(known) else self.learned.at_best(known))
        if not policy.accepts(candidate):
            return Ruling("far", candidate)
        signals = signals_of(asked, stored, known, self.vectors, self.learned.telling)
        if told_apart(asked, stored, signals.by_name()):
            return Ruling("facts")
        candidate = replace(candidate, confidence=self.learned.sure(signals))
        return Ruling(None if policy.accepts(candidate) else "far", candidate, signals)


def leans_on_nothing(asked: Case, stored: Case, known: Mapping[str, float]) -> bool:
    """Whether one asks "How old is she?" after nothing, and the other says no less after something: of such pairs
    nothing could be learned, as nobody takes one for the rewrite of the other. "What did Ann do next?" leans on what
    was said before too, whatever it names."""
    if (known["histories"], known["goes_on"]) in ((0, 1), (1, 2)):
        return True
    says_more = known["shared_there"] < 1 or known["stands_least"] >= 0
    return (
        known["histories"] == 1
        and not says_more
        and not (asked.dialogue.question_stands_alone and stored.dialogue.question_stands_alone)
    )


def told_apart(asked: Case, stored: Case, known: Mapping[str, float]) -> bool:
    """Whether both ask after something was said, and that differs in a fact, or in what the users stated: of two plans,
    two sizes, two roles, each is near the other. Where one asks about their own case ("Can I get it?"), also where one
    told more of it."""
    if known["histories"] < 2:
        return False
    if known["goes_on"] == 2 and known["last_turns"] < MIN_FOCUS:
        return True  # "What else can I do?", after two ways to do it
    is_of_the_user = asked.dialogue.is_of_the_user or stored.dialogue.is_of_the_user
    tells_more = is_of_the_user and known.get("told_beside", 0) > 0
    return not known["facts_agree"] or known.get("focus", 1.0) < MIN_FOCUS or tells_more


def signals_of(
    asked: Case, stored: Case, known: Mapping[str, float], vectors: RememberedVectors, telling: Telling
) -> Signals:
    """All signals of a pair, where those are `known` that need no text to be embedded."""
    nearness, told = 0.0, Beside(1.0, 0)  # where a rule is against it, there is nothing to compare
    if known["facts_agree"]:
        similarity = focus_similarity(asked.dialogue, stored.dialogue, vectors)
        told = beside(asked.told.tells_beside(stored.told), stored.told.tells_beside(asked.told), vectors, telling)
        nearness = 1.0 if similarity is None else similarity
        if known["histories"]:
            found = beside(asked.told.finds_beside(stored.told), stored.told.finds_beside(asked.told), vectors, telling)
            nearness = min(nearness, told.alike, found.alike, _said_alike(asked, stored, vectors))
    left = asked.told.left(stored.told), stored.told.left(asked.told)
    left_alike = cosine(*vectors(left)) if all(left) else 1.0
    return Signals(**known, focus=nearness, left_alike=left_alike, told_beside=told.none)


def _said_alike(asked: Case, stored: Case, vectors: RememberedVectors) -> float:
    """How alike what each of the two speakers said is where only it differs."""
    one, other = asked.dialogue, stored.dialogue
    return min(changed(_of(role, one), _of(role, other), one.read, vectors) for role in ("user", "assistant"))


def _of(role: str, dialogue: Dialogue) -> list[str]:
    return [text for speaker, text in dialogue.context if speaker == role]


def near_signals(one: State, other: State) -> dict[str, float]:
    """The signals that the vectors alone give."""
    standing = sorted((one.standing or 0.0, other.standing or 0.0))
    return {
        "meaning": cosine(one.vector, other.vector),
        "wording": cosine(one.question, other.question),
        "stands_least": standing[0],
        "stands_most": standing[1],
        "histories": (one.context is not None) + (other.context is not None),
        "one_after": (one.last is None) != (other.last is None),
        "last_turns": _alike(one.last, other.last),
        "said": _alike(one.said, other.said),
        "leaned_on": _alike(one.context, other.context),
    }


def focus_similarity(
    asked: Dialogue, stored: Dialogue, vectors: RememberedVectors, beside: tuple[str, str] | None = None
) -> float | None:
    """How alike what the two questions differ in is, and what they differ in `beside`; None where they differ in their
    wording alone."""
    if asked.asking:
        return None
    names = asked.question_facts.names & stored.question_facts.names
    pairs = [
        beside,
        focus(asked.question, stored.question),
        unnamed(asked.question, stored.question, names),
    ]
    if asked.is_chinese:
        pairs = [chinese.focus(asked.question, stored.question)]
    similarities = [cosine(*vectors(pair)) if all(pair) else 0.0 for pair in pairs if pair]
    return min(similarities, default=None)


def _cosine(one: Vector | None, other: Vector | None) -> float | None:
    return None if one is None or other is None else cosine(one, other)


def _alike(one: Vector | None, other: Vector | None) -> float:
    """The same; 1 where neither is there, 0 where one is."""
    return float(one is other) if one is None or other is None else cosine(one, other)
