"""Vectors of chosen words at several layers, kept in nameless files: memory is that of a batch, then of one layer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from types import TracebackType
from typing import IO

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.nearest_lists import Matrix
from probes.measure.states import WordStates
from synthlang.errors import InputError

LOADED = 1 << 29
"""Bytes: a layer of one side that is larger is mapped, not loaded."""


class WordVectors:
    """Float32 vectors [n, d] of words for each layer, in the folder for temporary files.

    The files have no name on POSIX systems, so nothing is left of them however the process ends. They take
    4 · layers · n · d bytes. Use as a context.
    """

    def __init__(self, layers: int, width: int, device: torch.device) -> None:
        self._files: list[IO[bytes]] = [tempfile.TemporaryFile(buffering=0) for _ in range(layers)]  # noqa: SIM115
        self._width, self._device = width, device
        self._words: list[NDArray[np.int64]] = []

    def __enter__(self) -> WordVectors:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        for file in self._files:
            file.close()

    def write(self, batches: Iterable[WordStates], words: NDArray[np.int64], name: str) -> None:
        """Keep the vectors of ``words`` (ascending) out of all; InputError for NaN, infinity and a full disk."""
        wanted = np.zeros(int(words.max(initial=-1)) + 2, bool)  # one place more, for words after the last one
        wanted[words] = True
        for batch in batches:
            number = batch.word.numpy()
            kept = wanted[np.minimum(number, len(wanted) - 1)]
            vectors = batch.vectors[:, torch.from_numpy(kept).to(batch.vectors.device)].float().cpu()
            if not bool(vectors.isfinite().all()):
                raise InputError(f"{name}: the states of its words hold NaN or infinity: the training run has diverged")
            self._words.append(number[kept])
            try:
                for file, layer in zip(self._files, vectors, strict=True):
                    rest = memoryview(layer.numpy().tobytes())
                    while rest:  # a disk that fills up takes a part first
                        rest = rest[file.write(rest) :]
            except OSError as error:
                raise InputError(
                    f"cannot keep the vectors of all words in {tempfile.gettempdir()}: {error.strerror}; choose "
                    "another folder by the variable TMPDIR, fewer layers, or fewer sentences (data.dev)"
                ) from error

    def rows(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        """In which row of a layer each of ``words`` is; all of them were kept."""
        held = np.concatenate([*self._words, np.zeros(0, np.int64)])
        order = np.argsort(held, kind="stable")
        found = order[np.searchsorted(held, words, sorter=order)]
        assert np.array_equal(held[found], words), "words that were kept"
        return found

    def layer(self, number: int) -> Matrix:
        """[n, d] of the layer at this place: a tensor on the device, or a memory map where that is large."""
        file, count = self._files[number], sum(map(len, self._words))
        if not count:
            return torch.zeros(0, self._width, device=self._device)
        shape, file_size = (count, self._width), 4 * count * self._width
        file.seek(0)
        if file_size > LOADED and self._device.type == "cpu":
            mapped: Matrix = np.memmap(file, np.float32, "r", shape=shape)
            return mapped
        return torch.from_numpy(np.fromfile(file, np.float32).reshape(shape)).to(self._device)
