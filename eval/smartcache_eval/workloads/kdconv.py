"""KdConv: Chinese talk of films, music and places, each answer marked with the thing and the property it gives."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation, part_of
from smartcache_eval.workloads.small_talk import chattier, led_in

DOMAINS = ("film", "music", "travel")

# Property: how a question must ask for it to be trusted, how it is asked in full, and what kind of thing has it.
PROPERTIES: Mapping[str, tuple[str, str, str]] = {
    "上映时间": (r"上映", "{}是什么时候上映的？", "film"),
    "导演": (r"导演|执导", "{}的导演是谁？", "film"),
    "主演": (r"主演|谁演", "{}的主演是谁？", "film"),
    "票房": (r"票房", "{}的票房是多少？", "film"),
    "片长": (r"片长|多长时间|时长", "{}的片长是多少？", "film"),
    "出生日期": (r"出生|哪年生|生日|多大|岁数", "{}是哪年出生的？", "person"),
    "出生地": (r"哪里人|哪儿人|哪的人|出生在|出生地|什么地方人", "{}的出生地是哪里？", "person"),
    "国籍": (r"国籍|哪国|哪个国家", "{}的国籍是什么？", "person"),
    "毕业院校": (r"毕业|院校|哪所学校|什么学校", "{}是哪所学校毕业的？", "person"),
    "身高": (r"身高|多高", "{}的身高是多少？", "person"),
    "发行时间": (r"发行", "{}是什么时候发行的？", "album"),
    "曲目数量": (r"多少首|几首|曲目", "{}收录了多少首歌？", "album"),
    "音乐风格": (r"风格|曲风", "{}是什么音乐风格？", "album"),
    "所属专辑": (r"哪张专辑|什么专辑|专辑是|收录", "{}收录在哪张专辑里？", "song"),
    "门票": (r"门票|收费|票价", "{}的门票是多少钱？", "place"),
    "地址": (r"地址|在哪|位置|什么地方", "{}的地址在哪里？", "place"),
    "开放时间": (r"开放|开门|几点", "{}的开放时间是什么？", "place"),
    "电话": (r"电话|号码", "{}的电话是多少？", "place"),
    "建议游玩时间": (r"多久|多长时间|游玩时间|几个小时", "{}建议游玩多久？", "place"),
}
ENDS_AS_QUESTION = re.compile(r"[？?]\s*$")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a dialogue. `clause` is its last part, without what was said before it; it `leans` where it does
    not name what it is about."""

    history: tuple[str, ...]
    clause: str
    entity: str
    attribute: str

    @property
    def truth(self) -> str:
        return f"{self.entity} {self.attribute}"

    @property
    def kind(self) -> str:
        return PROPERTIES[self.attribute][2]

    @property
    def full(self) -> str:
        return PROPERTIES[self.attribute][1].format(self.entity)

    @property
    def leans(self) -> bool:
        return self.entity not in self.clause and any(self.entity in text for text in self.history)


def steps(folder: Path) -> list[Step]:
    """Around each question that leans on its history: it in another's words, with small talk, and in full (must hit);
    in another dialogue, with the name in the history changed, and another property asked (must miss). What is taken
    from other dialogues is of the same part. The truth is the thing and the property, the group the thing."""
    asked = [one for domain in DOMAINS for one in _all_asked(folder, domain)]
    found: list[Step] = []
    for part in ("choose", "report"):
        mine = [one for one in asked if part_of(one.entity) == part and one.leans]
        found += [step for one in _distinct(mine) for step in _around(one, mine)]
    return found


def _around(one: Asked, mine: Sequence[Asked]) -> Iterator[Step]:
    random = Random("".join((*one.history, one.clause)))
    history, group = list(one.history), one.entity
    yield Step(conversation(history, one.clause), one.truth, group, "asked")
    alike = [other for other in mine if other.attribute == one.attribute and other.clause != one.clause]
    elsewhere = [other for other in alike if other.entity != one.entity]
    apart = [other for other in mine if other.kind == one.kind and other.attribute != one.attribute]
    made: list[tuple[str, Sequence[str], str, str]] = [
        (
            "chattier history",
            chattier(history, random, chinese=True),
            led_in(one.clause, random, chinese=True),
            one.truth,
        ),
        ("in full", (), one.full, one.truth),
    ]
    if alike:
        made.append(("reworded question", history, random.choice(alike).clause, one.truth))
    if elsewhere:
        other = random.choice(elsewhere)
        made.append(("context swapped", other.history, one.clause, other.truth))
        made.append(("history irrelevant", other.history, one.full, one.truth))
        changed = [text.replace(one.entity, other.entity) for text in history]
        made.append(("detail swapped", changed, one.clause, other.truth))
    if apart:
        other = random.choice(apart)
        made.append(("intent flipped", history, other.clause, f"{one.entity} {other.attribute}"))
    for sort, said, question, truth in made:
        yield Step(conversation(said, question), truth, group, sort, 1.0)


def _distinct(asked: Sequence[Asked]) -> list[Asked]:
    """One question for each thing and property: others of it lend their words."""
    return list({one.truth: one for one in reversed(asked)}.values())


def _all_asked(folder: Path, domain: str) -> Iterator[Asked]:
    rows = json.loads(file_in(folder, "kdconv", "raw", "data", domain, "dev.json").read_text(encoding="utf-8"))
    for row in rows:
        messages = row["messages"]
        for place in range(2, len(messages) - 1):
            yield from _asked(messages, place)


def _asked(messages: Sequence[dict[str, Any]], place: int) -> Iterator[Asked]:
    """The question at `place`, where the next turn answers it with one property, asked for in words that say so."""
    question, answer = messages[place], messages[place + 1]
    marks = answer.get("attrs", [])
    if len(marks) != 1 or question.get("attrs") or marks[0]["attrname"] not in PROPERTIES:
        return
    name, clause = marks[0]["attrname"], _last_clause(question["message"])
    asks = [other for other, (pattern, _, _) in PROPERTIES.items() if re.search(pattern, clause)]
    entity = re.sub(r"[（(].*", "", marks[0]["name"]).strip("《》 ")
    is_one = asks == [name] or (set(asks) == {"出生日期", "出生地"} and name == "出生日期")
    if ENDS_AS_QUESTION.search(clause) and is_one and entity:
        history = tuple(message["message"] for message in messages[:place])
        if _points_at(history, entity):
            yield Asked(history, clause, entity, name)


def _points_at(history: Sequence[str], entity: str) -> bool:
    """Whether what the question leans on is near: the name was said in the last four turns."""
    return any(entity in text for text in history[-4:])


def _last_clause(text: str) -> str:
    """What comes after the last comma or stop, where that is long enough to ask something."""
    clauses = re.split(r"[，。！,!]", text.strip())
    return clauses[-1].strip() if len(clauses[-1].strip()) >= 5 else text.strip()
