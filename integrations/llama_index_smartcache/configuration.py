"""What an answer depends on besides its question: the model, the prompts, the retriever, as they are at the call."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from types import FunctionType, MethodType
from typing import Any

from llama_index.core import __version__ as llama_index_version
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.tools.types import BaseTool
from llama_index.core.vector_stores.types import MetadataFilters
from pydantic import BaseModel

from smartcache.keys import canonical, digest

# Fields of a model that cannot change its answer. A written list of what is left out: all that is not on it counts.
NEUTRAL_FIELDS = frozenset(
    "api_key azure_ad_token token default_headers timeout request_timeout max_retries retries reuse_client verbose "
    "callback_manager rate_limiter calls call_count".split()
)
# Fields that LlamaIndex leaves out of a model's JSON, and that shape its answers all the same.
LEFT_OUT_OF_JSON = frozenset("messages_to_prompt completion_to_prompt output_cls".split())
# What is known to shape a search, by whatever class; of LlamaIndex's own classes, every plain value counts.
RETRIEVER_SETTINGS = frozenset(
    "similarity_top_k filters vector_store_query_mode alpha doc_ids sparse_top_k hybrid_top_k kwargs top_k "
    "similarity_cutoff mode query_mode num_queries".split()
)


class Unstable:
    """Stands in a request for a value that has no stable form: the cache passes such a request by, and counts it."""


def stable(value: Any) -> Any:
    """`value`, or a stand-in that makes the request uncacheable, where it has no stable form."""
    try:
        canonical(value)
    except Exception:  # pydantic raises errors of its own for what it cannot write
        return Unstable()
    return value


def fingerprint(value: Any) -> Any:
    """A hash of `value` (an application's settings are nobody's to read in a cache file), or a stand-in as above."""
    value = stable(value)
    return value if isinstance(value, Unstable) else digest(value)


def model_settings(llm: BaseLLM) -> dict[str, Any]:
    """The model's class, metadata, and every field that can change its answer."""
    llm = wrapped(llm)
    fields = {name: _setting(getattr(llm, name)) for name, field in type(llm).model_fields.items()
              if (name in LEFT_OUT_OF_JSON or not field.exclude) and name not in NEUTRAL_FIELDS}  # fmt: skip
    return {"class": _name(llm), "metadata": llm.metadata.model_dump(mode="json"), "fields": fields}


def wrapped(llm: BaseLLM) -> BaseLLM:
    """The model that answers, behind any SmartCacheLLM."""
    inner = getattr(llm, "cached_llm", None)
    return wrapped(inner) if isinstance(inner, BaseLLM) else llm


def output_class_of(llm: BaseLLM) -> type[BaseModel] | None:
    """The pydantic class that a structured model answers in."""
    chosen = getattr(wrapped(llm), "output_cls", None)
    return chosen if isinstance(chosen, type) and issubclass(chosen, BaseModel) else None


def tool_settings(value: Any) -> Any:
    """`value`, each tool in it as what the model is told of it."""
    if isinstance(value, list | tuple):
        return list(map(tool_settings, value))
    if not isinstance(value, BaseTool):
        return value
    told = value.metadata
    return {"tool": told.name, "description": told.description, "parameters": told.get_parameters_dict()}


def engine_settings(engine: BaseQueryEngine) -> dict[str, Any]:
    """Prompts, model, form of the answer, postprocessors and retriever of a query engine, as far as they show."""
    synthesizer, retriever = synthesizer_of(engine), retriever_of(engine)
    llm = llm_of(engine)
    return {
        "llama_index": llama_index_version,
        "class": _name(engine),
        "prompts": {name: _prompt(prompt, llm) for name, prompt in engine.get_prompts().items()},
        "synthesizer": None if synthesizer is None else _name(synthesizer),
        "llm": None if llm is None else model_settings(llm),
        "output": output_class(engine),
        "postprocessors": [_postprocessor(one) for one in getattr(engine, "_node_postprocessors", None) or []],
        "retriever": None if retriever is None else _retriever(retriever),
    }


def synthesizer_of(engine: BaseQueryEngine) -> BaseSynthesizer | None:
    part: BaseSynthesizer | None = _part(engine, "_response_synthesizer", BaseSynthesizer)
    return part


def retriever_of(engine: BaseQueryEngine) -> BaseRetriever | None:
    part: BaseRetriever | None = _part(engine, "_retriever", BaseRetriever)
    return part


