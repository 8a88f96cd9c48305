"""A known prefix is never computed twice, and nothing but the time taken shows it (faults B45, B47, B48, B50, B52)."""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.layers.prefixes import NoPrefixCache, PrefixCache  # noqa: E402 - after the skip
from smartcache.models import LocalModel  # noqa: E402 - after the skip
from smartcache.types import Turn  # noqa: E402 - after the skip

if TYPE_CHECKING:
    from tests.models.conftest import MakeModel, MakeNetwork

STORED = "the quick brown"
texts = st.text("abc ?", max_size=20)


def tokens(model: Any, prompt: str, **options: Any) -> tuple[int, ...]:
    return tuple(model.generate(prompt, **{"max_new_tokens": 4} | options).token_ids)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("overlap", range(len(STORED) + 1))
def test_any_overlap_gives_the_tokens_of_a_cold_run(local_model: MakeModel, kind: str, overlap: int) -> None:
    prompt = STORED[:overlap] + "!fox!"
    warm = local_model(kind)
    warm.generate(STORED, max_new_tokens=1)
    generation = warm.generate(prompt, max_new_tokens=6)
    assert generation.cached_tokens == overlap
    assert generation.token_ids == tokens(local_model(kind, warm=False), prompt, max_new_tokens=6)


@pytest.mark.parametrize("length", range(1, len(STORED) + 1))
def test_a_prompt_that_is_known_in_full_still_computes_its_last_token(local_model: MakeModel, length: int) -> None:
    warm = local_model()
    warm.generate(STORED, max_new_tokens=1)
    generation = warm.generate(STORED[:length], max_new_tokens=4)
    assert generation.cached_tokens == length - 1
    assert generation.token_ids == tokens(local_model(warm=False), STORED[:length])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4), st.integers(2, 40))
def test_any_sequence_of_prompts_gives_the_tokens_of_cold_runs(
    local_model: MakeModel, prompts: list[tuple[str, str]], kept_tokens: int
) -> None:
    cold = local_model(warm=False)
    warm = local_model(prefix_cache=PrefixCache(512 * kept_tokens))
    for shared, own in prompts:
        for prompt in ("a" + shared, "a" + shared + own, "a" + own):
            assert tokens(warm, prompt) == tokens(cold, prompt)


def test_generations_after_a_shared_prefix_do_not_disturb_each_other(local_model: MakeModel) -> None:
    warm, cold = local_model(), local_model(warm=False)
    prompts = [STORED + " fox", STORED + " dog and so on", STORED + " fox"]
    assert [tokens(warm, prompt) for prompt in prompts] == [tokens(cold, prompt) for prompt in prompts]


def test_stored_state_is_not_changed_by_later_generations(local_model: MakeModel) -> None:
    prefixes: PrefixCache[Any] = PrefixCache(10**8)
    warm = local_model(prefix_cache=prefixes)
    warm.generate(STORED, max_new_tokens=1)
    with prefixes.match(warm.fingerprint, warm.tokens_of(STORED + "!")) as match:
        before = copy.deepcopy(match.segments)
        warm.generate(STORED + " fox", max_new_tokens=8)
        pairs = zip(match.segments[0].layers, before[0].layers, strict=True)
        assert all(torch.equal(now, then) for new, old in pairs for now, then in zip(new, old, strict=True))


def test_stored_state_holds_no_memory_but_its_own(local_model: MakeModel) -> None:
    prefixes: PrefixCache[Any] = PrefixCache(10**8)
    warm = local_model(prefix_cache=prefixes)
    for prompt in (STORED, STORED[:5] + "!", STORED):
        warm.generate(prompt, max_new_tokens=40)
    with prefixes.match(warm.fingerprint, warm.tokens_of(STORED)) as match:
        held = [tensor for segment in match.segments for layer in segment.layers for tensor in layer]
    assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in held)


def test_a_conversation_reuses_what_the_model_itself_wrote(local_model: MakeModel) -> None:
    warm = local_model()
    first = warm.generate(STORED, max_new_tokens=8)
    second = warm.generate(STORED + first.text + "!", max_new_tokens=1)
    assert second.cached_tokens == len(STORED) + 7  # the last token written was never read


def test_a_seam_inside_a_token_is_recomputed(letter_tokenizer: Any, network: MakeNetwork) -> None:
    tokenizer = letter_tokenizer(("a", "b"))
    warm = LocalModel(network(), tokenizer, prefix_cache=PrefixCache(10**8))
    cold = LocalModel(network(), tokenizer, prefix_cache=NoPrefixCache())
    warm.generate("xyza", max_new_tokens=1)
    generation = warm.generate("xyzab!", max_new_tokens=4)
    assert generation.cached_tokens == 3
    assert generation.token_ids == tokens(cold, "xyzab!")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("recurrent", "cache layers of kind LinearAttentionLayer"),
        ("forgetful", "cache layers of kind LinearAttentionLayer"),
        ("stretched", "rotary positions of kind dynamic"),
        ("stretched sliding", "rotary positions of kind dynamic"),
        ("own cache", "a cache class of its own"),
        ("own class", "a cache class of its own"),
    ],
)
def test_a_cache_that_cannot_be_cut_nor_copied_is_bypassed_and_counted(
    local_model: MakeModel, network: MakeNetwork, kind: str, reason: str
) -> None:
    model = local_model(kind)
    ids = torch.tensor([model.tokens_of(STORED)])
    expected = network(kind).generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)[0, ids.shape[1] :]
    for _ in range(2):
        generation = model.generate(STORED, max_new_tokens=6)
        assert (generation.token_ids, generation.cached_tokens) == (tuple(expected.tolist()), 0)
    assert model.usage.bypasses == {reason: 2}


