"""Names of the model's parts in the supported architectures of Hugging Face."""

from __future__ import annotations

from dataclasses import dataclass

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
