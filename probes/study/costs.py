"""What a task costs, roughly and before it runs: floating-point operations, and bytes of disk for its stage.

Counted from the settings alone, as pretrain/flops.py does, so it says how tasks compare; how long a machine takes
for it is for the plan to find out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pretrain.config import CheckpointConfig, ModelConfig, PretrainConfig
from pretrain.flops import per_token
from probes.measures import ProbeConfig
from probes.study.kinds import AdjustTask, AlignmentTask, Model, PretrainTask, ProbeTask, TransferTask, TuneTask, origin
from probes.study.task import Task
from probes.transfer.config import TransferConfig
from probes.transfer.model_names import is_run, model_path
from synthlang.config import load
from synthlang.files import read_json
from synthlang.sources import open_source
from synthlang.sources.base import size_of

TOKENS = 40  # of an item or a sentence of a pair, where nothing is known but the longest row
ITEMS = 10_000  # of a training set whose size is only known when it is read
TEST_ITEMS = 2_000
SENTENCES = 50_000  # of parallel text whose size is not known
NUMBER = 4  # bytes of a weight; checkpoints have three of each, two of them the optimizer's
RESULTS = 1 << 20  # bytes of a stage of probes: tables, figures
SCORES = 1 << 14  # of one of scores alone
PREDICTED = 64  # bytes of an item with its prediction, packed


@dataclass(frozen=True)
class Size:
    """The shape of a model; ``ids`` are the rows of its embedding. Default: BERT, multilingual and cased."""

    layers: int = 12
    hidden: int = 768
    feed_forward: int = 3072
    ids: int = 119_547

    @property
    def weights(self) -> int:
        """How many numbers it has, without biases and LayerNorms."""
        return self.ids * self.hidden + self.layers * (4 * self.hidden**2 + 2 * self.hidden * self.feed_forward)

    def per_token(self, length: int) -> float:
        """Operations of forward and backward of a token of a row, at all positions and without a head."""
        model = ModelConfig(layers=self.layers, heads=1, hidden=self.hidden, feed_forward=self.feed_forward)
        return per_token(model, 0, length, all_positions=True)


def size_of_model(model: Model) -> Size:
    """The shape of a task's model; for one of Hugging Face that is not here, that of BERT."""
    model = origin(model)
    if isinstance(model, PretrainTask):
        return _size_of_run(model.config, model.start)
    path = model_path(model)
    if is_run(path):
        return _size_of_run(load(PretrainConfig, path / "config.yaml"))
    found = [place for place in (path, path / "export", *path.glob("export/*")) if (place / "config.json").is_file()]
    return _size_of_checkpoint(read_json(found[0] / "config.json")) if found else Size()


def _size_of_run(config: PretrainConfig, start: PretrainTask | None = None) -> Size:
    if config.start is not None:
        size, more = size_of_model(start or config.start.model), config.start.extend
        return Size(size.layers, size.hidden, size.feed_forward, size.ids + (more.size if more else 0))
    model, scripts = (
        config.model,
        {m.language.script.name for m in config.all_languages if m.language.script is not None},
    )
    each = len(config.all_languages) if config.vocabulary.kind in ("joined", "prefixed") else 1
    copies = 1 + len(scripts) if config.vocabulary.kind == "copied" else each
    own = len(config.all_languages) if config.sharing.embeddings == "separate" else 1
    return Size(model.layers, model.hidden, model.feed_forward, config.vocabulary.size * copies * own)


def _size_of_checkpoint(held: Any) -> Size:
    plain = Size()
    return Size(
        int(held.get("num_hidden_layers", plain.layers)),
        int(held.get("hidden_size", plain.hidden)),
        int(held.get("intermediate_size", plain.feed_forward)),
        int(held.get("vocab_size", plain.ids)),
    )


