"""Fits: they learn, repeat, go on after a kill bit by bit, and do not depend on batches; what cannot be fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pretrain.folder import steps_in
from pretrain.optim import learning_rate
from probes.transfer import fit as fitting
from probes.transfer.batch import bounded_batches
from probes.transfer.config import FineTuneConfig
from probes.transfer.fit import fine_tune, predict, training_batches
from probes.transfer.run import rank
from probes.transfer.tasks.metrics import Metric
from synthlang.errors import InputError
from synthlang.rng import key_of
from tests.transfer_fits import ACCURACY, FIT, OWN, Tokens, body_of, fine_tune_tiny, model_of, moved, tokens, weights

TRAIN, DEV = tokens(120), tokens(30, seed=1)


def fitted(model=None, train=TRAIN, dev=DEV, metric=ACCURACY, config=FIT, seed=0, **more):
    model = model_of() if model is None else model
    return model, fine_tune(model, train, dev, metric, config, seed, **more)


def changed(**values: Any) -> FineTuneConfig:
    return FIT.model_copy(update=values)


def planned(scores: list[float]) -> Metric:
    """A metric that gives these scores, one after another."""
    left = iter(scores)
    return Metric("planned", lambda gold, _: np.zeros((len(gold), 1)), lambda sums: np.array(next(left)))


def test_learns_what_is_planted_and_not_what_is_not():
    model, result = fitted(config=changed(epochs=6))
    assert result.history[result.best - 1]["dev"] > 95
    assert ACCURACY(DEV.gold, predict(model, DEV)) == max(entry["dev"] for entry in result.history)
    assert [entry["epoch"] for entry in result.history] == [1, 2, 3, 4, 5, 6] and result.steps == 6 * 15
    assert result.history[-1]["loss"] < result.history[0]["loss"] / 2
    _, control = fitted(train=tokens(120, shuffled=True), config=changed(epochs=6))
    assert max(entry["dev"] for entry in control.history) < 60


def test_is_a_function_of_the_seed_and_leaves_the_generators_alone():
    one, two = model_of(), model_of()
    torch.manual_seed(5)
    first = fitted(one)[1]
    after = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(3))
    second = fitted(two)[1]
    assert first == second and not moved(weights(one), weights(two))
    assert moved(weights(one), weights(fitted(seed=1)[0]))


def test_keeps_the_first_of_the_best_epochs():
    at: dict[int, Any] = {}
    model = model_of()

    def report(_: str, done: int, total: int, note: str) -> None:
        at[done] = weights(model)  # the loss of each epoch's last step is reported just before its score

    result = fitted(model, metric=planned([50, 70, 70, 10]), config=changed(epochs=4), report=report)[1]
    assert result.best == 2
    assert not moved(at[30], weights(model)) and moved(at[45], weights(model))


def test_the_last_epoch_is_kept_if_it_is_the_best():
    one, result = fitted(metric=planned([50, 70, 80]))
    assert result.best == 3
    two, _ = fitted(metric=planned([80, 70, 50]))
    assert moved(weights(one), weights(two))


@pytest.mark.parametrize(("patience", "epochs"), [(None, 6), (1, 3), (2, 4), (3, 6)])
def test_patience(patience, epochs):
    result = fitted(metric=planned([10, 60, 50, 60, 61, 1]), config=changed(epochs=6, patience=patience))[1]
    assert len(result.history) == epochs and result.steps == 15 * epochs


def test_what_a_language_has_of_its_own_stays():
    model = model_of(body_of(OWN))
    own = {f"features.bodies.0.{name}" for name in model.features.body("source").language_specific()}
    before = weights(model)
    fitted(model, config=changed(weight_decay=0.1))
    changes = moved(before, weights(model))
    assert own and not own & changes
    unread = {name for name in before if ".head." in name}
    assert unread and changes == before.keys() - own - unread


def test_parts_of_a_language_move_where_they_may():
    model = model_of(body_of(OWN), freeze_language_parts=False)
    before = weights(model)
    fitted(model)
    changes = moved(before, weights(model))
    assert "features.bodies.0.embeddings.words" in changes and "features.bodies.0.layers.0.0.up.weight" in changes
    assert "features.bodies.0.layers.0.1.up.weight" not in changes  # that of the other language


def test_frozen_features_leave_the_body_and_the_original_alone():
    body = body_of()
    original, model = weights(body), model_of(body, tune="none", top_layers=1)
    before = weights(model)
    fitted(model)
    assert moved(before, weights(model)) == {n for n in before if not n.startswith("features.bodies.")}
    tuned = model_of(body)
    fitted(tuned)
    assert moved(original, weights(tuned.features.body("source"))) and not moved(original, weights(body))


def test_layers_above_the_last_one_read_stay():
    model = model_of(layers=(1,), freeze_language_parts=False)
    before = weights(model)
    optimizer = fitting._optimizer({n: p for n, p in model.named_parameters() if p.requires_grad}, FIT, model.device)
    fitted(model)
    assert not any(".layers.1." in name for name in moved(before, weights(model)))
    assert all(p.requires_grad for group in optimizer.param_groups for p in group["params"])


def test_rates_decay_and_schedule(monkeypatch):
    """The optimizer's groups and rates at every step, against what the settings say."""
    seen = []
    step = torch.optim.AdamW.step

    def spied(self, *args, **kwargs):
        seen.append([(g["lr"], g["weight_decay"], {id(p) for p in g["params"]}) for g in self.param_groups])
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", spied)
    config = changed(weight_decay=0.3, warmup_share=0.2, learning_rate=1e-3, head_learning_rate=5e-2)
    model = model_of(top_layers=1)
    fitted(model, config=config)
    assert len(seen) == 45
    for number, groups in enumerate(seen):
        for name, parameter in model.named_parameters():
            held = [(lr, decay) for lr, decay, ids in groups if id(parameter) in ids]
            if not parameter.requires_grad:
                assert not held
                continue
            peak = 1e-3 if name.startswith("features.bodies.") else 5e-2
            rate = learning_rate(peak, 9, 45, number)
            assert held == [(pytest.approx(rate), 0.3 if parameter.ndim >= 2 else 0.0)], name
    assert seen[0][0][0] < seen[8][0][0] > seen[-1][0][0]