def test_full_attention_bypasses_nothing(local_model: MakeModel) -> None:
    model = local_model()
    tokens(model, STORED)
    assert model.usage.bypasses == {}


def test_models_with_other_weights_share_a_cache_without_meeting(local_model: MakeModel) -> None:
    prefixes: PrefixCache[Any] = PrefixCache(10**8)
    one, other = (local_model(seed=seed, prefix_cache=prefixes) for seed in (1, 2))
    one.generate(STORED)
    assert other.generate(STORED + "!", max_new_tokens=1).cached_tokens == 0


def test_models_with_equal_weights_share_what_they_know(local_model: MakeModel) -> None:
    prefixes: PrefixCache[Any] = PrefixCache(10**8)
    one, twin = (local_model(seed=1, prefix_cache=prefixes) for _ in range(2))
    one.generate(STORED)
    assert twin.generate(STORED + "!", max_new_tokens=1).cached_tokens == len(STORED)


def test_b22_tenants_with_a_cache_each_tell_each_other_nothing(local_model: MakeModel) -> None:
    ours, theirs = (local_model(seed=1, prefix_cache=PrefixCache(10**8)) for _ in range(2))
    ours.generate(STORED)
    assert theirs.generate(STORED + "!", max_new_tokens=1).cached_tokens == 0
    assert ours.generate(STORED + "!", max_new_tokens=1).cached_tokens == len(STORED)


def test_a_budget_too_small_for_a_prompt_changes_nothing_but_the_reuse(local_model: MakeModel) -> None:
    tight = local_model(prefix_cache=PrefixCache(100))
    tight.generate(STORED)
    assert tight.generate(STORED, max_new_tokens=4).cached_tokens == 0
    assert tokens(tight, STORED) == tokens(local_model(warm=False), STORED)


class BrokenPrefixCache(NoPrefixCache):
    """A cache whose every call fails."""

    def match(self, fingerprint: str, tokens: Any) -> Any:
        raise MemoryError

    def store(self, fingerprint: str, tokens: Any, state: Any, **about: Any) -> int:
        raise MemoryError


def test_trouble_in_the_cache_is_counted_and_never_the_callers(local_model: MakeModel) -> None:
    broken = local_model(prefix_cache=BrokenPrefixCache())
    assert tokens(broken, STORED) == tokens(local_model(warm=False), STORED)
    assert set(broken.usage.bypasses) == {"known prefix could not be placed", "state could not be kept"}


def test_warming_computes_a_prefix_ahead_of_its_first_use(local_model: MakeModel) -> None:
    model = local_model()
    model.warm([STORED])
    assert model.generate(STORED + "!", max_new_tokens=1).cached_tokens == len(STORED)


def test_warming_a_system_prompt_computes_all_before_the_users_words(
    letter_tokenizer: Any, network: MakeNetwork
) -> None:
    template = "{% for turn in messages %}{{ turn.role }}.{{ turn.content }}!{% endfor %}assistant."
    model = LocalModel(network(), letter_tokenizer(chat_template=template), prefix_cache=PrefixCache(10**8))
    model.warm([[Turn("system", "be kind")]])
    warmed = len(model.prefix_cache)
    generation = model.generate([Turn("system", "be kind"), Turn("user", "who is it?")], max_new_tokens=1)
    assert generation.cached_tokens == warmed == len("system.be kind!user.")


def test_a_batch_computes_what_its_prompts_share_once(local_model: MakeModel) -> None:
    cold = local_model(warm=False)
    prompts = [STORED + ending for ending in ("!", "?", " fox")]
    generations = local_model().generate_batch(prompts, max_new_tokens=4)
    assert [generation.cached_tokens for generation in generations] == [0, len(STORED), len(STORED)]
    assert [generation.token_ids for generation in generations] == [tokens(cold, prompt) for prompt in prompts]


def test_threads_get_the_answers_of_cold_runs(local_model: MakeModel) -> None:
    warm, cold = local_model(), local_model(warm=False)
    prompts = [STORED[: 3 + number] + "!" for number in range(8)]
    answers: dict[str, tuple[int, ...]] = {}

    def ask(prompt: str) -> None:
        answers[prompt] = tokens(warm, prompt)

    threads = [threading.Thread(target=ask, args=(prompt,)) for prompt in prompts * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {prompt: tokens(cold, prompt) for prompt in prompts}
