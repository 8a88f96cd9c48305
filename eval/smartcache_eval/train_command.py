"""The command `train`: weights for the vectors of an embedder, from the parts for choosing of the public data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smartcache import Embedder, SmartCacheError
from smartcache_eval.evaluation_command import Seed, Vectors, load_embedder
from smartcache_eval.folder import public_folder
from smartcache_eval.vectors import KnownVectors


def register(commands: typer.Typer) -> None:
    """Adds this command to the others."""
    commands.command()(train)


def train(
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    embedder: Annotated[
        Path | None, typer.Option(help="The folder of a sentence-transformers model; else the bundled one.")
    ] = None,
    seed: Seed = 0,
    vectors: Vectors = None,
) -> None:
    """Learn what a question leans on, and how sure a pair is: some minutes, from the public data ($SMARTCACHE_DATA).

    Use the file with  SmartCache.open(embedder=…, policy=CalibratedPolicy(weights=FILE)).
    """
    try:
        from smartcache_eval.training.learning import learn

        learn(public_folder(), KnownVectors(_embedder(embedder), vectors), out, seed=seed, tell=typer.echo)
    except (SmartCacheError, OSError, ValueError) as error:
        typer.echo(f"smartcache-eval: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from error
    typer.echo(f"{out}: {out.stat().st_size:,} bytes")


def _embedder(folder: Path | None) -> Embedder:
    if folder is None:
        return load_embedder()
    from smartcache.models import SentenceEmbedder

    return SentenceEmbedder(folder)