def test_equals_a_plain_loop():
    """Without dropout: the same weights as AdamW over the same batches, written out."""
    shape = body_of().shape.model_copy(update={"dropout": 0.0})
    config = changed(epochs=1, clip=0.5, epsilon=1e-3, weight_decay=0.1, schedule="constant", warmup_share=0.0)
    config = config.model_copy(update={"head_learning_rate": None})
    model, plain = (model_of(body_of(shape=shape)) for _ in range(2))
    model.head.dropout.p = plain.head.dropout.p = 0.0  # type: ignore[union-attr]
    fitted(model, config=config)
    trained = [p for p in plain.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, eps=1e-3, foreach=False)
    plain.train()
    for rows in training_batches(len(TRAIN), 8, key_of("fit batches", 0, 0)):
        optimizer.zero_grad()
        torch.autograd.backward(plain.loss(TRAIN.batch(rows)))
        nn.utils.clip_grad_norm_(trained, 0.5)
        optimizer.step()
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(dict(model.named_parameters())[name], parameter, rtol=1e-3, atol=1e-4)


def test_a_further_loss_is_added():
    steps = []
    model = model_of()
    target = weights(model)["head.out.weight"]

    def pull(step: int):
        steps.append(step)
        return 1e4 * (dict(model.named_parameters())["head.out.weight"] - target).square().sum()

    fitted(model, extra=pull)
    assert steps == list(range(45))
    pulled = (weights(model)["head.out.weight"] - target).norm()
    free = model_of()
    fitted(free)
    assert pulled < (weights(free)["head.out.weight"] - target).norm() / 4


def test_bfloat16():
    model, result = fitted(config=changed(precision="bfloat16", epochs=6))
    assert result.history[result.best - 1]["dev"] > 90
    assert all(p.dtype == torch.float32 for p in model.parameters())
    assert model.states(DEV.batch(np.arange(3))).dtype == torch.float32


def test_reports_steps_and_ends_once(monkeypatch):
    monkeypatch.setattr(fitting, "EVERY", 4)
    heard: list[tuple[int, int, str]] = []
    fitted(config=changed(patience=1), metric=planned([2, 1]), report=lambda *said: heard.append(said[1:]))
    assert [done for done, _, _ in heard] == [4, 8, 12, 15, 19, 23, 27, 30, 45]
    assert {total for _, total, _ in heard} == {45}
    assert heard[0][2].startswith("epoch 1/3, loss ") and heard[-1][2] == "best epoch 1, dev 2.0"
    assert "dev 2.0" in heard[4][2]


