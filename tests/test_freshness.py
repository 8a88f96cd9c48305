"""What a change of the documents ends and what it leaves: nearness of what is new, whole sets, and equal text."""

from __future__ import annotations

import pytest

from smartcache import Answer, KnowledgeUpdate, Request, RetrievalSimilarity, SmartCache, Turn, reach
from smartcache.knowledge import UNNAMED
from smartcache.stated import MAX_SPANS, Growth, fewest
from smartcache.testing import BagOfWordsEmbedder, FakeModel, FakeSearch, TableEmbedder, chunk

QUESTION = "Which buildings are there?"
NEAR, FAR, KEPT = "A garage.", "A poem.", "A house."
SIMILARITIES = {(QUESTION, KEPT): 0.6, (QUESTION, NEAR): 0.7, (QUESTION, FAR): 0.5, (QUESTION, "A shed."): 0.55}


def ask(text: str = QUESTION) -> Request:
    return Request([Turn("user", text)])


def kb(id: str, text: str, **more):
    return chunk(id, text, source="kb", **more)


def ranked(count: int = 1, embedder=None) -> RetrievalSimilarity:
    return RetrievalSimilarity(embedder or TableEmbedder(SIMILARITIES), count)


def opened(path=None, **settings) -> SmartCache:
    return SmartCache.open(path, **{"embedder": BagOfWordsEmbedder(), "strict": True} | settings)


def answered(cache: SmartCache, *found, question: str = QUESTION) -> SmartCache:
    cache.answer(ask(question), FakeModel(), search=FakeSearch(list(found)))
    return cache


def told(cache: SmartCache, **update) -> int:
    return cache.update_knowledge(KnowledgeUpdate(**{"source": "kb"} | update))


# An addition matters where it lies nearer than the farthest chunk that was found.


def test_what_lies_farther_than_all_that_was_found_leaves_an_answer():
    cache = answered(opened(retrieval_similarity=ranked()), kb("1", KEPT))
    assert told(cache, added=[kb("2", FAR)]) == 0
    assert cache.lookup(ask()) is not None


def test_an_answer_holds_what_it_rests_on_and_what_was_found_last_alone():
    cache, search = answered(opened(), kb("1", KEPT)), FakeSearch([])
    for width in range(2, 12):
        search.chunks = [kb("1", KEPT.replace(" ", " " * width))]
        told(cache, changed=search.chunks)
        assert cache.answer(ask(), FakeModel(), search=search).served_by == "exact"
    basis = cache._entries.by_key(cache._desk.read(ask()).key).basis
    assert basis.contents.keys() == basis.evidence | basis.found
    assert len(basis.contents) == 2


def test_what_lies_nearer_ends_it():
    cache = answered(opened(retrieval_similarity=ranked()), kb("1", KEPT))
    assert told(cache, added=[kb("2", NEAR)]) == 1
    assert cache.lookup(ask()) is None


@pytest.mark.parametrize(("text", "is_left"), [(FAR, True), (NEAR, False)], ids=["farther", "nearer"])
@pytest.mark.parametrize("kind", ["added", "changed"])
def test_so_it_is_in_a_source_that_the_search_found_nothing_of(text, is_left, kind):
    cache = answered(opened(retrieval_similarity=ranked()), kb("1", KEPT))
    assert told(cache, **{kind: [chunk("2", text, source="else")]}, source="else") == (not is_left)
    assert (cache.lookup(ask()) is not None) == is_left


def test_what_lies_as_near_as_the_weakest_ends_it():
    embedder = TableEmbedder({(QUESTION, KEPT): 0.6, (QUESTION, NEAR): 0.6})
    cache = answered(opened(retrieval_similarity=ranked(embedder=embedder)), kb("1", KEPT))
    told(cache, added=[kb("2", NEAR)])
    assert cache.lookup(ask()) is None


@pytest.mark.parametrize(("text", "is_kept"), [(FAR, True), (NEAR, False)])
def test_so_it_is_for_an_update_that_comes_just_after_an_answer_was_read(monkeypatch, text, is_kept):
    cache = answered(opened(retrieval_similarity=ranked()), kb("1", KEPT))
    by_key = cache._entries.by_key

    def read_ahead_of_the_update(key, knowledge):
        entry = by_key(key, knowledge)
        told(cache, added=[kb("2", text)])
        return entry

    monkeypatch.setattr(cache._entries, "by_key", read_ahead_of_the_update)
    assert (cache.lookup(ask()) is not None) is is_kept


