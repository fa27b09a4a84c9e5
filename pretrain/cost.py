"""Size and cost of a pretraining, computed from its settings alone: parameters, tokens and operations.

A vocabulary that is not trained yet counts with the largest size that its settings allow.
"""

from __future__ import annotations

from dataclasses import dataclass

from pretrain.config import PretrainConfig

PLAIN_OUTPUT = frozenset({"gpt2"})
"""Kinds of models whose output has neither a dense layer nor a bias."""
# Peak operations per second in dense bfloat16, from the manufacturer's data sheets.
PEAKS = {"H200": 989.4e12, "H100 PCIe": 756e12, "H100": 989.4e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}


def peak_of(device_name: str) -> float | None:
    """Return the peak operations per second of a GPU in bfloat16, or None for a GPU that is not in PEAKS."""
    return next((peak for name, peak in PEAKS.items() if name in device_name), None)


@dataclass(frozen=True)
class ModelSize:
    """The size of a model.

    Attributes:
        layers: Number of layers that a token passes.
        hidden: Width d.
        feed_forward: Width of the feed-forward sublayers.
        words: Rows of the tables of word embeddings.
        outputs: Number of ids of the softmax at a labelled position.
        others: Rows of the tables of positions and languages.
        copies: Number of further copies of separate layers, summed over layers and languages.
        dense: True if the head has a dense layer and LayerNorm.
        biased: True if the output has a bias.
    """

    layers: int
    hidden: int
    feed_forward: int
    words: int
    outputs: int
    others: int
    copies: int = 0
    dense: bool = True
    biased: bool = True

    @property
    def parameters(self) -> int:
        """Number of weights, with biases and LayerNorms. The output is tied to the word embeddings.

        With d = ``hidden`` and f = ``feed_forward``, the parts have these numbers of weights:

            layer or copy           4d² + 2df + f + 9d
            tables                  (words + others) · d
            bias of the output      words                    with ``biased``
            head                    d² + 3d                  with ``dense``
            one more LayerNorm      2d
        """
        d, ff = self.hidden, self.feed_forward
        layer = 4 * d * d + 2 * d * ff + ff + 9 * d
        head = d * d + 3 * d if self.dense else 0
        return (self.layers + self.copies) * layer + self.words * (d + self.biased) + self.others * d + 2 * d + head

    def flops_of_layer(self, length: int, queries: int) -> int:
        """Return the number of operations of a layer in the forward pass of a row of ``length`` tokens.

        The layer has outputs at ``queries`` positions only. With t = ``length``, q = ``queries``, d = ``hidden`` and
        f = ``feed_forward``, the number is 2 · (2td² + 2qd² + 2qtd + 2qdf).
        """
        t, d = length, self.hidden
        # projections to keys and values, projections from and to queries, attention, feed-forward
        return 2 * (2 * t * d * d + 2 * queries * d * d + 2 * queries * t * d + 2 * queries * d * self.feed_forward)

    def flops_per_token(self, length: int, masked: int) -> float:
        """Return the number of operations for each token of a row, over the matrix products of both passes.

        A product [m, k] × [k, n] has 2mkn operations. The backward pass has two products for each product of the
        forward pass. The last layer and the head compute only the ``masked`` positions of a row, except for keys and
        values. In a decoder these are all positions, and attention counts as if each token saw the whole row.
        Embeddings are looked up and do not count. If all positions are labelled, the result without attention is
        6 · (number of weights in matrices) for each token (Kaplan et al. 2020, "Scaling Laws for Neural Language
        Models", section 2.1).

        Args:
            length: Number of tokens of a row.
            masked: Number of positions of a row with a loss.
        """
        full, last = self.flops_of_layer(length, length), self.flops_of_layer(length, masked)
        head = 2 * masked * self.hidden * (self.hidden * self.dense + self.outputs)
        return 3 * (full * (self.layers - 1) + last + head) / length


def size_of_run(config: PretrainConfig, ids: int | None = None, exported: bool = False) -> ModelSize:
    """Return the size of the model of a run, which must start from random weights.

    Args:
        config: The settings.
        ids: Number of ids of all languages (default: the largest number that the settings allow).
        exported: True for an export, which has the separate parts of one language only.
    """
    assert config.start is None, "a checkpoint has a size of its own"
    model, sharing, spec = config.model, config.sharing, config.vocabulary
    languages = len(config.all_languages)
    scripts = {member.language.script.name for member in config.all_languages if member.language.script is not None}
    tables = {"copied": 1 + len(scripts), "joint": 1}.get(spec.kind, languages)
    parts = 1 if exported else languages
    separate = sharing.embeddings == "separate"
    words = ids or spec.size * (parts if separate else tables)
    return ModelSize(
        layers=model.layers,
        hidden=model.hidden,
        feed_forward=model.feed_forward,
        words=words,
        outputs=spec.size if sharing.softmax == "language" else words,
        others=(model.positions or config.batch.length) * (parts if separate else 1)
        + (parts if config.objective.uses_language_ids else 0),
        copies=len(sharing.layers) * (parts - 1),
        dense=model.kind not in PLAIN_OUTPUT and model.output == "dense",
        biased=model.kind not in PLAIN_OUTPUT,
    )


def pretraining_flops(config: PretrainConfig, size: ModelSize) -> float:
    """Return the number of operations of all forward and backward passes of a pretraining, without validation.

    The number is ``config.tokens`` times ``size.flops_per_token``.
    """
    length = config.batch.length
    return config.tokens * size.flops_per_token(length, config.objective.labelled(length))
