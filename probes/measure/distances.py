"""Probe ``distances``: how far apart related and unrelated words are, in a model and in what it was before or became.

Source: "The Impact of Cross-Lingual Adjustment" (2022), section 5.4, figures 1 and 2; pictures of word pairs after
Cao et al. 2020, figure 1. What is computed and how is in probes/distances.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import torch

from probes.distances.compare import Change, compare, histograms
from probes.distances.dimensions import separations_and_dominance
from probes.distances.linked import Linked
from probes.distances.separation import DISTANCES
from probes.measure.distances_pictures import POINTS, Chosen, choose, chosen_vectors, pictures
from probes.measure.distances_show import Measured, figures, notes, tables
from probes.measure.distances_text import Readers, Reread, SharedText, linked_in_order, open_other, shared_text
from probes.measure.found import Found
from probes.measure.subject import ROLES, Subject
from synthlang.errors import InputError
from synthlang.progress import Report, silent

Vectors = tuple[torch.Tensor, torch.Tensor]


def distances_probe(subject: Subject, report: Report = silent) -> Found:
    """L2 and cosine distances of linked words and of words of other sentences, at every layer that is read.

    ``config.distances.before`` are read one after another on the same pairs and compared with the model. Memory is that
    of two models, some thousand word vectors at all layers, and a number for each pair, distance and layer.

    InputError where vectors cannot be compared (two models of other widths or numbers of layers), for NaN, and for what
    the models of ``before`` cannot read.
    """
    config = subject.config.distances
    name = config.name or subject.pretrained.name
    _check(subject, name)
    # the tokenizers of all models first, since they decide what is measured; weights are there one model at a time
    readers = {label: Readers.of(open_other(model, subject, label)) for label, model in config.before.items()}
    shared = shared_text(subject, {**readers, name: Readers.of(subject.pretrained)})
    chosen = None if config.picture == "none" else choose(shared, config.pairs, subject.config.seed)
    if chosen is not None and len(chosen.links) < POINTS:
        chosen = None
    measured: list[Measured] = []
    vectors: dict[str, Vectors] = {}
    for label in (*config.before, name):
        try:
            found, drawn = _read(label, subject, shared, chosen, report)
        except InputError as error:
            raise InputError(f"{label}: {error}") from error
        measured.append(found)
        if drawn is not None:
            vectors[label] = drawn
    return _found(subject, shared, measured, vectors, chosen)


def _check(subject: Subject, name: str) -> None:
    """What can be known before anything is read."""
    config = subject.config.distances
    if name in config.before:
        raise InputError(f"distances.before: {name} is what the probed model is called; set distances.name")
    if config.picture == "tsne" and find_spec("sklearn") is None:
        raise InputError("distances.picture: tsne needs scikit-learn: pip install 'synthlang[probe]', or take pca")
    _layers(subject)


def _layers(subject: Subject) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The layers of the target's and of the source's model, from the lowest on, and which of them is drawn."""
    target, source = (tuple(sorted(subject.layers(role))) for role in ROLES)
    widths = [subject.body(role).shape.hidden for role in ROLES]
    if widths[0] != widths[1]:
        raise InputError(f"distances: vectors of {widths[0]} and of {widths[1]} numbers have no distance (two models)")
    if len(target) != len(source):
        raise InputError(
            f"distances: the models have {len(target)} and {len(source)} layers to read; name as many of each: layers"
        )
    shown = subject.config.distances.drawn(source, subject.body("source").shape.layers)
    return target, source, source.index(shown)


def _read(
    label: str, subject: Subject, shared: SharedText, chosen: Chosen | None, report: Report
) -> tuple[Measured, Vectors | None]:
    """The distances in a model, and the vectors of the words of its picture."""
    before = subject.config.distances.before
    if label not in before:
        return _measure(label, shared.subject(label, subject.pretrained, subject), chosen, report)
    other = shared.subject(label, open_other(before[label], subject, label), subject)
    with other.reading():
        return _measure(label, other, chosen, report)


def _measure(label: str, subject: Reread, chosen: Chosen | None, report: Report) -> tuple[Measured, Vectors | None]:
    config = subject.config.distances
    of_target, of_source, at = _layers(subject)
    left, right = subject.side("target", layers=of_target), subject.side("source", layers=of_source)

    def read() -> Iterator[Linked]:
        return linked_in_order(subject, left, right, report, f"distances, {label}")

    separations, dominance = separations_and_dominance(read, subject.config.seed, of_source, tops=config.dimensions)
    drawn = None if chosen is None else chosen_vectors(subject, chosen, (of_target[at], of_source[at]))
    return Measured(label, separations, dominance, of_source[at]), drawn


def _changes(measured: Sequence[Measured]) -> dict[str, list[Change]]:
    """From each other model to the probed one, which is the last, layer by layer.

    Models of other layers are compared at the layer that is drawn.
    """
    main = measured[-1]
    found = {}
    for model in measured[:-1]:
        pairs = list(zip(model.separations, main.separations, strict=False))
        if [one.layer for one in model.separations] != [one.layer for one in main.separations]:
            pairs = [(model.at(distance), main.at(distance)) for distance in DISTANCES]
        found[model.name] = [compare(one, other) for one, other in pairs]
    return found


def _found(
    subject: Subject,
    shared: SharedText,
    measured: Sequence[Measured],
    vectors: Mapping[str, Vectors],
    chosen: Chosen | None,
) -> Found:
    config, main = subject.config.distances, measured[-1]
    changes = _changes(measured)
    pairs = main.separations[0].pairs
    languages = subject.name("target"), subject.name("source")
    drawings, said = figures(measured, config.bins), notes(subject, measured)
    drawn: dict[str, Any] | None = None
    if chosen is not None and config.picture != "none":
        layers = {model.name: model.shown for model in measured}
        drawn, more, problems = pictures(vectors, layers, languages, chosen, config.picture, subject.config.seed)
        drawings, said = drawings + more, said + problems
    elif config.picture != "none":
        said.append("There is no picture of word pairs: fewer than two linked types of words are left to choose from.")
    same_word = {"unrelated pairs of one word": pairs.same_word} if pairs.same_word else {}
    values = {
        "model": main.name,
        "related": len(pairs.sentence),
        "unrelated": len(pairs.query),
        "sentence_pairs": len(shared.rows),
        "counts": {**subject.data.counts, **shared.counts, **same_word},
        "models": {
            model.name: held for model, held in zip(measured, _model_values(measured, config.bins), strict=True)
        },
        "changes": {name: [change.to_json() for change in held] for name, held in changes.items()},
        "pictures": drawn,
    }
    return Found(values, tables(measured, changes), drawings, said)


def _model_values(measured: Sequence[Measured], bins: int) -> list[dict[str, Any]]:
    """Of each model; histograms of one distance have the same bins in all."""
    counted = {distance: histograms([model.at(distance) for model in measured], bins) for distance in DISTANCES}
    return [
        {
            "layer": model.shown,
            "layers": [one.to_json() for one in model.separations],
            "dimensions": [one.to_json() for one in model.dominance] if model.dominance[0].tops else None,
            "histograms": {distance: counted[distance][i].to_json() for distance in DISTANCES},
        }
        for i, model in enumerate(measured)
    ]
