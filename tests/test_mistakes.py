"""A caller's mistake is one clear error that says what to do; it costs nothing that is stored."""

from __future__ import annotations

import pytest

from smartcache import Answer, Chunk, KnowledgeUpdate, Request, SmartCache, Turn
from smartcache.testing import BagOfWordsEmbedder, FakeModel

ASKED = Request([Turn("user", "How do I reset the hub?")])

OTHER = Request([Turn("user", "Which countries do you ship to?")])


@pytest.fixture
def cache():
    with SmartCache.open(embedder=BagOfWordsEmbedder()) as cache:
        yield cache


@pytest.mark.parametrize(
    ("mistake", "error", "advice"),
    [
        (lambda cache: SmartCache("a.db"), TypeError, "SmartCache.open"),
        (lambda cache: SmartCache.open(embedder="all-MiniLM-L6-v2"), TypeError, "pass an Embedder"),
        (lambda cache: SmartCache.open(embedder=BagOfWordsEmbedder(), policy=0.9), TypeError, "pass a HitPolicy"),
        (lambda cache: SmartCache.open(mode="fuzzy"), ValueError, "use 'semantic' or 'exact'"),
        (lambda cache: SmartCache.open(mode="exact", max_entries=0), ValueError, "at least 1"),
        (lambda cache: cache.answer("hi", FakeModel()), TypeError, "a request is a Request"),
        (lambda cache: cache.answer(FakeModel(), ASKED), TypeError, "a request is a Request"),
        (lambda cache: cache.lookup("hi"), TypeError, "a request is a Request"),
        (lambda cache: cache.store("hi", Answer("x")), TypeError, "a request is a Request"),
        (lambda cache: cache.answer(OTHER, FakeModel(), search=lambda query: None), TypeError, "return a sequence"),
        (lambda cache: cache.report_wrong("hi", Answer("x")), TypeError, "a request is a Request"),
        (lambda cache: cache.report_wrong(ASKED, "x"), TypeError, "the Answer that was served"),
        (lambda cache: SmartCache.open(mode="exact", verify="after"), ValueError, "pass verifier= as well"),
        (lambda cache: cache.forget(), ValueError, "say what to forget"),
        (lambda cache: Request([]), ValueError, "at least one Turn"),
        (lambda cache: Request([{"role": "user"}]), TypeError, "turns are Turns, not dict"),
        (lambda cache: Request(["hi"]), TypeError, "turns are Turns, not str"),
        (lambda cache: Turn("human", "hi"), ValueError, "use one of system, user"),
        (lambda cache: Turn("user", None), TypeError, "a turn's text is a str"),
        (lambda cache: Chunk("id", "text"), TypeError, "ChunkRef"),
        (lambda cache: KnowledgeUpdate(changed=["warranty"]), TypeError, "hold Chunks, not str"),
        (lambda cache: KnowledgeUpdate(removed="warranty"), TypeError, "removed=\\[id\\]"),
    ],
)
def test_a_mistake_says_what_to_do(cache, mistake, error, advice):
    cache.store(ASKED, Answer("Hold the button."))
    with pytest.raises(error, match=advice):
        mistake(cache)
    assert cache.lookup(ASKED).text == "Hold the button."


async def test_a_plain_function_will_do_in_a_coroutine(cache):
    assert (await cache.aanswer(ASKED, FakeModel())).served_by == "model"
    assert (await cache.aanswer(ASKED, FakeModel())).served_by == "exact"


def test_an_answer_that_was_never_stored_is_none_to_report():
    with SmartCache.open(embedder=BagOfWordsEmbedder(), strict=True) as cache:
        asked = Request([Turn("user", "How long is it open?")])
        cache.store(asked, Answer("Until five.", frozenset(), finish_reason="stop"))
        assert not cache.report_wrong(asked, Answer("All night long."))
        assert cache.lookup(asked) is not None
        assert cache.report_wrong(asked, Answer("Until five."))
        assert cache.lookup(asked) is None
