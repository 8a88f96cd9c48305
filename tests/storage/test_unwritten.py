"""News that one process could not write, and what another one told of the same since."""

from __future__ import annotations

from functools import partial

import pytest

from smartcache import Answer, KnowledgeUpdate, SmartCache
from smartcache.errors import StoreError
from smartcache.testing import FakeModel, FakeSearch, chunk

LATE, NEW = "told first, written late", "told since"

kb = partial(chunk, source="kb")


@pytest.fixture
def keep(ask):
    """Stores an answer that rests on chunks."""

    def keep(cache: SmartCache, *chunks, text: str = "an answer") -> None:
        assert cache.store(ask(), Answer(text, evidence=frozenset(chunk.ref for chunk in chunks)))

    return keep


SINCE = {
    "removed": {"removed": ["1"]},
    "removed of any source": {"removed": ["1"], "source": ""},
    "edited": {"changed": [kb("1", NEW)]},
}


@pytest.mark.parametrize("since", SINCE.values(), ids=SINCE)
@pytest.mark.parametrize("source", ["kb", ""])
def test_what_another_told_since_is_not_overridden(two, ask, told, could_not_tell, keep, since, source):
    one, other = two
    could_not_tell(one, changed=[kb("1", LATE)], source=source)
    keep(other, kb("1", LATE))
    told(other, **since)
    assert one.lookup(ask()) is None
    told(one, added=[chunk("9", "x", source="else")], source="else")
    assert [cache.lookup(ask()) for cache in two] == [None, None]


def test_what_another_left_out_of_a_whole_set_stays_out(two, ask, told, could_not_tell, keep):
    one, other = two
    could_not_tell(one, added=[kb("1", LATE)])
    keep(other, kb("1", LATE))
    other.update_knowledge(KnowledgeUpdate.replace("kb", [kb("2", NEW)]))
    told(one, added=[chunk("9", "x", source="else")], source="else")
    assert [cache.lookup(ask()) for cache in two] == [None, None]


def test_a_whole_set_that_was_written_late_ends_nothing_that_came_since(two, ask, told, unwritable):
    one, other = two
    with unwritable(one), pytest.raises(StoreError):
        one.update_knowledge(KnowledgeUpdate.replace("kb", [kb("2", LATE)]))
    told(other, added=[kb("1", NEW)])
    told(one, added=[chunk("9", "x", source="else")], source="else")
    for cache in two:
        cache.lookup(ask())
        cache.answer(ask(), FakeModel(), search=FakeSearch([kb("1", NEW)]))
        assert cache.lookup(ask()) is not None
        cache.clear()


@pytest.mark.parametrize("now", [LATE, NEW])
def test_neither_is_believed_and_answers_over_either_are_kept_again(two, ask, told, could_not_tell, keep, now):
    one, other = two
    could_not_tell(one, changed=[kb("1", LATE)])
    told(other, changed=[kb("1", NEW)])
    keep(other, kb("1", NEW))
    told(one, added=[chunk("9", "x", source="else")], source="else")
    assert [cache.lookup(ask()) for cache in two] == [None, None]
    for cache in two:
        cache.answer(ask(), FakeModel(), search=FakeSearch([kb("1", now)]))
        assert cache.lookup(ask()) is not None
        cache.clear()


def test_the_next_that_tells_of_it_is_believed(two, ask, told, could_not_tell, keep):
    one, other = two
    could_not_tell(one, changed=[kb("1", LATE)])
    told(other, changed=[kb("1", NEW)])
    told(one, changed=[kb("1", "told last")])
    keep(other, kb("1", "told last"))
    assert [cache.lookup(ask()) is None for cache in two] == [False, False]
    told(other, removed=["1"])
    assert [cache.lookup(ask()) for cache in two] == [None, None]


def test_told_again_it_is_no_newer(two, ask, told, could_not_tell, keep):
    one, other = two
    could_not_tell(one, changed=[kb("1", LATE)])
    keep(other, kb("1", LATE))
    told(other, changed=[kb("1", NEW)])
    told(one, changed=[kb("1", LATE)])
    assert [cache.lookup(ask()) for cache in two] == [None, None]


@pytest.mark.parametrize("since", [{"changed": [kb("1", LATE)]}, {"removed": ["2"]}], ids=["the same", "of another"])
def test_what_another_told_that_says_nothing_else_of_it_doubts_nothing(two, ask, told, could_not_tell, keep, since):
    one, other = two
    could_not_tell(one, changed=[kb("1", LATE)])
    told(other, **since)
    keep(other, kb("1", LATE))
    told(one, added=[chunk("9", "x", source="else")], source="else")
    assert [cache.lookup(ask()) is None for cache in two] == [False, False]


def test_two_of_one_process_are_in_their_order(two, ask, told, could_not_tell, keep):
    one, other = two
    could_not_tell(one, changed=[kb("1", "first")])
    could_not_tell(one, changed=[kb("1", "second")])
    told(one, added=[chunk("9", "x", source="else")], source="else")
    keep(other, kb("1", "second"))
    assert [cache.lookup(ask()) is None for cache in two] == [False, False]
    other.clear()
    keep_refused = other.store(ask(), Answer("x", evidence=frozenset([kb("1", "first").ref])))
    assert not keep_refused


def test_a_doubt_survives_a_restart(tmp_path, ask, told, could_not_tell, keep):
    with SmartCache.open(tmp_path, mode="exact") as one, SmartCache.open(tmp_path, mode="exact") as other:
        could_not_tell(one, changed=[kb("1", LATE)])
        told(other, changed=[kb("1", NEW)])
        keep(other, kb("1", NEW))
        told(one, removed=["9"])
    with SmartCache.open(tmp_path, mode="exact") as cache:
        assert cache.lookup(ask()) is None
        keep(cache, kb("1", NEW))
        assert cache.lookup(ask()) is not None
        assert cache.known_chunks("kb") == {"1"}, "which is compared with what there is"
