"""Without LlamaIndex the import says what to install."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_LLAMA_INDEX = """
import sys
sys.modules["llama_index"] = sys.modules["llama_index.core"] = None
from smartcache.errors import MissingExtra
try:
    import llama_index_smartcache
except MissingExtra as missing:
    print(missing)
"""


def test_a_missing_llama_index_is_one_line_that_names_the_extra():
    done = subprocess.run([sys.executable, "-c", WITHOUT_LLAMA_INDEX], capture_output=True, text=True, check=True)
    assert "pip install 'smartcache-llm[llama-index]'" in done.stdout
    assert "llama-index-core" in done.stdout
