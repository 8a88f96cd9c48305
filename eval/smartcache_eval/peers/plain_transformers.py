"""transformers by itself, a model of its own that nothing has changed: what ours is compared with."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import torch
from transformers import AutoModelForCausalLM, DynamicCache


class PlainTransformers:
    """A network with the `DynamicCache` that its users keep a prefix in."""

    def __init__(self, network: Any) -> None:
        self._network = network.eval()
        self._known: Any = None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """On the device and in the dtype that `LocalModel.load(path)` takes."""
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        dtype = torch.float32 if device == "cpu" else "auto"
        network: Any = AutoModelForCausalLM.from_pretrained(path, dtype=dtype)
        return cls(network.to(device))

    def cold_seconds(self, tokens: Sequence[int], new: int) -> float:
        """To the first token over all `tokens`; the state of all but the last `new` of them is kept as the prefix."""
        started = perf_counter()
        cache = DynamicCache(config=self._network.config)
        self._first_token(tokens, cache)
        seconds = perf_counter() - started
        cache.crop(-new)
        self._known = cache
        return seconds

    def warm_seconds(self, new: Sequence[int]) -> float:
        """To the first token over the kept prefix and `new`; the prefix is copied, since a run writes into it."""
        started = perf_counter()
        with torch.inference_mode():
            cache = copy.deepcopy(self._known)
        self._first_token(new, cache)
        return perf_counter() - started

    def decode_seconds(self, tokens: Sequence[int], count: int) -> float:
        """Of each token after the first, in its own `generate`, greedy."""
        stamps = _Stamps()
        ids = torch.tensor([list(tokens)], device=self._network.device)
        length = {"max_new_tokens": count, "min_new_tokens": count}
        self._network.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, streamer=stamps, pad_token_id=0, **length
        )
        _prompt, first, *_, last = stamps.seconds
        return (last - first) / (count - 1)

    def _first_token(self, tokens: Sequence[int], cache: Any) -> int:
        with torch.inference_mode():
            ids = torch.tensor([list(tokens)], device=self._network.device)
            logits = self._network(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1).logits
            return int(logits[0, -1].argmax())


class _Stamps:
    """A streamer that notes when each token came."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def put(self, value: object) -> None:
        self.seconds.append(perf_counter())

    def end(self) -> None:
        """Nothing to flush."""
