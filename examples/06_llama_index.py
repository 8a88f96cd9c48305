"""LlamaIndex: wrap any query engine; an answer goes stale when a document that it rests on changes."""

from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM

from llama_index_smartcache import SmartCacheQueryEngine, watch_index
from smartcache import SmartCache

# Stands for your index and your model: MockLLM repeats its prompt, and so the passages that it was given.
index = VectorStoreIndex.from_documents(
    [Document(text="Returns are free within 30 days.", doc_id="returns")], embed_model=MockEmbedding(embed_dim=8)
)

with SmartCache.open(mode="exact") as cache:
    watch_index(index, cache)

    def ask() -> tuple[str, str]:
        # made anew: LlamaIndex's own engine knows only the nodes that the index had when the engine was made
        engine = SmartCacheQueryEngine(index.as_query_engine(llm=MockLLM()), cache=cache)
        response = engine.query("How long may I return a purchase?")
        served_by = response.metadata["smartcache"]["served_by"]
        print(f"{served_by:6} from {[node.text for node in response.source_nodes]}")
        return served_by, str(response)

    assert ask()[0] == "model"
    assert ask()[0] == "exact"

    index.update_ref_doc(Document(text="Returns are free within 14 days.", doc_id="returns"))
    served_by, text = ask()
    assert served_by == "model", "the document changed"
    assert "14 days" in text
