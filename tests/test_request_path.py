"""One request, top to bottom: exact answer, semantic answer, search, context, model, store."""

from __future__ import annotations

import pytest

from smartcache import Answer, Chunk, KnowledgeUpdate, Request, SmartCache, Turn
from smartcache.testing import BagOfWordsEmbedder, FakeModel, FakeSearch, chunk


@pytest.fixture
def cache():
    with SmartCache.open(embedder=BagOfWordsEmbedder(), strict=True) as cache:
        yield cache


@pytest.fixture
def model():
    return FakeModel()


RESET = "How do I reset the hub to factory settings?"
RESET_IN_OTHER_WORDS = "To factory settings, how do I reset the hub?"


def ask(text: str, *before: str, **parts: object) -> Request:
    """A request for `text` after what the user and the assistant said in turn."""
    roles = ("user", "assistant")
    turns = [Turn(roles[n % 2], said) for n, said in enumerate(before)]  # type: ignore[arg-type]  # str roles
    return Request([*turns, Turn("user", text)], **parts)  # type: ignore[arg-type]  # keywords of several types


# The first time, the model answers.


def test_a_new_question_is_answered_by_the_model(cache, model):
    answer = cache.answer(ask(RESET), model)
    assert answer.served_by == "model"
    assert answer.text == f"answer 1 to {RESET!r}"


def test_the_model_gets_the_whole_request(cache, model):
    request = ask(RESET, "Hello", "Hi, how can I help?", scope="acme", variant="small", options={"stop": ["\n"]})
    cache.answer(request, model)
    assert model.requests == [request]


# The same request again is served exactly.


def test_the_same_request_again_is_served_exactly(cache, model):
    first = cache.answer(ask(RESET), model)
    again = cache.answer(ask(RESET), model)
    assert (again.served_by, again.text, model.calls) == ("exact", first.text, 1)


def test_an_exact_hit_embeds_nothing(model):
    embedder = BagOfWordsEmbedder()
    cache = SmartCache.open(embedder=embedder, strict=True)
    cache.answer(ask(RESET), model)
    embedder.texts.clear()
    cache.answer(ask(RESET), model)
    assert embedder.texts == []


# The same question in other words is served semantically.


def test_the_same_question_in_other_words_is_served_semantically(cache, model):
    cache.answer(ask(RESET), model)
    again = cache.answer(ask(RESET_IN_OTHER_WORDS), model)
    assert (again.served_by, model.calls) == ("semantic", 1)


def test_a_hit_says_how_near_and_how_old_it_is(cache, model):
    cache.answer(ask(RESET), model)
    hit = cache.answer(ask(RESET_IN_OTHER_WORDS), model)
    assert hit.similarity == pytest.approx(1.0)
    assert hit.age_seconds is not None
    assert hit.entry_id is not None


def test_another_question_goes_to_the_model(cache, model):
    cache.answer(ask(RESET), model)
    assert cache.answer(ask("Which countries do you ship batteries to?"), model).served_by == "model"


def test_a_question_that_stands_alone_needs_no_equal_history(cache, model):
    cache.answer(ask(RESET), model)
    hit = cache.answer(ask(RESET_IN_OTHER_WORDS, "What is the weather in Bern today?", "Sunny."), model)
    assert hit.served_by == "semantic"


def test_a_question_that_leans_on_another_history_goes_to_the_model(cache, model):
    cache.answer(ask("how old is she?", "who runs Acme", "Ann"), model)
    assert cache.answer(ask("how old is she?", "who runs Birk", "Bo"), model).served_by == "model"


def test_a_question_that_leans_on_an_equivalent_history_is_served(cache, model):
    cache.answer(ask("how old is she?", "who runs Acme", "Ann"), model)
    assert cache.answer(ask("how old is she?", "Acme, who runs?", "Ann"), model).served_by == "semantic"


# What must be equal is a partition.


@pytest.mark.parametrize(
    "parts",
    [{"scope": "other"}, {"variant": "other"}, {"options": {"max_tokens": 5}}, {"options": {"tools": ["search"]}}],
)
def test_another_scope_model_or_option_goes_to_the_model(cache, model, parts):
    cache.answer(ask(RESET), model)
    assert cache.answer(ask(RESET, **parts), model).served_by == "model"
    assert cache.answer(ask(RESET_IN_OTHER_WORDS, **parts), model).served_by == "semantic"


