"""What is refused where it is given, since to ignore it could hand one tenant's answers to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def refuse_scope(options: Mapping[str, Any]) -> None:
    """Raises TypeError where a call brings a `scope`: who may share is not for a call's options to say."""
    if "scope" in options:
        raise TypeError(
            "scope is no option of a call: set it where the object is made (scope=...), or, where the tenant comes "
            'with the call, make it configurable: .configurable_fields(scope=ConfigurableField(id="scope"))'
        )
