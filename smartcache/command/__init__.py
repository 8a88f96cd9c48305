"""The command `smartcache`: a demo, a chat over a folder of documents, and a look into a cache file."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from smartcache import SmartCacheError

if TYPE_CHECKING:
    from smartcache import Embedder, PrefixCache
    from smartcache.command.assistant import WritingModel
    from smartcache.command.warm import WarmModel


class OneLineErrors(TyperGroup):
    """Commands whose expected errors are one line on standard error and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # who reads our output has seen enough
        except (SmartCacheError, OSError) as error:
            typer.echo(f"smartcache: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(cls=OneLineErrors, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _tell_version(asked: bool) -> None:
    if asked:
        try:
            typer.echo(f"smartcache {metadata.version('smartcache-llm')}")
        except metadata.PackageNotFoundError:
            typer.echo("smartcache, from a checkout that is not installed")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """One cache for LLM applications that knows the conversation, the knowledge base and the KV state."""


@app.command()
def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    html: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("smartcache-demo.html"),
    seed: Annotated[int, typer.Option(help="Interleave the conversations in another way.")] = 0,
) -> None:
    """A support assistant answers forty questions; exit code 1 if any answer was wrong or stale."""
    from smartcache.command.demo import run_demo
    from smartcache.command.live import LiveView
    from smartcache.command.report import report
    from smartcache.command.scenario import shipped_scenario

    if not html.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {html.parent} for the report")
    view = LiveView(Console(stderr=as_json))
    try:
        scenario = shipped_scenario().arranged(seed)
        figures = run_demo(scenario, view, load_embedder=load_embedder, load_model=load_model)
    finally:
        view.close()
    html.write_text(report(figures), encoding="utf-8")
    view.finished(figures, str(html))
    if as_json:
        print(json.dumps(figures.as_json()))
    if not figures.is_faultless:
        raise typer.Exit(1)


@app.command()
def chat(
    folder: Annotated[Path, typer.Argument(help="A folder of Markdown and text files.")],
    cache: Annotated[Path | None, typer.Option(help="Keep the answers in this file.")] = None,
    model: Annotated[str | None, typer.Option(help="A Hugging Face id or folder instead of the bundled model.")] = None,
    scope: Annotated[str, typer.Option(help="Share answers only within this scope.")] = "",
) -> None:
    """Talk to a local model over a folder of documents, with the cache on."""
    from smartcache import SmartCache
    from smartcache.command.assistant import SMALL_MODEL, loading_line
    from smartcache.command.chat import HELP, Chat, LastReason, announce, typed_lines
    from smartcache.command.documents import Documents, check_folder
    from smartcache.command.kept import trouble_told

    console = Console()
    check_folder(folder)
    embedder = load_embedder()
    documents = Documents(folder, embedder, source=str(folder.resolve()))
    if cache is not None:
        with trouble_told(cache, "pass another --cache"):  # a damaged file is refused, not replaced
            SmartCache.open(cache, embedder=embedder, strict=True).close()
    reason = LastReason()
    with SmartCache.open(cache, embedder=embedder, on_event=reason) as answers:
        announce(answers, documents)
        console.print(loading_line(model), style="dim")
        language_model = load_model(model)
        if model is None:
            console.print(f"{SMALL_MODEL}; --model takes another one.", style="dim", soft_wrap=True)
        console.print(f"{len(documents.chunks)} sections are ready. {HELP}.", style="dim", soft_wrap=True)
        Chat(answers, language_model, documents, console, reason, scope=scope).talk(typed_lines(console))


@app.command()
def stats(file: Annotated[Path, typer.Argument(help="A cache file.")]) -> None:
    """Say what a cache file holds, scope by scope."""
    from smartcache.command.kept import described

    typer.echo(described(file))


