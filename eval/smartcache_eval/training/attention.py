"""The dialogue state's digest, in torch: as smartcache.digest computes it, and how it is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from smartcache.digest import MAX_TURNS, Digest, kept_turns
from smartcache_eval.training.examples import Example, Side

INNER, HEADS, DROPOUT = 256, 2, 0.3
PASSES, BATCH, RATE, DECAY, TEMPERATURE = 20, 256, 3e-4, 0.05, 0.05
UNREACHED = -1e4  # a score that softmax makes zero

Embed = Callable[[str], NDArray[np.float32]]
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]  # questions, turns, places, which turns are there


class Attention(nn.Module):
    """See `smartcache.digest.Digest`; here for many questions at once."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.key, self.query = nn.Linear(width + 3, INNER), nn.Linear(width, INNER)
        self.null = nn.Parameter(torch.zeros(HEADS))
        self.own, self.mix = nn.Linear(width, INNER), nn.Linear(HEADS * width, INNER)
        self.gate, self.out = nn.Linear(INNER, HEADS + 1), nn.Linear(INNER, width)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(
        self, question: torch.Tensor, turns: torch.Tensor, places: torch.Tensor, present: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Meanings of shape (n, width) and logits that the questions stand alone."""
        count, most, _ = turns.shape
        keys = self.key(torch.cat([turns, places], -1)).view(count, most, HEADS, -1)
        scores = torch.einsum("nthd,nhd->nht", keys, self.query(question).view(count, HEADS, -1))
        scores = (scores / keys.shape[-1] ** 0.5).masked_fill(~present[:, None], UNREACHED)
        null = self.null.expand(count, HEADS)[..., None]
        leaned_on = torch.cat([scores, null], -1).softmax(-1)[..., :-1] @ turns
        inner = functional.gelu(self.own(question) + self.mix(leaned_on.reshape(count, -1)), approximate="tanh")
        inner = self.dropout(inner)
        gates = self.gate(inner)
        moved = (torch.sigmoid(gates[:, :HEADS])[..., None] * leaned_on).sum(1) + self.out(inner)
        meaning = question + present.any(1, keepdim=True).float() * moved
        return functional.normalize(meaning, dim=-1), gates[:, HEADS]

    def digest(self) -> Digest:
        return Digest({name: rows.detach().numpy().astype(np.float32) for name, rows in self.state_dict().items()})


def train(examples: Sequence[Example], embed: Embed, width: int, seed: int) -> Digest:
    """The digest under which both sides of each example lie near, and all others far. One thread, so that a seed gives
    the same weights again."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    random = Random(seed)
    net = Attention(width)
    optimiser = torch.optim.AdamW(net.parameters(), RATE, weight_decay=DECAY)
    for _ in range(PASSES):
        for batch in _batches(examples, random):
            loss = _loss(net, batch, embed)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch has no types here
            optimiser.step()
    net.eval()
    return net.digest()


def _batches(examples: Sequence[Example], random: Random) -> Iterator[list[Example]]:
    """All examples in another order, and half of the rewrites once more, under a history that does not matter."""
    histories = [example.left.history for example in examples if example.left.history]
    rewrites = [example for example in examples if example.left.history and not example.right.history]
    beside = [
        Example(
            Side(random.choice([one.left.history, random.choice(histories)]), one.right.question), one.right, one.truth
        )
        for one in rewrites
        if random.random() < 0.5
    ]
    shuffled = [*examples, *beside]
    random.shuffle(shuffled)
    yield from (shuffled[start : start + BATCH] for start in range(0, len(shuffled), BATCH))


def _loss(net: Attention, batch: list[Example], embed: Embed) -> torch.Tensor:
    left, stands = net(*tensors([example.left for example in batch], embed))
    right, _ = net(*tensors([example.right for example in batch], embed))
    same = torch.tensor([[a.truth == b.truth and a is not b for b in batch] for a in batch])
    scores = (left @ right.T / TEMPERATURE).masked_fill(same, UNREACHED)
    own = torch.arange(len(batch))
    loss = functional.cross_entropy(scores, own) + functional.cross_entropy(scores.T, own)
    loss = loss + 2 * (1 - (left * right).sum(1)).mean()
    known = torch.tensor([bool(example.left.history) and not example.right.history for example in batch])
    alone = torch.tensor([float(example.left.question == example.right.question) for example in batch])
    if known.any():
        loss += 0.5 * functional.binary_cross_entropy_with_logits(stands[known], alone[known])
    return torch.as_tensor(loss)


def tensors(sides: Sequence[Side], embed: Embed) -> Batch:
    width = len(embed(sides[0].question))
    turns = np.zeros((len(sides), MAX_TURNS, width), np.float32)
    places = np.zeros((len(sides), MAX_TURNS, 3), np.float32)
    present = np.zeros((len(sides), MAX_TURNS), bool)
    for row, side in enumerate(sides):
        for column, (text, place) in enumerate(kept_turns(side.history)):
            turns[row, column], places[row, column], present[row, column] = embed(text), place, True
    questions = np.stack([embed(side.question) for side in sides])
    return (
        torch.from_numpy(questions),
        torch.from_numpy(turns),
        torch.from_numpy(places),
        torch.from_numpy(present),
    )
