"""`smartcache.lint` on templates and LangChain prompts: what a placeholder's name and place say."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from smartcache.lint import Finding, UnreadablePrompts, lint

RULES = " ".join(f"Rule {n}: answer politely and name the section of the handbook." for n in range(4))

BROKEN = {
    "Today is {{ current_date }}.\n" + RULES: "timestamp",
    "Today is {date}.\n" + RULES: "timestamp",
    "It is {datetime.now():%H:%M}.\n" + RULES: "timestamp",
    "It is {{ now().strftime('%Y') }}. {% if x %}{% endif %}" + RULES: "timestamp",
    "Request {request_id}\n" + RULES: "id",
    "{{#session}}{{sessionId}}{{/session}}{{uuid}}\n" + RULES: "id",
    "You help {user_name}.\n" + RULES: "user-value",
    "You help {{ user.name }}.\n" + RULES: "user-value",
    "You help {{{customer}}}.\n{{! a note }}" + RULES: "user-value",
    "{context}\n\n" + RULES + "\n\nQuestion: {question}": "chunks-first",
    "{% for doc in documents %}[{{ loop.index }}] {{ doc }}{% endfor %}\n" + RULES: "chunks-first",
    "Question: {question}\n\n" + RULES: "question-first",
    "{% for shot in examples | shuffle %}{{ shot }}{% endfor %}\n" + RULES: "examples-order",
    RULES + " Settings: {json.dumps(settings)}": "json-order",
    "\ufeff" + RULES: "whitespace",
    "Be kind.\r\nBe short.\n" + RULES: "whitespace",
    "Cafe\u0301. " + RULES: "whitespace",
}

WHOLE = (
    RULES + "\n{context}\n\nQuestion: {question}\nHelpful answer:",
    RULES + "\n{{ context }}\nToday is {{ date }}. {{ user.name }} asks: {{ question }}",
    RULES + '\nReply as {{"date": "…", "id": 1}}.\n{question}\n' + RULES[:40],
    'Reply as {"date": "…", "user": {"name": "…"}}. ' + RULES + " {question}",
    "You are {agent_name} of {company_name}, and speak {language}. " + RULES,
    "You work for {{ company.name }} with {{ tool_names }}. " + RULES,
    "{# the date of the user #}{% if is_short %}Be short.{% endif %} " + RULES + " {{ messages }}",
    RULES + " {json.dumps(settings, sort_keys=True)}",
    "As of 2024-06-01 the handbook is the third. " + RULES,
    "{{! the date }}" + RULES,
    RULES * 4 + "\n{question}\nAnswer in the language of the question, with the number of its section.",
    "Be kind.\r\nBe short.\r\n" + RULES.replace(". ", ".\r\n"),
)


def found_in(text: str, tmp_path: Path, name: str = "prompt.txt") -> tuple[Finding, ...]:
    file = tmp_path / name
    file.write_bytes(text.encode())
    return lint(file)


@pytest.mark.parametrize("text", BROKEN)
def test_what_stands_before_stable_text_is_named(text: str, tmp_path: Path) -> None:
    assert [finding.code for finding in found_in(text, tmp_path)] == [BROKEN[text]]


@pytest.mark.parametrize("text", WHOLE)
def test_what_stands_behind_or_is_the_same_is_not_named(text: str, tmp_path: Path) -> None:
    assert found_in(text, tmp_path) == ()


def test_line_place_and_share_are_told(tmp_path: Path) -> None:
    (finding,) = found_in(f"Be kind.\nToday is {{date}}.\n{RULES}", tmp_path)
    assert (finding.line, finding.place, finding.requests) == (2, 18, 0)
    assert finding.lost_share == pytest.approx(len(RULES) / (len(RULES) + 18), abs=0.02)


def prompt_of(*messages: tuple[str, str]) -> dict[str, Any]:
    """A chat prompt as LangChain saves it; a role "placeholder" is one for messages."""

    def saved(name: str, **fields: Any) -> dict[str, Any]:
        return {"lc": 1, "type": "constructor", "id": ["langchain", "prompts", name], "kwargs": fields}

    return saved(
        "ChatPromptTemplate",
        messages=[
            saved("MessagesPlaceholder", variable_name=text)
            if role == "placeholder"
            else saved(role, prompt=saved("PromptTemplate", template=text, template_format="f-string"))
            for role, text in messages
        ],
    )


@pytest.mark.parametrize(
    ("messages", "codes"),
    [
        ([("system", RULES), ("placeholder", "history"), ("human", "{question}")], []),
        ([("system", "It is {date}. " + RULES), ("human", "{question}")], ["timestamp"]),
        ([("human", "{context}"), ("system", RULES), ("human", "{question}")], ["chunks-first"]),
        ([("placeholder", "history"), ("system", RULES)], ["question-first"]),
    ],
)
def test_a_saved_langchain_prompt_is_read(messages: Any, codes: list[str], tmp_path: Path) -> None:
    found = found_in(json.dumps(prompt_of(*messages)), tmp_path, "prompt.json")
    assert [finding.code for finding in found] == codes


def test_a_langchain_prompt_is_read_as_an_object() -> None:
    prompts = pytest.importorskip("langchain_core.prompts")
    turns = [("system", "It is {{ date }}. " + RULES), ("human", "{{ question }}")]
    prompt = prompts.ChatPromptTemplate.from_messages(turns, template_format="mustache")
    assert [finding.code for finding in lint(prompt)] == ["timestamp"]
    assert [finding.code for finding in lint(prompts.PromptTemplate.from_template(RULES + " {date}"))] == []


@dataclass
class FewShot:
    """The fields of LangChain's few-shot template."""

    example_selector: object = None
    example_prompt: object = "{q}"
    prefix: str = "Answer as here."
    suffix: str = RULES + " {question}"
    examples: list[dict[str, str]] = field(default_factory=lambda: [{"q": "Is it {open}?"}])


