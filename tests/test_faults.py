"""Faults that users report against such caches, by their number in our list, each with the case that must still hit."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from smartcache import Answer, Candidate, ChunkRef, KnowledgeUpdate, Request, SmartCache, ThresholdPolicy, Turn
from smartcache.testing import BagOfWordsEmbedder, FakeClock, FakeModel, FakeSearch, TableEmbedder, chunk


@pytest.fixture
def cache():
    with SmartCache.open(embedder=BagOfWordsEmbedder(), strict=True) as cache:
        yield cache


@pytest.fixture
def model():
    return FakeModel()


def ask(*said: str, **parts: object) -> Request:
    """A request whose turns are the user's and the assistant's in turn, the user's last."""
    roles = ("user", "assistant")
    return Request([Turn(roles[n % 2], text) for n, text in enumerate(said)], **parts)  # type: ignore[arg-type]  # str roles


def table_cache(one: str, other: str, similarity: float) -> SmartCache:
    return SmartCache.open(embedder=TableEmbedder({(one, other): similarity}), strict=True)


def served(cache: SmartCache, stored: Request, asked: Request) -> str:
    """By what `asked` is served once `stored` has been answered."""
    model = FakeModel()
    cache.answer(stored, model)
    return cache.answer(asked, model).served_by


# B01: the same follow-up in another conversation.


def test_b01_a_follow_up_about_another_person_misses(cache):
    acme = ask("who runs Acme", "Ann", "how old is she?")
    assert served(cache, acme, ask("who runs Birk", "Bo", "how old is she?")) == "model"


def test_b01_the_follow_up_in_an_equivalent_conversation_hits(cache):
    acme = ask("who runs Acme", "Ann", "how old is she?")
    assert served(cache, acme, ask("Acme, who runs", "Ann", "how old is she?")) == "semantic"


def test_b01_another_answer_in_between_misses(cache):
    luigi = ask("recommend a restaurant", "Try Luigi in Rome", "where is it?")
    assert served(cache, luigi, ask("recommend a restaurant", "Try Chez Paul in Lyon", "where is it?")) == "model"


def test_b01_a_negated_history_misses(cache):
    has = ask("I have the Pro plan", "Good.", "what does it cost?")
    assert served(cache, has, ask("I don't have the Pro plan", "Good.", "what does it cost?")) == "model"


# B03: a constant template around the question.

TEMPLATE = (
    "You are the assistant of a large bank. Answer in one friendly sentence, without lists. The customer says: {}"
)


def test_b03_other_questions_in_one_long_template_miss(cache, model):
    for question in ("tell a joke", "1+1?", "weather?"):
        assert cache.answer(ask(TEMPLATE.format(question)), model).served_by == "model"


def test_b03_the_same_question_in_the_template_hits(cache):
    stored = ask(TEMPLATE.format("where is my new credit card"))
    assert served(cache, stored, ask(TEMPLATE.format("my new credit card where is"))) == "semantic"


# B04: opposites, however near.


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Is port 6379 open by default?", "Is port 6379 closed by default?"),
        ("How do I turn on the porch light?", "How do I turn off the porch light?"),
        ("Can I cancel the yearly plan?", "Can't I cancel the yearly plan?"),
        ("How do I lock the front door remotely?", "How do I unlock the front door remotely?"),
        ("Which plans come with roaming abroad?", "Which plans come without roaming abroad?"),
        ("怎么打开自动续费功能？", "怎么关闭自动续费功能？"),
    ],
)
def test_b04_the_opposite_question_misses(stored, asked):
    assert served(table_cache(stored, asked, 0.98), ask(stored), ask(asked)) == "model"


def test_b04_a_paraphrase_less_near_hits():
    stored, asked = "Is port 6379 open by default?", "By default, is port 6379 open?"
    assert served(table_cache(stored, asked, 0.93), ask(stored), ask(asked)) == "semantic"


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("What does release 17.2 change?", "What does release 17.3 change?"),
        ("What is 12 + 7?", "What is 12 - 7?"),
        ("Who founded Acme?", "Who founded Birk?"),
        ("What does `max_tokens` mean?", "What does `min_tokens` mean?"),
        ("When was the Eiffel Tower opened?", "Where was the Eiffel Tower opened?"),
    ],
)
def test_hard_facts_are_equal_or_it_is_a_miss(stored, asked):
    assert served(table_cache(stored, asked, 0.98), ask(stored), ask(asked)) == "model"


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Who founded Acme?", "who was acme founded by"),
        ("How much are two tickets to Bern?", "What do 2 tickets to Bern cost?"),
        ("What year was the Eiffel Tower opened?", "When was the Eiffel Tower opened?"),
    ],
)
def test_the_same_hard_facts_in_other_words_hit(stored, asked):
    assert served(table_cache(stored, asked, 0.95), ask(stored), ask(asked)) == "semantic"


