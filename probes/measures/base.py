"""The base class of the settings of a probe, without torch."""

from __future__ import annotations

from typing import ClassVar

from probes.results.declared import Tree
from synthlang.config import StrictModel


class ProbeSettings(StrictModel):
    """Settings of one probe, and everything that other parts of the program know about it.

    Attributes:
        title: The heading of the probe on a page.
        about: What the probe measures, in one or two sentences.
        run: ``module:function`` of the function that measures: (ProbeInput, Report) → ProbeResult.
        measures: The numbers of the result that are measures. Tables, reports and claims read no others.
        reads_sentences: Whether the probe needs sentence pairs.
    """

    title: ClassVar[str]
    about: ClassVar[str]
    run: ClassVar[str]
    measures: ClassVar[Tree] = {}
    reads_sentences: ClassVar[bool] = True

    def check_installed(self) -> None:
        """Raise InputError, with keys relative to the settings, if an optional package that they need is missing."""

    @property
    def fits(self) -> bool:
        """Whether the probe fits something on sentence pairs that are not measured."""
        return False
