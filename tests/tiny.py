"""The smallest run and study that exercise everything, as plain data."""

from typing import Any

PRETRAIN: dict[str, Any] = {
    "source": "builtin:mini-english?types=500&sentences=200&dev=40&test=40",
    "language": "trans+inv",
    "steps": 6,
    "vocabulary": {"size": 300},
    "dictionary": {"coverage": 0.5},
    "model": {"layers": 1, "heads": 2, "hidden": 16, "feed_forward": 32, "dropout": 0.1},
    "objective": {"kind": "align_mlm", "mask_rate": 0.3},
    "batch": {"rows": 8, "length": 48},
    "optimizer": {"learning_rate": 0.01, "warmup_steps": 2},
    "validation": {"every": 3, "rows": 8},
    "log_every": 2,
    "checkpoints": {"every": 2},
}
TRANSFER: dict[str, Any] = {"fine_tune": {"epochs": 1, "learning_rate": 0.01}, "length": 48, "train_items": 60}
STUDY: dict[str, Any] = {
    "name": "tiny",
    "source": PRETRAIN["source"],
    "seeds": [0, 1],
    "pretrain": {k: v for k, v in PRETRAIN.items() if k not in ("source", "language")},
    "transfer": TRANSFER,
    "grid": {"product": {"pretrain.language": ["trans"], "pretrain.objective.kind": ["mlm", "align_mlm"]}},
}


def changed(data: dict[str, Any], **values: Any) -> dict[str, Any]:
    """A copy with ``a__b=value`` set at data["a"]["b"]."""
    result = {k: dict(v) if isinstance(v, dict) else v for k, v in data.items()}
    for key, value in values.items():
        *path, last = key.split("__")
        node = result
        for part in path:
            node = node[part]
        node[last] = value
    return result
