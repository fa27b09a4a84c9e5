"""Probe ``cka``: how alike the states of sentences in two languages are, every layer against every layer.

Conneau et al. 2020, "Emerging cross-lingual structure", section 5.2 and figure 7. The lower reference is an encoder
with random weights, the upper one the source language read by another model. The sentences are those to measure on
and those to fit on, since CKA fits nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.measures.cka import CkaConfig
from probes.measures.cka.pairs import Compared, Pairing, compare, paraphrase_pairing, random_pairing
from probes.measures.cka.show import layer_lines, layer_map, layer_table
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.rng import key_of, permutation

NOT_DRAWN = "sentence pairs not drawn"


def cka_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """CKA of the target language's states with the source's, and of the references (see ``CkaConfig``).

    Each comparison reads its text once, one after the other, so that memory is that of one. InputError for fewer than
    2 sentences, and for states that are not finite.
    """
    settings = given.config.of(CkaConfig)
    rows, left_out = drawn_rows(given)
    pairing = Pairing(given.side("target"), given.side("source"), rows, given.data.links)
    counts = {NOT_DRAWN: left_out} if left_out else {}
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
    return ProbeResult(values, tables, figures, list(dict.fromkeys(notes)))


def drawn_rows(given: ProbeInput) -> tuple[NDArray[np.int64], int]:
    """The sentence pairs that are compared, sorted, and how many were not drawn."""
    every = np.sort(np.concatenate([given.data.dev, given.fitted]))  # either may be empty: nothing is held out
    if not len(every):
        raise InputError("cka: no sentence pair is left; lower data.test, or raise data.length")
    wanted = given.config.of(CkaConfig).sentences
    if wanted >= len(every):
        return every, 0
    order = permutation(key_of("cka-sentences", given.config.seed, given.data.name), len(every))
    return np.sort(every[order[:wanted]]), len(every) - wanted


def _comparisons(
    given: ProbeInput, pairing: Pairing, counts: dict[str, int], notes: list[str], report: Report
) -> Iterator[Compared]:
    """One after the other; ``counts`` and ``notes`` are added to."""
    settings = given.config.of(CkaConfig)
    left, right = pairing.left.name, pairing.right.name
    pooling = settings.pooling
    yield compare("languages", f"{left} with {right}", pairing, pooling, report)
    for kind in settings.random:
        both = kind == "both"
        label = "random encoders for both" if both else f"random encoder for {left}"
        drawn = random_pairing(given, pairing, both)
        yield compare(f"random_{kind}", label, drawn, pooling, report)
    if settings.paraphrase is not None:
        other, opened, dropped = paraphrase_pairing(given, pairing, settings.paraphrase)
        counts |= dropped
        if opened.fingerprint == given.pretrained.fingerprint:
            notes.append(f"cka.paraphrase: {opened.name} is the model itself, so it is no reference")
        yield compare("paraphrase", f"paraphrase: {right} by {opened.name}", other, pooling, report)
