"""The local models: the only place that imports torch, transformers and sentence-transformers, and only when used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from smartcache.errors import MissingExtra

if TYPE_CHECKING:
    from smartcache.models.bundled import bundled_embedder, bundled_model_path, default_embedder
    from smartcache.models.local import LocalModel
    from smartcache.models.pairs import PairClassifier
    from smartcache.models.runs import Generation, Usage
    from smartcache.models.sentence import SentenceEmbedder

__all__ = [
    "Generation",
    "LocalModel",
    "PairClassifier",
    "SentenceEmbedder",
    "Usage",
    "bundled_embedder",
    "bundled_model_path",
    "default_embedder",
]

_HOMES = {
    "Generation": "runs",
    "LocalModel": "local",
    "PairClassifier": "pairs",
    "SentenceEmbedder": "sentence",
    "Usage": "runs",
    "bundled_embedder": "bundled",
    "default_embedder": "bundled",
    "bundled_model_path": "bundled",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as missing:
        if missing.name in ("torch", "transformers"):
            raise MissingExtra(missing.name, "local") from missing
        raise


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