def test_one_near_chunk_among_far_ones_ends_it():
    cache = answered(opened(retrieval_similarity=ranked()), kb("1", KEPT))
    told(cache, added=[kb("2", FAR), kb("3", NEAR)])
    assert cache.lookup(ask()) is None


def test_a_far_chunk_does_not_excuse_a_near_one_before_it():
    cache = answered(opened(retrieval_similarity=ranked()), kb("1", KEPT))
    told(cache, added=[kb("2", NEAR)])
    told(cache, added=[kb("3", FAR)])
    assert cache.lookup(ask()) is None


def test_far_chunks_leave_it_one_update_after_another():
    cache = answered(opened(retrieval_similarity=ranked()), kb("1", KEPT))
    told(cache, added=[kb("2", FAR)])
    told(cache, added=[kb("3", "A shed.")])
    assert cache.lookup(ask()) is not None


def test_a_chunk_that_is_edited_to_lie_nearer_ends_it_too():
    cache = opened(retrieval_similarity=ranked())
    told(cache, added=[kb("1", KEPT), kb("2", FAR)])
    answered(cache, kb("1", KEPT))
    told(cache, changed=[kb("2", "A shed.")])
    assert cache.lookup(ask()) is not None
    told(cache, changed=[kb("2", NEAR)])
    assert cache.lookup(ask()) is None


def test_where_less_was_found_than_asked_for_any_addition_ends_it():
    for found in ([kb("1", KEPT)], []):
        cache = answered(opened(retrieval_similarity=ranked(count=2)), *found)
        told(cache, added=[kb("2", FAR)])
        assert cache.lookup(ask()) is None


def test_scores_of_another_kind_than_the_similarity_are_not_compared():
    for score, is_left in ((0.6, True), (17.2, False)):
        cache = answered(opened(retrieval_similarity=ranked()), kb("1", KEPT, score=score))
        told(cache, added=[kb("2", FAR)])
        assert (cache.lookup(ask()) is not None) is is_left


@pytest.mark.parametrize(
    ("score", "similarity", "is_left"),
    [(0.585, 0.595, False), (0.585, 0.57, False), (0.585, 0.56, True), (0.6, 0.595, True), (None, 0.595, True)],
)
def test_what_a_retriever_may_score_higher_than_we_measure_ends_it(score, similarity, is_left):
    embedder = TableEmbedder({(QUESTION, KEPT): 0.6, (QUESTION, NEAR): similarity})
    cache = answered(opened(retrieval_similarity=ranked(embedder=embedder)), kb("1", KEPT, score=score))
    told(cache, added=[kb("2", NEAR)])
    assert (cache.lookup(ask()) is not None) is is_left


def test_many_are_compared_a_few_at_a_time_and_each_with_all(monkeypatch):
    monkeypatch.setattr(reach, "MAX_COMPARED", 4)
    questions = [f"Question {number}" for number in range(5)]
    found = {(one, f"Answer to {one}"): 0.6 for one in questions}
    embedder = TableEmbedder(found | {(questions[3], NEAR): 0.7})
    cache = opened(retrieval_similarity=ranked(embedder=embedder))
    for one, text in found:
        answered(cache, kb(text, text), question=one)
    assert told(cache, added=[kb("2", FAR), kb("3", NEAR)]) == 1
    assert [cache.lookup(ask(one)) is not None for one in questions] == [True, True, True, False, True]


def test_where_the_similarity_is_not_known_any_addition_ends_it():
    cache = answered(opened(), kb("1", KEPT))
    told(cache, added=[kb("2", FAR)])
    assert cache.lookup(ask()) is None


def test_another_similarity_than_the_answer_was_kept_under_says_nothing(tmp_path):
    with answered(opened(tmp_path / "c.db", retrieval_similarity=ranked()), kb("1", KEPT)):
        pass
    other = TableEmbedder(SIMILARITIES)
    other.name = "another table"
    with opened(tmp_path / "c.db", retrieval_similarity=ranked(embedder=other)) as cache:
        told(cache, added=[kb("2", FAR)])
        assert cache.lookup(ask()) is None


