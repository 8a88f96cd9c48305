"""The one truth on disk: limits, damage, foreign files, and text that is gone when it is forgotten."""

from __future__ import annotations

import sqlite3

import pytest

from smartcache import Answer, ChunkRef, Request, SmartCache, Turn
from smartcache.errors import DamagedStore, ForeignStore, StoreError
from smartcache.testing import BagOfWordsEmbedder, FakeClock, FakeModel, FakeSearch, chunk

QUESTION = "How do I reset the hub to factory settings?"


def ask(text: str = QUESTION, scope: str = "") -> Request:
    return Request([Turn("user", text)], scope)


def open_cache(path, **settings) -> SmartCache:
    return SmartCache.open(path, embedder=BagOfWordsEmbedder(), **{"strict": True} | settings)


def test_a_folder_holds_the_database(tmp_path):
    open_cache(tmp_path).close()
    assert (tmp_path / "smartcache.db").exists()


def test_missing_folders_are_made(tmp_path):
    open_cache(tmp_path / "a" / "b" / "cache.db").close()
    assert (tmp_path / "a" / "b" / "cache.db").exists()


def test_answers_survive_a_restart_exactly_and_semantically(tmp_path):
    with open_cache(tmp_path) as cache:
        cache.answer(ask(), FakeModel())
    with open_cache(tmp_path) as cache:
        assert cache.lookup(ask()).served_by == "exact"
        assert cache.lookup(ask("to factory settings, how do I reset the hub")).served_by == "semantic"


@pytest.mark.parametrize("content", [b"dear diary", b"\x89PNG\r\n\x1a\n" + b"\0" * 100])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for strict in (True, False):
        with pytest.raises(ForeignStore, match="choose another path"):
            open_cache(path, strict=strict)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_another_programs_database_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE answers (mine TEXT)")
    before = path.read_bytes()
    with pytest.raises(ForeignStore, match="another program's"):
        open_cache(path)
    assert path.read_bytes() == before


def test_a_database_of_a_newer_version_is_refused(tmp_path):
    open_cache(tmp_path / "cache.db").close()
    with sqlite3.connect(tmp_path / "cache.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ForeignStore, match="newer SmartCache"):
        open_cache(tmp_path / "cache.db")


def damage(path) -> None:
    """Overwrites the middle of a database with other bytes."""
    raw = bytearray(path.read_bytes())
    raw[4096:-100] = b"\xa5" * (len(raw) - 4196)
    path.write_bytes(raw)


def test_a_damaged_database_is_put_aside_and_serves_nothing(tmp_path):
    path = tmp_path / "cache.db"
    with open_cache(path) as cache:
        cache.answer(ask(), FakeModel())
    damage(path)
    broken = path.read_bytes()
    with open_cache(path, strict=False) as cache:
        assert cache.lookup(ask()) is None
        assert cache.stats().troubles == {"damaged": 1}
        cache.answer(ask(), FakeModel())
    assert (tmp_path / "cache.db.damaged-1").read_bytes() == broken
    assert open_cache(path).lookup(ask()) is not None


def test_a_damaged_database_is_raised_when_strict_and_left_as_it_is(tmp_path):
    path = tmp_path / "cache.db"
    with open_cache(path) as cache:
        cache.answer(ask(), FakeModel())
    damage(path)
    broken = path.read_bytes()
    with pytest.raises(DamagedStore):
        open_cache(path)
    assert path.read_bytes() == broken


def test_an_entry_that_was_changed_on_disk_is_never_served_and_kept_aside(tmp_path):
    path = tmp_path / "cache.db"
    with open_cache(path) as cache:
        cache.answer(ask(), FakeModel())
        cache.answer(ask("Which countries do you ship batteries to?"), FakeModel())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET answer = replace(answer, 'answer 1', 'answer 9') WHERE id = 1")
    with open_cache(path) as cache:
        assert cache.lookup(ask()) is None
        assert cache.lookup(ask("to factory settings, how do I reset the hub")) is None
        assert cache.lookup(ask("Which countries do you ship batteries to?")) is not None
        assert cache.stats().troubles == {"damaged": 1}
    with sqlite3.connect(path) as connection:
        assert "answer 9" in connection.execute("SELECT answer FROM answers WHERE id = 1").fetchone()[0]


def test_text_that_looks_like_a_serialised_object_stays_text(tmp_path):
    text = '{"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}'
    with open_cache(tmp_path) as cache:
        cache.store(ask(text), Answer(text, payload={"said": text}))
    with open_cache(tmp_path) as cache:
        assert cache.lookup(ask(text)).text == text
        assert cache.lookup(ask(text)).payload == {"said": text}


def test_no_more_than_max_entries_stay_the_longest_unused_go_first():
    clock = FakeClock()
    cache = open_cache(None, max_entries=3, clock=clock)
    for number in range(3):
        clock.advance(1)
        cache.store(ask(f"question number {number}"), Answer("x"))
    clock.advance(1)
    assert cache.lookup(ask("question number 0")) is not None
    clock.advance(1)
    cache.store(ask("question number 3"), Answer("x"))
    assert cache.stats().entries == 3
    assert cache.lookup(ask("question number 1")) is None
    assert cache.lookup(ask("question number 0")) is not None
    assert cache.stats().evicted == 1


def test_no_more_than_max_bytes_stay():
    cache = open_cache(None, max_bytes=20_000)
    for number in range(30):
        cache.store(ask(f"question number {number}"), Answer("x" * 1000))
    assert 0 < cache.stats().bytes <= 20_000
    assert cache.stats().evicted + cache.stats().entries == 30


@pytest.mark.parametrize("asked", ["sum(bytes) FROM answers", "id, bytes FROM answers ORDER BY used_at, id LIMIT 9"])
def test_what_every_store_asks_about_its_limits_reads_an_index_and_no_answer(tmp_path, asked):
    open_cache(tmp_path / "cache.db").close()
    with sqlite3.connect(tmp_path / "cache.db") as connection:
        ((*_, plan),) = connection.execute(f"EXPLAIN QUERY PLAN SELECT {asked}")
    assert "USING COVERING INDEX answers_used" in plan


def test_what_is_forgotten_is_nowhere_on_disk(tmp_path):
    secret = "xyzzy plugh"
    cache = open_cache(tmp_path / "cache.db")
    cache.answer(ask(f"My password is {secret}, is that good?", "ann"), FakeModel(lambda r, c: f"{secret} is bad"))
    cache.answer(ask(QUESTION, "bob"), FakeModel())
    assert any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())
    assert cache.forget(scope="ann") == 1
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())
    assert cache.lookup(ask(QUESTION, "bob")) is not None


