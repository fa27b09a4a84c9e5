"""The probe ``retrieval``: contextual word retrieval (Cao et al. 2020, sections 3.2, 5.2 and 5.3), layer by layer.

A word counts as found if its nearest word under CSLS, among all words of all sentences of the other language, is the
word that it is aligned with. The accuracy is the percentage of words that are found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pretrain.nearest_lists import Matrix
from probes.figures.lines import Series, rank_series
from probes.measures.probe_input import ROLES, ProbeInput
from probes.measures.result import ProbeResult
from probes.measures.retrieval import RetrievalConfig, Variant
from probes.measures.retrieval.scores import (
    SIMILARITIES,
    Items,
    Numbers,
    Retrieved,
    Tags,
    Types,
    by_tag,
    frequency_ranks,
    items,
    retrieve,
    tags_of,
)
from probes.measures.retrieval.show import (
    drawings,
    examples_of,
    kinds_of,
    notes_of,
    retrieval_sentence,
    tables,
    zero_vectors,
)
from probes.measures.retrieval.sources import Source, WordVectors, source_of
from synthlang.errors import InputError
from synthlang.parallel.prepare import shared_codes
from synthlang.progress import Report, silent


@dataclass(frozen=True, eq=False)
class _Measured:
    """The inputs of the probe that all layers share.

    Attributes:
        given: The input of the probe.
        config: The settings of the probe.
        types: The type of every word of each corpus, [words] each. Equal spellings have the same number on both sides.
        items: The candidates and aligned word pairs of each variant.
        source: The source of the word vectors.
    """

    given: ProbeInput
    config: RetrievalConfig
    types: Types
    items: Mapping[Variant, Items]
    source: Source

    @property
    def first(self) -> Variant:
        """The variant of the headline: ``context`` if it is measured."""
        return "context" if "context" in self.config.variants else self.config.variants[0]

    @property
    def last_layer(self) -> int:
        """The number of the last layer in the model of the source language."""
        return self.source.layers[self.source.last][1]


def retrieval_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """Measure the accuracy at every layer, by part of speech and by difference of frequency rank.

    All scores are in percent (0 to 100), or None without words to measure. The queries are words of the source language
    in ``forward``, and words of the other language in ``backward``. The ``difference`` of a bin of ``ranks`` is the
    median of the bin, but at least 1.

    The vectors of all layers are stored in temporary files. Memory holds the vectors of one layer, or parts of a large
    layer. Fitting a rotation needs 2 · layers · d² numbers more. Static vectors are in memory as a whole.

    Raises:
        InputError: The sentence pairs cannot be read, fewer than two of them are measured, a vector is not finite, the
            parser cannot be used (see `tags_of`), or the disk is full. The error is also raised if the models cannot be
            compared, a map cannot be fitted, or static vectors cannot be used (see `source_of`).
        DiskError: The cache of parses cannot be written.
    """
    config, text, rows = given.config.of(RetrievalConfig), given.aligned.text, np.sort(given.measured)
    if len(rows) < 2:
        told = "only one sentence pair is left to measure on, but retrieval needs other sentences as wrong candidates"
        hint = "increase data.dev, reduce data.test, or give more sentence pairs"
        raise InputError(told, keys="data.dev", hint=hint, code="range")
    source = source_of(given, rows, report)
    tagged = text.right if config.tag_words == "parent" else text.left
    tags = None if text.unit == "subword" else tags_of(tagged, rows, config.parser, report)
    types = shared_codes(text.left, text.right)
    of_variant: dict[Variant, Items] = {
        variant: items(given.aligned, types, rows, given.fitted, config, variant, source.known)
        for variant in config.variants
    }
    measured = _Measured(given, config, types, of_variant, source)
    by_layer, best, examples = _by_layer(measured, report)
    first = measured.first
    headline = by_layer[first][source.last]
    ranks = _ranks(measured, first, best[first], rows)
    values: dict[str, Any] = {
        "similarity": "csls",
        "k": config.k,
        "candidates": config.candidates,
        **source.facts,
        "variants": {variant: _summary(of_variant[variant], found) for variant, found in by_layer.items()},
        "headline": {"variant": first, "layer": headline["layer"], **headline["pairs"]["counted"]},
        "tags": None if tags is None else _tags(measured, best, tags),
        "ranks": None if ranks is None else _rank_values(ranks, first, measured),
        **({"examples": examples} if config.examples else {}),
        "counts": {**given.data.counts, **_counts(of_variant, by_layer)},
    }
    names, kinds = (given.name("source"), given.name("target")), kinds_of(config)
    notes = notes_of(values, config, text.unit, given.same_model, source.width)
    drawn = drawings(values, ranks, names, kinds)
    return ProbeResult(values, tables(values, names, kinds), drawn, notes, retrieval_sentence(values))


def _counts(
    of_variant: Mapping[Variant, Items], by_layer: Mapping[Variant, Sequence[Mapping[str, Any]]]
) -> dict[str, int]:
    """Return the numbers of omitted words and word pairs, and of vectors of zeros, by variant and reason."""
    counts = {f"{name}: {reason}": n for name, one in of_variant.items() for reason, n in one.counts.items()}
    zeros = zero_vectors(by_layer)
    return counts | {f"{variant}: vectors of zeros, layer {layer}": count for variant, layer, count in zeros}


def _by_layer(
    measured: _Measured, report: Report
) -> tuple[dict[Variant, list[dict[str, Any]]], dict[Variant, Retrieved], list[dict[str, Any]]]:
    """Return the scores by variant and layer, and the credits and the examples of the last layer."""
    given, source = measured.given, measured.source
    found: dict[Variant, list[dict[str, Any]]] = {variant: [] for variant in measured.items}
    best: dict[Variant, Retrieved] = {}
    examples: list[dict[str, Any]] = []
    kept = []
    for i, role in enumerate(ROLES):
        vectors = WordVectors(len(source.layers), source.width, given.body(role).norm.weight.device)
        words = np.unique(np.concatenate([(one.left, one.right)[i] for one in measured.items.values()]))
        vectors.write(source.read(i), words, given.name(role))
        kept.append(vectors)
    for place, layer in enumerate(source.layers):
        matrices = kept[0].layer(place), kept[1].layer(place)
        for variant, one in measured.items.items():
            chosen, at = _candidates(one, kept, matrices)
            retrieved = _retrieve(one, chosen, at, measured.config.k, report)
            pairs = {
                name: {similarity: retrieved.accuracy(chosen, similarity) for similarity in SIMILARITIES}
                for name, chosen in one.sets.items()
            }
            numbers = {"layer": layer[1]} if given.same_model else {"layer": layer[1], "left_layer": layer[0]}
            zeros = dict(zip(("left", "right"), retrieved.zeros, strict=True))
            found[variant].append({**numbers, "pairs": pairs, "zero_vectors": zeros})
            if place == source.last:
                best[variant] = retrieved
                if variant == measured.first:
                    corpora, config = (given.aligned.text.left, given.aligned.text.right), measured.config
                    examples = examples_of(corpora, one, chosen, at, config.examples, config.k, report)
        report("retrieval by layer", place + 1, len(source.layers), "")
    return found, best, examples


def _candidates(
    one: Items, kept: Sequence[WordVectors], matrices: tuple[Matrix, Matrix]
) -> tuple[tuple[Matrix, Matrix], tuple[Numbers, Numbers]]:
    """Return the matrices with a variant's candidates at one layer, and the row of each candidate."""
    sides: list[tuple[Matrix, Numbers]] = []
    for vectors, matrix, words in zip(kept, matrices, (one.left, one.right), strict=True):
        rows: Any = vectors.rows(words)
        if len(words) == len(matrix):
            sides.append((matrix, rows))
        else:
            chosen = matrix[torch.from_numpy(rows) if isinstance(matrix, torch.Tensor) else rows]
            sides.append((chosen, np.arange(len(words))))
    left, right = sides
    return (left[0], right[0]), (left[1], right[1])


