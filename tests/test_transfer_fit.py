"""Fits: they learn, repeat, go on after a kill bit by bit, and do not depend on batches; what cannot be fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pretrain.folder import steps_in
from pretrain.optim import learning_rate
from probes.models.pretrained import bounded_batches
from probes.transfer import fit as fitting
from probes.transfer.config import FineTuneConfig
from probes.transfer.fit import fine_tune, predict, training_batches
from probes.transfer.run import rank
from probes.transfer.tasks.metrics import Metric
from tests.refusals import refusal, refused
from tests.transfer_fits import ACCURACY, FIT, OWN, body_of, model_of, moved, tokens, weights

TRAIN, DEV = tokens(60), tokens(20, seed=1)
PER_EPOCH = 8  # steps
STEPS = PER_EPOCH * FIT.epochs


def fitted(model=None, train=TRAIN, dev=DEV, metric=ACCURACY, config=FIT, seed=0, **more):
    model = model_of() if model is None else model
    return model, fine_tune(model, train, [dev], metric, config, seed, **more)


def changed(**values: Any) -> FineTuneConfig:
    return FIT.model_copy(update=values)


def planned(*scores: float) -> Metric:
    """A metric that gives these scores, one after another."""
    left = iter(scores)
    return Metric("planned", lambda gold, _: np.zeros((len(gold), 1)), lambda sums: np.array(next(left)))


@pytest.fixture(scope="module")
def plain():
    """A model fitted with the usual settings, and what came of it."""
    return fitted()


@pytest.fixture(scope="module")
def learned():
    return fitted(train=tokens(120), config=changed(epochs=5))


@pytest.mark.parametrize("items", [7, 20, 45, 60])
def test_an_epoch_of_so_many_items_goes_on_through_the_set(items):
    """Pass after pass over 20 rows, each row once in a pass; an epoch of the whole set is one pass."""
    epochs = [training_batches(20, 8, items, 3, epoch) for epoch in range(20)]
    assert all([len(rows) for rows in one] == [*[8] * (items // 8), *[items % 8] * (items % 8 > 0)] for one in epochs)
    rows = np.concatenate([np.concatenate(one) for one in epochs])
    passes = rows[: len(rows) // 20 * 20].reshape(-1, 20)
    assert (np.sort(passes, axis=1) == np.arange(20)).all() and len({tuple(one) for one in passes.tolist()}) == len(
        passes
    )
    whole = np.concatenate([np.concatenate(training_batches(20, 5, 20, 3, number)) for number in range(len(passes))])
    assert (passes == whole.reshape(-1, 20)).all()


def test_learns_what_is_planted_and_not_what_is_not(learned):
    model, result = learned
    assert result.history[result.best - 1]["dev"] > 95
    assert ACCURACY(DEV.gold, predict(model, DEV)) == max(entry["dev"] for entry in result.history)
    assert [entry["epoch"] for entry in result.history] == [1, 2, 3, 4, 5] and result.steps == 5 * 15
    assert result.history[-1]["loss"] < result.history[0]["loss"] / 2
    _, control = fitted(train=tokens(120, shuffled=True), config=changed(epochs=5))
    assert max(entry["dev"] for entry in control.history) < 60


def test_is_a_function_of_the_seed_and_leaves_the_generators_alone(plain):
    model = model_of()
    torch.manual_seed(5)
    _, result = fitted(model)
    after = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(3))
    assert result == plain[1] and not moved(weights(model), weights(plain[0]))
    assert moved(weights(model), weights(fitted(seed=1)[0]))


def test_keeps_the_first_of_the_best_epochs():
    at: dict[int, Any] = {}
    model = model_of()

    def report(_: str, done: int, total: int, note: str) -> None:
        at[done] = weights(model)  # the loss of each epoch's last step is reported just before its score

    result = fitted(model, metric=planned(50, 70, 70, 10), config=changed(epochs=4), report=report)[1]
    assert result.best == 2
    assert not moved(at[2 * PER_EPOCH], weights(model)) and moved(at[3 * PER_EPOCH], weights(model))


def test_the_last_epoch_is_kept_if_it_is_the_best(plain):
    one, result = fitted(metric=planned(50, 70, 80))
    assert result.best == 3 and plain[1].best == 3 and not moved(weights(one), weights(plain[0]))


@pytest.mark.parametrize(("patience", "epochs"), [(None, 6), (1, 3), (2, 4), (3, 6)])
def test_patience(patience, epochs):
    config = changed(epochs=6, patience=patience)
    result = fitted(train=tokens(8), metric=planned(10, 60, 50, 60, 61, 1), config=config)[1]
    assert len(result.history) == result.steps == epochs


def test_what_a_language_has_of_its_own_stays_unless_it_may_move():
    model = model_of(body_of(OWN))
    own = {f"features.bodies.0.{name}" for name in model.features.body("source").language_specific()}
    before = weights(model)
    fitted(model, config=changed(weight_decay=0.1))
    unread = {name for name in before if ".head." in name}
    assert own and unread and moved(before, weights(model)) == before.keys() - own - unread
    model = model_of(body_of(OWN), freeze_language_parts=False)
    fitted(model, config=changed(epochs=1))
    changes = moved(before, weights(model))
    assert "features.bodies.0.embeddings.words" in changes and "features.bodies.0.layers.0.0.up.weight" in changes
    assert "features.bodies.0.layers.0.1.up.weight" not in changes  # that of the other language


def test_frozen_features_leave_the_body_and_the_original_alone():
    body = body_of()
    original, model = weights(body), model_of(body, tune="none", top_layers=1)
    before = weights(model)
    fitted(model, config=changed(epochs=1))
    assert moved(before, weights(model)) == {n for n in before if not n.startswith("features.bodies.")}
    tuned = model_of(body, layers=(1,))
    fitted(tuned, config=changed(epochs=1))
    changes = moved(original, weights(tuned.features.body("source")))
    assert changes and not any(name.startswith("layers.1.") for name in changes)  # above the last one read
    assert not moved(original, weights(body))


def test_rates_decay_and_schedule(monkeypatch):
    """The optimizer's groups and rates at every step, against what the settings say."""
    seen = []
    step = torch.optim.AdamW.step

    def spied(self, *args, **kwargs):
        seen.append([(g["lr"], g["weight_decay"], {id(p) for p in g["params"]}) for g in self.param_groups])
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", spied)
    config = changed(weight_decay=0.3, warmup_share=0.25, learning_rate=1e-3, head_learning_rate=5e-2)
    model = model_of(top_layers=1)
    fitted(model, config=config)
    assert len(seen) == STEPS
    for number, groups in enumerate(seen):
        for name, parameter in model.named_parameters():
            settings = [(lr, decay) for lr, decay, ids in groups if id(parameter) in ids]
            peak = 1e-3 if name.startswith("features.bodies.") else 5e-2
            rate = pytest.approx(learning_rate(peak, 6, STEPS, number))
            assert settings == ([(rate, 0.3 if parameter.ndim >= 2 else 0.0)] if parameter.requires_grad else []), name
    assert seen[0][0][0] < seen[5][0][0] > seen[-1][0][0]


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
    for rows in training_batches(len(TRAIN), 8, len(TRAIN), 0, 0):
        optimizer.zero_grad()
        torch.autograd.backward(plain.loss(TRAIN.batch(rows)))
        nn.utils.clip_grad_norm_(trained, 0.5)
        optimizer.step()
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(dict(model.named_parameters())[name], parameter, rtol=1e-3, atol=1e-4)


