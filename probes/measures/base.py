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
        check: The function ``module:function`` that raises an InputError if a text besides the sentence pairs is
            missing, or "". Its first argument is the settings. The second is the spec of the pretraining text in the
            source language (None if it is not known), and the third the spec of the pretraining text in a natural other
            language (None if there is none). The fourth is True if the other language is natural. The keys of its
            errors are relative to these settings.
        measures: The numbers of the result that become rows of the table of measurements.
        reads_sentences: True if the probe needs sentence pairs.
    """

    title: ClassVar[str]
    about: ClassVar[str]
    run: ClassVar[str]
    check: ClassVar[str] = ""
    measures: ClassVar[Tree] = {}
    reads_sentences: ClassVar[bool] = True

    def check_installed(self) -> None:
        """Raise InputError if the settings need an optional package that is missing."""

    @property
    def needs_links(self) -> bool:
        """True if the probe reads word alignments of the sentence pairs."""
        return self.reads_sentences

    @property
    def fits(self) -> bool:
        """True if the probe fits a map on sentence pairs outside the measured ones."""
        return False
