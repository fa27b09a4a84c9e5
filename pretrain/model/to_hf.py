"""Convert the weights of one language to a model of Hugging Face."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pretrain.model.kinds import kind_of
from pretrain.model.language_model import LanguageModel

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def to_hf(model: LanguageModel, language: int) -> tuple[PretrainedConfig, dict[str, Tensor]]:
    """Return the config and weights of an equal Hugging Face model for one language.

    The weights are float32 copies on the CPU, and have the names of the class in the config's ``architectures``.
    With separate embeddings, an id that the language does not have gets the row of the first language that has it.
    """
    config, state = kind_of(model.architecture).to_hf(model, language)
    return config, {
        name: tensor.detach().to("cpu", torch.float32, copy=True).contiguous() for name, tensor in state.items()
    }
