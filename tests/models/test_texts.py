"""Text from token ids: whole characters, whole stop strings, whatever the tokens cut through."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the `local` extra")

from hypothesis import given
from hypothesis import strategies as st

from smartcache.models.seams import Seams
from smartcache.models.texts import TextPieces, Tokens


def byte_tokens() -> Tokens:
    """One token per byte: every character beyond ASCII takes several."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return Tokens(PreTrainedTokenizerFast(tokenizer_object=tokenizer))


def pieces_of(text: str, stop: tuple[str, ...] = (), tokens: Tokens | None = None) -> list[str]:
    tokens = tokens or byte_tokens()
    pieces = TextPieces(tokens, stop)
    told = []
    for token in tokens.of(text):
        told.append(pieces.push(token))
        if pieces.stopped:
            return told
    return [*told, pieces.finish()]


@given(st.text(min_size=1, max_size=30).filter(lambda text: "�" not in text))
def test_the_pieces_make_the_text(text: str) -> None:
    assert "".join(pieces_of(text)) == text


def test_a_character_of_several_tokens_comes_whole() -> None:
    assert [piece for piece in pieces_of("a😀é!") if piece] == ["a", "😀", "é", "!"]


def test_a_character_that_is_never_completed_is_told_at_the_end() -> None:
    tokens = byte_tokens()
    pieces = TextPieces(tokens)
    told = [pieces.push(token) for token in tokens.of("a😀")[:-1]]
    assert ("".join(told), pieces.finish()) == ("a", "�")


@given(
    st.text("ab.", min_size=1, max_size=20), st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=3)
)
def test_the_text_ends_before_the_first_stop_string(text: str, stop: list[str]) -> None:
    first = next((end for end in range(len(text) + 1) if text[:end].endswith(tuple(stop))), None)
    expected = text if first is None else min(text[:first].partition(word)[0] for word in stop if word in text[:first])
    assert "".join(pieces_of(text, tuple(stop))) == expected


def test_what_may_begin_a_stop_string_is_held_back() -> None:
    assert pieces_of("one##two", ("###",)) == ["o", "n", "e", "", "", "##t", "w", "o", ""]


@pytest.mark.parametrize("stop", ["###", ("",)])
def test_stop_strings_that_make_no_sense_are_refused(stop: Any) -> None:
    with pytest.raises(ValueError, match="sequence of non-empty strings"):
        TextPieces(byte_tokens(), stop)


def lies_across(word: str, text: str, at: int) -> bool:
    """Whether `word` could begin in `text` before `at` and end after it, or go on where the text ends."""
    begins = range(max(0, at - len(word) + 1), at)
    return any((word + text[begin + len(word) :]).startswith(text[begin:]) for begin in begins)


WORDS = st.lists(st.text("abc", max_size=5), max_size=8)


@given(WORDS, WORDS)
def test_the_last_seam_is_the_last_end_that_no_word_lies_across(vocabulary: list[str], words: list[str]) -> None:
    text, ends = "".join(words), [len("".join(words[:count])) for count in range(len(words) + 1)]
    free = [count for count, at in enumerate(ends) if not any(lies_across(word, text, at) for word in vocabulary)]
    assert Seams(vocabulary).last(words) == free[-1]


def test_a_vocabulary_is_gone_through_once() -> None:
    tokens, told = byte_tokens(), list[Any]()
    vocabulary = tokens._tokenizer.get_vocab
    tokens._tokenizer.get_vocab = lambda: told.append(1) or vocabulary()  # type: ignore[method-assign, func-returns-value]
    assert [len(tokens.asked(text)) for text in ("one", "three")] == [3, 5]
    assert told == [1]
