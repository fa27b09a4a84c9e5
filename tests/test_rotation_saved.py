"""Maps that the probe saved move the features of a transfer."""

from dataclasses import replace

import pytest
import torch

from probes.rotation.features import Rotation, fit_rotation
from probes.rotation.saved import load_maps
from probes.rotation.settings import RotationConfig
from probes.transfer.config import FeaturesConfig, TransferConfig
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from synthlang.config import parse
from synthlang.errors import InputError
from tests.aligned_runs import random_run
from tests.maps_cases import subject_of, values_of

MINI = "builtin:mini-english?types=500&sentences=60&dev=20&test=20"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("store"))


def saved(run, folder, **settings):
    maps = {"save": str(folder), "normalise": "centre", "moves": "source", "supervision": ["parallel"], **settings}
    values_of(subject_of(run, maps, subword="mean", data={"dev": 10}))
    return str(folder / "parallel")


def features(*layers, subword="mean"):
    return parse(FeaturesConfig, {"tune": "none", "layers": list(layers), "subword": subword})


def test_a_saved_map_is_the_map_that_a_transfer_fits(run, tmp_path):
    """Fitted on the same words, equation 5 from the probe is that of the rotation."""
    folder = saved(run, tmp_path / "maps")
    loaded = fit_rotation(RotationConfig(map=folder), features(2, -2), run)
    fitted = fit_rotation(parse(RotationConfig, {"data": {"dev": 10}}), features(2, -2), run)
    states = torch.randn(7, 16)
    for index in (0, 1):
        torch.testing.assert_close(loaded.apply(states, index), fitted.apply(states, index), atol=1e-4, rtol=0)
    assert not torch.allclose(loaded.apply(states, 0), states, atol=0.1)
    assert loaded.fits[0].pairs == fitted.fits[0].pairs and loaded.layers == (2, -2)
    assert loaded.name == load_maps(tmp_path / "maps" / "parallel").name
    assert loaded.to_json()["moves"] == "source"


def test_a_transfer_is_one_of_its_maps(run, tmp_path):
    """The fingerprint is of the maps, not of where they are."""
    frozen = {"tune": "none", "layers": [2], "subword": "mean"}
    settings_of_transfer = {"task": "pos", "train": MINI, "length": 48, "features": frozen}
    names = []
    for place, settings in (("a", {}), ("b", {}), ("c", {"normalise": "none"})):
        folder = saved(run, tmp_path / place, **settings)
        config = parse(TransferConfig, {**settings_of_transfer, "rotation": {"map": folder}})
        transfer = Transfer(run, load_data(config, run), config)
        names.append(transfer.fingerprint)
        built = transfer.build(config, "source", 0)
        rotation = built.features.rotations["source"]
        assert isinstance(rotation, Rotation) and rotation.layers == (2,)
        assert "aligned" not in transfer.aligned
    assert names[0] == names[1] != names[2]


def test_maps_that_cannot_move_features_are_refused_before_anything_is_read(run, tmp_path):
    folder = saved(run, tmp_path / "maps", normalise="iterative")
    frozen = {"tune": "none", "layers": [2], "subword": "mean"}
    data = {"task": "pos", "train": MINI, "length": 48, "features": frozen}
    config = parse(TransferConfig, {**data, "rotation": {"map": folder}})
    held = load_data(parse(TransferConfig, data), run)
    with pytest.raises(InputError, match=r"maps/parallel: holds maps .* iterative, .*normalise: none or centre"):
        Transfer(run, held, config)


def test_maps_that_do_not_fit_are_refused(run, tmp_path):
    folder = saved(run, tmp_path / "maps")
    iterative = saved(run, tmp_path / "iterative", normalise="iterative")
    other = replace(run, fingerprint="other")
    german = replace(run, target=replace(run.target, language=replace_name(run.target.language)))
    for maps, moves, read, pretrained, message in (
        (
            folder,
            "target",
            features(2),
            run,
            "maps that move the source, of words read by mean; the transfer moves the target",
        ),
        (folder, "source", features(2, subword="first"), run, "reads start"),
        (folder, "source", features(2), other, "maps of another model or language"),
        (folder, "source", features(2), german, "maps of another model or language"),
        (iterative, "source", features(2), run, "parallel: holds maps with the normalisation iterative, which cannot"),
        (str(tmp_path), "source", features(2), run, "holds no maps.json"),
    ):
        with pytest.raises(InputError, match=message):
            fit_rotation(parse(RotationConfig, {"map": maps, "moves": moves}), read, pretrained)
    shallow = saved(run, tmp_path / "shallow")
    (tmp_path / "shallow" / "parallel" / "layer-2" / "tensors.safetensors").write_bytes(b"x")
    with pytest.raises(InputError, match="differs from its checksum"):
        fit_rotation(RotationConfig(map=shallow), features(2), run)


def replace_name(language):
    return language.model_copy(update={"name": "german"})
