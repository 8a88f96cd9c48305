"""Linear layers for a CPU: weights laid out once as its matrix kernels read them; few rows then cost half as much."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedModel

# The layout depends on how many rows are expected. Measured from 1 to 1,056 rows: this one is the best, or within 3 %.
_ROWS = 64
_PROBE_TOKENS = 8
_NOT_EQUAL = 1e-4


class PackedLinear(nn.Module):
    """Linear layers side by side, of one input, with their weights in oneDNN's layout; `silu`, `plus` and `times` do in
    the same pass what would follow.

    Rows are float32 of shape (…, in), on the CPU. There is nothing to train here, and nothing to save.
    """

    def __init__(self, *linear: nn.Linear) -> None:
        super().__init__()
        weights = torch.cat([layer.weight.detach() for layer in linear])
        biases = [torch.zeros(layer.out_features) if layer.bias is None else layer.bias.detach() for layer in linear]
        has_bias = any(layer.bias is not None for layer in linear)
        self._weight: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(weights, _ROWS)
        self._bias = torch.cat(biases) if has_bias else None

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self._pointwise(rows, "none")

    def silu(self, rows: torch.Tensor) -> torch.Tensor:
        return self._pointwise(rows, "swish")

    def plus(self, rows: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return self._binary(rows, other, "add")

    def times(self, rows: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return self._binary(rows, other, "mul")

    def _pointwise(self, rows: torch.Tensor, then: str) -> torch.Tensor:
        result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, self._weight, self._bias, then, [], "")
        return result

    def _binary(self, rows: torch.Tensor, other: torch.Tensor, then: str) -> torch.Tensor:
        binary: Any = torch.ops.mkldnn._linear_pointwise.binary
        result: torch.Tensor = binary(rows, other, self._weight, self._bias, then)
        return result


def packs(network: nn.Module) -> bool:
    """Whether the weights of `network` can be packed: float32, on an x86 CPU, with a torch that has oneDNN."""
    mkldnn: Any = torch.backends.mkldnn
    return bool(
        all(weights.device.type == "cpu" and weights.dtype == torch.float32 for weights in network.parameters())
        and platform.machine().lower() in ("x86_64", "amd64")
        and mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def require_whole(network: PreTrainedModel) -> None:
    """Raises ValueError for a network that another LocalModel has packed: its weights cannot be told any more."""
    if any(
        isinstance(part, PackedLinear) or (type(part) is nn.Linear and not part.weight.numel())
        for part in network.modules()
    ):
        raise ValueError("this model was packed by another LocalModel: use that one, or load the model anew")


def pack(network: nn.Module, probe: Callable[[Any], torch.Tensor] | None = None) -> bool:
    """Replace the linear layers of `network` by packed ones, and let go of the weights that they were made from.

    Where the network does not compute with them what it computed before, it is left as it was: the result is False.
    `probe`: what it computes; of a language model the logits of a few tokens.
    """
    probe = probe or _probe
    parents = [(parent, name, child) for parent in network.modules() for name, child in parent.named_children()]
    linear = [(parent, name, child) for parent, name, child in parents if type(child) is nn.Linear]
    try:
        before = probe(network)
        for parent, name, child in linear:
            setattr(parent, name, PackedLinear(child))
        if agree(before, probe(network)):
            keep_to_one(network, runs=True)
            return True
    except Exception:  # networks may look into their layers in ways that nobody can know: then they keep them
        pass
    for parent, name, child in linear:
        setattr(parent, name, child)
    return False


def keep_to_one(network: Any, *, runs: bool) -> None:
    """Have a packed `network` refuse to be saved, and to be run by itself where it no longer `runs`."""

    def refuse(*_: object) -> None:
        raise ValueError(
            "this model was packed by its LocalModel, and works there only: load it anew for anything else"
        )

    network.register_state_dict_pre_hook(refuse)
    if not runs:
        network.register_forward_pre_hook(refuse)


def agree(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two networks computed the same, but for how a sum was rounded."""
    return bool((left - right).abs().max() <= _NOT_EQUAL * left.abs().max())


def _probe(network: Any) -> torch.Tensor:
    with torch.inference_mode():
        ids = torch.arange(_PROBE_TOKENS)[None]
        logits: torch.Tensor = network(input_ids=ids, use_cache=False).logits
        return logits
