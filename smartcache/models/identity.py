"""What makes KV state valid, in one string: equal for equal weights on any machine, another one for anything else."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# names of what a configuration says about its own file rather than about the model
_NOT_THE_MODEL = ("_name_or_path", "transformers_version", "architectures")
_SAMPLE = 64


def fingerprint(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, cache_class: str) -> str:
    """A hash of weights and adapters as they are in memory now, dtype, attention implementation, configuration, cache
    class and tokenizer.

    Reads every weight once (tenths of a second per gigabyte); weights that are changed in place afterwards need a new
    fingerprint.
    """
    digest = hashlib.sha256()
    attention = str(model.config._attn_implementation)
    for part in (_configuration(model), attention, cache_class, _adapters(model), _tokenizer(tokenizer)):
        digest.update(f"{len(part)}:{part}".encode())
    with torch.inference_mode():
        for name, tensor in sorted(model.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(_content(tensor))
    return digest.hexdigest()


def _configuration(model: PreTrainedModel) -> str:
    config = {key: value for key, value in model.config.to_dict().items() if key not in _NOT_THE_MODEL}
    return json.dumps(config, sort_keys=True, default=str)


def _adapters(model: PreTrainedModel) -> str:
    """Which adapters act and how strongly; their weights are among the model's."""
    settings = getattr(model, "peft_config", None)
    if not settings:
        return ""
    active: Any = getattr(model, "active_adapters", None)
    return f"{settings} {active() if callable(active) else active}"


def _tokenizer(tokenizer: PreTrainedTokenizerBase) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return str(backend.to_str())
    return json.dumps(tokenizer.get_vocab(), sort_keys=True)


def _content(tensor: torch.Tensor) -> bytes:
    """The sum of each row's bit patterns, and some values as they are: no single weight can change unnoticed."""
    if not tensor.numel():
        return b""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    bits = tensor.detach().contiguous().view(whole)
    rows = bits.reshape(bits.shape[0] if bits.dim() > 1 else 1, -1)
    sums = rows.sum(dim=1, dtype=torch.int64)
    step = max(1, bits.numel() // _SAMPLE)
    sample = bits.reshape(-1)[::step].to(torch.int64)
    return torch.cat([sums, sample]).cpu().numpy().tobytes()
