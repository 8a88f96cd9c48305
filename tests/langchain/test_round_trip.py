"""What comes back from the cache equals what the model gave, field by field, and belongs to the caller."""

import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from langchain_smartcache import ChatSmartCache

QUESTION = "How do I reset the thermostat?"
CALL = {"name": "look_up", "args": {"part": 7, "deep": {"list": [1, 2.5, None, "é"]}}, "id": "call-1"}
MANIFEST = '{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "SystemMessage"], "kwargs": {}}'

MESSAGES: dict[str, dict[str, Any]] = {
    "text": {"content": "Hold the  button.\n\nThen wait. "},
    "tool call": {"content": "", "tool_calls": [CALL]},
    "text and tool calls": {"content": "Let me see", "tool_calls": [CALL, {**CALL, "id": "call-2"}]},
    "blocks": {"content": [{"type": "text", "text": "See"}, {"type": "image", "base64": "QQ==", "mime_type": "a/b"}]},
    "reasoning": {"content": "Yes", "additional_kwargs": {"reasoning_content": "since it is on"}},
    "metadata": {"content": "Yes", "response_metadata": {"finish_reason": "stop", "logprobs": [{"p": 0.5}]}},
    "name": {"content": "Yes", "name": "expert"},
    "like a manifest": {"content": MANIFEST, "additional_kwargs": {"lc": 1, "type": "constructor", "id": ["os"]}},
}  # fmt: skip
STREAMED = [name for name in MESSAGES if name != "name"]  # LangChain's own sum of chunks has no name


def fields(message: AIMessage) -> dict[str, Any]:
    metadata = {name: value for name, value in message.response_metadata.items() if name != "smartcache"}
    return {**dict(message), "response_metadata": metadata, "id": None, "class": type(message)}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_a_hit_equals_the_first_answer(replying: Any, cache: Any, message: dict[str, Any]) -> None:
    model = replying(**message)
    chat = ChatSmartCache(model=model, cache=cache)
    first, second = chat.invoke(QUESTION), chat.invoke(QUESTION)
    assert fields(second) == fields(first)
    assert model.calls == 1


@pytest.mark.parametrize("message", [MESSAGES[name] for name in STREAMED], ids=STREAMED)
def test_a_replayed_stream_adds_up_to_the_streamed_original(replying: Any, cache: Any, message: dict[str, Any]) -> None:
    model = replying(**message)
    chat = ChatSmartCache(model=model, cache=cache)
    original, replayed = (_whole(chat) for _ in range(2))
    for name in ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs", "chunk_position"):
        assert getattr(replayed, name) == getattr(original, name)
    assert fields(replayed)["response_metadata"] == fields(original)["response_metadata"]
    assert model.calls == 1


def test_an_invoked_answer_streams_with_tool_call_chunks_and_a_last_chunk(replying: Any, cache: Any) -> None:
    chat = ChatSmartCache(
        model=replying(content="Let me see", tool_calls=[CALL], response_metadata={"finish_reason": "tool_calls"}),
        cache=cache,
    )
    answer = chat.invoke(QUESTION)
    chunks = list(chat.stream(QUESTION))
    assert [chunk.content for chunk in chunks] == ["Let", " me", " see"]
    assert [bool(chunk.tool_call_chunks) for chunk in chunks] == [False, False, True]
    assert [chunk.chunk_position for chunk in chunks] == [None, None, "last"]
    assert (chunks[0] + chunks[1:]).tool_calls == answer.tool_calls
    assert (chunks[0] + chunks[1:]).response_metadata["finish_reason"] == "tool_calls"


def test_every_replay_is_a_fresh_stream(replying: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=replying(content="one two three"), cache=cache)
    chat.invoke(QUESTION)
    next(chat.stream(QUESTION)).content = "X"
    assert [[chunk.content for chunk in chat.stream(QUESTION)] for _ in range(2)] == [["one", " two", " three"]] * 2


