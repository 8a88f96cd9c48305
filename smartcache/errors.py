"""Everything that SmartCache raises on purpose.

    SmartCacheError
    ├── UnstableKey      (ValueError)    a request holds an object that has no stable form
    ├── MissingExtra     (ImportError)   an optional package is not installed; the message names the pip line
    ├── MissingModel     (LookupError)   a model is not there; the message says what to install
    ├── DamagedStore     (OSError)       a file on disk cannot be trusted
    ├── ForeignStore     (OSError)       a file on disk is not ours, or of a newer version; nothing was touched
    └── StoreError       (OSError)       a store cannot be read or written now: locked, full, closed

A caller's mistake that Python has a word for raises ValueError or TypeError.
"""


class SmartCacheError(Exception):
    """The root: `except SmartCacheError` catches all of ours."""


class UnstableKey(SmartCacheError, ValueError):
    """A value in a request has no form that is the same in every process, so it cannot be part of a key."""


class MissingExtra(SmartCacheError, ImportError):
    """An optional package is needed here and not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: run  pip install 'smartcache-llm[{extra}]'")


class MissingModel(SmartCacheError, LookupError):
    """A model was asked for that is not on this machine."""


class DamagedStore(SmartCacheError, OSError):
    """A store's file is damaged."""


class ForeignStore(SmartCacheError, OSError):
    """A file at a store's path was not written by this version of SmartCache; it is left as it was."""


class StoreError(SmartCacheError, OSError):
    """A store cannot be read or written now: another process holds it, the disk is full, or it was closed."""