# B08: one meaning of a threshold.


@pytest.mark.parametrize("threshold", [1.7, -0.1, "0.9", None, float("nan"), True])
def test_b08_a_threshold_that_is_no_similarity_is_refused(threshold):
    with pytest.raises(ValueError, match="cosine similarity from 0 to 1"):
        ThresholdPolicy(threshold)


@pytest.mark.parametrize(("similarity", "accepted"), [(0.9, True), (0.89, False), (0.91, True)])
def test_b08_a_question_at_the_threshold_is_accepted(similarity, accepted):
    assert ThresholdPolicy(0.9).accepts(Candidate("a", "b", similarity)) is accepted


def test_b08_the_threshold_one_takes_identical_vectors():
    stored, asked = "How do I reset the hub to factory settings?", "To factory settings, how do I reset the hub?"
    cache = SmartCache.open(embedder=BagOfWordsEmbedder(), policy=ThresholdPolicy(1.0), strict=True)
    assert served(cache, ask(stored), ask(asked)) == "semantic"


# B09: feedback.

WRONG_PAIR = ("How do I reset the hub to factory settings?", "to factory settings how do I reset the hub today?")


def test_b09_a_pair_reported_wrong_is_never_served_again_even_after_a_restart(tmp_path, model):
    stored, asked = map(ask, WRONG_PAIR)
    with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(), strict=True) as cache:
        cache.answer(stored, model)
        hit = cache.answer(asked, model)
        assert hit.served_by == "semantic"
        cache.report_wrong(asked, hit)
        assert cache.lookup(asked) is None
    with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(), strict=True) as cache:
        assert cache.lookup(asked) is None


def test_b09_nor_is_what_is_asked_almost_alike(cache, model):
    stored, asked = map(ask, WRONG_PAIR)
    cache.answer(stored, model)
    cache.report_wrong(asked, cache.answer(asked, model))
    assert cache.lookup(ask(WRONG_PAIR[1].replace("?", " ?"))) is None


def test_b09_another_paraphrase_of_the_stored_question_still_hits(cache, model):
    stored, asked = map(ask, WRONG_PAIR)
    cache.answer(stored, model)
    cache.report_wrong(asked, cache.answer(asked, model))
    assert cache.lookup(ask("the hub: how do I reset to factory settings?")) is not None


def test_b09_a_report_under_another_embedder_leaves_the_others_served(tmp_path, model):
    stored, asked = map(ask, WRONG_PAIR)
    file, dimensions = tmp_path / "cache.db", (512, 256)
    embedders = [BagOfWordsEmbedder(dimension, name=f"words {dimension}") for dimension in dimensions]
    with SmartCache.open(file, embedder=embedders[0], strict=True) as cache:
        cache.answer(stored, model)
        hit = cache.answer(asked, model)
    with SmartCache.open(file, embedder=embedders[1], strict=True) as cache:
        assert cache.report_wrong(asked, hit)
    with SmartCache.open(file, embedder=embedders[0], strict=True) as cache:
        assert cache.lookup(asked) is None
        assert cache.lookup(ask("the hub: how do I reset to factory settings?")) is not None


def test_b09_the_same_words_are_not_served_from_another_entry_nor_stored_again(cache):
    """Nor are they taken from whom they are right for."""
    stored, asked = map(ask, WRONG_PAIR)
    cache.store(stored, Answer("Hold the button."))
    cache.store(asked, Answer("Hold the button."))
    assert cache.report_wrong(asked, cache.lookup(asked))
    assert cache.lookup(asked) is None
    assert not cache.store(asked, Answer("Hold the button."))
    assert cache.stats().not_stored == {"reported_wrong": 1}
    assert cache.lookup(stored).text == "Hold the button."
    assert cache.store(asked, Answer("Press it twice."))


def test_b09_a_hit_that_is_reported_after_its_words_were_stored_for_the_request_is_gone_there_too(cache):
    stored, asked = map(ask, WRONG_PAIR)
    cache.store(stored, Answer("Hold the button."))
    hit = cache.lookup(asked)
    cache.store(asked, Answer("Hold the button."))
    assert cache.report_wrong(asked, hit)
    assert cache.lookup(asked) is None
    assert cache.lookup(stored).text == "Hold the button."


@pytest.mark.parametrize(("text", "is_it"), [("", False), ("Press it.", False), ("Hold the button.", True)])
def test_b09_only_what_was_said_can_have_been_wrong(cache, text, is_it):
    request = ask(WRONG_PAIR[0])
    cache.store(request, Answer("Hold the button."))
    assert cache.report_wrong(request, Answer(text)) is is_it
    assert (cache.lookup(request) is None) is is_it


