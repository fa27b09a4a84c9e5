"""Rename the weights of XLM's checkpoints (Lample and Conneau 2019) as in BERT, whose layers are equal.

XLM differs from BERT in two points. It adds the embedding of the language to each token before the first LayerNorm, and
its output reads the last layer directly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from synthlang.errors import InputError

LANGUAGES = "language_embeddings"
NEEDED = {"gelu_activation": True, "causal": False, "asm": False, "is_encoder": True}
NAMES = (
    (r"transformer\.embeddings\.", "bert.embeddings.word_embeddings."),
    (r"transformer\.position_embeddings\.", "bert.embeddings.position_embeddings."),
    (r"transformer\.layer_norm_emb\.", "bert.embeddings.LayerNorm."),
    (r"transformer\.lang_embeddings\.weight", LANGUAGES),
    (r"transformer\.attentions\.(\d+)\.q_lin\.", r"bert.encoder.layer.\1.attention.self.query."),
    (r"transformer\.attentions\.(\d+)\.k_lin\.", r"bert.encoder.layer.\1.attention.self.key."),
    (r"transformer\.attentions\.(\d+)\.v_lin\.", r"bert.encoder.layer.\1.attention.self.value."),
    (r"transformer\.attentions\.(\d+)\.out_lin\.", r"bert.encoder.layer.\1.attention.output.dense."),
    (r"transformer\.layer_norm1\.(\d+)\.", r"bert.encoder.layer.\1.attention.output.LayerNorm."),
    (r"transformer\.ffns\.(\d+)\.lin1\.", r"bert.encoder.layer.\1.intermediate.dense."),
    (r"transformer\.ffns\.(\d+)\.lin2\.", r"bert.encoder.layer.\1.output.dense."),
    (r"transformer\.layer_norm2\.(\d+)\.", r"bert.encoder.layer.\1.output.LayerNorm."),
    (r"pred_layer\.proj\.", "cls.predictions.decoder."),
)


def bert_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of XLMWithLMHeadModel as in BertForMaskedLM. ``language_embeddings`` [L, d] keep this name."""
    found = {}
    for name, tensor in weights.items():
        pattern, ours = next((pair for pair in NAMES if re.match(pair[0], name)), ("", ""))
        found[re.sub(f"^{pattern}", ours, name)] = tensor
    words = found["bert.embeddings.word_embeddings.weight"]
    found["bert.embeddings.token_type_embeddings.weight"] = words.new_zeros(1, words.shape[1])
    found["cls.predictions.bias"] = found["cls.predictions.decoder.bias"]
    return found


def bert_config(config: Any, name: str) -> Any:
    """Return the config of an XLM as a BertConfig.

    Raises:
        InputError: The XLM has another architecture.
    """
    from transformers import BertConfig

    for key, needed in NEEDED.items():
        if (found := getattr(config, key)) != needed:
            reason = f"has {key} {found!r}, but only models with {needed!r} can be read"
            raise InputError(reason, name, hint="use another model", code="unsupported")
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
