"""The stages of a cell: pretraining, its probe, and transfer for each seed.

Each stage is a folder in the store named by its fingerprint. A finished one is used as it
is; an unfinished pretraining goes on from its last checkpoint; the others start again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain.config import PretrainConfig
from pretrain.model import trained_model
from pretrain.prepare import prepare
from pretrain.run import pretrain
from probes.transfer.config import TransferConfig
from probes.transfer.run import target_member, transfer, transfer_fingerprint
from probes.words import probe_alignment, probe_fingerprint
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.progress import Report
from synthlang.store import Store

RESULT = "result.json"


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
        """Fine-tune and test; the result is in ``transfer-<fingerprint>/result.json``."""
        artifacts = prepare(self.config, store)
        target = artifacts.members[target_member(self.config, None)].language.fingerprint
        source = artifacts.members[0].source.fingerprint
        name = transfer_fingerprint(self.pretrained, source, target, self.transfer, self.seed)

        def build(path: Path) -> None:
            model = trained_model(store.path("pretrain", self.pretrained), self.config, artifacts)
            scores = transfer(model, self.config, artifacts, self.transfer, self.seed, report)
            with atomic_folder(path) as folder:
                write_json(folder / RESULT, scores)

        store.obtain("transfer", name, build)
        return {"transfer": name, "seed": self.seed}


Task = PretrainTask | ProbeTask | TransferTask


def read_result(store: Store, kind: str, name: str) -> dict[str, Any]:
    """The result of a probe or transfer stage."""
    result: dict[str, Any] = read_json(store.path(kind, name) / RESULT)
    return result