@app.command()
def forget(
    file: Annotated[Path, typer.Argument(help="A cache file.")],
    scope: Annotated[str | None, typer.Option(help="The answers of this scope; '' is the empty scope.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="The answers of every scope.")] = False,
) -> None:
    """Remove the answers of one scope from a cache file, or all; exit code 2 if the scope has none."""
    from smartcache.command.kept import counted, forgotten

    typer.echo(f"{counted(forgotten(file, scope, everything=everything), 'answer')} forgotten")


@app.command()
def shadow(
    file: Annotated[Path, typer.Argument(help="A cache file that was opened with shadow=True.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Say what thresholds would have served of the traffic that went by in shadow mode, and where the model agreed."""
    from smartcache.command.shadow import read

    report = read(file)
    typer.echo(json.dumps(report.as_json()) if as_json else report.text())


@app.command()
def explain(
    file: Annotated[Path | None, typer.Argument(help="A cache file.")] = None,
    ask: Annotated[str | None, typer.Option(help="The question to ask of the file.")] = None,
    turn: Annotated[list[str] | None, typer.Option(help='A turn before it, as "user: …" or "assistant: …".')] = None,
    scope: Annotated[str | None, typer.Option(help="Of this scope alone; '' is the empty scope.")] = None,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two texts, asked and stored; “ | ” after a turn before."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How many stored questions.")] = 3,
    max_wrong: Annotated[
        float, typer.Option(min=0.0, max=0.99, help="The bound that CalibratedPolicy keeps: wrong answers per hit.")
    ] = 0.012,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Say why a question would be answered from a cache file, or not, by the default policy; exit code 1 if the scope
    has no answers."""
    from smartcache import CalibratedPolicy
    from smartcache.command.explain import NoAnswers, as_json_of, explained, explained_pair, show

    policy = CalibratedPolicy(max_wrong)
    if pair and not file and not ask:
        found = explained_pair(*pair, load_embedder(), policy)
    elif file and ask and not pair:
        try:
            found = explained(file, ask, turn or [], scope, load_embedder, count, policy)
        except NoAnswers as error:
            typer.echo(f"smartcache: {error}", err=True)
            raise typer.Exit(1) from None
    else:
        raise typer.BadParameter('say what to explain: FILE --ask "question", or --pair "asked" "stored"')
    if as_json:
        print(json.dumps(as_json_of(found)))
    else:
        show(found, Console())


@app.command()
def warm(
    kv: Annotated[Path, typer.Option(help="The folder to keep the state in: PrefixCache(disk_path=…) reads it.")],
    cache: Annotated[Path | None, typer.Argument(help="A cache file: its system prompts, the most frequent.")] = None,
    file: Annotated[Path | None, typer.Option(help="A system prompt as text, or one a line in a .jsonl.")] = None,
    scope: Annotated[str, typer.Option(help="Who may use the prompts of --file; '' is everyone.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many prompts of the cache file.")] = 10,
    model: Annotated[str | None, typer.Option(help="A Hugging Face id or folder instead of the bundled model.")] = None,
) -> None:
    """Compute the model's state for the system prompts seen most, ahead of their next use."""
    from smartcache.command.warm import kept_on_disk, prompts_to_warm, warmed

    prompts = prompts_to_warm(cache, file, scope, limit)
    with kept_on_disk(kv) as prefixes:
        warmed(load_warm_model(model, prefixes), prompts, typer.echo)


@app.command()
def lint(
    prompts: Annotated[
        list[str], typer.Argument(help="Templates, logs as JSON lines, saved LangChain prompts, or module:attribute.")
    ],
    ignore: Annotated[list[str] | None, typer.Option(help="A code to leave out; may be given again.")] = None,
    max_findings: Annotated[int, typer.Option(min=0, help="How many findings are no failure yet.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Name what keeps prompts from sharing their beginning, and what to do; exit code 1 if there is more of it than
    --max-findings."""
    from smartcache.command.lint import as_json_of, show
    from smartcache.lint import REMEDIES, report

    if unknown := sorted(set(ignore or []) - set(REMEDIES)):
        raise typer.BadParameter(f"there is no code {unknown[0]!r}: {', '.join(sorted(REMEDIES))}")
    found = [report(one, ignore=ignore or []) for one in prompts]
    if as_json:
        print(json.dumps(as_json_of(found)))
    else:
        show(found, Console())
    if sum(len(one.findings) for one in found) > max_findings:
        raise typer.Exit(1)


def load_embedder() -> Embedder:
    """The bundled sentence embedder."""
    from smartcache.models import default_embedder

    return default_embedder()


def load_model(name: str | None = None) -> WritingModel:
    """The bundled language model, or another one."""
    from smartcache.models import LocalModel

    return LocalModel.load(name)


def load_warm_model(name: str | None, prefix_cache: PrefixCache[Any]) -> WarmModel:
    """As `load_model`, around a prefix cache."""
    from smartcache.models import LocalModel

    return LocalModel.load(name, prefix_cache=prefix_cache)


def main() -> None:
    """Runs the command."""
    app()


if __name__ == "__main__":
    main()
