"""Losses of the first steps and the shapes of exported weights, for every objective and every kind of sharing.

Floating-point values differ a little from one kind of CPU to another and with the number of threads: see RTOL.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.run import adjust
from pretrain.config import PretrainConfig
from pretrain.folder import read_metrics
from pretrain.run import pretrain
from synthlang.config import parse
from synthlang.store import Store
from tests.golden import check_golden, digest
from tests.tiny import changed

RTOL = 1e-4
"""The kernels of an old CPU (ATEN_CPU_CAPABILITY=default) and two threads move a loss by at most 2e-6 of its value."""
RTOL_BFLOAT16 = 5e-3
"""There they are moved by up to 5e-4."""
RTOL_ADJUST, ATOL_ADJUST = 5e-4, 5e-3
"""What holds the words is the square of a small difference, in a loss of hundreds: an old CPU, also one with AVX2 at
most, moves it by up to 1.4e-3, an AMD EPYC with AVX-512 by 1.8e-3 and the loss by 1.3e-4 of its value."""
NO_LOSS = {"tokens_per_second", "sentence_pairs_per_second"}

BASE: dict[str, Any] = {
    "source": "builtin:mini-english?types=500&sentences=120&dev=30&test=0",
    "language": "trans+inv",
    "steps": 5,
    "vocabulary": {"size": 300},
    "dictionary": {"coverage": 0.5},
    "model": {"layers": 2, "heads": 2, "hidden": 16, "feed_forward": 32, "dropout": 0.0, "init_std": 0.1},
    "objective": {"mask_rate": 0.3},
    "batch": {"rows": 8, "length": 32},
    "optimizer": {"learning_rate": 0.01, "warmup_steps": 2},
    "validation": {"every": 5, "rows": 8, "alignment": False},
    "log_every": 1,
    "checkpoints": {"every": 5},
}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "mlm": {"kind": "mlm"},
    "xlm": {"kind": "xlm", "tlm_rate": 0.5},
    "dict_mlm": {"kind": "dict_mlm"},
    "dict_mlm label-or-copy": {"kind": "dict_mlm", "dict_target": "label-or-copy"},
    "dict_mlm switched": {"kind": "dict_mlm", "dict_target": "switched"},
    "align_mlm": {"kind": "align_mlm"},
    "sum of mlm, tlm, align": {"kind": "sum", "weights": {"mlm": 1.0, "tlm": 0.5, "align": 2.0}},
    "sum of all": {"kind": "sum", "weights": {"mlm": 1.0, "tlm": 0.5, "dict": 0.7, "align": 2.0}},
}
SHARING: dict[str, dict[str, Any]] = {
    "all shared": {},
    "separate embeddings": {"embeddings": "separate"},
    "separate layer": {"layers": [1]},
    "separate softmax": {"softmax": "language"},
}
# a softmax over one language's ids, which separate embeddings imply, cannot predict translations
CASES = [
    (objective, sharing)
    for objective in OBJECTIVES
    for sharing in SHARING
    if sharing in ("all shared", "separate layer") or not ("dict_mlm" in objective or objective == "sum of all")
]
VARIANTS: dict[str, dict[str, Any]] = {
    "dropout": {"model__dropout": 0.1},
    "accumulation": {"batch__accumulation": 2},
    "whole sentences": {"batch__packing": "sentences"},
    "single sentences": {"batch__packing": "sentence"},
    "single pairs, separate layer": {
        "batch__packing": "sentence", "objective__kind": "xlm", "sharing": {"layers": [1]},
    },
    "joint vocabulary": {"vocabulary__kind": "joint"},
    "no language ids under xlm": {"objective__kind": "xlm", "objective__language_ids": False},
    "language ids under mlm": {"objective__language_ids": True},
    "all layers and embeddings separate": {"sharing": {"embeddings": "separate", "layers": [1, 2]}},
    "weight decay, no clipping, cosine": {
        "optimizer__weight_decay": 0.1, "optimizer__clip": None, "optimizer__schedule": "cosine",
    },
    "inverse_sqrt": {"optimizer__schedule": "inverse_sqrt"},
    "more positions": {"model__positions": 64},
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """Where runs share their data artifacts."""
    folder: Path = tmp_path_factory.mktemp("golden")
    return folder


def trained(work: Path, settings: dict[str, Any], run: Path) -> list[dict[str, Any]]:
    """Train, and give the lines of the log without the speed."""
    pretrain(parse(PretrainConfig, settings), run, Store(work / "store"))
    return logged(run)


def logged(run: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in NO_LOSS} for row in read_metrics(run / "metrics.jsonl")]


def shapes_of(run: Path) -> dict[str, dict[str, str]]:
    """For each export the names of its tensors with type and shape."""
    found = {}
    for path in sorted((run / "export").rglob("model.safetensors")):
        with safe_open(path, "np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  it is no mapping
            found[path.parent.relative_to(run / "export").as_posix()] = {
                name: f"{part.get_dtype()} {part.get_shape()}" for name, part in slices.items()
            }
    return found


def test_losses_and_exports_of_every_objective_and_sharing(work, tmp_path):
    losses: dict[str, Any] = {}
    exports: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for objective, sharing in CASES:
        name = f"{objective}, {sharing}"
        chosen = {"mask_rate": 0.3, **OBJECTIVES[objective]}
        losses[name] = trained(work, {**BASE, "objective": chosen, "sharing": SHARING[sharing]}, tmp_path / name)
        shapes = shapes_of(tmp_path / name)
        tables |= {digest(table): table for table in shapes.values()}
        exports[name] = {language: digest(table) for language, table in shapes.items()}
    check_golden("losses", losses, rtol=RTOL)
    check_golden("exported_weights", {"tables": tables, "exports": exports})


def test_losses_of_other_settings(work, tmp_path):
    runs = {name: trained(work, changed(BASE, **change), tmp_path / name) for name, change in VARIANTS.items()}
    check_golden("losses_of_settings", runs, rtol=RTOL)


def test_losses_in_bfloat16(work, tmp_path):
    check_golden("losses_bfloat16", trained(work, {**BASE, "precision": "bfloat16"}, tmp_path / "run"), RTOL_BFLOAT16)


ADJUSTMENTS: dict[str, dict[str, Any]] = {
    "default": {},
    "frozen target, last subwords held on both sides": {"target": "frozen", "held": "both"},
    "the moving side is held": {"held": "moving", "held_words": "aligned"},
    "nothing is held": {"held": "none", "moves": "right"},
    "sentence tokens, every layer": {"pulled": "all", "layers": [0, 1, 2], "distance": "norm"},
    "mean of layers and subwords": {"layers": [1, 2], "layers_as": "mean", "subword": "mean", "reduction": "mean"},
    "first tokens only": {"pulled": "cls", "subword": "start", "hold": 0.5},
}


def test_losses_of_adjustments(work, tmp_path):
    trained(work, BASE, tmp_path / "base")
    found: dict[str, Any] = {}
    shapes: dict[str, Any] = {}
    for number, (name, loss) in enumerate(ADJUSTMENTS.items()):
        settings = {
            "model": str(tmp_path / "base"),
            "pairs": {"pair": {"kind": "derived", "source": BASE["source"], "left": "trans+inv"}},
            "loss": loss, "data": {"dev": 20, "sentences": 20}, "rows": 4, "log_every": 1, "dropout": False,
            "optimizer": {"learning_rate": 1e-3},
        }  # fmt: skip
        run = tmp_path / str(number)
        adjust(parse(AdjustConfig, settings), run)
        found[name], shapes[name] = logged(run), {k: digest(v) for k, v in shapes_of(run).items()}
    check_golden("losses_adjust", found, rtol=RTOL_ADJUST, atol=ATOL_ADJUST)
    check_golden("exported_weights_adjust", shapes)
