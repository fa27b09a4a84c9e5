"""Word, position and language embeddings, shared by the languages or separate for each, and the tied output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

ABSENT = -(2**40)  # far from every row, so that reading there fails whatever is added


class Embeddings(nn.Module):
    """The tables of a model of L languages over ``size`` ids.

    words      [size, d]; separate: the rows of one language after those of the other, each only for its own ids
    bias       one number for each row of ``words``, of the tied output
    positions  [positions, d]; separate: [L · positions, d]
    languages  [L, d], added to each token of the language; None: no language ids

    segments   [s, d]: the other token types of a checkpoint that the run started from, less type 0; not trained,
               kept for exports

    ``ids`` are those of each language, sorted, special tokens included. A language without
    its own tables is indexed by the id itself.
    """

    def __init__(
        self,
        ids: Sequence[NDArray[np.int64]],
        size: int,
        positions: int,
        hidden: int,
        separate: bool,
        language_ids: bool,
    ) -> None:
        super().__init__()
        languages = len(ids)
        self.separate, self.size, self.length = separate, size, positions
        self.sizes = [len(own) for own in ids]
        self.words = nn.Parameter(torch.empty(sum(self.sizes) if separate else size, hidden))
        self.bias = nn.Parameter(torch.zeros(len(self.words)))
        self.positions = nn.Parameter(torch.empty(positions * (languages if separate else 1), hidden))
        self.languages = nn.Parameter(torch.empty(languages, hidden)) if language_ids else None
        for language, own in enumerate(ids):
            self.register_buffer(f"ids_{language}", torch.from_numpy(own.astype(np.int64)), persistent=False)
        self.register_buffer("places", torch.from_numpy(_places(ids, size)), persistent=False)
        offsets = np.cumsum([0, *self.sizes[:-1]])
        self.register_buffer("offsets", torch.from_numpy(offsets), persistent=False)
        self.register_buffer("segments", torch.zeros(0, hidden), persistent=False)
        self.places: Tensor
        self.offsets: Tensor
        self.segments: Tensor

    def ids(self, language: int) -> Tensor:
        own: Tensor = self.get_buffer(f"ids_{language}")
        return own

    def forward(
        self, input_ids: Tensor, languages: Tensor, positions: Tensor | None, segments: Tensor | None = None
    ) -> Tensor:
        """The sum of the embeddings of tokens [r, w] of the given languages [r, w]: [r, w, d].

        ``positions`` [r, w] are 0-based; None: 0 … w − 1 in each row. ``segments`` [r, w] are token types; None: all 0.
        """
        if positions is None:
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        if self.separate:
            positions = positions + languages * self.length
        x = nn.functional.embedding(self.rows(input_ids, languages), self.words)
        x = x + nn.functional.embedding(positions, self.positions)
        if segments is not None and len(self.segments):
            types = torch.cat([torch.zeros_like(self.segments[:1]), self.segments])  # type 0 is in the positions
            x = x + nn.functional.embedding(segments, types)
        return x if self.languages is None else x + nn.functional.embedding(languages, self.languages)

    def rows(self, ids: Tensor, languages: Tensor | int) -> Tensor:
        """The row of ``words`` of each id of a language."""
        if not self.separate:
            return ids
        return self.places[languages, ids] + self.offsets[languages]

    def outputs(self, languages: Sequence[int], restrict: bool) -> dict[int, tuple[Tensor, Tensor]]:
        """Output matrix and bias of each language: all rows, or (``restrict``) those of its own ids in their order."""
        if self.separate:
            words, bias = torch.split(self.words, self.sizes), torch.split(self.bias, self.sizes)
            return {m: (words[m], bias[m]) for m in languages}
        if restrict:
            return {m: (self.words[self.ids(m)], self.bias[self.ids(m)]) for m in languages}
        return dict.fromkeys(languages, (self.words, self.bias))


def _places(ids: Sequence[NDArray[np.int64]], size: int) -> NDArray[np.int64]:
    """For each language and id the place of the id among the language's own, [L, size]; ABSENT: it has no such id."""
    places = np.full((len(ids), size), ABSENT)
    for language, own in enumerate(ids):
        assert np.all(np.diff(own) > 0) and own[-1] < size, "ids of a language are sorted, distinct and in the space"
        places[language, own] = np.arange(len(own))
    return places