def test_examples_that_are_selected_for_each_question_are_named() -> None:
    assert [finding.code for finding in lint(FewShot(example_selector=object()))] == ["examples-order"]
    assert lint(FewShot()) == ()


def test_a_prompt_is_read_from_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prompts_of_mine.py").write_text(f'class Chat:\n    system = "It is {{date}}. {RULES}"\n')
    monkeypatch.chdir(tmp_path)
    (finding,) = lint("prompts_of_mine:Chat.system")
    assert (finding.code, finding.source) == ("timestamp", "prompts_of_mine:Chat.system")
    with pytest.raises(UnreadablePrompts, match="cannot be loaded"):
        lint("prompts_of_mine:Chat.greeting")


@pytest.mark.parametrize("wrong", [object(), 5, {"lc": 1}])
def test_what_is_no_prompt_is_told(wrong: object) -> None:
    with pytest.raises(UnreadablePrompts, match="no LangChain prompt"):
        lint(wrong)


WRONG_NAMES = {
    "a missing file": "missing.txt",
    "a missing file as a path": Path("missing.txt"),
    "a folder": ".",
    "a template's text": "You are {name}. " * 400,
    "a template's text with a colon": "You are an assistant: help {name}.\n" * 400,
    "a NUL": "prompt\0.txt",
    "a missing module": "no_such_module:prompt",
}


@pytest.mark.parametrize("name", WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_a_name_of_nothing_that_can_be_read_is_told_in_short(name: str | Path) -> None:
    with pytest.raises(UnreadablePrompts) as told:
        lint(name)
    assert len(str(told.value)) < 300


MODULES = {
    "changes the folder": "import os\nos.chdir('/')\n",
    "takes the path": "import sys\nsys.path.remove(sys.path[0])\n",
    "adds to the path": "import sys\nsys.path.insert(0, '/elsewhere')\n",
}


@pytest.mark.parametrize("does", MODULES.values(), ids=MODULES)
def test_whatever_a_module_does_its_prompt_is_read_and_the_path_is_as_it_was(
    does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "moving_prompts", raising=False)
    (tmp_path / "moving_prompts.py").write_text(f"{does}prompt = 'Today is {{date}}. ' + 'Answer politely. ' * 30\n")
    before = sys.path[:]
    assert [finding.code for finding in lint("moving_prompts:prompt")] == ["timestamp"]
    assert sys.path == before


def test_a_module_that_ends_the_program_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ending_prompts.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(UnreadablePrompts, match="SystemExit"):
        lint("ending_prompts:prompt")


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadablePrompts, match="no text in UTF-8"):
        lint(file)