def test_b09_an_exact_answer_reported_wrong_is_gone(cache, model):
    request = ask(WRONG_PAIR[0])
    cache.answer(request, model)
    assert cache.report_wrong(request, cache.answer(request, model))
    assert cache.answer(request, model).text.startswith("answer 2")


# B10, B11, B12, B15, B17, B19, B20: keys.


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"max_tokens": 16}, {"max_tokens": 4000}),
        ({"stop": ["X"]}, {}),
        ({"seed": 1}, {"seed": 2}),
        ({"foo": 1}, {"foo": 2}),
        ({"foo": None}, {"foo": ""}),
        ({"foo": ["ab", "c"]}, {"foo": ["a", "bc"]}),
        ({"foo": 1}, {"foo": True}),
        ({"tools": [{"name": "a"}]}, {"tools": [{"name": "b"}]}),
        ({"tool_choice": "none"}, {"tool_choice": "auto"}),
    ],
)
def test_b10_every_option_is_in_the_key(cache, one, other):
    assert served(cache, ask("hello there", options=one), ask("hello there", options=other)) == "model"
    assert cache.lookup(ask("hello there", options=dict(one))) is not None


@pytest.mark.parametrize("neutral", ["tags", "callbacks", "timeout", "metadata", "stream"])
def test_b10_an_option_that_changes_no_answer_is_not(cache, neutral):
    assert served(cache, ask("hello there"), ask("hello there", options={neutral: object()})) == "exact"


def test_b10_options_that_mean_the_same_are_one_key(cache):
    one, other = {"top_p": 1.0, "stop": ("a", "b")}, {"stop": ["a", "b"], "top_p": 1}
    assert served(cache, ask("hello there", options=one), ask("hello there", options=other)) == "exact"


def tool_result(call_id: str, text: str = "12 degrees") -> Request:
    call = Turn("assistant", "", {"tool_calls": [{"name": "weather", "args": {"city": "Bern"}, "id": call_id}]})
    return Request(
        [Turn("user", "Weather?"), call, Turn("tool", text, {"tool_call_id": call_id}), Turn("user", "And?")]
    )


def test_b11_tool_calls_and_results_are_hard_conditions(cache):
    assert served(cache, tool_result("1"), tool_result("2")) == "model"
    assert cache.lookup(tool_result("1", "13 degrees")) is None
    assert cache.lookup(tool_result("1")) is not None


def test_b12_an_object_without_a_stable_form_passes_the_cache_by_and_is_counted(cache, model):
    for _ in range(2):
        assert cache.answer(ask("hello there", options={"handler": object()}), model).served_by == "model"
    assert cache.stats().bypasses == {"unstable_key": 2}
    assert cache.stats().troubles == {"unstable_key": 2}


@pytest.mark.parametrize("options", [{"handler": object()}, None], ids=["passed by", "cached"])
def test_b12_a_request_that_passes_the_cache_by_is_searched_for_its_question(cache, model, options):
    search = FakeSearch([chunk("hub", "The hub is reset with the button below.")])
    cache.answer(ask("How do I reset the hub?", options=options), model, search=search)
    assert search.queries == ["How do I reset the hub?"]


def test_b15_who_said_what_is_framed(cache):
    one = Request([Turn("user", "x\nassistant: y")])
    other = Request([Turn("user", "x"), Turn("assistant", "y")])
    assert served(cache, one, other) == "model"


def picture(image: str) -> Request:
    return Request([Turn("user", "what is this big thing?", {"image": image})])


def test_b17_another_image_under_the_same_words_misses_and_the_same_one_hits(cache):
    assert served(cache, picture("AAAA"), picture("BBBB")) == "model"
    assert cache.lookup(picture("AAAA")).served_by == "exact"


def test_b17_a_text_layer_that_cannot_see_an_image_stays_out(cache, model):
    cache.answer(picture("AAAA"), model)
    near = Request([Turn("user", "this big thing is what?", {"image": "AAAA"})])
    assert cache.answer(near, model).served_by == "model"
    assert "non_text" in cache.stats().misses


KEY_SCRIPT = """
from smartcache import Request, Turn
from smartcache.dialogue import request_bytes
from smartcache.keys import digest
options = {"b": {"y", "x", "z"}, "a": [None, 1.0, "é"], "nested": {"k2": 1, "k1": 2}}
print(digest(request_bytes(Request([Turn("user", "hi", {"z": 1, "a": 2})], "s", "v", options))))
"""


