"""The models that are fine-tuned: a run of ours, or a model of Hugging Face, with its way from text to ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from safetensors.torch import save_file

from pretrain.artifacts import Artifacts
from pretrain.build import trained_model
from pretrain.checkpoints import disk_errors
from pretrain.config import PretrainConfig, SharingConfig
from pretrain.folder import EXPORT, export_sizes
from pretrain.hub import open_base
from pretrain.model.encoder import MaskedLM
from pretrain.model.from_hf import from_hf
from pretrain.model.to_hf import to_hf
from pretrain.run import open_run
from probes.transfer.batch import Reader, Role
from probes.transfer.config import TransferConfig
from probes.transfer.model_names import asked_for, derived_numbers, is_run, model_path, no_language
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, user_path, write_json
from synthlang.fingerprint import fingerprint
from synthlang.language import PARENT, Language, bind_language, parse_language
from synthlang.vocabularies import LanguageTokenizer
from synthlang.vocabularies.checkpoint import Checkpoint


@dataclass(frozen=True)
class Pretrained:
    """A model and the two languages of a transfer.

    model          what reads the source language
    target_model   what reads the target: the same object, or another model (on frozen features)
    source, target their ways from texts to ids; the target's language may still have to be bound (``bind``)
    fingerprint    of the weights and the tokenizers
    text           the spec of the pretraining text that derived languages have sentence pairs in; None: not known
    natural        whether the target has sentences of its own and is not derived from the source
    run            the settings and the data of the run of ours that the model is, or that has its languages
    """

    model: MaskedLM
    target_model: MaskedLM
    source: Reader
    target: Reader
    name: str
    fingerprint: str
    text: str | None
    natural: bool = False
    run: tuple[PretrainConfig, Artifacts] | None = None

    @property
    def length(self) -> int:
        """The longest row that both models can read."""
        return min(self.model.embeddings.length, self.target_model.embeddings.length)

    @property
    def notes(self) -> list[str]:
        """What a reader of results has to know: that the run did not read the target, a language that is derived."""
        same = self.target.language.fingerprint == self.source.language.fingerprint
        if self.run is None or self.model is not self.target_model or self.target.number != 0 or same:
            return []
        names = ", ".join(member.name for member in self.run[0].all_languages)
        return [f"the model was not pretrained on {self.language_name('target')}, only on {names}"]

    def language_name(self, role: Role) -> str:
        """What a language is called; two natural ones are as their run calls them, for both have no transforms."""
        reader = self.source if role == "source" else self.target
        alike = self.source.language.name == self.target.language.name
        return reader.tokenizer.name if alike else reader.language.name


def open_pretrained(
    model: str,
    language: str | None,
    natural: bool = False,
    target_model: str | None = None,
    configs: Mapping[str, PretrainConfig] = MappingProxyType({}),
) -> Pretrained:
    """Open a run, a folder or a name of Hugging Face, and the language to transfer to.

    language   for a run the name or the spec of one of its languages (default: the first derived one); a spec of
               another one is a language that the model never saw, read as the parent is. For other models any spec;
               for natural ones any name
    configs    model → the settings that a run is opened with, where they are not those of its config.yaml
    """
    path = model_path(model)
    if is_run(path):
        config, artifacts = open_run(path, configs.get(model))
        record = read_json(path / "run.json")["fingerprint"]
        # with another model, the other language is for that one to know
        asked = language if target_model is None else artifacts.languages[0].name
        trained = trained_model(path, config, artifacts)
        try:
            opened = of_run(config, artifacts, trained, record, asked, natural)
        except InputError as error:
            raise InputError(str(error), path) from error  # with two models it would not be known whose language it is
        opened = replace(opened, name=path.name)
    else:
        opened = _of_checkpoint(model, language, natural)
    if target_model is None:
        return opened
    other = open_pretrained(target_model, language, natural, configs=configs)
    target = replace(other.target, role="target")
    both = fingerprint("models", source=opened.fingerprint, target=other.fingerprint)
    name = f"{opened.name} and {other.name}"
    return replace(opened, target_model=other.target_model, target=target, name=name, fingerprint=both)


def of_run(
    config: PretrainConfig,
    artifacts: Artifacts,
    model: MaskedLM,
    record: str,
    language: str | None = None,
    natural: bool = False,
) -> Pretrained:
    """A run of ours, of which ``record`` is the fingerprint."""
    parent = artifacts.languages[0]
    number, spoken = _transferred_to(config, artifacts, language, natural)
    specials, bert = artifacts.id_space.specials, model.architecture == "bert"
    source = Reader(parent.language, parent.tokenizer, 0, specials, "source", bert)
    target = Reader(spoken, artifacts.languages[number].tokenizer, number, specials, "target", bert)
    return Pretrained(model, model, source, target, config.label, record, parent.spec, natural, (config, artifacts))


def _transferred_to(
    config: PretrainConfig, artifacts: Artifacts, wanted: str | None, natural: bool
) -> tuple[int, Language]:
    """The number of the language to transfer to, and what it is."""
    known = artifacts.languages
    asked = asked_for(config, wanted, natural)
    if isinstance(asked, int):
        return asked, known[asked].language
    try:
        language = bind_language(asked, known[0].source)
    except InputError as error:
        raise no_language(str(wanted), [one.name for one in known], error) from error
    same = [n for n in derived_numbers(config).values() if known[n].language.fingerprint == language.fingerprint]
    return (same[0], known[same[0]].language) if same else (0, language)


def _of_checkpoint(model: str, language: str | None, natural: bool) -> Pretrained:
    """A model of Hugging Face, or an adjusted run of ours, whose languages have tokenizers of their own."""
    if language is None:
        if not user_path(model).exists():
            raise InputError(f"there is no folder {model}; of a model of Hugging Face name a language with --language")
        if (user_path(model) / "study.json").is_file():
            raise InputError(f"{model} is a study: name a run of it, as {model}/stages/pretrain-…")
        raise InputError(f"{model} is no pretraining run, so its languages are not known: name one with --language")
    base = open_base(model)
    spoken = Language(name=language) if natural else parse_language(language)
    folders: dict[Role, str] = {"source": "", "target": ""}
    if base.is_run:
        folders = {"source": PARENT.name, "target": spoken.name}
        for folder in folders.values():
            if folder not in base.folders:
                raise InputError(f"{model} has no language {folder!r}; there is {', '.join(base.folders)}")
    checkpoints = {role: base.checkpoints[folder] for role, folder in folders.items()}
    ids = np.unique(np.concatenate([_ids(checkpoint) for checkpoint in checkpoints.values()]))
    rows = max(checkpoint.rows for checkpoint in checkpoints.values())
    body = from_hf(str(base.folder), SharingConfig(), ids=[ids], size=rows, language_ids=False, seed=0)
    source, target = (
        Reader(read, tokenizer_of(role, checkpoint), 0, base.specials, role, body.architecture == "bert")
        for (role, checkpoint), read in zip(checkpoints.items(), (PARENT, spoken), strict=True)
    )
    name = Path(model).name or model
    return Pretrained(body, body, source, target, name, fingerprint("model", **base.parents()), None, natural)


def tokenizer_of(name: str, checkpoint: Checkpoint) -> LanguageTokenizer:
    """The tokenizer of a checkpoint as that of a language."""
    ids, settings, specials = _ids(checkpoint), checkpoint.settings, checkpoint.specials
    return LanguageTokenizer(name, checkpoint.tokenizer, ids, settings=settings, specials=specials)


def _ids(checkpoint: Checkpoint) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    vocabulary = checkpoint.tokenizer.get_vocab(with_added_tokens=True)
    return np.unique(np.fromiter(vocabulary.values(), np.int64, len(vocabulary)))


Languages = Mapping[str, tuple[LanguageTokenizer, int]]
"""Language → its tokenizer, and its number in the body."""


def check_keep(config: TransferConfig, pretrained: Pretrained, asked: str = "--keep") -> None:
    """Raise InputError where no body is fine-tuned, or one model cannot hold it for both languages.

    ``asked`` is what asked for it, the start of the line.
    """
    if config.features.tune == "none":
        raise InputError(f"{asked}: with features.tune none no body is fine-tuned, so there is nothing to keep")
    if config.rotation is not None:
        raise InputError(f"{asked}: a rotation is no part of a model, so the folder would not be what was tested")
    if pretrained.model.language_specific() or pretrained.model.embeddings.languages is not None:
        raise InputError(f"{asked}: the model has parts of its own for each language, which one folder cannot hold")


def keep_languages(body: MaskedLM, languages: Languages, folder: Path, record: Mapping[str, Any]) -> None:
    """Write ``folder/export/<language>``, or ``folder/export`` for "", and then the record as ``folder/done.json``.

    Each is a plain model with its tokenizer; the head of a task is left out.
    """
    for name, (tokenizer, number) in languages.items():
        settings, weights = to_hf(body, number)
        with atomic_folder(folder / "export" / name, replace=True) as new:
            settings.save_pretrained(new)
            with disk_errors():
                save_file(weights, new / "model.safetensors", metadata={"format": "pt"})
            tokenizer.save(new)
    write_json(folder / "done.json", {**record, EXPORT: export_sizes(folder)})