def test_what_was_compared_survives_a_restart(tmp_path):
    with answered(opened(tmp_path / "c.db", retrieval_similarity=ranked()), kb("1", KEPT)) as cache:
        told(cache, added=[kb("2", FAR)])
    with opened(tmp_path / "c.db") as cache:
        assert cache.lookup(ask()) is not None


def test_what_another_process_added_meanwhile_is_not_excused(tmp_path):
    one = answered(opened(tmp_path / "c.db", retrieval_similarity=ranked()), kb("1", KEPT))
    other = opened(tmp_path / "c.db")
    told(other, added=[kb("2", NEAR)])
    told(one, added=[kb("3", FAR)])
    assert one.lookup(ask()) is None


def test_where_something_found_is_gone_what_lay_farther_may_be_found_now():
    cache = opened(retrieval_similarity=ranked(count=2))
    first = [kb("1", KEPT), kb("2", "A shed.")]
    cache.answer(ask(), lambda request, chunks: _resting_on(chunks, "1"), search=FakeSearch(first))
    told(cache, added=[kb("3", FAR)])
    assert cache.lookup(ask()) is not None
    told(cache, removed=["2"])
    assert cache.lookup(ask()) is None


def _resting_on(chunks, id):
    return Answer("A house.", evidence=frozenset(one.ref for one in chunks if one.ref.id == id))


GONE = {
    "removed": {"removed": ["1"]},
    "changed": {"changed": [kb("1", "Another poem.")]},
    "replaced": {"added": [kb("2", KEPT), kb("3", NEAR)], "replaces": True},
}


@pytest.mark.parametrize("update", GONE.values(), ids=GONE)
def test_where_something_found_is_gone_a_search_at_hand_is_asked(update):
    cache = opened()
    told(cache, added=[kb("1", FAR), kb("2", KEPT), kb("3", NEAR)])
    cache.answer(ask(), lambda *_: Answer("none", evidence=frozenset()), search=FakeSearch([kb("1", FAR)]))
    told(cache, **update)
    assert cache.lookup(ask()) is not None, "it rests on nothing, and nothing came in"
    again = cache.answer(ask(), FakeModel(), search=(search := FakeSearch([kb("3", NEAR)])))
    assert (again.served_by, len(search.queries)) == ("model", 1)


def test_where_only_another_is_gone_it_is_not_asked():
    cache = opened()
    told(cache, added=[kb("1", FAR), kb("2", KEPT)])
    cache.answer(ask(), lambda *_: Answer("none", evidence=frozenset()), search=FakeSearch([kb("1", FAR)]))
    told(cache, removed=["2"])
    again = cache.answer(ask(), FakeModel(), search=(search := FakeSearch([])))
    assert (again.served_by, search.queries) == ("exact", [])


def test_an_embedder_in_trouble_leaves_nothing_excused():
    class Broken(BagOfWordsEmbedder):
        def __call__(self, texts, /):
            if FAR in texts:
                raise RuntimeError("out of memory")
            return super().__call__(texts)

    cache = answered(opened(retrieval_similarity=ranked(embedder=Broken()), strict=False), kb("1", KEPT))
    told(cache, added=[kb("2", FAR)])
    assert cache.lookup(ask()) is None
    assert cache.stats().troubles == {"reach": 1}


@pytest.mark.parametrize("count", [0, -1, True, 1.5])
def test_a_search_finds_one_chunk_or_more(count):
    with pytest.raises(ValueError, match="1 or more"):
        RetrievalSimilarity(BagOfWordsEmbedder(), count)


def test_a_similarity_is_a_retrieval_similarity():
    with pytest.raises(TypeError, match="RetrievalSimilarity\\(embedder, count\\)"):
        SmartCache.open(mode="exact", retrieval_similarity=BagOfWordsEmbedder())


# A whole set.


