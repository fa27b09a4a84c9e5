"""Rename the weights of XLM (Lample and Conneau 2019) as in BERT, and back.

The layers of both models are equal. XLM differs from BERT in two points. It adds the embedding of the language to each
token before the first LayerNorm, and its output reads the last layer directly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

LANGUAGES = "language_embeddings"
NAMES = (
    ("transformer.embeddings.", "bert.embeddings.word_embeddings."),
    ("transformer.position_embeddings.", "bert.embeddings.position_embeddings."),
    ("transformer.layer_norm_emb.", "bert.embeddings.LayerNorm."),
    ("transformer.lang_embeddings.weight", LANGUAGES),
    ("transformer.attentions.{}.q_lin.", "bert.encoder.layer.{}.attention.self.query."),
    ("transformer.attentions.{}.k_lin.", "bert.encoder.layer.{}.attention.self.key."),
    ("transformer.attentions.{}.v_lin.", "bert.encoder.layer.{}.attention.self.value."),
    ("transformer.attentions.{}.out_lin.", "bert.encoder.layer.{}.attention.output.dense."),
    ("transformer.layer_norm1.{}.", "bert.encoder.layer.{}.attention.output.LayerNorm."),
    ("transformer.ffns.{}.lin1.", "bert.encoder.layer.{}.intermediate.dense."),
    ("transformer.ffns.{}.lin2.", "bert.encoder.layer.{}.output.dense."),
    ("transformer.layer_norm2.{}.", "bert.encoder.layer.{}.output.LayerNorm."),
    ("pred_layer.proj.", "cls.predictions.decoder."),
)
"""The start of each name in XLM and in BERT, where {} is the number of a layer."""


def bert_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of an XLMWithLMHeadModel as in BertForMaskedLM.

    BERT has no embeddings of languages, so these embeddings [L, d] get the name ``language_embeddings``. A token type
    of zeros [1, d] and the output bias of BERT [V] are added.
    """
    found = {_renamed(name, 0): tensor for name, tensor in weights.items()}
    words = found["bert.embeddings.word_embeddings.weight"]
    found["bert.embeddings.token_type_embeddings.weight"] = words.new_zeros(1, words.shape[1])
    found["cls.predictions.bias"] = found["cls.predictions.decoder.bias"]
    return found


def xlm_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of a BertForMaskedLM as in XLMWithLMHeadModel.

    The BERT must have one token type and no layers between the last layer and the output. The embedding of the token
    type is added to the position embeddings.
    """
    found = {_renamed(name, 1): tensor for name, tensor in weights.items()}
    (types,) = found.pop("bert.embeddings.token_type_embeddings.weight")
    positions = "transformer.position_embeddings.weight"
    found[positions] = found[positions] + types
    found["pred_layer.proj.bias"] = found.pop("cls.predictions.bias")
    return found


def _renamed(name: str, column: int) -> str:
    """Return the name of a weight in the other architecture. ``name`` is a name of the ``column`` of NAMES."""
    for pair in NAMES:
        pattern = re.escape(pair[column]).replace(r"\{\}", r"(\d+)")
        if found := re.match(pattern, name):
            return pair[1 - column].format(*found.groups()) + name[found.end() :]
    return name


def bert_config(config: Any) -> Any:
    """Return the config of an XLM as a BertConfig."""
    from transformers import BertConfig

    return BertConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.emb_dim,
        num_hidden_layers=config.n_layers,
        num_attention_heads=config.n_heads,
        intermediate_size=4 * config.emb_dim,
        hidden_dropout_prob=config.dropout,
        initializer_range=config.init_std,
        layer_norm_eps=config.layer_norm_eps,
        max_position_embeddings=config.max_position_embeddings,
        type_vocab_size=1,
        pad_token_id=config.pad_token_id,
        tie_word_embeddings=config.tie_word_embeddings,
    )
