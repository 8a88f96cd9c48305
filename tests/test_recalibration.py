"""Reports of wrong answers raise the bar, for as long as own traffic disproves what the weights promise."""

from __future__ import annotations

import sqlite3

import pytest

from smartcache import Answer, Candidate, Event, Request, SmartCache, ThresholdPolicy, Turn
from smartcache.calibrated import CalibratedPolicy
from smartcache.evidence import HALF_LIFE_SECONDS, Evidence, Place
from smartcache.recalibrated import Recalibrated
from smartcache.storage import entries
from smartcache.testing import FakeClock, TableEmbedder

RESET, NEAR = "How do I reset the hub to factory settings?", "To factory settings, how do I reset the hub?"
LOCK, NEARER = "How do I lock the door from the inside?", "From the inside, how do I lock the door?"
SIMILARITIES = {(RESET, NEAR): 0.93, (LOCK, NEARER): 0.995}
SCOPES = "abcdefgh"


def ask(text: str, scope: str) -> Request:
    return Request([Turn("user", text)], scope)


def open_cache(path=None, **settings) -> SmartCache:
    """A cache whose policy decides by rules, for there are no weights for its embedder: similarities are stated."""
    settings = {"policy": CalibratedPolicy(), "strict": True, "embedder": TableEmbedder(SIMILARITIES)} | settings
    cache = SmartCache.open(path, **settings)
    for scope in SCOPES:
        for text in (RESET, LOCK):
            cache.store(ask(text, scope), Answer("Like this."))
    return cache


def report(cache: SmartCache, scopes: str, text: str = NEAR) -> None:
    """Users of so many scopes are served, and say that it was wrong."""
    hits = [(ask(text, scope), cache.lookup(ask(text, scope))) for scope in scopes]
    for asked, hit in hits:
        cache.report_wrong(asked, hit)


def is_served(cache: SmartCache, text: str = NEAR, scope: str = "h") -> bool:
    return cache.lookup(ask(text, scope)) is not None


@pytest.fixture
def cache() -> SmartCache:
    return open_cache()


def test_reports_raise_the_bar_for_questions_nobody_reported(cache):
    report(cache, "ab")
    assert not is_served(cache)


def test_one_report_is_no_rate(cache):
    report(cache, "a")
    assert is_served(cache)


def test_what_is_surer_than_the_reported_is_served_on(cache):
    report(cache, "ab")
    assert is_served(cache, NEARER)


def test_what_is_less_sure_than_the_reported_is_not():
    policy = CalibratedPolicy()
    cache = open_cache(policy=policy, embedder=TableEmbedder({(RESET, NEAR): 0.91, (LOCK, NEARER): 0.93}))
    report(cache, "abc", NEARER)
    assert not is_served(cache)


def test_many_hits_that_nobody_reported_outweigh_a_few_reports(cache):
    for _ in range(80):
        assert is_served(cache, scope="c")
    report(cache, "ab")
    assert is_served(cache)


def test_a_pair_that_is_reported_twice_counts_once(cache):
    asked = ask(NEAR, "a")
    hit = cache.lookup(asked)
    cache.report_wrong(asked, hit)
    cache.report_wrong(asked, hit)
    assert is_served(cache)


def test_a_report_of_the_own_answer_is_no_evidence(cache):
    report(cache, "abcd", RESET)
    assert is_served(cache)


def test_what_a_policy_would_not_have_served_is_no_evidence_against_it(tmp_path):
    cache = open_cache(tmp_path)
    hits = [(ask(NEAR, scope), cache.lookup(ask(NEAR, scope))) for scope in "abc"]
    none = CalibratedPolicy(by_intent={"general": 0.0})
    with SmartCache.open(tmp_path, policy=none, embedder=TableEmbedder(SIMILARITIES), strict=True) as stricter:
        for asked, hit in hits:
            stricter.report_wrong(asked, hit)
    assert is_served(cache)


def test_a_threshold_of_ones_own_states_no_bound_and_stays():
    cache = open_cache(policy=ThresholdPolicy(0.9))
    report(cache, "abcdef")
    assert is_served(cache)


def test_the_bar_survives_a_restart(tmp_path):
    with open_cache(tmp_path) as cache:
        report(cache, "ab")
    assert not is_served(open_cache(tmp_path))


def test_processes_share_their_evidence(tmp_path):
    one, other = open_cache(tmp_path), open_cache(tmp_path)
    report(one, "a")
    assert is_served(other, scope="h")
    report(other, "b")
    assert not is_served(one)


def test_evidence_for_other_vectors_is_none_against_these(tmp_path):
    with open_cache(tmp_path) as cache:
        report(cache, "ab")
    embedder = TableEmbedder(SIMILARITIES)
    embedder.name = "another"
    assert is_served(open_cache(tmp_path, embedder=embedder))


def test_a_hit_is_written_with_others_and_not_by_itself(tmp_path):
    cache = open_cache(tmp_path)
    is_served(cache)
    is_served(cache)
    count = "SELECT coalesce(sum(served), 0) FROM hits"
    assert sqlite3.connect(tmp_path / "smartcache.db").execute(count).fetchone() == (0,)
    cache.close()
    assert sqlite3.connect(tmp_path / "smartcache.db").execute(count).fetchone()[0] == pytest.approx(2, abs=1e-3)


def of_another_version(hit: Answer) -> None:
    raise KeyError("a field that another version wrote")


@pytest.mark.parametrize(("restore", "expected"), [(str, True), (of_another_version, False)])
def test_what_its_caller_cannot_restore_is_no_hit_that_outweighs_a_report(restore, expected):
    cache = open_cache(strict=False)
    for _ in range(80):
        assert (cache.lookup(ask(NEAR, "c"), restore=restore) is not None) is expected
    report(cache, "ab")
    assert is_served(cache) is expected