def test_all_else_of_a_replaced_source_is_gone_what_no_update_told_of_too():
    cache = answered(opened(), kb("1", "house"))
    answered(cache, chunk("1", "bridge", source="other"), question="Who paints the bridge")
    cache.update_knowledge(KnowledgeUpdate.replace("kb", [kb("2", "garage")]))
    assert cache.lookup(ask()) is None
    assert cache.answer(ask(), FakeModel(), search=FakeSearch([kb("1", "house")])).served_by == "model"
    assert cache.lookup(ask("Who paints the bridge")) is not None, "of another source"


def test_a_set_that_is_as_it_was_leaves_its_answers():
    cache, chunks = opened(), [kb("1", "house"), kb("2", "garage")]
    cache.update_knowledge(KnowledgeUpdate.replace("kb", chunks))
    answered(cache, chunks[0])
    assert cache.update_knowledge(KnowledgeUpdate.replace("kb", chunks)) == 0
    assert cache.lookup(ask()) is not None
    assert cache.update_knowledge(KnowledgeUpdate.replace("kb", chunks[1:])) == 1
    assert cache.lookup(ask()) is None


def test_a_replacement_survives_a_restart(tmp_path):
    with answered(opened(tmp_path / "c.db"), kb("1", "house")) as cache:
        cache.update_knowledge(KnowledgeUpdate.replace("kb", []))
    with opened(tmp_path / "c.db") as cache:
        assert cache.lookup(ask()) is None
        assert cache.known_chunks("kb") == frozenset()


def test_known_chunks_are_those_that_any_process_told_of(tmp_path):
    with opened(tmp_path / "c.db") as one, opened(tmp_path / "c.db") as other:
        told(other, added=[kb("1", "house")])
        assert one.known_chunks("kb") == {"1"}
        told(other, removed=["1"])
        assert one.known_chunks("kb") == frozenset()


def test_what_stands_for_all_that_an_update_does_not_name_is_no_known_chunk():
    cache = answered(opened(), kb("1", "house"))
    told(cache, added=[kb("1", "house"), kb(UNNAMED, "", version="first")])
    assert cache.known_chunks("kb") == {"1"}


def test_it_puts_all_in_doubt_again_after_a_replacement():
    cache = opened()
    told(cache, added=[kb("1", "house"), kb(UNNAMED, "", version="first")])
    cache.update_knowledge(KnowledgeUpdate.replace("kb", [kb("1", "house")]))
    answered(cache, kb("1", "house"))
    assert cache.lookup(ask()) is not None
    told(cache, added=[kb(UNNAMED, "", version="second")])
    assert cache.lookup(ask()) is None


def test_a_source_is_told_of_by_any_process_and_when_all_of_it_is_gone(tmp_path):
    with opened(tmp_path / "c.db") as one, opened(tmp_path / "c.db") as other:
        assert not one.is_told_of("kb")
        told(other, added=[kb("1", "house")])
        told(other, removed=["1"])
        assert one.is_told_of("kb")
        assert not one.is_told_of("other")
        other.update_knowledge(KnowledgeUpdate.replace("other", []))
        assert one.is_told_of("other")


def test_known_chunks_are_told_from_memory_where_the_file_cannot_be_read(tmp_path):
    cache = opened(tmp_path / "c.db", strict=False)
    told(cache, added=[kb("1", "house")])
    cache.close()
    assert cache.known_chunks("kb") == {"1"}
    assert cache.stats().troubles == {"known_chunks": 1}


def test_a_replacement_that_could_not_be_written_is_made_by_the_retry(tmp_path):
    cache = answered(opened(tmp_path / "c.db", strict=False), kb("1", "house"))
    update = KnowledgeUpdate.replace("kb", [kb("2", "garage")])
    cache._entries._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(OSError, match="call it again"):
        cache.update_knowledge(update)
    assert cache.lookup(ask()) is None, "the safe side"
    cache._entries._connection.execute("PRAGMA query_only = OFF")
    cache.update_knowledge(update)
    cache.close()
    with opened(tmp_path / "c.db") as cache:
        assert cache.lookup(ask()) is None
        assert cache.known_chunks("kb") == {"2"}


def test_a_comparison_that_could_not_be_written_excuses_nothing(tmp_path):
    cache = answered(opened(tmp_path / "c.db", strict=False, retrieval_similarity=ranked()), kb("1", KEPT))
    cache._entries._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(OSError, match="call it again"):
        told(cache, added=[kb("2", FAR)])
    cache._entries._connection.execute("PRAGMA query_only = OFF")
    told(cache, added=[kb("2", FAR)])
    assert cache.lookup(ask()) is None


