"""Local data sets for ``datasets``, as JSON lines or parquet, without downloads and with a separate cache."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is first imported

import pytest

datasets = pytest.importorskip("datasets")

TEXT = datasets.Value("string")


@pytest.fixture(autouse=True)
def offline(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(sys.modules["huggingface_hub"].constants, "HF_HUB_OFFLINE", True)


def jsonl(folder: Path, **splits: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for split, columns in splits.items():
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def parquet(folder: Path, features: dict[str, Any], **splits: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for split, columns in splits.items():
        data = datasets.Dataset.from_dict(columns, datasets.Features(features))
        data.to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return folder
