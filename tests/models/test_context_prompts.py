"""Prompts made of parts, to a model: tokens that are the same alone and in the whole, and what it holds of them now."""

from __future__ import annotations

from itertools import permutations

import pytest

from smartcache import ContextOrder, Request, SmartCache, Turn
from smartcache.layers.prompts import TokenCounts, build_prompt
from smartcache.testing import FakeSearch, chunk

pytest.importorskip("transformers", reason="local models need the extra [local]")

from smartcache.errors import MissingModel
from smartcache.models import bundled_model_path

TEXTS = [
    "  A passage that ends in a stop.\n\n",
    "## A heading\n\n1. one\n2. two\n\n\n   indented, and a trailing space ",
    "'s how a text may begin, and end in a colon:",
    "12,345 and 67",
    "中文的一段文字。",
    "…“quoted” 🙂",
    "\tdef f():\n\t\treturn 1\n",
]
CHUNKS = [chunk(str(number), text) for number, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def tokens_of():
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(bundled_model_path())
    except MissingModel:
        pytest.skip("the bundled model is not installed")
    return lambda text: tokenizer(text)["input_ids"]


@pytest.mark.parametrize("pair", list(permutations(CHUNKS, 2)), ids=lambda pair: "-".join(one.ref.id for one in pair))
def test_a_part_has_the_same_tokens_alone_and_in_the_whole_prompt(tokens_of, pair):
    prompt = build_prompt("Why is it so?", pair, system="Be short.", examples=["Q: a\nA: b"], volatile={"time": "noon"})
    alone = [token for part in (*prompt.parts, prompt.ending) for token in tokens_of(part)]
    assert tokens_of(prompt.text) == alone


def test_parts_that_are_joined_otherwise_have_other_tokens(tokens_of):
    parts = ["A passage.\n\n", "Another one."]
    assert tokens_of("".join(parts)) != [token for part in parts for token in tokens_of(part)]


def test_the_counts_of_chunks_add_up_to_the_prompt(tokens_of):
    def count(text):
        return len(tokens_of(text))

    counts = TokenCounts(count)
    assert sum(map(counts.of, CHUNKS)) + count("Why?") == count(build_prompt("Why?", CHUNKS).text)


def test_a_model_says_what_it_holds_of_a_prompt(local_model):
    model = local_model()
    model.generate("the quick brown", max_new_tokens=1, scope="a")
    assert model.held_tokens("the quick red", scope="a") == len("the quick ")
    assert model.held_tokens("the quick red", scope="b") == model.held_tokens("other", scope="a") == 0
    model.warm(["the quick red"])
    assert model.held_tokens("the quick red", scope="b") == len("the quick red")


def test_a_model_without_a_prefix_cache_holds_nothing(local_model):
    model = local_model(warm=False)
    model.generate("the quick brown", max_new_tokens=1)
    assert model.held_tokens("the quick brown") == 0


def test_a_cache_plans_by_what_the_model_holds_in_the_requests_scope(local_model):
    model, prompts = local_model(), []
    texts = {name: chunk(name, f"{name * 6}.") for name in "abc"}
    held = ContextOrder(held=lambda chunks: model.held_tokens(" ".join(one.text for one in chunks)))

    def generate(request, chunks):
        prompts.append("".join(one.ref.id for one in chunks))
        model.generate(" ".join(one.text for one in chunks), max_new_tokens=1)
        return "ok"

    def ask(question, names):
        request = Request([Turn("user", question)], "acme")
        cache.answer(request, generate, search=FakeSearch([texts[name] for name in names]))
        return prompts[-1]

    with SmartCache.open(mode="exact", strict=True, context=held) as cache:
        ask("one", "a")
        ask("two", "b")
        first = ask("three", "ab")[0]
        model.forget(scope="acme")
        other = "b" if first == "a" else "a"
        model.generate(texts[other].text + " ", max_new_tokens=1, scope="acme")
        assert ask("four", "abc")[0] == other
