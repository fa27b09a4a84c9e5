"""The stages of a cell: pretraining, its probe, and transfer for each seed.

Each stage is a folder in the store named by its fingerprint. A finished one is used as it
is; an unfinished pretraining goes on from its last checkpoint; the others start again.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain.config import PretrainConfig
from pretrain.model import trained_model
from pretrain.prepare import Artifacts, prepare
from pretrain.run import pretrain
from probes.transfer.config import TransferConfig
from probes.transfer.data import load_data
from probes.transfer.model import Pretrained, of_run
from probes.transfer.predictions import write_predictions
from probes.transfer.result import facts, seed_record
from probes.transfer.run import Transfer
from probes.words import probe_alignment, probe_fingerprint
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint
from synthlang.progress import Report
from synthlang.store import Store

RESULT, PREDICTIONS = "result.json", "predictions.parquet"


@dataclass(frozen=True)
class PretrainTask:
    """Pretrain a config; the result is the fingerprint of the run."""

    config: PretrainConfig

    def run(self, store: Store, report: Report) -> dict[str, Any]:
        """Train in ``pretrain-<fingerprint>`` of the store."""
        artifacts = prepare(self.config, store, report)
        name = self.config.fingerprint(artifacts.parents)
        with store.lock("pretrain", name):
            pretrain(self.config, store.path("pretrain", name), store, report)
        return {"pretrain": name}


@dataclass(frozen=True)
class ProbeTask:
    """Probe a finished run."""

    config: PretrainConfig
    pretrained: str

    def run(self, store: Store, report: Report) -> dict[str, Any]:
        """Measure alignment; the result is in ``probe-<fingerprint>/result.json``."""
        del report  # a probe takes a moment
        name = probe_fingerprint(self.pretrained, self.config.dictionary)

        def build(path: Path) -> None:
            artifacts = prepare(self.config, store)
            model = trained_model(store.path("pretrain", self.pretrained), self.config, artifacts)
            with atomic_folder(path) as folder:
                write_json(folder / RESULT, probe_alignment(model, self.config, artifacts, store))

        store.obtain("probe", name, build)
        return {"probe": name}


@dataclass(frozen=True)
class TransferTask:
    """Transfer of a finished run for one seed."""

    config: PretrainConfig
    transfer: TransferConfig
    seed: int
    pretrained: str

    def run(self, store: Store, report: Report) -> dict[str, Any]:
        """Fine-tune and test; ``transfer-<fingerprint>`` has result.json and predictions.parquet."""
        artifacts = prepare(self.config, store)
        pretrained = self._opened(artifacts, store)
        data = load_data(self.transfer, pretrained, report)
        transfer = Transfer(pretrained, data, self.transfer, report, store)
        name = fingerprint("transfer-seed", transfer=transfer.fingerprint, seed=self.seed)

        def build(path: Path) -> None:
            work = path.with_name(f"{path.name}.work")
            result = transfer.run(self.seed, work)
            record = {**facts(transfer), **seed_record(result, transfer.main.name)}
            with atomic_folder(path) as folder:
                write_json(folder / RESULT, {**record, "majority": transfer.majority})
                write_predictions(folder / PREDICTIONS, result.predictions)
            if work.exists():
                shutil.rmtree(work)

        store.obtain("transfer", name, build)
        return {"transfer": name, "seed": self.seed}

    def _opened(self, artifacts: Artifacts, store: Store) -> Pretrained:
        model = trained_model(store.path("pretrain", self.pretrained), self.config, artifacts)
        natural = self.transfer.target is not None
        return of_run(self.config, artifacts, model, self.pretrained, self.transfer.language, natural)


Task = PretrainTask | ProbeTask | TransferTask


def read_result(store: Store, kind: str, name: str) -> dict[str, Any]:
    """The result of a probe or transfer stage."""
    result: dict[str, Any] = read_json(store.path(kind, name) / RESULT)
    return result
