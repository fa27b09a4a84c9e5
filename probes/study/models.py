"""The models of a cell as its transfers and probes read them: runs of the store, or a model by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from pretrain.config import PretrainConfig, SharingConfig
from pretrain.hub import CONFIG, open_base
from pretrain.model.from_hf import from_hf
from pretrain.model.hf_names import ARCHITECTURES
from pretrain.run import open_run
from probes.model_names import is_run, model_path
from probes.pretrained import Languages, Pretrained, of_run, open_pretrained, tokenizer_of
from probes.study.cell import Reach, reach_of
from synthlang.config import load
from synthlang.files import read_json
from synthlang.fingerprint import fingerprint
from synthlang.language import PARENT


def open_model(
    model: str,
    language: str | None,
    natural: bool,
    second: str | None = None,
    before: str | None = None,
    configs: Mapping[str, PretrainConfig] = MappingProxyType({}),
) -> Pretrained:
    """A model and the language to transfer to, as ``open_pretrained`` has them.

    before    what ``model`` is an adjustment, or was fine-tuned, of: of a run of ours it has the languages and the text
    configs   the settings of runs of the study, by their folders
    """
    if before is None or not is_run(model_path(before)):
        return open_pretrained(model, language, natural, second, configs)
    config, artifacts = open_run(Path(before), configs.get(before))
    base = open_base(model)
    held = list(base.checkpoints.values())
    ids = np.unique([n for checkpoint in held for n in checkpoint.tokenizer.get_vocab(with_added_tokens=True).values()])
    rows = max(checkpoint.rows for checkpoint in held)
    body = from_hf(str(base.folder), SharingConfig(), ids=[ids], size=rows, language_ids=False, seed=0)
    opened = of_run(config, artifacts, body, fingerprint("model", **base.parents()), language, natural)
    return replace(opened, name=Path(model).name, target=replace(opened.target, number=0))


def source_of(model: str, configs: Mapping[str, PretrainConfig] = MappingProxyType({})) -> str:
    """What the source language of a model is called, by which ``open_model`` finds it as a natural one."""
    path = model_path(model)
    if not is_run(path):
        return PARENT.name
    return (configs.get(model) or load(PretrainConfig, path / "config.yaml")).all_languages[0].name


def languages_of(model: str, opened: Pretrained) -> Languages:
    """All languages of a model that ``open_model`` has opened, as an adjustment of it writes them.

    "" for a model of Hugging Face, which has one tokenizer whatever the language.
    """
    if opened.run is not None:
        is_own = is_run(model_path(model))  # an adjusted one has one body, which knows no languages
        members = opened.run[1].languages
        return {member.name: (member.tokenizer, number if is_own else 0) for number, member in enumerate(members)}
    held = open_base(model).checkpoints
    return {name: (tokenizer_of(name or "source", checkpoint), 0) for name, checkpoint in held.items()}


def reach_of_model(model: str) -> Reach | None:
    """The layers of a model and how many tokens a row can have, by its settings; None for one that is not here.

    InputError for a folder that holds no model, and offline for a name that is in no cache.
    """
    path = model_path(model)
    if is_run(path):
        config = load(PretrainConfig, path / "config.yaml")
        return reach_of_model(config.start.model) if config.start else reach_of(config)
    from huggingface_hub import constants

    if not path.is_dir() and not constants.HF_HUB_OFFLINE:
        return None
    held = read_json(open_base(model).folder / CONFIG)
    names = ARCHITECTURES.get(held.get("model_type"))
    layers, positions = held.get("num_hidden_layers"), held.get("max_position_embeddings")
    if names is None or not isinstance(layers, int) or not isinstance(positions, int):
        return None  # opening it says what is wrong
    before = held.get("pad_token_id", 0) + 1 if names.counts_from_pad else 0
    return Reach(layers, positions - before, bert=names.config == "BertConfig")
