"""The inputs of CKA, its references and its result.

CKA compares the states of the same sentences, or of aligned words, on two sides. The lower references are models
with random weights, and the upper reference is a second model of the source language.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pretrain.model.language_model import LanguageModel
from pretrain.run import open_run
from probes.measures.cka import ESTIMATORS, Estimator, Pooling
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
    """Two sides whose states CKA compares.

    Attributes:
        left: One side: its sentences and the model that reads them.
        right: The other side. Row i of its sentences corresponds to row i of the left side.
        rows: The indices of the sentence pairs to compare.
        links: The word alignments of all sentence pairs, between words that have tokens.
    """

    left: LanguageSide
    right: LanguageSide
    rows: Rows
    links: Links


def paired_states(
    pairing: Pairing, pooling: Pooling, report: Report = silent, task: str = ""
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the states of both sides in batches of n items, float32. Items are sentences or aligned words.

    The shapes are [L, n, d] and [R, n, d′] for L layers on the left and R layers on the right.

    Args:
        pairing: The two sides.
        pooling: The items: sentences by ``mean`` or by the ``first`` token, or aligned ``words``.
        report: Receives the progress.
        task: The name of the work in the progress.
    """
    left, right, rows = pairing.left, pairing.right, pairing.rows
    readers = left.reader, right.reader
    data = PairData("cka", left.sentences, right.sentences, pairing.links, rows, rows, {})
    if pooling == "words":
        return ((x, y) for _, x, y in link_batches(data, rows, *readers, report, task))
    return sentence_pairs(data, *readers, rows, pooling == "first", report, task)


