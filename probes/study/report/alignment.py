"""How alignment and transfer go together: rank correlations over cells, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probes.report.blocks import Block, Paragraph, Table
from probes.report.numbers import Entry, bounds, number
from probes.study.report.correlation import RESAMPLED, correlate
from probes.study.report.scores import CellScore
from probes.study.report.summary import SMALL_N

NAMES = {"alignment_all": "all types", "alignment_dictionary": "in dictionary", "alignment_held_out": "held out"}


def correlations(tasks: Mapping[str, Sequence[CellScore]]) -> list[Block]:
    """The table of correlations of each task and kind of alignment, and a warning."""
    body: list[list[Entry]] = []
    for task, members in tasks.items():
        for column, name in NAMES.items():
            r = correlate(members, column)
            p = "–" if r.p is None else f"{r.p:.4f}" + (" exact" if r.exact else "")
            why = r.reason or ("too few cells for an interval" if r.low is None else "")
            shown = name + (f"\n{why}" if why else "")
            body.append([task, shown, r.n, number(r.rho, 2), bounds(r.low, r.high, 2) or "–", p])
    caption = (
        "Spearman correlation of alignment with Δ over cell means. ρ < 0: better aligned, smaller loss in transfer. "
        f"p: two-sided permutation test; interval: 95 % bootstrap of cells; of more than {RESAMPLED} cells Student's t "
        "and Fisher's interval."
    )
    table = Table(caption, ["Task", "Alignment", "n", "ρ", "95 % interval", "p"], body, 2, "correlations")
    few = "the cells are few, they" if max(map(len, tasks.values())) < SMALL_N else "the cells"
    warning = (
        f"Read with care: {few} share languages, objectives and seeds and so are not independent, "
        "which makes p and interval look better than they are. A correlation over cells does not show that alignment "
        "causes transfer; all types and in dictionary include pairs an objective was trained on."
    )
    return [table, Paragraph(warning, "note")]