def test_another_system_prompt_goes_to_the_model(cache, model):
    def under(system: str, text: str) -> Request:
        return Request([Turn("system", system), Turn("user", text)])

    cache.answer(under("Answer in French.", RESET), model)
    assert cache.answer(under("Answer as JSON.", RESET), model).served_by == "model"
    assert cache.answer(under("Answer in French.", RESET_IN_OTHER_WORDS), model).served_by == "semantic"


# Search and context.


def test_the_model_gets_the_chunks_that_the_search_found(cache, model):
    search = FakeSearch([chunk("1", "house"), chunk("2", "apartment")])
    answer = cache.answer(ask("List the types of buildings"), model, search=search)
    assert "house" in answer.text
    assert "apartment" in answer.text


def test_a_hit_searches_nothing(cache, model):
    search = FakeSearch([chunk("1", "house")])
    cache.answer(ask(RESET), model, search=search)
    cache.answer(ask(RESET), model, search=search)
    cache.answer(ask(RESET_IN_OTHER_WORDS), model, search=search)
    assert len(search.queries) == 1


def test_a_question_that_leans_on_the_dialogue_is_searched_for_with_it(cache, model):
    search = FakeSearch([chunk("1", "house")])
    cache.answer(ask("how old is she?", "who runs Acme", "Ann"), model, search=search)
    assert search.queries == ["who runs Acme\nhow old is she?"]


def test_chunks_enter_in_one_order_whatever_the_retrievers_order(cache):
    seen: list[tuple[Chunk, ...]] = []
    found = [chunk("1", "house"), chunk("2", "apartment"), chunk("3", "room")]

    def generate(request: Request, chunks: tuple[Chunk, ...]) -> str:
        seen.append(chunks)
        return "all of them"

    cache.answer(ask("List the types of buildings"), generate, search=FakeSearch(found))
    cache.answer(
        ask("Which bridges are open to lorries"), generate, search=FakeSearch([found[2], *found[:2], found[0]])
    )
    assert seen[0] == seen[1]


def test_an_answer_rests_on_the_chunks_it_was_given_and_cites_them_in_their_order(cache, model):
    found = [chunk("1", "house"), chunk("2", "apartment")]
    live = cache.answer(ask(RESET), model, search=FakeSearch(found))
    hit = cache.answer(ask(RESET), model)
    assert live.evidence == hit.evidence == {found[0].ref, found[1].ref}
    assert live.citations == hit.citations
    assert set(live.citations) == live.evidence


# A hit must still be supported by the knowledge base.


def test_an_answer_dies_with_a_chunk_it_rests_on(cache, model):
    search = FakeSearch([chunk("1", "house", source="kb")])
    cache.answer(ask(RESET), model, search=search)
    search.chunks = [chunk("1", "house, and a room", source="kb")]
    assert cache.update_knowledge(KnowledgeUpdate(changed=search.chunks, source="kb")) == 1
    again = cache.answer(ask(RESET), model, search=search)
    assert again.served_by == "model"
    assert "and a room" in again.text


def test_an_answer_on_other_chunks_lives_on(cache, model):
    kept = FakeSearch([chunk("1", "house", source="kb")])
    cache.answer(ask(RESET), model, search=kept)
    assert cache.update_knowledge(KnowledgeUpdate(changed=[chunk("2", "garage", source="kb")], source="kb")) == 0
    assert cache.answer(ask(RESET), model, search=kept).served_by == "exact"


def test_a_new_chunk_that_the_search_finds_makes_an_answer_stale(cache, model):
    search = FakeSearch([chunk("1", "house", source="kb")])
    cache.answer(ask(RESET), model, search=search)
    search.chunks.append(chunk("2", "garage", source="kb"))
    cache.update_knowledge(KnowledgeUpdate(added=[search.chunks[1]], source="kb"))
    assert "garage" in cache.answer(ask(RESET), model, search=search).text


