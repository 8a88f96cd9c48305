"""Put a cache in front of any function that answers: asked again, the function does not run."""

from collections.abc import Sequence

from smartcache import Chunk, Request, SmartCache, Turn

runs = 0


def model(request: Request, chunks: Sequence[Chunk]) -> str:
    """Your model: any function from a request to a text. It may be slow and cost money."""
    global runs
    runs += 1
    return f"(answer {runs}) You asked: {request.query}"


def ask(cache: SmartCache, text: str, *, scope: str = "acme") -> str:
    answer = cache.answer(Request([Turn("user", text)], scope=scope, variant="my-model-1"), model)
    print(f"{scope:5} {answer.served_by:6} {answer.text}")
    return answer.served_by


# mode="exact" needs no model at all; SmartCache.open("answers.db") keeps the answers on disk.
with SmartCache.open(mode="exact") as cache:
    assert ask(cache, "How do I reset my password?") == "model"
    assert ask(cache, "How do I reset my password?") == "exact"
    assert ask(cache, "How do I delete my account?") == "model"
    assert ask(cache, "How do I reset my password?", scope="birk") == "model", "another tenant shares nothing"

    print(f"{cache.stats().hits} of {cache.stats().requests} requests came from the cache")
    assert runs == 3
