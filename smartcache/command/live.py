"""What a demo run looks like in a terminal: every turn as it happens, and one table at the end."""

from __future__ import annotations

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from smartcache.command.figures import COLD_SHARE, Figures, KnowledgeChange, Outcome
from smartcache.command.scenario import Add, Ask, Change, Edit

COLOURS = {"exact": "green", "semantic": "cyan", "model": "yellow"}


class LiveView:
    """Writes plain lines; on a terminal also a moving last line with who is asking and the counts so far."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._counts = dict.fromkeys(COLOURS, 0)

    def phase(self, text: str) -> None:
        self._rest()
        self._print(Text(text, "dim"))

    def asked(self, ask: Ask) -> None:
        counts = ", ".join(f"{count} {layer}" for layer, count in self._counts.items())
        self._wait(f"{ask.user} asks … ({counts})")

    def answered(self, outcome: Outcome) -> None:
        self._rest()
        self._counts[outcome.served_by] += 1
        ask = outcome.ask
        who = (ask.user, "bold"), (f" ({ask.tenant})  ", "dim")
        self._print(Text.assemble(*who, ask.text, (f"  {ask.situation}", "dim italic")))
        self._print(_served(outcome))
        self._print(Text(f"  {_clipped(outcome.reply.answer.text)}"))

    def changed(self, change: KnowledgeChange) -> None:
        self._rest()
        self._print(Text(f"▲ {described(change)}", "bold magenta"))

    def finished(self, figures: Figures, report: str) -> None:
        self._rest()
        self._console.print()
        self._console.print(_table(figures))
        self._console.print(_judgement(figures))
        self._print(Text(f"The same as charts: {report}"))

    def close(self) -> None:
        self._rest()

    def _print(self, line: Text) -> None:
        # Plain lines stay whole, so that they can be searched; a terminal wraps them between words.
        self._console.print(line, soft_wrap=not self._console.is_terminal)

    def _wait(self, text: str) -> None:
        if self._console.is_terminal:
            self._status = self._console.status(text)
            self._status.start()

    def _rest(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def described(row: KnowledgeChange) -> str:
    """One line about a change: what happened to which document, and what that did to stored answers."""
    kinds = (("added", row.added), ("changed", row.changed), ("removed", row.removed))
    sections = ", ".join(f"{count} {'section' if count == 1 else 'sections'} {kind}" for kind, count in kinds if count)
    what_now = "must be searched for again" if row.added else "stale"
    answers = f"{row.invalidated} stored {'answer' if row.invalidated == 1 else 'answers'} {what_now}"
    return f"{row.change.path} {_verb(row.change)}: {sections}; {answers}"


def _verb(change: Change) -> str:
    if isinstance(change, Edit):
        return "was edited"
    return "was added" if isinstance(change, Add) else "was deleted"


def _served(outcome: Outcome) -> Text:
    reply, answer = outcome.reply, outcome.reply.answer
    line = Text("  ")
    line.append(f"{outcome.served_by:<8}", f"bold {COLOURS[outcome.served_by]}")
    if outcome.served_by == "model":
        line.append(f" {reply.cached_tokens:>4} of {reply.prompt_tokens:>4} prompt tokens reused, first token ", "dim")
    elif answer.similarity is not None and outcome.served_by == "semantic":
        line.append(f" similarity {answer.similarity:.2f}, no token computed, answer ", "dim")
    else:
        line.append(" no token computed, answer ", "dim")
    line.append(f"after {milliseconds(reply.first_token_seconds * 1000)}", "dim")
    if outcome.verdict != "right":
        line.append(f"  {outcome.verdict.upper()} ANSWER", "bold red")
    return line


def _table(figures: Figures) -> Table:
    table = Table(title="What the cache did", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    sections = (_requests(figures), _token_rows(figures), _times(figures), _faults(figures))
    for section in sections:
        for row in section:
            table.add_row(*row)
        table.add_section()
    return table


def _requests(figures: Figures) -> list[tuple[str, str, str]]:
    return [
        ("requests", str(len(figures.outcomes)), f"{figures.shareable} could share an earlier answer"),
        ("  exact", str(figures.count(served_by="exact")), "the same dialogue, letter by letter"),
        ("  semantic", str(figures.count(served_by="semantic")), "the same question in other words"),
        ("  model", str(figures.count(served_by="model")), "answered by the language model"),
    ]


def _token_rows(figures: Figures) -> list[tuple[str, str, str]]:
    reused, whole = figures.reused_tokens, figures.prompt_tokens
    share = f"{reused / whole:.0%} of them" if whole else ""
    return [
        ("prompt tokens computed", f"{whole - reused:,}", f"of {whole:,} in all prompts to the model"),
        ("prompt tokens reused", f"{reused:,}", share),
    ]


def _times(figures: Figures) -> list[tuple[str, str, str]]:
    cold, warm, hit = figures.first_token_cold_ms, figures.first_token_warm_ms, figures.hit_ms
    return [
        ("first token, cold", milliseconds(cold), f"median; less than {COLD_SHARE:.0%} of the prompt reused"),
        ("first token, warm", milliseconds(warm), "median of the model's other answers"),
        ("answer from the cache", milliseconds(hit), "median of exact and semantic"),
    ]


def _faults(figures: Figures) -> list[tuple[str, str | Text, str]]:
    wrong, stale = figures.count(verdict="wrong"), figures.count(verdict="stale")
    return [
        ("invalidated", str(figures.invalidated), "stale, or to be searched for again, after the changes"),
        ("wrong answers served", _alarming(wrong), "judged by the script, which the cache does not see"),
        ("stale answers served", _alarming(stale), "the same"),
        ("seconds", f"{figures.seconds:.0f}", "with loading"),
    ]


def _alarming(count: int) -> Text:
    return Text(str(count), "bold red" if count else "bold green")


def _judgement(figures: Figures) -> Text:
    if figures.is_faultless:
        share = f"{figures.hits} of {len(figures.outcomes)} answers came from the cache"
        return Text(f"{share}, none wrong, none stale.", "green")
    return Text("The cache served answers that were not right for their question.", "bold red")


def milliseconds(value: float | None) -> str:
    return "n/a" if value is None else f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _clipped(text: str, limit: int = 150) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
