"""How CKA is shown: a map of all layers for each comparison, lines and a table of same-number layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure as Canvas
from rich.table import Table

from probes.figures.cka import CELLS, cka_map
from probes.figures.drawing import Drawing
from probes.figures.lines import Series, over_layers
from probes.measures.cka import Estimator
from probes.measures.cka.pairs import ESTIMATORS, Compared
from probes.measures.result import table_of


def layer_table(found: Sequence[Compared], unit: str) -> Table:
    """Same-number layers, biased and debiased, and their mean: figure 7 of the paper, transposed to columns."""
    columns = [one for one in found if one.same_layer("biased") is not None]
    rows = []
    for number in sorted({number for one in columns for number in one.layers[0]}):
        cells = []
        for one in columns:
            place = one.layers[0].index(number) if number in one.layers[0] else None
            same = [one.same_layer(name) for name in ESTIMATORS]
            cells.append(_cell([None if place is None or values is None else values[place] for values in same]))
        rows.append([str(number), *cells])
    n = max(one.result.n for one in found)
    title = f"CKA of same-number layers, up to {n:,} {unit}: biased / debiased"
    table = table_of(title, ("layer", *(one.label for one in columns)), rows)
    if columns:
        table.add_section()
        table.add_row("mean", *(_cell([one.mean(name) for name in ESTIMATORS]) for one in columns))
    return table


def _cell(values: Sequence[float | None]) -> str:
    return " / ".join("–" if value is None else f"{value:.3f}" for value in values)


def layer_map(one: Compared, estimator: Estimator, unit: str) -> Drawing | None:
    """Every layer against every layer that CKA is defined for; None if there is no such pair."""
    table = one.result.table(estimator)
    if table is None:
        return None
    values = table.numpy()
    defined = np.isfinite(values)
    rows, columns = np.flatnonzero(defined.any(axis=1)), np.flatnonzero(defined.any(axis=0))
    if not len(rows):
        return None
    values = values[np.ix_(rows, columns)]
    left, right = (np.asarray(numbers)[kept] for numbers, kept in zip(one.layers, (rows, columns), strict=True))
    title = f"CKA of all layers, {one.label}" + (" (debiased)" if estimator == "debiased" else "")
    drawing = cka_map(f"cka-{one.key.replace('_', '-')}", title, values, *one.names)
    best = np.unravel_index(int(values.argmax()), values.shape)
    alt = (
        f"{title}. Largest CKA {values.max():.3f}, layer {left[best[0]]} of {one.names[0]} with layer "
        f"{right[best[1]]} of {one.names[1]}."
    )

    def paint(canvas: Canvas) -> None:
        drawing.paint(canvas)
        axes = canvas.axes[0]
        for axis, numbers in ((axes.xaxis, right), (axes.yaxis, left)):
            places = range(0, len(numbers), 1 + (len(numbers) - 1) // CELLS)
            axis.set_ticks([i + 0.5 for i in places], [str(numbers[i]) for i in places])

    note = f"How alike the representations of the same {unit} are, layer by layer. Layer 0: the embeddings."
    return replace(drawing, paint=paint, alt=alt, note=note)


def layer_lines(found: Sequence[Compared], estimator: Estimator) -> Drawing | None:
    """CKA of same-number layers, a line for each comparison; None if there is none."""
    lines = []
    for one in found:
        same = zip(one.layers[0], one.same_layer(estimator) or [], strict=False)
        known = [(number, value) for number, value in same if value is not None]
        lines += [Series(one.label, *zip(*known, strict=True))] if known else []
    title = "CKA of same-number layers" + (" (debiased)" if estimator == "debiased" else "")
    note = (
        "How alike the representations of the same text are. Random encoders: what tokens alone give, a lower "
        "reference; paraphrase: the source language read by another model, an upper one. Layer 0: the embeddings."
    )
    return over_layers("cka-layers", title, lines, "CKA (0 = unlike, 1 = alike)", note) if lines else None
