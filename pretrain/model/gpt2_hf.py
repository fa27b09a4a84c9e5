"""Conversion of our decoder to and from GPT2LMHeadModel, whose linear maps are transposed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from pretrain.config import ModelConfig
from pretrain.model.attention import SeparateLayers
from pretrain.model.language_model import LanguageModel
from pretrain.model.roberta_hf import PARTS
from synthlang.vocabularies import OURS

if TYPE_CHECKING:
    from transformers import PretrainedConfig

LAYER = {  # name in transformers by our name
    "attention_norm": "ln_1",
    "qkv": "attn.c_attn",
    "out": "attn.c_proj",
    "norm": "ln_2",
    "up": "mlp.c_fc",
    "down": "mlp.c_proj",
}
BODY, TIED = "transformer", "lm_head.weight"
NEEDED: dict[str, Any] = {
    "activation_function": "gelu_new",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
"""Settings of a checkpoint that our decoder can equal. ``reorder_and_upcast_attn`` only affects rounding."""


def shape_of(config: Any) -> ModelConfig:
    """Return the shape of a GPT-2 by its config. The dropout rate is ``resid_pdrop``."""
    return ModelConfig(
        kind="gpt2",
        layers=config.n_layer,
        heads=config.n_head,
        hidden=config.n_embd,
        feed_forward=config.n_inner or 4 * config.n_embd,
        dropout=config.resid_pdrop,
        init_std=config.initializer_range,
    )


def take_words(_: LanguageModel, source: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Remove the word embeddings from the weights of a checkpoint, and return them with a bias of 0, [V, d] and [V]."""
    words = source.pop(f"{BODY}.wte.weight")
    source.pop(TIED, None)
    return words, words.new_zeros(len(words))


def fill(model: LanguageModel, source: dict[str, Tensor], words: Tensor, bias: Tensor) -> None:
    """Copy the weights of a checkpoint into our model, and remove them from ``source``.

    ``words`` [V, d] and ``bias`` [V] have a row for each id of the model. Weights that the model lacks stay in
    ``source``.
    """
    model.embeddings.fill(words, bias, source.pop(f"{BODY}.wpe.weight"))
    if model.embeddings.languages is not None:
        model.embeddings.languages.zero_()
    for name, module in _modules(model):
        for part in PARTS:
            weight = source.pop(f"{BODY}.{name}.{part}")
            for copy in module:
                copy.get_parameter(part).copy_(weight.t() if weight.ndim == 2 else weight)


def to_gpt2(model: LanguageModel, language: int) -> tuple[PretrainedConfig, dict[str, Tensor]]:
    """Return the config and weights of an equal GPT2LMHeadModel for one language (see ``to_hf``).

    The embedding of the language is added to the position embeddings.
    """
    tables = model.embeddings
    positions = tables.positions_of(language)
    if tables.languages is not None:
        positions = positions + tables.languages[language]
    state = {f"{BODY}.wte.weight": tables.whole(language)[0], f"{BODY}.wpe.weight": positions}
    for name, module in _modules(model):
        for part in PARTS:
            weight = module[language if len(module) > 1 else 0].get_parameter(part)
            state[f"{BODY}.{name}.{part}"] = weight.t() if weight.ndim == 2 else weight
    return _config(model), state


def _modules(model: LanguageModel) -> list[tuple[str, list[nn.Module]]]:
    """Return the name in transformers and the copies of each module except the embeddings.

    A shared module has one copy, and a separate module has a copy for each language.
    """
    found: list[tuple[str, list[nn.Module]]] = [("ln_f", [model.norm])]
    for number, layer in enumerate(model.layers):
        copies = [*layer] if isinstance(layer, SeparateLayers) else [layer]
        found += [(f"h.{number}.{of}", [copy.get_submodule(our) for copy in copies]) for our, of in LAYER.items()]
    return found


def _config(model: LanguageModel) -> PretrainedConfig:
    """Return the config of transformers. Settings that we do not have come from the original checkpoint."""
    from transformers import GPT2Config

    shape, tables = model.shape, model.embeddings
    settings: dict[str, Any] = {"bos_token_id": OURS.bos, "eos_token_id": OURS.eos} if model.origin is None else {}
    settings |= model.origin or {}
    settings |= {
        "architectures": ["GPT2LMHeadModel"],
        "dtype": "float32",
        "vocab_size": tables.size,
        "n_positions": tables.length,
        "n_embd": shape.hidden,
        "n_layer": shape.layers,
        "n_head": shape.heads,
        "n_inner": shape.feed_forward,
        "resid_pdrop": shape.dropout,
        "embd_pdrop": shape.dropout,
        "attn_pdrop": shape.dropout,
        "layer_norm_epsilon": model.epsilon,
        "initializer_range": shape.init_std,
        "pad_token_id": model.pad,
    } | NEEDED
    config: PretrainedConfig = GPT2Config(**settings)
    return config