def test_a_further_loss_is_added(plain):
    steps, model = [], model_of()
    target = weights(model)["head.out.weight"]

    def pull(step: int):
        steps.append(step)
        return 1e4 * (dict(model.named_parameters())["head.out.weight"] - target).square().sum()

    fitted(model, extra=pull)
    assert steps == list(range(STEPS))
    pulled, free = ((weights(one)["head.out.weight"] - target).norm() for one in (model, plain[0]))
    assert pulled < free / 4


def test_bfloat16():
    model, result = fitted(train=tokens(120), config=changed(precision="bfloat16", epochs=4))
    assert result.dev > 85
    assert all(p.dtype == torch.float32 for p in model.parameters())
    batch = DEV.batch(np.arange(3))
    states, loss = model.states(batch), model.loss(batch)
    assert states.dtype == loss.dtype == torch.float32
    assert torch.equal(loss, model.head.loss(states, batch))  # the head is outside of autocast


def test_what_cannot_be_fitted_is_one_clear_line():
    assert refused(fitted, config=changed(learning_rate=1e38, clip=None)) == ("", "failed")
    error = refusal(fitted, extra=lambda step: torch.tensor(float("nan") if step == 9 else 0.0))
    assert str(error) == (
        "fine-tuning diverged: the loss or a weight is not finite in epoch 2, step 10 of 24, at the learning rates "
        "0.00682 and 0.0136; reduce fine_tune.learning_rate or fine_tune.head_learning_rate"
    )


def test_which_rows_come_together_is_chance():
    batches, again, other = (training_batches(5000, 32, 5000, 1, epoch) for epoch in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))
    together = {frozenset(batch.tolist()) for batch in batches} & {frozenset(batch.tolist()) for batch in other}
    assert not together  # another epoch has other batches, not the same ones in another order
    classes = np.arange(5000) * 3 // 5000  # of rows that lie together in the file
    shares = np.array([np.bincount(classes[batch], minlength=3) / len(batch) for batch in batches[:-1]])
    spread = np.sqrt(1 / 3 * 2 / 3 / 32)  # of a share in a random batch
    assert np.allclose(shares.std(axis=0), spread, rtol=0.25)