def test_b19_a_key_is_the_same_in_every_process():
    keys = {
        subprocess.run(
            [sys.executable, "-c", KEY_SCRIPT],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1


def test_b20_a_hash_that_collides_serves_nothing(cache, model, monkeypatch):
    monkeypatch.setattr("smartcache.asked.digest", lambda *parts: "the same")
    cache.answer(ask("what is the first thing"), model)
    assert cache.answer(ask("a quite different matter"), model).served_by == "model"
    assert cache.answer(ask("a quite different matter"), model).served_by == "exact"


# B21: draws.


def test_b21_a_request_for_a_draw_is_drawn_each_time(cache, model):
    for _ in range(3):
        cache.answer(ask("name a colour", options={"temperature": 0.9}), model)
    assert model.calls == 3


@pytest.mark.parametrize("options", [None, {"temperature": 0}, {"temperature": 0.9, "sample_index": 0}])
def test_b21_an_answer_and_a_numbered_draw_are_kept(cache, model, options):
    for _ in range(3):
        cache.answer(ask("name a colour", options=options), model)
    assert model.calls == 1


def test_b21_the_draws_of_one_prompt_are_told_apart(cache, model):
    texts = {
        cache.answer(ask("name a colour", options={"temperature": 0.9, "sample_index": n}), model).text
        for n in range(3)
    }
    assert len(texts) == 3


def test_b21_a_call_may_pass_the_cache_by_or_refresh_it(cache, model):
    cache.answer(ask("name a colour"), model)
    assert cache.answer(ask("name a colour", options={"cache": False}), model).served_by == "model"
    assert cache.answer(ask("name a colour"), model).text.startswith("answer 1")
    assert cache.answer(ask("name a colour", options={"cache": "refresh"}), model).served_by == "model"
    assert cache.answer(ask("name a colour"), model).text.startswith("answer 3")


# B22, B24, B25: isolation and modes.


@pytest.mark.parametrize("asked", ["what is my balance", "what's my balance?"])
def test_b22_another_tenants_answer_is_never_served(asked):
    cache = table_cache("what is my balance", "what's my balance?", 0.99)
    assert served(cache, ask("what is my balance", scope="a"), ask(asked, scope="b")) == "model"
    assert cache.lookup(ask("what is my balance", scope="a")) is not None


def test_b22_a_retrieval_is_not_shared_between_tenants(cache):
    search = FakeSearch([chunk("1", "secret of a")])
    cache.retrieve("what is my balance", search, scope="a")
    search.chunks = [chunk("2", "secret of b")]
    assert cache.retrieve("what is my balance", search, scope="b") == tuple(search.chunks)
    assert cache.retrieve("what is my balance", search, scope="a")[0].text == "secret of a"


def test_b24_a_wrong_answer_of_another_scope_cannot_be_reported(cache, model):
    cache.answer(ask("what is my balance", scope="a"), model)
    hit = cache.answer(ask("what is my balance", scope="a"), model)
    assert not cache.report_wrong(ask("what is my balance", scope="b"), hit)
    assert cache.lookup(ask("what is my balance", scope="a")) is not None


def test_b25_exact_mode_embeds_nothing_and_matches_nothing_near(model):
    embedder = TableEmbedder({("what is my balance", "what's my balance?"): 1.0})
    cache = SmartCache.open(embedder=embedder, mode="exact", strict=True)
    assert served(cache, ask("what is my balance"), ask("what's my balance?")) == "model"
    assert cache.lookup(ask("what is my balance")).served_by == "exact"
    assert embedder.texts == []
    assert cache.stats().mode == "exact"


# B26, B27, B29, B33: what is known changes.

TYPES = "List the types of buildings in the catalogue"
TYPES_IN_OTHER_WORDS = "The types of buildings in the catalogue, list"


@pytest.mark.parametrize(
    "update",
    [
        KnowledgeUpdate(changed=[chunk("1.txt", "house, apartment", source="kb")], source="kb"),
        KnowledgeUpdate(removed=["1.txt"], source="kb"),
        KnowledgeUpdate(added=[chunk("2.txt", "garage", source="kb")], source="kb"),
    ],
    ids=["edited", "deleted", "added"],
)
@pytest.mark.parametrize("asked", [TYPES, TYPES_IN_OTHER_WORDS])
def test_b26_an_answer_is_not_served_after_its_knowledge_changed(cache, model, update, asked):
    request, other = ask(TYPES), ask("Who paints the bridges of this town")
    cache.answer(request, model, search=FakeSearch([chunk("1.txt", "house, apartment, room", source="kb")]))
    cache.answer(other, model, search=FakeSearch([chunk("1.txt", "the town", source="bridges")]))
    cache.update_knowledge(update)
    assert cache.lookup(ask(asked)) is None
    assert cache.lookup(other) is not None, "its corpus was not touched"


def test_b26_an_answer_of_unknown_evidence_rests_on_everything(cache, model):
    cache.answer(ask(TYPES), model)
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("2", "garage", source="anywhere")], source="anywhere"))
    assert cache.lookup(ask(TYPES)) is None


