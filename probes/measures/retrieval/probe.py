"""Probe ``retrieval``: contextual word retrieval (Cao et al. 2020, sections 3.2, 5.2 and 5.3), layer by layer.

Given a word in a sentence of one language, is the word nearest to it among all words of all sentences of the other
language, under CSLS, the one that it is linked with? Accuracy is the share of the words for which it is, in percent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.nearest_lists import Matrix
from probes.figures.lines import Series, rank_series
from probes.measures.probe_input import ROLES, ProbeInput
from probes.measures.result import ProbeResult
from probes.measures.retrieval import RetrievalConfig, Variant
from probes.measures.retrieval.items import SETS, Items, Numbers, Text, frequency_ranks, items
from probes.measures.retrieval.scores import SIMILARITIES, Retrieved, Tags, by_tag, retrieve, tags_of
from probes.measures.retrieval.show import drawings, kinds_of, notes_of, tables
from probes.measures.retrieval.sources import Layer, Source, WordVectors, source_of
from synthlang.errors import InputError
from synthlang.progress import Report, silent


@dataclass(frozen=True, eq=False)
class _Job:
    """What is measured: the words and links of each variant, and what reads them (its last layer is the headline's)."""

    given: ProbeInput
    text: Text
    items: Mapping[Variant, Items]
    source: Source

    @property
    def layers(self) -> Sequence[Layer]:
        """Of the source."""
        return self.source.layers

    def last(self) -> int:
        """The place of the last layer."""
        return max(range(len(self.layers)), key=lambda i: self.layers[i])


def retrieval_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """Accuracy at every layer, by part of speech and by difference of frequency rank.

    In ``values``: ``forward`` is the parent's words asking, ``backward`` the other language's. Everything is in
    percent (0 to 100); what has no words to be measured on is None. A bin of ``ranks`` is at the median of its
    differences, or at 1 if that is less; ``drop`` is the accuracy of the first bin less that of the last one. Memory is
    that of the vectors of one layer, or of tiles of them where they are large; the vectors of all layers are in files
    meanwhile, rotated on their way there. Of a rotation 2 · layers · d² is held beside a batch, of static vectors
    those of all their words.
    """
    settings, text = given.config.of(RetrievalConfig), given.aligned.text
    measured = np.sort(given.measured)
    if len(measured) < 2:
        raise InputError("retrieval: one sentence pair has no words of other sentences to confuse; raise data.dev")
    source = source_of(given, measured, report)
    tags = None if text.unit == "subword" else tags_of(text.right, measured, settings.parser, report)
    held = Text.of(text.left, text.right, given.data)
    of_variant: dict[Variant, Items] = {
        variant: items(held, measured, given.fitted, settings, variant, source.known) for variant in settings.variants
    }
    job = _Job(given, held, of_variant, source)
    by_layer, best = _measure(job, report)
    values: dict[str, Any] = {"similarity": "csls", "k": settings.k, "candidates": settings.candidates, **source.facts}
    values["variants"] = {variant: _summary(job.items[variant], found) for variant, found in by_layer.items()}
    first = settings.variants[0] if "context" not in settings.variants else "context"
    headline = by_layer[first][job.last()]
    values["headline"] = {"variant": first, "layer": headline["layer"], **headline["pairs"]["counted"]}
    values["tags"] = None if tags is None else _tags(job, best, tags)
    ranks = _ranks(job, first, best[first], measured)
    values["ranks"] = None if ranks is None else _rank_values(ranks, first, job)
    values["counts"] = {
        **given.data.counts,
        **{f"{name}: {reason}": n for name, one in of_variant.items() for reason, n in one.counts.items()},
        **_zero_vectors(by_layer),
    }
    names = given.name("source"), given.name("target")
    notes = notes_of(values, settings, text.unit, given.same_model, source.width)
    kinds = kinds_of(settings)
    return ProbeResult(values, tables(values, names, kinds), drawings(values, ranks, names, kinds), notes)


def _measure(job: _Job, report: Report) -> tuple[dict[Variant, list[dict[str, Any]]], dict[Variant, Retrieved]]:
    """For each variant what every layer scores, and what each link earns at the last one."""
    found: dict[Variant, list[dict[str, Any]]] = {variant: [] for variant in job.items}
    best: dict[Variant, Retrieved] = {}
    with ExitStack() as stack:
        kept = []
        for i, role in enumerate(ROLES):
            device = job.given.body(role).norm.weight.device
            vectors = stack.enter_context(WordVectors(len(job.layers), job.source.width, device))
            words = np.unique(np.concatenate([(one.left, one.right)[i] for one in job.items.values()]))
            vectors.write(job.source.read(i), words, f"retrieval: language {job.given.name(role)}")
            kept.append(vectors)
        for place, layer in enumerate(job.layers):
            matrices = kept[0].layer(place), kept[1].layer(place)
            for variant, one in job.items.items():
                retrieved = _retrieve(job, one, kept, matrices, report)
                found[variant].append(_scores(layer, one, retrieved, job.given.same_model))
                if place == job.last():
                    best[variant] = retrieved
            report("retrieval by layer", place + 1, len(job.layers), "")
    return found, best


def _retrieve(
    job: _Job, one: Items, kept: Sequence[WordVectors], matrices: tuple[Matrix, Matrix], report: Report
) -> Retrieved:
    """The candidates of a variant are some rows of the layer, or all."""
    chosen, links = [], -1 - one.links  # a word without a vector is none of the rows
    for i, words in enumerate((one.left, one.right)):
        linked = one.links[:, i]
        there = np.isin(linked, words)
        if len(words) == len(matrices[i]):
            chosen.append(matrices[i])
            links[there, i] = kept[i].rows(linked[there])
        else:
            rows: Any = kept[i].rows(words)
            chosen.append(matrices[i][torch.from_numpy(rows) if isinstance(matrices[i], torch.Tensor) else rows])
            links[there, i] = np.searchsorted(words, linked[there])
    return retrieve(chosen[0], chosen[1], links, job.given.config.of(RetrievalConfig).k, report, one.lost)


def _scores(layer: Layer, one: Items, retrieved: Retrieved, same_model: bool) -> dict[str, Any]:
    pairs = {}
    for name in SETS:
        scores = {similarity: retrieved.accuracy(one.sets[name], similarity) for similarity in SIMILARITIES}
        pairs[name] = {key: None if value is None else value.to_json() for key, value in scores.items()}
    zeros = {"left": retrieved.zeros[0], "right": retrieved.zeros[1]}
    numbers = {"layer": layer[1]} if same_model else {"layer": layer[1], "left_layer": layer[0]}
    return {**numbers, "pairs": pairs, "zero_vectors": zeros}


def _zero_vectors(by_layer: Mapping[Variant, list[dict[str, Any]]]) -> dict[str, int]:
    """How many candidates are vectors of zeros, by variant and layer, both languages together."""
    zeros = {
        f"{variant}: vectors of zeros, layer {layer['layer']}": sum(layer["zero_vectors"].values())
        for variant, layers in by_layer.items()
        for layer in layers
    }
    return {reason: count for reason, count in zeros.items() if count}


def _summary(one: Items, found: list[dict[str, Any]]) -> dict[str, Any]:
    """How many words and links there are, what chance would find, and the scores of each layer."""
    sizes = {"left": len(one.left), "right": len(one.right)}
    chance = 50 * sum(1 / size for size in sizes.values()) if all(sizes.values()) else None
    links = {name: int(chosen.sum()) for name, chosen in one.sets.items()}
    lost = {name: int((chosen & one.lost).sum()) for name, chosen in one.sets.items()}
    return {"candidates": sizes, "links": links, "lost": lost, "chance": chance, "layers": found}


def _tags(job: _Job, best: Mapping[Variant, Retrieved], tags: Tags) -> dict[str, Any]:
    name = job.given.config.of(RetrievalConfig).tag_pairs
    found = {}
    for variant, one in job.items.items():
        found[variant] = by_tag(best[variant], one.sets[name], tags.codes[one.links[:, 1]], tags.names)
    return {"by": tags.source, "pairs": name, "layer": job.layers[job.last()][1], "variants": found}


def _ranks(job: _Job, variant: Variant, retrieved: Retrieved, measured: Numbers) -> Series | None:
    """Accuracy by |difference of frequency rank| of both words of a link, in the text of both kinds of sentences."""
    settings, one = job.given.config.of(RetrievalConfig), job.items[variant]
    chosen = one.sets[settings.rank_pairs]
    if not chosen.any():
        return None
    rows = np.union1d(measured, job.given.fitted)
    ranks: list[NDArray[np.float64]] = []
    for i, corpus in enumerate((job.text.left, job.text.right)):
        types = job.text.types[i]
        ranks.append(frequency_ranks(types, corpus.offsets, rows)[types[one.links[chosen, i]]])
    return rank_series("CSLS", ranks[0] - ranks[1], retrieved.of_links()[chosen], settings.rank_bins)


def _rank_values(series: Series, variant: Variant, job: _Job) -> dict[str, Any]:
    name = job.given.config.of(RetrievalConfig).rank_pairs
    return {
        "variant": variant,
        "pairs": name,
        "layer": job.layers[job.last()][1],
        "links": int(job.items[variant].sets[name].sum()),
        "drop": series.y[0] - series.y[-1] if len(series.y) > 1 else None,
        "bins": [
            {"difference": x, "accuracy": y, "low": low, "high": high}
            for x, y, low, high in zip(series.x, series.y, series.low, series.high, strict=True)
        ],
    }
