"""The table of model kinds: the class of each, and its conversion to and from Hugging Face."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pretrain.config import ModelConfig
from pretrain.model import gpt2_hf, roberta_hf
from pretrain.model.gpt2 import CausalLM
from pretrain.model.language_model import LanguageModel
from pretrain.model.roberta import MaskedLM
from pretrain.model.roberta_hf import ARCHITECTURES
from synthlang.vocabularies.xlm_tokenizer import XLM

if TYPE_CHECKING:
    from transformers import PretrainedConfig


@dataclass(frozen=True)
class Kind:
    """Classes, settings and conversions of a kind of model, a value of ``model.kind``.

    Attributes:
        model: Our class.
        architectures: Names of the architectures in transformers.
        auto: Name of the class of transformers that loads the model with its output.
        needed: Settings that a checkpoint must have.
        epsilon: Function from the config of a checkpoint to the epsilon of LayerNorm.
        shape: Function from the config of a checkpoint to the shape of the model.
        take_words: Function that removes the word embeddings [V, d] and the output bias [V] from the weights of a
            checkpoint, and returns them.
        fill: Function that copies the other weights of a checkpoint, and given word embeddings and output bias, into
            our model. It removes the copied weights from those of the checkpoint.
        to_hf: Function from our model and a language to the config and the weights of an equal model of transformers.
    """

    model: type[LanguageModel]
    architectures: tuple[str, ...]
    auto: str
    needed: Mapping[str, Any]
    epsilon: Callable[[Any], float]
    shape: Callable[[Any], ModelConfig]
    take_words: Callable[[LanguageModel, dict[str, Tensor]], tuple[Tensor, Tensor]]
    fill: Callable[[LanguageModel, dict[str, Tensor], Tensor, Tensor], None]
    to_hf: Callable[[LanguageModel, int], tuple[PretrainedConfig, dict[str, Tensor]]]

    @property
    def auto_class(self) -> Any:
        """The class of transformers that loads the model with its output."""
        import transformers

        return getattr(transformers, self.auto)


KINDS = {
    "roberta": Kind(
        model=MaskedLM,
        architectures=(*ARCHITECTURES, XLM),
        auto="AutoModelForMaskedLM",
        needed=roberta_hf.NEEDED,
        epsilon=lambda config: float(config.layer_norm_eps),
        shape=roberta_hf.shape_of,
        take_words=roberta_hf.take_words,
        fill=roberta_hf.fill,
        to_hf=roberta_hf.to_roberta,
    ),
    "gpt2": Kind(
        model=CausalLM,
        architectures=("gpt2",),
        auto="AutoModelForCausalLM",
        needed=gpt2_hf.NEEDED,
        epsilon=lambda config: float(config.layer_norm_epsilon),
        shape=gpt2_hf.shape_of,
        take_words=gpt2_hf.take_words,
        fill=gpt2_hf.fill,
        to_hf=gpt2_hf.to_gpt2,
    ),
}
"""The kinds of models by their value of ``model.kind``."""


def kind_of(architecture: str) -> Kind:
    """Return the kind of an architecture (``model_type``) of transformers.

    An architecture that our models do not have counts as ``roberta``, the kind of masked language models.
    """
    return next((kind for kind in KINDS.values() if architecture in kind.architectures), KINDS["roberta"])


def to_hf(model: LanguageModel, language: int) -> tuple[PretrainedConfig, dict[str, Tensor]]:
    """Return the config and weights of an equal Hugging Face model for one language.

    The weights are float32 copies on the CPU, and have the names of the class in the config's ``architectures``.
    With separate embeddings, an id that the language does not have gets the row of the first language that has it.
    """
    config, state = kind_of(model.architecture).to_hf(model, language)
    return config, {
        name: tensor.detach().to("cpu", torch.float32, copy=True).contiguous() for name, tensor in state.items()
    }
