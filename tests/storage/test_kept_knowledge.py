"""What updates told of, on disk: read by every process, as little as is new; numbered alike in all of them."""

from __future__ import annotations

import sqlite3
from functools import partial

import pytest

from smartcache import Answer, KnowledgeUpdate, SmartCache
from smartcache.errors import StoreError
from smartcache.testing import FakeModel, FakeSearch, chunk

kb = partial(chunk, source="kb")


class Loads:
    """How many facts are read from the file."""

    def __init__(self, monkeypatch, cache: SmartCache) -> None:
        self.facts: list[int] = []
        load = cache._knowledge.load

        def counting(facts, *rest):
            self.facts.append(len(facts))
            load(facts, *rest)

        monkeypatch.setattr(cache._knowledge, "load", counting)


def test_a_write_that_tells_nothing_new_has_no_fact_read_again(monkeypatch, two, ask, told):
    one, other = two
    told(other, added=[kb(str(number), f"text {number}") for number in range(50)])
    one.lookup(ask())
    loads = Loads(monkeypatch, one)
    other.answer(ask(), FakeModel())
    assert one.lookup(ask()) is not None
    assert loads.facts == []


def test_of_an_update_of_another_process_only_what_it_tells_is_read(monkeypatch, two, ask, told):
    one, other = two
    told(other, added=[kb(str(number), f"text {number}") for number in range(50)])
    one.answer(ask(), FakeModel(), search=FakeSearch([kb("1", "text 1")]))
    loads = Loads(monkeypatch, one)
    told(other, changed=[kb("1", "edited")], removed=["2"])
    assert one.lookup(ask()) is None
    assert loads.facts == [2]


def test_an_own_update_reads_nothing_back(monkeypatch, two, told):
    one, _ = two
    told(one, added=[kb(str(number), f"text {number}") for number in range(50)])
    loads = Loads(monkeypatch, one)
    told(one, changed=[kb("1", "edited")])
    assert loads.facts == [1], "what it states itself"


def test_an_update_writes_rows_of_its_own_source_alone(two):
    one, _ = two
    for source in ("a", "b", "c"):
        one.update_knowledge(KnowledgeUpdate.replace(source, [chunk("1", "x")]))
    before = one._entries.writes[1]
    one.update_knowledge(KnowledgeUpdate(changed=[chunk("1", "y")], source="a"))
    rows = one._entries.writes[1] - before
    assert rows == 4, "fact, its number, growth, counter"


def test_a_renamed_chunk_is_known_to_the_other_process(two, ask, told):
    one, other = two
    told(one, added=[kb("old", "house"), kb("more", "garage")])
    other.lookup(ask())
    other.answer(ask(), FakeModel(), search=FakeSearch([kb("old", "house")]))
    told(one, added=[kb("new", "house")], removed=["old"])
    assert other.lookup(ask()) is not None
    told(one, removed=["new"])
    assert other.lookup(ask()) is None


def test_what_a_newer_update_names_is_believed_after_a_restart(tmp_path, ask, told):
    with SmartCache.open(tmp_path, mode="exact") as cache:
        cache.update_knowledge(KnowledgeUpdate(removed=["1"]))
        told(cache, added=[kb("1", "house")])
    with SmartCache.open(tmp_path, mode="exact") as cache:
        cache.answer(ask(), FakeModel(), search=FakeSearch([kb("1", "house")]))
        assert cache.lookup(ask()) is not None


@pytest.mark.parametrize("times", [1, 3])
def test_updates_that_could_not_be_written_hide_none_of_another_process(two, ask, told, could_not_tell, times):
    one, other = two
    could_not_tell(one, times, removed=["9"])

    def generate(request, chunks) -> str:
        told(other, added=[kb("2", "a better one")])
        return "an answer that was begun before"

    one.answer(ask(), generate, search=FakeSearch([kb("1", "house")]))
    assert one.lookup(ask()) is None


@pytest.mark.parametrize("times", [1, 3])
def test_they_are_numbered_when_they_are_written_so_that_others_see_them_as_new(two, ask, told, could_not_tell, times):
    one, other = two
    could_not_tell(one, times, added=[kb("2", "a better one")])
    told(other, removed=["9"])
    other.answer(ask(), FakeModel(), search=FakeSearch([kb("1", "house")]))
    assert other.lookup(ask()) is not None
    told(one, removed=["8"])
    assert other.lookup(ask()) is None
    assert other.known_chunks("kb") == one.known_chunks("kb") == {"2"}


