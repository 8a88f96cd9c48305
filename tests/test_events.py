"""What happened, told once: the log, and the counts."""

from __future__ import annotations

import logging

import pytest

from smartcache.events import Events


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.WARNING, "smartcache")
    return lambda: [record.getMessage().split(",")[0] for record in caplog.records]


def test_trouble_is_logged_the_first_time_and_counted_every_time(logged):
    events = Events()
    for where in ("store", "store", "embed"):
        events.emit("trouble", where, error=OSError("the disk is full"))
    assert logged() == ["smartcache: trouble in store", "smartcache: trouble in embed"]
    assert events.counts("trouble") == {"embed": 1, "store": 2}


def test_trouble_is_logged_though_something_else_had_the_same_reason(logged):
    events = Events()
    events.emit("bypass", "unstable_key")
    events.emit("trouble", "unstable_key", error=ValueError("an object"))
    assert logged() == ["smartcache: trouble in unstable_key"]


def test_what_is_no_trouble_is_not_logged(logged):
    Events().emit("miss", "new")
    assert logged() == []