def test_the_first_callers_edits_do_not_reach_later_hits(replying: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=replying(content="", tool_calls=[CALL]), cache=cache)
    first = chat.invoke(QUESTION)
    untouched = {**CALL, "type": "tool_call"}
    first.content = "X"
    first.tool_calls.append({**CALL, "id": "extra"})
    first.tool_calls[0]["args"]["part"] = 8
    second = chat.invoke(QUESTION)
    assert (second.content, second.tool_calls) == ("", [untouched])
    second.content = "Y"
    second.tool_calls[0]["args"]["deep"]["list"].clear()
    assert (chat.invoke(QUESTION).content, chat.invoke(QUESTION).tool_calls) == ("", [untouched])


def test_a_readers_edits_of_streamed_chunks_are_not_stored(replying: Any, cache: Any) -> None:
    chat = ChatSmartCache(model=replying(content="one two three"), cache=cache)
    for chunk in chat.stream(QUESTION):
        chunk.content = "X"
    assert chat.invoke(QUESTION).content == "one two three"


class Custom(AIMessage):
    mood: str = "good"


UNRESTORABLE = {
    "a lock": AIMessage("Yes", additional_kwargs={"lock": threading.Lock()}),
    "a tuple": AIMessage("Yes", additional_kwargs={"pair": (1, 2)}),
    "a number as a key": AIMessage("Yes", additional_kwargs={1: "one"}),
    "NaN": AIMessage("Yes", response_metadata={"probability": float("nan")}),
    "a class of one's own": Custom("Yes"),
}


@pytest.mark.parametrize("message", UNRESTORABLE.values(), ids=UNRESTORABLE)
def test_what_cannot_be_restored_is_given_but_not_stored_and_counted(model: Any, cache: Any, message: Any) -> None:
    model.reply = lambda call, messages: message
    chat = ChatSmartCache(model=model, cache=cache)
    assert [chat.invoke(QUESTION).content for _ in range(2)] == ["Yes", "Yes"]
    assert (model.calls, cache.stats().not_stored) == (2, {"not_restorable": 2})


@pytest.mark.parametrize("message", list(UNRESTORABLE.values())[:-1], ids=list(UNRESTORABLE)[:-1])
def test_a_stream_that_cannot_be_restored_is_given_but_not_stored(model: Any, cache: Any, message: Any) -> None:
    model.reply = lambda call, messages: message
    chat = ChatSmartCache(model=model, cache=cache)
    assert [_whole(chat).content for _ in range(2)] == ["Yes", "Yes"]
    assert (model.calls, cache.stats().not_stored) == (2, {"not_restorable": 2})


def test_several_generations_come_back_together(model: Any, cache: Any) -> None:
    class Two(type(model)):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
            self._prompts.append(messages)
            made = [ChatGeneration(message=AIMessage(text), generation_info={"rank": text}) for text in "ab"]
            return ChatResult(generations=made, llm_output={"model_name": "two", "token_usage": {"total": 3}})

    two = Two()
    chat = ChatSmartCache(model=two, cache=cache)
    results = [chat.generate([[HumanMessage(QUESTION)]]).generations[0] for _ in range(2)]
    assert [[g.text for g in generations] for generations in results] == [["a", "b"]] * 2
    assert [g.generation_info for g in results[1]] == [{"rank": "a"}, {"rank": "b"}]
    assert two.calls == 1


def test_reasoning_is_replayed_ahead_of_the_text(model: Any, cache: Any) -> None:
    class Thinking(type(model)):
        def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            self._prompts.append(messages)
            for thought in ("since ", "it is on"):
                yield ChatGenerationChunk(
                    message=AIMessageChunk(content="", additional_kwargs={"reasoning_content": thought})
                )
            yield ChatGenerationChunk(message=AIMessageChunk(content="Yes, it is."))

    chat = ChatSmartCache(model=Thinking(), cache=cache)
    original = _whole(chat)
    first, *rest = chat.stream(QUESTION)
    assert first.additional_kwargs == original.additional_kwargs == {"reasoning_content": "since it is on"}
    assert (first + rest).content == original.content


def _whole(chat: ChatSmartCache) -> AIMessageChunk:
    first, *rest = chat.stream(QUESTION)
    return first + rest
