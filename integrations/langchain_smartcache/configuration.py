"""What a model is set to, read at the time of the call: the part of a key that the messages do not hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, SecretBytes, SecretStr

from smartcache.keys import digest

# Fields that cannot change the answer. All that is not on these lists is in the key.
NEUTRAL_FIELDS = frozenset(
    "callbacks callback_manager tags metadata verbose cache name rate_limiter custom_get_token_ids profile "
    "disable_streaming streaming stream_usage timeout request_timeout max_retries max_concurrency "
    "http_client http_async_client client async_client root_client root_async_client".split()
)
# Counts and logs that some models keep of themselves in a field (LangChain's FakeListChatModel does, in `i`).
STATE_FIELDS = frozenset("i calls call_count n_calls num_calls count counter seen received log history".split())
SECRET = re.compile(r"(^|_)(api_?key|key_id|access_key|secret|secret_key|password|token|credentials?|authorization)$")
VOLATILE = re.compile(r"^_|^(last|current|previous)(_|$)|(session|request|run|trace)_?id$")

# Options that say whether an answer is a draw: the cache looks for them under these names.
_SAMPLING = ("temperature", "do_sample", "n")
MAX_DEPTH = 8

Opaque = Callable[[Any], Any]


def variant_of(model: BaseChatModel) -> str:
    """Which model answers, as it is set now. A hash stands for the settings, so that none can be read in a key."""
    return f"langchain:{type(model).__qualname__}:{digest(configuration(model))[:32]}"


def options_of(model: BaseChatModel, stop: list[str] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option of a call, tools as schemas, over the sampling options that the model is set to. No secrets."""
    options = {name: value for name in _SAMPLING if (value := getattr(model, name, None)) is not None}
    options |= {name: value for name, value in given.items() if not SECRET.search(name.lower())}
    if isinstance(options.get("tools"), list | tuple):
        options["tools"] = [schema_of(tool) for tool in options["tools"]]
    return options | ({"stop": stop} if stop else {})


def schema_of(tool: Any) -> Any:
    """What a model is told of a tool; the tool itself where LangChain has no schema for it."""
    if isinstance(tool, Mapping):
        return tool
    try:
        return convert_to_openai_tool(tool)
    except (ValueError, TypeError):
        return tool


def configuration(model: BaseLanguageModel[Any], depth: int = 0) -> dict[str, Any]:
    """A model's class, what it says identifies it, and its fields, in values that are the same in every process.

    A client or another object that has no such form counts by its class and what `as_far_as_told` tells of it.
    """
    return {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "type": getattr(model, "_llm_type", ""),
        "identity": stable(model._identifying_params, as_far_as_told, depth),
        "fields": fields_of(model, as_far_as_told, depth),
    }


def fields_of(model: BaseModel, opaque: Opaque, depth: int = 0) -> dict[str, Any]:
    fields = type(model).model_fields.items()
    kept = [name for name, field in fields if not field.exclude and not SECRET.search(name.lower())]
    values = {name: getattr(model, name, None) for name in kept if name not in NEUTRAL_FIELDS}
    return {name: stable(value, opaque, depth) for name, value in values.items() if not _is_state(name, value)}


def stable(value: Any, opaque: Opaque, depth: int = 0) -> Any:
    """`value` in forms that have one meaning in every process; `opaque` says what stands for any other object."""
    deeper = depth + 1
    if isinstance(value, SecretStr | SecretBytes):
        return None
    if depth > MAX_DEPTH:
        return opaque(value)
    if isinstance(value, Enum) and not isinstance(value, int | str):  # by its name: its value may be any object
        return [f"{type(value).__module__}.{type(value).__qualname__}", value.name]
    if value is None or isinstance(value, bool | int | str | bytes):
        return value
    if isinstance(value, float):
        return value if value == value else "NaN"
    if isinstance(value, Mapping):
        named = [(str(name), part) for name, part in value.items()]
        return {name: stable(part, opaque, deeper) for name, part in named if not SECRET.search(name.lower())}
    if isinstance(value, list | tuple):
        return [stable(part, opaque, deeper) for part in value]
    if isinstance(value, AbstractSet):
        return {digest(stable(part, opaque, deeper)) for part in value}
    if isinstance(value, BaseLanguageModel):
        return configuration(value, deeper)
    if isinstance(value, FunctionType | MethodType | partial):
        return [stable(part, opaque, deeper) for part in _parts_of(value)]
    if isinstance(value, BaseModel):
        return {"class": type(value).__qualname__, "fields": fields_of(value, opaque, deeper)}
    if is_dataclass(value) and not isinstance(value, type):
        named = [(field.name, getattr(value, field.name)) for field in fields(value)]
        parts = {name: part for name, part in named if not _is_state(name, part)}
        return {"class": type(value).__qualname__, "fields": stable(parts, opaque, deeper)}
    return opaque(value)


def as_far_as_told(value: Any) -> list[Any]:
    """An object's class, its `name`, and those of its public attributes that are texts or fractions: which model a
    client speaks to, at which address. Left out are secrets, whole numbers, since objects count in them, and what is
    named as the last or the current of something."""
    owner = value if isinstance(value, type) or hasattr(value, "__qualname__") else type(value)
    name = getattr(value, "name", "")
    told = {} if owner is value else getattr(value, "__dict__", {})
    public = {name: str(part) for name, part in told.items() if isinstance(part, str | float)}
    kept = {name: part for name, part in public.items() if not (VOLATILE.search(name) or SECRET.search(name.lower()))}
    return [f"{getattr(owner, '__module__', '')}.{owner.__qualname__}", name if isinstance(name, str) else "", kept]


def _parts_of(function: FunctionType | MethodType | partial[Any]) -> list[Any]:
    """What a function does, and what it has around it as far as that does not change: texts, objects, functions."""
    if isinstance(function, MethodType):
        return [function.__func__, function.__self__]
    if isinstance(function, partial):
        return ["partial", function.func, function.args, function.keywords]
    around = [_held_in(cell) for cell in function.__closure__ or ()]
    around += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    fixed = [value for value in around if not isinstance(value, int | Mapping | list | AbstractSet)]
    return [f"{function.__module__}.{function.__qualname__}", _code_of(function.__code__), fixed]


def _held_in(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return None


def _code_of(code: CodeType) -> list[Any]:
    """What a function does, so that two of the same name are two."""
    constants = [_code_of(part) if isinstance(part, CodeType) else repr(part) for part in code.co_consts]
    return [code.co_code, list(code.co_names), [text for text in constants if " at 0x" not in text]]


def _is_state(name: str, value: Any) -> bool:
    return name in STATE_FIELDS and isinstance(value, int | list)
