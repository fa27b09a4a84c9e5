"""Checkpoints: which ones stay, which ones are refused, and what is said of damaged ones."""

import errno
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from torch import nn

from pretrain import checkpoints
from pretrain.checkpoints import (
    check_finite,
    is_sound,
    latest_checkpoint,
    load_checkpoint,
    load_weights,
    save_checkpoint,
    selected_checkpoint,
)
from pretrain.config import CheckpointConfig
from pretrain.config.training import LogSteps
from pretrain.folder import kept_steps, named_steps, steps_in
from tests.refusals import refused


def model_and_optimizer():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


EVERY = CheckpointConfig(every=1)


def save(folder, step, policy=EVERY, steps=None, **state):
    model, optimizer = model_and_optimizer()
    save_checkpoint(folder, model, optimizer, {"run": "r", "step": step, **state}, policy, steps=steps)


def test_the_best_checkpoint_stays(tmp_path):
    for step in range(1, 9):
        save(tmp_path, step, CheckpointConfig(every=1, keep=2), **({"best": 4} if step >= 4 else {}))
    assert steps_in(tmp_path) == [4, 7, 8]


@pytest.mark.parametrize("stopped", [(), (4, 5, 7, 10)])
@pytest.mark.parametrize("more", [{"keep": 1}, {"keep": 3}, {"keep": 1, "archive": 6}])
def test_a_run_that_was_stopped_in_between_ends_with_the_same_checkpoints(stopped, more, tmp_path):
    """Every third step and the last one; SIGTERM saves where it comes."""
    policy, last = CheckpointConfig(every=3, **more), 11
    for step in range(1, last + 1):
        if step % policy.every == 0 or step == last or step in stopped:
            save(tmp_path, step, policy)
            assert step in steps_in(tmp_path)
    archived = {3 * n for n in range(1, 4) if policy.archive and 3 * n % policy.archive == 0}
    assert steps_in(tmp_path) == sorted({*[3, 6, 9, 11][-policy.keep :], *archived}) == kept_steps(policy, last)


@pytest.mark.parametrize(
    ("at", "named"),
    [
        ((2, 5), [2, 5]),
        ((0.5, 0.05), [1, 5]),
        (LogSteps(log=4), [1, 2, 5, 11]),
        (LogSteps(log=9, first=4), range(4, 12)),
    ],
)
def test_named_steps_are_kept_beside_the_latest(at, named, tmp_path):
    policy, last = CheckpointConfig(every=3, keep=1, at=at), 11
    for step in range(1, last + 1):
        if step % policy.every == 0 or step == last or step in policy.steps_at(last):
            save(tmp_path, step, policy, last)
            assert step in steps_in(tmp_path)
    assert steps_in(tmp_path) == sorted({*named, last}) == kept_steps(policy, last) == named_steps(policy, last)


def test_steps_at_equal_ratios_are_those_of_numpy():
    for steps, log, first in ((1000, 4, 1), (500_000, 30, 100), (200, 10, 1), (7, 20, 2)):
        expected = np.unique(np.rint(np.geomspace(first, steps, log)))
        assert LogSteps(log=log, first=first).of(steps) == expected.tolist()


def test_a_damaged_later_checkpoint_does_not_push_out_the_one_that_is_saved(tmp_path):
    policy = CheckpointConfig(every=2, keep=1)
    for step in (8, 5):  # 8 is damaged, and training went on from 4
        save(tmp_path, step, policy)
    assert steps_in(tmp_path) == [5]


def test_what_is_saved_comes_back(tmp_path):
    model, optimizer = model_and_optimizer()
    save_checkpoint(tmp_path, model, optimizer, {"run": "r", "step": 1}, CheckpointConfig())
    other, others = model_and_optimizer()
    assert load_checkpoint(tmp_path / "step-1", other, others, "r") == {"run": "r", "step": 1}
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    mine, theirs = optimizer.state_dict()["state"], others.state_dict()["state"]
    assert all(torch.equal(mine[i][k], theirs[i][k]) for i in mine for k in mine[i])


