"""KV state as arrays that can be written, whole or in eight bits, and back to where a model reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from smartcache.models.kv import KVSegment
from smartcache.storage.segments import Array, Packed

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int8: "I8",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_LARGEST = 127


class KVFiles:
    """The codec of one model's state.

    In eight bits each token of each head has its own scale, with 0 in the middle: a number is off by at most half a
    step, and by how much at most is measured and kept with it.
    """

    def __init__(self, device: torch.device, example: KVSegment) -> None:
        """`example`: state as this model computes it; what is read must be of the same form."""
        self._device = device
        self._form = _form([tensor for layer in example.layers for tensor in layer])

    def pack(self, segment: KVSegment, compress: str | None) -> Packed:
        with torch.inference_mode():
            tensors = [tensor.to("cpu").contiguous() for layer in segment.layers for tensor in layer]
            if compress is None:
                return Packed({_name(number): _array(tensor) for number, tensor in enumerate(tensors)})
            arrays: dict[str, Array] = {}
            errors = [0.0]
            for number, tensor in enumerate(tensors):
                rounded, scales, error = _rounded(tensor)
                arrays |= {_name(number): _array(rounded), _name(number) + ".scale": _array(scales)}
                errors.append(error)
            return Packed(arrays, {"dtype": _NAMES[tensors[0].dtype]}, max(errors))

    def unpack(self, packed: Packed) -> KVSegment:
        try:
            with torch.inference_mode():
                tensors = self._tensors(packed)
        except (KeyError, TypeError, RuntimeError) as error:
            raise ValueError(f"no KV state: {error!r}") from error
        if not tensors or len(tensors) % 2 or len({tensor.shape[-2] for tensor in tensors}) != 1:
            raise ValueError("no KV state: its layers are not alike")
        if self._form != _form(tensors):
            raise ValueError("the KV state of another model")
        layers = tuple(zip(tensors[::2], tensors[1::2], strict=True))
        return KVSegment(layers, exact="dtype" not in packed.label)

    def join(self, segments: Sequence[KVSegment]) -> KVSegment:
        with torch.inference_mode():
            layers = tuple(
                (self._joined([keys for keys, _ in parts]), self._joined([values for _, values in parts]))
                for parts in zip(*(segment.layers for segment in segments), strict=True)
            )
        return KVSegment(layers, exact=all(segment.exact for segment in segments))

    def _joined(self, parts: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat(parts, dim=-2).to(self._device)

    @staticmethod
    def _tensors(packed: Packed) -> list[torch.Tensor]:
        dtype = packed.label.get("dtype")
        count = len(packed.arrays) // (2 if dtype else 1)
        tensors = [_tensor(packed.arrays[_name(number)]) for number in range(count)]
        if dtype:
            scales = [_tensor(packed.arrays[_name(number) + ".scale"]) for number in range(count)]
            tensors = [_restored(*pair, _DTYPES[dtype]) for pair in zip(tensors, scales, strict=True)]
        return tensors


def _rounded(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Whole numbers from -127 to 127, what to multiply them with, and how far any is off."""
    exact = tensor.float()
    scales = exact.abs().amax(dim=-1, keepdim=True) / _LARGEST
    rounded = (exact / scales.where(scales > 0, 1.0)).round().clamp(-_LARGEST, _LARGEST).to(torch.int8)
    error = (_restored(rounded, scales, tensor.dtype).float() - exact).abs().max()
    return rounded, scales, float(error)


def _restored(rounded: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return (rounded.float() * scales).to(dtype)


def _form(tensors: list[torch.Tensor]) -> list[tuple[torch.dtype, int, int]]:
    """What all state of one model has in common, by layer: dtype, heads and width."""
    return [(tensor.dtype, tensor.shape[1], tensor.shape[3]) for tensor in tensors if len(tensor.shape) == 4]


def _name(number: int) -> str:
    return f"{number // 2}.{('keys', 'values')[number % 2]}"


def _array(tensor: torch.Tensor) -> Array:
    content = memoryview(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return Array(_NAMES[tensor.dtype], tuple(tensor.shape), content)


def _tensor(array: Array) -> torch.Tensor:
    """A view: it must not be written to."""
    return torch.frombuffer(array.content, dtype=_DTYPES[array.dtype]).reshape(array.shape)