def operations(task: Task) -> float:
    """Floating-point operations of a task, about."""
    if isinstance(task, PretrainTask):
        return _of_pretraining(task)
    if isinstance(task, AlignmentTask):
        size = size_of_model(task.pretrained)
        return 4.0 * size.hidden * size.ids**2  # cosines of all with all, in both directions
    if isinstance(task, AdjustTask):
        # both languages, in the model before and in the moving one, which alone has gradients
        tokens = 2 * TOKENS * (task.config.data.sentences or SENTENCES) * len(task.config.texts) * task.config.epochs
        return size_of_model(task.model).per_token(TOKENS) * tokens * 4 / 3
    if isinstance(task, ProbeTask):
        return _of_probes(task.config, size_of_model(task.model))
    assert isinstance(task, TransferTask | TuneTask), "the last kinds"
    return _of_transfer(task.config, size_of_model(task.model), _text(task.model), isinstance(task, TuneTask))


def _of_pretraining(task: PretrainTask) -> float:
    config, size = task.config, size_of_model(task)
    model = ModelConfig(layers=size.layers, heads=1, hidden=size.hidden, feed_forward=size.feed_forward)
    operations = per_token(model, size.ids, config.batch.length, config.objective.mask_rate)
    return config.steps * config.batch.rows * config.batch.length * operations


def _of_probes(config: ProbeConfig, size: Size) -> float:
    sentences = {"words": 0, "cka": config.cka.sentences}
    read = sum(sentences.get(name, config.data.dev + (config.data.sentences or SENTENCES)) for name in config.probes)
    return 2 * TOKENS * read * size.per_token(TOKENS) / 3 + 4.0 * size.hidden * size.ids**2 * ("words" in config.probes)


def _of_transfer(config: TransferConfig, size: Size, text: str | None, alone: bool) -> float:
    """``alone``: the fits on the source language, and no test."""
    length = min(config.length, TOKENS)
    items = config.train_items or _items(config.train or text)
    settings = math.prod(len(values) for values in config.search.values())
    has_sup = not alone and (config.target is None or config.target.train is not None)
    trained = items * config.fine_tune.epochs * (settings + (config.best if has_sup else 0))
    whole, forward = size.per_token(length), size.per_token(length) / 3
    tested = 0 if alone else 3 * (config.test_items or TEST_ITEMS) * config.best
    chosen = (config.dev_items or items / 10) * config.fine_tune.epochs * (settings + (0 if alone else config.best))
    return length * (trained * (whole if config.features.tune == "all" else forward) + (tested + chosen) * forward)


def _items(spec: str | None) -> int:
    """How many sentences a source has to train on, if it is built in."""
    known = size_of(open_source(spec), "train") if spec is not None and spec.startswith("builtin:") else None
    return known or ITEMS


def _text(model: Model) -> str | None:
    first = origin(model)
    return first.config.all_languages[0].source if isinstance(first, PretrainTask) else None


def disk(task: Task) -> float:
    """Bytes of the stage of a task, about."""
    if isinstance(task, PretrainTask):
        size, copies = size_of_model(task), len(task.config.all_languages)
        return NUMBER * size.weights * (3 * _kept(task.config.checkpoints, task.config.steps) + copies)
    if isinstance(task, AdjustTask | TuneTask):
        run = origin(task.model)
        copies = len(run.config.all_languages) if isinstance(run, PretrainTask) else 1
        if isinstance(task, TuneTask):
            return NUMBER * size_of_model(task.model).weights * copies
        steps = (task.config.data.sentences or SENTENCES) // task.config.rows * task.config.epochs
        return NUMBER * size_of_model(task.model).weights * (3 * _kept(task.config.checkpoints, steps) + copies)
    if isinstance(task, TransferTask):
        return 3 * (task.config.test_items or TEST_ITEMS) * PREDICTED * task.config.best
    return SCORES if isinstance(task, AlignmentTask) else RESULTS


def _kept(policy: CheckpointConfig, steps: int) -> int:
    """How many checkpoints stay."""
    all_of_them = math.ceil(steps / policy.every)
    archived = 0 if policy.archive is None else steps // policy.archive
    return min(all_of_them, policy.keep + archived + (policy.select == "best"))