def test_a_chunk_of_another_source_has_no_place_in_a_set():
    with pytest.raises(ValueError, match="of source 'other', not of 'kb'"):
        KnowledgeUpdate.replace("kb", [chunk("1", "house", source="other")])


# Text in a place where there was none is an addition, whatever the place was called.

REUSED = {
    "replace": KnowledgeUpdate.replace("kb", [kb("1", NEAR), kb("2", FAR)]),
    "added": KnowledgeUpdate(added=[kb("1", NEAR)], source="kb"),
    "changed": KnowledgeUpdate(changed=[kb("1", NEAR)], source="kb"),
}
EDITED = {
    "replace": KnowledgeUpdate.replace("kb", [kb("1", NEAR), kb("2", FAR)]),
    "changed": KnowledgeUpdate(changed=[kb("1", NEAR)], source="kb"),
}


def without_and_on_another(cache: SmartCache) -> SmartCache:
    """Answers that rest on nothing found, and on chunk 2."""
    return answered(answered(cache), kb("2", FAR), question="What does the poem say?")


def both(cache: SmartCache) -> list[bool]:
    return [cache.lookup(ask(question)) is not None for question in (QUESTION, "What does the poem say?")]


@pytest.mark.parametrize("update", REUSED.values(), ids=REUSED)
@pytest.mark.parametrize("is_restarted", [False, True])
def test_new_text_under_an_id_that_was_gone_is_an_addition(tmp_path, update, is_restarted):
    cache = opened(tmp_path / "c.db")
    told(cache, added=[kb("1", KEPT), kb("2", FAR)])
    told(cache, removed=["1"])
    without_and_on_another(cache)
    assert both(cache) == [True, True]
    if is_restarted:
        cache.close()
        cache = opened(tmp_path / "c.db")
    assert cache.update_knowledge(update) == 2
    assert both(cache) == [False, False]


@pytest.mark.parametrize("update", EDITED.values(), ids=EDITED)
def test_new_text_under_an_id_that_is_there_is_an_edit(update):
    cache = opened()
    told(cache, added=[kb("1", KEPT), kb("2", FAR)])
    without_and_on_another(cache)
    assert cache.update_knowledge(update) == 0, "nothing rests on it"
    assert both(cache) == [True, True]


def test_an_id_that_no_update_spoke_of_is_one_that_was_there():
    cache = without_and_on_another(opened())
    assert told(cache, changed=[kb("1", NEAR)]) == 0
    assert both(cache) == [True, True]


def test_after_a_whole_set_was_told_it_is_one_that_was_not():
    cache = opened()
    cache.update_knowledge(KnowledgeUpdate.replace("kb", [kb("2", FAR)]))
    without_and_on_another(cache)
    assert told(cache, changed=[kb("1", NEAR)]) == 2
    assert both(cache) == [False, False]


def edited_in_two_steps(cache: SmartCache, times: int) -> None:
    """As a watch tells an edit: gone before the store changes, and then there with its new text."""
    for number in range(times):
        told(cache, removed=["1"])
        told(cache, changed=[kb("1", f"edited {number}")])


def test_an_edit_told_in_two_steps_is_an_addition_only_to_what_was_searched_in_between():
    cache = opened()
    told(cache, added=[kb("1", KEPT), kb("2", FAR)])
    edited_in_two_steps(cache, 3)
    answered(cache, kb("2", FAR))
    edited_in_two_steps(cache, 3)
    told(cache, removed=["1"])
    answered(cache, kb("2", FAR), question="What does the poem say?")
    assert both(cache) == [True, True]
    assert told(cache, changed=[kb("1", NEAR)]) == 1
    assert both(cache) == [True, False]