def test_b26_an_answer_that_rests_on_nothing_stays(cache):
    cache.store(ask(TYPES), Answer("none", evidence=frozenset()))
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("2", "garage")]))
    assert cache.lookup(ask(TYPES)) is not None


def test_b26_not_in_the_documents_is_an_answer_that_an_addition_ends(cache, model):
    cache.answer(ask(TYPES), model, search=FakeSearch([]))
    assert cache.lookup(ask(TYPES)) is not None
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("2", "garage", source="kb")], source="kb"))
    assert cache.lookup(ask(TYPES)) is None


def test_b26_an_update_survives_a_restart(tmp_path, model):
    search = FakeSearch([chunk("1", "house", source="kb")])
    with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(), strict=True) as cache:
        cache.answer(ask(TYPES), model, search=search)
        cache.answer(ask("Who paints the bridges"), model, search=FakeSearch([chunk("2", "bridge", source="kb")]))
        cache.update_knowledge(KnowledgeUpdate(changed=[chunk("1", "castle", source="kb")], source="kb"))
    with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(), strict=True) as cache:
        assert cache.lookup(ask(TYPES)) is None
        assert cache.lookup(ask("Who paints the bridges")) is not None


def test_b26_another_process_on_the_same_file_sees_the_update(tmp_path, model):
    one = SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(), strict=True)
    other = SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(), strict=True)
    one.answer(ask(TYPES), model, search=FakeSearch([chunk("1", "house")]))
    assert other.lookup(ask(TYPES_IN_OTHER_WORDS)) is not None
    one.update_knowledge(KnowledgeUpdate(removed=["1"]))
    assert other.lookup(ask(TYPES)) is None
    assert other.lookup(ask(TYPES_IN_OTHER_WORDS)) is None


def test_b27_an_id_used_again_does_not_revive_old_text(cache, model):
    cache.answer(ask(TYPES), model, search=FakeSearch([chunk("40", "old", version="1")]))
    cache.update_knowledge(KnowledgeUpdate(removed=["40"]))
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("40", "new", version="1")]))
    assert cache.lookup(ask(TYPES)) is None


def test_b27_the_same_text_deleted_and_added_again_invalidates_nothing(cache, model):
    cache.answer(ask(TYPES), model, search=FakeSearch([chunk("40", "same")]))
    cache.update_knowledge(KnowledgeUpdate(changed=[chunk("40", "same")]))
    cache.update_knowledge(KnowledgeUpdate(removed=["40"]))
    assert cache.lookup(ask(TYPES)) is None, "gone"
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("40", "same")]))
    assert cache.lookup(ask(TYPES)) is not None, "back as it was"


def test_b27_what_was_answered_while_a_text_was_gone_is_stale_when_it_is_back(cache, model):
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("40", "same", source="kb")], source="kb"))
    cache.update_knowledge(KnowledgeUpdate(removed=["40"], source="kb"))
    cache.answer(ask(TYPES), model, search=FakeSearch([chunk("1", "house", source="kb")]))
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("40", "same", source="kb")], source="kb"))
    assert cache.lookup(ask(TYPES)) is None


def test_b27_so_is_what_was_answered_before_the_gone_text_was_removed_once_more(cache, model):
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("40", "same", source="kb")], source="kb"))
    cache.update_knowledge(KnowledgeUpdate(removed=["40"], source="kb"))
    cache.answer(ask(TYPES), model, search=FakeSearch([chunk("1", "house", source="kb")]))
    cache.update_knowledge(KnowledgeUpdate(removed=["40"], source="kb"))
    cache.update_knowledge(KnowledgeUpdate(added=[chunk("40", "same", source="kb")], source="kb"))
    assert cache.lookup(ask(TYPES)) is None


def test_b27_equal_content_does_not_merge_identities(cache, model):
    cache.answer(ask(TYPES), model, search=FakeSearch([chunk("a", "same")]))
    cache.update_knowledge(KnowledgeUpdate(removed=["b"]))
    assert cache.lookup(ask(TYPES)) is not None


def test_b29_an_update_that_cannot_be_written_is_raised_and_nothing_stale_is_served(tmp_path, model):
    cache = SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder())
    cache.answer(ask(TYPES), model, search=FakeSearch([chunk("1", "house")]))
    update = KnowledgeUpdate(changed=[chunk("1", "castle")])
    cache._entries._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(OSError, match="call it again"):
        cache.update_knowledge(update)
    assert cache.lookup(ask(TYPES)) is None
    cache._entries._connection.execute("PRAGMA query_only = OFF")
    cache.update_knowledge(update)
    cache.close()
    assert SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder()).lookup(ask(TYPES)) is None


