"""Files and folders that are named as a split is: ``train``, ``valid``, ``test`` without an ending."""

from __future__ import annotations

from pathlib import Path

from synthlang.errors import InputError
from synthlang.sources.text import SPLITS


def named_splits(folder: Path) -> dict[str, Path]:
    """Split → the entry of ``folder`` whose whole name is that split's, in the order train, dev, test."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        split = SPLITS.get(path.name.lower())
        if split in found:
            raise InputError(f"{found[split].name} and {path.name} are both the split {split}; keep one", folder)
        if split is not None:
            found[split] = path
    return {split: found[split] for split in ("train", "dev", "test") if split in found}
