"""From prompts to token ids and from token ids to text, behind one lock: fast tokenizers refuse to be shared."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from smartcache.models.chunk_places import RECOMPUTE, Blend, kept_of, require_blend
from smartcache.models.seams import Seams
from smartcache.storage.chains import shared_length
from smartcache.types import Turn

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Prompt: TypeAlias = str | Sequence[Turn]
"""Text to continue, or a conversation whose answer is asked for."""


class Tokens:
    """A tokenizer that several threads may use."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._lock = Lock()
        self._seams: Seams | None = None  # made when first asked for: a vocabulary is large

    def of(self, prompt: Prompt) -> list[int]:
        """The token ids of the whole prompt; never of its parts, since tokens can reach across a seam."""
        is_prompt = isinstance(prompt, Sequence) and not isinstance(prompt, bytes)
        if not is_prompt or (not isinstance(prompt, str) and not all(isinstance(turn, Turn) for turn in prompt)):
            raise TypeError("a prompt is a str or a sequence of Turn, as in [Turn('user', 'How do I …?')]")
        if not prompt:
            raise ValueError("the prompt is empty: give some text, or at least one Turn")
        with self._lock:
            ids = self._tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else self._of_turns(prompt)
        if not ids:
            raise ValueError("the prompt is empty: it has no tokens")
        return list(ids)

    def blend(self, prompt: list[int], reuse: str, chunks: Sequence[str], recompute: float | None) -> Blend | None:
        """Where the chunks lie in a prompt, each found by its tokens alone; None where `reuse` is another way."""
        require_blend(reuse, chunks, recompute)
        if reuse != "blend":
            return None
        return Blend.of(prompt, self._alone(chunks), RECOMPUTE if recompute is None else recompute)

    def kept_of(self, prompt: Prompt | None, chunks: Sequence[str]) -> list[list[int]]:
        """The texts of which a generation from `prompt` with these chunks has kept the state."""
        require_blend("blend", chunks, None)
        if prompt is None and chunks:
            raise ValueError("chunks are those of a prompt: give that too, or neither to forget all")
        return [] if prompt is None else kept_of(self.of(prompt), self._alone(chunks))

    def beginning(self, prompt: Prompt) -> list[int]:
        """What later prompts begin with: of a conversation in which the user has the next word, all up to that."""
        last = prompt[-1] if isinstance(prompt, Sequence) and not isinstance(prompt, str) and prompt else None
        if not isinstance(last, Turn) or last.role not in ("system", "assistant"):
            return self.of(prompt)
        one, other = (self.of([*prompt, Turn("user", text)]) for text in ("a", "."))
        return one[: next(at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])]

    def asked(self, prompt: Prompt) -> list[int]:
        """What the answer that a conversation ends with came after; of any other prompt, what all begin with that go on
        from it."""
        if isinstance(prompt, str):
            return self._shared_by_all(prompt)
        tokens = self.beginning(prompt)
        if len(prompt) < 2 or prompt[-1].role != "assistant":
            return tokens
        asked = self.of(prompt[:-1])  # some templates open a thought there that they leave out of what is past
        return asked[: shared_length(asked, tokens)]

    def _shared_by_all(self, text: str) -> list[int]:
        """The first tokens of every text that begins with `text`: up to the last place that no token could lie across,
        whatever follows."""
        tokens = self.of(text)
        with self._lock:
            self._seams = self._seams or Seams(self._tokenizer.get_vocab())
            words = self._tokenizer.convert_ids_to_tokens(tokens)
        return tokens[: self._seams.last(words)]

    def decode(self, tokens: Sequence[int]) -> str:
        with self._lock:
            text = self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)

    def _alone(self, chunks: Sequence[str]) -> list[list[int]]:
        with self._lock:
            return [self._tokenizer(chunk, add_special_tokens=False)["input_ids"] for chunk in chunks]

    def _of_turns(self, turns: Sequence[Turn]) -> list[int]:
        if not self._tokenizer.chat_template:
            raise ValueError("this model's tokenizer has no chat template: give the prompt as one str")
        messages = [{**(turn.data or {}), "role": turn.role, "content": turn.text} for turn in turns]
        ids: Any = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        return list(ids)


class TextPieces:
    """Turns token ids into text as they come: never half a character, never a part of a stop string.

    The pieces joined are the text of the generation. `stopped` tells that a stop string was reached; the text ends
    before it.
    """

    def __init__(self, tokens: Tokens, stop: Sequence[str] = ()) -> None:
        if not isinstance(stop, Sequence) or isinstance(stop, str) or not all(isinstance(s, str) and s for s in stop):
            raise ValueError("stop is a sequence of non-empty strings, as in stop=['\\n\\n']")
        self.stopped = False
        self._tokens = tokens
        self._stop = tuple(stop)
        self._ids: list[int] = []
        self._context = 0  # where decoding starts: some tokenizers write a token differently after another one
        self._written = 0  # how many ids are text already
        self._held = ""  # text that may turn out to begin a stop string

    def push(self, token: int) -> str:
        """The text that is certain now."""
        self._ids.append(token)
        text = self._decoded()
        if text.endswith("�"):
            return ""  # the rest of a character is still to come
        return self._certain(text)

    def finish(self) -> str:
        """The text that was held back; the generation has ended."""
        piece = self._certain(self._decoded())
        held, self._held = self._held, ""
        return piece if self.stopped else piece + held

    def _decoded(self) -> str:
        before = self._tokens.decode(self._ids[self._context : self._written])
        return self._tokens.decode(self._ids[self._context :])[len(before) :]

    def _certain(self, text: str) -> str:
        if text:
            self._context, self._written = self._written, len(self._ids)
        text = self._held + text
        found = [at for stop in self._stop if (at := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)]
        held = max((_overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The ids that end a text, by the checkpoint's generation config and by its tokenizer."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    ids = configured if isinstance(configured, list) else [configured]
    return frozenset(int(end) for end in [*ids, tokenizer.eos_token_id] if end is not None)


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of `text` begin `stop`."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
