"""`smartcache-eval bench context`: what orders of chunks share, on traffic made up here, and how it is made."""

from __future__ import annotations

import json

import pytest

from smartcache import ContextOrder
from smartcache.testing import chunk
from smartcache_eval.context_bench import ORDERS, f1, reuse
from smartcache_eval.context_traffic import Retrieved, bank_traffic, musique_traffic
from smartcache_eval.folder import UnreadableWorkload

A, B, C, D = (chunk(name, name * 50) for name in "abcd")
TRAFFIC = [Retrieved(f"{at}?", chunks) for at, chunks in enumerate([(A, B), (B, A), (C, B, A), (D, C)])]


def tokens_of(text):
    return [ord(letter) for letter in text]


def shares(order, room=10**6, traffic=TRAFFIC):
    return reuse(traffic, ContextOrder(order), tokens_of, room)


def test_the_order_given_shares_least_and_cache_aware_most():
    given, by_hash, aware = (shares(order).chunks for order in ("given", "hash", "cache-aware"))
    assert given < by_hash <= aware
    assert aware == 4 / 9


def test_more_is_shared_where_there_is_room():
    assert shares("cache-aware", room=100).tokens < shares("cache-aware").tokens


def test_a_request_that_comes_again_is_all_shared_but_its_last_token():
    run = reuse([Retrieved("one?", (A,))] * 2, ContextOrder(), tokens_of, 10**6)
    assert run.chunks == 0.5
    assert 0.49 < run.tokens < 0.5


def test_every_order_is_measured():
    assert {"given", "hash", "popularity", "cache-aware"} < set(ORDERS)


@pytest.mark.parametrize(
    ("answer", "right", "score"),
    [
        ("The Exeter College.", ["Exeter College"], 1.0),
        ("Exeter", ["Exeter College"], 2 / 3),
        ("Oxford", ["Exeter College"], 0.0),
        ("Oxford", ["Exeter College", "oxford"], 1.0),
        ("", ["Exeter College"], 0.0),
    ],
)
def test_f1_counts_words_in_common_with_the_nearest_right_answer(answer, right, score):
    assert f1(answer, right) == pytest.approx(score)


@pytest.fixture
def folder(tmp_path):
    bank = tmp_path / "tau2-banking-kb" / "raw" / "banking_knowledge"
    (bank / "documents").mkdir(parents=True)
    (bank / "tasks").mkdir()
    for number in range(6):
        document = {"id": f"doc_card_{number}", "title": f"Card {number}", "content": f"All about card {number}."}
        (bank / "documents" / f"{number}.json").write_text(json.dumps(document))
    (bank / "tasks" / "1.json").write_text(json.dumps({"required_documents": ["doc_card_0", "doc_card_1"]}))
    asked = {"question": "Which one?", "answers": ["two"], "ctxs": [{"text": f"passage {n}"} for n in range(5)]}
    musique = tmp_path / "cacheblend-inputs" / "raw"
    musique.mkdir(parents=True)
    (musique / "musique_s.json").write_text(json.dumps([asked]))
    return tmp_path


def test_a_bank_request_finds_what_its_task_needs_and_something_near(folder):
    (request,) = bank_traffic(folder, 1, found=3)
    ids = {one.ref.id for one in request.chunks}
    assert {"doc_card_0", "doc_card_1"} < ids
    assert len(ids) == 3


def test_a_musique_request_finds_some_of_its_passages_and_knows_the_answer(folder):
    (request,) = musique_traffic(folder, 1, found=3)
    assert (request.question, len(request.chunks), request.answers) == ("Which one?", 3, ("two",))


def test_the_same_seed_makes_the_same_traffic(folder):
    assert bank_traffic(folder, 20, seed=1) == bank_traffic(folder, 20, seed=1)
    assert bank_traffic(folder, 20, seed=1) != bank_traffic(folder, 20, seed=2)


@pytest.mark.parametrize("traffic", [bank_traffic, musique_traffic])
def test_data_that_is_not_there_is_told(tmp_path, traffic):
    with pytest.raises(UnreadableWorkload, match="SMARTCACHE_DATA"):
        traffic(tmp_path, 1)
