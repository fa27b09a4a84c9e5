"""A fit that was killed goes on to the same weights, bit by bit."""

from __future__ import annotations

from typing import Any

import pytest

from pretrain.folder import steps_in
from probes.transfer import fit as fitting
from probes.transfer.fit import fine_tune
from synthlang.errors import InputError
from tests.transfer_fits import ACCURACY, FIT, body_of, model_of, moved, tokens, weights

TRAIN, DEV = tokens(60), tokens(20, seed=1)
CONFIG = FIT.model_copy(update={"epochs": 4})
PER_EPOCH = 8


class KilledError(Exception):
    pass


def fit(folder, config=CONFIG, kill_at=None, model=None, seed=0, train=TRAIN):
    def report(_, done, total, note):
        if done == kill_at:
            raise KilledError

    model = model_of() if model is None else model
    return model, fine_tune(model, train, DEV, ACCURACY, config, seed, folder=folder, report=report)


@pytest.mark.parametrize("tune", ["all", "none"])
@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_killed_after_some_epochs(tmp_path, monkeypatch, epochs, tune):
    whole, expected = fit(None, model=model_of(tune=tune, top_layers=1))
    monkeypatch.setattr(fitting, "EVERY", 1)
    with pytest.raises(KilledError):  # in the middle of the next epoch
        fit(tmp_path, kill_at=epochs * PER_EPOCH + 3, model=model_of(tune=tune, top_layers=1))
    assert steps_in(tmp_path) == [epochs]
    resumed, result = fit(tmp_path, model=model_of(tune=tune, top_layers=1))
    assert result == expected
    assert not moved(weights(whole), weights(resumed))


def test_killed_twice_and_best_epoch_before_the_kill(tmp_path, monkeypatch):
    """The weights of an epoch before the kill come back, with a rate that spoils later ones."""
    config = CONFIG.model_copy(update={"schedule": "constant", "learning_rate": 0.3, "clip": None})
    whole, expected = fit(None, config)
    assert expected.best < 4
    monkeypatch.setattr(fitting, "EVERY", 1)
    for kill in (PER_EPOCH * expected.best + 1, PER_EPOCH * 3 + 2):
        with pytest.raises(KilledError):
            fit(tmp_path, config, kill)
    resumed, result = fit(tmp_path, config)
    assert result == expected and not moved(weights(whole), weights(resumed))


def test_a_finished_fit_is_not_done_again(tmp_path, monkeypatch):
    one, first = fit(tmp_path)
    files = sorted(path.name for path in next(tmp_path.iterdir()).iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["step-4"]
    assert files == ["manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"]
    trained = sum(4 * p.numel() for p in one.parameters() if p.requires_grad)
    size = sum(path.stat().st_size for path in (tmp_path / "step-4").iterdir())
    assert trained < size < trained + 20_000  # the best weights and no moments
    monkeypatch.setattr(fitting._Fit, "epoch", None)
    two, second = fit(tmp_path)
    assert first == second and not moved(weights(one), weights(two))


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_damaged_state_is_refused(tmp_path, file):
    fit(tmp_path)
    path = tmp_path / "step-4" / file
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(InputError, match="every checkpoint is damaged; delete the folder"):
        fit(tmp_path)


@pytest.mark.parametrize("other", ["seed", "settings", "data", "weights", "epochs"])
@pytest.mark.parametrize("at", [9, None], ids=["running", "finished"])
def test_a_state_of_another_fit_is_refused(tmp_path, monkeypatch, other, at):
    monkeypatch.setattr(fitting, "EVERY", 1)
    if at is None:
        fit(tmp_path)
    else:
        with pytest.raises(KilledError):
            fit(tmp_path, kill_at=at)
    changes: dict[str, dict[str, Any]] = {
        "seed": {"seed": 1},
        "settings": {"config": CONFIG.model_copy(update={"learning_rate": 1e-3})},
        "epochs": {"config": CONFIG.model_copy(update={"epochs": 9})},
        "data": {"train": tokens(60, seed=2)},
        "weights": {"model": model_of(body_of(seed=1))},
    }
    with pytest.raises(InputError, match="is a checkpoint of another config"):
        fit(tmp_path, **changes[other])