def test_a_long_answer_that_is_forgotten_leaves_no_page_behind(tmp_path):
    secret = "xyzzy plugh " * 10_000
    with open_cache(tmp_path / "cache.db") as cache:
        for number in range(20):
            cache.store(ask(f"secret question number {number}", "ann"), Answer(secret))
            cache.store(ask(f"other question number {number}", "bob"), Answer("plain " * 1000))
    cache = open_cache(tmp_path / "cache.db")
    assert b"xyzzy" in (tmp_path / "cache.db").read_bytes()
    assert cache.forget(scope="ann") == 20
    assert not any(b"xyzzy" in file.read_bytes() for file in tmp_path.iterdir())


@pytest.fixture
def read_elsewhere(tmp_path):
    """A cache whose file another program is reading: its log cannot be emptied until `read_elsewhere[1]()`."""
    cache = open_cache(tmp_path / "cache.db", strict=False)
    cache.answer(ask("My password is xyzzy", "ann"), FakeModel(), search=FakeSearch([chunk("1", "xyzzy")]))
    cache._entries._connection.execute("PRAGMA busy_timeout = 0")
    reader = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM answers").fetchone()
    yield cache, lambda: reader.execute("COMMIT")
    cache.close()
    reader.close()


def holds(folder, text: bytes) -> bool:
    return any(text in file.read_bytes() for file in folder.iterdir())


@pytest.mark.parametrize("work", [lambda cache: cache.forget(scope="ann"), lambda cache: cache.clear()])
def test_what_the_log_keeps_for_another_reader_is_said_and_forgotten_by_the_next_forget(tmp_path, read_elsewhere, work):
    cache, end_reading = read_elsewhere
    with pytest.raises(StoreError, match=r"cache\.db-wal, which another reader holds: forget it again"):
        work(cache)
    assert cache.stats().entries == 0
    assert holds(tmp_path, b"xyzzy")
    end_reading()
    work(cache)
    assert not holds(tmp_path, b"xyzzy")


def test_what_the_log_keeps_is_forgotten_when_the_cache_is_closed(tmp_path, read_elsewhere):
    cache, end_reading = read_elsewhere
    with open_cache(tmp_path / "cache.db"):  # it is not the last one to close
        with pytest.raises(StoreError):
            cache.forget(scope="ann")
        end_reading()
        cache.close()
        assert cache.stats().troubles == {}
        assert not holds(tmp_path, b"xyzzy")


def test_what_the_log_still_keeps_when_the_cache_is_closed_is_counted(tmp_path, read_elsewhere):
    cache, _ = read_elsewhere
    with pytest.raises(StoreError):
        cache.forget(scope="ann")
    cache.close()
    assert cache.stats().troubles == {"close": 1}