@pytest.mark.parametrize(("rows", "tokens"), [(256, 8192), (8, 8192), (256, 100), (1, 1), (256, 1)])
def test_bounded_batches(rows, tokens):
    lengths = np.random.default_rng(0).gamma(4, 8, 1000).astype(np.int64) + 3
    batches = bounded_batches(lengths, rows, tokens)
    assert sorted(np.concatenate(batches).tolist()) == list(range(1000))
    for batch in batches:
        assert len(batch) <= rows and (len(batch) == 1 or len(batch) * lengths[batch].max() <= tokens)
    starts = [lengths[batch].max() for batch in batches]
    assert starts == sorted(starts, reverse=True)
    assert bounded_batches(lengths[:0]) == []


def test_predictions_do_not_depend_on_batches(plain):
    model, examples = plain[0], tokens(50, seed=5)
    whole = predict(model, examples)
    assert [len(labels) for labels in whole] == [len(labels) for labels in examples.labels]
    for rows, most in ((1, 8192), (7, 8192), (256, 20)):
        assert predict(model, examples, rows, most) == whole


def test_rank():
    assert rank([50.0, 70.0, 60.0, 70.0], best=3) == [1, 3, 2]
    assert rank([1.0], best=5) == [0] and rank([], best=1) == []


# --- a state on disk ---


class KilledError(Exception):
    pass


def killed(folder, at, monkeypatch, **settings):
    """A fit that ends at a step."""

    def report(_, done, total, note):
        if done == at:
            raise KilledError

    monkeypatch.setattr(fitting, "EVERY", 1)
    with pytest.raises(KilledError):
        fitted(folder=folder, report=report, **settings)


@pytest.mark.parametrize("tune", ["all", "none"])
def test_killed_after_each_epoch(tmp_path, monkeypatch, tune):
    def model():
        return model_of(tune=tune, top_layers=1)

    whole, expected = fitted(model())
    for epochs in (1, 2):  # in the middle of the next epoch
        killed(tmp_path, epochs * PER_EPOCH + 3, monkeypatch, model=model())
        assert steps_in(tmp_path) == [epochs]
    resumed, result = fitted(model(), folder=tmp_path)
    assert result == expected and not moved(weights(whole), weights(resumed))


def test_the_best_epoch_is_before_the_kill(tmp_path, monkeypatch):
    """Its weights come back, with a rate that spoils later ones."""
    config = changed(schedule="constant", learning_rate=0.3, clip=None)
    whole, expected = fitted(config=config)
    assert expected.best < 3
    killed(tmp_path, PER_EPOCH * 2 + 2, monkeypatch, config=config)
    resumed, result = fitted(config=config, folder=tmp_path)
    assert result == expected and not moved(weights(whole), weights(resumed))


@pytest.fixture
def finished(tmp_path, plain):
    """The folder of a finished fit, equal to ``plain``."""
    model, result = fitted(folder=tmp_path)
    assert result == plain[1] and not moved(weights(model), weights(plain[0]))
    return tmp_path


def test_a_finished_fit_is_not_done_again(finished, plain, monkeypatch):
    (step,) = finished.iterdir()
    files = {path.name: path.stat().st_size for path in step.iterdir()}
    assert step.name == "step-3"
    assert sorted(files) == ["manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"]
    trained = sum(4 * p.numel() for p in plain[0].parameters() if p.requires_grad)
    assert trained < sum(files.values()) < trained + 20_000  # the best weights and no moments
    monkeypatch.setattr(fitting._Fit, "epoch", None)
    monkeypatch.setattr(torch, "empty_like", None)  # no second copy of the weights
    model, result = fitted(folder=finished)
    assert result == plain[1] and not moved(weights(model), weights(plain[0]))


def test_a_damaged_state_is_refused(finished):
    for file in ("model.safetensors", "optimizer.safetensors", "state.json"):
        path = finished / "step-3" / file
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + b"?")
        refusal(fitted, folder=finished)
        path.write_bytes(whole)


def test_a_state_of_another_fit_is_refused(finished, tmp_path_factory, monkeypatch):
    running = tmp_path_factory.mktemp("running")
    killed(running, 9, monkeypatch)
    others: list[dict[str, Any]] = [
        {"seed": 1},
        {"config": changed(learning_rate=1e-3)},
        {"config": changed(epochs=9)},
        {"train": tokens(60, seed=2)},
        {"model": model_of(body_of(seed=1))},
    ]
    for folder in (finished, running):
        for other in others:
            refusal(fitted, folder=folder, **other)


def test_a_fit_in_epochs_of_their_own_length(tmp_path, monkeypatch):
    """As many steps as items say, the dev set after each; one that is killed goes on to the same weights."""
    config = changed(epochs=4, epoch_items=24)
    whole, result = fitted(config=config)
    assert result.steps == 4 * 3 and [entry["epoch"] for entry in result.history] == [1, 2, 3, 4]
    killed(tmp_path, 2 * 3 + 1, monkeypatch, config=config)
    model, again = fitted(config=config, folder=tmp_path)
    assert again.history == result.history
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(model)[name])
