"""The rules of the house that a machine can check: what a reader may rely on in every file that ships."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SHIPPED = sorted(path for folder in ("smartcache", "integrations", "eval") for path in (ROOT / folder).rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in SHIPPED]
every_shipped_file = pytest.mark.parametrize("path", SHIPPED, ids=NAMES)

MAX_LINES_OF_A_FILE = 350
MAX_LINES_OF_A_FUNCTION = 50

# Modules that make objects, and so run code, out of a file's bytes.
UNSAFE_READERS = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
EMPTY_NAMES = re.compile(r"(Manager|Handler|Engine|Helper|Util|Utils)$|^Base[A-Z]")
THEIR_WORDS = {"SmartCacheQueryEngine", "SmartCacheChatEngine"}  # what LlamaIndex calls such objects


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes_of(path: Path, *kinds: type[Any]) -> Iterator[Any]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, kinds))


@every_shipped_file
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(tree_of(path))


@every_shipped_file
def test_nearness_is_always_a_similarity(path: Path) -> None:
    text = path.read_text(encoding="utf-8").lower()
    assert [number for number, line in enumerate(text.splitlines(), 1) if "distance" in line] == []


@every_shipped_file
def test_no_file_is_read_by_running_it(path: Path) -> None:
    imported = {alias.name for node in nodes_of(path, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes_of(path, ast.ImportFrom) if node.module}
    assert not UNSAFE_READERS & {name.split(".")[0] for name in imported}


@every_shipped_file
def test_no_text_is_run_as_code(path: Path) -> None:
    called = [node.func for node in nodes_of(path, ast.Call)]
    assert [ast.unparse(name) for name in called if isinstance(name, ast.Name) and name.id in {"eval", "exec"}] == []
    assert [ast.unparse(name) for name in called if ast.unparse(name) == "torch.load"] == []


@every_shipped_file
def test_a_class_is_named_for_what_it_is(path: Path) -> None:
    names = {node.name for node in nodes_of(path, ast.ClassDef)} - THEIR_WORDS
    assert [name for name in names if EMPTY_NAMES.search(name)] == []


@every_shipped_file
def test_a_file_stays_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES_OF_A_FILE


@every_shipped_file
def test_a_function_stays_short(path: Path) -> None:
    functions = nodes_of(path, ast.FunctionDef, ast.AsyncFunctionDef)
    assert [f.name for f in functions if (f.end_lineno or 0) - f.lineno >= MAX_LINES_OF_A_FUNCTION] == []
