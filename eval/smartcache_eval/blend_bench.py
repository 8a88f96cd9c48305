"""What it costs and what it saves to take chunks away from the beginning: time to first token, the answer's agreement
with that of full prefill, and F1, by the share that is computed anew.

Each question finds the state of its chunks, as after other questions with these; the first one stands where it was
computed, right after the system text.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import TYPE_CHECKING

from smartcache.keys import content_version
from smartcache.layers.prompts import build_prompt
from smartcache.storage.chains import shared_length
from smartcache.types import Chunk, ChunkRef
from smartcache_eval.context_bench import ANSWER_TOKENS, SYSTEM, f1
from smartcache_eval.context_traffic import Retrieved, musique_traffic
from smartcache_eval.figures import Figure
from smartcache_eval.folder import file_in, public_folder

if TYPE_CHECKING:
    from pathlib import Path

    from smartcache.models import Generation, LocalModel

QUESTIONS = 6
SHARES = (0.0, 0.15, 0.3, 1.0)
XQUAD = ("xquad", "raw", "xquad.en.json")
MUSIQUE_DRAWS = 400  # requests in which as many different questions come as there are


@dataclass(frozen=True, slots=True)
class Compared:
    """One question by full prefill, and by each share."""

    full: Generation
    blended: dict[float, Generation]
    answers: tuple[str, ...]


def blend_figures(questions: int = QUESTIONS) -> Iterator[Figure]:
    from smartcache.models import LocalModel

    model, folder = LocalModel.load(), public_folder()
    musique = {request.question: request for request in musique_traffic(folder, MUSIQUE_DRAWS)}
    asked = {"musique": list(musique.values())[:questions], "xquad": xquad_questions(folder, questions)}
    for name, requests in asked.items():
        yield from figures_of(name, [compare(model, request) for request in requests])


def compare(model: LocalModel, request: Retrieved) -> Compared:
    """By full prefill of a model that knows nothing, and by each share of one that holds the state of each chunk."""
    prompt = build_prompt(request.question, request.chunks, system=SYSTEM)
    model.prefix_cache.clear()
    full = model.generate(prompt.turns, max_new_tokens=ANSWER_TOKENS)
    blended: dict[float, Generation] = {}
    for share in (SHARES[0], *SHARES):  # the first one computes the chunks' state, and is not measured
        if not blended:
            model.prefix_cache.clear()
        blended[share] = model.generate(
            prompt.turns, max_new_tokens=ANSWER_TOKENS, reuse="blend", chunks=prompt.chunks, recompute=share
        )
    return Compared(full, blended, request.answers)


def figures_of(name: str, compared: Sequence[Compared]) -> Iterator[Figure]:
    tokens = sum(one.full.prompt_tokens for one in compared) // len(compared)
    conditions = f"{len(compared)} questions, {tokens:,} tokens each; load {os.getloadavg()[0]:.1f}"
    seconds = median(one.full.first_token_seconds for one in compared)
    yield Figure(f"{name}, full prefill: time to first token", 1e3 * seconds, "ms", conditions)
    yield Figure(f"{name}, full prefill: F1", *_f1([(one.full, one) for one in compared]), conditions)
    for share in SHARES:
        label, made = f"{name}, blend {share:.0%} anew", [(one.blended[share], one) for one in compared]
        faster = median(one.full.first_token_seconds / own.first_token_seconds for own, one in made)
        own_seconds = median(own.first_token_seconds for own, _ in made)
        told = f"{faster:.2f} x as fast as full prefill, median of the pairs; {conditions}"
        yield Figure(f"{label}: time to first token", 1e3 * own_seconds, "ms", told)
        reused = sum(own.cached_tokens for own, _ in made) / sum(own.prompt_tokens for own, _ in made)
        yield Figure(f"{label}: tokens reused", 100 * reused, "%", conditions)
        same = mean(own.token_ids == one.full.token_ids for own, one in made)
        alike = mean(shared_length(own.token_ids, one.full.token_ids) / len(one.full.token_ids) for own, one in made)
        told = f"token for token; {alike:.0%} of the tokens before the first that differs; {conditions}"
        yield Figure(f"{label}: the answer of full prefill", 100 * same, "%", told)
        yield Figure(f"{label}: F1", *_f1(made), conditions)


def xquad_questions(folder: Path, questions: int, *, found: int = 4, seed: int = 0) -> list[Retrieved]:
    """Each a question about one paragraph of an article, which comes among `found` of it, in any order."""
    articles = json.loads(file_in(folder, *XQUAD).read_text(encoding="utf-8"))["data"]
    draw, asked = random.Random(seed), list[Retrieved]()
    for article in draw.sample(articles, min(questions, len(articles))):
        paragraphs = draw.sample(article["paragraphs"], min(found, len(article["paragraphs"])))
        one = draw.choice(draw.choice(paragraphs)["qas"])
        chunks = tuple(_chunk(paragraph["context"]) for paragraph in paragraphs)
        asked.append(Retrieved(one["question"], chunks, tuple(answer["text"] for answer in one["answers"])))
    return asked


def _chunk(text: str) -> Chunk:
    return Chunk(ChunkRef(content_version(text), content_version(text)), text)


def _f1(made: Sequence[tuple[Generation, Compared]]) -> tuple[float, str]:
    return 100 * mean(f1(own.text, one.answers) for own, one in made), "%"