def test_what_the_log_keeps_is_gone_from_memory_all_the_same(read_elsewhere):
    cache, _ = read_elsewhere
    search = FakeSearch([chunk("1", "xyzzy")])
    cache.retrieve("passwords", search, scope="ann")
    with pytest.raises(StoreError):
        cache.forget(scope="ann")
    cache.retrieve("passwords", search, scope="ann")
    assert len(search.queries) == 2
    assert cache.lookup(ask("My password is xyzzy", "ann")) is None


def test_forget_takes_what_meets_every_condition():
    clock = FakeClock()
    cache = open_cache(None, clock=clock)
    search = FakeSearch([chunk("1", "house")])
    cache.answer(ask("old and on chunk number 1"), FakeModel(), search=search)
    clock.advance(100)
    cache.answer(ask("new and on chunk number 1"), FakeModel(), search=search)
    cache.store(ask("new and on nothing at all"), Answer("x", evidence=frozenset()))
    assert cache.forget(chunk_ids=["1"], older_than=50) == 1
    assert cache.lookup(ask("new and on chunk number 1")) is not None
    assert cache.forget(chunk_ids=["1"]) == 1
    assert cache.lookup(ask("new and on nothing at all")) is not None


def test_a_forgotten_chunk_is_no_longer_retrieved_from_memory():
    cache = open_cache(None)
    search = FakeSearch([chunk("1", "house")])
    cache.retrieve("buildings", search)
    cache.forget(chunk_ids=["1"])
    cache.retrieve("buildings", search)
    assert len(search.queries) == 2


def test_forget_wants_to_know_what():
    with pytest.raises(ValueError, match="say what to forget"):
        open_cache(None).forget()


def test_clear_empties_one_scope_or_all():
    cache = open_cache(None)
    for scope in ("ann", "bob"):
        cache.answer(ask(QUESTION, scope), FakeModel())
    cache.clear("ann")
    assert cache.lookup(ask(QUESTION, "ann")) is None
    assert cache.lookup(ask(QUESTION, "bob")) is not None
    cache.clear()
    assert cache.stats().entries == 0


@pytest.mark.parametrize("work", [lambda cache: cache.forget(scope=""), lambda cache: cache.clear()])
def test_what_cannot_be_forgotten_now_is_said_and_not_passed_over(tmp_path, work):
    cache = open_cache(tmp_path / "cache.db")
    cache.store(ask(), Answer("secret"))
    cache.close()
    with pytest.raises(StoreError, match="cannot be used now"):
        work(cache)
    with open_cache(tmp_path / "cache.db") as cache:
        work(cache)
        assert cache.stats().entries == 0


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (Answer("a house", evidence=None), 1),
        (Answer("a house", evidence=frozenset(), citations=(ChunkRef("1", "v1"),)), 1),
        (Answer("a house", evidence=frozenset(), citations=(ChunkRef("2", "v1"),)), 0),
        (Answer("a house", evidence=frozenset({ChunkRef("2", "v1")})), 0),
    ],
    ids=["unknown evidence", "cited only", "cites another", "rests on another"],
)
def test_forget_of_a_chunk_takes_what_may_hold_its_text(tmp_path, answer, count):
    with open_cache(tmp_path) as cache:
        cache.store(ask(), answer)
        assert cache.forget(chunk_ids=["1"]) == count
        assert (cache.lookup(ask()) is None) == bool(count)


@pytest.mark.parametrize("name", ["naïve", "\udc80", '"', "\ufdd0x", "a\0b", "\0"])
@pytest.mark.parametrize("is_cited", [True, False], ids=["cited", "rested on"])
def test_whatever_the_chunk_is_called(name, is_cited):
    cache, ref = open_cache(None), ChunkRef(name, "v1")
    refs = {"citations": (ref,), "evidence": frozenset()} if is_cited else {"evidence": frozenset({ref})}
    cache.store(ask(), Answer("a house", **refs))
    assert cache.forget(chunk_ids=[f"{name}?", name[:-1]]) == 0
    assert cache.forget(chunk_ids=[name]) == 1


def test_an_entry_that_cannot_be_read_keeps_no_chunk_from_being_forgotten(tmp_path):
    with open_cache(tmp_path, strict=False) as cache:
        cache.store(ask(), Answer("a house", evidence=frozenset()))
    with sqlite3.connect(tmp_path / "smartcache.db") as connection:
        connection.execute("UPDATE answers SET answer = '{', basis = '{'")
    with open_cache(tmp_path, strict=False) as cache:
        assert cache.forget(chunk_ids=["1"]) == 1


def test_a_file_that_is_kept_aside_is_named_with_what_is_left_to_do(tmp_path, caplog):
    path = tmp_path / "cache.db"
    with open_cache(path) as cache:
        cache.answer(ask(), FakeModel())
    damage(path)
    with open_cache(path, strict=False) as cache:
        cache.clear()
    assert (tmp_path / "cache.db.damaged-1").exists()
    assert "cache.db.damaged-1, which forget and clear leave" in caplog.text
