"""The page of a probed model: every table and figure with what they say, one file that needs nothing else; and what two
probes say together, CKA by layer against contextual retrieval by layer."""

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
from synthlang.errors import InputError
from synthlang.files import atomic_file
from synthlang.rng import key_of


def write_page(
    folder: Path,
    values: Mapping[str, Any],
    found: Mapping[str, ProbeResult],
    table: Mapping[str, type[ProbeSettings]] = PROBES,
) -> Path:
    """Write ``probes.html``; ``table`` says what each probe is called."""
    sections = [_summary(values["notes"], found, table)]
    sections += [Section(table[name].title, _blocks(table[name], result)) for name, result in found.items()]
    together = values["cka_against_retrieval"]
    if together is not None:
        sections.append(Section("CKA against retrieval", [Paragraph(_together(together))]))
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
    """What each probe found, in a sentence."""
    said = [(table[name].title, [result.summary]) for name, result in found.items() if result.summary]
    blocks: list[Block] = [Terms(said)] if said else [Paragraph("The probes have no summary; their results follow.")]
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
        blocks.append(Folded("What was left out or counted", [Bullets(counts)]))
    return blocks


def cka_against_retrieval(found: Mapping[str, ProbeResult], seed: int) -> dict[str, Any] | None:
    """Pearson's r over layers as JSON, or None for r and the reason; None where one of the probes did not run.

    ``pairs`` are the linked words of retrieval that are meant, those of its figure: the ones that count, or, where
    these are few, the next larger set.
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
    return {"pairs": PAIRS[kind], **against_retrieval(cka, accuracy, seed).to_json()}


def _nothing(reason: str) -> dict[str, Any]:
    return {"pairs": None, **Correlation("pearson", 0, 0, 0, reason=reason).to_json()}


def against_retrieval(cka: Sequence[float | None], retrieval: Sequence[float | None], seed: int = 0) -> Correlation:
    """Pearson's r over layers of CKA and retrieval accuracy, both [layers] in the order of the layers.

    As in Conneau et al. 2020, section 5.2, where it is over 0.9 for four pairs of languages. Layers where one is None
    are left out; with fewer than 3 there is no r but a reason. Layers are not independent of each other, so p and the
    interval say less than for that many models. InputError for lists of different layers, NaN and infinity.
    """
    if len(cka) != len(retrieval):
        raise InputError(f"CKA is of {len(cka)} layers and retrieval of {len(retrieval)}: name the same layers")
    known = [(a, b) for a, b in zip(cka, retrieval, strict=True) if a is not None and b is not None]
    key = key_of("cka-retrieval", seed)
    return correlation([a for a, _ in known], [b for _, b in known], key, "pearson")


def _together(found: Mapping[str, Any]) -> str:
    """Whether the layers that are alike are those where words find each other."""
    pairs = "" if found["pairs"] is None else f", {found['pairs']}"
    what = (
        f"Pearson's r over layers of biased CKA of same-number layers and retrieval of words in context (CSLS{pairs})"
    )
    if found["r"] is None:
        return f"{what}: none, {found['reason']}."
    bounds = "" if found["low"] is None else f", 95 % interval {found['low']:.2f} to {found['high']:.2f}"
    return f"{what}: {found['r']:.2f} (n = {found['n']} layers{bounds}). Layers are not independent of each other."
