"""Maps between normalised spaces: planted rotations, SciPy, pairs from words and sentences, and the folder."""

import json
import shutil

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from probes.rotation.fitted import MapFitter, NormalisedMap, fit_layers, fit_map
from probes.rotation.normalise import Normaliser
from probes.rotation.procrustes import procrustes
from probes.rotation.saved import load_map, save_map
from probes.rotation.settings import METHODS
from probes.static.vectors import pool_rows
from synthlang.errors import InputError

WIDTH = 8


def rows(count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    scales, shift = torch.logspace(-0.5, 0.5, WIDTH), torch.linspace(2, -1, WIDTH)
    return (torch.randn(count, WIDTH, generator=generator, dtype=torch.float64) * scales + shift).float()


def turn(seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(ortho_group.rvs(WIDTH, random_state=seed)).float()


def found(fitted: NormalisedMap, x: torch.Tensor, y: torch.Tensor) -> float:
    """Share of rows of ``x`` whose nearest row of ``y`` by cosine is their own."""
    a, b = (torch.nn.functional.normalize(side, dim=1) for side in (fitted.apply(x), fitted.apply_right(y)))
    return float(((a @ b.T).argmax(1) == torch.arange(len(x))).float().mean())


@pytest.mark.parametrize("method", METHODS)
def test_a_planted_rotation_is_found(method):
    x, new = rows(300), rows(50, seed=3)
    w = turn()
    fitted = fit_map(x, x @ w.T, method)
    torch.testing.assert_close(fitted.fit.map.matrix.float(), w, atol=1e-5, rtol=0)
    torch.testing.assert_close(fitted.apply(new), fitted.apply_right(new @ w.T), atol=1e-5, rtol=0)
    assert fitted.fit.residual < 1e-10 < 0.1 < fitted.fit.identity
    assert found(fitted, new, new @ w.T) == 1.0 > 0.5 > found(fit_map(x, x, method), new, new @ w.T)


@pytest.mark.parametrize("method", METHODS[1:])
def test_it_is_found_under_noise(method):
    x, noise = rows(2000), 0.05 * torch.randn(2000, WIDTH, generator=torch.Generator().manual_seed(5))
    fitted = fit_map(x, x @ turn(1).T + noise, method)
    assert float((fitted.fit.map.matrix.float() - turn(1)).abs().max()) < 0.03
    assert 0 < fitted.fit.residual < 0.1 * fitted.fit.identity


def test_lengths_are_undone_by_iterations_and_shifts_by_centring():
    """Positive control of each normalisation: what the plain rotation gets wrong, it gets right."""
    x, w = rows(300), turn(2)
    shifted = x @ w.T + torch.linspace(-30, 50, WIDTH)
    plain, centred = fit_map(x, shifted), fit_map(x, shifted, "centre")
    torch.testing.assert_close(centred.fit.map.matrix.float(), w, atol=1e-5, rtol=0)
    assert float((plain.fit.map.matrix.float() - w).abs().max()) > 0.1
    stretched = (x @ w.T) * torch.logspace(-2, 2, 300)[
        :, None
    ]  # each vector its own length: only the direction is kept
    iterated = fit_map(x, stretched, "iterative")
    torch.testing.assert_close(iterated.fit.map.matrix.float(), w, atol=1e-4, rtol=0)
    assert float((fit_map(x, stretched, "centre").fit.map.matrix.float() - w).abs().max()) > 0.05


@pytest.mark.parametrize("method", METHODS)
def test_it_is_scipys_on_normalised_rows(method):
    x, y = rows(100), rows(100, seed=1) @ turn(3)
    fitted = fit_map(x, y, method)
    a, b = (Normaliser.fit(side, method).apply(side.double()).numpy() for side in (x, y))
    expected, _ = orthogonal_procrustes(a, b)
    np.testing.assert_allclose(fitted.fit.map.matrix.numpy(), expected.T, atol=1e-10)
    assert fitted.fit.residual == pytest.approx(np.square(a @ expected - b).sum(1).mean())


def test_without_normalisation_it_is_the_map_of_before():
    """Kulshreshtha et al. 2020, equation 5, from both ways to centre."""
    x, y, new = rows(60), rows(60, seed=1), rows(9, seed=2)
    for centre in (False, True):
        old, fitted = procrustes(x, y, centre), fit_map(x, y, centre=centre)
        torch.testing.assert_close(fitted.fit.map.matrix, old.map.matrix, atol=1e-12, rtol=0)
        torch.testing.assert_close(fitted.apply(new), old.map.apply(new))
        torch.testing.assert_close(fitted.linear().apply(new), old.map.apply(new))
    centred = fit_map(x, y, "centre")
    x_mean, y_mean = x.double().mean(0), y.double().mean(0)
    by_hand = (new.double() - x_mean) @ centred.fit.map.matrix.T + y_mean
    torch.testing.assert_close(centred.linear().apply(new.double()), by_hand)
    torch.testing.assert_close(procrustes(x, y, True).map.apply(new.double()), by_hand)
    both = fit_map(x, y, "centre", centre=True)
    torch.testing.assert_close(both.linear().apply(new.double()), by_hand)
    with pytest.raises(InputError, match="iterative moves nothing into the other language's own space"):
        fit_map(x, y, "iterative").linear()


def test_means_of_whole_vocabularies():
    """As Zhang et al. have it: normalised on all words, turned by those of a dictionary."""
    x, w = rows(500), turn(4)
    y = x @ w.T + 4.0
    sides = Normaliser.fit(x, "iterative"), Normaliser.fit(y + 0.0, "iterative")
    fitter = MapFitter(*sides)
    fitter.update(x[:40], y[:40])
    fitted = fitter.fit()
    assert fitted.left is sides[0] and fitted.left.rows == 500 and fitted.fit.pairs == 40
    assert not torch.allclose(fitted.left.means, fit_map(x[:40], y[:40], "iterative").left.means)
    with pytest.raises(InputError, match="8 dimensions, their normaliser 3"):
        MapFitter(sides[0], Normaliser.fit(torch.eye(3), "iterative")).update(x, y)


def test_mean_vectors_of_sentences_pair_up_too():
    words, w = rows(400), turn(5)
    order = torch.randperm(400, generator=torch.Generator().manual_seed(0))
    offsets = np.arange(0, 401, 4)
    left = pool_rows(words, offsets)
    shuffled = torch.cat([block[torch.randperm(4)] for block in words.view(100, 4, WIDTH)])
    right = pool_rows(shuffled @ w.T, offsets)  # the words of a sentence in another order
    fitted = fit_map(left, right, "centre")
    torch.testing.assert_close(fitted.fit.map.matrix.float(), w, atol=1e-4, rtol=0)
    assert fit_map(left, pool_rows((words @ w.T)[order], offsets), "centre").fit.residual > 0.1  # other sentences


@pytest.mark.parametrize("method", METHODS)
def test_batches_are_one_matrix(method):
    x, y = rows(101), rows(101, seed=1)
    cuts = [(0, 30), (30, 30), (30, 101)]
    whole = fit_map(x, y, method)
    (other,) = fit_layers(lambda: [(x[None, a:b], y[None, a:b]) for a, b in cuts], 1, WIDTH, method)
    torch.testing.assert_close(other.fit.map.matrix, whole.fit.map.matrix, atol=1e-9, rtol=0)
    assert other.fit.pairs == 101


@pytest.mark.parametrize("method", METHODS)
def test_zeros_are_left_out_and_stay(method):
    x, y = rows(60), rows(60, seed=1)
    a, b = torch.cat([x, x[:2], torch.zeros(1, WIDTH)]), torch.cat([y, torch.zeros(2, WIDTH), y[:1]])
    fitted = fit_map(a, b, method)
    assert (fitted.zeros, fitted.fit.pairs) == (3, 60) and fitted.to_json()["zeros"] == 3
    moved = fit_map(x, y, method, centre=True).apply(a)
    assert torch.equal(moved[-1], torch.zeros(WIDTH)) and bool((moved[:-1] != 0).any(1).all())


def test_bad_pairs_are_refused():
    x = rows(10)
    for method in ("none", "iterative"):
        with pytest.raises(InputError, match="8 and 4 dimensions"):
            MapFitter(Normaliser.fit(x, method), Normaliser.fit(x[:, :4], method)).update(x, x[:, :4])
        with pytest.raises(InputError, match="NaN or infinity"):
            fit_map(x, torch.where(x == x[3, 3], float("nan"), x), method)
        with pytest.raises(InputError, match=r"no pairs of vectors|no vectors to normalise"):
            fit_map(x[:0], x[:0], method)
    with pytest.raises(InputError, match="a vector is zero in each of 10"):
        fit_map(x, torch.zeros(10, WIDTH))
    one = fit_map(x[:1], x[1:2], "centre")  # one sentence: the numbers say that it means nothing
    assert one.fit.pairs == 1 and one.fit.rank == 0 and torch.equal(one.fit.map.matrix.float(), torch.eye(WIDTH))
    with pytest.raises(InputError, match="point the same way"):
        fit_map(x[:1], x[1:2], "iterative")


@pytest.mark.parametrize("method", METHODS)
def test_a_map_is_the_same_after_its_folder(tmp_path, method):
    fitted = fit_map(rows(50), rows(50, seed=1), method, centre=True, rounds=3)
    save_map(fitted, tmp_path / "map")
    read = load_map(tmp_path / "map")
    assert read.to_json() == fitted.to_json() and read.fit.residual == fitted.fit.residual
    new = rows(7, seed=2)
    assert torch.equal(read.apply(new), fitted.apply(new)) and torch.equal(
        read.apply_right(new), fitted.apply_right(new)
    )
    save_map(fitted, tmp_path / "again")
    for file in (tmp_path / "map").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
    with pytest.raises(InputError, match="exists already"):
        save_map(fitted, tmp_path / "map")


def test_a_damaged_folder_is_refused(tmp_path):
    fitted = fit_map(rows(50), rows(50, seed=1), "iterative")

    def save() -> None:
        shutil.rmtree(tmp_path / "map", ignore_errors=True)
        save_map(fitted, tmp_path / "map")

    for name in ("tensors.safetensors", "facts.json"):
        for at in (10, -3):
            save()
            raw = bytearray((tmp_path / "map" / name).read_bytes())
            raw[at] ^= 1
            (tmp_path / "map" / name).write_bytes(bytes(raw))
            with pytest.raises(InputError, match=f"{name}: differs from its checksum"):
                load_map(tmp_path / "map")
        (tmp_path / "map" / name).unlink()
        with pytest.raises(InputError, match=f"{name}: no such file"):
            load_map(tmp_path / "map")
    with pytest.raises(InputError, match="no such file"):
        load_map(tmp_path / "nowhere")
    for change, said in (
        ({"kind": "word-vectors"}, "holds no map"),
        ({"format": 9}, "is of format 9"),
        ({"sha256": 1}, "differs"),
    ):
        save()
        manifest = tmp_path / "map" / "manifest.json"
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))
        with pytest.raises(InputError, match=said):
            load_map(tmp_path / "map")


def test_tensors_that_do_not_fit_are_refused(tmp_path):
    """Whoever mends the checksum as well still gets no wrong map."""
    fitted = fit_map(rows(50), rows(50, seed=1), "iterative")
    fewer = Normaliser("iterative", 5, fitted.left.means[:2], 50, 0)
    save_map(NormalisedMap(fewer, fitted.right, fitted.fit, 0), tmp_path / "fewer")
    broken = Normaliser("iterative", 5, fitted.left.means * float("nan"), 50, 0)
    save_map(NormalisedMap(broken, fitted.right, fitted.fit, 0), tmp_path / "nan")
    with pytest.raises(InputError, match="do not fit the facts"):
        load_map(tmp_path / "fewer")
    with pytest.raises(InputError, match="NaN or infinity"):
        load_map(tmp_path / "nan")