def test_a_loss_that_is_not_finite_is_one_clear_line():
    with pytest.raises(InputError, match=r"epoch 1, step \d+ of 45, at the learning rate .*fine_tune.learning_rate"):
        fitted(config=changed(learning_rate=1e38, clip=None))
    bad = model_of()

    def extra(step: int):
        return torch.tensor(float("nan") if step == 17 else 0.0)

    with pytest.raises(InputError, match=r"epoch 2, step 18 of 45, at the learning rate 0\.00683"):
        fitted(bad, extra=extra)


@pytest.mark.parametrize("empty", ["train", "dev"])
def test_nothing_to_fit_on(empty):
    sets: dict[str, Tokens] = {"train": TRAIN, "dev": DEV, empty: tokens(0)}
    with pytest.raises(InputError, match=f"{empty}: there are no rows"):
        fitted(**sets)


LENGTHS = np.random.default_rng(0).gamma(4, 8, 5000).astype(np.int64) + 3


@pytest.mark.parametrize("count", [1, 31, 32, 33, 2048, 2049, 5000])
def test_each_row_once_an_epoch(count):
    batches = training_batches(count, 32, key=1)
    assert sorted(np.concatenate(batches).tolist()) == list(range(count))
    sizes = sorted(len(batch) for batch in batches)
    assert len(batches) == -(-count // 32) and sizes[1:] == [32] * (len(sizes) - 1)


def test_which_rows_come_together_is_chance():
    batches, again, other = (training_batches(5000, 32, key) for key in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))
    together = {frozenset(batch.tolist()) for batch in batches} & {frozenset(batch.tolist()) for batch in other}
    assert not together  # another epoch has other batches, not the same ones in another order
    classes = np.arange(5000) * 3 // 5000  # of rows that lie together in the file
    shares = np.array([np.bincount(classes[batch], minlength=3) / len(batch) for batch in batches[:-1]])
    spread = np.sqrt(1 / 3 * 2 / 3 / 32)  # of a share in a random batch
    assert np.allclose(shares.std(axis=0), spread, rtol=0.25)


@pytest.mark.parametrize(("rows", "tokens"), [(256, 8192), (8, 8192), (256, 100), (1, 1), (256, 1)])
def test_bounded_batches(rows, tokens):
    batches = bounded_batches(LENGTHS[:1000], rows, tokens)
    assert sorted(np.concatenate(batches).tolist()) == list(range(1000))
    for batch in batches:
        assert len(batch) <= rows and (len(batch) == 1 or len(batch) * LENGTHS[batch].max() <= tokens)
    starts = [LENGTHS[batch].max() for batch in batches]
    assert starts == sorted(starts, reverse=True)
    assert bounded_batches(LENGTHS[:0]) == []


def test_predictions_do_not_depend_on_batches():
    model, examples = model_of(seed=4), tokens(50, seed=5)
    fine_tune_tiny(model, examples)
    whole = predict(model, examples)
    assert [len(labels) for labels in whole] == [len(labels) for labels in examples.labels]
    for rows, most in ((1, 8192), (7, 8192), (256, 20)):
        assert predict(model, examples, rows, most) == whole
    one = [labels for row in range(50) for labels in model.decode(examples.batch(np.array([row])))]
    assert one == whole


def test_rank():
    assert rank([50.0, 70.0, 60.0, 70.0], best=3) == [1, 3, 2]
    assert rank([1.0], best=5) == [0] and rank([], best=1) == []


FEW, FEW_DEV = tokens(60), tokens(20, seed=1)
CONFIG = FIT.model_copy(update={"epochs": 4})
PER_EPOCH = 8


class KilledError(Exception):
    pass


def fit(folder, config=CONFIG, kill_at=None, model=None, seed=0, train=FEW):
    def report(_, done, total, note):
        if done == kill_at:
            raise KilledError

    model = model_of() if model is None else model
    return model, fine_tune(model, train, FEW_DEV, ACCURACY, config, seed, folder=folder, report=report)


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
