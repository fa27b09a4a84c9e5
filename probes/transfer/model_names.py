"""What is known of a model before it is opened: its folder, whether it is a run of ours, the languages of the run."""

from __future__ import annotations

from pathlib import Path

from pretrain.config import PretrainConfig
from synthlang.errors import InputError
from synthlang.files import read_json, user_path


def model_path(model: str) -> Path:
    """A model as a path; InputError for one that can be no name of Hugging Face and is not there."""
    path = user_path(model)
    if not path.exists() and (path.is_absolute() or model.startswith((".", "~"))):
        raise InputError("there is no such folder; name a run, a folder or a model of Hugging Face", path)
    return path


def is_run(path: Path) -> bool:
    """Whether a folder is that of a pretraining run, finished or not; an adjustment's record names no data."""
    record = path / "run.json"
    if not record.exists():
        return (path / "config.yaml").exists()
    held = read_json(record)
    return isinstance(held, dict) and "data" in held


def derived_members(config: PretrainConfig) -> dict[str, int]:
    """The numbers of the languages that are derived from the first one, by name."""
    return {config.members[b].name: b for a, b in config.derived_pairs if a == 0}


def first_derived(config: PretrainConfig) -> int:
    """The language that is transferred to when none is named; InputError if there is none."""
    derived = derived_members(config)
    if not derived:
        raise InputError("the run has no language derived from its first one: name a language with --language")
    return min(derived.values())
