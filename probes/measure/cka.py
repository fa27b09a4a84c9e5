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

from probes.measure.cka_compared import Compared, compare
from probes.measure.cka_figures import layer_lines, layer_map, layer_table
from probes.measure.cka_pairs import Pairing
from probes.measure.cka_references import paraphrase_pairing, random_pairing
from probes.measure.found import Found
from probes.measure.subject import Subject
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.rng import key_of, permutation

NOT_DRAWN = "sentence pairs not drawn"


def cka_probe(subject: Subject, report: Report = silent) -> Found:
    """CKA of the target language's states with the source's, and of the references (see ``CkaConfig``).

    Each comparison reads its text once, one after the other, so that memory is that of one. InputError for fewer than
    2 sentences, and for states that are not finite.
    """
    settings = subject.config.cka
    rows, left_out = drawn_rows(subject)
    pairing = Pairing(subject.side("target"), subject.side("source"), rows, subject.data.links)
    counts = {NOT_DRAWN: left_out} if left_out else {}
    notes: list[str] = []
    found = list(_comparisons(subject, pairing, counts, notes, report))
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
    return Found(values, tables, figures, list(dict.fromkeys(notes)))


def drawn_rows(subject: Subject) -> tuple[NDArray[np.int64], int]:
    """The sentence pairs that are compared, sorted, and how many were not drawn."""
    every = np.sort(np.concatenate([subject.data.dev, subject.fitted]))  # either may be empty: nothing is held out
    if not len(every):
        raise InputError("cka: no sentence pair is left; lower data.test, or raise data.length")
    wanted = subject.config.cka.sentences
    if wanted >= len(every):
        return every, 0
    order = permutation(key_of("cka-sentences", subject.config.seed, subject.data.name), len(every))
    return np.sort(every[order[:wanted]]), len(every) - wanted


def _comparisons(
    subject: Subject, pairing: Pairing, counts: dict[str, int], notes: list[str], report: Report
) -> Iterator[Compared]:
    """One after the other; ``counts`` and ``notes`` are added to."""
    settings = subject.config.cka
    left, right = pairing.left.name, pairing.right.name
    pooling = settings.pooling
    yield compare("languages", f"{left} with {right}", pairing, pooling, report)
    for kind in settings.random:
        both = kind == "both"
        label = "random encoders for both" if both else f"random encoder for {left}"
        drawn = random_pairing(subject, pairing, both)
        yield compare(f"random_{kind}", label, drawn, pooling, report)
    if settings.paraphrase is not None:
        other, opened, dropped = paraphrase_pairing(subject, pairing, settings.paraphrase)
        counts |= dropped
        if opened.fingerprint == subject.pretrained.fingerprint:
            notes.append(f"cka.paraphrase: {opened.name} is the model itself, so it is no reference")
        yield compare("paraphrase", f"paraphrase: {right} by {opened.name}", other, pooling, report)