def _retrieve(
    one: Items, vectors: tuple[Matrix, Matrix], at: tuple[Numbers, Numbers], k: int, report: Report
) -> Retrieved:
    """Find the nearest candidates of each word. ``at`` has the row of each candidate in ``vectors``."""
    links = -1 - one.links  # a negative row for a word without a vector
    for i, words in enumerate((one.left, one.right)):
        linked = one.links[:, i]
        there = np.isin(linked, words)
        links[there, i] = at[i][np.searchsorted(words, linked[there])]
    return retrieve(*vectors, links, k, report, one.lost)


def _summary(one: Items, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the numbers of candidates and word pairs, the accuracy by chance in percent, and the scores by layer."""
    sizes = {"left": len(one.left), "right": len(one.right)}
    chance = 50 * sum(1 / size for size in sizes.values()) if all(sizes.values()) else None
    links = {name: int(chosen.sum()) for name, chosen in one.sets.items()}
    lost = {name: int((chosen & one.lost).sum()) for name, chosen in one.sets.items()}
    return {"candidates": sizes, "links": links, "lost": lost, "chance": chance, "layers": found}


def _tags(measured: _Measured, best: Mapping[Variant, Retrieved], tags: Tags) -> dict[str, Any]:
    name, side = measured.config.tag_pairs, 1 if measured.config.tag_words == "parent" else 0
    variants = {
        variant: by_tag(best[variant], one.sets[name], tags.codes[one.links[:, side]], tags.names)
        for variant, one in measured.items.items()
    }
    words = {} if side == 1 else {"words": measured.given.name("target")}
    return {"by": tags.source, **words, "pairs": name, "layer": measured.last_layer, "variants": variants}


def _ranks(measured: _Measured, variant: Variant, retrieved: Retrieved, rows: Numbers) -> Series | None:
    """Return the accuracy by the difference in frequency rank between aligned words, or None without aligned words.

    Frequencies are counted in the measured and the fitted sentences.
    """
    one, text = measured.items[variant], measured.given.aligned.text
    chosen = one.sets[measured.config.rank_pairs]
    if not chosen.any():
        return None
    read = np.union1d(rows, measured.given.fitted)
    left, right = (
        frequency_ranks(types, corpus.offsets, read)[types[linked]]
        for types, corpus, linked in zip(measured.types, (text.left, text.right), one.links[chosen].T, strict=True)
    )
    return rank_series("CSLS", left - right, retrieved.of_links()[chosen], measured.config.rank_bins)


def _rank_values(series: Series, variant: Variant, measured: _Measured) -> dict[str, Any]:
    """Convert the accuracy by difference of frequency rank to JSON values.

    ``drop`` is the accuracy of the first bin (smallest differences) minus the accuracy of the last one. It is None if
    at most half of the bins remain after equal differences are merged, because the bins then have very different sizes.
    """
    config = measured.config
    return {
        "variant": variant,
        "pairs": config.rank_pairs,
        "layer": measured.last_layer,
        "links": int(measured.items[variant].sets[config.rank_pairs].sum()),
        "drop": series.y[0] - series.y[-1] if len(series.y) > config.rank_bins / 2 else None,
        "bins": [
            {"difference": x, "accuracy": y, "low": low, "high": high}
            for x, y, low, high in zip(series.x, series.y, series.low, series.high, strict=True)
        ],
    }
