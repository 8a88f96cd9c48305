"""Saying that an answer was wrong with what a caller holds: the messages, and the message that came back."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableBinding

from langchain_smartcache.replay import MARK
from smartcache import Answer
from smartcache.explained import Explained


class BoundChat(RunnableBinding[LanguageModelInput, AIMessage]):
    """A ChatSmartCache with options bound to it, by which it is also told what was wrong."""

    @classmethod
    def lc_id(cls) -> list[str]:
        """Serialised as what it extends."""
        return [*cls.get_lc_namespace(), RunnableBinding.__name__]

    def report_wrong(self, input: LanguageModelInput, message: BaseMessage, **kwargs: Any) -> bool:
        """As `ChatSmartCache.report_wrong`, with what is bound."""
        return bool(cast(Any, self.bound).report_wrong(input, message, **{**self.kwargs, **kwargs}))

    def explain(self, input: LanguageModelInput, **kwargs: Any) -> tuple[Explained, ...]:
        """As `ChatSmartCache.explain`, with what is bound."""
        found: tuple[Explained, ...] = cast(Any, self.bound).explain(input, **{**self.kwargs, **kwargs})
        return found


def served(message: BaseMessage) -> Answer:
    """The answer that a message was made of."""
    mark = message.response_metadata.get(MARK) if isinstance(message, BaseMessage) else None
    if not isinstance(mark, dict):
        raise TypeError(
            f'pass the message that the model gave, with its response_metadata["{MARK}"], not {type(message).__name__}'
        )
    return Answer(str(message.text), served_by=mark["served_by"], entry_id=mark.get("entry_id"))
