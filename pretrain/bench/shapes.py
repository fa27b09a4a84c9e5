"""What is measured: shapes of models and batches, as configs of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pretrain.config import ModelConfig, PretrainConfig
from pretrain.flops import per_token


@dataclass(frozen=True)
class Shape:
    """``ids`` of both languages together; ``model`` and the batch as in a config."""

    ids: int
    model: ModelConfig
    rows: int
    length: int
    mask_rate: float = 0.15

    def flops_per_token(self, all_positions: bool = False) -> float:
        """Operations of forward and backward for each token of the batch."""
        return per_token(self.model, self.ids, self.length, self.mask_rate, all_positions)

    def config(self, objective: dict[str, Any], precision: str, compiled: str, steps: int) -> PretrainConfig:
        """A run of this shape on two languages, the second a copy of the first at an offset."""
        return PretrainConfig.model_validate(
            {
                "source": "builtin:mini-english",
                "language": "trans",
                "steps": steps,
                "model": self.model.model_dump(),
                "objective": {"mask_rate": self.mask_rate, **objective},
                "batch": {"rows": self.rows, "length": self.length},
                "optimizer": {"learning_rate": 1e-4, "warmup_steps": 0},
                "precision": precision,
                "compile": compiled,
            }
        )


SHAPES = {
    "v16k": Shape(16_000, ModelConfig(layers=4, heads=4, hidden=256, feed_forward=1024), rows=32, length=128),
    # the model of configs/studies/quickstart.yaml: 1,200 tokens and their copies
    "quickstart": Shape(
        2_400,
        ModelConfig(layers=2, heads=4, hidden=64, feed_forward=256, dropout=0.0, init_std=0.1),
        rows=128,
        length=32,
        mask_rate=0.3,
    ),
    "align_mlm": Shape(80_000, ModelConfig(), rows=128, length=512),  # ALIGN-MLM, appendix A
    "tiny": Shape(400, ModelConfig(layers=1, heads=2, hidden=16, feed_forward=32), rows=4, length=16),
}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "mlm": {"kind": "mlm"},
    "align_mlm": {"kind": "align_mlm"},
    "xlm": {"kind": "xlm"},
    "dict_mlm": {"kind": "dict_mlm"},
}
# to which shares of a peak are taken, with the operations of our side: work that we leave out earns nothing;
# dense bfloat16 without sparsity, of the manufacturer's data sheets, in operations per second
PEAKS = {"H200": 989.4e12, "H100 PCIe": 756e12, "H100": 989.4e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}


def peak_of(device_name: str) -> float | None:
    """The peak in bfloat16 of a GPU, if it is known."""
    return next((peak for name, peak in PEAKS.items() if name in device_name), None)