def test_b33_an_answer_lives_for_its_seconds(model):
    clock = FakeClock()
    cache = SmartCache.open(embedder=BagOfWordsEmbedder(), ttl_seconds=1, clock=clock, strict=True)
    cache.answer(ask(TYPES), model)
    clock.advance(0.9)
    assert cache.lookup(ask(TYPES)) is not None
    clock.advance(0.2)
    assert cache.lookup(ask(TYPES)) is None
    assert cache.stats().entries == 0


def test_b33_an_expired_neighbour_does_not_block_a_live_one(model):
    clock = FakeClock()
    cache = SmartCache.open(embedder=BagOfWordsEmbedder(), ttl_seconds=10, clock=clock, strict=True)
    cache.answer(ask("How do I reset the hub to factory settings?"), model)
    clock.advance(9)
    live = cache.answer(
        ask("How do I reset the hub to factory settings right now?", options={"cache": "refresh"}), model
    )
    clock.advance(2)
    assert cache.answer(ask("to factory settings how do I reset the hub?"), model).text == live.text


@pytest.mark.parametrize("ttl_seconds", [0, -1])
def test_b33_a_life_of_no_seconds_is_refused(ttl_seconds):
    with pytest.raises(ValueError, match="ttl_seconds is above 0"):
        SmartCache.open(mode="exact", ttl_seconds=ttl_seconds)


# B35, B36, B43: what is stored and what comes back.


@pytest.mark.parametrize("path", [None, "cache.db"])
def test_b35_an_answer_comes_back_field_by_field(tmp_path, path):
    answer = Answer(
        "with \ud800 and é",
        evidence=frozenset({ChunkRef("1", "v", "kb")}),
        payload={"tool_calls": [{"args": {"n": 1, "f": 1.5, "none": None, "list": []}}], "": ""},
        finish_reason="stop",
        citations=(ChunkRef("1", "v", "kb"),),
        exact_only=True,
    )
    cache = SmartCache.open(path and tmp_path / path, embedder=BagOfWordsEmbedder(), strict=True)
    assert cache.store(ask(TYPES), answer)
    hit = cache.lookup(ask(TYPES))
    for name in ("text", "evidence", "payload", "finish_reason", "citations", "exact_only"):
        assert getattr(hit, name) == getattr(answer, name)


@pytest.mark.parametrize("payload", [(1, 2), {1: "a"}, float("nan"), threading.Lock(), {"a": {1}}])
def test_b35_what_would_come_back_otherwise_is_not_stored_and_is_counted(cache, payload):
    assert cache.store(ask(TYPES), Answer("text", payload=payload)) is False
    assert cache.stats().not_stored == {"not_restorable": 1}


def test_b36_a_hit_is_the_callers_own_copy(cache):
    mine = {"calls": [1]}
    cache.store(ask(TYPES), Answer("text", payload=mine))
    mine["calls"].append(2)
    cache.lookup(ask(TYPES)).payload["calls"].append(3)
    assert cache.lookup(ask(TYPES)).payload == {"calls": [1]}


@pytest.mark.parametrize("text", ["", "  \n"])
def test_b43_an_empty_answer_is_not_stored(cache, text):
    assert cache.store(ask(TYPES), Answer(text)) is False
    assert cache.stats().not_stored == {"empty": 1}


def test_an_answer_that_calls_tools_is_served_exactly_only(cache):
    cache.store(ask(TYPES), Answer("", payload={"tool_calls": ["a"]}, finish_reason="tool_calls"))
    assert cache.lookup(ask(TYPES)) is not None
    assert cache.lookup(ask(TYPES_IN_OTHER_WORDS)) is None


# B57: another embedder.


def test_b57_vectors_of_another_embedder_are_never_compared(tmp_path, model):
    with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(name="one"), strict=True) as cache:
        cache.answer(ask(TYPES), model)
    for other in (
        BagOfWordsEmbedder(name="two"),
        BagOfWordsEmbedder(dimension=64, name="three"),
        BagOfWordsEmbedder(dimension=256, name="one"),
        BagOfWordsEmbedder(dimension=300, name="one"),
    ):
        with SmartCache.open(tmp_path / "cache.db", embedder=other, strict=True) as cache:
            assert cache.lookup(ask(TYPES_IN_OTHER_WORDS)) is None
            assert cache.lookup(ask(TYPES)).served_by == "exact"
    with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(name="one"), strict=True) as cache:
        assert cache.lookup(ask(TYPES_IN_OTHER_WORDS)).served_by == "semantic"


