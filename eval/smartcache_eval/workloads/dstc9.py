"""DSTC9's frequently asked questions of hotels and restaurants: equal or near words about another place."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation

# One question of each is kept for each place: two of them may or may not want one answer, and nobody marked it.
TOPICS = {
    topic: re.compile(pattern, re.I)
    for topic, pattern in {
        "internet": r"wi-?fi|internet",
        "parking": r"\bpark",
        "pets": r"\bpets?\b|\bdogs?\b|animal",
        "smoking": r"smok",
        "byob": r"byob|bring (?:my|our|your) own",
        "alcohol": r"alcohol|\bbar\b|wine|beer",
        "music": r"music",
        "outdoors": r"outdoor|outside|terrace|patio",
        "gluten": r"gluten",
        "halal": r"halal",
        "vegetarian": r"vegetarian|vegan",
        "reservations": r"reserv",
        "access": r"wheelchair|disab|handicap",
        "high chairs": r"high ?chair",
        "payment": r"credit|payment|\bpay\b",
        "delivery": r"deliver",
        "take-out": r"take ?-?out|takeaway",
        "spa": r"\bspa\b",
        "languages": r"language",
        "meetings": r"banquet|meeting",
        "front desk": r"front desk|reception",
        "lift": r"elevator|\blift\b",
        "laundry": r"dry clean|laundry",
        "shuttle": r"shuttle",
        "luggage": r"luggage",
        "room service": r"room service",
        "concierge": r"concierge",
        "pool": r"pool",
        "breakfast": r"breakfast",
        "children": r"child|kids",
        "check-in": r"check ?-?in",
        "check-out": r"check ?-?out",
    }.items()
}
OPENINGS = (
    ("Do you know {}?", "Yes, {} is in the town. What would you like to know?"),
    ("I am thinking about {} for next weekend.", "Good choice. Is there anything about {} that I can tell you?"),
    ("A friend told me about {}, it is for the four of us.", "I have the details of {} here. Just ask."),
)
PER_PLACE = 6


def steps(folder: Path) -> list[Step]:
    """Up to six questions of each place, those first that many places have; each twice, under two openings of ours. The
    truth is the place and the topic, the group the place."""
    places = [place for places in _domains(folder).values() for place in places.values() if place["name"]]
    asked = {place["name"]: dict(_questions(place)) for place in places}
    popular = Counter(plain for topics in asked.values() for plain, _ in topics.values())
    found = []
    for name, topics in asked.items():
        random = Random(name)
        best = sorted(topics.items(), key=lambda item: (-popular[item[1][0]], item[0]))[:PER_PLACE]
        for topic, (_, question) in best:
            first, second = random.sample(OPENINGS, 2)
            for sort, opening, seconds in (("asked of another place", first, 0.0), ("reworded history", second, 1.0)):
                turns = conversation([text.format(name.title()) for text in opening], question)
                found.append(Step(turns, f"{name} {topic}", name, sort, seconds))
    return found


def _domains(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    text = file_in(folder, "dstc9-faq", "raw", "knowledge.json").read_text(encoding="utf-8")
    domains: dict[str, dict[str, dict[str, Any]]] = json.loads(text)
    return domains


def _questions(place: dict[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    """(topic, (the question without the place's name, the question)), the first of each topic; a question that has two
    topics, or names the place, is none."""
    name, seen = str(place["name"]).lower(), set[str]()
    for document in place["docs"].values():
        question = str(document["title"]).strip()
        topics = [topic for topic, pattern in TOPICS.items() if pattern.search(question)]
        if len(topics) == 1 and topics[0] not in seen and not _names(question, name):
            seen.add(topics[0])
            yield topics[0], (question.lower(), question)


def _names(question: str, name: str) -> bool:
    return any(word in question.lower() for word in name.split() if len(word) >= 4)
