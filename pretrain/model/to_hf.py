"""Convert the weights of one language to a model of Hugging Face."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pretrain.model.attention import SeparateLayers
from pretrain.model.encoder import Embeddings, MaskedLM
from pretrain.model.from_xlm import xlm_names
from pretrain.model.hf_names import ARCHITECTURES, LAYER, PARTS, QKV, Names
from synthlang.vocabularies import OURS
from synthlang.vocabularies.xlm_tokenizer import XLM

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def to_hf(model: MaskedLM, language: int) -> tuple[PretrainedConfig, dict[str, Tensor]]:
    """Return the config and weights of an equal Hugging Face model for one language.

    With separate embeddings, an id that the language does not have gets the row of the first language that has it.
    """
    is_xlm = model.architecture == XLM  # whose layers are those of BERT
    names, shape, tables = ARCHITECTURES["bert" if is_xlm else model.architecture], model.shape, model.embeddings
    words, bias = _full_tables(tables, language)
    first = language * tables.length if tables.separate else 0
    positions = tables.positions[first : first + tables.length]
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
    if not is_xlm:
        state |= _pair(names.dense, model.head.dense) | _pair(names.norm, model.head.norm)
    for number, layer in enumerate(model.layers):
        own = layer.copy(language) if isinstance(layer, SeparateLayers) else layer
        state |= _layer_to_hf(own, f"{names.body}.encoder.layer.{number}")
    state = {name: tensor.detach().to("cpu", torch.float32, copy=True).contiguous() for name, tensor in state.items()}
    return (_xlm_config(model), xlm_names(state)) if is_xlm else (_hf_config(model, names, before), state)


def _full_tables(tables: Embeddings, language: int) -> tuple[Tensor, Tensor]:
    """Return the embeddings [size, d] and biases [size] of all ids. Rows of ``language`` take precedence."""
    if not tables.separate:
        return tables.words, tables.bias
    words = tables.words.new_zeros(tables.size, tables.words.shape[1])
    bias = tables.bias.new_zeros(tables.size)
    outputs = tables.outputs(range(len(tables.sizes)), restrict=True)
    order = [language, *(m for m in outputs if m != language)]
    for other in reversed(order):  # the first of the order is written last
        words[tables.ids(other)], bias[tables.ids(other)] = outputs[other]
    return words, bias


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


def _hf_config(model: MaskedLM, names: Names, before: int) -> PretrainedConfig:
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


def _xlm_config(model: MaskedLM) -> PretrainedConfig:
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
