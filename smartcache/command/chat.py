"""Talking to a local model over a folder of documents, with the cache on and its part in every answer shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import TextIOWrapper

from rich.console import Console
from rich.text import Text

from smartcache import Answer, Event, KnowledgeUpdate, SmartCache, Turn
from smartcache.command.assistant import Assistant, Reply, WritingModel
from smartcache.command.documents import Documents, UnreadableDocument, printable
from smartcache.command.kept import counted
from smartcache.command.live import COLOURS, milliseconds

SYSTEM = "You answer questions about a collection of documents. Answer in a few sentences, using only these passages."
MAX_NEW_TOKENS = 200
LEAVING = ("/quit", "/exit", "quit", "exit")
HELP = "/new begins a new conversation, /stats shows counts, /quit leaves"

# Why the model was asked, where the word itself says too little; README, "Why the model was asked", has them all.
IN_WORDS = {
    "far": "nothing stored is near enough: far",
    "facts": "differs in a name, number or quoted word: facts",
    "polarity": "one says the opposite: polarity",
    "context": "something else was said before: context",
    "stale": "a document changed: stale",
    "too_long": "longer than the embedder reads: too_long",
}


class LastReason:
    """An `on_event` hook that keeps why the last request had no hit."""

    def __init__(self) -> None:
        self._reason = "new"

    def __call__(self, event: Event) -> None:
        if event.kind in ("miss", "bypass"):
            self._reason = event.reason

    @property
    def in_words(self) -> str:
        return IN_WORDS.get(self._reason, self._reason)


class Chat:
    """One user, one folder. Every edit of the folder is noticed before the next question is answered, and begins a new
    conversation. `reason` is told of what happens in `cache`, to say why the model answers.

    `documents.source` must be the folder's own, so that folders which share a cache file share no answers.
    """

    def __init__(
        self,
        cache: SmartCache,
        model: WritingModel,
        documents: Documents,
        console: Console,
        reason: LastReason,
        *,
        scope: str = "",
    ) -> None:
        self._cache, self._documents, self._console, self._scope = cache, documents, console, scope
        self._reason = reason
        self._assistant = Assistant(
            cache,
            model,
            documents,
            system=SYSTEM,
            max_new_tokens=MAX_NEW_TOKENS,
            options={"documents": documents.source},
        )
        self._conversation: list[Turn] = []

    def talk(self, lines: Iterator[str]) -> None:
        """Answers line by line until the lines end or one says to leave."""
        try:
            for line in map(str.strip, lines):
                if line.casefold() in LEAVING:
                    return
                if line.startswith("/"):
                    self._obey(line)
                elif line:
                    self._answer(line)
        except KeyboardInterrupt:  # Ctrl-C while the model writes: the answer is dropped, what is stored stays
            self._write("\n")

    def _obey(self, command: str) -> None:
        if command == "/new":
            self._conversation.clear()
            self._note("A new conversation.")
        elif command == "/stats":
            self._show_stats()
        else:
            self._note(f"There is no command {command.split()[0]}: {HELP}.")

    def _answer(self, question: str) -> None:
        self._look_at_folder()
        asked = [*self._conversation, Turn("user", question)]
        try:
            reply = self._assistant.reply(asked, scope=self._scope, on_piece=self._write)
        except ValueError as error:  # the conversation has outgrown the model's context
            self._note(f"No answer: {error}. /new begins a new conversation.")
            return
        self._write("\n" if reply.answer.served_by == "model" else f"{reply.answer.text}\n")
        self._conversation = [*asked, Turn("assistant", reply.answer.text)]
        self._console.print(_origin(reply, self._reason.in_words), soft_wrap=True)

    def _look_at_folder(self) -> None:
        try:
            update = self._documents.refresh()
        except UnreadableDocument as error:
            self._note(f"{error}. Until then its last readable text is used.")
            return
        if update is not None:
            try:
                stale = self._cache.update_knowledge(update)
            except OSError as error:  # this session has it all the same, and the next edit writes both
                self._note(f"{_changes(update)}; {error}")
                return
            news = f"{_changes(update)}; {counted(stale, 'stored answer')} stale or to be searched for again"
            if self._conversation:  # it repeats the old text, and a model believes what it said before
                self._conversation.clear()
                news += "; a new conversation begins"
            self._note(news)

    def _show_stats(self) -> None:
        stats = self._cache.stats()
        self._note(
            f"{counted(stats.requests, 'request')}: {stats.exact} exact, {stats.semantic} semantic, "
            f"{stats.requests - stats.hits} by the model; {counted(stats.entries, 'stored answer')}, "
            f"{stats.bytes:,} bytes"
        )

    def _write(self, piece: str) -> None:
        self._console.print(Text(piece), end="", soft_wrap=True)

    def _note(self, text: str) -> None:
        self._console.print(Text(printable(text), "dim"), soft_wrap=True)


def announce(cache: SmartCache, documents: Documents) -> None:
    """Tell a cache that may be older than the folder's latest edits which sections are there now."""
    there = {chunk.ref.id for chunk in documents.chunks}
    gone = cache.known_chunks(documents.source) - there
    cache.update_knowledge(KnowledgeUpdate(changed=documents.chunks, removed=gone, source=documents.source))


def typed_lines(console: Console, prompt: str = "> ") -> Iterator[str]:
    """What a user types, or what is piped in, until it ends or Ctrl-C."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a byte that is no text is a mistyped sign, not the end
    while True:
        try:
            yield console.input(prompt) if console.is_terminal else input()
        except (EOFError, KeyboardInterrupt):
            return


def _origin(reply: Reply, reason: str) -> Text:
    answer = reply.answer
    line = Text("  ", "dim")
    line.append(answer.served_by, COLOURS[answer.served_by])
    if answer.served_by == "model":
        line.append(f" ({reason})", "dim")
        line.append(f" · {reply.cached_tokens} of {reply.prompt_tokens} prompt tokens reused", "dim")
        line.append(f" · first token after {milliseconds(reply.first_token_seconds * 1000)}", "dim")
    else:
        line.append(f" · similarity {answer.similarity or 0:.2f}", "dim")
        line.append(f" · after {milliseconds(reply.first_token_seconds * 1000)}", "dim")
    line.append(f" · {_sources(answer)}", "dim")
    return line


def _sources(answer: Answer) -> str:
    names = sorted({ref.id.partition("#")[0] for ref in answer.evidence or ()})
    return ", ".join(names) or "no document"


def _changes(update: KnowledgeUpdate) -> str:
    counts = (("added", update.added), ("changed", update.changed), ("removed", update.removed))
    return ", ".join(f"{counted(len(sections), 'section')} {kind}" for kind, sections in counts if sections)