def test_a_damaged_checkpoint_is_passed_over_aloud(tmp_path):
    for step in (1, 2):
        save(tmp_path, step)
    path = tmp_path / "step-2" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    told: list[str] = []
    assert not is_sound(tmp_path / "step-2")
    assert latest_checkpoint(tmp_path, told.append) == tmp_path / "step-1"
    assert len(told) == 1 and "step-2 is damaged" in told[0]
    (tmp_path / "step-1" / "state.json").write_text("{}")
    assert refused(latest_checkpoint, tmp_path) == (tmp_path.name, "damaged")


@pytest.mark.parametrize(
    "manifest",
    [None, "[]", '{"sha256": []}', '{"sha256": {}}', '{"format": 1, "sha256": {}}', "\\xff", "other", "state.json"],
)
def test_a_manifest_that_says_nothing_and_a_missing_file_are_damage(manifest, tmp_path):
    save(tmp_path, 1)
    save(tmp_path, 2)
    path = tmp_path / "step-2" / "manifest.json"
    if manifest is None or manifest == "state.json":
        path.with_name(manifest or path.name).unlink()
    else:
        other_format = json.dumps(json.loads(path.read_text()) | {"format": 1})
        path.write_text(other_format if manifest == "other" else manifest)
    (tmp_path / "step-3").write_text("")  # no folder
    assert not is_sound(tmp_path / "step-2") and latest_checkpoint(tmp_path) == tmp_path / "step-1"


def test_weights_that_are_not_finite_are_named(tmp_path):
    save(tmp_path / "checkpoints", 1)
    model = nn.Linear(3, 2)
    check_finite(model, 2, tmp_path / "checkpoints")
    with torch.no_grad():
        model.bias[1] = float("nan")
    assert refused(check_finite, model, 2, tmp_path / "checkpoints") == (tmp_path.name, "failed")


def test_the_best_one_stands_for_the_run(tmp_path):
    policy = CheckpointConfig(every=1, keep=1, select="best")
    save(tmp_path, 1, policy, best=1)
    save(tmp_path, 2, policy, best=1)
    assert selected_checkpoint(tmp_path, 2) == tmp_path / "step-1"
    shutil.rmtree(tmp_path / "step-1")
    assert refused(selected_checkpoint, tmp_path, 2) == ("step-1", "damaged")


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_an_older_checkpoint_never_stands_for_a_finished_run(damage, tmp_path):
    """It would be measured under the name of the other model; a run that goes on may take it, aloud."""
    for step in (1, 2):
        save(tmp_path, step)
    assert selected_checkpoint(tmp_path, 2) == tmp_path / "step-2"
    if damage == "cut":
        (tmp_path / "step-2" / "model.safetensors").write_bytes(b"")
    else:
        shutil.rmtree(tmp_path / "step-2")
    assert refused(selected_checkpoint, tmp_path, 2) == ("step-2", "damaged")
    assert latest_checkpoint(tmp_path) == tmp_path / "step-1"


def test_a_checkpoint_of_another_config_is_refused(tmp_path):
    save(tmp_path, 1)
    model, optimizer = model_and_optimizer()
    assert refused(load_checkpoint, tmp_path / "step-1", model, optimizer, "s") == ("step-1", "changed")


def test_weights_of_another_shape_are_refused(tmp_path):
    save(tmp_path, 1)
    assert refused(load_weights, tmp_path / "step-1" / "model.safetensors", nn.Linear(4, 2)) == (
        "model.safetensors",
        "conflict",
    )
    assert refused(load_weights, tmp_path / "step-1" / "model.safetensors", nn.Sequential(nn.Linear(3, 2))) == (
        "model.safetensors",
        "conflict",
    )


def test_a_full_disk_is_said_and_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    save(tmp_path, 1)

    def full(*args, **kwargs):
        raise SafetensorError(f"I/O error: No space left on device (os error {errno.ENOSPC})")

    monkeypatch.setattr(checkpoints, "save_file", full)
    assert refused(save, tmp_path, 2) == ("step-2", "resources")
    assert latest_checkpoint(tmp_path) == tmp_path / "step-1"
    assert json.loads((tmp_path / "step-1" / "state.json").read_text())["step"] == 1