def test_hits_whose_write_fails_are_counted_with_the_next(tmp_path):
    cache = open_cache(tmp_path, strict=False)
    for _ in range(80):
        is_served(cache, scope="c")
    hits = [(ask(NEAR, scope), cache.lookup(ask(NEAR, scope))) for scope in "ab"]
    write(tmp_path, "CREATE TRIGGER full BEFORE INSERT ON wrong BEGIN SELECT RAISE(ABORT, 'no room'); END")
    cache.report_wrong(*hits[0])
    write(tmp_path, "DROP TRIGGER full")
    assert cache.stats().troubles == {"report_wrong": 1}
    for asked, hit in hits:
        cache.report_wrong(asked, hit)
    assert is_served(cache)


def test_a_hit_is_served_though_it_cannot_be_counted_and_is_counted_later(tmp_path, monkeypatch):
    monkeypatch.setattr(entries, "MAX_UNWRITTEN_USES", 2)
    with open_cache(tmp_path, strict=False) as cache:
        write(tmp_path, "CREATE TRIGGER full BEFORE INSERT ON hits BEGIN SELECT RAISE(ABORT, 'no room'); END")
        assert [is_served(cache, scope=scope) for scope in "abcde"] == [True] * 5
        assert cache.stats().troubles == {"note_served": 2}
        write(tmp_path, "DROP TRIGGER full")
    count = "SELECT sum(served) FROM hits"
    assert sqlite3.connect(tmp_path / "smartcache.db").execute(count).fetchone()[0] == pytest.approx(5, abs=1e-3)


def write(path, statement: str) -> None:
    with sqlite3.connect(path / "smartcache.db") as connection:
        connection.execute(statement)


def test_evidence_fades():
    clock = FakeClock()
    cache = open_cache(clock=clock)
    report(cache, "ab")
    clock.advance(HALF_LIFE_SECONDS / 10)
    assert not is_served(cache)
    clock.advance(HALF_LIFE_SECONDS)
    assert is_served(cache)


def test_clearing_everything_begins_anew_and_clearing_a_scope_does_not(cache):
    report(cache, "ab")
    cache.clear("a")
    assert not is_served(cache)
    cache.clear()
    cache.store(ask(RESET, "h"), Answer("Like this."))
    assert is_served(cache)


def test_a_raised_bar_is_told_once():
    told: list[Event] = []
    cache = open_cache(on_event=told.append)
    report(cache, "ab")
    assert [event.reason for event in told if event.kind == "bar_raised"] == ["decided by rules"]
    assert cache.stats().bar_raised == {"decided by rules": 1}


def test_shadow_mode_goes_by_the_raised_bar(tmp_path):
    with open_cache(tmp_path) as cache:
        report(cache, "ab")
    with open_cache(tmp_path, shadow=True) as cache:
        cache.lookup(ask(NEAR, "h"))
        assert [record.accepted for record in cache.shadow_records()] == [False]


class Promised(CalibratedPolicy):
    """As if 0.9 had been measured to be enough."""

    def min_confidence(self, histories: int, max_wrong: float | None = None) -> float:
        return 0.9


def bars(*counts: tuple[float, float, float]) -> Recalibrated:
    """The policy after (confidence, hits served, of them reported wrong), all of questions without turns before."""
    places = {Place.of(Candidate("a", "b", 0.0, confidence=at)): (served, wrong) for at, served, wrong in counts}
    return Recalibrated(Promised(), lambda: Evidence(places))


@pytest.mark.parametrize(
    ("counts", "accepted"),
    [
        ([], [0.92, 0.97, 0.995]),
        ([(0.92, 100, 0)], [0.92, 0.97, 0.995]),
        ([(0.92, 20, 5)], [0.97, 0.995]),
        ([(0.92, 20, 5), (0.97, 20, 5)], [0.995]),
        ([(0.92, 20, 5), (0.97, 20, 5), (0.995, 20, 5)], []),
        ([(0.92, 20, 5), (0.97, 2000, 0)], [0.92, 0.97, 0.995]),
        ([(0.5, 20, 5)], [0.92, 0.97, 0.995]),
        ([(0.5, 10_000, 0), (0.92, 20, 5)], [0.97, 0.995]),
    ],
    ids="none good wrong-below wrong-in-the-middle wrong-up-to-the-top outweighed under-it good-under-it".split(),
)
def test_the_bar_is_the_lowest_from_which_on_the_bound_is_not_disproved(counts, accepted):
    policy = bars(*counts)
    assert [at for at in (0.92, 0.97, 0.995) if policy.accepts(Candidate("a", "b", 0.0, confidence=at))] == accepted


def test_each_kind_of_pair_has_its_own_bar():
    policy = bars((0.92, 20, 5))
    assert policy.accepts(Candidate("a", "b", 0.0, confidence=0.92, histories=1))


def test_the_bar_never_falls_below_what_was_measured():
    policy = bars((0.5, 10_000, 0))
    assert policy.min_confidence(0) == 0.9
    assert not policy.accepts(Candidate("a", "b", 0.0, confidence=0.89))


def test_a_bar_tells_why_it_was_raised():
    bar = bars((0.92, 20, 5)).bar(Candidate("a", "b", 0.0, confidence=0.92))
    assert (bar.promised, bar.is_raised, bar.served, bar.reported) == (0.9, True, 20, 5)
    assert bar.needed == bars((0.92, 20, 5)).min_confidence(0) > 0.92


def test_a_stricter_bound_is_disproved_sooner():
    policy = bars((0.92, 1000, 10))
    assert policy.min_confidence(0) == 0.9
    assert policy.min_confidence(0, 0.001) > 0.92
