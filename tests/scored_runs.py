"""A tiny run whose predictions depend on no context, so that its scores have a closed form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.config import PretrainConfig
from pretrain.model.roberta import DenseHead
from pretrain.run import pretrain
from probes.measures.probe_command import run_probe
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult
from probes.measures.table import ProbeConfig
from probes.models.opening import open_pretrained
from probes.models.pretrained import Pretrained
from synthlang.config import parse
from tests.tiny import PRETRAIN, changed


def small_run(folder: Path, **settings: Any) -> Path:
    """Pretrain the tiny run for a few steps."""
    pretrain(parse(PretrainConfig, changed(PRETRAIN, steps=2, validation__every=0, **settings)), folder)
    return folder


def unigram(run: Path, weights: NDArray[np.float64], language: str | None = None) -> Pretrained:
    """Open a run whose model predicts each id with a probability proportional to ``weights`` [V], in any context."""
    opened = open_pretrained(str(run), language)
    assert isinstance(opened.model.head, DenseHead)
    with torch.no_grad():
        opened.model.head.norm.weight.zero_()
        opened.model.head.norm.bias.zero_()
        opened.model.embeddings.bias.copy_(torch.from_numpy(np.log(weights)))
    return opened


def probed(opened: Pretrained, name: str, **settings: Any) -> ProbeResult:
    """Run a probe on an opened model."""
    given = ProbeInput(opened, parse(ProbeConfig, {"probes": [name], **settings}))
    given.check()
    with given.reading():
        return run_probe(name, given)
