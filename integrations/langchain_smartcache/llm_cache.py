"""LangChain's own cache hook over a SmartCache: for code that can be reached in no other way."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import Generation

from langchain_smartcache.arguments import checked_cache
from langchain_smartcache.messages import turn_of
from langchain_smartcache.payload import answer_of_generations, generations_of
from langchain_smartcache.prompts import Prompt
from smartcache import Request, SmartCache, Turn
from smartcache.keys import digest

_MESSAGES: dict[str, type[BaseMessage]] = {
    "HumanMessage": HumanMessage, "AIMessage": AIMessage, "SystemMessage": SystemMessage, "ToolMessage": ToolMessage,
}  # fmt: skip
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_OPTION = r"""["']{}["']\s*[:,]\s*(\d+(?:\.\d+)?)"""


class SmartLLMCache(BaseCache):
    """`set_llm_cache(SmartLLMCache(cache))`: a reduced mode. Where you can, wrap the model in `ChatSmartCache`.

    What LangChain keeps from it, so that nothing here can mend it:
    - it never asks a cache in `stream` and `astream`;
    - it hands over no evidence: an update of the knowledge base makes every answer stale;
    - options given to a call of a plain `BaseLLM` never reach it: another temperature gets the first one's answer
      (chat models' options do);
    - it tells of a model's settings in a string; where that holds an object's address, the call is passed by and
      counted as `unstable_key`. A temperature above 0 in it is passed by as `sampling`.

    A chat prompt comes serialised: it is parsed, so that the question is embedded and not the JSON around it. One that
    cannot be parsed, or that says more than a question does, is matched by the letter. Generations come back as they
    went in, as new objects; a message that had an id gets a new one. LangChain itself marks a hit, by
    `usage_metadata["total_cost"] = 0`.
    """

    def __init__(self, cache: SmartCache, *, scope: str = "") -> None:
        self._cache, self._scope = checked_cache(cache), scope

    def lookup(self, prompt: str, llm_string: str) -> list[Generation] | None:
        found: list[Generation] = []
        request = self._request(prompt, llm_string)
        if self._cache.lookup(request, restore=lambda hit: found.extend(generations_of(hit))) is None:
            return None
        for message in (getattr(generation, "message", None) for generation in found):
            if message is not None and message.id is not None:
                message.id = f"lc_{uuid4()}"
        return found

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        self._cache.store(self._request(prompt, llm_string), answer_of_generations(return_val))

    def clear(self, **kwargs: Any) -> None:
        """Removes every answer of this scope."""
        self._cache.clear(self._scope)

    def _request(self, prompt: str, llm_string: str) -> Request:
        variant = f"langchain-cache:{digest(llm_string)[:32]}"
        read = Prompt(tuple(turns_of(prompt)), None)
        compared = {"cache": "exact"} if read.is_whole else {}
        return Request(read.turns, self._scope, variant, _options(llm_string) | compared)


def turns_of(prompt: str) -> list[Turn]:
    """A prompt as LangChain serialises it: the messages of a chat, or the text of a completion."""
    if not prompt.startswith('[{"lc"'):
        return [Turn("user", prompt)]
    try:
        return [turn_of(_message(fields)) for fields in json.loads(prompt)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return [Turn("user", prompt, {"unparsed": True})]


def _message(fields: Mapping[str, Any]) -> BaseMessage:
    """A message from its serialised form: four classes are known, and what is inside stays what it is, text."""
    if fields["lc"] != 1 or fields["type"] != "constructor" or fields["id"][:-1] != ["langchain", "schema", "messages"]:
        raise ValueError("not a message")
    return _MESSAGES[fields["id"][-1]](**fields["kwargs"])


def _options(llm_string: str) -> dict[str, Any]:
    """What the settings say of sampling; the last word on each counts, since a call's options come last."""
    options: dict[str, Any] = {}
    for name in ("temperature", "n"):
        if found := re.findall(_OPTION.format(name), llm_string):
            options[name] = float(found[-1]) if name == "temperature" else int(float(found[-1]))
    return options | ({"settings": _Address()} if _ADDRESS.search(llm_string) else {})


class _Address:
    """Stands for an object whose address is in the settings: it has no stable form, and the cache says so."""
