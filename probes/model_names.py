"""What is known of a model before it is opened: its folder, whether it is a run of ours, the languages of the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.files import read_json, user_path
from synthlang.language import Language, parse_language


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
    told = read_json(record)
    return isinstance(told, dict) and "data" in told


def adjusted_from(model: str) -> str | None:
    """The original of an adjusted model, by its name when it was adjusted; None of any other model."""
    folder, found = user_path(model), None
    while (config := folder / "config.yaml").is_file() and not is_run(folder):
        found = load(AdjustConfig, config).model
        folder = user_path(found)
    return found


def derived_numbers(config: PretrainConfig) -> dict[str, int]:
    """The numbers of the languages that are derived from the first one, by name."""
    return {config.all_languages[b].name: b for a, b in config.derived_pairs if a == 0}


def asked_for(config: PretrainConfig, wanted: str | None, natural: bool) -> int | Language:
    """The number of the language of a run that is named (none: the first derived one); else the one of a spec.

    InputError for a name or spec of no language, and for one that has to be ``natural`` and is not said to be.
    """
    names, derived = [language.name for language in config.all_languages], derived_numbers(config)
    if wanted is None and not derived:
        raise InputError("the run has no language derived from its first one: name a language with --language")
    if wanted is None:
        return min(derived.values())
    if wanted in names and (natural or names.index(wanted) in (0, *derived.values())):
        return names.index(wanted)
    if natural:
        raise InputError(f"no language {wanted!r} in the run; there is {', '.join(names)}")
    if wanted in names:
        raise InputError(
            f"{wanted} is not derived from the first language: synthlang transfer needs its own sentences "
            "(--target-test), synthlang probe --set natural=true and sentence pairs"
        )
    try:
        return parse_language(wanted)
    except InputError as error:
        raise no_language(wanted, names, error) from error


def no_language(wanted: str, names: Sequence[str], reason: InputError) -> InputError:
    """What is said of a spec that is none of the ``names`` of a run, and why it is no other language."""
    return InputError(f"no language {wanted!r} in the run (there is {', '.join(names)}); {reason}")