def test_a_new_chunk_that_the_search_does_not_find_leaves_an_answer(cache, model):
    search = FakeSearch([chunk("1", "house", source="kb")])
    cache.answer(ask(RESET), model, search=search)
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("2", "garage", source="kb")], source="kb"))
    assert cache.answer(ask(RESET), model, search=search).served_by == "exact"
    assert len(search.queries) == 2, "the second time, to see"


def test_after_an_addition_a_lookup_without_a_search_serves_nothing_from_that_source(cache, model):
    cache.answer(ask(RESET), model, search=FakeSearch([chunk("1", "house", source="kb")]))
    cache.answer(ask("Who paints the bridge"), model, search=FakeSearch([chunk("1", "bridge", source="other")]))
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("2", "garage", source="kb")], source="kb"))
    assert cache.lookup(ask(RESET)) is None
    assert cache.lookup(ask("Who paints the bridge")) is not None


# What is stored.


def test_an_answer_that_an_update_overtakes_is_returned_and_not_stored(cache):
    found = FakeSearch([chunk("1", "house")])

    def generate(request: Request, chunks: tuple[Chunk, ...]) -> str:
        cache.update_knowledge(KnowledgeUpdate(changed=[chunk("1", "castle")]))
        return "a house"

    assert cache.answer(ask(RESET), generate, search=found).text == "a house"
    assert cache.lookup(ask(RESET)) is None
    assert cache.stats().not_stored == {"stale": 1}


@pytest.mark.parametrize("reason", ["length", "content_filter", "max_tokens", "something new"])
def test_an_answer_that_did_not_end_by_itself_is_not_stored(cache, reason):
    cache.answer(ask(RESET), lambda request, chunks: Answer("half an ans", finish_reason=reason))
    assert cache.lookup(ask(RESET)) is None


@pytest.mark.parametrize("reason", [None, "stop", "end_turn", "STOP"])
def test_an_answer_that_ended_by_itself_is_stored(cache, reason):
    cache.answer(ask(RESET), lambda request, chunks: Answer("the whole answer", finish_reason=reason))
    assert cache.lookup(ask(RESET)).text == "the whole answer"


def test_what_the_model_raises_is_raised_and_nothing_is_stored(cache, model):
    def fails(request: Request, chunks: tuple[Chunk, ...]) -> str:
        raise TimeoutError("provider is down")

    with pytest.raises(TimeoutError, match="provider is down"):
        cache.answer(ask(RESET), fails)
    assert cache.answer(ask(RESET), model).served_by == "model"


@pytest.mark.parametrize("reply", [None, 7, ["text"]])
def test_a_model_that_gives_no_text_is_the_callers_mistake(cache, reply):
    with pytest.raises(TypeError, match="return a str or an Answer"):
        cache.answer(ask(RESET), lambda request, chunks: reply)


def test_a_search_that_finds_no_chunks_is_the_callers_mistake(cache, model):
    with pytest.raises(TypeError, match="return Chunks"):
        cache.answer(ask(RESET), model, search=lambda query: ["a text"])


# Streams, coroutines and split calls walk the same path.


def test_a_stream_yields_the_models_pieces_and_stores_the_whole(cache, model):
    pieces = list(cache.stream(ask(RESET), model.stream))
    assert len(pieces) > 1
    assert cache.answer(ask(RESET), model).text == "".join(pieces)
    assert model.calls == 1


def test_pieces_that_are_no_text_reach_the_reader_and_the_text_alone_is_stored(cache):
    pieces = list(cache.stream(ask(RESET), lambda request, chunks: iter(["half ", {"usage": 7}, "and half"])))
    assert pieces == ["half ", {"usage": 7}, "and half"]
    assert cache.lookup(ask(RESET)).text == "half and half"


def test_an_answer_among_the_pieces_is_stored_as_the_whole(cache):
    whole = Answer("all of it", payload={"tokens": 3}, finish_reason="stop")
    assert list(cache.stream(ask(RESET), lambda request, chunks: iter(["all", whole]))) == ["all"]
    assert cache.lookup(ask(RESET)).payload == {"tokens": 3}


def test_a_hit_is_replayed_as_a_stream(cache, model):
    text = cache.answer(ask(RESET), model).text
    pieces = list(cache.stream(ask(RESET), model.stream))
    assert len(pieces) > 1
    assert "".join(pieces) == text


