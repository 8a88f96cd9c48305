"""Knowledge bases as they changed over time: real histories, and random edits of which each kind is known."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from smartcache_eval.folder import UnreadableWorkload, file_in

Texts = Mapping[str, str]  # by id
TAU2, FAQ, ETCD = "tau2-banking-kb", "docs-faq-history", "etcd-docs-versions"
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)
RANDOM_STEPS = 90
LITERAL = re.compile(
    r"(```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”)", re.DOTALL
)  # where white space says something


@dataclass(frozen=True, slots=True)
class Version:
    """All that a knowledge base holds, and by what kind of change it came to that."""

    texts: Texts
    kind: str = "upstream"


@dataclass(frozen=True, slots=True)
class History:
    """The versions of one knowledge base, in order, and what is asked of each."""

    name: str
    versions: Sequence[Version]
    questions: Sequence[str]


def histories(folder: Path, seed: int, limit: int | None = None) -> list[History]:
    """The public histories, each with at most `limit` questions. Raises UnreadableWorkload where one is not there."""
    found = [_bank(folder, seed), *_faqs(folder), _etcd(folder)]
    return [History(h.name, h.versions, _sample(h.questions, min(limit or 200, 200), seed)) for h in found]


def edited(texts: Texts, seed: int, steps: int = RANDOM_STEPS) -> list[Version]:
    """Random changes, one kind a version: of white space at the ends of lines, between words, by other line breaks, and
    in code and quotations, where it says something else; of an id, of what a text says, one more, one less."""
    chance, versions, now = random.Random(seed), list[Version](), dict(texts)
    kinds: tuple[Callable[[dict[str, str], str, random.Random], None], ...] = (
        _space, _tabs, _reflow, _quoted, _rename, _edit, _add, _delete
    )  # fmt: skip
    for number in range(steps):
        change = kinds[number % len(kinds)]
        for id in chance.sample(sorted(now), min(3, len(now) - 1)):
            change(now, id, chance)
        versions.append(Version(dict(now), change.__name__.strip("_")))
    return versions


def _space(now: dict[str, str], id: str, chance: random.Random) -> None:
    now[id] = "\n".join(line + "  " for line in now[id].split("\n")).replace("\n\n", "\n\n\n") + "\n"


def _tabs(now: dict[str, str], id: str, chance: random.Random) -> None:
    """A tab for one space in the prose of each line."""
    now[id] = _in_prose(now[id], lambda prose: re.sub(r"(?m)^(\w[^ \n]*) (?=\w)", r"\1\t", prose))


def _reflow(now: dict[str, str], id: str, chance: random.Random) -> None:
    """The lines of prose at another width."""
    width = chance.choice((40, 60, 100))
    now[id] = _in_prose(now[id], lambda prose: re.sub(r"(?m)^[A-Za-z].*$", lambda line: fill(line[0], width), prose))


def _quoted(now: dict[str, str], id: str, chance: random.Random) -> None:
    """One space more in the first code or quotation that has any."""
    parts = LITERAL.split(now[id])
    if place := next((n for n in range(1, len(parts), 2) if " " in parts[n]), None):
        now[id] = "".join([*parts[:place], parts[place].replace(" ", "  ", 1), *parts[place + 1 :]])


def _in_prose(text: str, change: Callable[[str], str]) -> str:
    parts = LITERAL.split(text)
    return "".join(part if n % 2 else change(part) for n, part in enumerate(parts))


def _rename(now: dict[str, str], id: str, chance: random.Random) -> None:
    now[f"moved/{chance.randrange(10**6)}/{id}"] = now.pop(id)


def _edit(now: dict[str, str], id: str, chance: random.Random) -> None:
    words = now[id].split(" ")
    words[chance.randrange(len(words))] = f"no longer {chance.randrange(1000)}"
    now[id] = " ".join(words)


def _add(now: dict[str, str], id: str, chance: random.Random) -> None:
    """A text with half of one and half of another: near to some questions, far from most."""
    one, other = now[id], now[chance.choice(sorted(now))]
    now[f"new/{chance.randrange(10**6)}"] = one[: len(one) // 2] + other[len(other) // 2 :]


def _delete(now: dict[str, str], id: str, chance: random.Random) -> None:
    del now[id]


def _bank(folder: Path, seed: int) -> History:
    """The documents as they were first, each upstream commit since, and random changes after that."""
    root = file_in(folder, TAU2, "SOURCE.md").parent
    documents = map(_json, sorted(root.glob("raw/banking_knowledge/documents/doc_*.json")))
    now = {document["id"]: f"{document['title']}\n{document['content']}" for document in documents}
    titles = [text.partition("\n")[0] for text in now.values()]
    commits: dict[str, list[tuple[Path, Path]]] = {}
    for line in (root / "history" / "index.jsonl").read_text(encoding="utf-8").splitlines():
        if (change := json.loads(line))["kind"] == "doc":
            pair = (root / "history" / change["before"], root / "history" / change["after"])
            commits.setdefault(change["commit"], []).append(pair)
    for pairs in reversed(commits.values()):
        now |= _told(before for before, _ in pairs)
    versions = [Version(dict(now))]
    for pairs in commits.values():
        now |= _told(after for _, after in pairs)
        versions.append(Version(dict(now)))
    return History(TAU2, [*versions, *edited(now, seed)], titles)


def _told(files: Iterable[Path]) -> dict[str, str]:
    return {told["id"]: f"{told['title']}\n{told['content']}" for told in map(_json, files)}


def _faqs(folder: Path) -> list[History]:
    """One for each project: every version of its page, a section a text, under its heading."""
    root = file_in(folder, FAQ, "SOURCE.md").parent
    return [_faq(events) for events in sorted(root.glob("*/events.jsonl"))]


def _faq(events: Path) -> History:
    now, versions, asked, at = dict[str, str](), list[Version](), dict[str, None](), 0
    for line in events.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["n"] != at:
            versions.append(Version(dict(now)))
            at = event["n"]
        heading = event["question"]
        asked[heading] = None
        if event["op"] == "remove":
            now.pop(heading, None)
        elif event["op"] == "rename":
            before = now.pop(event["old_question"], "")
            now[heading] = f"{heading}\n{event.get('text', before.partition(chr(10))[2])}"
        else:
            now[heading] = f"{heading}\n{event['text']}"
    versions.append(Version(now))
    return History(events.parent.name, [version for version in versions if version.texts], list(asked))


def _etcd(folder: Path) -> History:
    """Released versions of one manual, a section a text."""
    root, asked = file_in(folder, ETCD, "SOURCE.md").parent / "raw", dict[str, None]()
    versions = []
    for release in sorted(path for path in root.iterdir() if path.is_dir()):
        texts = {}
        for file in sorted(release.rglob("*.md")):
            for heading, text in _sections(file.read_text("utf-8")):
                texts[f"{file.relative_to(release)}#{heading}"] = text
                asked[heading] = None
        versions.append(Version(texts))
    return History(ETCD, versions, [heading for heading in asked if 8 < len(heading) < 80])


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Each heading with the section under it, of those that hold any text."""
    parts = _HEADING.split(text)
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        if body.strip():
            yield heading.strip(), f"{heading.strip()}\n{body.strip()}"


def _sample(questions: Sequence[str], count: int, seed: int) -> list[str]:
    unique = sorted(set(questions))
    return random.Random(seed).sample(unique, min(count, len(unique)))


def _json(file: Path) -> dict[str, str]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UnreadableWorkload(f"{file.name} cannot be read: {error}") from error
