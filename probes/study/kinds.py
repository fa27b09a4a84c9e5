"""The six kinds of tasks of a study.

    pretrain, adjust       their stage is the run folder
    tune                   done.json and export/, as those of a run: a fine-tuned body without its head
    alignment, transfer    result.json, of a transfer also predictions.parquet
    probe                  probes.json, figures/, probes.html

``run`` may be killed and called again: a training goes on from its last checkpoint, a fine-tuning from its last epoch.
What it does is in work.py, which loads the libraries.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain.adjust.config import FORMAT as ADJUST_FORMAT
from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from pretrain.config.run import FORMAT as PRETRAIN_FORMAT
from probes.measures import FORMAT as PROBE_FORMAT
from probes.measures import ProbeConfig
from probes.study.inputs import files_of_model
from probes.study.task import Task
from probes.transfer.config import FORMAT as TRANSFER_FORMAT
from probes.transfer.config import TransferConfig
from synthlang.progress import Report
from synthlang.store import Store

DONE, RESULT, PREDICTIONS, PROBES = "done.json", "result.json", "predictions.parquet", "probes.json"  # files of stages


@dataclass(frozen=True, eq=False)
class PretrainTask(Task):
    """Pretrain a config. ``start``: the run whose export of its first language is ``cell:start`` there."""

    kind = "pretrain"
    format = PRETRAIN_FORMAT
    content = (DONE,)
    config: PretrainConfig
    start: PretrainTask | None = None

    @property
    def needs(self) -> tuple[Task, ...]:
        """The run to start from."""
        return () if self.start is None else (self.start,)

    @property
    def label(self) -> str:
        """Objective, languages and seed."""
        return f"pretrain {self.config.label}" + (f" seed {self.config.seed}" if self.config.seed else "")

    def run(self, store: Store, report: Report) -> str:
        """Train in ``pretrain-<fingerprint>``. SIGTERM saves a checkpoint and raises Stopped."""
        from probes.study.work import run_pretraining

        return run_pretraining(self, store, report)

    def _held(self) -> dict[str, Any]:
        return {} if self.start is None else {"start": self.start.to_json()}


@dataclass(frozen=True, eq=False)
class AlignmentTask(Task):
    """The alignment of the word embeddings of a run (probes/words.py), which every pretrained cell has."""

    kind = "alignment"
    format = 1
    content = (RESULT,)
    pretrained: PretrainTask

    @property
    def config(self) -> PretrainConfig:  # type: ignore[override]
        """That of the run."""
        return self.pretrained.config

    @property
    def needs(self) -> tuple[Task, ...]:
        """The run."""
        return (self.pretrained,)

    @property
    def label(self) -> str:
        """Of what."""
        return f"alignment of {self.pretrained.label.removeprefix('pretrain ')}"

    def run(self, store: Store, report: Report) -> str:
        """Measure into ``alignment-<fingerprint>/result.json``."""
        from probes.study.work import run_alignment

        return run_alignment(self, store, report)

    def _held(self) -> dict[str, Any]:
        return self.pretrained._held()


class _OfModel(Task):
    """A task of a model of the study or of a name; some read a second one, a run."""

    model: Model
    second: PretrainTask | None = None

    @property
    def needs(self) -> tuple[Task, ...]:
        """The models that the study makes."""
        return tuple(model for model in (self.model, self.second) if isinstance(model, Task))

    def files(self) -> list[Path]:
        """Those that the config names and those of the model."""
        return super().files() + (files_of_model(self.model) if isinstance(self.model, str) else [])

    def _more(self) -> dict[str, Any]:
        return {"model": self.model if isinstance(self.model, str) else None}  # others are parents

    def _held(self) -> dict[str, Any]:
        models = {"model": self.model, "second": self.second}
        return {role: held.to_json() if isinstance(held, Task) else held for role, held in models.items()}


@dataclass(frozen=True, eq=False)
class AdjustTask(_OfModel):
    """Adjust a model: a run of the study, or one of a name."""

    kind = "adjust"
    format = ADJUST_FORMAT
    content = (DONE,)
    config: AdjustConfig
    model: PretrainTask | str

    @property
    def label(self) -> str:
        """Which model, and by which pairs."""
        return f"adjust {short(self.model)} by {'+'.join(self.config.texts)}"

    def run(self, store: Store, report: Report) -> str:
        """Adjust in ``adjust-<fingerprint>``. SIGTERM saves a checkpoint and raises Stopped."""
        from probes.study.work import run_adjustment

        return run_adjustment(self, store, report)


Untuned = PretrainTask | AdjustTask | str


@dataclass(frozen=True, eq=False)
class TuneTask(_OfModel):
    """Fine-tune the body of a model on the source language of a task, for probes to read.

    config   only what that depends on (``TransferConfig.of_source``), so that cells of other target languages share it
    """

    kind = "tune"
    format = TRANSFER_FORMAT
    content = (DONE,)
    config: TransferConfig
    seed: int
    model: Untuned

    @property
    def label(self) -> str:
        """Which model, on which task, and the seed."""
        return f"tune {short(self.model)} on {_what(self.config)} seed {self.seed}"

    def run(self, store: Store, report: Report) -> str:
        """Fine-tune in ``tune-<fingerprint>``; a fit that was killed goes on from its last epoch."""
        from probes.study.work import run_tuning

        return run_tuning(self, store, report)

    def _more(self) -> dict[str, Any]:
        return {"seed": self.seed, **super()._more()}

    def _held(self) -> dict[str, Any]:
        return {"seed": self.seed, **super()._held()}


Model = Untuned | TuneTask


@dataclass(frozen=True, eq=False)
class ProbeTask(_OfModel):
    """Probe a model, or two."""

    kind = "probe"
    format = PROBE_FORMAT
    content = (PROBES,)
    config: ProbeConfig
    name: str
    model: Model
    second: PretrainTask | None = None

    @property
    def label(self) -> str:
        """Its name in the study and the model."""
        return f"probe {self.name} of {short(self.model)}"

    def run(self, store: Store, report: Report) -> str:
        """Measure into ``probe-<fingerprint>``."""
        from probes.study.work import run_probes

        return run_probes(self, store, report)

    def _held(self) -> dict[str, Any]:
        return {"name": self.name, **super()._held()}


@dataclass(frozen=True, eq=False)
class TransferTask(_OfModel):
    """Transfer of a model, or of two, for one seed."""

    kind = "transfer"
    format = TRANSFER_FORMAT
    content = (RESULT, PREDICTIONS)
    config: TransferConfig
    name: str
    seed: int
    model: Untuned
    second: PretrainTask | None = None

    @property
    def label(self) -> str:
        """Its name in the study, the seed and the model."""
        return f"{self.name} seed {self.seed} of {short(self.model)}"

    def run(self, store: Store, report: Report) -> str:
        """Fine-tune and test; ``transfer-<fingerprint>`` has result.json and predictions.parquet."""
        from probes.study.work import run_transfer

        return run_transfer(self, store, report)

    def _more(self) -> dict[str, Any]:
        return {"seed": self.seed, **super()._more()}

    def _held(self) -> dict[str, Any]:
        return {"name": self.name, "seed": self.seed, **super()._held()}


def origin(model: Model) -> PretrainTask | str:
    """What a model is an adjustment, or was fine-tuned, of; itself if it is neither."""
    return origin(model.model) if isinstance(model, AdjustTask | TuneTask) else model


def short(model: Model | None) -> str:
    """What a label calls a model."""
    if isinstance(model, TuneTask):
        return f"{short(model.model)} tuned on {_what(model.config)}"
    if isinstance(model, AdjustTask):
        return f"{short(model.model)} adjusted"
    if isinstance(model, PretrainTask):
        return model.label.removeprefix("pretrain ")
    return Path(model or "").name


def _what(config: TransferConfig) -> str:
    return config.task if config.continual is None else f"{config.task}+continual"
