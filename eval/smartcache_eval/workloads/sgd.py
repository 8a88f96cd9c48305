"""Schema-Guided Dialogue: the same words under another state of the task, made of gold annotations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

from smartcache_eval.steps import Step, conversation, part_of
from smartcache_eval.workloads.sgd_dialogues import (
    Asked,
    Said,
    affirmations,
    dialogues,
    family,
    requests,
    required_slots,
)
from smartcache_eval.workloads.small_talk import chattier, led_in

Dialogue = tuple[str, tuple[Said, ...]]

REFUSALS = (
    "No, please don't.",
    "No, that is not right.",
    "No, leave it, I do not want that any more.",
    "No, not yet, something in there is wrong.",
)
LATER = 1.0  # seconds: what is made of a question comes after it


def steps(folder: Path) -> list[Step]:
    """Around each question: it in other words, under a history in other words or with small talk (must hit); and it in
    another dialogue, with one detail of the history changed, and another intent under the same history (must miss).
    What is taken from other dialogues is of the same part. The group is the dialogue."""
    found: list[Step] = []
    whole = list(dialogues(folder))
    for part in ("choose", "report"):
        mine = [dialogue for dialogue in whole if part_of(dialogue[0]) == part]
        found += _around_questions(mine)
        found += _openings(mine, required_slots(folder))
    return found


def _around_questions(mine: Sequence[Dialogue]) -> Iterator[Step]:
    asked = _one_a_subject(one for name, turns in mine for one in (*requests(name, turns), *affirmations(name, turns)))
    wordings = _wordings(mine)
    for one in asked:
        random = Random(one.truth)
        question, history, group = one.said.text, one.texts, one.dialogue
        yield Step(conversation(history, question), one.truth, group, "asked")
        others = [other for other in asked if _could_be_swapped(one, other)]
        made = [
            ("reworded question", history, _otherwise(one.said, wordings, random), one.truth),
            ("reworded history", _reworded(one.history, wordings, random), question, one.truth),
            ("chattier history", chattier(history, random), _chattier(one, random), one.truth),
            *_swapped(one, others, random),
            *_flipped(one, asked, random),
        ]
        for sort, said, text, truth in made:
            if text and (said, text) != (history, question):
                yield Step(conversation(said, text), truth, group, sort, LATER)


def _chattier(one: Asked, random: Random) -> str:
    """The question with words before it; a plain yes with "tell me" before it would be none."""
    return led_in(one.said.text, random) if one.kind == "request" else one.said.text


def _one_a_subject(found: Iterable[Asked]) -> list[Asked]:
    """Two dialogues about one thing may lead to one answer or to two, and no annotation says which: the first is kept.
    Of several details of one confirmation, one is kept, not always the first."""
    kept: dict[str, list[Asked]] = defaultdict(list)
    for one in found:
        kept[f"{one.said.service} {one.subject[1][0]}" if one.kind == "request" else one.truth].append(one)
    return [
        of_one[Random(key).randrange(len(of_one)) if of_one[0].kind == "affirm" else 0] for key, of_one in kept.items()
    ]


def _wordings(mine: Sequence[Dialogue]) -> dict[object, list[str]]:
    """Texts by what they do: of the system's and the users' turns that carry no value."""
    found: dict[object, list[str]] = defaultdict(list)
    for _, turns in mine:
        for place, said in enumerate(turns):
            if said.signature:
                found[place % 2, said.signature].append(said.text)
    return found


def _otherwise(said: Said, wordings: dict[object, list[str]], random: Random, speaker: int = 0) -> str:
    """What a turn does in another person's words, or "" where nobody else did it."""
    others = [text for text in wordings.get((speaker, said.signature), ()) if text.lower() != said.text.lower()]
    return random.choice(others) if said.signature and others else ""


def _reworded(history: Sequence[Said], wordings: dict[object, list[str]], random: Random) -> list[str]:
    return [_otherwise(said, wordings, random, place % 2) or said.text for place, said in enumerate(history)]


def _could_be_swapped(one: Asked, other: Asked) -> bool:
    """Whether `one`'s words can be asked in `other`'s dialogue, and mean something else there that is known."""
    same_kind = one.kind == other.kind and family(one.said.service) == family(other.said.service)
    same_slots = one.kind == "affirm" or one.said.requested == other.said.requested
    return same_kind and same_slots and one.truth != other.truth and one.subject[0] == other.subject[0]


def _swapped(one: Asked, others: Sequence[Asked], random: Random) -> Iterator[tuple[str, list[str], str, str]]:
    if not others:
        return
    other = random.choice(others)
    yield "context swapped", other.texts, one.said.text, other.truth
    values = sorted({each.subject[1][0] for each in others} - set(one.subject[1]))
    if values:
        value = random.choice(values)
        changed = [_replaced(text, one.subject[1], value) for text in one.texts]
        if changed != one.texts:
            yield "detail swapped", changed, one.said.text, _truth_of(one, value)


def _truth_of(one: Asked, value: str) -> str:
    """What is asked after the detail was changed: for a request that of the other entity, whoever asks."""
    if one.kind == "request":
        return f"{one.said.service} {' '.join(one.said.requested)} of {value}"
    return f"{one.truth} but {one.subject[0]} {value}"


def _flipped(one: Asked, asked: Sequence[Asked], random: Random) -> Iterator[tuple[str, list[str], str, str]]:
    if one.kind == "affirm":
        yield "intent flipped", one.texts, random.choice(REFUSALS), f"no: {one.truth}"
        return
    apart = [
        other.said
        for other in asked
        if other.kind == "request" and other.said.service == one.said.service
        if not set(other.said.requested) & set(one.said.requested)
    ]
    if apart:
        other = random.choice(apart)
        truth = f"{one.said.service} {' '.join(other.requested)} of {one.subject[1][0]}"
        yield "intent flipped", one.texts, other.text, truth


def _replaced(text: str, forms: Sequence[str], value: str) -> str:
    for form in sorted(set(forms), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", lambda _: value, text)
    return text


def _openings(mine: Sequence[Dialogue], required: dict[tuple[str, str], frozenset[str]]) -> Iterator[Step]:
    """First turns that say all that is needed: after another dialogue on other things they ask the same, and so does
    whoever says the same in other words (must hit)."""
    seen = set[str]()
    for name, turns in mine:
        said, random = turns[0], Random(name)
        intents = [action.values[0] for action in said.actions if action.act == "INFORM_INTENT"]
        given = {action.slot: action.canonical for action in said.actions if action.act == "INFORM"}
        truth = f"{said.service} {intents} {sorted(given.items())}"
        others = [turns for _, turns in mine if not _about(turns, family(said.service)) and turns[-1].text]
        is_whole = len(intents) == 1 and given and required[said.service, intents[0]] <= given.keys()
        if not is_whole or not others:
            continue
        if truth in seen:
            yield Step(conversation([], said.text), truth, name, "reworded question", LATER)
            continue
        seen.add(truth)
        before = [other.text for other in random.choice(others)]
        yield Step(conversation([], said.text), truth, name, "asked")
        yield Step(conversation(before[: len(before) // 2 * 2], said.text), truth, name, "history irrelevant", LATER)


def _about(turns: Sequence[Said], kind: str) -> bool:
    return any(family(said.service) == kind for said in turns)
