"""Forgetting beside requests under way: what was found for them is not kept after it was to be forgotten."""

from __future__ import annotations

import threading

import pytest

from smartcache import Request, SmartCache, Turn
from smartcache.testing import FakeModel, FakeSearch, chunk

HOUSE = chunk("1", "house")
MOMENT = 0.2  # seconds, time enough for another thread to forget a scope if nothing keeps it from it


def ask(scope: str = "acme") -> Request:
    return Request([Turn("user", "Which buildings are there?")], scope)


class ForgetsBefore:
    """As `store`, but while it is at it another thread forgets a scope."""

    def __init__(self, cache: SmartCache, store, scope: str) -> None:
        self._store = store
        self.forgetting = threading.Thread(target=lambda: cache.forget(scope=scope))

    def __call__(self, *given, **more):
        if not self.forgetting.is_alive():
            self.forgetting.start()
            self.forgetting.join(MOMENT)
        return self._store(*given, **more)


@pytest.mark.parametrize(("forgotten", "searches"), [("acme", 2), ("globex", 1)])
def test_what_a_search_found_is_not_kept_beyond_a_forget_that_comes_between(monkeypatch, forgotten, searches):
    cache, search = SmartCache.open(mode="exact", strict=True), FakeSearch([HOUSE])
    store = ForgetsBefore(cache, cache._retrievals.store, forgotten)
    with monkeypatch.context() as patched:
        patched.setattr(cache._retrievals, "store", store)
        cache.retrieve("buildings", search, scope="acme")
    store.forgetting.join()
    cache.retrieve("buildings", search, scope="acme")
    assert len(search.queries) == searches


@pytest.mark.parametrize(("forgotten", "uses"), [("acme", 0), ("globex", 1)])
def test_what_entered_a_prompt_is_not_kept_beyond_a_forget_that_comes_between(monkeypatch, forgotten, uses):
    cache = SmartCache.open(mode="exact", strict=True)
    record = ForgetsBefore(cache, cache._planned.record, forgotten)
    monkeypatch.setattr(cache._planned, "record", record)
    cache.answer(ask(), FakeModel(), search=FakeSearch([HOUSE]))
    record.forgetting.join()
    assert cache._planned.uses(HOUSE, scope="acme") == uses
