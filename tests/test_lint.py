"""`smartcache.lint` on a log: each cause is named where it costs, with a twin where there is nothing to find."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smartcache.lint import UnreadablePrompts, lint, report
from smartcache.lint.layout import _as_first

RULES = " ".join(f"Rule {n}: answer politely, name the section of the handbook, and never guess." for n in range(8))
TOPICS = ("returns", "invoices", "warranty", "delivery", "accounts", "vouchers")
SHOTS = [f"Q: What about {topic}?\nA: See the part of the handbook on {topic}, it has the terms.\n" for topic in TOPICS]
TOOLS = [
    {"type": "function", "function": {"name": name, "description": f"Looks up {name} by the number of the order."}}
    for name in TOPICS
]

Row = dict[str, Any]


def chat(system: str, question: str, *history: str, tools: list[Any] | None = None) -> Row:
    spoken = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate((*history, question))]
    return {"messages": [{"role": "system", "content": system}, *spoken], "tools": tools or []}


def log(make: Callable[[int], Row], count: int = 4) -> list[Row]:
    return [make(n) for n in range(count)]


def codes(rows: list[Any], **options: Any) -> list[str]:
    return [finding.code for finding in lint(rows, **options)]


def about(n: int) -> str:
    return f"What about {TOPICS[n]}?"


def noted(n: int) -> str:
    return f"Order {n} was sent on 2026-05-0{n + 1} to {TOPICS[n]}, on request {n}{n}4711."


BROKEN: dict[str, Callable[[int], Row]] = {
    "timestamp": lambda n: chat(f"Today is 2026-05-0{n + 1} 10:2{n}.\n{RULES}", about(n)),
    "id": lambda n: chat(f"Session id: a{n}9f-77{n}\n{RULES}", about(n)),
    "user-value": lambda n: chat(f"You help {['Ann', 'Bob', 'Cem', 'Dora'][n]} of the shop. {RULES}", about(n)),
    "json-order": lambda n: chat(
        f"{json.dumps(dict([('shop', 'north'), ('open', True), ('days', 5)][:: (1, -1)[n % 2]]))}\n{RULES}", about(n)
    ),
    "tools-order": lambda n: chat(RULES, about(n), tools=TOOLS[n:] + TOOLS[:n]),
    "tools-changed": lambda n: chat(RULES, about(n), tools=[TOOLS[0], {**TOOLS[1], "calls_left": n}, *TOOLS[2:]]),
    "examples-order": lambda n: chat(f"Answer as here.\n{''.join(SHOTS[n:] + SHOTS[:n])}{RULES}", about(n)),
    "chunks-first": lambda n: chat(f"{noted(n) * 8}\n{RULES}", about(n)),
    "whitespace": lambda n: chat(f"Be kind.{('  ', ' ')[n % 2]}{RULES}", about(n)),
    "trimmed": lambda n: chat("Be kind.", talk(n + 1)[-2], *talk(n)[n // 2 * 2 :]),
}

WHOLE: dict[str, Callable[[int], Row]] = {
    "a date in the question": lambda n: chat(RULES, f"What was sent on 2026-05-0{n + 1}? {RULES}"),
    "a date that is the same": lambda n: chat(f"Today is 2026-05-01.\n{RULES}", about(n)),
    "a date behind the rest": lambda n: chat(f"{RULES}\nToday is 2026-05-0{n + 1}.", about(n)),
    "numbers in documents": lambda n: chat(f"{RULES}\n{noted(n) * 8}", about(n)),
    "a document before the question": lambda n: chat(RULES, f"{noted(n) * 8}\n{about(n)}"),
    "tools in one order": lambda n: chat(RULES, about(n), tools=TOOLS),
    "JSON in one order": lambda n: chat(f"{json.dumps({'shop': 'north', 'open': True})}\n{RULES}", about(n)),
    "a conversation that is whole": lambda n: chat("Be kind.", talk(n + 1)[-2], *talk(n)),
    "another prompt each": lambda n: chat(f"You know all on {TOPICS[n]}. " * 20, about(n)),
    "the same line ends": lambda n: chat(RULES.replace(". ", ".\r\n"), about(n)),
}


def talk(turns: int) -> list[str]:
    """What was said before: twice as many turns, and two."""
    return [
        f"Turn {n // 2}, {('asked', 'said')[n % 2]} of {TOPICS[n // 2]}: {RULES[:200]}" for n in range(2 * turns + 2)
    ]


@pytest.mark.parametrize("code", BROKEN)
def test_a_cause_is_named(code: str) -> None:
    assert codes(log(BROKEN[code])) == [code]


@pytest.mark.parametrize("name", WHOLE)
def test_what_costs_nothing_is_not_named(name: str) -> None:
    assert codes(log(WHOLE[name])) == []


@pytest.mark.parametrize("code", BROKEN)
def test_mending_it_brings_what_is_told(code: str) -> None:
    sharing = report(log(BROKEN[code])).sharing
    assert sharing is not None
    assert sharing.by_code[code] == pytest.approx(sharing.mended)
    assert sharing.mended > sharing.now + 0.2


@pytest.mark.parametrize("text", ["user: {} was here", "{}"])
def test_a_system_turn_behind_chunks_is_named(text: str) -> None:
    def make(n: int) -> Row:
        turns = [("user", text.format(noted(n) * 8)), ("system", RULES), ("user", about(n))]
        return {"turns": [{"role": role, "text": said} for role, said in turns]}

    assert codes(log(make)) == ["chunks-first"]


def test_few_shot_turns_in_another_order_are_named() -> None:
    def make(n: int) -> Row:
        shots = [(f"What about {one}?", f"See the part on {one}, it has the terms.") for one in TOPICS[n:] + TOPICS[:n]]
        return chat("Be kind.", f"And {n}?", *[text for shot in shots for text in shot])

    assert codes(log(make)) == ["examples-order"]


@pytest.mark.parametrize("mark", ["\ufeff", "é"])
def test_other_bytes_of_the_same_text_are_named(mark: str) -> None:
    written = {"\ufeff": ("\ufeff", ""), "é": ("e\u0301", "é")}[mark]
    assert codes(log(lambda n: chat(f"{written[n % 2]} {RULES}", about(n)))) == ["whitespace"]


def test_the_place_is_told() -> None:
    (finding,) = lint(log(BROKEN["timestamp"]))
    assert (finding.source, finding.line, finding.requests) == ("request", 2, 3)
    assert finding.place == len("system: Today is ")
    assert "'2026-05-02 10:21'" in finding.what
    assert finding.lost_share == pytest.approx(len(RULES) / len(RULES + "system: Today is 2026-05-02 10:21."), abs=0.05)
    assert finding.remedy


def test_two_causes_of_one_log_are_both_named() -> None:
    rows = log(lambda n: chat(f"Trace id: {n}f{n}e\nToday is 2026-05-0{n + 1}.\n{RULES}", about(n)))
    sharing = report(rows).sharing
    assert sharing is not None
    assert set(codes(rows)) == {"id", "timestamp"}
    assert sharing.by_code["timestamp"] < sharing.mended


def test_of_two_dates_the_one_that_differs_is_named() -> None:
    rows = log(lambda n: chat(f"Open since 2019-04-02, it is 10:0{n} now. {RULES}", about(n)))
    assert ["'10:02'" in finding.what or "'10:01'" in finding.what for finding in lint(rows)] == [True]


@pytest.mark.parametrize(("others", "expected"), [(4, ["timestamp"]), (900, [])])
def test_what_costs_next_to_nothing_in_all_is_not_named(others: int, expected: list[str]) -> None:
    rows = log(BROKEN["timestamp"], 2) + log(lambda n: chat(RULES.replace("Rule", "Law"), f"Is it {n}?"), others)
    assert codes(rows) == expected


@pytest.mark.parametrize(("count", "expected"), [(2, []), (3, ["chunks-first"])])
def test_two_texts_are_too_few_to_tell_passages_from_instructions(count: int, expected: list[str]) -> None:
    assert codes(log(BROKEN["chunks-first"], count)) == expected


PROVIDERS = [{"type": "web_search"}, {"google_search": {}}, {"type": "mcp", "server_label": "shop"}]


def test_tools_without_a_name_go_by_what_they_are() -> None:
    assert codes(log(lambda n: chat(RULES, about(n), tools=[PROVIDERS[n % 3]]), 6)) == []
    turned = log(lambda n: chat(RULES, about(n), tools=PROVIDERS[n % 3 :] + PROVIDERS[: n % 3]), 6)
    assert codes(turned) == ["tools-order"]
    changed = log(lambda n: chat(RULES, about(n), tools=[{"type": "web_search", "max_uses": n}]), 6)
    assert codes(changed) == ["tools-changed"]


def test_the_beginnings_of_a_request_are_kept_once() -> None:
    lines = [tuple(f"line {n} of request {request}" for n in range(300)) for request in range(50)]
    seen: dict[Any, Any] = {}
    for number, text in enumerate(lines):
        assert _as_first(text, number, seen) is None
    assert len({id(kept) for kept in seen.values()}) == len(lines)
    assert all(kept[0] in lines for kept in seen.values())
    turned = (*reversed(lines[7][:200]), "and another end")
    assert _as_first(turned, 99, seen) == ((*lines[7][:200], "and another end"), 0, 7)


def test_a_code_can_be_ignored() -> None:
    rows = log(BROKEN["timestamp"])
    assert (codes(rows, ignore=["timestamp"]), codes(rows, ignore=["id"])) == ([], ["timestamp"])


def test_an_unknown_code_is_told() -> None:
    with pytest.raises(ValueError, match="there is no code 'times'"):
        lint(log(BROKEN["timestamp"]), ignore=["times"])


@pytest.mark.parametrize("form", ["{}", '"{}"', '{{"prompt": "{}"}}', '{{"body": {{"messages": [{}]}}}}'])
def test_a_log_comes_in_several_forms(form: str, tmp_path: Path) -> None:
    def row(n: int) -> str:
        system, question = f"Today is 2026-05-0{n + 1}. {RULES}", about(n)
        if "messages" in form:
            return form.format(json.dumps({"role": "system", "content": [{"type": "text", "text": system}]}))
        if form == "{}":
            return json.dumps({"system": system, "messages": [{"role": "user", "content": question}]})
        return form.format(f"{system} {question}")

    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(map(row, range(3))))
    assert codes_of(file) == ["timestamp"]


def codes_of(file: Path) -> list[str]:
    return [finding.code for finding in lint(file)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ('{"messages": []}', "has no requests"),
        ('{"prompt": "Hello"}\n{', "log.jsonl:2 is not JSON"),
        ('{"reply": "Hello"}', "log.jsonl:1 has no"),
        ('{"messages": ["Hello"]}', 'a turn has a "role"'),
        ('{"prompt": "Hello", "tools": 5}', '"tools" is a list'),
        ('{"messages": [{"role": "user", "content": [null, {"type": "image"}]}]}', None),
        ('{"tools": [{"name": "look"}], "messages": [{"role": "user", "content": null}]}', None),
    ],
)
def test_a_log_that_cannot_be_read_is_told(text: str, message: str | None, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text(text)
    if message is None:
        assert lint(file) == ()
    else:
        with pytest.raises(UnreadablePrompts, match=message):
            lint(file)