def test_once_they_are_written_answers_are_kept_as_ever(two, ask, told, could_not_tell):
    one, other = two
    could_not_tell(one, 3, added=[kb("2", "garage")])
    told(one, added=[kb("2", "garage")])
    for cache in (one, other):
        cache.lookup(ask())
        cache.answer(ask(), FakeModel(), search=FakeSearch([kb("2", "garage")]))
        assert cache.lookup(ask()) is not None
        cache.clear()


def test_what_could_not_be_written_is_known_here_whatever_others_write(two, ask, could_not_tell):
    one, other = two
    one.answer(ask(), FakeModel(), search=FakeSearch([kb("1", "house")]))
    one.answer(ask("Which bridges are there?"), FakeModel(), search=FakeSearch([kb("2", "bridge")]))
    could_not_tell(one, 1, changed=[kb("1", "castle")])
    other.update_knowledge(KnowledgeUpdate(removed=["9"], source="else"))
    assert one.lookup(ask()) is None
    assert one.lookup(ask("Which bridges are there?")) is not None
    assert one.known_chunks("kb") == {"1"}


def test_where_text_came_in_is_kept_once_for_a_source_however_often_it_did(tmp_path, told):
    with SmartCache.open(tmp_path, mode="exact") as cache:
        for number in range(9):
            told(cache, changed=[kb("1", f"text {number}")])
        with sqlite3.connect(tmp_path / "smartcache.db") as connection:
            assert connection.execute("SELECT source, kind, until FROM growth").fetchall() == [("kb", "changed", 9)]


def test_a_file_from_before_facts_had_numbers_is_read(tmp_path, ask, told):
    with SmartCache.open(tmp_path, mode="exact") as cache:
        told(cache, added=[kb("1", "house")])
        cache.answer(ask(), FakeModel(), search=FakeSearch([kb("1", "house")]))
    with sqlite3.connect(tmp_path / "smartcache.db") as connection:
        connection.execute("DROP TABLE told")
    with SmartCache.open(tmp_path, mode="exact") as cache:
        assert cache.lookup(ask()) is not None
        told(cache, changed=[kb("1", "castle")])
        assert cache.lookup(ask()) is None


def test_a_search_that_begins_after_the_news_of_another_process_is_remembered(two, told):
    one, other = two
    told(other, added=[kb("1", "house")])
    search = FakeSearch([kb("1", "house")])
    one.retrieve("buildings", search)
    one.retrieve("buildings", search)
    assert len(search.queries) == 1
    told(other, added=[kb("2", "garage")])
    one.retrieve("buildings", search)
    assert len(search.queries) == 2


@pytest.mark.parametrize("search", [None, FakeSearch([kb("1", "house")])], ids=["no search", "a search"])
def test_an_answer_that_begins_after_the_news_of_another_process_is_kept(two, ask, told, search):
    one, other = two
    told(other, added=[kb("1", "house")])
    model = FakeModel()
    assert [one.answer(ask(), model, search=search).served_by for _ in range(2)] == ["model", "exact"]
    assert one.stats().not_stored == {}


def test_so_is_one_that_is_looked_up_and_stored(two, ask, told):
    one, other = two
    told(other, added=[kb("1", "house")])
    assert one.lookup(ask()) is None
    told(other, added=[kb("1", "house")])
    assert one.store(ask(), Answer("a house", evidence=frozenset([kb("1", "house").ref])))
    assert one.lookup(ask()) is not None


def test_one_that_began_before_them_is_not(two, ask, told):
    one, other = two
    assert one.lookup(ask()) is None
    told(other, added=[kb("2", "garage")])
    one.store(ask(), Answer("a house", evidence=frozenset([kb("1", "house").ref])))
    assert one.lookup(ask()) is None


def test_where_the_news_cannot_be_read_the_model_answers(monkeypatch, two, ask):
    one, _ = two

    def trouble(knowledge):
        raise StoreError("the disk is gone")

    monkeypatch.setattr(one._entries, "refresh_knowledge", trouble)
    assert one.answer(ask(), FakeModel()).served_by == "model"
    assert one.stats().troubles["news"] == 1