def test_a_stream_left_half_read_is_not_stored(cache, model):
    stream = cache.stream(ask(RESET), model.stream)
    next(stream)
    stream.close()
    assert cache.lookup(ask(RESET)) is None


async def test_coroutines_share_what_plain_calls_stored(cache, model):
    cache.answer(ask(RESET), model)
    assert (await cache.aanswer(ask(RESET), model.acall)).served_by == "exact"
    pieces = [piece async for piece in cache.astream(ask(RESET_IN_OTHER_WORDS), model.astream)]
    assert "".join(pieces) == f"answer 1 to {RESET!r}"
    assert model.calls == 1


async def test_a_coroutine_may_search_in_a_coroutine(cache, model):
    async def search(query: str) -> list[Chunk]:
        return [chunk("1", "house")]

    answer = await cache.aanswer(ask(RESET), model.acall, search=search)
    assert "house" in answer.text


def test_an_answer_made_elsewhere_is_stored_and_looked_up(cache):
    assert cache.lookup(ask(RESET)) is None
    assert cache.store(ask(RESET), Answer("Hold the button.")) is True
    assert cache.lookup(ask(RESET_IN_OTHER_WORDS)).text == "Hold the button."


def test_an_answer_begun_before_an_update_is_not_stored_after_it(cache):
    cache.lookup(ask(RESET))
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("9", "new")]))
    assert cache.store(ask(RESET), Answer("from before")) is False


@pytest.mark.parametrize("fails", ["search", "generate"])
async def test_what_a_coroutine_raises_is_raised_and_counted_once(cache, fails):
    async def down(*asked: object) -> str:
        raise TimeoutError("down")

    async def up(*asked: object) -> list[Chunk]:
        return []

    with pytest.raises(TimeoutError, match="down"):
        await cache.aanswer(ask(RESET), down, search=down if fails == "search" else up)
    assert cache.stats().requests == 1


# Every request ends in exactly one counted outcome.


def test_the_outcomes_add_up_to_the_requests(cache, model):
    cache.answer(ask(RESET), model)
    cache.answer(ask(RESET), model)
    cache.answer(ask(RESET_IN_OTHER_WORDS), model)
    cache.answer(ask(RESET, options={"temperature": 0.9}), model)
    stats = cache.stats()
    assert (stats.requests, stats.exact, stats.semantic) == (4, 1, 1)
    assert stats.misses == {"new": 1}
    assert stats.bypasses == {"sampling": 1}


# A request may ask to be compared as a whole.


def test_a_request_compared_exactly_embeds_nothing(model):
    embedder = BagOfWordsEmbedder()
    with SmartCache.open(embedder=embedder, strict=True) as cache:
        cache.answer(ask(RESET, options={"cache": "exact"}), model)
        assert cache.answer(ask(RESET_IN_OTHER_WORDS, options={"cache": "exact"}), model).served_by == "model"
    assert embedder.texts == []


def test_a_request_compared_exactly_hits_when_it_is_the_same(cache, model):
    cache.answer(ask(RESET, options={"cache": "exact"}), model)
    assert cache.answer(ask(RESET, options={"cache": "exact"}), model).served_by == "exact"


def test_what_was_compared_exactly_is_not_served_to_a_near_question(cache, model):
    cache.answer(ask(RESET, options={"cache": "exact"}), model)
    assert cache.answer(ask(RESET_IN_OTHER_WORDS), model).served_by == "model"


def test_a_question_whose_words_the_embedder_does_not_know_is_compared_exactly_only():
    class English(BagOfWordsEmbedder):
        def reads(self, text):
            return text.isascii()

    with SmartCache.open(embedder=English(), strict=True) as cache:
        model = FakeModel()
        for question, reworded in (
            ("Wie öffne ich das Tor?", "Das Tor, wie öffne ich?"),
            ("open it now how", "how open it now"),
        ):
            cache.answer(Request([Turn("user", question)]), model)
            again = cache.answer(Request([Turn("user", reworded)]), model)
            assert again.served_by == ("semantic" if question.isascii() else "model")
        assert cache.stats().misses["unknown_words"] == 2
        assert cache.answer(Request([Turn("user", "Wie öffne ich das Tor?")]), model).served_by == "exact"
