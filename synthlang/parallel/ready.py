"""Results of aligners: in the store of a run, or ready beside the text.

An aligner gives other word alignments in each run, so its result is kept by a fingerprint of the program and the text.
``synthlang data fetch`` keeps it in the folder ``.alignments`` beside the text, where all studies find it.
"""

from __future__ import annotations

from pathlib import Path

from synthlang.checksums import damaged_files
from synthlang.fingerprint import fingerprint
from synthlang.parallel.aligners import FORMAT, Program, align
from synthlang.parallel.text import ParallelText
from synthlang.progress import Say
from synthlang.store import Store

KIND = "alignment"
READY = ".alignments"
"""Name of the folder beside a text."""


def alignment_name(program: Program, text: str) -> str:
    """Return the fingerprint of the result of an aligner. ``text`` is the fingerprint of the parallel text."""
    return fingerprint(KIND, format=FORMAT, program=program, text=text)


def stored_alignment(store: Store, program: Program, text: ParallelText, say: Say) -> Path:
    """Return the folder of the word alignments in both directions in a store. The aligner runs if they are missing.

    ``say`` shows a message when the aligner runs.

    Raises:
        InputError: The aligner is not installed or fails, no sentence pair has words on both sides, or the record of
            the checksums of a stored result is damaged.
        DiskError: The store cannot be written.
    """

    def build(folder: Path) -> None:
        say(f"aligning {len(text):,} sentence pairs with {program}, in both directions")
        align(program, text.left, text.right, folder, text.path)

    return store.obtain(KIND, alignment_name(program, text.fingerprint), build)


def ready_store(left: Path) -> Store:
    """Return the store beside a text. ``left`` is its first file."""
    return Store(left.parent / READY)


def ready_alignment(left: Path, program: Program, text: str) -> Path | None:
    """Return the folder of word alignments that are ready beside a text and not damaged, or None.

    Args:
        left: The first file of the text.
        program: The aligner.
        text: Fingerprint of the parallel text.

    Raises:
        InputError: The record of the checksums of the alignments is damaged.
    """
    path = ready_store(left).path(KIND, alignment_name(program, text))
    return path if path.is_dir() and not damaged_files(path) else None
