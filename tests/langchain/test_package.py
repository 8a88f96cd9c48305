"""The package as it is imported."""

import subprocess
import sys

import langchain_smartcache


def test_every_public_name_is_there() -> None:
    assert langchain_smartcache.__all__ == sorted(langchain_smartcache.__all__)
    assert all(hasattr(langchain_smartcache, name) for name in langchain_smartcache.__all__)


def test_importing_it_loads_no_torch() -> None:
    script = "import sys, langchain_smartcache; print('torch' in sys.modules)"
    assert _printed(script) == "False"


def test_without_langchain_the_error_names_the_line_to_run() -> None:
    script = """
import sys
sys.modules["langchain_core"] = None
try:
    import langchain_smartcache
except ImportError as error:
    print(error)
"""
    assert _printed(script) == "langchain-core is not installed: run  pip install 'smartcache-llm[langchain]'"


def _printed(script: str) -> str:
    script = f"import sys; sys.path[:] = {sys.path!r}\n{script}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
