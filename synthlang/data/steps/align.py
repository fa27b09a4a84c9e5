"""The step ``align``: word alignments of parallel text, ready for the studies that read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from synthlang.data.steps.base import BaseStep, StepRecord, Tools
from synthlang.parallel.aligners import (
    KIND,
    Program,
    aligner_version,
    alignment_name,
    find_aligner,
    ready_store,
    stored_alignment,
)
from synthlang.parallel.text import read_parallel, text_fingerprint

RATES = {"fast_align": 294.0, "eflomal": 918.0}
"""Sentence pairs per second of CPU time by aligner, for both directions (docs/data.md has the basis of each rate)."""


class Align(BaseStep):
    """Align the words of parallel text as a study does, so that studies find the alignment ready."""

    unit, is_parallel = "sentence pairs", False
    kind: Literal["align"]
    """Word alignments in both directions."""
    program: Program
    """The aligner: ``fast_align`` or ``eflomal``."""

    @property
    def about(self) -> str:
        return f"align words with {self.program}"

    @property
    def rate(self) -> float:
        return RATES[self.program]

    def check(self) -> str:
        find_aligner(self.program, instead="")
        return aligner_version(self.program)

    def folder(self, paths: Sequence[Path], name: str) -> Path:
        """Return the folder of the alignment of two files. ``name`` is the fingerprint of the alignment."""
        return ready_store(paths[0]).path(KIND, name)

    def name(self, paths: Sequence[Path]) -> str:
        """Return the fingerprint of the alignment of two files, which covers the text and the name of the aligner.

        Raises:
            InputError: A file cannot be read.
        """
        return alignment_name(self.program, text_fingerprint(paths))

    def run(self, paths: Sequence[Path], tools: Tools) -> StepRecord:
        """Align two files whose words are separated by spaces, unless their alignment is stored already.

        Raises:
            InputError: A file cannot be read, the files have different numbers of lines, no sentence pair has words
                on both sides, or the aligner is not installed or fails.
            DiskError: The alignment cannot be written.
        """
        text = read_parallel(paths[0], paths[1])
        tools.report(self.about, 0, 1, f"{len(text):,} sentence pairs")
        stored_alignment(ready_store(paths[0]), self.program, text, tools.say)
        tools.report(self.about, 1, 1, "")
        name = alignment_name(self.program, text.fingerprint)
        return self.record(aligner_version(self.program), name, {"sentence pairs": len(text)})