def random_model(body: LanguageModel, key: int) -> LanguageModel:
    """Return a model of the shape of ``body`` with random weights, as before pretraining.

    Matrices are drawn from normal(0, init_std), biases are 0, and norm weights are 1. In GPT-2, the output matrices of
    attention and feed-forward are then divided by √(2 · layers). The weights depend only on the architecture of
    ``body`` and on ``key``, the key of the random draw. The model is in evaluation mode on the device of ``body``.
    """
    tables = body.embeddings
    drawn = type(body)(
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
    """Replace the model of the left side, or of both sides, by a model with random weights.

    ``both`` is True to replace the model of the right side as well. The architecture of a model does not change, and
    its weights depend only on the architecture and on the seed of the config. If both languages share a model, they
    also share the random model.
    """

    def read_by(side: LanguageSide, body: LanguageModel) -> LanguageSide:
        return replace(side, name=f"{side.name}, random", reader=replace(side.reader, body=body))

    seed = given.config.seed
    # this key belongs to the probe alone, so no pretraining started from these weights
    left = random_model(pairing.left.reader.body, key_of("cka-random", seed, "target"))
    drawn = replace(pairing, left=read_by(pairing.left, left))
    if not both:
        return drawn
    source = pairing.right.reader.body
    right = left if given.same_model else random_model(source, key_of("cka-random", seed, "source"))
    return replace(drawn, right=read_by(pairing.right, right))


def paraphrase_pairing(given: ProbeInput, pairing: Pairing, model: str) -> tuple[Pairing, Pretrained, dict[str, int]]:
    """Pair the states of the source sentences in the right model of ``pairing`` with their states in ``model``.

    Returns:
        The pairing, the opened ``model``, and the number of dropped sentences by reason.

    Raises:
        InputError: The model cannot be opened, lacks a layer of the config, or lacks the subwords of the word
            alignments.
    """
    path = user_path(model)
    # the second model reads the source language, which a run may call by another name
    language = open_run(path)[0].all_languages[0].name if path.exists() and is_run(path) else PARENT.name
    try:
        opened = open_pretrained(model, language)
    except InputError as error:
        raise error.inside("cka", "paraphrase") from error
    try:
        layers = given.config.numbers(opened.model.shape.layers)
    except InputError as error:
        raise error.inside(path=model) from error
    side, rows = pairing.right, pairing.rows
    first, unit = given.pretrained.source, given.aligned.text.unit
    if unit == "subword" and opened.source.tokenizer.fingerprint != first.tokenizer.fingerprint:
        told = f"word alignments are of subwords, and {model} has different subwords"
        hint = f"set pairs.{given.data.name}.unit to word, or choose another model"
        raise InputError(told, keys="cka.paraphrase", hint=hint, code="conflict")
    corpus = side.corpus.take(rows)  # renumbers sentences and words
    body = opened.model.to(side.reader.body.norm.weight.device).eval()
    sentences = [encode(reader.tokenizer.tokenizer, corpus, unit, reader.number) for reader in (first, opened.source)]
    reader = StateReader(body, opened.source.specials, layers, side.reader.subword)
    own = replace(side, corpus=corpus, sentences=sentences[0])
    other = replace(own, name=f"{own.name} ({opened.name})", sentences=sentences[1], reader=reader)
    lengths, limit = np.diff(sentences[1].bounds), body.embeddings.length
    fits, empty = lengths + SENTENCE_TOKENS <= limit, lengths == 0
    counts = {
        f"source sentences over the {limit} tokens of {opened.name}": int((~fits).sum()),
        f"source sentences that {opened.name} has no token of": int(empty.sum()),
    }
    # align each right word with itself if both tokenizers have tokens for it
    links = pairing.links.take(rows)
    right = links.right.astype(np.int64)
    same = Links.build(links.sentence, right, right, np.ones(len(right), bool), len(links))
    word = corpus.offsets[same.sentence] + same.right
    links = same.select(np.logical_and.reduce([np.diff(one.word_offsets)[word] > 0 for one in sentences]))
    kept = np.flatnonzero(fits & ~empty)
    return Pairing(own, other, kept, links), opened, {reason: count for reason, count in counts.items() if count}


CHANCE = 0.05
"""Expected biased CKA of unrelated states above which the result has a note."""


@dataclass(frozen=True, eq=False)
class Compared:
    """The comparison of all layers of one side with all layers of the other.

    Attributes:
        key: The name in ``probes.json``, such as ``languages`` or ``random_both``.
        label: The name in tables and figures.
        names: The names of the left and the right side.
        layers: The layers of the left and the right side, 0 for the embeddings.
        widths: The hidden sizes of the left and the right side.
        result: The CKA of all pairs of layers.
    """

    key: str
    label: str
    names: tuple[str, str]
    layers: tuple[tuple[int, ...], tuple[int, ...]]
    widths: tuple[int, int]
    result: CKAResult

    def same_layer(self, estimator: Estimator) -> list[float | None] | None:
        """Return the CKA of layers with the same number, with None for an undefined value.

        The result is None if the sides have different layers, or if the estimator needs more items.
        """
        numbers = self.result.numbers(estimator)
        if numbers is None or self.layers[0] != self.layers[1]:
            return None
        return [row[i] for i, row in enumerate(numbers)]

    def mean(self, estimator: Estimator) -> float | None:
        """Return the mean of the defined values of `same_layer`, or None without a defined value.

        It is the last row of Conneau et al. 2020, figure 7.
        """
        known = [value for value in self.same_layer(estimator) or [] if value is not None]
        return float(f"{sum(known) / len(known):.6g}") if known else None

    def to_json(self) -> dict[str, Any]:
        """Return all numbers for JSON. An undefined number is None, and the key ``undefined`` has the reasons."""
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
        """Return notes on undefined numbers, on too few items, and on sides with different layers."""
        found = (
            [f"cka, {self.label}: undefined for {'; '.join(self.result.undefined)}"] if self.result.undefined else []
        )
        n, width = self.result.n, max(self.widths)
        # unrelated rows spread evenly over d dimensions: E‖YᵀX‖² / (E‖XᵀX‖ E‖YᵀY‖) = n d² / (n² d + n d²)
        chance = width / (n + width)
        if self.result.debiased is None:
            found.append(f"cka, {self.label}: the debiased estimator needs at least 4 items, and there are {n}")
        if chance > CHANCE:
            found.append(
                f"cka: with only {n:,} items for {width} dimensions, the biased CKA of unrelated states can reach "
                f"{chance:.2f}; use the debiased estimator"
            )
        if self.layers[0] != self.layers[1]:
            found.append(f"cka, {self.label}: there is no mean over layers, because the models have different layers")
        return found


def compare(key: str, label: str, pairing: Pairing, pooling: Pooling, report: Report = silent) -> Compared:
    """Read both sides and compute their CKA.

    Args:
        key: The name of the comparison in ``probes.json``.
        label: The name of the comparison in tables and figures.
        pairing: The two sides.
        pooling: The items to compare: sentences by ``mean`` or ``first``, or aligned ``words``.
        report: Receives the progress.

    Raises:
        InputError: States are not finite, there are fewer than 2 items, or the disk is full.
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
