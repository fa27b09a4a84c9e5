"""The probe ``cka``: the similarity of the states of sentences in two languages, for all pairs of layers.

Source: Conneau et al. 2020, "Emerging cross-lingual structure", section 5.2 and figure 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from probes.figures.drawing import Drawing
from probes.figures.lines import Series, lines_over
from probes.figures.maps import CELLS, cka_map
from probes.measures.cka import ESTIMATORS, CkaConfig, Estimator
from probes.measures.cka.pairs import Compared, Pairing, compare, paraphrase_pairing, random_pairing
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult
from probes.report.page import Table
from synthlang.errors import InputError
from synthlang.parallel.prepare import TOO_LONG, WITHOUT_LINK
from synthlang.progress import Report, silent
from synthlang.rng import key_of, permutation

NOT_DRAWN = "sentence pairs not drawn"
REFERENCES = {"random_target": "random weights in one language", "random_both": "random weights in both"}


def cka_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """Measure the CKA of the two languages, and the CKA of the references.

    Comparisons run one after another, so memory holds the sums of one comparison.

    Raises:
        InputError: The sentence pairs cannot be read, there are fewer than 2 sentences or aligned words, states are not
            finite, the pooling does not suit a decoder, or the disk is full. The error is also raised if a model lacks
            a layer of the config, or if the model ``paraphrase`` cannot be opened or has other subwords than the word
            alignments.
    """
    settings = given.config.of(CkaConfig)
    settings.check_pooling(given.body("source").causal or given.body("target").causal)
    rows, left_out = drawn_rows(given)
    pairing = Pairing(given.side("target"), given.side("source"), rows, given.data.links)
    counts = left_out_of(given) | ({NOT_DRAWN: left_out} if left_out else {})
    notes: list[str] = []
    found = list(_comparisons(given, pairing, counts, notes, report))
    for one in found:
        notes += one.notes()
    estimator, unit = settings.estimator, "linked words" if settings.pooling == "words" else "sentences"
    maps = [layer_map(one, estimator, unit) for one in found]
    figures = [figure for figure in (*maps, layer_lines(found, estimator)) if figure is not None]
    values: dict[str, Any] = {
        "pooling": settings.pooling,
        "unit": unit,
        "sentences": len(rows),
        "comparisons": {one.key: one.to_json() for one in found},
        "counts": counts,
    }
    tables = [layer_table(found, unit)] if any(one.same_layer("biased") for one in found) else []
    return ProbeResult(values, tables, figures, list(dict.fromkeys(notes)), cka_sentence(values))


def drawn_rows(given: ProbeInput) -> tuple[NDArray[np.int64], int]:
    """Return the indices of the sentence pairs to compare, ascending, and the number of pairs that were not drawn.

    Raises:
        InputError: The sentence pairs cannot be read, or none is left.
    """
    unlinked = [] if given.config.of(CkaConfig).needs_links else [given.data.unlinked]
    every = np.sort(np.concatenate([given.data.dev, given.fitted, *unlinked]))  # CKA fits no map
    if not len(every):
        hint = "reduce data.test, or give more or shorter sentence pairs"
        raise InputError("no sentence pair is left to compare", keys="cka", hint=hint, code="empty")
    wanted = given.config.of(CkaConfig).sentences
    if wanted >= len(every):
        return every, 0
    order = permutation(key_of("cka-sentences", given.config.seed, given.data.name), len(every))
    return np.sort(every[order[:wanted]]), len(every) - wanted


def left_out_of(given: ProbeInput) -> dict[str, int]:
    """Return the number of sentence pairs that cannot be compared, by reason.

    Pairs that are too long are counted, and for aligned words also pairs without a word alignment.

    Raises:
        InputError: The sentence pairs cannot be read.
    """
    reasons = (TOO_LONG, WITHOUT_LINK) if given.config.of(CkaConfig).needs_links else (TOO_LONG,)
    return {reason: count for reason, count in given.data.counts.items() if reason.startswith(reasons)}


def _comparisons(
    given: ProbeInput, pairing: Pairing, counts: dict[str, int], notes: list[str], report: Report
) -> Iterator[Compared]:
    """Yield the comparisons, and extend ``counts`` and ``notes``."""
    settings = given.config.of(CkaConfig)
    left, right = pairing.left.name, pairing.right.name
    pooling = settings.pooling
    yield compare("languages", f"{left} with {right}", pairing, pooling, report)
    for kind in settings.random:
        both = kind == "both"
        label = "random models for both" if both else f"random model for {left}"
        drawn = random_pairing(given, pairing, both)
        yield compare(f"random_{kind}", label, drawn, pooling, report)
    if settings.paraphrase is not None:
        other, opened, dropped = paraphrase_pairing(given, pairing, settings.paraphrase)
        counts |= dropped
        if opened.fingerprint == given.pretrained.fingerprint:
            notes.append(f"cka.paraphrase: {opened.name} is the probed model itself, so it is not a reference")
        yield compare("paraphrase", f"paraphrase: {right} by {opened.name}", other, pooling, report)


def layer_table(found: Sequence[Compared], unit: str) -> Table:
    """Return a table of the CKA of same-number layers and its mean, biased and debiased.

    The table has the form of Conneau et al. 2020, figure 7. Comparisons of models with different layers have no column,
    and at least one comparison must have one. ``unit`` is the name of the items in the title.
    """
    columns = [one for one in found if one.same_layer("biased") is not None]
    layers = columns[0].layers[0]  # all sides with a column are read at these layers
    rows = []
    for place in sorted(range(len(layers)), key=lambda i: layers[i]):
        same = [[one.same_layer(name) for name in ESTIMATORS] for one in columns]
        cells = [_cell([None if values is None else values[place] for values in of_column]) for of_column in same]
        rows.append([str(layers[place]), *cells])
    rows.append(["mean", *(_cell([one.mean(name) for name in ESTIMATORS]) for one in columns)])
    n = max(one.result.n for one in found)
    title = f"CKA of same-number layers, up to {n:,} {unit}: biased / debiased"
    return Table(title, ["layer", *(one.label for one in columns)], rows)


def _cell(values: Sequence[float | None]) -> str:
    return " / ".join("–" if value is None else f"{value:.3f}" for value in values)


def layer_map(one: Compared, estimator: Estimator, unit: str) -> Drawing | None:
    """Draw the CKA of all pairs of layers in one comparison, or return None if no pair has a defined CKA.

    Layers without any defined CKA are left out. ``unit`` names the items (sentences or linked words) in the note of the
    figure.
    """
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

    note = f"Similarity of the representations of the same {unit}, layer by layer. Layer 0 is the embeddings."
    return replace(drawing, paint=paint, alt=alt, note=note)


def layer_lines(found: Sequence[Compared], estimator: Estimator) -> Drawing | None:
    """Draw the CKA of layers with the same number, with a line for each comparison.

    A comparison without a defined value has no line. If there is no line at all, the result is None.
    """
    lines = []
    for one in found:
        same = zip(one.layers[0], one.same_layer(estimator) or [], strict=False)
        known = [(number, value) for number, value in same if value is not None]
        lines += [Series(one.label, [x for x, _ in known], [y for _, y in known])] if known else []
    title = "CKA of same-number layers" + (" (debiased)" if estimator == "debiased" else "")
    note = (
        "Similarity of the representations of the same text. Random models are a lower reference, which depends on "
        "tokens alone. Paraphrase is an upper reference: another model reads the source language. Layer 0 is the "
        "embeddings."
    )
    return lines_over("cka-layers", title, lines, ("layer", "CKA (0 = unlike, 1 = alike)"), note) if lines else None


def cka_sentence(values: Mapping[str, Any]) -> str:
    """Describe the mean CKA over layers and its references in a sentence.

    If the CKA of the languages is undefined, the result is "". ``values`` is the part of probes.json for the probe
    ``cka``.
    """
    means = {key: one["mean"]["biased"] for key, one in values["comparisons"].items()}
    found = {key: mean for key, mean in means.items() if mean is not None}
    if "languages" not in found:
        return ""
    references = [f"{found[key]:.2f} with {told}" for key, told in REFERENCES.items() if key in found]
    beside = f" ({', '.join(references)})" if references else ""
    return f"The layers of the two languages have a mean CKA of {found['languages']:.2f}{beside}."
