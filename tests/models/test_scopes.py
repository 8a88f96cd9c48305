"""KV state and scopes: what one tenant's prompts computed, no other tenant's prompt is quicker for."""

from __future__ import annotations

import pytest

from smartcache import Request, SmartCache, Turn

pytest.importorskip("torch", reason="local models need the extra [local]")

PROMPT = "the quick brown fox jumps"


def reused(model, scope: str | None, prompt: str = PROMPT) -> int:
    return model.generate(prompt, max_new_tokens=1, scope=scope).cached_tokens


def test_another_scope_reuses_nothing_and_the_same_scope_does(local_model):
    model = local_model()
    reused(model, "a")
    assert reused(model, "b") == 0
    assert reused(model, "a") == len(PROMPT) - 1


def test_what_nobody_claims_is_everyones(local_model):
    model = local_model()
    model.warm([PROMPT])
    assert reused(model, "a") == len(PROMPT) - 1


def test_what_a_scope_computed_is_not_everyones(local_model):
    model = local_model()
    reused(model, "a")
    assert reused(model, "") == 0


def test_a_scopes_own_longer_prefix_goes_before_everyones(local_model):
    model = local_model()
    model.warm([PROMPT[:5]])
    reused(model, "a")
    assert reused(model, "a", PROMPT + " over") == len(PROMPT)


@pytest.mark.parametrize("way", ["answer", "stream", "aanswer", "astream"])
async def test_a_model_inside_a_cached_request_works_in_its_scope(local_model, way):
    model = local_model()
    cache = SmartCache.open(mode="exact", strict=True)
    seen: list[int] = []

    def generate(request, chunks) -> str:
        seen.append(model.generate(PROMPT, max_new_tokens=1).cached_tokens)
        return "answered"

    async def agenerate(request, chunks) -> str:
        return generate(request, chunks)

    def pieces(request, chunks):
        yield generate(request, chunks)

    async def apieces(request, chunks):
        yield generate(request, chunks)

    for question, scope in (("one", "a"), ("two", "b"), ("three", "a")):
        request = Request([Turn("user", question)], scope)
        match way:
            case "answer":
                cache.answer(request, generate)
            case "stream":
                list(cache.stream(request, pieces))
            case "aanswer":
                await cache.aanswer(request, agenerate)
            case "astream":
                assert [piece async for piece in cache.astream(request, apieces)] == ["answered"]
    assert seen == [0, 0, len(PROMPT) - 1]
    assert model.generate(PROMPT, max_new_tokens=1).cached_tokens == 0, "outside of a request, no scope is left over"


def test_the_reader_of_a_stream_is_not_in_its_scope(local_model):
    model = local_model()
    cache = SmartCache.open(mode="exact", strict=True)
    stream = cache.stream(Request([Turn("user", "one")], "a"), lambda request, chunks: iter(["x", "y"]))
    next(stream)
    model.generate(PROMPT, max_new_tokens=1)
    assert reused(model, "b") == len(PROMPT) - 1, "what the reader computed is everyone's"
