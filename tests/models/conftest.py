"""Tiny models with random weights, and a tokenizer that takes one letter for one token.

Whatever needs torch is imported inside, so that without it the test files can say themselves why they are skipped.
"""

from __future__ import annotations

from typing import Any, Protocol

import pytest

LETTERS = "abcdefghijklmnopqrstuvwxyz .!?"
SIZES = {
    "vocab_size": len(LETTERS) + 1,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
ATTENTION = SIZES | {
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
CONFIGURATIONS = {
    "llama": ("LlamaConfig", ATTENTION),
    "qwen2": ("Qwen2Config", ATTENTION),
    "qwen3": ("Qwen3Config", ATTENTION | {"head_dim": 8}),
    "granite": ("GraniteConfig", ATTENTION),
    "stablelm": ("StableLmConfig", ATTENTION),
    "helium": ("HeliumConfig", ATTENTION | {"head_dim": 8}),
    "gpt2": ("GPT2Config", SIZES | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    "sliding": ("MistralConfig", ATTENTION | {"sliding_window": 4}),
    "stretched": (
        "LlamaConfig",
        ATTENTION | {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10_000.0}},
    ),
    "recurrent": ("MambaConfig", SIZES | {"state_size": 4}),
    "own cache": ("RwkvConfig", SIZES | {"context_length": 64, "attention_hidden_size": 32}),
}


class MakeNetwork(Protocol):
    def __call__(self, kind: str = "llama", seed: int = 0, **settings: Any) -> Any: ...


class MakeModel(Protocol):
    def __call__(self, kind: str = "llama", *, seed: int = 0, warm: bool = True, **options: Any) -> Any: ...


@pytest.fixture(scope="session")
def letter_tokenizer() -> Any:
    """Makes a tokenizer with one token per letter, and one per pair in `merges`."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    def make(*merges: tuple[str, str], **options: Any) -> Any:
        words = [*LETTERS, *("".join(pair) for pair in merges)]
        tokenizer = Tokenizer(models.BPE(vocab={word: at for at, word in enumerate(words)}, merges=list(merges)))
        tokenizer.decoder = decoders.Fuse()
        return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **options)

    return make


@pytest.fixture(scope="session")
def network() -> MakeNetwork:
    """Makes a random network: equal for an equal kind and seed."""
    import torch
    import transformers

    torch.set_num_threads(1)  # these networks are so small that waking a second thread takes longer than the work

    def make(kind: str = "llama", seed: int = 0, **settings: Any) -> Any:
        name, values = CONFIGURATIONS[kind]
        torch.manual_seed(seed)
        config = getattr(transformers, name)(**values | settings)
        made = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        # wider than the usual start values, so that another context really gives other tokens
        with torch.no_grad():
            for weights in made.parameters():
                if weights.dim() > 1:
                    weights.normal_(0, 0.3)
        return made.eval()

    return make


@pytest.fixture(scope="session")
def local_model(letter_tokenizer: Any, network: MakeNetwork) -> MakeModel:
    """Makes a LocalModel around a random network; `warm=False` is one that never reuses anything."""
    from smartcache.layers.prefixes import NoPrefixCache, PrefixCache
    from smartcache.models import LocalModel

    def make(kind: str = "llama", *, seed: int = 0, warm: bool = True, **options: Any) -> Any:
        options = {"prefix_cache": PrefixCache(10**8) if warm else NoPrefixCache()} | options
        return LocalModel(network(kind, seed), letter_tokenizer(), **options)

    return make
