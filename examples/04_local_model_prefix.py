"""A local model that never reads the same beginning twice: the second question over one text starts at its end."""

from smartcache import PrefixCache
from smartcache.models import LocalModel

HANDBOOK = "You answer from this handbook. " + " ".join(
    f"Shelf {number} holds the parts of series {number * 7}." for number in range(1, 60)
)


def prompt(question: str) -> str:
    return f"{HANDBOOK}\n\nQuestion: {question}\nAnswer:"


# Needs pip install 'smartcache-llm[local]' and a causal model (models.txt); any Hugging Face id or folder will do.
model = LocalModel.load(
    "smollm2-135m-instruct", device="cpu", dtype="float32", prefix_cache=PrefixCache(max_bytes=2**30)
)

for question in ("Where is series 70?", "What does shelf 12 hold?"):
    answer = model.generate(prompt(question), max_new_tokens=12)
    print(
        f"{question:26} {answer.cached_tokens:4} of {answer.prompt_tokens} prompt tokens reused, "
        f"first token after {answer.first_token_seconds * 1000:4.0f} ms: {answer.text.strip()!r}"
    )

assert answer.cached_tokens > 0.9 * answer.prompt_tokens, "the handbook is read once"

cold = LocalModel.load("smollm2-135m-instruct", device="cpu", dtype="float32", prefix_cache=PrefixCache(max_bytes=0))
assert cold.generate(prompt(question), max_new_tokens=12).token_ids == answer.token_ids, "reuse changes no token"
