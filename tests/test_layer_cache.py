"""The cache of layers: rows come back whole and in blocks, loaded and mapped, and a full disk is refused."""

import tempfile

import numpy as np
import pytest
import torch

from probes import layer_cache
from probes.layer_cache import LayerCache
from probes.measures.retrieval.sources import WordVectors
from probes.states import WordStates
from tests.refusals import refused

CPU = torch.device("cpu")


@pytest.mark.parametrize("loaded", [0, 1 << 20])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_rows_come_back(monkeypatch, tmp_path, loaded, dtype):
    monkeypatch.setattr(layer_cache, "LOADED", loaded)
    monkeypatch.setattr(layer_cache, "ROWS", 9)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    drawn = torch.randn(3, 50, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
    files = LayerCache(3, 4)
    for part in drawn.split(7, 1):
        files.write(part)
    assert files.count == 50 and files.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    for layer in range(3):
        whole = files.layer(layer, CPU)
        assert isinstance(whole, np.memmap) == (loaded == 0)
        assert torch.equal(torch.from_numpy(np.asarray(whole).copy()), drawn[layer].to(files.dtype))
        assert torch.equal(torch.cat(list(files.blocks(layer))), drawn[layer].to(files.dtype))
        assert [len(block) for block in files.blocks(layer)] == [9] * 5 + [5]
    assert list(tmp_path.iterdir()) == []  # the files have no name
    assert LayerCache(1, 4).layer(0, CPU).shape == (0, 4) and not list(LayerCache(1, 4).blocks(0))


def test_vectors_of_some_words_are_found_again():
    drawn = torch.randn(3, 50, 4, generator=torch.Generator().manual_seed(0))
    order = torch.randperm(50, generator=torch.Generator().manual_seed(1))
    batches = [WordStates(drawn[:, some], some) for some in order.split(7)]
    words, vectors = np.array([1, 4, 9, 20, 44]), WordVectors(3, 4, CPU)
    vectors.write(batches, words, "side")
    for place in range(3):
        held = torch.as_tensor(vectors.layer(place))
        assert torch.equal(held[vectors.rows(words[::-1])], drawn[place, words[::-1].copy()]) and len(held) == 5
    empty = WordVectors(3, 4, CPU)
    empty.write(batches, words[:0], "side")
    assert empty.layer(0).shape == (0, 4)


def test_a_full_disk_is_refused(monkeypatch):
    full = lambda buffering: open("/dev/full", "w+b", buffering=buffering)  # noqa: E731, SIM115
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    assert refused(LayerCache(2, 4).write, torch.zeros(2, 3, 4)) == ("tmp", "resources")
