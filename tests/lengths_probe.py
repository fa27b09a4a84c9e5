"""A probe in the form of a contribution, which measures the length of sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from probes.measures.base import ProbeSettings
from probes.results.declared import ANY, AT_LEAST_ZERO, Measure, Tree

if TYPE_CHECKING:
    from probes.measures.probe_input import ProbeInput
    from probes.measures.result import ProbeResult
    from synthlang.progress import Report


class LengthsConfig(ProbeSettings):
    """Settings of the lengths of sentences."""

    title: ClassVar[str] = "Lengths of sentences"
    about: ClassVar[str] = "How many words the measured sentences have."
    run: ClassVar[str] = f"{__name__}:lengths_probe"
    measures: ClassVar[Tree] = {"words": {ANY: Measure("words", "sentences", AT_LEAST_ZERO, "words in a sentence")}}
    most: int = 100
    """Largest number of sentences."""


def lengths_probe(given: ProbeInput, report: Report) -> ProbeResult:
    from probes.measures.probe_input import ROLES
    from probes.measures.result import ProbeResult

    rows = given.measured[: given.config.of(LengthsConfig).most]
    words = {role: float(given.side(role).corpus.lengths[rows].mean()) for role in ROLES}
    return ProbeResult({"words": words, "counts": {"sentences counted": len(rows)}}, notes=["spaces separate words"])
