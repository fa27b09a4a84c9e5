"""The probe ``distances``: distances of related and unrelated words, in one model or before and after a change.

Source: "The Impact of Cross-Lingual Adjustment" (2022), section 5.4, figures 1 and 2. Pictures of word pairs follow
Cao et al. 2020, figure 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch

from probes.measures.distances import DISTANCES, DistancesConfig
from probes.measures.distances.dimensions import separations_and_dominance
from probes.measures.distances.pairs import Linked, SharedText, linked_in_order, open_other, readers_of, shared_text
from probes.measures.distances.separation import Change, compare, histograms
from probes.measures.distances.show import (
    POINTS,
    ChosenPairs,
    Measured,
    choose,
    chosen_vectors,
    distances_sentence,
    figures,
    notes,
    pictures,
    tables,
)
from probes.measures.probe_input import ROLES, ProbeInput
from probes.measures.result import ProbeResult
from synthlang.errors import InputError
from synthlang.progress import Report, silent

Vectors = tuple[torch.Tensor, torch.Tensor]


def distances_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """Measure L2 and cosine distances of aligned words and of words of different sentences, at every layer.

    The models in ``before`` read the same pairs, one model after another, and are compared with the probed model.
    Memory holds two models, a few thousand word vectors at all layers, and a number for each pair, distance and layer.

    Raises:
        InputError: The sentence pairs cannot be read, the models differ in hidden size or in the number of layers that
            are read, or ``distances.layer`` is not read. A model in ``before`` causes the error if it has the name of
            the probed model, or cannot be opened. The error is also raised if the models cannot read the same words
            (see `shared_text`), or if the vectors cannot be compared (see `pair_blocks`).
    """
    config = given.config.of(DistancesConfig)
    name = config.name or given.pretrained.name
    if name in config.before:
        told = f"the probed model also has the name {name!r}"
        raise InputError(told, keys="distances.before", hint="set distances.name to another name", code="duplicate")
    _layers(given)
    # open all tokenizers first, since the pairs depend on them; only one other model at a time is in memory
    readers = {label: readers_of(open_other(model, given, label)) for label, model in config.before.items()}
    shared = shared_text(given, {**readers, name: readers_of(given.pretrained)})
    chosen = None if config.picture == "none" else choose(shared, config.pairs, given.config.seed)
    if chosen is not None and len(chosen.links) < POINTS:
        chosen = None
    measured: list[Measured] = []
    vectors: dict[str, Vectors] = {}
    for label, model in {**config.before, name: None}.items():
        found, drawn = _measure(label, model, given, shared, chosen, report)
        measured.append(found)
        if drawn is not None:
            vectors[label] = drawn
    return _result(given, shared, measured, vectors, chosen)


def _layers(given: ProbeInput) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the layers of the target and of the source model, ascending, and the index of the layer of the figures."""
    given.check_alike()
    target, source = (tuple(sorted(given.layers(role))) for role in ROLES)
    shown = given.config.of(DistancesConfig).drawn(source, given.body("source").shape.layers)
    return target, source, source.index(shown)


def _measure(
    label: str, model: str | None, given: ProbeInput, shared: SharedText, chosen: ChosenPairs | None, report: Report
) -> tuple[Measured, Vectors | None]:
    """Return the distances in the model called ``label``, and the vectors for its picture. An error names the model.

    ``model`` is the run, folder or name of another model, or None for the probed model.
    """
    opened = given.pretrained if model is None else open_other(model, given, label)
    one = replace(given, pretrained=opened, text=shared.aligned(label))
    with one.reading():
        try:
            of_target, of_source, at = _layers(one)
            left, right = one.side("target", layers=of_target), one.side("source", layers=of_source)

            def read() -> Iterator[Linked]:
                return linked_in_order(one, left, right, report, f"distances, {label}")

            tops = one.config.of(DistancesConfig).dimensions
            separations, dominance = separations_and_dominance(read, one.config.seed, of_source, tops=tops)
            drawn = None if chosen is None else chosen_vectors(one, chosen, (of_target[at], of_source[at]))
        except InputError as error:
            raise error.inside(path=label) from error
    return Measured(label, separations, dominance, of_source[at]), drawn


def _changes(measured: Sequence[Measured]) -> dict[str, list[Change]]:
    """Return the changes from each other model to the probed model (the last one), layer by layer.

    Models with different layers are compared only at the layer of the figures.
    """
    main = measured[-1]
    found = {}
    for model in measured[:-1]:
        pairs = list(zip(model.separations, main.separations, strict=False))
        if model.layers != main.layers:
            pairs = [(model.at(distance), main.at(distance)) for distance in DISTANCES]
        found[model.name] = [compare(one, other) for one, other in pairs]
    return found


def _result(
    given: ProbeInput,
    shared: SharedText,
    measured: Sequence[Measured],
    vectors: Mapping[str, Vectors],
    chosen: ChosenPairs | None,
) -> ProbeResult:
    config, main = given.config.of(DistancesConfig), measured[-1]
    changes, pairs = _changes(measured), main.separations[0].pairs
    drawings, said = figures(measured, config.bins), notes(config, measured, given.same_model)
    drawn: dict[str, Any] | None = None
    if chosen is not None and config.picture != "none":
        layers = {model.name: model.shown for model in measured}
        languages = given.name("target"), given.name("source")
        drawn, more, problems = pictures(vectors, layers, languages, chosen, config.picture, given.config.seed)
        drawings, said = drawings + more, said + problems
    elif config.picture != "none":
        said.append("There is no picture of word pairs, because fewer than two suitable pairs were found.")
    same_word = {"unrelated pairs of one word": pairs.same_word} if pairs.same_word else {}
    values = {
        "model": main.name,
        "related": len(pairs.sentence),
        "unrelated": len(pairs.query),
        "sentence_pairs": len(shared.rows),
        "counts": {**given.data.counts, **shared.counts, **same_word},
        "models": model_values(measured, config.bins),
        "changes": {name: [asdict(change) for change in of_model] for name, of_model in changes.items()},
        "pictures": drawn,
    }
    return ProbeResult(values, tables(measured, changes), drawings, said, distances_sentence(values))


def model_values(measured: Sequence[Measured], bins: int) -> dict[str, dict[str, Any]]:
    """Return the values of each model for JSON, by the name of the model.

    The histograms of a distance have the same bins in all models. ``bins`` is their number.
    """
    counted = {distance: histograms([model.at(distance) for model in measured], bins) for distance in DISTANCES}
    return {
        model.name: {
            "layer": model.shown,
            "layers": [one.to_json() for one in model.separations],
            "dimensions": [asdict(one) for one in model.dominance] if model.dominance[0].tops else None,
            "histograms": {distance: counted[distance][i].to_json() for distance in DISTANCES},
        }
        for i, model in enumerate(measured)
    }
