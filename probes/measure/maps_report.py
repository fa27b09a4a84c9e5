"""Tables and figures of the probe ``maps``: by layer, before the map and after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.table import Table

from probes.figures.drawing import Drawing
from probes.figures.lines import Series, retrieval_by_layer
from probes.measure.maps_scores import main_number

TITLES = {
    "words": "Translation of words, P@1",
    "context": "Retrieval of words in context",
    "sentences": "Retrieval of the measured sentence pairs",
    "files": "Retrieval of the sentences of maps.sentences",
}
NOTES = {
    "words": "How often the nearest type of the other language is a translation, in both directions, under CSLS.",
    "context": "How often the nearest word of the other language's sentences is the linked one, both ways, under CSLS.",
    "sentences": "How often the nearest sentence of the other language is the translation, both ways, under CSLS.",
}
FITTED = {"dictionary": "dictionary", "parallel": "linked words", "sentences": "parallel sentences"}


def rows_of(values: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """What is compared: before a map, and after the map of each supervision; a list over layers each."""
    maps = {FITTED[name]: held["layers"] for name, held in values["maps"].items()}
    return {"no map": values["before"], **maps}


def best(values: Sequence[Mapping[str, Any]], measure: str) -> int:
    """The place of the layer with the largest mean accuracy under CSLS, the first of equals."""
    numbers = [main_number(measure, held[measure]) or 0.0 for held in values]
    return numbers.index(max(numbers))


def tables(values: Mapping[str, Any]) -> list[Table]:
    """A table for each measure: the best layer and the last one."""
    static = values["static"]
    return [
        _table(measure, title, rows_of(values), None if static is None else static.get(measure))
        for measure, title in TITLES.items()
        if values["before"][0][measure] is not None
    ]


def _table(
    measure: str, title: str, rows: Mapping[str, Sequence[Mapping[str, Any]]], static: Mapping[str, Any] | None
) -> Table:
    table = Table(title=f"{title} (%)")
    table.add_column("map fitted on", no_wrap=True)
    for column in ("layer", "cosine →", "cosine ←", "CSLS →", "CSLS ←", "mean"):
        table.add_column(column, justify="right")
    for name, layers in rows.items():
        for label, place in (("best", best(layers, measure)), ("last", len(layers) - 1)):
            held = layers[place]
            table.add_row(name, f"{held['layer']} {label}", *_cells(measure, held[measure]))
    if static is not None:
        table.add_row("static vectors", "–", *_cells(measure, static))
    return table


def _cells(measure: str, held: Mapping[str, Any]) -> list[str]:
    numbers = [held[score][way] for score, way in (
        ("cosine", "forward"), ("cosine", "backward"), ("csls", "forward"), ("csls", "backward"), ("csls", "mean"),
    )]  # fmt: skip
    return [f"{number['p@1'] if measure == 'words' else number:.1f}" for number in numbers]


def figures(values: Mapping[str, Any]) -> list[Drawing]:
    """A figure for each measure: lines over layers, one before and one after each map."""
    static, drawn = values["static"], []
    for measure, title in TITLES.items():
        if values["before"][0][measure] is None:
            continue
        lines = []
        for name, layers in rows_of(values).items():
            numbers = [main_number(measure, held[measure]) or 0.0 for held in layers]
            label = name if name == "no map" else f"map from {name}"
            lines.append(Series(label, [held["layer"] for held in layers], numbers))
        known = main_number(measure, None if static is None else static.get(measure))
        if known is not None:
            lines.append(Series("static word vectors", lines[0].x, [known] * len(lines[0].x)))
        drawing = retrieval_by_layer(f"maps-{measure}", title, lines)
        note = NOTES["sentences" if measure == "files" else measure]
        drawn.append(replace(drawing, note=f"{note} Layer 0: the embeddings."))
    return drawn
