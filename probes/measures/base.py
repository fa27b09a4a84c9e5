"""The base class of the settings of a probe. The module does not import torch."""

from __future__ import annotations

from typing import ClassVar

from probes.results.declared import Tree
from synthlang.config import StrictModel


class ProbeSettings(StrictModel):
    """Base class for the settings of a probe. Its class attributes describe the probe.

    Attributes:
        title: The heading of the probe on a page.
        about: A description of the measurement, in one or two sentences.
        run: The function ``module:function`` that measures. It maps (ProbeInput, Report) to a ProbeResult.
        check: The function ``module:function`` that checks the texts besides the sentence pairs, or "" for a probe
            without such texts. It is called as ``check(settings, text, other, natural)``. ``text`` is the spec of the
            pretraining text in the source language, or None if it is not known. ``other`` is the spec of the
            pretraining text in a natural other language, or None if there is none. ``natural`` is True if the other
            language is natural. The function raises an InputError with keys relative to these settings if a text is
            unknown, cannot be opened or lacks the split.
        measures: The numbers of the result that become rows of the table of measurements.
        reads_sentences: True if the probe needs sentence pairs.
        compares_vectors: True if the probe needs models with the same hidden size.
    """

    title: ClassVar[str]
    about: ClassVar[str]
    run: ClassVar[str]
    check: ClassVar[str] = ""
    measures: ClassVar[Tree] = {}
    reads_sentences: ClassVar[bool] = True
    compares_vectors: ClassVar[bool] = False

    def check_installed(self) -> None:
        """Raise InputError if the settings need an optional package that is missing."""

    @property
    def needs_links(self) -> bool:
        """True if the probe reads word alignments of the sentence pairs."""
        return self.reads_sentences

    @property
    def fits(self) -> bool:
        """True if the probe fits a map on sentence pairs outside the measured pairs."""
        return False
