"""Who may import whom: the arrows of CONTRIBUTING.md, read off the source of every file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import smartcache

ROOT = Path(__file__).parent.parent
ROOTS = {
    "smartcache": ROOT,
    "langchain_smartcache": ROOT / "integrations",
    "llama_index_smartcache": ROOT / "integrations",
    "smartcache_eval": ROOT / "eval",
}

# The lowest floor first. A part may import from any floor below its own and from itself; parts that share a floor know
# nothing of each other, except on SHARED_FLOORS, where any order without a cycle will do.
FLOORS = (
    ("smartcache.types", "smartcache.errors"),
    (
        "smartcache.keys",
        "smartcache.copies",
        "smartcache.word_classes",
        "smartcache.wording",
        "smartcache.wording_chinese",
        "smartcache.stems",
        "smartcache.word_order",
        "smartcache.chinese",
        "smartcache.lexical",
        "smartcache.precise",
        "smartcache.facts",
        "smartcache.focus",
        "smartcache.embedding",
        "smartcache.repair",
        "smartcache.standing",
        "smartcache.politeness",
        "smartcache.asks",
        "smartcache.small_words",
        "smartcache.telling",
        "smartcache.dialogue",
        "smartcache.digest",
        "smartcache.state",
        "smartcache.signals",
        "smartcache.trees",
        "smartcache.learned",
        "smartcache.policy",
        "smartcache.intents",
        "smartcache.calibrated",
        "smartcache.evidence",
        "smartcache.recalibrated",
        "smartcache.reasons",
        "smartcache.explained",
        "smartcache.sameness",
        "smartcache.lifetimes",
        "smartcache.reach",
        "smartcache.stated",
        "smartcache.knowledge",
        "smartcache.begun",
        "smartcache.asked",
        "smartcache.paths",
        "smartcache.scopes",
        "smartcache.events",
        "smartcache.flights",
        "smartcache.seen",
        "smartcache.intervals",
        "smartcache.shadow",
        "smartcache.verifying",
        "smartcache.lint",
    ),
    ("smartcache.storage",),
    ("smartcache.layers",),
    ("smartcache.assembly",),
    ("smartcache.upkeep",),
    ("smartcache.cache", "smartcache.models"),
    ("smartcache", "smartcache.testing"),
    ("smartcache_eval.peers",),
    ("smartcache.command", "langchain_smartcache", "llama_index_smartcache", "smartcache_eval"),
    ("smartcache_eval.training",),
)
SHARED_FLOORS = {1, 7}

# Imports inside a function that the floors forbid at the top of a file, each with its reason.
ALLOWED_INSIDE_FUNCTIONS = {
    ("smartcache.assembly", "smartcache.models"),  # the default embedder, when a cache opens
    ("smartcache_eval", "smartcache_eval.training"),  # `train` alone needs torch
}

# Which parts may import a package that only some installations have, or that is slow to load.
HOMES = {
    "torch": {"smartcache.models", "smartcache_eval.peers", "smartcache_eval.training"},
    "transformers": {"smartcache.models", "smartcache_eval.peers"},
    "sentence_transformers": {"smartcache.models"},
    "accelerate": {"smartcache.models"},
    "gguf": {"smartcache.models"},
    "faiss": {"smartcache.storage"},
    "sqlite3": {"smartcache.storage"},
    "rich": {"smartcache.command", "smartcache_eval"},
    "typer": {"smartcache.command", "smartcache_eval"},
    "langchain": {"langchain_smartcache"},
    "langchain_core": {"langchain_smartcache"},
    "langgraph": {"langchain_smartcache"},
    "llama_index": {"llama_index_smartcache"},
}


@dataclass(frozen=True, slots=True)
class Import:
    """One name that a module imports; `inside_function` where the import waits for a call."""

    importer: str
    imported: str
    line: int
    inside_function: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def product_files() -> dict[str, Path]:
    """Every module that ships, by its dotted name."""
    found = {}
    for package, root in ROOTS.items():
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = product_files()


def imports_of(module: str) -> Iterator[Import]:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    lazy = {id(node) for function in _functions(tree) for node in ast.walk(function)}
    for node in ast.walk(tree):
        for name in _imported_names(node, module):
            yield Import(module, name, node.lineno, id(node) in lazy)


def _functions(tree: ast.AST) -> Iterator[ast.AST]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _imported_names(node: ast.AST, module: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    origin = _origin(node, module)
    submodules = [f"{origin}.{alias.name}" for alias in node.names]
    return [name if name in MODULES else origin for name in submodules]


def _origin(node: ast.ImportFrom, module: str) -> str:
    if not node.level:
        return node.module or ""
    is_package = MODULES[module].name == "__init__.py"
    package = module.split(".")[: None if is_package else -1]
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, *filter(None, [node.module])])


def part_of(module: str) -> str | None:
    """The part of the drawing that a module of ours belongs to; None for other people's packages and for strangers."""
    parts = [part for floor in FLOORS for part in floor]
    inside = [part for part in parts if module == part or module.startswith(f"{part}.")]
    if module.startswith("smartcache."):
        inside = [part for part in inside if part != "smartcache"]
    return max(inside, key=len, default=None)


