"""LangChain's messages as turns: all of them that can change the answer, and nothing that differs from run to run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, FunctionMessage, SystemMessage, ToolMessage

from smartcache import Turn
from smartcache.types import Role

# What is left out of the key, field by field. All that is not on these lists is in it.
LEFT_OUT = frozenset(
    (
        "id",  # made anew for every message
        "response_metadata",  # how an earlier answer came about: request ids, times, our own note
        "usage_metadata",  # what an earlier answer cost
        "artifact",  # a tool's output for the application, which no model sees
        "example",  # a mark of LangChain's that no provider sends
        "tool_call_chunks",  # the tool calls once more, as they were streamed
        "chunk_position",
        "type",  # the role says it
        "content",  # the text and the blocks say it
    )
)
# What is left out of a content block: the place it had in a stream, and a hint to the provider's own prompt cache.
LEFT_OUT_OF_BLOCKS = frozenset(("index", "cache_control"))

_NOTHING: tuple[Any, ...] = (None, "", [], {})
LONG_LETTERS = 512  # of media in a block: beyond it, a hash stands for the letters
_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "human": "user", "user": "user", "ai": "assistant",
    "assistant": "assistant", "tool": "tool", "function": "tool",
}  # fmt: skip


def turn_of(message: BaseMessage) -> Turn:
    """The turn that stands for a message; a streamed, a plain and a replayed message of one content are one turn.

    A content of one plain text block is the same as the string. Several text blocks are not the same as their texts
    joined, since models frame each; they, and blocks that are not text, are kept in `data` as they are, media by its
    content (an image by URL and the same by its bytes are two). Values that have no stable form are left as they are:
    the cache then passes the request by and counts it.
    """
    text, blocks = _text_and_blocks(message.content)
    data = {name: value for name, value in message if name not in LEFT_OUT and value not in _NOTHING}
    for name in ("tool_calls", "invalid_tool_calls"):
        if name in data:
            data[name] = [{key: call.get(key) for key in ("name", "args", "id")} for call in data[name]]
    extra = _extra(message)
    data = {name: value for name, value in data.items() if name != "additional_kwargs"}
    data |= {"additional_kwargs": extra} if extra else {}
    data |= {"content": blocks} if blocks else {}
    if isinstance(message, ToolMessage) and data.get("status") == "success":
        del data["status"]
    return Turn(_role(message, data), text, data or None)


def _extra(message: BaseMessage) -> dict[Any, Any]:
    """`additional_kwargs` without what is None, and without tool calls that are there in parsed form as well."""
    parsed = isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls)
    given = message.additional_kwargs
    return {name: value for name, value in given.items() if value is not None and not (parsed and name == "tool_calls")}


def _role(message: BaseMessage, data: dict[str, Any]) -> Role:
    """The role; one that we have no word for is a user's, with its own name in `data`."""
    if isinstance(message, ChatMessage):
        known = _ROLES.get(message.role)
        if known == message.role:
            data.pop("role", None)
        return known or "user"
    if isinstance(message, SystemMessage):
        return "system"
    if isinstance(message, ToolMessage | FunctionMessage):
        return "tool"
    if isinstance(message, AIMessage):
        return "assistant"
    if message.type not in ("human", "HumanMessageChunk"):
        data["type"] = message.type
    return "user"


def _text_and_blocks(content: str | list[str | dict[Any, Any]]) -> tuple[str, list[Any] | None]:
    if isinstance(content, str):
        return content, None
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else _stable_block(block) for block in content]
    texts = [block["text"] for block in blocks if _is_plain_text(block)]
    is_one_text = len(blocks) == len(texts) <= 1
    return "\n".join(texts), None if is_one_text else blocks


def _is_plain_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.keys() == {"type", "text"} and block["type"] == "text"


def _stable_block(block: Any) -> Any:
    if not isinstance(block, Mapping):
        return block
    kept = {name: value for name, value in block.items() if name not in LEFT_OUT_OF_BLOCKS}
    if str(kept.get("id") or "").startswith("lc_"):  # LangChain's own, made anew for every block
        del kept["id"]
    if kept.get("type") == "text":
        return {name: value for name, value in kept.items() if name in ("type", "text") or value}
    return {name: _shortened(value) for name, value in kept.items()}


def _shortened(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _shortened(part) for name, part in value.items()}
    if isinstance(value, str) and len(value) > LONG_LETTERS:
        return {"sha256": hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()}
    return value
