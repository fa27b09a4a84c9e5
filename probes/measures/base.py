"""What the settings of a probe say of it; without torch."""

from __future__ import annotations

from typing import ClassVar

from synthlang.config import StrictModel


class ProbeSettings(StrictModel):
    """Settings of one probe.

    title, about      its heading on a page, and what it measures
    run               ``module:function`` of what measures it: (ProbeInput, Report) → ProbeResult
    reads_sentences   whether it needs sentence pairs
    """

    title: ClassVar[str]
    about: ClassVar[str]
    run: ClassVar[str]
    reads_sentences: ClassVar[bool] = True

    @property
    def fits(self) -> bool:
        """Whether it fits something on sentence pairs that are not measured."""
        return False
