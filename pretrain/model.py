"""RoBERTa from transformers' own modules, with the vocabulary projection at masked slots only."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import RobertaConfig, RobertaForMaskedLM

from pretrain.config import ModelConfig
from synthlang.rng import key_of
from synthlang.vocabulary import BOS, EOS, PAD

POSITION_OFFSET = PAD + 1  # RoBERTa counts positions from the padding id + 1


def build_model(config: ModelConfig, ids: int, length: int, seed: int) -> RobertaForMaskedLM:
    """A RoBERTa with random weights, a function of the shape and the seed; embeddings tied."""
    settings = RobertaConfig(
        vocab_size=ids,
        hidden_size=config.hidden,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.feed_forward,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
        max_position_embeddings=length + POSITION_OFFSET,
        type_vocab_size=1,
        initializer_range=config.init_std,
        layer_norm_eps=1e-5,
        bos_token_id=BOS,
        pad_token_id=PAD,
        eos_token_id=EOS,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key_of("init", seed) >> 1)  # torch takes signed 64-bit seeds
        model = RobertaForMaskedLM(settings)
    assert model.lm_head.decoder.weight is word_embedding(model), "input and output embeddings are tied"
    return model


def word_embedding(model: RobertaForMaskedLM) -> Tensor:
    """The word embedding, [ids, hidden]."""
    weight: Tensor = model.roberta.embeddings.word_embeddings.weight
    return weight


def slot_logits(model: RobertaForMaskedLM, input_ids: Tensor, slots: Tensor) -> Tensor:
    """The logits at ``slots`` [rows, k] of full rows ``input_ids`` [rows, length]: [rows, k, ids].

    Rows have no padding, so there is no attention mask; the projection to the vocabulary,
    most of the work at small sizes, sees k positions instead of ``length``.
    """
    positions = torch.arange(input_ids.shape[1], device=input_ids.device) + POSITION_OFFSET
    hidden = model.roberta(input_ids=input_ids, position_ids=positions.expand_as(input_ids)).last_hidden_state
    index = slots.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
    logits: Tensor = model.lm_head(hidden.gather(1, index))
    return logits
