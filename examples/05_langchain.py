"""LangChain: wrap any chat model; invoke, stream and batch share one cache, and every message says who answered."""

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_smartcache import ChatSmartCache
from smartcache import SmartCache

# Stands for ChatOpenAI(...), ChatOllama(...): it has two answers and then no more.
model = GenericFakeChatModel(messages=iter([AIMessage("Bonjour !"), AIMessage('{"greeting": "hello"}')]))

with SmartCache.open(mode="exact") as cache:
    chat = ChatSmartCache(model=model, cache=cache)

    french = [SystemMessage("Answer in French."), HumanMessage("Say hello.")]
    first = chat.invoke(french)
    again = chat.invoke(french)
    streamed = "".join(str(chunk.content) for chunk in chat.stream(french))
    as_json = chat.invoke([SystemMessage("Answer as JSON."), HumanMessage("Say hello.")])

    for message in (first, again, as_json):
        print(f"{message.response_metadata['smartcache']['served_by']:6} {message.content}")

    assert again.content == streamed == first.content == "Bonjour !"
    assert first.response_metadata["smartcache"]["served_by"] == "model"
    assert again.response_metadata["smartcache"]["served_by"] == "exact"
    assert again.id != first.id, "a replayed message is a new message"
    assert as_json.response_metadata["smartcache"]["served_by"] == "model", "another system prompt is another question"
