"""Names that are no text, or no str: an update must reach every answer that rests on what it names."""

from __future__ import annotations

import pytest

from smartcache import Chunk, ChunkRef, KnowledgeUpdate, Request, SmartCache, Turn
from smartcache.storage.columns import from_column, to_column
from smartcache.testing import FakeModel, FakeSearch, chunk

STRANGE = ["a\0b", "caf\udce9.md#top", "\ud83d", "\ufdd0", '\ufdd0"a"']  # as os.walk names a file that is not UTF-8


def ask(scope: str = "") -> Request:
    return Request([Turn("user", "How do I reset the hub?")], scope)


def open_cache(path) -> SmartCache:
    return SmartCache.open(path, mode="exact", strict=True)


@pytest.mark.parametrize("name", [*STRANGE, "plain", "", "naïve", "猫"])
def test_a_name_comes_back_as_it_went_in(name):
    to_column(name).encode()
    assert from_column(to_column(name)) == name


def test_no_two_names_share_a_column():
    names = [*STRANGE, *map(to_column, STRANGE)]
    assert len(set(map(to_column, names))) == len(set(names))


@pytest.mark.parametrize("name", STRANGE)
def test_an_answer_under_a_strange_name_is_kept_over_a_restart(tmp_path, name):
    with open_cache(tmp_path) as cache:
        cache.answer(ask(name), FakeModel(), search=FakeSearch([chunk(name, "old", source=name)]))
    with open_cache(tmp_path) as cache:
        assert cache.lookup(ask(name)).served_by == "exact"
        assert cache.forget(scope=name, chunk_ids=[name]) == 1


@pytest.mark.parametrize("name", STRANGE)
def test_an_update_of_a_strange_name_is_known_after_a_restart(tmp_path, name):
    with open_cache(tmp_path) as cache:
        cache.answer(ask(), FakeModel(), search=FakeSearch([chunk(name, "old", source=name)]))
        assert cache.update_knowledge(KnowledgeUpdate(changed=[chunk(name, "new", source=name)], source=name)) == 1
    with open_cache(tmp_path) as cache:
        assert cache.lookup(ask()) is None
        assert cache.known_chunks(name) == {name}


@pytest.mark.parametrize("wrong", [5, None, b"5"])
def test_a_name_that_is_no_str_is_refused(wrong):
    with pytest.raises(TypeError, match="str"):
        ChunkRef(wrong, "1")
    with pytest.raises(TypeError, match="str"):
        ChunkRef("1", wrong)
    with pytest.raises(TypeError, match="str"):
        Chunk(ChunkRef("1", "1"), wrong)
    with pytest.raises(TypeError, match="str"):
        KnowledgeUpdate(removed=[wrong])


def test_a_text_is_no_chunk():
    with pytest.raises(TypeError, match="Chunks"):
        KnowledgeUpdate(changed=["a text"])


def test_an_update_that_cannot_be_taken_in_does_not_stop_the_next(tmp_path):
    broken = chunk("a", "text")
    object.__setattr__(broken, "text", None)
    with open_cache(tmp_path) as cache:
        cache.answer(ask(), FakeModel(), search=FakeSearch([chunk("a", "old")]))
        with pytest.raises(AttributeError):
            cache.update_knowledge(KnowledgeUpdate(changed=[broken]))
        assert cache.update_knowledge(KnowledgeUpdate(changed=[chunk("a", "new")])) == 1
        assert cache.lookup(ask()) is None
