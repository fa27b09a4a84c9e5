"""Maps that the probe saved move the features of a transfer."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch

from probes.rotation.features import Rotation, fit_rotation
from probes.rotation.fitted import fit_map
from probes.rotation.saved import About, load_maps, save_maps
from probes.rotation.settings import Method, RotationConfig
from probes.transfer.config import FeaturesConfig, TransferConfig
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from synthlang.config import parse
from tests.maps_cases import subject_of, values_of
from tests.refusals import refused

ABOUT = About(moves="source", source=(2,), target=(2,), subword="end", supervision="parallel", model="m", language="x")
MINI = "builtin:mini-english?types=500&sentences=60&dev=20&test=20"


@pytest.mark.parametrize("method", get_args(Method))
def test_a_map_is_the_same_after_its_folder(tmp_path, method):
    generator = torch.Generator().manual_seed(0)
    x, y, new = (torch.randn(n, 8, generator=generator) + 1 for n in (50, 50, 7))
    fitted = fit_map(x, y, method, centre=True, rounds=3)
    for name in ("maps", "again"):
        save_maps(tmp_path / name, [fitted], ABOUT)
    found = load_maps(tmp_path / "maps")
    read = found.maps[2]
    assert found.about == ABOUT and found.name == load_maps(tmp_path / "again").name
    assert read.to_json() == fitted.to_json() and read.fit.residual == fitted.fit.residual
    assert torch.equal(read.apply(new), fitted.apply(new))
    assert torch.equal(read.apply_right(new), fitted.apply_right(new))
    for file in (tmp_path / "maps").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


DAMAGED = [
    ("maps.safetensors", None, "maps.safetensors", "missing"),
    ("maps.safetensors", b"x", "maps.safetensors", "damaged"),
    ("maps.json", None, "maps", "missing"),
    ("maps.json", b'{"format": 1}', "maps", "unsupported"),
    ("maps.json", b'{"format": 2}', "maps.json about", "missing"),
    ("maps.json", b"[1]", "maps.json", "type"),
]


@pytest.mark.parametrize(("file", "content", "place", "code"), DAMAGED)
def test_a_damaged_folder_is_refused(tmp_path, file, content, place, code):
    save_maps(tmp_path / "maps", [fit_map(torch.eye(4), torch.eye(4))], ABOUT)
    path = tmp_path / "maps" / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert refused(load_maps, tmp_path / "maps") == (place, code)


def saved(run, folder, **settings):
    maps = {"save": str(folder), "normalise": "centre", "moves": "source", "supervision": ["parallel"], **settings}
    values_of(subject_of(run, maps, subword="mean", data={"dev": 10}))
    return str(folder / "parallel")


def features(*layers, subword="mean"):
    return parse(FeaturesConfig, {"tune": "none", "layers": list(layers), "subword": subword})


@pytest.mark.parametrize("method", [None, "iterative", "unit-centre-unit"])
def test_a_saved_map_is_the_map_that_a_transfer_fits(run, tmp_path, method):
    """Fitted on the same words, equation 5 from the probe is that of the rotation; so are normalised states."""
    folder = saved(run, tmp_path / "maps", normalise=method or "centre")
    loaded = fit_rotation(RotationConfig(map=folder), features(2, -2), run)
    fitted = fit_rotation(parse(RotationConfig, {"data": {"dev": 10}, "normalise": method}), features(2, -2), run)
    states = torch.randn(7, 16)
    assert loaded.reads == fitted.reads and len(loaded.reads) == (1 if method is None else 2)
    for index in (0, 1):
        for role in loaded.reads:
            moved = loaded.apply(states, index, role), fitted.apply(states, index, role)
            torch.testing.assert_close(*moved, atol=1e-4, rtol=0)
    assert not torch.allclose(loaded.apply(states, 0), states, atol=0.1)
    assert loaded.maps[0].fit.pairs == fitted.maps[0].fit.pairs and loaded.layers == (2, -2)
    assert loaded.name == load_maps(tmp_path / "maps" / "parallel").name
    assert loaded.to_json()["moves"] == "source"


def test_a_transfer_is_one_of_its_maps(run, tmp_path):
    """The fingerprint is of the maps, not of where they are; a folder that holds none is refused at once."""
    frozen = {"tune": "none", "layers": [2], "subword": "mean"}
    settings_of_transfer = {"task": "pos", "train": MINI, "length": 48, "features": frozen}
    names = []
    for place, settings in (("a", {}), ("b", {}), ("c", {"normalise": "none"}), ("d", {"normalise": "iterative"})):
        folder = saved(run, tmp_path / place, **settings)
        config = parse(TransferConfig, {**settings_of_transfer, "rotation": {"map": folder}})
        transfer = Transfer(run, load_data(config, run), config)
        names.append(transfer.fingerprint)
        built = transfer.build(config, "source", 0)
        rotation = built.features.rotations["source"]
        assert isinstance(rotation, Rotation) and rotation.layers == (2,)
        assert ("target" in built.features.rotations) == (place == "d")
        assert "aligned" not in transfer.aligned
    assert names[0] == names[1] and len(set(names)) == 3
    missing = parse(TransferConfig, {**settings_of_transfer, "rotation": {"map": str(tmp_path)}})
    assert refused(Transfer, run, transfer.data, missing) == (tmp_path.name, "missing")


def test_maps_that_do_not_fit_are_refused(run, tmp_path):
    folder = saved(run, tmp_path / "maps")
    other = replace(run, fingerprint="other")
    language = run.target.language.model_copy(update={"name": "german"})
    german = replace(run, target=replace(run.target, language=language))
    for maps, moves, read, pretrained, code in (
        (folder, "target", features(2), run, "conflict"),
        (folder, "source", features(2, subword="first"), run, "conflict"),
        (folder, "source", features(2), other, "conflict"),
        (folder, "source", features(2), german, "conflict"),
        (str(tmp_path), "source", features(2), run, "missing"),
    ):
        rotation = parse(RotationConfig, {"map": maps, "moves": moves})
        assert refused(fit_rotation, rotation, read, pretrained) == (Path(maps).name, code)
