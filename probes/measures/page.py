"""The page ``probes.html``, and the correlation of CKA and retrieval over layers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from probes.measures.base import ProbeSettings
from probes.measures.result import ProbeResult
from probes.measures.retrieval.show import PAIRS, drawn_kind
from probes.measures.table import PROBES
from probes.report.page import Block, Bullets, Code, Figures, Folded, Paragraph, Section, Terms, html_page
from probes.statistics import Correlation, correlation
from synthlang.files import atomic_file
from synthlang.rng import key_of


def write_page(
    folder: Path,
    values: Mapping[str, Any],
    found: Mapping[str, ProbeResult],
    table: Mapping[str, type[ProbeSettings]] = PROBES,
    more: Sequence[Section] = (),
) -> Path:
    """Write ``probes.html``, one file with every table and figure, and return its path.

    Args:
        folder: The folder of the page.
        values: The content of probes.json.
        found: The result of each probe by name.
        table: The settings classes of the probes, whose titles and descriptions are shown.
        more: Sections to add between the sections of the probes and the section with the settings.

    Raises:
        InputError: The folder has no name, or a text is not UTF-8.
        DiskError: The file cannot be written.
    """
    sections = [_summary(values["notes"], found, table)]
    sections += [Section(table[name].title, _blocks(table[name], result)) for name, result in found.items()]
    together = values["cka_against_retrieval"]
    if together is not None:
        sections.append(Section("CKA against retrieval", [Paragraph(_together(together))]))
    sections += more
    settings = json.dumps(values["settings"], indent=2, ensure_ascii=False)
    parents = json.dumps(values["parents"], indent=2, ensure_ascii=False)
    sections.append(Section("Settings", [Code(f"{settings}\n{parents}")]))
    title = f"Probes of {values['model']}"
    under = f"{values['parent']} and {values['language']} · {', '.join(found)} · {values['fingerprint'][:12]}"
    path = folder / "probes.html"
    with atomic_file(path, "w") as handle:
        handle.write(html_page(title, under, sections, "probe"))
    return path


def _summary(
    notes: Sequence[str], found: Mapping[str, ProbeResult], table: Mapping[str, type[ProbeSettings]]
) -> Section:
    """Return the section with the notes on the model and the summary sentence of each probe."""
    said = [(table[name].title, [result.summary]) for name, result in found.items() if result.summary]
    blocks: list[Block] = [Terms(said)] if said else [Paragraph("The probes have no summary. Their results follow.")]
    blocks += [Paragraph(note, "note") for note in notes]
    return Section("Summary", blocks)


def _blocks(probe: type[ProbeSettings], result: ProbeResult) -> list[Block]:
    blocks: list[Block] = [Paragraph(probe.about)]
    blocks += [Paragraph(note, "note") for note in result.notes]
    blocks += result.tables
    if result.figures:
        blocks.append(Figures([figure.figure() for figure in result.figures]))
    counts = [f"{reason}: {count:,}" for reason, count in (result.values.get("counts") or {}).items() if count]
    if counts:
        blocks.append(Folded("Items left out or counted", [Bullets(counts)]))
    return blocks


def cka_against_retrieval(found: Mapping[str, ProbeResult], seed: int) -> dict[str, Any] | None:
    """Return Pearson's r of CKA and retrieval over layers as JSON, or None if one of the two probes did not run.

    Conneau et al. 2020, section 5.2, report more than 0.9 for four pairs of languages. A layer without one of the two
    numbers is left out. With fewer than 3 layers left, r is None. Layers are not independent, so p and the interval are
    weaker evidence than for the same number of models.

    An undefined r is None and has a ``reason``. ``pairs`` names the set of word pairs that the retrieval figure shows
    (`drawn_kind`). ``found`` has the result of each probe by name. ``seed`` is the seed of the p-value and of the
    bootstrap interval.
    """
    if not {"cka", "retrieval"} <= found.keys():
        return None
    cka = found["cka"].values["comparisons"]["languages"]["same_layer"]["biased"]
    retrieval = found["retrieval"].values
    context = retrieval["variants"].get("context")
    if context is None:
        return _nothing("words in context were not retrieved (retrieval.variants)")
    if cka is None:
        return _nothing("the models are read at different numbers of layers")
    if retrieval["static"] is not None:
        return _nothing("words were retrieved by static vectors, which have no layers (retrieval.static)")
    kind = drawn_kind(retrieval)
    accuracy = [(layer["pairs"][kind]["csls"] or {}).get("mean") for layer in context["layers"]]
    known = [(a, b) for a, b in zip(cka, accuracy, strict=True) if a is not None and b is not None]
    r = correlation([a for a, _ in known], [b for _, b in known], key_of("cka-retrieval", seed), "pearson")
    return {"pairs": PAIRS[kind], **r.to_json()}


def _nothing(reason: str) -> dict[str, Any]:
    return {"pairs": None, **Correlation("pearson", 0, 0, 0, reason=reason).to_json()}


def _together(found: Mapping[str, Any]) -> str:
    """Describe the correlation of CKA and retrieval over layers in a sentence."""
    pairs = "" if found["pairs"] is None else f", {found['pairs']}"
    what = (
        "Pearson's r, over layers, between biased CKA (same layer number in both languages) and retrieval of words in "
        f"context (CSLS{pairs})"
    )
    if found["r"] is None:
        return f"{what}: undefined, because {found['reason']}."
    bounds = "" if found["low"] is None else f", 95 % interval {found['low']:.2f} to {found['high']:.2f}"
    return f"{what}: {found['r']:.2f} (n = {found['n']} layers{bounds}). Layers are not independent of each other."