def test_of_many_spans_the_oldest_are_taken_together_and_none_is_lost():
    cache = opened()
    told(cache, added=[kb("1", KEPT), kb("2", FAR)])
    told(cache, removed=["1"])
    answered(cache, kb("2", FAR))
    told(cache, changed=[kb("1", NEAR)])
    edited_in_two_steps(cache, MAX_SPANS + 5)
    answered(cache, kb("2", FAR), question="What does the poem say?")
    edited_in_two_steps(cache, 1)
    assert both(cache) == [False, True]
    spans = [Growth("kb", "added", 2 * number, 2 * number + 1) for number in range(1, MAX_SPANS + 6)]
    assert len(fewest(spans)) == MAX_SPANS
    assert fewest(fewest(spans)[1:]) == spans[6:]


# Equal text keeps its answers, and is no identity.

LAID_OUT = "# Buildings\n\nA  house,   and a garage.  \n\n\n- one\n- two\n"


@pytest.mark.parametrize(
    "text", ["# Buildings\r\n\r\nA house, and a garage.\r\n\r\n- one\r\n- two", LAID_OUT + "\n\n", "\n" + LAID_OUT]
)
def test_white_space_that_means_nothing_is_no_change(text):
    cache = answered(opened(), kb("1", LAID_OUT))
    assert told(cache, changed=[kb("1", text)]) == 0
    assert cache.lookup(ask()) is not None
    again = cache.answer(ask(), FakeModel(), search=FakeSearch([kb("1", text)]))
    assert again.served_by == "exact", "nor is it one to a search"
    told(cache, changed=[kb("1", text + " And a shed.")])
    assert cache.lookup(ask()) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a:\n  b: 1", "a:\nb: 1"),
        ("one\ntwo", "one two"),
        ("a house", "ahouse"),
        ('say "a  b"', 'say "a b"'),
        ("say “a  b”", "say “a b”"),
        ("grep 'a  b' notes", "grep 'a b' notes"),
        ("「a  b」", "「a b」"),
        ('say "a\nb  c" now', 'say "a\nb c" now'),
        ("Ann\t\t5", "Ann\t5"),
        ("Ann\t5\t", "Ann\t5"),
        ("```\nx  y\n```", "```\nx y\n```"),
        ("~~~ sh\na\n\n\nb\n~~~", "~~~ sh\na\n\nb\n~~~"),
        ("````\n```\na  b", "````\n```\na b"),
        ("<pre>\na  b\n</pre>", "<pre>\na b\n</pre>"),
        ("<PRE>\na  b\n</PRE>", "<PRE>\na b\n</PRE>"),
        ("<textarea>\na  b\n</textarea>", "<textarea>\na b\n</textarea>"),
        ("> ```\n> a  b\n> ```", "> ```\n> a b\n> ```"),
        ("> ```\n> a\n\n```\na  b\n```", "> ```\n> a\n\n```\na b\n```"),
        ("> ```\n> a\n```\na  b\n```", "> ```\n> a\n```\na b\n```"),
        ("- ```\n# a\nk:  v\n```", "- ```\n# a\nk: v\n```"),
        ("1. > ~~~ sh\n   > a  b", "1. > ~~~ sh\n   > a b"),
        ('A 5" disk.\nType "a\nb  c\nd"', 'A 5" disk.\nType "a\nb c\nd"'),
        ('A lone " mark.\nType "a\nb  c\nd"', 'A lone " mark.\nType "a\nb c\nd"'),
        ('Say "a\n```\nsay("b")\nx  y\n```', 'Say "a\n```\nsay("b")\nx y\n```'),
        ('<pre>a</pre> "a\nb  c"', '<pre>a</pre> "a\nb c"'),
        ('Say "a <pre>"\n</pre>\nb  c"', 'Say "a <pre>"\n</pre>\nb c"'),
    ],
)
def test_white_space_that_may_mean_something_is_a_change(before, after):
    cache = answered(opened(), kb("1", before))
    told(cache, changed=[kb("1", after)])
    assert cache.lookup(ask()) is None


@pytest.mark.parametrize(
    "literal",
    [
        "```\nx  y\n```",
        'say "x  y"',
        "<pre>\nx  y\n</pre>",
        "Ann\t\t5",
        "say “x\n\n\ny”",
        "<PRE>\nx  y\n</Pre>",
        "> ```\n> x  y\n> ```",
        "> ```\n> x  y\n",
        "- ```\n  x  y\n  ```",
        "- > ```\n  > x  y\n  > ```",
        'a 5" disk',
        'say "x\ny  z"',
        'say "a 5" disk"',
        'say "x\n```\na  "b\n```\ny"',
        'title="x  y"',
        '"""\nx  y\n"""',
    ],
)
def test_around_what_stays_as_it_is_white_space_means_as_little_as_elsewhere(literal):
    cache = answered(opened(), kb("1", f"A  house.\n\n\n{literal}  \n\n\nIt  isn't  dear."))
    told(cache, changed=[kb("1", f"A house.\n\n{literal}\n\nIt isn't dear.\n")])
    assert cache.lookup(ask()) is not None


