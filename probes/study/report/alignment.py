"""How alignment and transfer go together: rank correlations over conditions, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probes.report.numbers import Entry, bounds, number
from probes.report.page import Block, Paragraph, Table
from probes.study.judged.correlated import RESAMPLED
from probes.study.report.correlation import correlate
from probes.study.report.scores import Condition
from probes.study.report.summary import SMALL_N

NAMES = {"alignment_all": "all types", "alignment_dictionary": "in dictionary", "alignment_held_out": "held out"}


def correlations(tasks: Mapping[str, Sequence[Condition]]) -> list[Block]:
    """The table of correlations of each task and kind of alignment, and a warning."""
    body: list[list[Entry]] = []
    for task, members in tasks.items():
        for column, name in NAMES.items():
            correlated = correlate(members, column)
            found = correlated.found
            p = "–" if found.p is None else f"{found.p:.4f}" + (" exact" if found.exact else "")
            why = found.reason or found.no_interval
            shown = name + (f"\n{why}" if why else "")
            n = correlated.conditions + (f"\n{correlated.pairs_of_models}" if found.n else "")
            body.append([task, shown, n, number(found.r, 2), bounds(found.low, found.high, 2) or "–", p])
    caption = (
        "Spearman correlation of alignment with Δ, a pair a model. ρ < 0: better aligned, smaller loss in transfer. "
        "Models of a condition (other seeds of pretraining) are one cluster, as are conditions that have the same "
        "measurement of a model, as where they differ in fine-tuning alone. p: two-sided permutation test; interval: "
        f"95 % bootstrap, both of conditions; of more than {RESAMPLED} conditions Student's t and Fisher's interval."
    )
    table = Table(caption, ["Task", "Alignment", "n", "ρ", "95 % interval", "p"], body, 2, "correlations")
    few = "the conditions are few, they" if max(map(len, tasks.values())) < SMALL_N else "the conditions"
    warning = (
        f"Read with care: {few} share languages and objectives and so are not independent, which makes p and interval "
        "look better than they are. A correlation over conditions does not show that alignment causes transfer; all "
        "types and in dictionary include pairs an objective was trained on."
    )
    return [table, Paragraph(warning, "note")]
