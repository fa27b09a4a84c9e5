"""Convert a checkpoint of Hugging Face to our model, using every weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pretrain.config import ModelConfig, SharingConfig
from pretrain.hub import Base, check_weights, load_model, open_base
from pretrain.model.attention import SeparateLayers
from pretrain.model.encoder import MaskedLM
from pretrain.model.from_xlm import LANGUAGES, bert_config, bert_names
from pretrain.model.hf_names import ARCHITECTURES, LAYER, PARTS, QKV
from synthlang.errors import InputError
from synthlang.vocabularies import Extension
from synthlang.vocabularies.xlm_tokenizer import XLM
from synthlang.wording import first_few

NEEDED: dict[str, Any] = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "tie_word_embeddings": True,
}


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
    dropout: float | None = None,
) -> MaskedLM:
    """Return the checkpoint ``name`` as a model that computes the same function for every language.

    Language embeddings are 0, except that an XLM keeps its own (``ids`` must then have its languages in order).
    Separate parts are equal copies.

    Args:
        name: A folder, or a name on the hub.
        sharing: Shared and separate parts.
        ids: As in MaskedLM.
        size: As in MaskedLM, including the rows of the ``extension``.
        language_ids: True to add language embeddings.
        seed: Seed of random rows.
        extension: New subwords.
        initialise: First values of the rows of the extension (see ExtendSpec).
        length: Length of the longest row.
        dropout: Dropout rate (default: the checkpoint's rate for hidden states).

    Raises:
        InputError: The architecture is not supported, or the checkpoint has fewer positions than ``length``.
    """
    base = open_base(name)
    config = _config(base, name)
    loaded = load_model(base)
    source = {key: tensor.detach() for key, tensor in loaded.state_dict().items()}
    architecture, names = config.model_type, ARCHITECTURES.get(config.model_type, ARCHITECTURES["bert"])
    if architecture == XLM:
        config, source = bert_config(config, name), bert_names(source)
    shape = _shape_of(config, dropout)
    before = config.pad_token_id + 1 if names.counts_from_pad else 0
    positions = positions_of(config)
    check_length(name, positions, length)
    settings = (shape, sharing, ids, size, positions, config.pad_token_id, language_ids)
    model = MaskedLM(*settings, seed, architecture, config.layer_norm_eps)
    model.origin = config.to_dict()
    words, bias = source.pop(f"{names.body}.embeddings.word_embeddings.weight"), source.pop(names.bias)
    if extension is not None:
        words, bias = _extended(words, bias, extension, initialise, model)
    if len(words) != size:
        reason = f"has {len(words)} word embeddings, but its tokenizer needs {size}"
        raise InputError(reason, name, hint="put the tokenizer of this model beside its weights", code="conflict")
    with torch.no_grad():
        _fill_embeddings(model, source, f"{names.body}.embeddings", words, bias, before)
        if architecture != XLM:
            _take(source, names.dense, model.head.dense)
            _take(source, names.norm, model.head.norm)
        for number, layer in enumerate(model.layers):
            _fill_layer(source, f"{names.body}.encoder.layer.{number}", layer)
    left = set(source) - set(names.tied)
    if left:
        reason = f"has weights that are not part of its architecture: {first_few(sorted(left), 3)}"
        raise InputError(
            reason, name, hint="correct model_type in its config.json, or use another model", code="unsupported"
        )
    return model


def check_start(name: str, length: int, layers: Sequence[int]) -> None:
    """Check that a run with rows of ``length`` and separate ``layers`` can start from a checkpoint.

    Raises:
        InputError: The checkpoint's settings exclude the run.
    """
    base = open_base(name)
    if base.is_run:
        hint = f"name the export of one language, such as {base.folder}"
        raise InputError(f"{name} is a run, not a single model", keys="start.model", hint=hint, code="type")
    config = _config(base, name)
    check_weights(base)
    if config.model_type == XLM:
        reason = f"{name} has the architecture {XLM}, which can be probed and fine-tuned but not pretrained further"
        hint = f"name a model whose model_type is one of {', '.join(ARCHITECTURES)}"
        raise InputError(reason, keys="start.model", hint=hint, code="unsupported")
    check_size(name, config.num_hidden_layers, layers)
    check_length(name, positions_of(config), length)


def check_size(name: str, count: int, layers: Sequence[int]) -> None:
    """Check that the model ``name``, which has ``count`` layers, has all separate ``layers``."""
    if max(layers, default=0) > count:
        reason = f"{name} has no layer {max(layers)}, but {count} layers"
        raise InputError(reason, keys="sharing.layers", hint=f"use numbers from 1 to {count}", code="range")


def positions_of(config: Any) -> int:
    """Return the length in tokens of the longest row that a checkpoint reads, by its config."""
    before = config.pad_token_id + 1 if ARCHITECTURES[config.model_type].counts_from_pad else 0
    return int(config.max_position_embeddings) - before


def check_length(name: str, positions: int, length: int | None) -> None:
    """Check that rows of ``length`` fit into the ``positions`` of the model ``name``."""
    if length is not None and length > positions:
        reason = f"rows of {length} tokens exceed the {positions} positions of {name}"
        raise InputError(reason, keys="batch.length", hint=f"use at most {positions}", code="range")


def _config(base: Base, name: str) -> Any:
    """Return the config of a checkpoint, and refuse a checkpoint that our model cannot equal."""
    config = base.config
    if config.model_type not in (*ARCHITECTURES, XLM):
        hint = f"name a model whose model_type is one of {', '.join((*ARCHITECTURES, XLM))}"
        raise InputError(f"is a {config.model_type}, which is not supported", name, hint=hint, code="unsupported")
    for key, needed in NEEDED.items():
        found = getattr(config, key, needed)
        if found != needed:
            reason = f"has {key} {found!r}, but only models with {key} {needed!r} can be read"
            raise InputError(reason, name, hint="use another model", code="unsupported")
    if config.pad_token_id is None:
        hint = "set pad_token_id in config.json to the id of the padding token"
        raise InputError("has no pad_token_id", name, hint=hint, code="missing")
    return config


def _shape_of(config: Any, dropout: float | None) -> ModelConfig:
    return ModelConfig(
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        hidden=config.hidden_size,
        feed_forward=config.intermediate_size,
        dropout=config.hidden_dropout_prob if dropout is None else dropout,
        init_std=config.initializer_range,
    )


def _take(source: dict[str, Tensor], name: str, *modules: nn.Module) -> None:
    for part in PARTS:
        weight = source.pop(f"{name}.{part}")
        for module in modules:
            module.get_parameter(part).copy_(weight)


def _fill_layer(source: dict[str, Tensor], place: str, layer: nn.Module) -> None:
    copies = [*layer] if isinstance(layer, SeparateLayers) else [layer]
    for ours, theirs in LAYER.items():
        _take(source, f"{place}.{theirs}", *(copy.get_submodule(ours) for copy in copies))
    for part in PARTS:
        fused = torch.cat([source.pop(f"{place}.{name}.{part}") for name in QKV])
        for copy in copies:
            copy.get_submodule("qkv").get_parameter(part).copy_(fused)


def _fill_embeddings(
    model: MaskedLM, source: dict[str, Tensor], place: str, words: Tensor, bias: Tensor, before: int
) -> None:
    tables = model.embeddings
    types = source.pop(f"{place}.token_type_embeddings.weight")
    positions = source.pop(f"{place}.position_embeddings.weight")[before:] + types[0]
    tables.segments = types[1:] - types[0]
    tables.positions.copy_(positions.repeat(len(tables.positions) // len(positions), 1))
    if tables.languages is not None:
        tables.languages.copy_(source.pop(LANGUAGES, torch.zeros_like(tables.languages)))
    own = torch.cat([tables.ids(m) for m in range(model.language_count)]) if tables.separate else slice(None)
    tables.words.copy_(words[own])
    tables.bias.copy_(bias[own])
    _take(source, f"{place}.LayerNorm", model.norm)


def _extended(
    words: Tensor, bias: Tensor, extension: Extension, initialise: str, model: MaskedLM
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
