"""One vector for each word type, whatever its context: read from a file, or trained on a corpus; kept in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.maps.folder import load_tensors, save_tensors
from probes.maps.normalise import batches_of
from synthlang.corpus import Column
from synthlang.errors import InputError

FORMAT = 1
KIND = "word-vectors"


@dataclass(frozen=True, eq=False)
class StaticVectors:
    """Vectors of words, the most frequent first where that is known.

    words     each once
    vectors   [words, d] float32, finite
    facts     how they came about, as JSON values
    """

    words: tuple[str, ...]
    vectors: Tensor
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.words:
            raise InputError("there are no word vectors")
        assert self.vectors.shape[:1] == (len(self.words),) and self.vectors.ndim == 2, self.vectors.shape
        if not bool(self.vectors.isfinite().all()):
            raise InputError("the word vectors hold NaN or infinity")

    @cached_property
    def index(self) -> dict[str, int]:
        """Word → row."""
        return {word: row for row, word in enumerate(self.words)}

    def rows_of(self, words: Sequence[str]) -> NDArray[np.int64]:
        """[n] the row of each word, −1 for one without a vector."""
        return np.fromiter((self.index.get(word, -1) for word in words), np.int64, len(words))

    def rows_of_column(self, forms: Column) -> NDArray[np.int64]:
        """[words] the same for the words of a corpus, each type looked up once."""
        return self.rows_of(forms.names or ())[forms.codes]

    def mapped(self, function: Callable[[Tensor], Tensor]) -> StaticVectors:
        """The same words with other vectors: ``function`` takes and gives rows, batch by batch (``map.apply``)."""
        rows = torch.cat([function(batch) for batch in batches_of(self.vectors)])
        return StaticVectors(self.words, rows.float(), self.facts)

    def save(self, folder: Path, replace: bool = False) -> None:
        """Write safetensors and JSON; InputError if the folder is there and is not to be replaced."""
        facts = {"words": list(self.words), "facts": dict(self.facts)}
        save_tensors(folder, KIND, FORMAT, {"vectors": self.vectors.float()}, facts, replace)

    @staticmethod
    def load(folder: Path) -> StaticVectors:
        """Read what ``save`` wrote; InputError for anything that is damaged or something else."""
        tensors, facts = load_tensors(folder, KIND, FORMAT)
        words = facts.get("words") if isinstance(facts, dict) else None
        vectors = tensors.get("vectors")
        sound = isinstance(words, list) and all(isinstance(word, str) for word in words) and len({*words}) == len(words)
        if not sound or vectors is None or vectors.ndim != 2 or len(vectors) != len(words or ()):
            raise InputError("the words do not fit the vectors beside them; make the folder again", folder)
        return StaticVectors(tuple(words or ()), vectors, facts.get("facts", {}))