def floor_of(part: str) -> int:
    return next(height for height, floor in enumerate(FLOORS) if part in floor)


def is_allowed(imported: Import) -> bool:
    importer, target = part_of(imported.importer), part_of(imported.imported)
    assert importer is not None
    if target is None or target == importer:
        return True
    if imported.inside_function and (importer, target) in ALLOWED_INSIDE_FUNCTIONS:
        return True
    if floor_of(target) == floor_of(importer):
        return floor_of(target) in SHARED_FLOORS
    return floor_of(target) < floor_of(importer)


def test_every_module_has_a_place_in_the_drawing() -> None:
    strangers = [module for module in MODULES if part_of(module) is None]
    assert not strangers, "give each a floor in FLOORS, and in CONTRIBUTING.md"


def test_every_place_in_the_drawing_is_taken() -> None:
    assert [part for floor in FLOORS for part in floor if part not in MODULES] == []


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_lies_below_it(module: str) -> None:
    assert [str(imported) for imported in imports_of(module) if not is_allowed(imported)] == []


@pytest.mark.parametrize("module", MODULES)
def test_a_heavy_or_optional_package_is_imported_at_its_home_only(module: str) -> None:
    part = part_of(module)
    away = [
        str(imported)
        for imported in imports_of(module)
        if part not in HOMES.get(imported.imported.split(".")[0], {part})
    ]
    assert away == []


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("smartcache.layers.answers", "smartcache.storage.entries", True),
        ("smartcache.storage.entries", "smartcache.layers.answers", False),
        ("smartcache.layers.answers", "smartcache", False),
        ("smartcache.cache", "smartcache.models", False),
        ("smartcache.models.local", "smartcache.layers.prefixes", True),
        ("smartcache.command.demo", "smartcache.models", True),
        ("smartcache.command.demo", "langchain_smartcache", False),
        ("langchain_smartcache.chat", "llama_index_smartcache", False),
        ("smartcache.types", "smartcache.errors", False),
    ],
)
def test_the_rule_tells_down_from_up(importer: str, imported: str, allowed: bool) -> None:
    assert is_allowed(Import(importer, imported, line=1, inside_function=False)) is allowed


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = {
        module: {one.imported for one in imports_of(module) if one.imported in MODULES and not one.inside_function}
        for module in MODULES
    }
    circle_free = list(TopologicalSorter(known).static_order())  # raises CycleError, which names the circle
    assert set(circle_free) == set(MODULES)


@pytest.mark.parametrize("folder", ["integrations", "eval"])
def test_a_folder_of_import_packages_is_no_package_itself(folder: str) -> None:
    assert (ROOT / folder).is_dir()
    assert not (ROOT / folder / "__init__.py").exists()


def test_every_shipped_package_says_that_it_is_typed() -> None:
    assert [package for package, root in ROOTS.items() if not (root / package / "py.typed").exists()] == []


def test_the_public_names_are_those_that_are_documented() -> None:
    assert set(smartcache.__all__) == {
        "Answer",
        "CalibratedPolicy",
        "Candidate",
        "Chunk",
        "ChunkRef",
        "ContextOrder",
        "ContextPlan",
        "Embedder",
        "Event",
        "HitPolicy",
        "KnowledgeUpdate",
        "PlannedContexts",
        "PrefixCache",
        "Request",
        "RetrievalSimilarity",
        "SmartCache",
        "SmartCacheError",
        "Stats",
        "ThresholdPolicy",
        "Turn",
        "plan_context",
    }


def test_every_public_name_is_there() -> None:
    assert [name for name in smartcache.__all__ if not hasattr(smartcache, name)] == []