def llm_of(engine: BaseQueryEngine) -> BaseLLM | None:
    part: BaseLLM | None = getattr(synthesizer_of(engine), "_llm", None) or _part(engine, "_llm", BaseLLM)
    return part


def output_class(engine: BaseQueryEngine) -> type[BaseModel] | None:
    """The pydantic class of the engine's answers, where they are not text."""
    chosen = getattr(synthesizer_of(engine), "_output_cls", None) or getattr(llm_of(engine), "output_cls", None)
    return chosen if isinstance(chosen, type) and issubclass(chosen, BaseModel) else None


def streams(engine: BaseQueryEngine) -> bool | None:
    """Whether the engine answers as a stream, None where that does not show."""
    synthesizer = synthesizer_of(engine)
    return None if synthesizer is None else bool(getattr(synthesizer, "_streaming", False))


def index_ids(retriever: BaseRetriever | None) -> list[str]:
    """The ids of the indexes that a retriever reads."""
    return [index.index_id for index in indexes_of(retriever)]


def indexes_of(retriever: BaseRetriever | None) -> list[Any]:
    """The indexes that a retriever reads, those of the retrievers inside it too."""
    own = getattr(retriever, "_index", None)
    inner = [index for part in _inner_retrievers(retriever) for index in indexes_of(part)]
    return [own, *inner] if isinstance(getattr(own, "index_id", None), str) else inner


class Narrowed:
    """Which nodes a retriever keeps to: LlamaIndex tells it when it is made. One that knew all of its index is narrowed
    once more have come, and what it answers is none for who knows them."""

    def __init__(self) -> None:
        self._known: tuple[Any, str | None] = (None, None)

    def to(self, retriever: BaseRetriever | None) -> str | None:
        """The nodes' digest, None where those are all that the index has now; worked out when they have changed."""
        index, ids = getattr(retriever, "_index", None), getattr(retriever, "_node_ids", None)
        known = getattr(getattr(index, "index_struct", None), "nodes_dict", None)
        if not ids or not known:
            return None
        state = len(ids), hash(frozenset(known))
        if state != self._known[0]:
            self._known = state, None if set(ids) >= set(known.values()) else digest(sorted(ids))
        return self._known[1]


def _setting(value: Any) -> Any:
    """A field as it counts: a model inside as its settings, a function of a module by its name there."""
    if isinstance(value, FunctionType | MethodType) and "<" not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, BasePromptTemplate):
        return _prompt(value, None)
    return model_settings(value) if isinstance(value, BaseLLM) else value


def _part(engine: BaseQueryEngine, name: str, kind: type[Any]) -> Any:
    """An engine's part, or that of the engine inside it."""
    part, inner = getattr(engine, name, None), getattr(engine, "_query_engine", None)
    if isinstance(part, kind):
        return part
    return _part(inner, name, kind) if isinstance(inner, BaseQueryEngine) else None


def _prompt(prompt: Any, llm: Any) -> Any:
    return [prompt.get_template(llm=llm), getattr(prompt, "kwargs", None)]


def _postprocessor(postprocessor: Any) -> Any:
    names = [name for name in type(postprocessor).model_fields if name not in NEUTRAL_FIELDS]
    fields = {name: getattr(postprocessor, name) for name in names}
    return [_name(postprocessor), {name: _setting(value) for name, value in fields.items() if _shapes(value)}]


def _retriever(retriever: BaseRetriever) -> Any:
    own = type(retriever).__module__.startswith("llama_index.")
    known = {name for name in vars(retriever) if name.removeprefix("_") in RETRIEVER_SETTINGS}
    plain = {name for name, value in vars(retriever).items() if own and name != "_node_ids" and _is_plain(value)}
    settings = {name: vars(retriever)[name] for name in known | plain}
    return [_name(retriever), settings, list(map(_retriever, _inner_retrievers(retriever)))]


def _inner_retrievers(retriever: Any) -> Iterator[BaseRetriever]:
    for value in vars(retriever).values() if retriever is not None else ():
        parts = value if isinstance(value, list) else [value]
        yield from (part for part in parts if isinstance(part, BaseRetriever))


def _shapes(value: Any) -> bool:
    """Whether a postprocessor's field counts: its own values, the model it asks, what it asks it, and its functions."""
    return _is_plain(value) or isinstance(value, BaseLLM | BasePromptTemplate | FunctionType | MethodType)


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float | bool | Enum | MetadataFilters)


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
