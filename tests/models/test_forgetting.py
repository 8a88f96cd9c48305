"""What is forgotten is gone: from the tree, the disk and the rooms, and what is under way does not bring it back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch", reason="needs the `local` extra")

from smartcache.layers.prefixes import PrefixCache
from smartcache.models import LocalModel
from smartcache.types import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.models.conftest import MakeModel

PROMPT = "the quick brown fox"
WAYS: dict[str, Callable[[Any], object]] = {
    "clear": lambda model: model.prefix_cache.clear(),
    "forget all": lambda model: model.forget(),
    "forget it": lambda model: model.forget(PROMPT),
    "forget its beginning": lambda model: model.forget("the"),
}
every_way = pytest.mark.parametrize("forget", WAYS.values(), ids=WAYS.keys())
every_kind = pytest.mark.parametrize("kind", ["llama", "sliding"])


def on_disk(path: Path) -> PrefixCache[Any]:
    return PrefixCache(10**8, disk_path=path, block_tokens=8)


def left(model: Any, path: Path) -> tuple[int, int, int]:
    """What holds state still: tokens in the tree, files, rooms."""
    model.prefix_cache.flush()
    return len(model.prefix_cache), len(list(path.glob("*/*.safetensors"))), len(model._decoder._idle)


def known(model: Any, prompt: str, scope: str | None = None) -> int:
    """How many tokens of the prompt have their state in the tree."""
    with model.prefix_cache.match(model._decoder.tree(scope or ""), model.tokens_of(prompt + "!")) as match:
        return int(match.length)


@every_kind
@every_way
def test_nothing_is_left_of_what_ended(
    local_model: MakeModel, tmp_path: Path, kind: str, forget: Callable[[Any], object]
) -> None:
    model = local_model(kind, prefix_cache=on_disk(tmp_path))
    model.generate(PROMPT, max_new_tokens=4)
    assert left(model, tmp_path)[0] > 0
    assert (kind == "sliding") == (left(model, tmp_path)[1:] == (0, 0))
    forget(model)
    assert left(model, tmp_path) == (0, 0, 0)


@every_kind
@every_way
@pytest.mark.parametrize("read", [1, 3])
def test_a_stream_under_way_does_not_bring_it_back(
    local_model: MakeModel, tmp_path: Path, kind: str, forget: Callable[[Any], object], read: int
) -> None:
    model = local_model(kind, prefix_cache=on_disk(tmp_path))
    stream = model.stream(PROMPT, max_new_tokens=8)
    pieces = [next(stream) for _ in range(read)]
    forget(model)
    whole = local_model(kind, warm=False).generate(PROMPT, max_new_tokens=8)
    assert "".join([*pieces, *stream]) == whole.text
    assert left(model, tmp_path) == (0, 0, 0)


@every_way
def test_a_dropped_stream_does_not_bring_it_back(
    local_model: MakeModel, tmp_path: Path, forget: Callable[[Any], object]
) -> None:
    model = local_model(prefix_cache=on_disk(tmp_path))
    stream = model.stream(PROMPT, max_new_tokens=8)
    next(stream)
    stream.close()
    forget(model)
    model.generate("zzz", max_new_tokens=1)
    assert (known(model, PROMPT), known(model, "zzz")) == (0, 3)


class ForgetfulPrefixCache(PrefixCache[Any]):
    """Forgets all once, when the first state of a batch is to be stored."""

    done = False

    def store(self, fingerprint: str, tokens: Any, state: Any, **about: Any) -> int:
        if not self.done:
            self.done = True
            self.clear()
        return super().store(fingerprint, tokens, state, **about)


def test_a_batch_under_way_does_not_bring_it_back(local_model: MakeModel) -> None:
    model = local_model(prefix_cache=ForgetfulPrefixCache(10**8))
    prompts = [PROMPT, PROMPT + " jumps", "other"]
    cold = local_model(warm=False)
    expected = [cold.generate(prompt, max_new_tokens=4).token_ids for prompt in prompts]
    for _ in range(2):  # the second batch is kept
        assert len(model.prefix_cache) == 0
        generations = model.generate_batch(prompts, max_new_tokens=4)
        assert [generation.token_ids for generation in generations] == expected
    assert known(model, "other") == len("other")


def test_what_a_dropped_stream_left_is_gone_at_once(local_model: MakeModel) -> None:
    model = local_model()
    stream = model.stream(PROMPT, max_new_tokens=8)
    next(stream)
    stream.close()
    assert len(model._decoder._broken_off) == 1
    model.forget("something else")
    assert len(model._decoder._broken_off) == 0


class FailingPrefixCache(PrefixCache[Any]):
    """Whose lower tiers cannot delete."""

    def _forget_here(self, fingerprint: str, tokens: Any) -> int:
        raise OSError("read-only")


def test_rooms_are_empty_even_where_files_cannot_be_deleted(local_model: MakeModel) -> None:
    model = local_model(prefix_cache=FailingPrefixCache(10**8))
    model.generate(PROMPT, max_new_tokens=4)
    assert len(model._decoder._idle) == 1
    with pytest.raises(OSError, match="read-only"):
        model.forget()
    assert len(model._decoder._idle) == 0


def test_what_comes_after_is_kept_again(local_model: MakeModel, tmp_path: Path) -> None:
    model = local_model(prefix_cache=on_disk(tmp_path))
    model.generate(PROMPT, max_new_tokens=4)
    model.forget()
    model.generate(PROMPT, max_new_tokens=4)
    assert model.generate(PROMPT, max_new_tokens=4).cached_tokens == len(PROMPT) - 1
    assert all(left(model, tmp_path))


def test_only_what_begins_so_is_forgotten(local_model: MakeModel) -> None:
    model = local_model()
    model.warm(["the quick", "the lazy", "a dog"])
    assert model.forget("the q") == len("quick")
    assert [known(model, prompt) for prompt in ("the quick", "the lazy", "a dog")] == [4, 8, 5]


@pytest.mark.parametrize("kind", ["llama", "sliding"])
@pytest.mark.parametrize(
    ("merge", "prefix"),
    [((" ", "q"), "the "), (("q", "u"), "the q"), (("e", " "), "the"), (("u", "i"), "the qu"), (("x", "y"), "the ")],
)
def test_what_begins_with_a_text_is_forgotten_where_a_token_reaches_over_its_end(
    network: Any, letter_tokenizer: Any, tmp_path: Path, kind: str, merge: tuple[str, str], prefix: str
) -> None:
    model = LocalModel(network(kind), letter_tokenizer(merge), prefix_cache=on_disk(tmp_path))
    for prompt in ("the quick", "a dog"):
        model.generate(prompt, max_new_tokens=1)
    model.prefix_cache.flush()
    model.forget(prefix)
    assert model.generate("the quick", max_new_tokens=1).cached_tokens == 0
    assert model.generate("a dog", max_new_tokens=1).cached_tokens > 0


def test_a_token_that_cannot_follow_takes_nothing_else_along(network: Any, letter_tokenizer: Any) -> None:
    model = LocalModel(network(), letter_tokenizer((" ", "q"), ("q", "u")), prefix_cache=PrefixCache(10**8))
    model.warm(["the dog", "the lazy"])
    model.forget("the d")
    assert [known(model, prompt) for prompt in ("the dog", "the lazy")] == [4, 8]


TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }} {{ m['content'] }}.{% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)


def test_a_conversation_is_forgotten_with_the_answer_that_it_ends_in(network: Any, letter_tokenizer: Any) -> None:
    tokenizer = letter_tokenizer()
    tokenizer.chat_template = TEMPLATE
    model = LocalModel(network(max_position_embeddings=256), tokenizer, prefix_cache=PrefixCache(10**8))
    conversation = [Turn("system", "be brief"), Turn("user", "who")]
    other = [Turn("system", "be brief"), Turn("user", "what")]
    for turns in (conversation, other):
        answer = model.generate(turns, max_new_tokens=4)
    whole = [*conversation, Turn("assistant", answer.text)]
    assert model.forget(whole) > 0
    assert model.generate(conversation, max_new_tokens=1).cached_tokens == len("system be brief.user wh")
    assert model.generate(other, max_new_tokens=1).cached_tokens == model.count_tokens(other) - 1
    model.forget(conversation[:1])
    assert len(model.prefix_cache) == 0


def test_a_thought_that_the_template_opens_and_leaves_out_later_hides_nothing(
    network: Any, letter_tokenizer: Any
) -> None:
    tokenizer = letter_tokenizer()
    tokenizer.chat_template = TEMPLATE.replace("assistant {% endif %}", "assistant hm {% endif %}")
    model = LocalModel(network(max_position_embeddings=256), tokenizer, prefix_cache=PrefixCache(10**8))
    talk = [Turn("user", "my secret is"), Turn("assistant", "ok fine")]
    model.generate([*talk, Turn("user", "and")], max_new_tokens=5)
    assert model.forget(talk) > 0
    assert len(model.prefix_cache) == 0


def test_a_stream_that_is_dropped_after_all_was_forgotten_leaves_nothing(local_model: MakeModel) -> None:
    model = local_model()
    stream = model.stream(PROMPT, max_new_tokens=8)
    next(stream)
    model.forget()
    stream.close()
    assert len(model._decoder._broken_off) == 0


def test_each_scope_forgets_its_own(local_model: MakeModel, tmp_path: Path) -> None:
    model = local_model(prefix_cache=on_disk(tmp_path))
    for scope in ("", "acme", "other"):
        model.generate(PROMPT, max_new_tokens=1, scope=scope)
    assert model.forget(scope="acme") == len(PROMPT)
    assert [known(model, PROMPT, scope) for scope in ("", "acme", "other")] == [len(PROMPT), 0, len(PROMPT)]
    assert model.forget(PROMPT) == len(PROMPT)
    assert [known(model, PROMPT, scope) for scope in ("", "acme", "other")] == [0, 0, len(PROMPT)]
