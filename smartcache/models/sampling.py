"""How the next token is chosen: the greedy choice, or a draw under the options that transformers has words for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import inf
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

if TYPE_CHECKING:
    from transformers import GenerationConfig

_RANGES: dict[str, tuple[type, Callable[[Any], bool], str]] = {
    "temperature": (
        Real,
        lambda value: value == 0 or 1e-4 <= value < inf,
        "0, for the likeliest token, or from 1e-4 on",
    ),
    "top_k": (Integral, lambda value: value >= 0, "a whole number, 0 for all"),
    "top_p": (Real, lambda value: 0 < value <= 1, "above 0 and at most 1"),
    "min_p": (Real, lambda value: 0 <= value <= 1, "from 0 to 1"),
    "repetition_penalty": (Real, lambda value: 1e-4 <= value <= 1e4, "from 1e-4 to 1e4, 1 for none"),
    "seed": (Integral, lambda value: -(2**63) <= value < 2**64, "a whole number from -2**63 to 2**64 - 1"),
}


@dataclass(frozen=True, slots=True)
class Sampling:
    """The options of one generation, under the names and in the order of transformers' `generate`.

    Without `temperature`, `top_k`, `top_p`, `min_p` or `do_sample=True` the likeliest token is taken, whatever the
    checkpoint recommends; so it is with `temperature=0`. With one of them, the others come from the checkpoint's
    generation config, and `seed` makes the draw the same every time.
    """

    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> Self:
        """From keyword arguments; an option that does not exist raises TypeError."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise TypeError(f"unknown option {', '.join(unknown)}: the sampling options are {', '.join(known)}")
        options = {name: value for name, value in options.items() if value is not None}
        for name, (kind, fits, words) in _RANGES.items():
            value = options.get(name, 1)
            if not isinstance(value, kind) or isinstance(value, bool) or not fits(value):
                raise ValueError(f"{name} is {value!r}: it must be {words}")
        if not isinstance(options.get("do_sample", True), bool):
            raise ValueError(f"do_sample is {options['do_sample']!r}: it must be True or False")
        if options.get("do_sample") and options.get("temperature") == 0:
            raise ValueError("temperature is 0, which takes the likeliest token, and do_sample is True: leave out one")
        # as transformers takes them, which refuses a whole number or one of numpy's
        for name, (kind, _, _) in _RANGES.items():
            if name in options:
                options[name] = (int if kind is Integral else float)(options[name])
        return cls(**options)

    @property
    def draws(self) -> bool:
        if self.do_sample is not None:
            return self.do_sample
        asked = (self.temperature, self.top_k, self.top_p, self.min_p)
        return self.temperature != 0 and any(option is not None for option in asked)

    def chooser(self, defaults: GenerationConfig, device: torch.device) -> TokenChooser:
        """The rule for one generation on `device`."""
        return TokenChooser(self._processors(defaults), self._generator(device) if self.draws else None, self.draws)

    def _processors(self, defaults: GenerationConfig) -> LogitsProcessorList:
        def value(name: str, neutral: float) -> Any:
            given = getattr(self, name)
            default = getattr(defaults, name, None)
            return given if given is not None else default if default is not None else neutral

        rules: list[Any] = []
        if (penalty := value("repetition_penalty", 1.0)) != 1.0:
            rules.append(RepetitionPenaltyLogitsProcessor(penalty))
        if not self.draws:
            return LogitsProcessorList(rules)
        if (temperature := value("temperature", 1.0)) != 1.0:
            rules.append(TemperatureLogitsWarper(temperature))
        if top_k := value("top_k", 50):
            rules.append(TopKLogitsWarper(top_k))
        if (top_p := value("top_p", 1.0)) < 1.0:
            rules.append(TopPLogitsWarper(top_p))
        if min_p := value("min_p", 0.0):
            rules.append(MinPLogitsWarper(min_p))
        return LogitsProcessorList(rules)

    def _generator(self, device: torch.device) -> torch.Generator:
        generator = torch.Generator(device)
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        return generator


@dataclass(frozen=True, slots=True)
class TokenChooser:
    """Chooses token ids one after the other; each generation has its own."""

    processors: LogitsProcessorList
    generator: torch.Generator | None
    draws: bool

    def __call__(self, tokens: list[int], logits: torch.Tensor) -> int:
        """The token after `tokens`; `logits` has shape (1, vocabulary)."""
        with torch.inference_mode():
            if self.processors:
                seen: Any = torch.tensor([tokens], device=logits.device)
                scores: Any = logits
                logits = self.processors(seen, scores)
            if not self.draws:
                return int(logits.argmax(dim=-1))
            return int(torch.multinomial(logits.softmax(dim=-1), 1, generator=self.generator))
