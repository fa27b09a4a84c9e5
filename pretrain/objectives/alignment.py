"""The alignment term: words of a dictionary are pulled together with their translations."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd import Function

from synthlang.dictionary.ids import IdDictionary

SMALLEST = 1e-8  # of a norm, so that a row of zeros has the cosine 0


class WordRows(Protocol):
    """A model whose word embedding can be read."""

    def word_rows(self, ids: Tensor, language: int) -> Tensor:
        """The raw rows [n, d] of ids [n] of a language."""
        ...


class Alignment:
    """L_align = −Σ cos(E[i], E[i′]) over the whole dictionary, every step (ALIGN-MLM, section 3 and appendix G.5).

    E are raw rows of the word embedding: without position, language or LayerNorm.

    shared   whether all languages have the same rows: then they are read at once, and so is their gradient written
    """

    def __init__(self, dictionary: IdDictionary, shared: bool, device: torch.device) -> None:
        assert len(dictionary), "an empty dictionary aligns nothing"
        self.pairs = len(dictionary)
        languages = torch.from_numpy(dictionary.languages)
        if shared:
            languages = torch.zeros_like(languages)
        ids = torch.from_numpy(dictionary.pairs)
        self.blocks: list[tuple[int, int, Tensor, Tensor]] = []  # languages and ids of both sides
        for left, right in torch.unique(languages, dim=0).tolist():
            here = ids[(languages == torch.tensor([left, right])).all(dim=1)].to(device)
            self.blocks.append((left, right, here[:, 0].contiguous(), here[:, 1].contiguous()))

    def loss(self, model: WordRows) -> Tensor:
        """Minus the sum of the cosines, each in [−1, 1]; float32."""
        return -torch.stack([_cosines(model, *block) for block in self.blocks]).sum()


def _cosines(model: WordRows, left: int, right: int, sources: Tensor, targets: Tensor) -> Tensor:
    """Σ cos of the pairs of two languages."""
    if left == right:
        rows = model.word_rows(torch.cat([sources, targets]), left)
    else:
        rows = torch.cat([model.word_rows(sources, left), model.word_rows(targets, right)])
    total: Tensor = _SumOfCosines.apply(rows.float())  # type: ignore[no-untyped-call]
    return total


class _SumOfCosines(Function):
    """Σ cos(a_i, b_i) of rows [2n, d]: a, then b. The gradient is made on the way, in half the time of autograd's.

    ∂cos/∂a = b / (|a| |b|) − cos · a / |a|²
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        a, b = rows.chunk(2)
        norms = torch.linalg.vector_norm(rows, dim=1).clamp_min(SMALLEST)
        inverse = 1.0 / (norms[: len(a)] * norms[len(a) :])
        cosines = (a * b).sum(dim=1) * inverse
        gradient = rows * (-torch.cat([cosines, cosines]) / norms**2).unsqueeze(1)
        for mine, other in zip(gradient.chunk(2), (b, a), strict=True):
            mine.addcmul_(other, inverse.unsqueeze(1))
        ctx.save_for_backward(gradient)
        total: Tensor = cosines.sum()
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        rows: Tensor = ctx.saved_tensors[0]
        return rows * gradient
