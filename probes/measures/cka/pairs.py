"""The inputs of CKA: states of the same sentences, or of linked words, read by two sides; its references and result.

The references are encoders with random weights (lower) and another model of the source language (upper).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pretrain.model.encoder import MaskedLM
from pretrain.run import open_run
from probes.measures.cka import Estimator, Pooling
from probes.measures.cka.similarity import CKA, CKAResult
from probes.measures.probe_input import ProbeInput
from probes.models.names import is_run
from probes.models.opening import open_pretrained
from probes.models.pretrained import Pretrained
from probes.states import LanguageSide, StateReader, link_batches, sentence_pairs
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.language import PARENT
from synthlang.parallel.links import Links
from synthlang.parallel.prepare import SENTENCE_TOKENS, PairData, encode
from synthlang.progress import Report, silent
from synthlang.rng import key_of

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two sides that are compared: the sentences at ``rows`` of both, or their words at ``links``.

    Attributes:
        left: The left side.
        right: The right side.
        rows: The sentences of both sides.
        links: The links of all sentences of both sides. Words without a token are left out.
    """

    left: LanguageSide
    right: LanguageSide
    rows: Rows
    links: Links


def paired_states(
    pairing: Pairing, pooling: Pooling, report: Report = silent, task: str = ""
) -> Iterator[tuple[Tensor, Tensor]]:
    """([L, n, d], [R, n, d′]) float32: item i of both is the same sentence, or a word and the one it is linked to."""
    left, right, rows = pairing.left, pairing.right, pairing.rows
    readers = left.reader, right.reader
    data = PairData("cka", left.sentences, right.sentences, pairing.links, rows, rows, {})
    if pooling == "words":
        return ((x, y) for _, x, y in link_batches(data, rows, *readers, report, task))
    return sentence_pairs(data, *readers, rows, pooling == "first", report, task)


def random_encoder(body: MaskedLM, key: int) -> MaskedLM:
    """Return a model of the same shape with random weights: matrices normal(0, init_std), biases 0.

    The weights are a function of the shape and ``key``. The model is on the device of ``body``, without dropout.
    """
    tables = body.embeddings
    drawn = MaskedLM(
        body.shape,
        body.sharing,
        ids=[tables.ids(member).cpu().numpy() for member in range(body.language_count)],
        size=tables.size,
        positions=tables.length,
        pad=body.pad,
        language_ids=tables.languages is not None,
        seed=key,
        architecture=body.architecture,
        epsilon=body.epsilon,
    )
    return drawn.to(body.norm.weight.device).eval()


def random_pairing(given: ProbeInput, pairing: Pairing, both: bool) -> Pairing:
    """With random encoders on the left, or on both sides: one for both if one model reads both, else two."""

    def read_by(side: LanguageSide, body: MaskedLM) -> LanguageSide:
        return replace(side, name=f"{side.name}, random", reader=replace(side.reader, body=body))

    seed = given.config.seed
    # not the seed of a training, so that the model never started from these weights
    left = random_encoder(pairing.left.reader.body, key_of("cka-random", seed, "target"))
    drawn = replace(pairing, left=read_by(pairing.left, left))
    if not both:
        return drawn
    source = pairing.right.reader.body
    right = left if given.same_model else random_encoder(source, key_of("cka-random", seed, "source"))
    return replace(drawn, right=read_by(pairing.right, right))


def paraphrase_pairing(given: ProbeInput, pairing: Pairing, model: str) -> tuple[Pairing, Pretrained, dict[str, int]]:
    """Read the source sentences of ``pairing`` by its right model and by ``model``.

    Returns the reading by ``model``, and the number of dropped pairs by reason.

    Raises:
        InputError: The model cannot be opened, or lacks the subwords of the word alignments.
    """
    path = user_path(model)
    # the language that others are derived from, in a run of ours
    language = open_run(path)[0].all_languages[0].name if path.exists() and is_run(path) else PARENT.name
    opened = open_pretrained(model, language)
    side, rows = pairing.right, pairing.rows
    first, unit = given.pretrained.source, given.aligned.text.unit
    if unit == "subword" and opened.source.tokenizer.fingerprint != first.tokenizer.fingerprint:
        raise InputError(f"cka.paraphrase: the links are of subwords, and {model} has others; use links of words")
    corpus = side.corpus.take(rows)  # its sentences and words have new numbers
    body = opened.model.to(side.reader.body.norm.weight.device).eval()
    sentences = [encode(reader.tokenizer.tokenizer, corpus, unit, reader.number) for reader in (first, opened.source)]
    layers = given.config.numbers(body.shape.layers)
    reader = StateReader(body, opened.source.specials, layers, side.reader.subword)
    own = replace(side, corpus=corpus, sentences=sentences[0])
    other = replace(own, name=f"{own.name} ({opened.name})", sentences=sentences[1], reader=reader)
    lengths, limit = np.diff(sentences[1].bounds), body.embeddings.length
    fits, empty = lengths + SENTENCE_TOKENS <= limit, lengths == 0
    counts = {
        f"source sentences over the {limit} tokens of {opened.name}": int((~fits).sum()),
        f"source sentences that {opened.name} has no token of": int(empty.sum()),
    }
    # each right word of the links with itself, where both tokenizers leave something of it
    links = pairing.links.take(rows)
    right = links.right.astype(np.int64)
    same = Links.build(links.sentence, right, right, np.ones(len(right), bool), len(links))
    word = corpus.offsets[same.sentence] + same.right
    links = same.select(np.logical_and.reduce([np.diff(one.word_offsets)[word] > 0 for one in sentences]))
    kept = np.flatnonzero(fits & ~empty)
    return Pairing(own, other, kept, links), opened, {reason: count for reason, count in counts.items() if count}


