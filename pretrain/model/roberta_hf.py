"""Conversion of our encoder to and from RoBERTa, XLM-R, BERT and XLM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pretrain.config import ModelConfig
from pretrain.model.attention import SeparateLayers
from pretrain.model.from_xlm import LANGUAGES, xlm_names
from pretrain.model.language_model import LanguageModel
from pretrain.model.roberta import DenseHead
from synthlang.vocabularies import OURS
from synthlang.vocabularies.xlm_tokenizer import XLM

if TYPE_CHECKING:
    from transformers import PretrainedConfig

LAYER = {  # name in transformers by our name, except qkv
    "out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm": "output.LayerNorm",
}
QKV = tuple(f"attention.self.{name}" for name in ("query", "key", "value"))
PARTS = ("weight", "bias")


@dataclass(frozen=True)
class Names:
    """Names of an architecture's classes and of its parts outside the layers.

    Attributes:
        config: Name of the class of the config.
        model: Name of the class of the model with its output.
        body: Prefix of the names of the encoder's weights.
        dense: Name of the dense layer before the output.
        norm: Name of the LayerNorm before the output.
        bias: Name of the bias of the output.
        tied: Names of weights that repeat other weights.
        counts_from_pad: True if positions are counted from the id of padding plus 1.
    """

    config: str
    model: str
    body: str
    dense: str
    norm: str
    bias: str
    tied: tuple[str, ...]
    counts_from_pad: bool = True


_ROBERTA_TIED = ("lm_head.decoder.weight", "lm_head.decoder.bias")
_ROBERTA = ("roberta", "lm_head.dense", "lm_head.layer_norm", "lm_head.bias", _ROBERTA_TIED)
_BERT_HEAD = "cls.predictions"
ARCHITECTURES = {
    "roberta": Names("RobertaConfig", "RobertaForMaskedLM", *_ROBERTA),
    "xlm-roberta": Names("XLMRobertaConfig", "XLMRobertaForMaskedLM", *_ROBERTA),
    "bert": Names(
        "BertConfig",
        "BertForMaskedLM",
        "bert",
        f"{_BERT_HEAD}.transform.dense",
        f"{_BERT_HEAD}.transform.LayerNorm",
        f"{_BERT_HEAD}.bias",
        (f"{_BERT_HEAD}.decoder.weight", f"{_BERT_HEAD}.decoder.bias"),
        counts_from_pad=False,
    ),
}
NEEDED: dict[str, Any] = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "tie_word_embeddings": True,
    "gelu_activation": True,
    "causal": False,
    "asm": False,
    "is_encoder": True,
}
"""Settings of a checkpoint that our encoder can equal. An architecture may lack a setting. The last four are XLM's."""


def names_of(model: LanguageModel) -> Names:
    """Return the names of a model's parts in transformers. The layers of an XLM are those of BERT."""
    return ARCHITECTURES["bert" if model.architecture == XLM else model.architecture]


def shape_of(config: Any) -> ModelConfig:
    """Return the shape of an encoder by its config. The dropout rate is ``hidden_dropout_prob``."""
    return ModelConfig(
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        hidden=config.hidden_size,
        feed_forward=config.intermediate_size,
        dropout=config.hidden_dropout_prob,
        init_std=config.initializer_range,
    )


