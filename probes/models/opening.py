"""Opening of models: pretraining runs, adjusted and fine-tuned models, and models of Hugging Face."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pretrain.artifacts import Artifacts
from pretrain.build import trained_model
from pretrain.config import PretrainConfig, SharingConfig
from pretrain.export import save_model
from pretrain.folder import EXPORT, export_sizes
from pretrain.hub import Base, open_base
from pretrain.model.from_hf import from_hf
from pretrain.model.language_model import LanguageModel
from pretrain.run import open_run
from probes.models.names import NATURAL, SHOWN, adjusted_from, is_run, model_path, named_language
from probes.models.pretrained import Pretrained, Reader, Role, find_language, number_of
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, user_path, write_json
from synthlang.fingerprint import fingerprint
from synthlang.language import PARENT
from synthlang.vocabularies import LanguageTokenizer
from synthlang.vocabularies.checkpoint import Checkpoint
from synthlang.vocabularies.xlm_tokenizer import XLM
from synthlang.wording import first_few, plural

ENGLISH = "en"
"""Name of the source language in models of Hugging Face that have language embeddings."""
Configs = Mapping[str, PretrainConfig]
"""Settings of runs by the folder of the run. They replace its ``config.yaml``."""


def open_pretrained(
    model: str,
    language: str | None,
    natural: bool = False,
    target_model: str | None = None,
    configs: Configs = MappingProxyType({}),
    original: str | None = None,
    step: int | None = None,
) -> Pretrained:
    """Open a model together with the language to transfer to.

    Args:
        model: Folder of a run, folder of a model, or name of a model of Hugging Face.
        language: The target language. For a run it is the name or the spec of one of its languages (default: the first
            derived one). It may also be the spec of a language that the run does not have. The model then reads this
            language like the source language. For other models it is any spec, or with ``natural`` any name.
        natural: True if the language is natural, with sentences of its own.
        target_model: Another model, which reads the target language.
        configs: Settings that replace those in the folders of runs, by folder.
        original: The model from which ``model`` was adjusted or fine-tuned. If it is a run, ``model`` has the languages
            and the text of the run, and ``target_model`` and ``step`` are not used.
        step: Step of the checkpoint of a run (default: the checkpoint that the run selects).

    Raises:
        InputError: A model does not exist or cannot be read, a model cannot read the language, ``language`` is None and
            there is no default, or the checkpoint of ``step`` is damaged or missing.
    """
    if original is not None and is_run(model_path(original)):
        return _of_derived_model(model, original, language, natural, configs)
    path = model_path(model)
    if is_run(path):
        reads_target = target_model is None
        opened = _of_run_folder(path, language, natural, configs.get(model), reads_target=reads_target, step=step)
    else:
        opened = _of_checkpoint(model, language, natural)
    if target_model is None:
        return opened
    other = open_pretrained(target_model, language, natural, configs=configs)
    return replace(
        opened,
        target_model=other.target_model,
        target=replace(other.target, role="target"),
        name=f"{opened.name} and {other.name}",
        fingerprint=fingerprint("models", source=opened.fingerprint, target=other.fingerprint),
    )


def of_run(
    config: PretrainConfig,
    artifacts: Artifacts,
    model: LanguageModel,
    record: str,
    language: str | None = None,
    natural: bool = False,
) -> Pretrained:
    """Wrap the trained model of a pretraining run that is in memory.

    Args:
        config: Settings of the run.
        artifacts: The languages, tokenizers and token ids of the run.
        model: The trained model.
        record: Fingerprint of the run.
        language: Name or spec of the target language (default: the first derived language of the run).
        natural: True if the target language is natural, with sentences of its own.

    Raises:
        InputError: The model cannot read the language (see `find_language`).
    """
    first = artifacts.languages[0]
    number, found = find_language(config, artifacts, language, natural)
    specials, bert = artifacts.id_space.specials, model.architecture == "bert"
    source = Reader(first.language, first.tokenizer, 0, specials, "source", bert)
    target = Reader(found, artifacts.languages[number].tokenizer, number, specials, "target", bert)
    return Pretrained(model, model, source, target, config.label, record, first.spec, natural, (config, artifacts))


def _of_run_folder(
    path: Path,
    language: str | None,
    natural: bool,
    config: PretrainConfig | None,
    reads_target: bool,
    step: int | None = None,
) -> Pretrained:
    """Open a pretraining run. ``reads_target`` is False if a second model reads the target language."""
    config, artifacts = open_run(path, config)
    record = read_json(path / "run.json")["fingerprint"]
    wanted = language if reads_target else artifacts.languages[0].name
    record = record if step is None else fingerprint("checkpoint", run=record, step=step)
    trained = trained_model(path, config, artifacts, step)
    try:
        opened = of_run(config, artifacts, trained, record, wanted, natural)
    except InputError as error:
        raise error.inside(path=path) from error  # name the run, because with two models either may lack the language
    return replace(opened, name=path.name)


def _of_derived_model(model: str, original: str, language: str | None, natural: bool, configs: Configs) -> Pretrained:
    """Open an adjusted or fine-tuned model with the languages and the text of its run."""
    config, artifacts = open_run(Path(original), configs.get(original))
    base = open_base(model)
    body = body_of(base, base.checkpoints.values())
    opened = of_run(config, artifacts, body, fingerprint("model", **base.parents()), language, natural)
    # an adjusted model has the same weights for all languages
    return replace(opened, name=Path(model).name, target=replace(opened.target, number=0))


def _of_checkpoint(model: str, language: str | None, natural: bool) -> Pretrained:
    """Open a model of Hugging Face, or an adjusted run with a tokenizer for each language."""
    if language is None:
        raise _no_language_named(model)
    base = open_base(model)
    found = named_language(language, natural)
    folders: dict[Role, str] = {"source": "", "target": ""}
    if base.is_run:
        folders = {"source": PARENT.name, "target": found.name}
        listed = first_few(list(base.folders), SHOWN)
        if PARENT.name not in base.folders:
            reason = f"has no language {PARENT.name!r}, the source language of an adjusted model, but only {listed}"
            hint = "adjust and test the model in one study, which knows the languages of its run"
            raise InputError(reason, model, hint=hint, code="unsupported")
        if found.name not in base.folders:
            reason, hint = f"{model} has no language {found.name!r}", f"choose from {listed}"
            if not natural:
                hint = f"give the short name, such as trans:0.5, or the YAML file of one of {listed}; {NATURAL}"
            raise InputError(reason, keys="language", hint=hint, code="unknown")
    checkpoints = {role: base.checkpoints[folder] for role, folder in folders.items()}
    if base.language_numbers and ENGLISH not in base.language_numbers:
        reason = f"has no embedding of the source language, {ENGLISH!r}"
        raise InputError(reason, model, hint="choose a model with this language", code="unsupported")
    numbers = {
        "source": base.language_numbers.get(ENGLISH, 0),
        "target": number_of(base.language_numbers, found.name, natural),
    }
    body = body_of(base, checkpoints.values())
    bert = body.architecture in ("bert", XLM)  # XLM's rows of two texts are as those of BERT, but it has no token types
    source, target = (
        Reader(read, tokenizer_of(role, checkpoint), numbers[role], base.specials, role, bert)
        for (role, checkpoint), read in zip(checkpoints.items(), (PARENT, found), strict=True)
    )
    name = Path(model).name or model
    opened = Pretrained(body, body, source, target, name, fingerprint("model", **base.parents()), None, natural)
    return replace(opened, original=adjusted_from(model), checkpoint=model, numbers=base.language_numbers)


def _no_language_named(model: str) -> InputError:
    """Return the error for a model whose languages are unknown, if the settings name no target language."""
    folder = user_path(model)
    if (folder / "study.json").is_file():
        return InputError("is a study, not a model", model, hint="give the folder of a run", code="type")
    what = "is not a pretraining run" if folder.exists() else "is not a run folder"
    reason = f"is missing, but {model} {what}, so its languages are not known"
    hint = "set this key to the language to compare with the source language"
    return InputError(reason, keys="language", hint=hint, code="missing")


# --- bodies and tokenizers ---


def body_of(base: Base, checkpoints: Iterable[Checkpoint], languages: int = 1) -> LanguageModel:
    """Load a model without the head of a task.

    Args:
        base: The model, whose files have been located.
        checkpoints: The checkpoints whose token ids the model must have embeddings for.
        languages: Number of languages of the model, which share all weights. A model with language embeddings has one
            language for each embedding instead.

    Raises:
        InputError: The weights cannot be read, or the architecture is not supported (see `from_hf`).
    """
    checkpoints, numbered = list(checkpoints), len(base.language_numbers)
    ids = [np.unique(np.concatenate([_ids(checkpoint) for checkpoint in checkpoints]))] * (numbered or languages)
    rows = max(checkpoint.rows for checkpoint in checkpoints)
    return from_hf(str(base.folder), SharingConfig(), ids=ids, size=rows, language_ids=numbered > 0, seed=0)


def open_original(pretrained: Pretrained) -> Base | None:
    """Locate the files of the model f⁰ of continual learning. Return None if f⁰ is the model itself.

    Continual learning adds an alignment loss to fine-tuning. A part of this loss keeps vectors close to those of f⁰,
    which by default is the model from before any adjustment.

    Raises:
        InputError: f⁰ does not exist or cannot be read, or its vocabulary differs from that of the model.
    """
    if pretrained.original is None:
        return None
    try:
        base = open_base(pretrained.original)
    except InputError as error:
        raise error.inside("continual", "before") from error
    known = [checkpoint.tokenizer.get_vocab() for checkpoint in base.checkpoints.values()]
    for reader in (pretrained.source, pretrained.target):
        if reader.tokenizer.tokenizer.get_vocab() not in known:
            reason = (
                f"{pretrained.original} has another vocabulary than {pretrained.name}, so it cannot be the model "
                "before continual learning"
            )
            hint = "set this key to a model with the same vocabulary"
            raise InputError(reason, keys="continual.before", hint=hint, code="conflict")
    return base


def load_original(base: Base, pretrained: Pretrained) -> LanguageModel:
    """Load the model f⁰ of continual learning, whose files `open_original` located.

    Args:
        base: The files of f⁰.
        pretrained: The model that is fine-tuned.

    Raises:
        InputError: The weights of f⁰ cannot be read, or its number of layers or units differs from that of the model.
    """
    body = body_of(base, base.checkpoints.values(), pretrained.model.language_count)
    sizes = [(one.shape.layers, one.shape.hidden) for one in (body, pretrained.model)]
    if sizes[0] != sizes[1]:
        first, second = (f"{plural(layers, 'layer')} of {plural(units, 'unit')}" for layers, units in sizes)
        reason = f"{pretrained.original} has {first}, but {pretrained.name} has {second}"
        hint = "set this key to a model of the same size"
        raise InputError(reason, keys="continual.before", hint=hint, code="conflict")
    return body


def tokenizer_of(name: str, checkpoint: Checkpoint) -> LanguageTokenizer:
    """Return the tokenizer of a checkpoint as the tokenizer of the language ``name``."""
    ids, settings, specials = _ids(checkpoint), checkpoint.settings, checkpoint.specials
    return LanguageTokenizer(name, checkpoint.tokenizer, ids, settings=settings, specials=specials)


def _ids(checkpoint: Checkpoint) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    vocabulary = checkpoint.tokenizer.get_vocab(with_added_tokens=True)
    return np.unique(np.fromiter(vocabulary.values(), np.int64, len(vocabulary)))


# --- writing a model with all of its languages ---

Languages = Mapping[str, tuple[LanguageTokenizer, int]]
"""The tokenizer of each language and its number in the model, by the name of the language."""


def languages_of(model: str, opened: Pretrained) -> Languages:
    """Return the tokenizer and the number of each language of an opened model, by name, for ``write_model``.

    A model of Hugging Face has one tokenizer for all languages, under the name "".

    Args:
        model: The folder or the name from which ``opened`` was opened.
        opened: The opened model.

    Raises:
        InputError: ``model`` does not exist or cannot be read.
    """
    if opened.run is not None:
        is_own = is_run(model_path(model))  # an adjusted model has the same weights for all languages
        numbered = enumerate(opened.run[1].languages)
        return {language.name: (language.tokenizer, number if is_own else 0) for number, language in numbered}
    checkpoints = open_base(model).checkpoints
    return {name: (tokenizer_of(name or "source", checkpoint), 0) for name, checkpoint in checkpoints.items()}


def write_model(body: LanguageModel, languages: Languages, folder: Path, record: Mapping[str, Any]) -> None:
    """Write one Hugging Face model for each language, and then ``record`` as ``folder/done.json``.

    A model is written with its tokenizer to ``folder/export/<language>``, or to ``folder/export`` for the name "". The
    head of a task is left out. ``done.json`` also has the sizes of the exported files.

    Args:
        body: The model.
        languages: The tokenizer and the number of each language by name (see ``languages_of``).
        folder: The folder to write. Earlier exports in it are replaced.
        record: JSON values for ``done.json``.

    Raises:
        DiskError: A file cannot be written, as on a full disk.
    """
    for name, (tokenizer, number) in languages.items():
        with atomic_folder(folder / "export" / name, replace=True) as new:
            save_model(body, number, tokenizer, new)
    write_json(folder / "done.json", {**record, EXPORT: export_sizes(folder)})
