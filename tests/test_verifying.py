"""A verifier for the grey zone: what the policy only doubts is served where it holds, and otherwise never."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from smartcache import Answer, Chunk, Event, KnowledgeUpdate, Request, SmartCache, ThresholdPolicy, Turn
from smartcache.calibrated import CalibratedPolicy
from smartcache.dialogue import Dialogue
from smartcache.policy import Candidate
from smartcache.storage import verified as storage
from smartcache.testing import FakeClock, FakeModel, FakeSearch, TableEmbedder, chunk

RESET = "How do I reset the hub to factory settings?"
NEAR = "To factory settings, how do I reset the hub?"
DOUBTFUL = "Well, how do I reset the hub to factory settings?"
FAR = "Tell me, how do I reset the hub to factory settings?"
OPPOSITE = "How do I not reset the hub to factory settings?"
SIMILARITIES = {(RESET, NEAR): 0.93, (RESET, DOUBTFUL): 0.84, (RESET, FAR): 0.75, (RESET, OPPOSITE): 0.84}
SECONDS = 10


class FakeVerifier:
    """Says one thing about every pair, or raises it, and remembers what it was asked; `meanwhile` happens before."""

    name = "fake"

    def __init__(self, says: object = True, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.says, self.meanwhile = says, meanwhile
        self.pairs: list[tuple[str, str]] = []

    def __call__(self, asked: Dialogue, stored: Dialogue) -> bool:
        self.pairs.append((asked.question, stored.question))
        self.meanwhile()
        if isinstance(self.says, BaseException):
            raise self.says
        return self.says  # type: ignore[return-value]  # no bool, on purpose


def ask(text: str, scope: str = "") -> Request:
    return Request([Turn("user", text)], scope)


def verified(verifier: object, path: object = None, **choices: object) -> SmartCache:
    settings: dict[str, object] = {"embedder": TableEmbedder(SIMILARITIES), "policy": ThresholdPolicy(), **choices}
    return SmartCache.open(path, verifier=verifier, **settings)  # type: ignore[arg-type]  # of several types


def served(cache: SmartCache, text: str = DOUBTFUL) -> str | None:
    hit = cache.lookup(ask(text))
    return hit and hit.text


async def _astreamed(cache: SmartCache, request: Request, model: FakeModel) -> str:
    return "".join([piece async for piece in cache.astream(request, model.astream)])


WAYS: dict[str, Callable[[SmartCache, Request, FakeModel], str]] = {
    "answer": lambda cache, request, model: cache.answer(request, model).text,
    "stream": lambda cache, request, model: "".join(cache.stream(request, model.stream)),
    "aanswer": lambda cache, request, model: asyncio.run(cache.aanswer(request, model.acall)).text,
    "astream": lambda cache, request, model: asyncio.run(_astreamed(cache, request, model)),
}


# Before it may be served.


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("says", "calls"), [(True, 1), (False, 2)])
def test_what_is_doubtful_is_served_where_it_holds(way, says, calls):
    model = FakeModel()
    with verified(FakeVerifier(says)) as cache:
        WAYS[way](cache, ask(RESET), model)
        WAYS[way](cache, ask(DOUBTFUL), model)
    assert model.calls == calls


@pytest.mark.parametrize(("text", "pairs"), [(RESET, []), (NEAR, []), (DOUBTFUL, [(DOUBTFUL, RESET)]), (FAR, [])])
def test_it_is_asked_about_what_is_doubtful_alone(text, pairs):
    with verified(verifier := FakeVerifier()) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        cache.lookup(ask(text))
    assert verifier.pairs == pairs


def test_it_is_not_asked_where_a_fact_is_against_it():
    with verified(verifier := FakeVerifier()) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        assert served(cache, OPPOSITE) is None
    assert verifier.pairs == []
    assert cache.stats().misses == {"polarity": 1}


def test_without_a_verifier_what_is_doubtful_is_a_miss():
    with verified(None) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        assert served(cache) is None
    assert cache.stats().misses == {"far": 1}


def test_what_the_policy_accepts_is_served_first_though_something_doubtful_is_nearer():
    asked, nearer, accepted = "Is the shop open today?", "Is the shop open now?", "Is the shop open at present?"

    class AcceptsOne:
        def accepts(self, candidate: Candidate) -> bool:
            return candidate.stored == accepted

        def is_doubtful(self, candidate: Candidate) -> bool:
            return True

    embedder = TableEmbedder({(asked, nearer): 0.95, (asked, accepted): 0.92})
    with verified(verifier := FakeVerifier(), embedder=embedder, policy=AcceptsOne()) as cache:
        cache.store(ask(nearer), Answer("of the nearer"))
        cache.store(ask(accepted), Answer("of the accepted"))
        assert served(cache, asked) == "of the accepted"
    assert verifier.pairs == []


def test_the_two_nearest_are_verified_at_most():
    stored = [f"How do I reset the hub to factory settings{'!' * n}" for n in range(1, 5)]
    embedder = TableEmbedder({(DOUBTFUL, text): 0.88 - n / 50 for n, text in enumerate(stored)})
    with verified(verifier := FakeVerifier(False), embedder=embedder) as cache:
        for text in stored:
            cache.store(ask(text), Answer(text))
        assert served(cache) is None
    assert verifier.pairs == [(DOUBTFUL, stored[0]), (DOUBTFUL, stored[1])]


def test_it_is_told_the_conversations():
    told = []
    with verified(lambda asked, stored: bool(told.append((asked.transcript, stored.query)))) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        turns = [Turn("user", "Hello!"), Turn("assistant", "Hello."), Turn("user", DOUBTFUL)]
        cache.lookup(Request(turns))
    assert told == [(f"user: Hello!\nassistant: Hello.\nuser: {DOUBTFUL}", RESET)]


# Trouble is a miss.


@pytest.mark.parametrize("says", [RuntimeError("no network"), TimeoutError(), None, "yes", 1])
def test_a_verifier_that_fails_means_a_miss(says):
    with verified(FakeVerifier(says)) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        assert served(cache) is None
    stats = cache.stats()
    assert (stats.misses, stats.troubles, stats.verified) == ({"unverified": 1}, {"verify": 1}, {"failed": 1})


@pytest.mark.parametrize(("says", "ended"), [(True, "same"), (False, "different")])
def test_how_it_ended_is_counted(says, ended):
    with verified(FakeVerifier(says), strict=True) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        cache.lookup(ask(DOUBTFUL))
    assert cache.stats().verified == {ended: 1}
    assert cache.stats().misses == ({} if says else {"unverified": 1})


def test_that_it_did_not_hold_is_told_before_what_stood_against_others():
    embedder = TableEmbedder({(DOUBTFUL, OPPOSITE): 0.89, (DOUBTFUL, RESET): 0.84})
    with verified(FakeVerifier(False), embedder=embedder) as cache:
        cache.store(ask(OPPOSITE), Answer("Do nothing."))
        cache.store(ask(RESET), Answer("Hold the button."))
        assert served(cache) is None
    assert cache.stats().misses == {"unverified": 1}


def test_a_verifier_may_ask_the_cache_itself():
    """It is not asked about its own questions."""
    asked_inside = []
    with verified(FakeVerifier(meanwhile=lambda: asked_inside.append(served(cache)))) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        assert served(cache) == "Hold the button."
    assert asked_inside == [None]


# Documents, and what happens while it is asked.


def test_a_stale_answer_is_not_verified():
    page = chunk("page", "Hold the button.", source="handbook")
    model, search = FakeModel(), FakeSearch([page])
    with verified(verifier := FakeVerifier()) as cache:
        cache.answer(ask(RESET), model, search=search)
        search.chunks = [chunk("page", "Press it twice.", source="handbook")]
        cache.update_knowledge(KnowledgeUpdate(changed=search.chunks, source="handbook"))
        cache.answer(ask(DOUBTFUL), model, search=search)
    assert (verifier.pairs, model.calls) == ([], 2)


def changes(cache: SmartCache) -> object:
    changed: list[Chunk] = [chunk("page", "Press it twice.")]
    return cache.update_knowledge(KnowledgeUpdate(changed=changed))


MEANWHILE: dict[str, Callable[[SmartCache], object]] = {
    "its document changes": changes,
    "it is forgotten": lambda cache: cache.clear(),
    "it is replaced": lambda cache: cache.store(ask(RESET), Answer("Another answer.")),
    "it is reported wrong": lambda cache: cache.report_wrong(ask(RESET), Answer("Hold the button.")),
}


@pytest.mark.parametrize("what", MEANWHILE)
def test_what_changes_while_it_is_verified_is_not_served(what):
    ref = chunk("page", "Hold the button.").ref
    with verified(FakeVerifier(meanwhile=lambda: MEANWHILE[what](cache)), strict=True) as cache:
        cache.store(ask(RESET), Answer("Hold the button.", evidence=frozenset([ref])))
        assert served(cache) is None


# What was found is kept: the verifier is not asked again.


def test_what_holds_is_served_from_then_on_without_asking(tmp_path):
    with verified(verifier := FakeVerifier(), tmp_path) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        assert served(cache) == served(cache) == "Hold the button."
    with verified(verifier, tmp_path) as cache:
        assert served(cache) == "Hold the button."
    assert len(verifier.pairs) == 1


def test_what_does_not_hold_is_asked_again():
    with verified(verifier := FakeVerifier(False)) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        assert served(cache) is served(cache) is None
    assert len(verifier.pairs) == 2


def test_it_holds_for_the_two_requests_whichever_is_answered_anew():
    clock = FakeClock()
    with verified(verifier := FakeVerifier(), clock=clock, ttl_seconds=60.0) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        served(cache)
        clock.advance(61.0)
        assert served(cache) is None
        cache.store(ask(DOUBTFUL), Answer("Hold it for ten seconds."))
        assert served(cache, RESET) == "Hold it for ten seconds."
    assert len(verifier.pairs) == 1


def test_another_verifier_is_asked_itself(tmp_path):
    with verified(FakeVerifier(), tmp_path) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        served(cache)
    another = FakeVerifier(False)
    another.name = "another"
    with verified(another, tmp_path) as cache:
        assert served(cache) is None


def test_a_file_without_a_verifier_serves_nothing_doubtful(tmp_path):
    with verified(FakeVerifier(), tmp_path) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        served(cache)
    with verified(None, tmp_path) as cache:
        assert served(cache) is None


def test_what_was_reported_wrong_is_never_served_again():
    with verified(FakeVerifier()) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        hit = cache.lookup(ask(DOUBTFUL))
        cache.report_wrong(ask(DOUBTFUL), hit)
        assert served(cache) is None
    assert cache.stats().misses == {"reported_wrong": 1}


def test_a_report_withdraws_what_was_found():
    clock = FakeClock()
    with verified(verifier := FakeVerifier(), clock=clock, ttl_seconds=60.0) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        cache.report_wrong(ask(DOUBTFUL), cache.lookup(ask(DOUBTFUL)))
        clock.advance(30.0)
        cache.store(ask(DOUBTFUL), Answer("Press it twice."))
        clock.advance(31.0)
        verifier.says = False
        assert served(cache, RESET) is None
    assert verifier.pairs == [(DOUBTFUL, RESET), (RESET, DOUBTFUL)]


@pytest.mark.parametrize(("forgotten", "times"), [("acme", 2), ("another", 1)])
def test_forgetting_the_answers_forgets_what_was_found(forgotten, times):
    with verified(verifier := FakeVerifier()) as cache:
        for _ in range(2):
            cache.store(ask(RESET, "acme"), Answer("Hold the button."))
            cache.lookup(ask(DOUBTFUL, "acme"))
            cache.clear(forgotten)
    assert len(verifier.pairs) == times


def test_the_last_pairs_are_kept(monkeypatch):
    monkeypatch.setattr(storage, "MAX_VERIFIED_PAIRS", 1)
    with verified(verifier := FakeVerifier()) as cache:
        for scope in ("one", "two", "two", "one"):
            cache.store(ask(RESET, scope), Answer("Hold the button."))
            cache.lookup(ask(DOUBTFUL, scope))
    assert len(verifier.pairs) == 3


# After the model has answered.


class Counted:
    """An `on_event` hook that knows how many verifications have ended."""

    def __init__(self) -> None:
        self._ended = threading.Semaphore(0)

    def __call__(self, event: Event) -> None:
        if event.kind == "verified":
            self._ended.release()

    def wait(self) -> None:
        assert self._ended.acquire(timeout=SECONDS)


def test_the_model_answers_while_it_is_verified():
    asked, ended = threading.Event(), Counted()
    verifier = FakeVerifier(meanwhile=lambda: asked.wait(SECONDS))
    with verified(verifier, verify="after", on_event=ended) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        assert cache.answer(ask(DOUBTFUL), lambda request, chunks: "the model's own").text == "the model's own"
        asked.set()
        ended.wait()
        assert served(cache) == "the model's own"
    assert cache.stats().misses == {"unverified": 1}


def test_what_held_afterwards_is_served_to_the_next_user_where_no_own_answer_is_there():
    ended = Counted()
    with verified(verifier := FakeVerifier(), verify="after", on_event=ended) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        assert served(cache) is None  # and the model fails, or its answer is not kept
        ended.wait()
        assert served(cache) == "Hold the button."
    assert len(verifier.pairs) == 1


def test_after_a_change_of_the_documents_one_new_answer_serves_both():
    ended, model, search = Counted(), FakeModel(), FakeSearch([chunk("page", "Hold the button.")])
    with verified(FakeVerifier(), verify="after", on_event=ended) as cache:
        cache.answer(ask(RESET), model, search=search)
        cache.answer(ask(DOUBTFUL), model, search=search)
        ended.wait()
        search.chunks = [chunk("page", "Press it twice.")]
        cache.update_knowledge(KnowledgeUpdate(changed=search.chunks))
        cache.answer(ask(RESET), model, search=search)
        assert cache.answer(ask(DOUBTFUL), model, search=search).is_hit
    assert model.calls == 3


@pytest.mark.parametrize("says", [False, RuntimeError("no network"), "yes"])
def test_what_does_not_hold_afterwards_is_not_served(says):
    ended = Counted()
    with verified(FakeVerifier(says), verify="after", on_event=ended, strict=True) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        cache.lookup(ask(DOUBTFUL))
        ended.wait()
        assert served(cache) is None


def test_what_is_forgotten_while_it_is_verified_afterwards_leaves_nothing():
    begun, forgotten, ended = threading.Event(), threading.Event(), Counted()

    def meanwhile() -> None:
        begun.set()
        forgotten.wait(SECONDS)

    with verified(verifier := FakeVerifier(meanwhile=meanwhile), verify="after", on_event=ended) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        cache.lookup(ask(DOUBTFUL))
        assert begun.wait(SECONDS)
        cache.clear()
        forgotten.set()
        ended.wait()
        cache.store(ask(RESET), Answer("Hold the button."))
        assert served(cache) is None
        ended.wait()
    assert len(verifier.pairs) == 2


def test_what_waits_when_the_cache_closes_is_dropped():
    begun, closed, ended = threading.Event(), threading.Event(), Counted()

    def meanwhile() -> None:
        begun.set()
        closed.wait(SECONDS)

    with verified(verifier := FakeVerifier(meanwhile=meanwhile), verify="after", on_event=ended) as cache:
        for scope in ("one", "two"):
            cache.store(ask(RESET, scope), Answer("Hold the button."))
            cache.lookup(ask(DOUBTFUL, scope))
        assert begun.wait(SECONDS)
    closed.set()
    ended.wait()
    assert len(verifier.pairs) == 1


@pytest.mark.parametrize("raised", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
def test_a_verifier_that_exits_ends_no_background_work(raised):
    begun, second, ended = threading.Event(), threading.Event(), Counted()

    def meanwhile() -> None:
        begun.set()
        assert second.wait(SECONDS)  # so that the second waits for the same thread

    with verified(verifier := FakeVerifier(raised, meanwhile), verify="after", on_event=ended) as cache:
        for scope in ("one", "two"):
            cache.store(ask(RESET, scope), Answer("Hold the button."))
            cache.lookup(ask(DOUBTFUL, scope))
        assert begun.wait(SECONDS)
        second.set()
        for _ in "12":
            ended.wait()
    assert len(verifier.pairs) == 2
    assert cache.stats().verified == {"failed": 2}


@pytest.mark.parametrize("raised", [SystemExit(1), KeyboardInterrupt()])
def test_a_verifier_that_exits_in_a_request_s_thread_is_a_miss(raised):
    model = FakeModel()
    with verified(FakeVerifier(raised)) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        assert asyncio.run(cache.aanswer(ask(DOUBTFUL), model.acall)).served_by == "model"
    stats = cache.stats()
    assert (stats.verified, stats.troubles, stats.misses) == ({"failed": 1}, {"verify": 1}, {"unverified": 1})


@pytest.mark.parametrize("raised", [SystemExit(1), KeyboardInterrupt()])
def test_what_ends_the_process_passes_through_in_the_main_thread(raised):
    with verified(FakeVerifier(raised)) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        with pytest.raises(type(raised)):
            cache.answer(ask(DOUBTFUL), FakeModel())
    assert cache.stats().verified == {"failed": 1}


def test_shadow_mode_verifies_nothing():
    with verified(verifier := FakeVerifier(), shadow=True) as cache:
        cache.store(ask(RESET), Answer("Hold the button."))
        assert served(cache) is None
        assert [record.accepted for record in cache.shadow_records()] == [False]
    assert verifier.pairs == []


# Which candidates are doubtful.


def test_a_threshold_policy_doubts_a_tenth_below_its_thresholds():
    policy = ThresholdPolicy(0.90, 0.85)
    assert policy.is_doubtful(Candidate("a", "b", 0.80, context_similarity=0.75))
    assert not policy.is_doubtful(Candidate("a", "b", 0.79))
    assert not policy.is_doubtful(Candidate("a", "b", 0.95, context_similarity=0.74))


def test_a_calibrated_policy_doubts_up_to_a_tenth_of_wrong_answers():
    strict = CalibratedPolicy(0.005)
    confidence = CalibratedPolicy(0.10).min_confidence(0)
    assert strict.is_doubtful(Candidate("a", "b", 0.9, confidence=confidence))
    assert not strict.accepts(Candidate("a", "b", 0.9, confidence=confidence))
    assert not strict.is_doubtful(Candidate("a", "b", 0.9, confidence=confidence - 0.001))


def test_a_bound_of_zero_leaves_nothing_to_doubt():
    policy = CalibratedPolicy(by_intent={"creative": 0.0})
    assert not policy.is_doubtful(Candidate("Write a poem about the sea", "", 1.0, confidence=1.0))
    assert policy.is_doubtful(Candidate("How deep is the sea?", "", 1.0, confidence=1.0))


# Mistakes are told at once.


async def _asleep(asked: Dialogue, stored: Dialogue) -> bool:
    return True


class AcceptsAll:
    def accepts(self, candidate: Candidate) -> bool:
        return True


@pytest.mark.parametrize(
    ("choices", "error", "says"),
    [
        ({"verifier": "gpt"}, TypeError, "plain function"),
        ({"verifier": _asleep}, TypeError, "beside the event loop"),
        ({"policy": AcceptsAll()}, TypeError, "is_doubtful"),
        ({"verify": "later"}, ValueError, "'before' or 'after'"),
    ],
)
def test_a_mistake_is_told_when_the_cache_opens(choices, error, says):
    with pytest.raises(error, match=says):
        verified(**{"verifier": FakeVerifier(), **choices})