@pytest.mark.parametrize("other", [{"name": "two"}, {"dimension": 300}], ids=str)
def test_b57_a_report_made_under_another_embedder_is_compared_by_its_key_alone(tmp_path, model, other):
    stored, asked = map(ask, WRONG_PAIR)
    with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(), strict=True) as cache:
        cache.answer(stored, model)
        cache.report_wrong(asked, cache.answer(asked, model))
    with SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(**other), strict=True) as cache:
        cache.answer(replace(stored, options={"cache": "refresh"}), model)
        assert cache.lookup(asked) is None
        assert cache.lookup(ask(WRONG_PAIR[1].replace("?", " ?"))).served_by == "semantic"


# B59, B60: many at once.


def test_b59_threads_lose_nothing_and_mix_up_nothing(model):
    cache = SmartCache.open(embedder=BagOfWordsEmbedder(), strict=True)
    troubles: list[str] = []

    def work(thread: int) -> None:
        for n in range(40):
            name = f"item{(thread * 7 + n) % 25}x"
            try:
                got = cache.answer(
                    ask(f"How do I repair {name} in the workshop?"), lambda r, c, name=name: f"by {name}"
                )
                if got.text != f"by {name}":
                    troubles.append(f"{name} got {got.text}")
                if n % 20 == 19:
                    cache.update_knowledge(KnowledgeUpdate(added=[chunk(f"{thread}-{n}", "new")]))
            except Exception as error:
                troubles.append(repr(error))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    assert cache.stats().requests == 16 * 40
    assert cache.stats().troubles == {}


async def test_b59_tasks_lose_nothing_and_mix_up_nothing(cache):
    async def by_name(request, chunks):
        await asyncio.sleep(0)
        return f"by {request.query}"

    async def work(n: int) -> tuple[str, str]:
        question = f"How do I repair item{n % 25}x in the workshop?"
        if n % 20 == 19:
            await asyncio.to_thread(cache.update_knowledge, KnowledgeUpdate(added=[chunk(f"{n}", "new")]))
        return question, (await cache.aanswer(ask(question), by_name)).text

    got = await asyncio.gather(*(work(n) for n in range(200)))
    assert [text for _, text in got] == [f"by {question}" for question, _ in got]
    assert (cache.stats().requests, cache.stats().troubles) == (200, {})


def flock(cache: SmartCache, generate, count: int = 16) -> list[object]:
    """What `count` threads get that ask the same at once: an answer's text, or the error."""
    got: list[object] = []

    def work() -> None:
        try:
            got.append(cache.answer(ask(TYPES), generate).text)
        except Exception as error:
            got.append(error)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return got


def test_b60_equal_requests_at_once_are_one_call(cache):
    model = FakeModel(lambda request, chunks: time.sleep(0.05) or "slow")
    assert flock(cache, model) == ["slow"] * 16
    assert model.calls == 1


def test_b60_others_go_on_when_the_first_fails(cache):
    def reply(request, chunks):
        time.sleep(0.02)
        if model.calls == 1:
            raise TimeoutError
        return "second"

    model = FakeModel(reply)
    got = flock(cache, model)
    assert sum(isinstance(one, TimeoutError) for one in got) == 1
    assert got.count("second") == 15


async def test_b60_others_go_on_when_the_first_is_cancelled(cache):
    started = asyncio.Event()

    async def never(request, chunks):
        started.set()
        await asyncio.sleep(60)

    async def quick(request, chunks):
        return "quick"

    first = asyncio.create_task(cache.aanswer(ask(TYPES), never))
    await started.wait()
    second = asyncio.create_task(cache.aanswer(ask(TYPES), quick))
    await asyncio.sleep(0.05)
    first.cancel()
    assert (await asyncio.wait_for(second, 10)).text == "quick"


def test_b60_scopes_never_share_a_flight(cache):
    inside = threading.Barrier(2, timeout=10)

    def generate(request, chunks):
        inside.wait()
        return request.scope

    got = []
    threads = [
        threading.Thread(target=lambda s=s: got.append(cache.answer(ask(TYPES, scope=s), generate).text)) for s in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(got) == ["a", "b"]


def test_b60_a_model_that_asks_the_same_again_does_not_wait_for_itself(cache):
    def generate(request, chunks):
        return cache.answer(request, lambda request, chunks: "inner").text

    assert cache.answer(ask(TYPES), generate).text == "inner"


# B65, B68: trouble is ours, and every outcome is counted.


class BrokenEmbedder(BagOfWordsEmbedder):
    def __call__(self, texts):
        raise RuntimeError("embedder is down")


def test_b65_a_broken_embedder_costs_a_hit_and_not_the_answer(model):
    cache = SmartCache.open(embedder=BrokenEmbedder())
    assert cache.answer(ask(TYPES), model).served_by == "model"
    assert cache.stats().troubles == {"embed": 1, "lookup": 1}
    assert cache.answer(ask(TYPES), model).served_by == "exact", "what needs no vector was stored all the same"


def test_b65_trouble_is_raised_where_a_test_asks_for_it(model):
    cache = SmartCache.open(embedder=BrokenEmbedder(), strict=True)
    with pytest.raises(RuntimeError, match="embedder is down"):
        cache.answer(ask(TYPES), model)


def test_b65_a_store_that_fails_costs_an_entry_and_not_the_answer(tmp_path, model):
    cache = SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder())
    cache._entries._connection.execute("PRAGMA query_only = ON")
    assert cache.answer(ask(TYPES), model).served_by == "model"
    assert cache.stats().troubles == {"store": 1}


