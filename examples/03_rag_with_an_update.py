"""Answers made from documents: when a document changes, what rests on it is asked again, and the rest stays."""

from collections.abc import Sequence

from smartcache import Chunk, ChunkRef, KnowledgeUpdate, Request, SmartCache, Turn

documents = {
    "returns": "Returns are free within 30 days.",
    "shipping": "Shipping takes three days.",
}


def chunk(name: str) -> Chunk:
    """A version is anything that changes when the text does; here it is the text itself."""
    return Chunk(ChunkRef(id=name, version=documents[name], source="handbook"), documents[name])


def search(query: str) -> Sequence[Chunk]:
    """Your retriever. This one finds the documents whose name is in the question."""
    return [chunk(name) for name in documents if name in query.lower()]


def model(request: Request, chunks: Sequence[Chunk]) -> str:
    return "According to the handbook: " + " ".join(found.text for found in chunks)


def ask(cache: SmartCache, text: str) -> str:
    answer = cache.answer(Request([Turn("user", text)]), model, search=search)
    print(f"{answer.served_by:6} {text:30} {answer.text}")
    return answer.served_by


with SmartCache.open(mode="exact") as cache:
    for expected in ("model", "exact"):
        assert ask(cache, "What about returns?") == expected
        assert ask(cache, "How long is shipping?") == expected

    documents["returns"] = "Returns are free within 14 days."
    stale = cache.update_knowledge(KnowledgeUpdate(changed=[chunk("returns")], source="handbook"))
    print(f"       the handbook changed: {stale} answer is stale")

    assert ask(cache, "What about returns?") == "model"
    assert ask(cache, "How long is shipping?") == "exact"
