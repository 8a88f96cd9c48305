"""What a sentence-transformers folder says about its model, read from its files without loading the model."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from smartcache.errors import MissingModel

# the files that decide, beside the weights, which vector a text gets
_SHAPING = ("modules.json", "config.json", "sentence_*_config.json", "tokenizer.json", "vocab.txt")


@dataclass(frozen=True, slots=True)
class SentenceFolder:
    """The files of one model; `modules` are its steps in order, each with `type` and `path`."""

    path: Path
    modules: tuple[dict[str, Any], ...]

    @classmethod
    def find(cls, name_or_path: str | Path) -> Self:
        """By folder, or by a hub id that was downloaded before; raises MissingModel where it is neither."""
        path = Path(name_or_path)
        path = path if path.is_dir() else _downloaded(str(name_or_path))
        try:
            return cls(path, tuple(_json(path / "modules.json")))
        except FileNotFoundError:
            raise MissingModel(f"{path} is no sentence-transformers model: it has no modules.json") from None

    def dimension(self) -> int:
        """How long a vector is."""
        for module in reversed(self.modules):
            config = _json_or_empty(self.path / module["path"] / "config.json")
            if "out_features" in config:
                return int(config["out_features"])
            if module["type"].endswith("Pooling"):
                return _pooled_dimension(config)
        raise ValueError(f"{self.path}: none of its modules says how long a vector is (a Pooling or a Dense does)")

    def max_tokens(self) -> int:
        """How many tokens of a text the model reads, special tokens included."""
        first = self.path / self.modules[0]["path"]
        configs = [_json(file) for file in sorted(first.glob("sentence_*_config.json"))]
        stated = next((config["max_seq_length"] for config in configs if config.get("max_seq_length")), None)
        limits = [
            stated,
            _json_or_empty(first / "tokenizer_config.json").get("model_max_length"),
            _json_or_empty(first / "config.json").get("max_position_embeddings"),
        ]
        return int(stated or min(limit for limit in limits if limit))

    def digest(self, prompt: str) -> str:
        """A hash of the weights, of what shapes a vector beside them, and of `prompt`."""
        digest = hashlib.sha256(prompt.encode())
        for folder in dict.fromkeys([self.path, *(self.path / module["path"] for module in self.modules)]):
            for file in _shaping_files(folder):
                digest.update(f"\0{file.relative_to(self.path)}\0{file.stat().st_size}\0".encode())
                with file.open("rb") as content:
                    digest.update(hashlib.file_digest(content, "sha256").digest())
        return digest.hexdigest()


def _downloaded(hub_id: str) -> Path:
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(hub_id, local_files_only=True))
    except (ImportError, OSError, ValueError) as missing:
        raise MissingModel(
            f"there is no embedder {hub_id!r} here: give a folder, or download it first with  hf download {hub_id}"
        ) from missing


def _shaping_files(folder: Path) -> list[Path]:
    weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
    return weights + sorted({file for pattern in _SHAPING for file in folder.glob(pattern)})


def _pooled_dimension(config: dict[str, Any]) -> int:
    width = int(config.get("embedding_dimension") or config["word_embedding_dimension"])
    modes = config.get("pooling_mode")
    if modes is None:  # the form of older versions: one switch per mode
        modes = [name for name, on in config.items() if name.startswith("pooling_mode_") and on]
    return width * (1 if isinstance(modes, str) else max(1, len(modes)))


def _json_or_empty(file: Path) -> dict[str, Any]:
    return _json(file) if file.is_file() else {}


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))
