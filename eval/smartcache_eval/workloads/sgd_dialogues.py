"""Schema-Guided Dialogue as it is read: turns with what each does, and the turns that a question can be made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smartcache_eval.folder import file_in

FILES = 6

# The slot that says what the dialogue is about; what is asked of it depends on it.
ENTITY_SLOTS = {
    "Restaurants": ("restaurant_name",),
    "Homes": ("property_name",),
    "Services": ("stylist_name", "dentist_name", "doctor_name", "therapist_name"),
    "Music": ("song_name", "track"),
    "Travel": ("attraction_name",),
    "Movies": ("movie_name", "title"),
    "Media": ("title", "movie_name"),
    "Hotels": ("hotel_name", "place_name"),
    "RentalCars": ("car_name",),
    "Weather": ("city",),
    "RideSharing": ("destination",),
}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a turn does: inform, request, confirm, …, of a slot, with values: as they are said, and the first
    of them as it is always written."""

    act: str
    slot: str
    values: tuple[str, ...]
    canonical: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """One turn of a dialogue. `state`: every slot's values so far in the words that were used, after a user's turn."""

    text: str
    service: str
    actions: tuple[Action, ...]
    state: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def acts(self) -> frozenset[str]:
        return frozenset(action.act for action in self.actions)

    @property
    def signature(self) -> tuple[str, tuple[Action, ...]] | None:
        """What it does, where that carries no value: another turn that does the same is the same in other words."""
        has_value = any(action.values and action.slot != "intent" for action in self.actions)
        return None if has_value or not self.actions else (self.service, tuple(sorted(self.actions, key=repr)))

    @property
    def requested(self) -> tuple[str, ...]:
        return tuple(sorted(action.slot for action in self.actions))


@dataclass(frozen=True, slots=True)
class Asked:
    """A user's turn of a dialogue that can be asked. `truth` says what it asks; `subject` is the value in the history
    that it hangs on, as (slot, the ways in which it is written)."""

    dialogue: str
    kind: str  # request, affirm
    history: tuple[Said, ...]
    said: Said
    subject: tuple[str, tuple[str, ...]]
    truth: str

    @property
    def texts(self) -> list[str]:
        return [said.text for said in self.history]


def dialogues(folder: Path) -> Iterator[tuple[str, tuple[Said, ...]]]:
    for number in range(1, FILES + 1):
        path = file_in(folder, "sgd", "raw", "dev", f"dialogues_00{number}.json")
        for dialogue in json.loads(path.read_text(encoding="utf-8")):
            yield dialogue["dialogue_id"], tuple(map(_said, dialogue["turns"]))


def required_slots(folder: Path) -> dict[tuple[str, str], frozenset[str]]:
    """What must be known before an intent of a service can be served."""
    services = json.loads(file_in(folder, "sgd", "raw", "dev", "schema.json").read_text(encoding="utf-8"))
    return {
        (service["service_name"], intent["name"]): frozenset(intent["required_slots"])
        for service in services
        for intent in service["intents"]
    }


def family(service: str) -> str:
    """The kind of service: Restaurants for Restaurants_2."""
    return service.partition("_")[0]


def requests(name: str, turns: tuple[Said, ...]) -> Iterator[Asked]:
    """Questions about what was offered last: user turns that only ask for slots, and do not name it."""
    for place in range(2, len(turns), 2):
        said = turns[place]
        if said.acts != {"REQUEST"} or said.signature is None:
            continue
        subject = _offered(turns[:place], said.service)
        if subject and not _names(said.text, subject[1]):
            slot, value = subject
            truth = f"{said.service} {' '.join(said.requested)} of {value}"
            yield Asked(name, "request", turns[:place], said, (slot, (value,)), truth)


def affirmations(name: str, turns: tuple[Said, ...]) -> Iterator[Asked]:
    """A "yes" to details that were read out: it asks to do exactly that."""
    for place in range(2, len(turns), 2):
        said, before = turns[place], turns[place - 1]
        if said.acts != {"AFFIRM"} or before.acts != {"CONFIRM"} or said.service != before.service:
            continue
        state = dict(said.state)
        confirmed = {action.slot: action.values[0] for action in before.actions if action.values}
        known = {slot: values[0] for slot, values in state.items()}
        known |= {action.slot: action.canonical for action in before.actions}
        truth = f"{said.service} yes to {json.dumps(sorted(known.items()))}"
        for slot, value in confirmed.items():
            if len(value) >= 3 and value in before.text and value not in ("True", "False", "dontcare"):
                yield Asked(name, "affirm", turns[:place], said, (slot, (value, *state.get(slot, ()))), truth)


def _said(turn: dict[str, Any]) -> Said:
    frames = turn["frames"]
    services = {frame["service"] for frame in frames}
    actions = tuple(
        Action(action["act"], action["slot"], tuple(action["values"]), (*action["canonical_values"], "")[0])
        for frame in frames
        for action in frame["actions"]
    )
    state = {slot: tuple(values) for f in frames for slot, values in f.get("state", {}).get("slot_values", {}).items()}
    return Said(turn["utterance"], services.pop() if len(services) == 1 else "", actions, tuple(sorted(state.items())))


def _offered(history: tuple[Said, ...], service: str) -> tuple[str, str] | None:
    """The entity that the system named last, as it is written in its text."""
    for said in reversed(history[1::2]):
        for action in said.actions:
            is_entity = said.service == service and action.slot in ENTITY_SLOTS.get(family(service), ())
            if is_entity and action.act in ("OFFER", "CONFIRM", "INFORM") and action.values:
                value = action.values[0]
                return (action.slot, value) if value in said.text else None
    return None


def _names(text: str, value: str) -> bool:
    words = [word for word in value.lower().split() if len(word) >= 4]
    return value.lower() in text.lower() or any(word in text.lower() for word in words)
