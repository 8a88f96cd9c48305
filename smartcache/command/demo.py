"""The demo's run: a support assistant, a knowledge base that changes, and a script that knows what may be shared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Protocol

from smartcache import Embedder, SmartCache, Turn
from smartcache.command.assistant import SENTENCE_ENDS, SMALL_MODEL, Assistant, WritingModel, loading_line
from smartcache.command.documents import Documents
from smartcache.command.figures import Figures, KnowledgeChange, Outcome
from smartcache.command.scenario import Ask, Change, Scenario, copy_knowledge_base
from smartcache.command.truth import Truth

MAX_NEW_TOKENS = 64


class View(Protocol):
    """Is told what happens while it happens."""

    def phase(self, text: str) -> None: ...
    def asked(self, ask: Ask) -> None: ...
    def answered(self, outcome: Outcome) -> None: ...
    def changed(self, change: KnowledgeChange) -> None: ...


class Demo:
    """Plays a scenario on a real cache, once."""

    def __init__(
        self, scenario: Scenario, cache: SmartCache, model: WritingModel, documents: Documents, view: View
    ) -> None:
        self._scenario, self._cache, self._documents, self._view = scenario, cache, documents, view
        self._assistant = Assistant(
            cache, model, documents, system=scenario.system, max_new_tokens=MAX_NEW_TOKENS, stop=SENTENCE_ENDS
        )
        self._truth = Truth(scenario.classes)
        self._conversations: dict[str, list[Turn]] = {}

    def run(self) -> Figures:
        started = perf_counter()
        rows = tuple(self._ask(s) if isinstance(s, Ask) else self._change(s) for s in self._scenario.steps)
        return Figures(rows, perf_counter() - started)

    def _ask(self, ask: Ask) -> Outcome:
        self._view.asked(ask)
        conversation = self._conversations.setdefault(ask.conversation, [])
        conversation.append(Turn("user", ask.text))
        number = self._truth.asked(ask)
        could_share = self._truth.may_share(number)
        # The number tells later which turn an answer comes from; the cache keeps it and does not look at it.
        reply = self._assistant.reply(conversation, scope=ask.tenant, payload={"turn": number})
        conversation.append(Turn("assistant", reply.answer.text))
        outcome = Outcome(ask, reply, self._truth.judge(number, reply.answer.payload["turn"]), could_share)
        self._view.answered(outcome)
        return outcome

    def _change(self, change: Change) -> KnowledgeChange:
        change.apply(self._documents.folder)
        update = self._documents.refresh()
        if update is None:
            raise ValueError(f"the script's change of {change.path} changes no section")
        self._truth.changed({chunk.ref.id for chunk in (*update.added, *update.changed)} | update.removed)
        invalidated = self._cache.update_knowledge(update)
        row = KnowledgeChange(change, len(update.added), len(update.changed), len(update.removed), invalidated)
        self._view.changed(row)
        return row


def run_demo(
    scenario: Scenario,
    view: View,
    *,
    load_embedder: Callable[[], Embedder],
    load_model: Callable[[], WritingModel],
) -> Figures:
    """Load what a run needs, telling `view`, and play `scenario` on a copy of the knowledge base."""
    started = perf_counter()
    view.phase("Loading the sentence embedder …")
    embedder = load_embedder()
    view.phase(loading_line())
    model = load_model()
    with TemporaryDirectory(prefix="smartcache-demo-") as folder, SmartCache.open(embedder=embedder) as cache:
        copy_knowledge_base(Path(folder))
        view.phase("Reading the knowledge base …")
        documents = Documents(folder, embedder, source="knowledge base")
        view.phase(f"{len(documents.chunks)} sections of {len(documents.files)} documents are ready to be searched.")
        view.phase(f"{SMALL_MODEL}: what is shown here is the cache, not its answers.")
        figures = Demo(scenario, cache, model, documents, view).run()
    return Figures(figures.rows, perf_counter() - started)