CHANCE = 0.05
"""The biased CKA that unrelated states may have before a note says so."""
ESTIMATORS: tuple[Estimator, Estimator] = ("biased", "debiased")


@dataclass(frozen=True, eq=False)
class Compared:
    """The layers of one side against those of the other.

    Attributes:
        key: The key in the results.
        label: The name for readers.
        names: The names of the left and of the right side.
        layers: The numbers of the layers of the left and of the right side, 0 for the embeddings.
        widths: The dimensions of the states of the left and of the right side.
        result: The similarities.
    """

    key: str
    label: str
    names: tuple[str, str]
    layers: tuple[tuple[int, ...], tuple[int, ...]]
    widths: tuple[int, int]
    result: CKAResult

    def same_layer(self, estimator: Estimator) -> list[float | None] | None:
        """Return CKA of layer l of one side with layer l of the other; None for sides with different layers."""
        numbers = self.result.numbers(estimator)
        if numbers is None or self.layers[0] != self.layers[1]:
            return None
        return [row[i] for i, row in enumerate(numbers)]

    def mean(self, estimator: Estimator) -> float | None:
        """Return the mean of `same_layer` over the layers where it is defined (the last row of figure 7)."""
        known = [value for value in self.same_layer(estimator) or [] if value is not None]
        return float(f"{sum(known) / len(known):.6g}") if known else None

    def to_json(self) -> dict[str, Any]:
        """Return all numbers: null where one is not defined, with the reason in "undefined"."""
        same = {name: self.same_layer(name) for name in ESTIMATORS}
        return {
            "left": self.names[0],
            "right": self.names[1],
            "label": self.label,
            "items": self.result.n,
            "left_layers": list(self.layers[0]),
            "right_layers": list(self.layers[1]),
            **{name: self.result.numbers(name) for name in ESTIMATORS},
            "same_layer": same,
            "mean": {name: self.mean(name) for name in ESTIMATORS},
            "undefined": list(self.result.undefined),
        }

    def notes(self) -> list[str]:
        """Return the notes that a reader of the numbers needs."""
        found = [f"cka, {self.label}: left out: {'; '.join(self.result.undefined)}"] if self.result.undefined else []
        n, width = self.result.n, max(self.widths)
        # unrelated rows spread evenly over d dimensions: E‖YᵀX‖² / (E‖XᵀX‖ E‖YᵀY‖) = n d² / (n² d + n d²)
        chance = width / (n + width)
        if self.result.debiased is None:
            found.append(f"cka, {self.label}: {n} are too few for the debiased estimator, which needs 4")
        if chance > CHANCE:
            found.append(
                f"cka: {n:,} are few for {width} dimensions: the biased CKA of unrelated states can reach "
                f"{chance:.2f}; read the debiased one"
            )
        if self.layers[0] != self.layers[1]:
            found.append(
                f"cka, {self.label}: the models have different numbers of layers, so there is no mean over them"
            )
        return found


def compare(key: str, label: str, pairing: Pairing, pooling: Pooling, report: Report = silent) -> Compared:
    """Read both sides once; the sums are bounded in memory (`similarity.CKA`).

    Raises:
        InputError: States are not finite, or there are fewer than 2 sentences or words.
    """
    left, right = pairing.left, pairing.right
    layers = left.reader.layers, right.reader.layers
    widths = left.reader.body.shape.hidden, right.reader.body.shape.hidden
    names = tuple([f"{side.name}, layer {number}" for number in side.reader.layers] for side in (left, right))
    device = left.reader.body.norm.weight.device
    sums = CKA(len(layers[0]), len(layers[1]), *widths, device=device, names=(names[0], names[1]))
    for of_left, of_right in paired_states(pairing, pooling, report, f"CKA, {label}"):
        sums.update(of_left, of_right)
    return Compared(key, label, (left.name, right.name), layers, widths, sums.result(report))
