"""Where a text can be cut so that no token lies across, whatever follows: read off the words of a vocabulary."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence


class Seams:
    """The words that tokens stand for, ready to be looked up by where they begin."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = sorted(set(words))
        self._known = set(self._words)
        lengths: dict[str, set[int]] = {}  # by first letter
        for word in filter(None, self._words):
            lengths.setdefault(word[0], set()).add(len(word))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def last(self, words: Sequence[str]) -> int:
        """After how many of `words`, one text together, the last seam comes: the last end of a word that no token could
        lie across, whether it ends within the text or where nothing is known any more; 0 where there is none."""
        text, at, reach, seam = "".join(words), 0, 0, 0
        for count, word in enumerate(words, 1):
            reach = max(reach, *(self._reach(text, begin) for begin in range(at, at + len(word))), 0)
            at += len(word)
            if reach <= at:
                seam = count
        return seam

    def _reach(self, text: str, begin: int) -> int:
        """Up to where the longest token goes that could begin in `text` at `begin`; past its end, one further."""
        lengths, left = self._lengths.get(text[begin], ()), len(text) - begin
        if lengths and lengths[0] > left:
            after = bisect_right(self._words, rest := text[begin:])
            if after < len(self._words) and self._words[after].startswith(rest):
                return len(text) + 1
        ends = (begin + length for length in lengths if length <= left)
        return next((end for end in ends if text[begin:end] in self._known), begin)
