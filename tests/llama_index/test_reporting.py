"""A wrong answer is reported with what is at hand: the question, and the response that came back."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import PydanticResponse, Response, StreamingResponse
from llama_index.core.schema import QueryBundle
from pydantic import BaseModel

from llama_index_smartcache import SmartCacheLLM, SmartCacheQueryEngine
from smartcache import Answer, CalibratedPolicy

BACK, BACK_IN_OTHER_WORDS = "How long may goods be sent back?", "May goods be sent back how long?"
HOURS = "How many hours does the hub run on one charge?"


def served_by(response) -> str:
    told = getattr(response, "metadata", None) or response.additional_kwargs
    return told["smartcache"]["served_by"]


@pytest.mark.parametrize("asked", [BACK, QueryBundle(BACK)])
def test_an_engine_answers_anew_what_was_reported(index, engine_over, asked):
    engine = engine_over(index, scope="acme")
    engine.query(HOURS)
    engine.query(asked)
    hit = engine.query(asked)
    assert served_by(hit) == "exact"
    engine.report_wrong(asked, hit)
    assert (served_by(engine.query(asked)), served_by(engine.query(HOURS))) == ("model", "exact")


def test_a_near_response_is_wrong_for_what_was_asked_alone(index, engine_over):
    engine = engine_over(index)
    engine.query(BACK)
    hit = engine.query(BACK_IN_OTHER_WORDS)
    assert served_by(hit) == "semantic"
    engine.report_wrong(BACK_IN_OTHER_WORDS, hit)
    assert (served_by(engine.query(BACK_IN_OTHER_WORDS)), served_by(engine.query(BACK))) == ("model", "exact")


def test_a_stream_is_reported_by_its_response(index, engine_over):
    engine = engine_over(index, streaming=True)
    for _ in range(2):
        response = engine.query(BACK)
        list(response.response_gen)
    assert served_by(response) == "exact"
    engine.report_wrong(BACK, response)
    assert served_by(engine.query(BACK)) == "model"


def last_of(stream):
    return list(stream)[-1]


LLM_CALLS = {
    "chat": ([ChatMessage(role="user", content=BACK)], lambda llm, asked: llm.chat(asked, top_p=0.5)),
    "stream_chat": (
        [ChatMessage(role="user", content=BACK)],
        lambda llm, asked: last_of(llm.stream_chat(asked, top_p=0.5)),
    ),
    "complete": (BACK, lambda llm, asked: llm.complete(asked, top_p=0.5)),
    "acomplete": (BACK, lambda llm, asked: asyncio.run(llm.acomplete(asked, top_p=0.5))),
}


@pytest.mark.parametrize("call", LLM_CALLS)
def test_an_llm_answers_anew_what_was_reported(llm, cache, call):
    cached, (asked, answered) = SmartCacheLLM(llm=llm, cache=cache, scope="acme"), LLM_CALLS[call]
    cached.complete(HOURS)
    answered(cached, asked)
    hit = answered(cached, asked)
    assert served_by(hit) == "exact"
    cached.report_wrong(asked, hit, top_p=0.5)
    assert (served_by(answered(cached, asked)), served_by(cached.complete(HOURS))) == ("model", "exact")


def own_of(made, said):
    """A response of the model that says something, with the mark of one made anew."""
    mark = {"smartcache": {"served_by": "model", "similarity": None, "age_seconds": None, "entry_id": None}}
    if made is ChatResponse:
        return ChatResponse(message=ChatMessage(role="assistant", content=said), additional_kwargs=mark)
    if made is CompletionResponse:
        return CompletionResponse(text=said, additional_kwargs=mark)
    if made is StreamingResponse:
        return StreamingResponse(iter([said]), metadata=mark, response_txt=said)
    return Response(said, metadata=mark)


@pytest.mark.parametrize("made", [ChatResponse, CompletionResponse, Response, StreamingResponse])
@pytest.mark.parametrize(("said", "is_found"), [("answer 1 of the model", True), ("Never stored.", False)])
def test_the_answer_of_a_model_is_found_by_what_it_says(index, engine_over, llm, cache, made, said, is_found):
    asked = [ChatMessage(role="user", content=BACK)] if made is ChatResponse else BACK
    if made in (ChatResponse, CompletionResponse):
        cached = SmartCacheLLM(llm, cache)
        ask = cached.chat if made is ChatResponse else cached.complete
    else:
        cached = engine_over(index)
        ask = cached.query
    ask(asked)
    assert cached.report_wrong(asked, own_of(made, said)) is is_found
    assert served_by(ask(asked)) == ("model" if is_found else "exact")


class Days(BaseModel):
    days: int


@pytest.mark.parametrize(("days", "is_found"), [(30, True), (60, False)])
def test_so_is_an_object_of_its(index, cache, make_llm, days, is_found):
    engine = SmartCacheQueryEngine(index.as_query_engine(llm=make_llm()), cache)
    own = PydanticResponse(Days(days=days), metadata=own_of(Response, "").metadata)
    cache.answer(engine._asked(QueryBundle(BACK))[0], lambda *_: Answer('{"days":30}', frozenset()))
    assert engine.report_wrong(BACK, own) is is_found


def test_a_response_from_elsewhere_is_a_mistake(index, engine_over, llm, cache):
    with pytest.raises(TypeError, match="pass the response that the cache gave"):
        engine_over(index).report_wrong(BACK, Response("made elsewhere"))
    with pytest.raises(TypeError, match="pass the response that the cache gave"):
        SmartCacheLLM(llm=llm, cache=cache).report_wrong(BACK, llm.complete(BACK))


def test_it_says_whether_it_found_the_answer(index, engine_over, llm, cache, caplog):
    engine, cached = engine_over(index), SmartCacheLLM(llm, cache)
    response, completion = engine.query(BACK), cached.complete(BACK, top_p=0.5)
    caplog.clear()
    assert not engine.report_wrong(HOURS, response)
    assert not cached.report_wrong(BACK, completion)
    assert [record.getMessage().split(" ", 2)[1] for record in caplog.records] == ["found"] * 2
    assert engine.report_wrong(BACK, response)
    assert cached.report_wrong(BACK, completion, top_p=0.5)
    assert len(caplog.records) == 2


def test_why_is_told_of_the_request_that_a_call_would_make(index, engine_over, llm, cache):
    engine, cached = engine_over(index), SmartCacheLLM(llm, cache)
    engine.query(BACK)
    cached.chat([ChatMessage(role="user", content=BACK)], top_p=0.5)
    asked = [ChatMessage(role="user", content=BACK_IN_OTHER_WORDS)]
    for found in (engine.explain(BACK_IN_OTHER_WORDS), cached.explain(asked, top_p=0.5)):
        assert [(one.question, one.is_served) for one in found] == [(BACK, True)]
    assert not engine.explain(QueryBundle(BACK_IN_OTHER_WORDS), policy=CalibratedPolicy(0.0))[0].is_served
    assert [one.refusal for one in cached.explain(asked)] == ["new"]
    assert [one.refusal for one in cached.explain(BACK, top_p=0.5)] == ["exact_mode"]
    assert llm.calls == 2
