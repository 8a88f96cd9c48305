"""What README.md promises about the code: its snippets can be typed in, and its names are there."""

from __future__ import annotations

import ast
import re
from importlib import import_module, metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smartcache.command import app
from smartcache.command.chat import IN_WORDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.S)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_brings_its_imports(snippet: str) -> None:
    for statement in ast.parse(snippet).body:
        if isinstance(statement, ast.ImportFrom) and "smartcache" in str(statement.module):
            packages = {"langchain_smartcache": "langchain_core", "llama_index_smartcache": "llama_index.core"}
            pytest.importorskip(packages.get(str(statement.module), "smartcache"))
            module = import_module(str(statement.module))
            assert [alias.name for alias in statement.names if not hasattr(module, alias.name)] == []
    names = {node.id for node in ast.walk(ast.parse(snippet)) if isinstance(node, ast.Name)}
    imported = {a.name for node in ast.walk(ast.parse(snippet)) if isinstance(node, ast.ImportFrom) for a in node.names}
    assert {name for name in names if name[0].isupper()} <= imported


def test_every_file_that_is_named_is_there() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_command_is_named() -> None:
    commands = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    assert commands == {"demo", "chat", "stats", "forget", "shadow", "explain", "warm", "lint"}
    assert [name for name in commands if f"`smartcache {name}" not in README] == []


def test_every_reason_that_chat_explains_is_explained() -> None:
    assert [reason for reason in IN_WORDS if f"`{reason}`" not in README] == []


@pytest.mark.parametrize("is_installed", [True, False])
def test_the_version_is_told(is_installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if not is_installed:
            raise metadata.PackageNotFoundError(package)
        return "1.2.3"

    monkeypatch.setattr(metadata, "version", version)
    result = CliRunner().invoke(app, ["--version"])
    expected = "smartcache 1.2.3" if is_installed else "smartcache, from a checkout that is not installed"
    assert (result.exit_code, result.output.strip()) == (0, expected)
