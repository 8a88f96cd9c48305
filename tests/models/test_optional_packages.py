"""The local models are optional: importing their names costs nothing, and a missing package is one clear line."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


def output_of(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def test_importing_the_package_of_models_loads_none_of_their_libraries() -> None:
    heavy = output_of("""
        import sys, smartcache.models
        print([name for name in ("torch", "transformers", "sentence_transformers") if name in sys.modules])
    """)
    assert heavy == "[]\n"


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package_names_the_line_that_installs_it(package: str) -> None:
    text = output_of(f"""
        import sys
        sys.modules[{package!r}] = None
        from smartcache.errors import MissingExtra
        import smartcache.models
        try:
            smartcache.models.LocalModel
        except MissingExtra as missing:
            print(missing)
    """)
    assert text == f"{package} is not installed: run  pip install 'smartcache-llm[local]'\n"


def test_making_an_embedder_loads_no_torch() -> None:
    pytest.importorskip("sentence_transformers", reason="needs the `local` extra")
    loaded = output_of("""
        import sys
        from smartcache.errors import MissingModel
        from smartcache.models import bundled_embedder
        try:
            bundled_embedder()
        except MissingModel:
            pass
        print("torch" in sys.modules)
    """)
    assert loaded == "False\n"


def test_an_unknown_name_is_an_attribute_error() -> None:
    import smartcache.models

    with pytest.raises(AttributeError, match="has no attribute 'RemoteModel'"):
        _ = smartcache.models.RemoteModel
