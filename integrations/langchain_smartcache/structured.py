"""A chain that a model made around itself, with another model in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableBinding, RunnableParallel, RunnableSequence


def with_model_replaced(
    chain: Runnable[Any, Any], kind: type[BaseChatModel], replaced: Callable[[BaseChatModel], BaseChatModel]
) -> Runnable[Any, Any]:
    """`chain` with every model of `kind` in it replaced; its sequences, branches and bound options stay."""
    if isinstance(chain, kind):
        return replaced(chain)
    if isinstance(chain, RunnableBinding):
        return chain.model_copy(update={"bound": with_model_replaced(chain.bound, kind, replaced)})
    if isinstance(chain, RunnableSequence):
        return RunnableSequence(*(with_model_replaced(step, kind, replaced) for step in chain.steps))
    if isinstance(chain, RunnableParallel):
        steps = {name: with_model_replaced(step, kind, replaced) for name, step in chain.steps__.items()}
        return RunnableParallel(steps)
    return chain
