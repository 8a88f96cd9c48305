"""ChatLocalModel: a real, tiny network behind LangChain's chat interface."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("transformers", reason="needs the `local` extra")

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_smartcache import ChatLocalModel, ChatSmartCache
from smartcache import Turn
from smartcache.models import LocalModel

TEMPLATE = (
    "{% for message in messages %}{{ message.role }} {{ message.content }}.{% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)
TALK = [SystemMessage("be kind"), HumanMessage("is it on")]
TURNS = [Turn("system", "be kind"), Turn("user", "is it on")]


LETTERS = "abcdefghijklmnopqrstuvwxyz .!?"


def tiny(seed: int = 0) -> LocalModel:
    """A random network that reads and writes letters."""
    import torch
    from tokenizers import Tokenizer, decoders, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(LETTERS)}, merges=[]))
    tokenizer.decoder = decoders.Fuse()
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(LETTERS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=512, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    network = LlamaForCausalLM(config)
    with torch.no_grad():
        for weights in network.parameters():
            if weights.dim() > 1:
                weights.normal_(0, 0.3)
    return LocalModel(network, PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=TEMPLATE))


@pytest.fixture
def local() -> LocalModel:
    return tiny()


@pytest.fixture
def chat(local: LocalModel) -> ChatLocalModel:
    return ChatLocalModel(model=local, max_tokens=6)


def second_letter(chat: Any) -> str:
    """One that the answer does not begin with: as a stop string it leaves something."""
    text = chat.invoke(TALK).content
    return next(letter for letter in text if letter != text[0])


def test_it_writes_what_the_local_model_writes(chat: Any, local: LocalModel) -> None:
    assert chat.invoke(TALK).content == local.generate(TURNS, max_new_tokens=6).text


def test_usage_tells_what_was_read_from_the_prefix_cache(chat: Any, local: LocalModel) -> None:
    prompt_tokens = len(local.tokens_of(TURNS))
    usages = [chat.invoke(TALK).usage_metadata for _ in range(2)]
    assert [usage["input_token_details"]["cache_read"] for usage in usages] == [0, prompt_tokens - 1]
    assert usages[0]["total_tokens"] == usages[0]["output_tokens"] + prompt_tokens


def test_a_stream_adds_up_to_the_whole_answer(chat: Any) -> None:
    whole = chat.invoke(TALK)
    first, *rest = chat.stream(TALK)
    streamed = first + rest
    assert (streamed.content, streamed.response_metadata) == (whole.content, whole.response_metadata)
    assert streamed.usage_metadata["output_tokens"] == whole.usage_metadata["output_tokens"]
    assert streamed.chunk_position == "last"


async def test_coroutines_write_the_same(chat: Any) -> None:
    whole = chat.invoke(TALK).content
    assert (await chat.ainvoke(TALK)).content == whole
    assert "".join([chunk.content async for chunk in chat.astream(TALK)]) == whole


def test_options_of_a_call_go_before_those_set(chat: Any, local: LocalModel) -> None:
    assert chat.invoke(TALK, max_tokens=2).usage_metadata["output_tokens"] == 2
    drawn = chat.invoke(TALK, temperature=2.0, seed=3).content
    assert drawn == local.generate(TURNS, max_new_tokens=6, temperature=2.0, seed=3).text


CHUNKS = ["the old fox. ", "a hen. "]
PASSAGES = [SystemMessage("".join(CHUNKS)), HumanMessage("is it on")]


def test_an_answer_says_whether_it_is_exact(chat: Any) -> None:
    assert chat.invoke(PASSAGES).response_metadata["exact"] is True
    swapped = [SystemMessage("".join(reversed(CHUNKS))), HumanMessage("is it on")]
    blended = chat.invoke(swapped, reuse="blend", chunks=CHUNKS[::-1]).response_metadata
    assert blended["exact"] is False
    assert 0.15 <= blended["recomputed_share"] < 0.4


def test_under_the_answer_cache_an_approximate_answer_is_told_and_is_none_to_the_exact_request(
    chat: Any, cache: Any
) -> None:
    cached, blend = ChatSmartCache(model=chat, cache=cache), {"reuse": "blend", "chunks": CHUNKS}
    text = chat.invoke(PASSAGES, **blend).content
    stop = [next(letter for letter in text if letter != text[0])]
    answers = [cached.invoke(PASSAGES, stop=stop, **own).response_metadata for own in (blend, blend, {})]
    assert [answer["smartcache"]["hit"] for answer in answers] == [False, True, False]
    assert [answer["exact"] for answer in answers] == [False, False, True]


def test_a_stop_string_ends_the_answer_before_it(chat: Any) -> None:
    whole, letter = chat.invoke(TALK), second_letter(chat)
    stopped = chat.invoke(TALK, stop=[letter])
    assert stopped.content == whole.content[: whole.content.index(letter)]
    assert (whole.response_metadata["finish_reason"], stopped.response_metadata["finish_reason"]) == ("length", "stop")


def test_an_option_that_does_not_exist_is_refused(chat: Any) -> None:
    with pytest.raises(TypeError, match="unknown option warmth"):
        chat.invoke(TALK, warmth=1)


def test_content_that_is_not_text_is_refused(chat: Any) -> None:
    with pytest.raises(ValueError, match="image"):
        chat.invoke([HumanMessage([{"type": "image", "base64": "QQ==", "mime_type": "image/png"}])])


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_under_the_answer_cache_a_truncated_answer_is_not_stored_and_an_ended_one_is(
    chat: Any, local: LocalModel, cache: Any, way: str
) -> None:
    letter = second_letter(chat)
    cached = ChatSmartCache(model=chat, cache=cache)
    ask = cached.invoke if way == "invoke" else lambda *args, **options: list(cached.stream(*args, **options))
    for _ in range(2):
        ask(TALK)
        ask(TALK, stop=[letter])
    assert (cache.stats().not_stored, cache.stats().exact) == ({"finish_length": 2}, 1)


def test_another_local_model_does_not_share_answers(chat: Any, cache: Any) -> None:
    letter = second_letter(chat)
    answers: list[AIMessage] = [
        ChatSmartCache(model=ChatLocalModel(model=model, max_tokens=6), cache=cache).invoke(TALK, stop=[letter])
        for model in (chat.model, tiny(seed=1), chat.model)
    ]
    hits = [answer.response_metadata["smartcache"]["hit"] for answer in answers]
    assert hits == [False, False, True]


def test_a_name_where_a_model_is_wanted_says_how_to_load_it() -> None:
    with pytest.raises(ValueError, match=r"give LocalModel\.load\('org/model'\)"):
        ChatLocalModel(model="org/model")
