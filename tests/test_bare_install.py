"""What `pip install smartcache-llm` alone gives: the cache, the command, and one clear error for whatever is extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
IMPORT_PACKAGES = {"smartcache", "langchain_smartcache", "llama_index_smartcache", "smartcache_eval"}
OPTIONAL = ("torch", "transformers", "sentence_transformers", "langchain_core", "llama_index")
NO_INDEX = ("connection broken", "NewConnectionError", "ConnectTimeoutError")


@dataclass(frozen=True, slots=True)
class BareInstall:
    """An environment of its own that holds the wheel and its base dependencies, and nothing else."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        program, *arguments = command
        return _run(str(self._programs / program), *arguments, cwd=self.folder, env=clean)

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        return self.run("python", "-I", "-c", code)

    @property
    def _programs(self) -> Path:
        return self.folder / ("Scripts" if os.name == "nt" else "bin")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    return next(folder.glob("smartcache_llm-*.whl"))


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> BareInstall:
    install = BareInstall(tmp_path_factory.mktemp("bare"))
    made = _run(sys.executable, "-m", "venv", str(install.folder), cwd=ROOT)
    assert made.returncode == 0, made.stderr
    python = str(install._programs / "python")
    _pip(python, "install", "--constraint", str(ROOT / "constraints.txt"), str(wheel))
    return install


def test_the_wheel_holds_the_four_packages_and_no_tests(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == IMPORT_PACKAGES


def test_the_wheel_says_that_every_package_is_typed(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"{package}/py.typed" for package in IMPORT_PACKAGES} <= names


def test_the_wheel_holds_the_documents_of_the_demo(wheel: Path) -> None:
    folder = "smartcache/command/knowledge_base/"
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(folder) and name.endswith(".md")}
    assert shipped == {f"{folder}{path.name}" for path in (ROOT / folder).glob("*.md")}
    assert len(shipped) >= 40


@pytest.mark.parametrize("package", OPTIONAL)
def test_a_bare_install_holds_no_optional_package(bare: BareInstall, package: str) -> None:
    found = bare.python(f"import importlib.util; print(importlib.util.find_spec({package!r}))")
    assert found.stdout.strip() == "None", found.stderr


def test_a_cache_in_exact_mode_answers_a_repeated_question(bare: BareInstall) -> None:
    shown = bare.python(
        "from smartcache import Request, SmartCache, Turn\n"
        "cache = SmartCache.open(mode='exact')\n"
        "ask = lambda text: cache.answer(Request([Turn('user', text)]), lambda request, chunks: 'Paris')\n"
        "print([ask(text).served_by for text in ('Capital of France?', 'Capital of France?', 'Capital of Chad?')])\n"
    )
    assert shown.stdout.strip() == "['model', 'exact', 'model']", shown.stderr


@pytest.mark.parametrize(
    ("statement", "extra"),
    [
        ("from smartcache.models import LocalModel", "local"),
        ("import langchain_smartcache", "langchain"),
        ("import llama_index_smartcache", "llama-index"),
    ],
)
def test_a_missing_extra_is_one_error_that_names_the_pip_line(bare: BareInstall, statement: str, extra: str) -> None:
    failed = bare.python(statement)
    last = failed.stderr.strip().splitlines()[-1]
    assert last.startswith("smartcache.errors.MissingExtra: "), failed.stderr
    assert last.endswith(f"pip install 'smartcache-llm[{extra}]'")


def test_the_default_embedder_asks_for_its_extra_when_a_semantic_cache_opens(bare: BareInstall) -> None:
    failed = bare.python("from smartcache import SmartCache; SmartCache.open()")
    assert failed.stderr.strip().endswith("pip install 'smartcache-llm[local]'")


def test_the_command_prints_its_help(bare: BareInstall) -> None:
    shown = bare.run("smartcache", "--help")
    assert shown.returncode == 0, shown.stderr
    assert "demo" in shown.stdout


def test_importing_smartcache_loads_nothing_optional_where_all_is_installed() -> None:
    shown = _run(sys.executable, "-c", "import json, smartcache, sys; print(json.dumps(list(sys.modules)))", cwd=ROOT)
    assert shown.returncode == 0, shown.stderr
    assert not {name.split(".")[0] for name in json.loads(shown.stdout)} & set(OPTIONAL)


def _run(*command: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def _pip(python: str, verb: str, *arguments: str) -> None:
    """Runs pip. Without an index the tests that need one are skipped, but never in CI, where that is a failure."""
    done = _run(python, "-m", "pip", verb, "--quiet", "--retries", "1", "--timeout", "20", *arguments, cwd=ROOT)
    if done.returncode == 0:
        return
    if any(sign in done.stderr for sign in NO_INDEX) and os.environ.get("CI") != "true":
        pytest.skip("no package index can be reached from here")
    pytest.fail(f"pip {verb} failed:\n{done.stderr}")