def test_b65_a_full_disk_is_told_as_such_and_the_cache_goes_on_when_there_is_room(tmp_path, model):
    troubles = []

    def hook(event):
        if event.error:
            troubles.append(str(event.error))

    cache = SmartCache.open(tmp_path / "cache.db", embedder=BagOfWordsEmbedder(), on_event=hook)
    (pages,) = cache._entries._connection.execute("PRAGMA page_count").fetchone()
    cache._entries._connection.execute(f"PRAGMA max_page_count = {pages}")
    assert cache.answer(ask(TYPES), FakeModel(lambda request, chunks: "long " * 9999)).served_by == "model"
    assert [trouble.endswith("cannot be used now: database or disk is full") for trouble in troubles] == [True]
    cache._entries._connection.execute(f"PRAGMA max_page_count = {1000 * pages}")
    cache.answer(ask(TYPES), model)
    assert cache.answer(ask(TYPES), model).served_by == "exact"


def test_b65_a_policy_that_fails_means_a_miss(model):
    class Fails:
        def accepts(self, candidate):
            raise RuntimeError("verifier is down")

    cache = SmartCache.open(embedder=BagOfWordsEmbedder(), policy=Fails())
    cache.answer(ask(TYPES), model)
    assert cache.answer(ask(TYPES_IN_OTHER_WORDS), model).served_by == "model"


def test_b65_a_closed_cache_sends_requests_to_the_model(model):
    cache = SmartCache.open(embedder=BagOfWordsEmbedder())
    cache.close()
    assert cache.answer(ask(TYPES), model).served_by == "model"


def test_b65_a_closed_cache_still_tells_what_happened(model):
    with SmartCache.open(embedder=BagOfWordsEmbedder()) as cache:
        cache.answer(ask(TYPES), model)
        before = cache.stats()
    assert cache.stats() == before
    assert before.entries == 1


NEWS = KnowledgeUpdate(added=[chunk("shed", "A shed.")])


def test_b65_a_closed_cache_in_memory_takes_news_that_no_longer_matters():
    cache = SmartCache.open(embedder=BagOfWordsEmbedder())
    cache.close()
    assert cache.update_knowledge(NEWS) == 0


def test_b65_a_closed_cache_in_memory_has_nothing_left_to_forget(model):
    with SmartCache.open(embedder=BagOfWordsEmbedder()) as cache:
        cache.answer(ask(TYPES), model)
    assert cache.forget(scope="") == 0


def test_b65_a_closed_file_cannot_forget_and_says_so(tmp_path, model):
    with SmartCache.open(tmp_path, embedder=BagOfWordsEmbedder()) as cache:
        cache.answer(ask(TYPES), model)
    with pytest.raises(Exception, match="closed"):
        cache.forget(scope="")


def test_b65_a_closed_file_says_that_the_news_was_not_written(tmp_path):
    cache = SmartCache.open(tmp_path, embedder=BagOfWordsEmbedder())
    cache.close()
    with pytest.raises(OSError, match="not written"):
        cache.update_knowledge(NEWS)


def test_b65_an_event_hook_that_fails_stops_nothing(model):
    def hook(event):
        raise RuntimeError("hook is down")

    cache = SmartCache.open(embedder=BagOfWordsEmbedder(), on_event=hook)
    cache.answer(ask(TYPES), model)
    assert cache.answer(ask(TYPES), model).served_by == "exact"


def test_b68_every_request_is_counted_once_by_outcome_and_reason(cache, model):
    events = []
    cache = SmartCache.open(
        embedder=BagOfWordsEmbedder(max_tokens=8), on_event=lambda e: events.append((e.kind, e.reason))
    )
    cache.answer(ask("short and new question"), model)
    cache.answer(ask("short and new question"), model)
    cache.answer(ask("a question of far more words than this small embedder reads in full"), model)
    list(cache.stream(ask("short and new question"), model.stream))
    outcomes = [event for event in events if event[0] in ("hit", "miss", "bypass")]
    assert outcomes == [("miss", "new"), ("hit", "exact"), ("miss", "too_long"), ("hit", "exact")]
    assert cache.stats().requests == 4
