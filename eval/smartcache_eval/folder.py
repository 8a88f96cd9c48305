"""Where the public data lies that the measurements read: not in the package, but beside it or named by the user."""

from __future__ import annotations

import os
from pathlib import Path

from smartcache.errors import SmartCacheError


class UnreadableWorkload(SmartCacheError, ValueError):
    """A workload is not known, not there, or not in the form that is expected."""


def public_folder() -> Path:
    """$SMARTCACHE_DATA, or ../shared/data beside the project; it may not exist."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("SMARTCACHE_DATA") or beside)


def file_in(folder: Path, *names: str) -> Path:
    """A file of the public data. Raises UnreadableWorkload where it is not there."""
    path = folder.joinpath(*names)
    if not path.is_file():
        raise UnreadableWorkload(f"{Path(*names)} is not there: name the folder of public data in SMARTCACHE_DATA")
    return path
