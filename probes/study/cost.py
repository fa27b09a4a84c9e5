"""Forecast of the cost of a study: tokens, time and disk.

The time covers pretraining, adjustment and fine-tuning at the rates of ``probes.study.devices``. It does not cover
probes and the preparation of data. If the settings do not limit the tokens, the size of the training file does.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.filesize import decimal

from pretrain.config import CheckpointConfig
from pretrain.cost import ModelSize, pretraining_flops, size_of_run
from pretrain.folder import kept_steps
from probes.models.sizes import BUILTIN, bounded, size_of_model, whole_grammar
from probes.stages.adjust import AdjustStage
from probes.stages.base import Stage, StageKeys
from probes.stages.finetune import FinetuneStage, TuneStage
from probes.stages.pretrain import PretrainStage, root_of
from probes.study.devices import KNOWN_GPU, NARROW, Device, device_of, gpu
from probes.transfer.config import TransferConfig, combinations
from synthlang.data.entries import entry, name_of
from synthlang.errors import InputError
from synthlang.references import local_path
from synthlang.wording import duration, large, plural

if TYPE_CHECKING:
    from probes.study.runner import StudyRun

DAY = 24 * 3600.0
MOST_SECONDS = 7 * DAY
"""Forecast time in seconds above which a study needs ``--yes``."""
NOUNS = {"pretrain": "pretraining", "adjust": "adjustment", "fit": "fine-tuning"}
"""Kind of a cost with tokens → noun. A ``fit`` is a fine-tuning, which several stages may share."""
SENTENCE = 40
"""Assumed number of tokens in a sentence of parallel text."""
TOKEN_BYTES = 3
"""Assumed minimum of bytes per token in a training file. English has about four, and Chinese has three."""
WEIGHT, MOMENTS = 4, 8
"""Bytes of one weight in a file, and of its two optimizer moments in a checkpoint."""


@dataclass(frozen=True)
class StageCost:
    """The cost of one stage.

    Attributes:
        kind: The kind of the stage, or ``fit`` for a fine-tuning.
        tokens: Maximum number of tokens that the model reads, or None if it is unknown.
        flops: Maximum number of floating-point operations, or 0 if the tokens or the size of the model are unknown.
        precision: Number format of the computation.
        width: Hidden size of the model.
        disk: Bytes of the checkpoints and exports that the stage keeps, or None if they are unknown.
    """

    kind: str
    tokens: int | None = None
    flops: float = 0.0
    precision: str = "float32"
    width: int = NARROW
    disk: int | None = 0


@dataclass(frozen=True)
class StudyCost:
    """The cost of the unfinished stages of a study.

    Attributes:
        stages: The costs of the stages.
        device: The device of the forecast.
        free: Free space on the disk of the store, in bytes.
    """

    stages: tuple[StageCost, ...]
    device: Device
    free: int

    @property
    def seconds(self) -> float:
        """Forecast time on the device, in seconds."""
        return self._seconds(self.device)

    @property
    def disk(self) -> int:
        """Bytes of checkpoints and exports, as far as they are known."""
        return sum(stage.disk or 0 for stage in self.stages)

    @property
    def excess(self) -> str:
        """Description of how the forecast exceeds MOST_SECONDS or the free disk, or "" if it does not."""
        found = [f"takes {self._forecast(self.device)}"] if self.seconds > MOST_SECONDS else []
        if self.disk > self.free:
            found.append(f"needs about {decimal(self.disk)} of disk, of which {decimal(self.free)} are free")
        return ", and ".join(found)

    def lines(self) -> Iterator[str]:
        """Yield lines of text with the tokens, the time and the disk."""
        for kind, noun in NOUNS.items():
            yield from self._amounts(kind, noun)
        if any(stage.flops for stage in self.stages):
            also = self.seconds > MOST_SECONDS and KNOWN_GPU not in self.device.name
            for device in (self.device, gpu(KNOWN_GPU)) if also else (self.device,):
                yield f"forecast: {self._forecast(device)}"
        unknown = sum(stage.disk is None for stage in self.stages)
        without = f", not counting {plural(unknown, 'stage')} with models of unknown size" if unknown else ""
        yield f"disk: about {decimal(self.disk)} for checkpoints and exported models{without}"

    def _seconds(self, device: Device) -> float:
        return sum(device.seconds(stage.flops, stage.precision, stage.width) for stage in self.stages)

    def _forecast(self, device: Device) -> str:
        unknown = any(stage.kind in NOUNS and not stage.flops for stage in self.stages)
        return f"{'at least' if unknown else 'about'} {duration(self._seconds(device))} on {device.name}"

    def _amounts(self, kind: str, noun: str) -> Iterator[str]:
        """Yield a line with the tokens of the stages of a kind, and a line on stages with unknown tokens."""
        stages = [stage for stage in self.stages if stage.kind == kind]
        known = [stage.tokens for stage in stages if stage.tokens is not None]
        if known:
            upto = "" if kind == "pretrain" and len(set(known)) == 1 else "up to "
            whole = f", {upto if kind != 'pretrain' else ''}{large(sum(known))} tokens in all" if len(known) > 1 else ""
            yield f"to do: {plural(len(known), noun)} of {upto}{large(max(known))} tokens{whole}"
        if unknown := len(stages) - len(known):
            yield f"to do: {plural(unknown, noun)} on data of unknown size, without a forecast"


def study_cost(run: StudyRun) -> StudyCost:
    """Return the cost of the unfinished stages of the chosen cells of a study. Nothing is written.

    Raises:
        InputError: An option of Slurm or the spec of a source is wrong.
    """
    stages, there = run.to_do(), run.store.root.absolute()
    while not there.exists():
        there = there.parent
    found = tuple(stage_costs(stages, StageKeys(run.digests), run.study.scale))
    return StudyCost(found, device_of(run.options, run.machine), shutil.disk_usage(there).free)


def check_cost(run: StudyRun, name: Path) -> None:
    """Check that the unfinished stages of the chosen cells do not exceed the limits of time and disk.

    With ``--yes`` and for a smoke run, nothing is checked.

    Args:
        run: The study.
        name: The name or file of the study, for the error.

    Raises:
        InputError: The forecast exceeds ``MOST_SECONDS`` or the free disk, or an option of Slurm or the spec of a
            source is wrong.
    """
    if run.options.yes or run.options.smoke or not run.to_do():
        return
    if excess := study_cost(run).excess:
        hint = "add --yes to start it anyway; --dry-run shows the tokens, the time and the disk"
        raise InputError(f"the study {excess}", name, hint=hint, code="resources")


# --- stages ---


def stage_costs(stages: Sequence[Stage], keys: StageKeys, size: str | None = None) -> Iterator[StageCost]:
    """Yield the costs of stages. A fine-tuning that several stages share counts once.

    Stages that neither train a model nor keep weights are left out.

    Args:
        stages: The stages.
        keys: Cache of the keys of stages.
        size: Size of the study, which decides between the sources of data sets.

    Raises:
        InputError: The spec of a source is wrong.
    """
    fits = set[str]()
    for stage in stages:
        match stage:
            case PretrainStage():
                yield _pretraining(stage)
            case AdjustStage():
                yield _adjustment(stage)
            case TuneStage():
                yield StageCost(stage.kind, disk=_disk(_size(root_of(stage.model)), None, 1))
        if isinstance(stage, FinetuneStage) and (new := set(stage.finetune_keys(keys).values()) - fits):
            fits |= new
            yield from [_finetuning(stage, size)] * len(new)


def _pretraining(stage: PretrainStage) -> StageCost:
    config, size = stage.config, _size(stage)
    exports = len(config.all_languages)
    export = size if config.start is not None else size_of_run(bounded(config), exported=True)
    disk = _disk(size, config.checkpoints, exports, config.steps, export)
    if size is None:
        return StageCost("pretrain", config.tokens, disk=disk)
    return StageCost("pretrain", config.tokens, pretraining_flops(config, size), config.precision, size.hidden, disk)


def _disk(
    size: ModelSize | None,
    policy: CheckpointConfig | None,
    exports: int,
    steps: int | None = None,
    export: ModelSize | None = None,
) -> int | None:
    """Return the bytes of the kept checkpoints and of exported models, or None if the size is unknown.

    Args:
        size: Size of the model.
        policy: Policy of checkpoints, or None without checkpoints.
        exports: Number of exported models.
        steps: Number of training steps. None stands for enough steps to fill the policy.
        export: Size of an exported model (default: ``size``).
    """
    if size is None:
        return None
    checkpoints = 0
    if policy is not None:
        checkpoints = policy.keep if steps is None else len(kept_steps(policy, steps))
        checkpoints += policy.select == "best"
    return checkpoints * size.parameters * (WEIGHT + MOMENTS) + exports * (export or size).parameters * WEIGHT


def _adjustment(stage: AdjustStage) -> StageCost:
    """Return the cost of an adjustment. It includes the forward passes of the original model."""
    config, size = stage.config, _size(stage.model)
    disk = _disk(size, config.checkpoints, 1)
    if size is None or config.data.sentences is None:
        return StageCost(stage.kind, disk=disk)
    tokens = 2 * SENTENCE * config.data.sentences * len(config.texts) * config.epochs
    flops = 4 * tokens * size.layers * size.flops_of_layer(SENTENCE, SENTENCE) / SENTENCE
    return StageCost(stage.kind, tokens, flops, config.precision, size.hidden, disk)


def _finetuning(stage: FinetuneStage, scale: str | None) -> StageCost:
    """Return the cost of one fine-tuning, including its search. Every row is assumed to have the maximum length."""
    config, root = stage.config, root_of(stage.model)
    most = _training_items(config, scale)
    size, limits = _size(root), root.limits(lambda _: None) if isinstance(root, PretrainStage) else None
    length = config.length or (limits.positions if limits is not None else None)
    tokens, flops = 0, 0.0
    for _, tried in combinations(config):
        items = tried.fine_tune.epoch_items or most
        epoch = items * (length or SENTENCE) if items else _tokens_of_training(config, root, length)
        if size is None or epoch is None:
            return StageCost("fit")
        passes = 3 if tried.features.tune == "all" else 1  # the backward pass has twice the operations of forward
        tokens += epoch * tried.fine_tune.epochs
        row = length or SENTENCE
        flops += passes * epoch * tried.fine_tune.epochs * size.layers * size.flops_of_layer(row, row) / row
    assert size is not None, "there is at least one combination"
    return StageCost("fit", tokens, flops, config.fine_tune.precision, size.hidden)


def _training_items(config: TransferConfig, scale: str | None) -> int | None:
    """Return the largest number of training items by the settings and the catalogue, or None if it is unlimited."""
    path = local_path(config.train) if config.train else None
    name = None if path is None else name_of(path)
    known = None if name is None else entry(name).origin(scale).items
    return min((number for number in (config.train_items, known) if number is not None), default=None)


def _tokens_of_training(config: TransferConfig, root: PretrainStage | str, length: int | None) -> int | None:
    """Return the largest number of tokens in the training items of a transfer, or None if it is unknown."""
    own = root.config.all_languages[0].source if isinstance(root, PretrainStage) else ""
    spec = config.train or own
    if spec.startswith(BUILTIN):
        sentences = whole_grammar(spec).size("train")
        return None if length is None else sentences * length
    path = local_path(spec)
    files = [path] if path is not None and path.is_file() else []
    if path is not None and path.is_dir():
        files = [file for file in path.iterdir() if "train" in file.name]
    return sum(file.stat().st_size for file in files) // TOKEN_BYTES or None


def _size(model: PretrainStage | str) -> ModelSize | None:
    """Return the size of a model, or None if it is unknown."""
    if isinstance(model, str):
        return size_of_model(model)
    start = model.config.start
    if start is None:
        return size_of_run(bounded(model.config))
    size = size_of_model(start.model) if model.init_from is None else _size(model.init_from)
    new = 0 if start.extend is None else start.extend.size
    return None if size is None else replace(size, words=size.words + new, outputs=size.outputs + new)
