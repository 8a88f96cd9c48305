"""The crude stems by which two forms of a word are known for one."""

from __future__ import annotations


def stem(word: str) -> str:
    """A crude stem, enough to see `opened` as `open` and `stopping` as `stop`."""
    if word.endswith(("s", "d", "g")):
        for suffix in ("ing", "ed", "es", "s"):
            if word.endswith(suffix) and len(word) - len(suffix) >= 3:
                word = word.removesuffix(suffix)
                break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lse":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def is_a_form(name: str, word: str, is_named: bool) -> bool:
    """Whether two words of one stem are one word; where both are names, its plural alone is."""
    short, long = sorted((name, word), key=len)
    if long == f"{short}es":
        return short.endswith(("s", "x", "z", "ch", "sh", "o"))
    return long == f"{short}s" or not is_named
