"""Shadow mode: the model answers everything, and what would have been served is recorded."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from smartcache import Answer, Chunk, KnowledgeUpdate, Request, SmartCache, ThresholdPolicy, Turn
from smartcache.shadow import ShadowRecord, ShadowTally, compare
from smartcache.storage import shadow_records as storage
from smartcache.testing import BagOfWordsEmbedder, FakeClock, FakeModel, FakeSearch, TableEmbedder, chunk

RESET = "How do I reset the hub to factory settings?"
NEAR = "To factory settings, how do I reset the hub?"
FARTHER = "Well, how do I reset the hub to factory settings?"
SIMILARITIES = {(RESET, NEAR): 0.93, (RESET, FARTHER): 0.86}

Ask = Callable[[SmartCache, Request, FakeModel], str]


def ask(text: str, scope: str = "", **options: object) -> Request:
    return Request([Turn("user", text)], scope, options=options)


def shadowed(path: Path | None = None, **choices: object) -> SmartCache:
    embedder = choices.pop("embedder", None) or TableEmbedder(SIMILARITIES)
    settings: dict[str, Any] = {"strict": True, **choices}
    return SmartCache.open(path, embedder=embedder, shadow=True, **settings)


def saying(*texts: str) -> FakeModel:
    """A model that says one text after the other, and the last for ever."""
    left = list(texts)
    return FakeModel(lambda request, chunks: left.pop(0) if len(left) > 1 else left[0])


@pytest.fixture
def cache():
    with shadowed() as cache:
        yield cache


async def _astreamed(cache: SmartCache, request: Request, model: FakeModel) -> str:
    return "".join([piece async for piece in cache.astream(request, model.astream)])


def _by_hand(cache: SmartCache, request: Request, model: FakeModel) -> str:
    assert cache.lookup(request) is None
    text = str(model(request, ()))
    cache.store(request, Answer(text))
    return text


WAYS: dict[str, Ask] = {
    "answer": lambda cache, request, model: cache.answer(request, model).text,
    "stream": lambda cache, request, model: "".join(cache.stream(request, model.stream)),
    "aanswer": lambda cache, request, model: asyncio.run(cache.aanswer(request, model.acall)).text,
    "astream": lambda cache, request, model: asyncio.run(_astreamed(cache, request, model)),
    "lookup and store": _by_hand,
}


# The model answers everything, whatever the way of asking.


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("again", [RESET, NEAR])
def test_the_model_answers_what_would_have_been_served(cache, way, again):
    model = saying("the first", "the second")
    assert WAYS[way](cache, ask(RESET), model) == "the first"
    assert WAYS[way](cache, ask(again), model) == "the second"


@pytest.mark.parametrize("way", WAYS)
def test_what_would_have_been_served_is_recorded_and_compared(cache, way):
    model = saying("Hold the button.", "Hold  the\nbutton.")
    WAYS[way](cache, ask(RESET), model)
    WAYS[way](cache, ask(NEAR), model)
    [record] = cache.shadow_records()
    assert (record.layer, record.accepted, record.agrees()) == ("semantic", True, True)


def test_an_answer_says_that_the_model_served_it(cache):
    model = FakeModel()
    cache.answer(ask(RESET), model)
    assert cache.answer(ask(RESET), model).served_by == "model"


def test_no_adapter_is_asked_to_restore_a_hit(cache):
    restored: list[Answer] = []
    for _ in range(2):
        cache.answer(ask(RESET), FakeModel(), restore=restored.append)
    assert restored == []


def test_a_cache_that_is_not_in_the_shadow_serves_and_records_nothing():
    with SmartCache.open(embedder=TableEmbedder(SIMILARITIES), strict=True) as cache:
        cache.answer(ask(RESET), FakeModel())
        assert cache.answer(ask(NEAR), FakeModel()).served_by == "semantic"
        assert cache.shadow_records() == ()


def test_what_was_stored_in_the_shadow_is_served_once_it_is_over(tmp_path):
    with shadowed(tmp_path) as cache:
        cache.answer(ask(RESET), saying("Hold the button."))
    with SmartCache.open(tmp_path, embedder=TableEmbedder(SIMILARITIES)) as cache:
        assert cache.answer(ask(NEAR), FakeModel()).text == "Hold the button."


def test_every_search_is_made(cache):
    search = FakeSearch([chunk("manual", "Hold the button.")])
    for _ in range(2):
        cache.retrieve(RESET, search)
    assert len(search.queries) == 2


# Every request has one outcome.


def test_each_request_is_counted_once(cache):
    model = FakeModel()
    cache.answer(ask(RESET), model)
    cache.answer(ask(RESET), model)
    cache.answer(ask(NEAR), model)
    cache.answer(ask(FARTHER), model)
    cache.answer(ask(RESET, cache=False), model)
    stats = cache.stats()
    assert (stats.requests, stats.hits, stats.bypasses) == (5, 0, {"requested": 1})
    assert stats.misses == {"far": 1, "new": 1, "shadow": 2}


# What a record holds.


def test_the_same_request_again_is_a_record_of_the_exact_layer():
    with shadowed(clock=FakeClock(7.0)) as cache:
        cache.answer(ask(RESET, "acme"), saying("yes"))
        cache.answer(ask(RESET, "acme"), saying("yes"))
        assert cache.shadow_records() == (ShadowRecord(7.0, "acme", "exact", 1, 1.0, True, {}, True, 1.0),)


def test_a_near_one_is_a_record_of_what_the_policy_saw(cache):
    cache.answer(ask(RESET), FakeModel())
    cache.answer(ask(NEAR), FakeModel())
    [record] = cache.shadow_records()
    assert (record.entry_id, record.accepted) == (1, True)
    assert record.similarity == pytest.approx(0.93)
    assert record.candidate.similarity == record.similarity
    assert not record.candidate.same_names


def test_one_that_only_the_policy_refuses_is_recorded_as_refused(cache):
    cache.answer(ask(RESET), FakeModel())
    cache.answer(ask(FARTHER), FakeModel())
    [record] = cache.shadow_records()
    assert (record.accepted, record.similarity) == (False, pytest.approx(0.86))


def test_one_with_other_facts_is_not_recorded():
    asked = "How do I reset hub 7 to factory settings?"
    with shadowed(embedder=TableEmbedder({(RESET, asked): 0.99})) as cache:
        cache.answer(ask(RESET), FakeModel())
        cache.answer(ask(asked), FakeModel())
        assert cache.shadow_records() == ()


def test_what_is_served_is_recorded_though_a_nearer_one_was_refused():
    class NotTheNearest:
        def accepts(self, candidate):
            return candidate.stored != RESET

    with shadowed(
        embedder=TableEmbedder({(NEAR, RESET): 0.95, (NEAR, FARTHER): 0.92}), policy=NotTheNearest()
    ) as cache:
        cache.answer(ask(RESET), FakeModel())
        cache.answer(ask(FARTHER), FakeModel())
        cache.answer(ask(NEAR), FakeModel())
        assert [(record.entry_id, record.accepted) for record in cache.shadow_records()][-1] == (2, True)


FREE = "Is the museum free for {} on Sundays?"


def free_for(*stored: str) -> SmartCache:
    """After what was asked for `stored`, the nearest first, it is asked for pensioners."""
    nearness = dict(zip(stored, (0.95, 0.80), strict=False))
    wholes = {(FREE.format("pensioners"), FREE.format(who)): near for who, near in nearness.items()}
    cache = shadowed(embedder=TableEmbedder(wholes | {("pensioners", who): 0.5 for who in stored}))
    for who in stored:
        cache.store(ask(FREE.format(who)), Answer("yes"))
    cache.answer(ask(FREE.format("pensioners")), saying("yes"))
    return cache


def test_one_that_is_near_but_for_what_it_is_about_is_recorded_with_that():
    [record] = free_for("students").shadow_records()
    assert not record.accepted
    assert record.signals["focus_similarity"] == pytest.approx(0.5)


def test_of_several_that_are_refused_only_the_nearest_is_looked_at_closely():
    with free_for("students", "teachers") as cache:
        assert cache.shadow_records()[-1].entry_id == 1
        assert "students" in cache.embedder.texts
        assert "teachers" not in cache.embedder.texts


@pytest.mark.parametrize("asked", [NEAR, FARTHER])
def test_what_the_knowledge_base_no_longer_supports_is_not_recorded(cache, asked):
    old, new = chunk("manual", "Hold the button."), chunk("manual", "Press the button.")
    cache.answer(ask(RESET), FakeModel(), search=FakeSearch([old]))
    cache.update_knowledge(KnowledgeUpdate(changed=[new]))
    cache.answer(ask(asked), FakeModel(), search=FakeSearch([new]))
    assert cache.shadow_records() == ()
    assert cache.stats().misses == {"new": 1, "stale": 1}


@pytest.mark.parametrize("asked", [NEAR, FARTHER])
def test_what_the_knowledge_base_still_supports_is_recorded(cache, asked):
    search = FakeSearch([chunk("manual", "Hold the button.")])
    cache.answer(ask(RESET), FakeModel(), search=search)
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("other", "Something else.")]))
    cache.answer(ask(asked), FakeModel(), search=search)
    assert len(cache.shadow_records()) == 1


def test_no_text_is_recorded(tmp_path):
    with shadowed(tmp_path) as cache:
        cache.answer(ask(RESET), saying("a secret"))
        cache.answer(ask(NEAR), saying("a secret"))
        [record] = cache.shadow_records()
    assert all(not isinstance(value, str) for value in record.signals.values())


def test_no_more_than_so_many_records_are_kept(cache, monkeypatch):
    monkeypatch.setattr(storage, "MAX_SHADOW_RECORDS", 3)
    for _ in range(6):
        cache.answer(ask(RESET), FakeModel())
    assert [record.entry_id for record in cache.shadow_records()] == [3, 4, 5]


# Whether the model said the same.


def agreement(first: str | Answer, second: str | Answer, alike: float | None = None) -> bool | None:
    answers = {} if alike is None else {(str(first), str(second)): alike}
    with shadowed(embedder=TableEmbedder(SIMILARITIES | answers)) as cache:
        cache.answer(ask(RESET), FakeModel(lambda request, chunks: first))
        cache.answer(ask(NEAR), FakeModel(lambda request, chunks: second))
        return cache.shadow_records()[0].agrees()


def test_an_answer_in_other_words_agrees_from_a_similarity_on():
    assert agreement("Hold the button.", "Keep the button pressed.", 0.91) is True
    assert agreement("Hold the button.", "Throw it away.", 0.89) is False


def test_a_short_answer_with_another_number_or_a_denial_does_not_agree():
    assert agreement("It costs 5 euros.", "The price is 7 euros.", 0.99) is False
    assert agreement("It costs 5 euros.", "The price is 5 euros.", 0.99) is True
    assert agreement("It is free.", "It is not free.", 0.99) is False


class ReadsShortTexts(BagOfWordsEmbedder):
    def __call__(self, texts, /):
        assert all(self.count_tokens(text) <= self.max_tokens for text in texts)
        return super().__call__(texts)


LONG = "press and hold the red button of your hub for {} seconds "


@pytest.mark.parametrize(("other", "agrees"), [(LONG.format(7) * 40, True), ("throw it away " * 90, False)])
def test_answers_longer_than_the_embedder_reads_are_compared_in_pieces(other, agrees):
    with shadowed(embedder=ReadsShortTexts(max_tokens=64)) as cache:
        for text in (LONG.format(5) * 30, other):
            cache.answer(ask(RESET), saying(text))
        assert cache.shadow_records()[0].agrees() is agrees


def test_an_answer_that_was_cut_off_tells_nothing():
    assert agreement("Hold the button.", Answer("Hold the button.", finish_reason="length")) is None


def test_a_model_that_fails_tells_nothing(cache):
    def failing(*_: object) -> str:
        raise ConnectionError("no network")

    cache.answer(ask(RESET), FakeModel())
    with pytest.raises(ConnectionError):
        cache.answer(ask(NEAR), failing)
    assert [record.agrees() for record in cache.shadow_records()] == [None]


def test_a_stream_that_its_reader_leaves_tells_nothing(cache):
    cache.answer(ask(RESET), FakeModel())
    pieces = cache.stream(ask(NEAR), FakeModel().stream)
    next(pieces)
    pieces.close()
    assert [record.agrees() for record in cache.shadow_records()] == [None]


def test_in_exact_mode_equal_text_alone_agrees():
    with SmartCache.open(mode="exact", shadow=True, strict=True) as cache:
        for text in ("yes", "yes", "of course"):
            cache.answer(ask(RESET), saying(text))
        assert [record.agrees() for record in cache.shadow_records()] == [True, None]


# Its own trouble is not the caller's.


class FailsOnAnswers(TableEmbedder):
    def __call__(self, texts, /):
        if any(text.startswith("answer") for text in texts):
            raise OSError("the embedder is down")
        return super().__call__(texts)


def test_an_answer_that_cannot_be_embedded_is_given_and_stored_all_the_same():
    with shadowed(embedder=FailsOnAnswers(SIMILARITIES), strict=False) as cache:
        model = saying("answer", "answer in other words")
        cache.answer(ask(RESET), model)
        assert cache.answer(ask(NEAR), model).text == "answer in other words"
        assert [record.agrees() for record in cache.shadow_records()] == [None]
        assert (cache.stats().stored, cache.stats().troubles) == (2, {"shadow": 1})


def test_a_strict_cache_raises_its_own_trouble():
    with shadowed(embedder=FailsOnAnswers(SIMILARITIES)) as cache:
        model = saying("answer", "answer in other words")
        cache.answer(ask(RESET), model)
        with pytest.raises(OSError, match="the embedder is down"):
            cache.answer(ask(NEAR), model)


def test_records_that_cannot_be_written_stop_no_request(tmp_path):
    with shadowed(tmp_path, strict=False) as cache:
        cache.answer(ask(RESET), FakeModel())
        with closing(sqlite3.connect(tmp_path / "smartcache.db")) as other:
            other.execute("DROP TABLE shadow")
        assert cache.answer(ask(NEAR), FakeModel()).served_by == "model"
        assert cache.stats().misses == {"new": 1, "shadow": 1}


# Records outlive the process, are shared, and are forgotten.


def test_records_are_there_after_a_restart_and_for_another_process(tmp_path):
    with shadowed(tmp_path) as cache, shadowed(tmp_path) as other:
        cache.answer(ask(RESET), FakeModel())
        other.answer(ask(NEAR), FakeModel())
        seen = cache.shadow_records()
    with SmartCache.open(tmp_path, mode="exact") as cache:
        assert cache.shadow_records() == seen
    assert len(seen) == 1


FORGETTING = {
    "clear": lambda cache: cache.clear("ann"),
    "forget": lambda cache: cache.forget(scope="ann"),
    "age": lambda cache: cache.forget(scope="ann", older_than=5),
}


@pytest.mark.parametrize("way", FORGETTING)
def test_the_records_of_a_scope_are_forgotten_with_it(tmp_path, way):
    clock = FakeClock()
    with shadowed(tmp_path, clock=clock) as cache:
        for scope in ("ann", "bo"):
            for _ in range(2):
                cache.answer(ask(RESET, scope), FakeModel())
        clock.advance(10)
    with SmartCache.open(tmp_path, mode="exact", clock=clock) as cache:
        FORGETTING[way](cache)
        assert [record.scope for record in cache.shadow_records()] == ["bo"]


def test_records_that_are_younger_stay(cache):
    for _ in range(2):
        cache.answer(ask(RESET), FakeModel())
    cache.forget(older_than=5)
    assert len(cache.shadow_records()) == 1


def test_records_of_answers_that_rest_on_a_forgotten_chunk_go_with_them(cache):
    def ask_over(found: Chunk, *texts: str) -> None:
        for text in texts:
            cache.answer(ask(text, found.ref.id), FakeModel(), search=FakeSearch([found]))

    ask_over(chunk("manual", "Hold the button."), RESET, NEAR)
    ask_over(chunk("other", "Hold the other button."), RESET, NEAR)
    cache.forget(chunk_ids=["manual"])
    assert [record.scope for record in cache.shadow_records()] == ["other"]


def test_what_is_forgotten_while_the_model_writes_leaves_no_record(cache):
    def forgetting(request: Request, chunks: tuple[Chunk, ...]) -> str:
        cache.clear()
        return "Hold the button."

    cache.answer(ask(RESET), saying("a secret"))
    cache.answer(ask(RESET), forgetting)
    assert cache.shadow_records() == ()
    assert "a secret" not in cache.embedder.texts  # nor is it compared


def test_what_is_forgotten_while_it_is_looked_up_leaves_no_record(cache):
    queries: list[str] = []

    def forgetting(query: str) -> tuple[Chunk, ...]:
        if not queries:
            cache.clear()
        queries.append(query)
        return (known,)

    known = chunk("manual", "Hold the button.")
    cache.answer(ask(RESET), FakeModel(), search=FakeSearch([known]))
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("other", "Something else.")]))
    cache.answer(ask(RESET), FakeModel(), search=forgetting)
    assert cache.shadow_records() == ()


# Many at once.


def test_equal_requests_at_once_each_get_an_answer_of_the_models_and_wait_for_the_first(cache):
    entered, release = threading.Event(), threading.Event()

    def slow(request: Request, chunks: tuple[Chunk, ...]) -> str:
        if not entered.is_set():
            entered.set()
            release.wait(10)
        return "Hold the button."

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(cache.answer, ask(RESET), slow)
        assert entered.wait(10)
        others = [pool.submit(cache.answer, ask(RESET), slow) for _ in range(3)]
        release.set()
        assert {future.result(10).served_by for future in [first, *others]} == {"model"}
    assert [record.agrees() for record in cache.shadow_records()] == [True] * 3


def test_many_threads_leave_one_outcome_a_request_and_no_trouble(tmp_path):
    with shadowed(tmp_path) as cache, ThreadPoolExecutor(8) as pool:
        texts = [RESET, NEAR, FARTHER] * 20
        list(pool.map(lambda text: cache.answer(ask(text), saying("yes")), texts))
        stats = cache.stats()
        assert (stats.requests, stats.hits, stats.stored, stats.troubles) == (60, 0, 60, {})
        accepted = [record for record in cache.shadow_records() if record.accepted]
        assert len(accepted) == stats.misses["shadow"]
        assert {record.agrees() for record in cache.shadow_records()} == {True}


# Two policies on the same traffic.


def records_of(*found: tuple[float, bool | None]) -> list[ShadowRecord]:
    """Near questions at a similarity, and whether the model agreed."""
    return [
        ShadowRecord(
            0.0, "", "semantic", 1, near, near >= 0.9, {"similarity": near}, same, None if same is None else 0.0
        )
        for near, same in found
    ]


def test_two_policies_are_compared_on_the_same_traffic():
    records = records_of((0.97, True), (0.90, True), (0.88, False), (0.86, None), (0.70, False))
    policies = {"strict": ThresholdPolicy(0.95), "loose": ThresholdPolicy(0.85)}
    assert compare(records, policies) == {"strict": ShadowTally(1, 1, 0), "loose": ShadowTally(4, 2, 1)}


def test_the_part_that_differs_is_judged_as_well():
    [record] = records_of((0.97, True))
    near = {"similarity": 0.97, "focus_similarity": 0.5}
    apart = ShadowRecord(0.0, "", "semantic", 1, 0.97, False, near, True, 1.0)
    assert compare([record, apart], {"one": ThresholdPolicy(0.95)})["one"].served == 1


def test_the_same_request_again_is_left_out():
    exact = ShadowRecord(0.0, "", "exact", 1, 1.0, True, {}, True, 1.0)
    assert compare([exact], {"one": ThresholdPolicy()})["one"].served == 0


def test_a_looser_policy_is_judged_by_what_the_cache_s_own_refused(cache):
    cache.answer(ask(RESET), saying("yes"))
    cache.answer(ask(FARTHER), saying("yes"))
    found = compare(cache.shadow_records(), {"strict": ThresholdPolicy(0.9), "loose": ThresholdPolicy(0.8)})
    assert found == {"strict": ShadowTally(0, 0, 0), "loose": ShadowTally(1, 1, 0)}


def test_signals_that_this_version_does_not_know_are_passed_over():
    record = ShadowRecord(0.0, "", "semantic", 1, 0.9, True, {"similarity": 0.9, "of_tomorrow": 1.0})
    assert record.candidate.similarity == 0.9


def test_a_tally_says_how_sure_it_is():
    few, none = ShadowTally(10, 8, 2), ShadowTally(1, 0, 0)
    assert few.agreement == 0.8
    assert few.interval == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert (none.agreement, none.interval) == (None, None)


def test_from_which_similarity_on_answers_agree_can_be_chosen():
    record = ShadowRecord(0.0, "", "semantic", 1, 0.95, True, {"similarity": 0.95}, False, 0.85)
    policies = {"one": ThresholdPolicy(0.9)}
    assert compare([record], policies)["one"].agreed == 0
    assert compare([record], policies, min_answer_similarity=0.8)["one"].agreed == 1
