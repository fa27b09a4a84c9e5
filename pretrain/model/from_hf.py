"""Convert a checkpoint of Hugging Face to our model, using every weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.config import SharingConfig
from pretrain.hub import Base, check_weights, load_model, open_base
from pretrain.model.from_xlm import bert_config, bert_names
from pretrain.model.kinds import KINDS, kind_of
from pretrain.model.language_model import LanguageModel
from pretrain.model.roberta_hf import ARCHITECTURES
from synthlang.config_errors import show_value
from synthlang.errors import InputError
from synthlang.vocabularies import Extension
from synthlang.vocabularies.xlm_tokenizer import XLM
from synthlang.wording import first_few, plural


def from_hf(
    name: str,
    sharing: SharingConfig,
    *,
    ids: Sequence[NDArray[np.int64]],
    size: int,
    language_ids: bool,
    seed: int,
    extension: Extension | None = None,
    initialise: str = "pieces",
    length: int | None = None,
) -> LanguageModel:
    """Return the checkpoint ``name`` as a model that computes the same function for every language.

    An XLM keeps its language embeddings, and ``ids`` must have its languages in order. In other models, language
    embeddings are 0. Separate parts are equal copies.

    Args:
        name: A folder, or a name on the hub.
        sharing: Shared and separate parts.
        ids: Ids of each language, as in LanguageModel.
        size: Number of ids of all languages, including the rows of the ``extension``.
        language_ids: True to add language embeddings.
        seed: Seed of random rows.
        extension: New subwords.
        initialise: First values of the rows of the extension (see ExtendSpec).
        length: Number of tokens of the longest row (default: not checked).

    Raises:
        InputError: The checkpoint does not exist or cannot be read (see ``open_base`` and ``load_model``). Its
            architecture or a setting is not supported. Its weights are not those of its architecture, or it has fewer
            positions than ``length``. The number of its word embeddings is not that of its tokenizer.
    """
    base = open_base(name)
    config = _config(base, name)
    loaded = load_model(base)
    source = {key: tensor.detach() for key, tensor in loaded.state_dict().items()}
    architecture, kind = config.model_type, kind_of(config.model_type)
    if architecture == XLM:
        config, source = bert_config(config), bert_names(source)
    positions = positions_of(config)
    check_length(name, positions, length)
    pad = int(config.eos_token_id if config.pad_token_id is None else config.pad_token_id)
    settings = (kind.shape(config), sharing, ids, size, positions, pad, language_ids)
    model = kind.model(*settings, seed, architecture, kind.epsilon(config))
    model.origin = config.to_dict()
    words, bias = kind.take_words(model, source)
    if extension is not None:
        words, bias = _extended(words, bias, extension, initialise, model)
    if len(words) != size:
        reason = f"the model has {len(words)} word embeddings, but its tokenizer needs {size}"
        raise InputError(reason, name, hint="put the tokenizer of this model beside its weights", code="conflict")
    with torch.no_grad():
        kind.fill(model, source, words, bias)
    if source:
        reason = f"the model has weights that are not part of its architecture: {first_few(sorted(source), 3)}"
        raise InputError(
            reason, name, hint="correct model_type in its config.json, or use another model", code="unsupported"
        )
    return model


def check_start(name: str, length: int, layers: Sequence[int], is_causal: bool = False) -> None:
    """Check that a run with rows of ``length`` and separate ``layers`` can start from a checkpoint.

    ``is_causal`` is True if the objective has the term clm.

    Raises:
        InputError: The checkpoint does not exist, is damaged, has an unsupported architecture or setting, or is a run
            instead of the export of one language. It is a decoder and the objective lacks clm, or it is an encoder and
            the objective has clm. It has too few layers or positions, or needs more memory than the machine has.
    """
    base = open_base(name)
    if base.is_run:
        hint = f"name the export of one language, such as {base.folder}"
        raise InputError(f"{name} is a run, not a single model", keys="start.model", hint=hint, code="type")
    config = _config(base, name)
    check_weights(base)
    check_kind(name, kind_of(config.model_type).model.causal, is_causal)
    if config.model_type == XLM:
        reason = f"{name} has the architecture {XLM}, which can be probed and fine-tuned but not pretrained further"
        hint = f"name a model whose model_type is one of {', '.join(ARCHITECTURES)}"
        raise InputError(reason, keys="start.model", hint=hint, code="unsupported")
    check_size(name, config.num_hidden_layers, layers)
    check_length(name, positions_of(config), length)


def check_kind(name: str, is_decoder: bool, is_causal: bool) -> None:
    """Check that the model ``name`` is a decoder if and only if the objective is causal.

    ``is_decoder`` is True for a decoder, and ``is_causal`` is True if the objective has the term clm.

    Raises:
        InputError: The model is a decoder and the objective is not causal, or the model is an encoder and the objective
            is causal.
    """
    if is_decoder != is_causal:
        reason = f"the term clm needs a decoder, but {name} is an encoder"
        hint = "start from a decoder, such as a GPT-2, or choose an objective without clm"
        if is_decoder:
            reason, hint = f"lacks the term clm, which the decoder {name} needs", "set objective.kind to clm"
        raise InputError(reason, keys="objective", hint=hint, code="conflict")


def check_size(name: str, count: int, layers: Sequence[int]) -> None:
    """Check that the model ``name``, which has ``count`` layers, has all separate ``layers``.

    Raises:
        InputError: A layer does not exist.
    """
    if max(layers, default=0) > count:
        reason = f"{name} has only {plural(count, 'layer')}, so it has no layer {max(layers)}"
        raise InputError(reason, keys="sharing.layers", hint=f"use numbers up to {count}", code="range")


def positions_of(config: Any) -> int:
    """Return the length in tokens of the longest row that a checkpoint reads, by its config."""
    names = ARCHITECTURES.get(config.model_type)
    before = config.pad_token_id + 1 if names is not None and names.counts_from_pad else 0
    return int(config.max_position_embeddings) - before


def check_length(name: str, positions: int, length: int | None) -> None:
    """Check that rows of ``length`` tokens fit into the ``positions`` of the model ``name``.

    A ``length`` of None is not checked.

    Raises:
        InputError: The rows have more tokens than the model has positions.
    """
    if length is not None and length > positions:
        reason = f"rows of {length} tokens exceed the {positions} positions of {name}"
        raise InputError(reason, keys="batch.length", hint=f"set this key to at most {positions}", code="range")


def _config(base: Base, name: str) -> Any:
    """Return the config of a checkpoint that our model can equal.

    Raises:
        InputError: The config cannot be read. The architecture or a setting is not supported, or padding has no id.
    """
    config = base.config
    if config.model_type not in (known := [name for kind in KINDS.values() for name in kind.architectures]):
        hint = f"name a model whose model_type is one of {', '.join(known)}"
        raise InputError(f"the model_type {config.model_type} is not supported", name, hint=hint, code="unsupported")
    for key, needed in kind_of(config.model_type).needed.items():
        found = getattr(config, key, needed)
        if found != needed:
            reason = f"the model has {key}: {show_value(found)}, but only {key}: {show_value(needed)} can be read"
            raise InputError(reason, name, hint="use another model", code="unsupported")
    ends = kind_of(config.model_type).model.causal and isinstance(config.eos_token_id, int)
    if config.pad_token_id is None and not ends:
        hint = "set pad_token_id in its config.json to the id of the padding token"
        raise InputError("the model has no pad_token_id", name, hint=hint, code="missing")
    return config


def _extended(
    words: Tensor, bias: Tensor, extension: Extension, initialise: str, model: LanguageModel
) -> tuple[Tensor, Tensor]:
    """Append rows for the new ids to the word embeddings and biases (see ExtendSpec)."""
    new = torch.zeros(len(extension.ids), words.shape[1])
    new_bias = torch.full((len(new),), float(bias.mean()))
    if initialise == "random":
        new = model.word_rows(torch.from_numpy(extension.ids), 0).detach().clone()
    else:
        new[:] = words.mean(0)
    if initialise == "pieces":
        for i in range(len(new)):
            pieces = torch.from_numpy(extension.pieces_of(i))
            if len(pieces):  # a token without old pieces keeps the mean of all rows
                new[i], new_bias[i] = words[pieces].mean(0), bias[pieces].mean()
    return torch.cat([words, new]), torch.cat([bias, new_bias])