def take_words(model: LanguageModel, source: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Remove word embeddings [V, d] and output bias [V] from the weights of a checkpoint, and return them."""
    names = names_of(model)
    return source.pop(f"{names.body}.embeddings.word_embeddings.weight"), source.pop(names.bias)


def fill(model: LanguageModel, source: dict[str, Tensor], words: Tensor, bias: Tensor) -> None:
    """Copy the weights of a checkpoint into our model, and remove them from ``source``.

    ``words`` [V, d] and ``bias`` [V] have a row for each id of the model. Weights that the model lacks stay in
    ``source``.
    """
    names = names_of(model)
    _fill_embeddings(model, source, names, words, bias)
    if isinstance(model.head, DenseHead):
        _take(source, names.dense, model.head.dense)
        _take(source, names.norm, model.head.norm)
    for number, layer in enumerate(model.layers):
        _fill_layer(source, f"{names.body}.encoder.layer.{number}", layer)
    for name in names.tied:
        source.pop(name, None)


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
    model: LanguageModel, source: dict[str, Tensor], names: Names, words: Tensor, bias: Tensor
) -> None:
    tables, place = model.embeddings, f"{names.body}.embeddings"
    before = model.pad + 1 if names.counts_from_pad else 0
    types = source.pop(f"{place}.token_type_embeddings.weight")
    tables.fill(words, bias, source.pop(f"{place}.position_embeddings.weight")[before:] + types[0])
    tables.segments = types[1:] - types[0]
    if tables.languages is not None:
        tables.languages.copy_(source.pop(LANGUAGES, torch.zeros_like(tables.languages)))
    _take(source, f"{place}.LayerNorm", model.norm)


def to_roberta(model: LanguageModel, language: int) -> tuple[PretrainedConfig, dict[str, Tensor]]:
    """Return the config and weights of an equal encoder of Hugging Face for one language (see ``to_hf``)."""
    is_xlm, names, shape, tables = model.architecture == XLM, names_of(model), model.shape, model.embeddings
    words, bias = tables.whole(language)
    positions = tables.positions_of(language)
    before = model.pad + 1 if names.counts_from_pad else 0
    types = torch.zeros(1, shape.hidden) if tables.languages is None else tables.languages[language : language + 1]
    body = f"{names.body}.embeddings"
    state = {
        f"{body}.word_embeddings.weight": words,
        f"{body}.position_embeddings.weight": torch.cat([positions.new_zeros(before, shape.hidden), positions]),
        f"{body}.token_type_embeddings.weight": torch.cat([types.to(words), types.to(words) + tables.segments]),
        names.bias: bias,
        **_pair(f"{body}.LayerNorm", model.norm),
    }
    if isinstance(model.head, DenseHead):
        state |= _pair(names.dense, model.head.dense) | _pair(names.norm, model.head.norm)
    for number, layer in enumerate(model.layers):
        own = layer.copy(language) if isinstance(layer, SeparateLayers) else layer
        state |= _layer_to_hf(own, f"{names.body}.encoder.layer.{number}")
    return (_xlm_config(model), xlm_names(state)) if is_xlm else (_hf_config(model, names, before), state)


def _pair(name: str, module: nn.Module) -> dict[str, Tensor]:
    return {f"{name}.{part}": module.get_parameter(part) for part in PARTS}


def _layer_to_hf(layer: nn.Module, place: str) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    for ours, theirs in LAYER.items():
        state |= _pair(f"{place}.{theirs}", layer.get_submodule(ours))
    for part in PARTS:
        chunks = layer.get_submodule("qkv").get_parameter(part).chunk(3)
        state |= {f"{place}.{name}.{part}": chunk for name, chunk in zip(QKV, chunks, strict=True)}
    return state


def _hf_config(model: LanguageModel, names: Names, before: int) -> PretrainedConfig:
    """Return the Hugging Face config. Settings that we do not have come from the original checkpoint."""
    import transformers

    shape, tables = model.shape, model.embeddings
    settings: dict[str, Any] = {"bos_token_id": OURS.bos, "eos_token_id": OURS.eos} if model.origin is None else {}
    settings |= model.origin or {}
    settings |= {
        "architectures": [names.model],
        "dtype": "float32",
        "vocab_size": tables.size,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.feed_forward,
        "hidden_act": "gelu",
        "hidden_dropout_prob": shape.dropout,
        "attention_probs_dropout_prob": shape.dropout,
        "initializer_range": shape.init_std,
        "layer_norm_eps": model.epsilon,
        "max_position_embeddings": tables.length + before,
        "type_vocab_size": 1 + len(tables.segments),
        "pad_token_id": model.pad,
        "tie_word_embeddings": True,
    }
    config: PretrainedConfig = getattr(transformers, names.config)(**settings)
    return config


def _xlm_config(model: LanguageModel) -> PretrainedConfig:
    """Return the config of an XLM with learned positions and without language embeddings."""
    from transformers import XLMConfig

    shape, tables = model.shape, model.embeddings
    specials = {f"{name}_index": getattr(OURS, name) for name in ("bos", "eos", "pad", "unk", "mask")}
    return XLMConfig(
        architectures=["XLMWithLMHeadModel"],
        dtype="float32",
        vocab_size=tables.size,
        emb_dim=shape.hidden,
        n_layers=shape.layers,
        n_heads=shape.heads,
        dropout=shape.dropout,
        attention_dropout=shape.dropout,
        gelu_activation=True,
        sinusoidal_embeddings=False,
        n_langs=1,
        use_lang_emb=False,
        max_position_embeddings=tables.length,
        embed_init_std=shape.init_std,
        init_std=shape.init_std,
        layer_norm_eps=model.epsilon,
        **specials,
        bos_token_id=OURS.bos,
        eos_token_id=OURS.eos,
        pad_token_id=OURS.pad,
        tie_word_embeddings=True,
    )
