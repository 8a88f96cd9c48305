"""A batch is its generations one by one, token for token; only the work is shared."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.layers.prefixes import NoPrefixCache, PrefixCache, PrefixMatch  # noqa: E402 - after the skip
from smartcache.models import Generation, LocalModel  # noqa: E402 - after the skip
from smartcache.models.kv import KVSegment  # noqa: E402 - after the skip
from smartcache.types import Turn  # noqa: E402 - after the skip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.models.conftest import MakeModel, MakeNetwork

SHARED = "the quick brown"
PROMPTS = [SHARED + " fox", "a", SHARED + "!", SHARED + " dog and so on", SHARED + "!"]


class CountedNetwork:
    """Counts what goes through a network: `shapes` are (rows, tokens) of its forward passes."""

    def __init__(self, network: Any) -> None:
        self.shapes: list[tuple[int, int]] = []
        network.register_forward_pre_hook(self._count, with_kwargs=True)

    def _count(self, module: Any, args: Any, options: dict[str, Any]) -> None:
        self.shapes.append(tuple(options["input_ids"].shape))

    @property
    def tokens(self) -> int:
        return sum(rows * tokens for rows, tokens in self.shapes)


@pytest.fixture
def counted(network: MakeNetwork, letter_tokenizer: Any) -> tuple[LocalModel, CountedNetwork]:
    """A model that keeps nothing from one call to the next, and the count of what it computes."""
    counting = network()
    return LocalModel(counting, letter_tokenizer(), prefix_cache=NoPrefixCache()), CountedNetwork(counting)


def written(generation: Generation) -> tuple[Any, ...]:
    return generation.text, generation.token_ids, generation.prompt_tokens, generation.finish_reason


def alone(model: LocalModel, prompts: list[str], **options: Any) -> list[tuple[Any, ...]]:
    return [written(model.generate(prompt, **options)) for prompt in prompts]


def together(model: LocalModel, prompts: list[str], **options: Any) -> list[tuple[Any, ...]]:
    return [written(generation) for generation in model.generate_batch(prompts, **options)]


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_every_row_is_its_own_cold_run(local_model: MakeModel, kind: str, warm: bool) -> None:
    expected = alone(local_model(kind, warm=False), PROMPTS, max_new_tokens=9)
    assert together(local_model(kind, warm=warm), PROMPTS, max_new_tokens=9) == expected


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.text("ab", max_size=30), st.text("abc ?", max_size=8)), min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(1, 12),
    st.integers(0, 60),
    st.sampled_from([{}, {"temperature": 1.5, "seed": 3}, {"stop": ["e", "no"]}]),
)
def test_any_batch_gives_the_tokens_of_cold_runs(
    local_model: MakeModel,
    parts: list[tuple[str, str]],
    max_rows: int,
    count: int,
    kept_tokens: int,
    options: dict[str, Any],
) -> None:
    prompts = ["a" + shared + own for shared, own in parts] + ["a" + parts[0][0], "a" + parts[-1][0] + parts[0][1]]
    options = {"max_new_tokens": count} | options
    model = local_model(prefix_cache=PrefixCache(512 * kept_tokens))
    expected = alone(local_model(warm=False), prompts, **options)
    assert [together(model, prompts, max_rows=max_rows, **options) for _ in range(2)] == [expected, expected]


@pytest.mark.parametrize("overlap", range(len(SHARED) + 1))
def test_any_overlap_is_computed_once(counted: tuple[LocalModel, CountedNetwork], overlap: int) -> None:
    model, computed = counted
    prompts = [SHARED, SHARED[:overlap] + "!fox"]
    generations = model.generate_batch(prompts, max_new_tokens=1)
    assert [generation.cached_tokens for generation in generations] == [0, overlap]
    assert computed.tokens == len(SHARED) + len("!fox")


def test_what_only_some_rows_share_is_computed_once(counted: tuple[LocalModel, CountedNetwork]) -> None:
    model, computed = counted
    prompts = ["aabb!", "ccdd!", "aabb?", "aacc", "ccdd? and"]
    generations = model.generate_batch(prompts, max_new_tokens=1)
    assert [generation.cached_tokens for generation in generations] == [0, 0, 4, 2, 4]
    assert computed.tokens == sum(map(len, prompts)) - 10


def test_a_prompt_that_comes_again_is_not_computed_again(counted: tuple[LocalModel, CountedNetwork]) -> None:
    model, computed = counted
    generations = model.generate_batch([SHARED] * 3, max_new_tokens=1)
    assert computed.shapes == [(1, len(SHARED))]
    assert [generation.cached_tokens for generation in generations] == [0, len(SHARED) - 1, len(SHARED) - 1]


def test_draws_without_a_seed_differ_between_rows_of_one_prompt(local_model: MakeModel) -> None:
    drawn = local_model().generate_batch([SHARED] * 4, max_new_tokens=12, temperature=3.0)
    assert len({generation.token_ids for generation in drawn}) > 1


def test_one_forward_writes_a_token_of_every_row(counted: tuple[LocalModel, CountedNetwork]) -> None:
    model, computed = counted
    model.generate_batch(["ab", "cd!", "efg"], max_new_tokens=5)
    assert computed.shapes == [(1, 2), (1, 3), (1, 3)] + [(3, 1)] * 4


def test_the_gap_before_a_shorter_row_is_never_read(local_model: MakeModel) -> None:
    torch.use_deterministic_algorithms(True)  # memory that nobody wrote to is then filled with NaN
    try:
        written_so = together(local_model(), PROMPTS, max_new_tokens=6)
    finally:
        torch.use_deterministic_algorithms(False)
    assert written_so == alone(local_model(warm=False), PROMPTS, max_new_tokens=6)


def test_rows_that_end_leave_the_batch(counted: tuple[LocalModel, CountedNetwork]) -> None:
    model, computed = counted
    expected = alone(model, PROMPTS, max_new_tokens=12)
    stop = expected[0][0][4]
    ended = alone(model, PROMPTS, max_new_tokens=12, stop=[stop])
    computed.shapes.clear()
    assert together(model, PROMPTS, max_new_tokens=12, stop=[stop]) == ended
    rows = [rows for rows, tokens in computed.shapes if tokens == 1][-11:]
    assert {reason for *_, reason in ended} == {"stop", "length"}
    assert sum(rows) == sum(len(ids) - 1 for _, ids, *_ in ended)


def test_an_end_token_ends_its_row_alone(network: MakeNetwork, letter_tokenizer: Any, local_model: MakeModel) -> None:
    first, *others = (set(ids) for _, ids, *_ in alone(local_model(), PROMPTS, max_new_tokens=12))
    ending = network()
    ending.generation_config.eos_token_id = list(first - others[0])
    model = LocalModel(ending, letter_tokenizer(), prefix_cache=NoPrefixCache())
    expected = alone(model, PROMPTS, max_new_tokens=12)
    assert {reason for *_, reason in expected} == {"stop", "length"}
    assert together(model, PROMPTS, max_new_tokens=12) == expected


def test_the_context_ends_each_row_where_it_ends_alone(local_model: MakeModel) -> None:
    prompts = ["a" * 60, "b", "a" * 64]
    expected = alone(local_model(warm=False), prompts, max_new_tokens=30)
    assert [len(ids) for _, ids, *_ in expected] == [5, 30, 1]
    assert together(local_model(), prompts, max_new_tokens=30) == expected


def test_no_more_than_max_rows_are_written_together(counted: tuple[LocalModel, CountedNetwork]) -> None:
    model, computed = counted
    expected = alone(model, PROMPTS, max_new_tokens=4)
    computed.shapes.clear()
    assert together(model, PROMPTS, max_new_tokens=4, max_rows=2) == expected
    assert max(rows for rows, _ in computed.shapes) == 2


@pytest.mark.parametrize("max_rows", [1, 2, 3])
def test_what_two_groups_share_is_computed_once(counted: tuple[LocalModel, CountedNetwork], max_rows: int) -> None:
    model, computed = counted
    prompts = [SHARED + "!", SHARED + "?", SHARED + ".", SHARED]
    model.generate_batch(prompts, max_new_tokens=1, max_rows=max_rows)
    assert computed.tokens == len(SHARED) + 4


def test_a_batch_uses_what_is_known_and_leaves_what_it_computed(local_model: MakeModel) -> None:
    model = local_model()
    model.warm([SHARED])
    first = model.generate_batch([SHARED + "!", SHARED + " fox"], max_new_tokens=8)
    assert [generation.cached_tokens for generation in first] == [len(SHARED), len(SHARED)]
    for prompt, before in zip([SHARED + "!", SHARED + " fox"], first, strict=True):
        longer = model.generate(prompt + before.text + "?", max_new_tokens=1)
        assert longer.cached_tokens == len(prompt) + 7  # the last token written was never read


def test_the_state_that_rows_leave_is_that_of_cold_runs(local_model: MakeModel) -> None:
    model = local_model()
    texts = [
        prompt + one.text for prompt, one in zip(PROMPTS, model.generate_batch(PROMPTS, max_new_tokens=9), strict=True)
    ]
    assert alone(model, texts, max_new_tokens=5) == alone(local_model(warm=False), texts, max_new_tokens=5)


def test_a_scope_shares_within_its_batch_and_with_nobody_else(local_model: MakeModel) -> None:
    model = local_model()
    ours = model.generate_batch([SHARED + "!", SHARED + "?"], max_new_tokens=1, scope="a")
    assert [generation.cached_tokens for generation in ours] == [0, len(SHARED)]
    theirs = model.generate_batch([SHARED + "!"], max_new_tokens=1, scope="b")
    assert theirs[0].cached_tokens == 0
    assert model.generate_batch([SHARED + "!"], max_new_tokens=1, scope="a")[0].cached_tokens == len(SHARED)


@pytest.mark.parametrize(("kind", "counted"), [("sliding", []), ("recurrent", [5]), ("own cache", [5])])
def test_state_that_cannot_be_cut_is_written_row_by_row(local_model: MakeModel, kind: str, counted: list[int]) -> None:
    model = local_model(kind)
    assert together(model, PROMPTS, max_new_tokens=6) == alone(local_model(kind), PROMPTS, max_new_tokens=6)
    assert list(model.usage.bypasses.values()) == counted


def test_a_model_that_cannot_be_told_of_gaps_writes_its_rows_one_by_one(
    local_model: MakeModel, network: MakeNetwork, letter_tokenizer: Any
) -> None:
    blunt = network()
    forward = type(blunt).forward

    def without_positions(input_ids: Any, cache: Any = None, use_cache: bool = True, logits_to_keep: int = 0) -> Any:
        return forward(blunt, input_ids=input_ids, cache=cache, use_cache=use_cache, logits_to_keep=logits_to_keep)

    blunt.forward = without_positions
    computed = CountedNetwork(blunt)
    model = LocalModel(blunt, letter_tokenizer())
    assert together(model, PROMPTS, max_new_tokens=6) == alone(local_model(warm=False), PROMPTS, max_new_tokens=6)
    assert {rows for rows, _ in computed.shapes} == {1}


class BrokenPrefixCache(NoPrefixCache):
    """A cache whose every call fails."""

    def match(self, fingerprint: str, tokens: Any) -> Any:
        raise MemoryError

    def store(self, fingerprint: str, tokens: Any, state: Any, **about: Any) -> int:
        raise MemoryError


def test_trouble_in_the_cache_is_counted_and_never_the_callers(local_model: MakeModel) -> None:
    broken = local_model(prefix_cache=BrokenPrefixCache())
    assert together(broken, PROMPTS, max_new_tokens=6) == alone(local_model(warm=False), PROMPTS, max_new_tokens=6)
    assert set(broken.usage.bypasses) == {"known prefix could not be placed", "state could not be kept"}


class HalfPrefixCache(PrefixCache[Any]):
    """A cache that lost all layers but the first."""

    @contextmanager
    def match(self, fingerprint: str, tokens: Any) -> Iterator[PrefixMatch[Any]]:
        with super().match(fingerprint, tokens) as found:
            yield PrefixMatch(found.length, tuple(KVSegment(segment.layers[:1]) for segment in found.segments))


def test_a_prefix_that_fails_halfway_is_computed_in_full(local_model: MakeModel) -> None:
    model = local_model(prefix_cache=HalfPrefixCache(10**8))
    expected = alone(local_model(warm=False), PROMPTS, max_new_tokens=6)
    assert [together(model, PROMPTS, max_new_tokens=6) for _ in range(2)] == [expected, expected]


@pytest.mark.parametrize(
    ("prompts", "mistake", "words"),
    [
        (["a", ""], ValueError, r"prompts\[1\]: the prompt is empty"),
        (["a", "a" * 65], ValueError, r"prompts\[1\]: the prompt has 65 tokens"),
        (["a", "b", 3], TypeError, r"prompts\[2\]: "),
        ("abc", TypeError, "put a single text"),
        ([Turn("user", "a")], TypeError, "put a single text"),
    ],
)
def test_a_mistake_in_one_prompt_raises_before_anything_is_computed(
    counted: tuple[LocalModel, CountedNetwork], prompts: Any, mistake: type[Exception], words: str
) -> None:
    model, computed = counted
    with pytest.raises(mistake, match=words):
        model.generate_batch(prompts)
    assert computed.shapes == []


def test_a_batch_of_no_rows_at_a_time_is_refused(local_model: MakeModel) -> None:
    with pytest.raises(ValueError, match="max_rows is 0"):
        local_model().generate_batch(PROMPTS, max_rows=0)


def test_a_batch_of_nothing_is_nothing(local_model: MakeModel) -> None:
    assert local_model().generate_batch([]) == []


def test_a_batch_gives_its_accounts(local_model: MakeModel) -> None:
    model = local_model()
    generations = model.generate_batch(PROMPTS, max_new_tokens=3)
    for generation in generations:
        assert 0 < generation.placed_seconds < generation.first_token_seconds < generation.seconds
    usage = model.usage
    assert (usage.generations, usage.prompt_tokens) == (len(PROMPTS), sum(map(len, PROMPTS)))
    assert usage.generated_tokens == 3 * len(PROMPTS)
    assert usage.cached_tokens == sum(generation.cached_tokens for generation in generations) > 0


def test_batches_and_generations_of_several_threads_are_all_cold_runs(local_model: MakeModel) -> None:
    model = local_model()
    expected = alone(local_model(warm=False), PROMPTS, max_new_tokens=6)
    results: list[list[tuple[Any, ...]]] = []
    ways = [lambda: together(model, PROMPTS, max_new_tokens=6), lambda: alone(model, PROMPTS, max_new_tokens=6)]
    threads = [threading.Thread(target=lambda way=way: results.append(way())) for way in ways * 4]  # type: ignore[misc]  # lambda
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


class AskingPrefixCache(NoPrefixCache):
    """Has another thread ask whenever state is to be kept, and waits for its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.model: LocalModel | None = None
        self.answered: list[bool] = []

    def store(self, fingerprint: str, tokens: Any, state: Any, **about: Any) -> int:
        if self.model and threading.current_thread().name != "other":
            asking = threading.Thread(
                target=self.model.generate, args=("xyz",), kwargs={"max_new_tokens": 1}, name="other"
            )
            asking.start()
            asking.join(timeout=10)
            self.answered.append(not asking.is_alive())
        return 0


def test_other_threads_take_turns_while_a_batch_is_written(local_model: MakeModel) -> None:
    prefixes = AskingPrefixCache()
    prefixes.model = local_model(prefix_cache=prefixes)
    prefixes.model.generate_batch(["ab", "cd"], max_new_tokens=3)
    assert prefixes.answered == [True] * 4  # after each prompt, and after each row