def test_a_version_that_the_application_gave_is_believed():
    cache = answered(opened(), kb("1", "house", version="2026-01"))
    told(cache, changed=[kb("1", "house", version="2026-02")])
    assert cache.lookup(ask()) is None


def renamed() -> SmartCache:
    cache = opened()
    told(cache, added=[kb("old.md", "house"), kb("other.md", "garage")])
    answered(cache, kb("old.md", "house"))
    told(cache, added=[kb("new.md", "house")], removed=["old.md"])
    return cache


def test_a_document_under_another_name_keeps_its_answers():
    cache = renamed()
    assert cache.lookup(ask()) is not None
    assert cache.answer(ask(), FakeModel(), search=FakeSearch([kb("new.md", "house")])).served_by == "exact"


def test_so_does_one_whose_version_is_no_hash_of_its_text_if_that_stayed():
    for version, is_kept in (("page 7", True), ("page 8", False)):
        cache = opened()
        told(cache, added=[kb("old", "house", version="page 7"), kb("other", "house", version="page 9")])
        answered(cache, kb("old", "house", version="page 7"))
        told(cache, added=[kb("new", "house", version=version)], removed=["old"])
        assert (cache.lookup(ask()) is not None) is is_kept


def test_a_renamed_document_that_is_edited_or_removed_loses_them():
    for update in ({"changed": [kb("new.md", "castle")]}, {"removed": ["new.md"]}):
        cache = renamed()
        told(cache, **update)
        assert cache.lookup(ask()) is None


def test_its_old_name_used_again_changes_nothing_for_them():
    cache = renamed()
    told(cache, changed=[kb("old.md", "bridge")])
    assert cache.lookup(ask()) is not None
    told(cache, changed=[kb("new.md", "castle")])
    assert cache.lookup(ask()) is None, "nor does it revive what it held once"


def test_a_rename_survives_a_restart_and_another_one(tmp_path):
    with opened(tmp_path / "c.db") as cache:
        told(cache, added=[kb("1", "house")])
        answered(cache, kb("1", "house"))
        told(cache, added=[kb("2", "house")], removed=["1"])
    with opened(tmp_path / "c.db") as cache:
        told(cache, added=[kb("3", "house")], removed=["2"])
        assert cache.lookup(ask()) is not None
        assert cache.forget(chunk_ids=["3"]) == 1, "what is forgotten under its new name is"


def test_an_equal_text_that_was_there_before_is_another_document():
    cache = opened()
    told(cache, added=[kb("1", "house"), kb("2", "house")])
    answered(cache, kb("1", "house"))
    told(cache, removed=["1"])
    assert cache.lookup(ask()) is None


def test_one_new_document_is_the_heir_of_one():
    cache = opened()
    told(cache, added=[kb("1", "house"), kb("2", "house")])
    answered(cache, kb("2", "house"))
    told(cache, added=[kb("3", "house")], removed=["1", "2"])
    assert cache.lookup(ask()) is None, "the first of the two is"


def test_an_equal_text_in_another_source_is_no_heir():
    cache = opened()
    told(cache, added=[kb("1", "house")])
    answered(cache, kb("1", "house"))
    told(cache, added=[chunk("2", "house", source="other")], removed=["1"])
    assert cache.lookup(ask()) is None


def test_sections_that_change_places_keep_their_answers():
    cache = opened()
    told(cache, added=[kb("price", "house"), kb("price-2", "garage")])
    answered(cache, kb("price", "house"))
    told(cache, changed=[kb("price", "garage"), kb("price-2", "house")])
    assert cache.lookup(ask()) is not None
    told(cache, changed=[kb("price-2", "castle")])
    assert cache.lookup(ask()) is None
