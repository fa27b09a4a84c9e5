"""Facts about a model that need no weights: its folder, its languages, its layers and its maximum row length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from synthlang.catalogue import names as entries
from synthlang.config import load
from synthlang.errors import InputError, did_you_mean
from synthlang.files import no_such, read_json, safe_name, user_path
from synthlang.language import Language, UnknownLanguageError, parse_language
from synthlang.wording import first_few

SHOWN = 20
"""Largest number of languages that an error lists."""
NATURAL = (
    "for a language with sentences of its own, give them: --target-test SOURCE (key target.test) in a transfer, or "
    "natural: true and sentence pairs in a probe"
)


class CellModel(StrEnum):
    """A placeholder that a config of a study uses as the name of a model of the same cell.

    Study files and the keys of stages contain the text of the placeholder.
    """

    ORIGINAL = "cell:model"
    """The model before it is adjusted."""
    ADJUSTED = "cell:adjusted"
    """The model after it was adjusted. In a cell without an adjustment it is the original model."""
    TARGET = "cell:second"
    """The second model, which reads the target language."""
    INIT = "cell:start"
    """The run from which the pretraining is initialised. Only the settings of a pretraining may name it."""

    @classmethod
    def of(cls, name: object) -> CellModel | None:
        """Return the placeholder with the text ``name``, or None for any other name."""
        return cls(name) if isinstance(name, str) and name in set(cls) else None


@dataclass(frozen=True)
class ModelLimits:
    """Number of layers, maximum row length and architecture of a model, according to its settings.

    Attributes:
        layers: Number of transformer layers.
        positions: Maximum length of a row in tokens.
        bert: True for the architecture of BERT, which puts one separator between two texts. RoBERTa puts two.
        causal: True for a decoder.
    """

    layers: int
    positions: int
    bert: bool = False
    causal: bool = False


def model_path(model: str) -> Path:
    """Return the path of a model. For a name on Hugging Face, the returned path does not exist.

    Raises:
        InputError: ``model`` can only be a path (it is absolute or starts with ``.`` or ``~``), and does not exist.
    """
    path = user_path(model)
    if not path.exists() and (path.is_absolute() or model.startswith((".", "~"))):
        hint = "give a run, a model folder or a name on Hugging Face"
        raise no_such(path, "folder", hint)
    return path


def is_run(path: Path) -> bool:
    """Return whether a folder belongs to a pretraining run, finished or not.

    The folder of an adjustment is not a pretraining run, because the record of an adjustment names no data.

    Raises:
        InputError: ``run.json`` cannot be read.
    """
    record = path / "run.json"
    if not record.exists():
        return (path / "config.yaml").exists()
    written = read_json(record)
    return isinstance(written, dict) and "data" in written


def adjusted_from(model: str) -> str | None:
    """Return the model that an adjusted model started from, or None if ``model`` was not adjusted.

    For a chain of adjustments, the model before the first adjustment is returned.

    Raises:
        InputError: The ``config.yaml`` of an adjustment is invalid, or a ``run.json`` cannot be read.
    """
    folder, found = user_path(model), None
    while (config := folder / "config.yaml").is_file() and not is_run(folder):
        found = load(AdjustConfig, config).model
        folder = user_path(found)
    return found


def run_config(model: str, configs: Mapping[str, PretrainConfig] = MappingProxyType({})) -> PretrainConfig | None:
    """Return the settings of a pretraining run, from ``configs`` or its folder, or None for any other model.

    ``configs`` maps the folder of a run to settings that replace its ``config.yaml``.

    Raises:
        InputError: ``model`` is the path of a folder that does not exist, its ``run.json`` cannot be read, or its
            ``config.yaml`` is invalid.
    """
    path = model_path(model)
    if not is_run(path):
        return None
    return configs.get(model) or load(PretrainConfig, path / "config.yaml")


# --- sizes ---


def limits_of_run(config: PretrainConfig, init_from: PretrainConfig | None = None) -> ModelLimits | None:
    """Return the limits of the model of a run, or None if they depend on a checkpoint that the run starts from.

    If the run starts from another run of the same study, ``init_from`` has the settings of that run.
    """
    if config.start is not None:
        return None if init_from is None else limits_of_run(init_from)
    causal = config.objective.is_causal
    return ModelLimits(config.model.layers, config.model.positions or config.batch.length, causal=causal)


def limits_of_model(model: str) -> ModelLimits | None:
    """Return the limits of a model by its name, or None if they cannot be read.

    The limits cannot be read for an architecture that is not supported, and for a run that starts from such a model.
    They are not read for a name on Hugging Face, unless ``HF_HUB_OFFLINE`` is set, so that only the cache is read.

    Raises:
        InputError: A folder does not exist or does not hold a model, the settings of a run cannot be read, or
            ``HF_HUB_OFFLINE`` is set and the model is not in the cache.
    """
    if (config := run_config(model)) is not None:
        return limits_of_model(config.start.model) if config.start else limits_of_run(config)
    from huggingface_hub import constants

    from pretrain.hub import open_base  # with torch
    from pretrain.model.from_hf import positions_of
    from pretrain.model.kinds import kind_of
    from pretrain.model.roberta_hf import ARCHITECTURES

    if not model_path(model).is_dir() and not constants.HF_HUB_OFFLINE:
        return None
    config = open_base(model).config
    names = ARCHITECTURES.get(config.model_type)
    causal = kind_of(config.model_type).model.causal
    if names is None and not causal:
        return None  # opening the model raises the error
    bert = names is not None and names.config == "BertConfig"
    return ModelLimits(config.num_hidden_layers, positions_of(config), bert, causal)


# --- languages of a run ---


def has_own_parts(config: PretrainConfig) -> bool:
    """Return whether the model of a run has weights, or an embedding, for each of its languages."""
    return config.sharing.separates or config.objective.uses_language_ids


def derived_numbers(config: PretrainConfig) -> dict[str, int]:
    """Return the numbers of the languages that are derived from the first language of a run, by name."""
    languages = config.all_languages
    return {languages[b].name: b for a, b in config.derived_pairs if a == 0}


def natural_target(run: PretrainConfig, wanted: str | None) -> str | None:
    """Return the natural language that a transfer or a probe of a run compares with the source language.

    Args:
        run: Settings of the run.
        wanted: Name or spec of a language. None selects the other language of a run with two natural languages.

    Returns:
        The name of the language, or None if the compared language is not a natural language of the run. This is the
        case for derived languages, the source language and unknown names.

    Raises:
        InputError: ``wanted`` is None, and the run has no derived language but several natural languages besides the
            source language.
    """
    derived, others = derived_numbers(run), [language.name for language in run.all_languages[1:]]
    if wanted is None and not derived and len(others) > 1:
        reason = "is missing, but the run has several natural languages"
        hint = f"set this key to one of {first_few(others, SHOWN)}"
        raise InputError(reason, keys="language", hint=hint, code="missing")
    found = others[0] if wanted is None and not derived and others else wanted
    return found if found in others and found not in derived else None


def requested_language(
    config: PretrainConfig, wanted: str | None, natural: bool, remedy: str = NATURAL
) -> int | Language:
    """Find the language that a transfer or a probe of a run compares with the source language.

    Args:
        config: Settings of the run.
        wanted: Name of a language of the run, or the spec of another derived language (default: the first derived
            language of the run).
        natural: True if the language is natural, with sentences of its own.
        remedy: Hint for a natural language without sentences of its own.

    Returns:
        The number of a language of the run, or a language that the run does not have.

    Raises:
        InputError: ``wanted`` is neither a language of the run nor a spec, or is a natural language although
            ``natural`` is False, or is None although the run has no derived language. With ``natural``, a spec is an
            error, too.
    """
    names, derived = [language.name for language in config.all_languages], derived_numbers(config)
    if wanted is None and not derived:
        reason = "is missing, but the run has no language derived from its first one"
        hint = "set this key to a derived language, such as trans+inv" + (f"; {remedy}" if len(names) > 1 else "")
        raise InputError(reason, keys="language", hint=hint, code="missing")
    if wanted is None:
        return min(derived.values())
    if wanted in names and (natural or names.index(wanted) in (0, *derived.values())):
        return names.index(wanted)
    if natural:
        hint = f"{did_you_mean(wanted, names)}choose from {first_few(names[1:] or names, SHOWN)}"
        raise InputError(f"the run has no language {wanted!r}", keys="language", hint=hint, code="unknown")
    if wanted in names:
        reason = f"{wanted} is not derived from the first language of the run, {names[0]}"
        raise InputError(reason, keys="language", hint=remedy, code="conflict")
    try:
        return parse_language(wanted)
    except UnknownLanguageError as error:
        raise _unknown_language(wanted, names, list(derived), error, remedy) from error
    except InputError as error:
        raise error.inside("language") from error


def language_of(wanted: str | None, run: PretrainConfig) -> Language:
    """Return the target language of a transfer. ``wanted`` is as in `requested_language`, without natural languages.

    Raises:
        InputError: There is no such language, or ``wanted`` is a natural language (see `requested_language`).
    """
    found = requested_language(run, wanted, natural=False)
    return run.all_languages[found].language if isinstance(found, int) else found


def _unknown_language(
    wanted: str, names: list[str], derived: list[str], error: UnknownLanguageError, remedy: str
) -> InputError:
    """Return the error for a language that is neither a language of the run nor a spec.

    Args:
        wanted: The unknown name.
        names: The names of all languages of the run.
        derived: The names of the languages that are derived from the first one.
        error: The error of parsing ``wanted`` as a spec.
        remedy: Hint for a natural language.
    """
    reason = f"the run has no language {wanted!r}" + (f", and {error.reason}" if set("+:@") & set(wanted) else "")
    choice = f"choose from {first_few(derived, SHOWN)}, or " if derived else ""
    near = get_close_matches(wanted, [*names, *entries("derived")], 1)
    similar = f"did you mean {near[0]}? " if near else ""
    found = InputError(reason, keys="language", hint=f"{similar}{choice}{error.remedy}", code="unknown")
    is_natural = bool(near) and near[0] in names[1:] and near[0] not in derived
    return found.with_hint(remedy if is_natural else "")


def named_language(name: str, natural: bool, remedy: str = NATURAL) -> Language:
    """Return a natural language with a name, or the derived language of a spec.

    ``remedy`` is the hint for a natural language without sentences of its own.

    Raises:
        InputError: The name of a natural language cannot be a file name. The spec is malformed or names an unknown
            language or transform. For an unknown name, the hint of the error includes ``remedy``.
    """
    try:
        return Language(name=safe_name(name, "language name")) if natural else parse_language(name)
    except InputError as error:
        is_unknown = isinstance(error, UnknownLanguageError)
        raise error.with_hint(remedy if is_unknown else "").inside("language") from error
