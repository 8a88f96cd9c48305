"""Each class of words stands in one place: what the others say of English is built from `word_classes`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from smartcache import word_classes
from smartcache.wording import one_of

HOME = Path(word_classes.__file__)
FEWEST = 4  # words; of a smaller class the words may stand together for another reason
CLASSES = {name: words for name, words in vars(word_classes).items() if name.isupper() and len(words) >= FEWEST}


def classes_spelled_out(source: str) -> Iterator[str]:
    """The classes of which a string of the source has every word in one run of words or of alternatives."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_prose(node.value):
            runs = [set(run.split("|")) for run in re.findall(r"[a-z'|]+", node.value)]
            runs.append(set(node.value.split()))
            yield from (name for name, words in CLASSES.items() if any(words <= run for run in runs))


def _is_prose(text: str) -> bool:
    return text.rstrip().endswith(".")


@pytest.mark.parametrize("path", sorted(set(HOME.parent.glob("*.py")) - {HOME}), ids=lambda path: path.stem)
def test_no_other_file_spells_a_class_out(path: Path) -> None:
    assert not sorted(set(classes_spelled_out(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    "source", ['"is|are|who|what|which|where|when|why|how"', '"why how who what which where when"']
)
def test_a_class_that_is_spelled_out_is_found(source: str) -> None:
    assert [*classes_spelled_out(source)] == ["BARE_QUESTION_WORDS"]


def test_of_two_words_that_begin_alike_a_pattern_takes_the_longer() -> None:
    found = re.match(one_of(["ok", "okay"]), "okay")
    assert found is not None
    assert found[0] == "okay"


def test_a_pattern_of_words_is_the_same_in_any_order() -> None:
    assert one_of(["no", "yes", "nah"]) == one_of({"nah", "yes", "no"}) == "(?:nah|yes|no)"
