"""`smartcache-eval run updates`: what is counted while documents change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from smartcache import KnowledgeUpdate, SmartCache
from smartcache.layers.chunks import RetrievalCache
from smartcache.testing import BagOfWordsEmbedder
from smartcache_eval import evaluation_command
from smartcache_eval.histories import History, Version, edited
from smartcache_eval.updates import MODES, Played, _chunk, _words, played
from smartcache_eval.vectors import KnownVectors

TOPICS = ("router", "camera", "bridge", "garden", "kettle", "violin", "harbour", "saddle")
FIRST = {f"{topic}.md": f"the price of a {topic} is {number} coins" for number, topic in enumerate(TOPICS)}
QUESTIONS = [f"the price of a {topic}" for topic in TOPICS]


def counted(*versions: Version) -> Played:
    return played(History("mine", [Version(FIRST), *versions], QUESTIONS), KnownVectors(BagOfWordsEmbedder()))


def test_nothing_stale_is_served_whatever_is_edited() -> None:
    result = counted(*edited(FIRST, seed=1, steps=20))
    assert {mode: kinds["all"].stale for mode, kinds in result.modes.items()} == dict.fromkeys(MODES, 0)


@pytest.mark.parametrize("mode", ["answer, reworded", "lookup, reworded"])
def test_questions_in_other_words_are_answered_from_the_cache_too(mode: str) -> None:
    result = counted(Version(FIRST), Version(FIRST))
    assert result.modes[mode]["all"].served >= len(QUESTIONS)


def test_what_a_search_found_is_remembered_and_not_when_it_changed() -> None:
    more = FIRST | {"sun.md": "the sun is hot", "router.md": "the price of a router is 999 coins"}
    searches = counted(Version(more, "edit")).modes["answer"]["edit"].searches
    assert 0 < searches <= 2 * len(QUESTIONS)


def test_an_addition_is_the_end_of_plain_lookups_where_no_similarity_is_known() -> None:
    result = counted(Version(FIRST | {"sun.md": "the sun is hot"}, "add"))
    dropped = {mode: kinds["add"].wrongly_dropped for mode, kinds in result.modes.items() if "reworded" not in mode}
    assert dropped == dict.fromkeys(dropped, 0) | {"lookup": len(QUESTIONS)}


def test_a_search_that_is_remembered_too_long_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetrievalCache, "_is_current", lambda cache, known: True)
    result = counted(Version(FIRST | {"router.md": "the price of a router is 999 coins"}, "edit"))
    assert result.modes["answer"]["edit"].stale > 0


def test_an_edit_that_a_search_would_find_now_surfaces_where_none_is_made() -> None:
    edited = Version(MORE | {"0.md": "the price of a router"}, "edit")
    result = played(History("mine", [Version(MORE), edited], QUESTIONS[:1]), KnownVectors(BagOfWordsEmbedder()))
    found = {mode: (kinds["edit"].surfaced, kinds["edit"].stale) for mode, kinds in result.modes.items()}
    assert found == dict.fromkeys(MODES, (0, 0)) | {"lookup": (1, 0)} | {"lookup, reworded": found["lookup, reworded"]}


SAID = 'Type "a b" and then `c d` here in the box\nto see what the price of a router is.'


@pytest.mark.parametrize(
    ("kind", "says_the_same"), [("space", True), ("tabs", True), ("reflow", True), ("quoted", False)]
)
def test_white_space_says_something_in_code_and_quotations_alone(kind: str, says_the_same: bool) -> None:
    versions = {version.kind: version for version in edited({"a.md": SAID, "b.md": SAID}, seed=1, steps=8)}
    order = [*versions]
    before = versions[order[order.index(kind) - 1]].texts if kind != "space" else {"a.md": SAID, "b.md": SAID}
    (changed,) = (id for id, text in before.items() if versions[kind].texts[id] != text)
    was, now = (_chunk(changed, texts[changed]) for texts in (before, versions[kind].texts))
    assert (_words([was]) == _words([now])) is says_the_same


@pytest.mark.parametrize("kind", ["space", "rename"])
def test_what_leaves_the_text_alone_drops_nothing(kind: str) -> None:
    result = counted(*(version for version in edited(FIRST, seed=1, steps=5)))
    for kinds in (kinds for mode, kinds in result.modes.items() if "reworded" not in mode):
        assert kinds[kind].wrongly_dropped == 0
        assert kinds[kind].served == len(QUESTIONS)


def test_a_cache_that_hears_of_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(cache: SmartCache, update: KnowledgeUpdate) -> int:
        return 0

    monkeypatch.setattr(SmartCache, "update_knowledge", deaf)
    result = counted(Version(FIRST | {"router.md": "the price of a router is 999 coins"}, "edit"))
    assert result.modes["answer"]["edit"].stale > 0


MORE = FIRST | {f"{n}.md": f"nothing at all {n}" for n in range(4)}
CHANGES = {
    "added": MORE | {"new.md": "the price of a router, the price of a router"},
    "changed": MORE | {"router.md": "the price of a router is 999 coins"},
    "removed": {id: text for id, text in MORE.items() if id != "router.md"},
}


def deaf_to(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hear = SmartCache.update_knowledge

    def heard(cache: SmartCache, update: KnowledgeUpdate) -> int:
        return hear(cache, replace(update, **{part: ()}))

    monkeypatch.setattr(SmartCache, "update_knowledge", heard)


def of_a_router(*texts: dict[str, str]) -> Played:
    """The question of a router, of what was there before and of what is there then, twice."""
    versions = [Version(MORE), *(Version(one) for one in texts), Version(texts[-1], "still")]
    return played(History("mine", versions, QUESTIONS[:1]), KnownVectors(BagOfWordsEmbedder()))


@pytest.mark.parametrize("mode", [mode for mode in MODES if "reworded" not in mode])
@pytest.mark.parametrize("part", CHANGES)
def test_a_cache_that_is_deaf_to_one_kind_of_change_is_found_out_in_every_mode(
    part: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf_to(part, monkeypatch)
    counts = of_a_router(CHANGES[part]).modes[mode]
    assert (counts["still"].stale, counts["all"].surfaced) == (1, 0)


@pytest.mark.parametrize("mode", [mode for mode in MODES if "reworded" not in mode])
@pytest.mark.parametrize("part", CHANGES)
def test_a_cache_that_hears_of_it_serves_nothing_stale(part: str, mode: str) -> None:
    counts = of_a_router(CHANGES[part]).modes[mode]
    assert (counts["all"].stale, counts["all"].surfaced, counts["still"].served) == (0, 0, 1)


def test_a_document_that_came_back_with_other_text_was_not_there_all_along(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {id: text for id, text in MORE.items() if id != "0.md"}
    deaf_to("added", monkeypatch)
    assert of_a_router(gone, gone | {"0.md": "the price of a router"}).modes["lookup"]["still"].stale == 1


def test_an_edit_surfaces_under_another_name_too() -> None:
    renamed = {id: text for id, text in MORE.items() if id != "0.md"} | {"other.md": MORE["0.md"]}
    counts = of_a_router(renamed, renamed | {"other.md": "the price of a router"}).modes["lookup"]
    assert (counts["still"].surfaced, counts["all"].stale) == (1, 0)


def test_a_cache_that_forgets_everything_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmartCache, "update_knowledge", lambda cache, update: cache.clear())
    result = counted(Version(FIRST | {"router.md": "the price of a router is 999 coins"}, "edit"))
    assert result.modes["answer"]["edit"].wrongly_dropped > 0


def test_random_changes_are_the_same_by_the_same_seed() -> None:
    assert edited(FIRST, seed=3) == edited(FIRST, seed=3) != edited(FIRST, seed=4)


def test_the_command_prints_every_history_and_the_cost_of_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _public(tmp_path / "public")
    monkeypatch.setenv("SMARTCACHE_DATA", str(tmp_path / "public"))
    monkeypatch.setattr(evaluation_command, "load_embedder", BagOfWordsEmbedder)
    commands = typer.Typer()
    evaluation_command.register(commands)
    done = CliRunner().invoke(commands, ["run", "updates", "--json", "--limit", "3", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert done.stderr.count("histories") == 3
    assert result["stale"] == 0
    assert result["surfaced"] == sum(result["surfaced_by_mode"].values())
    assert result["histories"].keys() == {"tau2-banking-kb", "mine-faq", "etcd-docs-versions"}
    assert result["check_share_of_hit"] > 0
    assert result["wrongly_dropped_share"].keys() == MODES.keys()
    assert json.loads((tmp_path / "out" / "updates-0.json").read_text(encoding="utf-8")) == result


def _public(folder: Path) -> None:
    """The public sets in small."""
    bank = folder / "tau2-banking-kb"
    documents = bank / "raw" / "banking_knowledge" / "documents"
    for path in (documents, bank / "history"):
        path.mkdir(parents=True)
    for number, topic in enumerate(TOPICS):
        told = {"id": f"doc_{topic}", "title": topic, "content": f"The {topic} costs {number} coins."}
        (documents / f"doc_{topic}.json").write_text(json.dumps(told), encoding="utf-8")
    for name, coins in (("before", 5), ("after", 6)):
        told = {"id": "doc_router", "title": "router", "content": f"The router costs {coins} coins."}
        (bank / "history" / f"{name}.json").write_text(json.dumps(told), encoding="utf-8")
    line = {"kind": "doc", "commit": "c1", "before": "before.json", "after": "after.json"}
    (bank / "history" / "index.jsonl").write_text(json.dumps(line), encoding="utf-8")
    faq = folder / "docs-faq-history" / "mine-faq"
    faq.mkdir(parents=True)
    events = [
        {"n": 0, "op": "add", "question": "Why a kettle?", "text": "For tea."},
        {"n": 1, "op": "change", "question": "Why a kettle?", "text": "For tea and coffee."},
        {"n": 2, "op": "rename", "old_question": "Why a kettle?", "question": "Why kettles?"},
        {"n": 3, "op": "remove", "question": "Why kettles?"},
    ]
    (faq / "events.jsonl").write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    for release in ("v1", "v2"):
        (folder / "etcd-docs-versions" / "raw" / release).mkdir(parents=True)
        manual = folder / "etcd-docs-versions" / "raw" / release / "guide.md"
        manual.write_text(f"# Install the server\n\nTake release {release}.\n", encoding="utf-8")
    for name in ("tau2-banking-kb", "docs-faq-history", "etcd-docs-versions"):
        (folder / name / "SOURCE.md").write_text("small", encoding="utf-8")
