"""The benchmark of the prefix cache, on a tiny random model: what it compares is comparable, and what it says is so."""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

pytest.importorskip("torch", reason="needs the extra [local]")
pytest.importorskip("transformers", reason="needs the extra [local]")

from smartcache import PrefixCache
from smartcache.layers.prefixes import NoPrefixCache
from smartcache.models import LocalModel
from smartcache_eval.peers.plain_transformers import PlainTransformers
from smartcache_eval.prefix_bench import measured
from smartcache_eval.prefix_cases import Bench, measured_case
from smartcache_eval.prefix_peers import measured_peers
from smartcache_eval.prefix_report import PeerCase, PeerReport, PrefixReport, PrefixSizes
from smartcache_eval.prefix_tables import tables
from smartcache_eval.word_prompts import WORDS, WordPrompts

SIZES = PrefixSizes(
    shared=(24, 48),
    new=4,
    rounds=2,
    warm_runs=2,
    turns=3,
    crowds=(2,),
    crowd_turns=2,
    policies=("lru",),
    system_tokens=12,
    question_tokens=4,
    answer_tokens=3,
    zero_hit_pairs=2,
    zero_hit_tokens=16,
    decoded_tokens=4,
)
PEERS = [
    PeerReport("peer", "1.2", (PeerCase(24, 4, 0.5, 0.25, 0.5, False),)),
    PeerReport("other", "", (), "ended badly"),
]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """One token for each word."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: at for at, word in enumerate(dict.fromkeys(["unknown", "user", "assistant", *WORDS]))}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="unknown"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    template = "{% for turn in messages %} {{ turn.role }} {{ turn.content }} {% endfor %} assistant"
    return PreTrainedTokenizerFast(tokenizer_object=words, chat_template=template)


@pytest.fixture(scope="module")
def network() -> Any:
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.set_num_threads(1)  # waking a second thread takes longer than the work
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    ends = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    config = LlamaConfig(vocab_size=len(set(WORDS)) + 3, max_position_embeddings=256, **sizes, **ends)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def load(network: Any, tokenizer: Any) -> Any:
    return lambda prefix_cache: LocalModel(network, tokenizer, prefix_cache=prefix_cache)


@pytest.fixture(scope="module")
def bench(network: Any, load: Any) -> Bench:
    return Bench(load(PrefixCache()), load(NoPrefixCache()), PlainTransformers(copy.deepcopy(network)))


@pytest.fixture(scope="module")
def report(bench: Bench, load: Any) -> PrefixReport:
    return measured(bench, load, SIZES, PEERS)


def test_each_case_reuses_just_what_is_shared_and_writes_what_a_cold_run_writes(report: PrefixReport) -> None:
    assert [(case.shared, case.new, case.cached_tokens) for case in report.cases] == [(24, 4, 24), (48, 4, 48)]
    assert [case.ideal for case in report.cases] == [4 / 28, 4 / 52]
    assert all(case.equals_cold for case in report.cases)


def test_a_case_relates_what_it_measured(report: PrefixReport) -> None:
    for case in report.cases:
        assert case.ratio == case.warm_s / case.cold_s
        assert case.placed_share == case.placed_s / case.suffix_forward_s
        assert min(case.placed_s, case.transformers_cold_s, case.transformers_warm_s) > 0


def test_a_cache_that_changes_what_is_written_is_told(bench: Bench, tokenizer: Any, network: Any) -> None:
    other = copy.deepcopy(network)
    other.lm_head.weight.data.neg_()
    broken = Bench(bench.warm, LocalModel(other, tokenizer, prefix_cache=NoPrefixCache()), bench.plain)
    assert not measured_case(broken, 24, SIZES).equals_cold


def test_a_conversation_reuses_all_of_the_previous_turn_but_its_last_token(report: PrefixReport) -> None:
    talk = report.conversation
    before = [tokens + SIZES.answer_tokens for tokens in talk.prompt_tokens[:-1]]
    assert talk.reused_share == [0.0, *((tokens - 1) / tokens for tokens in before)]
    assert len(talk.first_token_s) == SIZES.turns


def test_a_crowd_has_room_for_half_of_what_it_holds(report: PrefixReport) -> None:
    (crowd,) = report.crowded
    token_bytes = 2 * 2 * 32 * 4  # layers, keys and values, width, float32
    prompt_tokens = 1 + 12 + 2 * (1 + 4 + 1) + 3
    assert (crowd.conversations, crowd.policy) == (2, "lru")
    assert crowd.max_bytes == 2 * (prompt_tokens + 3) * token_bytes // 2
    assert 0 <= crowd.reused_share < 0.5


def test_the_json_has_the_names_that_are_documented(report: PrefixReport) -> None:
    told = json.loads(json.dumps(asdict(report)))
    documented = {"shared", "new", "cold_s", "warm_s", "ideal", "suffix_forward_s", "transformers_warm_s"}
    assert documented <= told["cases"][0].keys()
    assert {"reused_share", "first_token_s"} <= told["conversation"].keys()
    assert {"overhead_at_zero_hits", "decode_ratio", "crowded"} <= told.keys()
    assert [peer["name"] for peer in told["peers"]] == ["peer", "other"]


def test_the_tables_show_ours_and_every_peer(report: PrefixReport) -> None:
    shown = StringIO()
    Console(width=160, file=shown).print(*tables(report), sep="\n")
    lines = shown.getvalue().splitlines()
    [peer] = [line for line in lines if "peer 1.2" in line]
    assert {"0.500", "no"} <= set(peer.split())
    assert sum("SmartCache" in line and "yes" in line for line in lines) == 2
    assert any("ended badly" in line for line in lines)


def test_every_part_becomes_a_figure(report: PrefixReport) -> None:
    names = [figure.name for figure in report.figures(SIZES)]
    assert names.count("warm / cold") == 2
    assert {"cost where nothing hits", "reused of the previous turn", "prompt tokens reused"} <= set(names)


def test_prompts_have_the_tokens_that_were_asked_for_and_end_differently(load: Any) -> None:
    model = load(NoPrefixCache())
    words = WordPrompts(model)
    beginning, endings = words.text(20), words.endings(10, 3)
    assert {model.count_tokens(beginning + ending) for ending in endings} == {23}
    assert len({ending.split()[0] for ending in endings}) == 10


def test_a_tokenizer_that_splits_words_is_refused() -> None:
    class Letters:
        def tokens_of(self, prompt: str) -> list[int]:
            return [*prompt.encode()]

    with pytest.raises(ValueError, match="splits common English words"):
        WordPrompts(Letters())


def test_a_peer_that_is_not_installed_is_no_peer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from smartcache_eval import prefix_peers

    for name in ("bundled_model_path", "bundled_gguf_path"):
        monkeypatch.setattr(prefix_peers, name, lambda: Path("nowhere"))
    monkeypatch.setattr(prefix_peers.runs, "PEERS", {"no-such-peer-1": None})
    assert [*measured_peers(bench.warm, bench.words, SIZES, [Path(sys.executable)])] == []
