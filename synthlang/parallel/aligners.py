"""Aligners: external programs that align parallel text in both directions, and symmetrisation of the two alignments.

eflomal (Östling & Tiedemann 2016, GPL-3) comes with the extra ``align``. fast_align (Dyer et al. 2013) is built from
its source and put on the PATH. Both run as separate processes that read text and write Pharaoh files. eflomal
takes its random numbers from the operating system, so two runs differ in some alignments. Results are therefore kept by
a fingerprint of the program and the text, and later artifacts refer to their content. They are in the store of a run,
or in the folder ``.alignments`` beside the text, where ``synthlang data fetch`` keeps them for all studies.

Symmetrisation (Koehn et al. 2005, IWSLT, "Edinburgh System Description", after Och & Ney 2003):

    intersection          the alignments that both directions have
    union                 the alignments that either direction has
    grow-diag             the intersection, and alignments of the union that are next to an existing one (horizontally,
                          vertically or diagonally) if the left or right word has no alignment yet
    grow-diag-final       grow-diag, and alignments of forward, then of reverse, if the left or right word has none yet
    grow-diag-final-and   grow-diag, and alignments of forward, then of reverse, if both words have none yet

The result depends on the order. A point is an alignment of a left and a right word. Points are visited by left word,
then by right word, in sweeps until no point is added, and a new point counts at once.
"""

from __future__ import annotations

import heapq
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import numpy as np

from synthlang.checksums import damaged_files
from synthlang.corpus import FORM, Corpus
from synthlang.distribution import install_command
from synthlang.errors import InputError
from synthlang.files import atomic_folder
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.parallel.links import Links, read_pharaoh, write_pharaoh
from synthlang.parallel.text import ParallelText
from synthlang.progress import Say
from synthlang.store import Store
from synthlang.wording import plural

Program = Literal["eflomal", "fast_align"]
PROGRAMS: tuple[Program, ...] = get_args(Program)
FORWARD, REVERSE = "forward.txt", "reverse.txt"
FORMAT = 1  # raise when the same text is passed to an aligner in another form


def align(program: Program, left: Corpus, right: Corpus, folder: Path, text: Path | None = None) -> None:
    """Align a text, and write ``forward.txt`` and ``reverse.txt`` into a new ``folder``, one line per sentence pair.

    Pairs with an empty side have no alignment.

    Args:
        program: The aligner.
        left: The left sentences.
        right: The right sentences, whose row n translates row n of ``left``.
        folder: The folder to create.
        text: The file of the text, for the error.

    Raises:
        InputError: The program is not installed or fails, no sentence pair has words on both sides, or the folder
            exists.
        DiskError: The folder cannot be written.
    """
    command = find_aligner(program)
    rows = np.flatnonzero((left.lengths > 0) & (right.lengths > 0))
    if not len(rows):
        hint = "write each sentence and its translation in the same line"
        raise InputError("no sentence pair has words on both sides", text, hint=hint, code="empty")
    texts = [_unspaced(corpus.take(rows)).texts() for corpus in (left, right)]
    run = _eflomal if program == "eflomal" else _fast_align
    with atomic_folder(folder) as temporary, TemporaryDirectory() as given:
        run(command, texts[0], texts[1], Path(given), temporary)
        for path in (temporary / FORWARD, temporary / REVERSE):
            hint = "run the command again, or use another aligner"
            try:
                links = read_pharaoh(path)
            except InputError as error:
                reason = f"{program} wrote word alignments that cannot be read: {error.reason}"
                raise InputError(reason, hint=hint, code="failed") from error
            if len(links) != len(rows):
                reason = f"{program} wrote {plural(len(links), 'line')} for {plural(len(rows), 'sentence pair')}"
                raise InputError(reason, hint=hint, code="failed")
            whole = Links.build(
                rows[links.sentence], links.left.astype(np.int64), links.right.astype(np.int64), links.sure, len(left)
            )
            write_pharaoh(path, whole)


def _unspaced(corpus: Corpus) -> Corpus:
    """Replace white space inside words, at which eflomal would split them."""
    form = corpus.form.map_names(re.sub(r"\s", "\u2581", name) for name in corpus.form.names or ())
    return replace(corpus, columns={**corpus.columns, FORM: form})


def find_aligner(program: Program, instead: str = ", or give a file of word alignments") -> str:
    """Return the path of an aligner. The hint of the error ends in ``instead``.

    Raises:
        InputError: The aligner is not installed. The hint has the command that installs it.
    """
    name, how = {
        "eflomal": (
            "eflomal-align",
            f"run {install_command('align')}, or pip install eflomal (which needs a C compiler)",
        ),
        "fast_align": ("fast_align", "build it (https://github.com/clab/fast_align) and put fast_align on the PATH"),
    }[program]
    beside = Path(sys.executable).parent / name  # a virtual environment need not be on the PATH
    found = shutil.which(name) or (str(beside) if beside.is_file() else None)
    if found is None:
        raise InputError(f"the aligner {program} is not installed", hint=f"{how}{instead}", code="extra")
    return found


def aligner_version(program: Program) -> str:
    """Return the name and the version of an installed aligner, or the SHA-256 of its file if it has no version.

    Raises:
        InputError: The aligner is not installed.
    """
    try:
        return f"{program} {version(program)}"
    except PackageNotFoundError:
        return f"{program}, SHA-256 {sha256_file(Path(find_aligner(program)))}"


def _eflomal(command: str, left: list[str], right: list[str], texts: Path, out: Path) -> None:
    paths = [texts / "left.txt", texts / "right.txt"]
    for path, lines in zip(paths, (left, right), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = {"-s": paths[0], "-t": paths[1], "-f": out / FORWARD, "-r": out / REVERSE}
    _run([command, *(word for option, path in files.items() for word in (option, str(path)))])


def _fast_align(command: str, left: list[str], right: list[str], texts: Path, out: Path) -> None:
    path = texts / "text.txt"
    # Three bars inside a word would be read as the separator.
    pairs = (f"{a.replace('|||', '|')} ||| {b.replace('|||', '|')}\n" for a, b in zip(left, right, strict=True))
    path.write_text("".join(pairs), encoding="utf-8")
    # Its authors recommend these settings: diagonal, optimised tension, variational Bayes.
    for name, options in ((FORWARD, []), (REVERSE, ["-r"])):
        (out / name).write_bytes(_run([command, "-i", str(path), "-d", "-o", "-v", *options]))


def _run(command: Sequence[str]) -> bytes:
    try:
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  a program the user named
    except OSError as error:
        reason, hint = f"cannot be run: {error.strerror or error}", "install the aligner again"
        raise InputError(reason, command[0], hint=hint, code="failed") from error
    if done.returncode:
        output = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason, hint = f"failed with exit code {done.returncode}", "free memory, or use another aligner"
        if done.returncode < 0:
            reason = f"was stopped by signal {-done.returncode}"
        elif output:
            reason, hint = f"{reason}: {output[-1]}", "correct the fault in this message, or use another aligner"
        raise InputError(reason, command[0], hint=hint, code="failed")
    return done.stdout


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


Method = Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"]
METHODS: tuple[Method, ...] = get_args(Method)
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

Point = tuple[int, int]


def symmetrise(forward: Links, reverse: Links, method: Method = "intersection") -> Links:
    """Join two alignments of the same sentence pairs. The result has sure alignments only.

    Args:
        forward: The alignments of the forward direction, as left-right pairs.
        reverse: The alignments of the reverse direction, also as left-right pairs.
        method: One of METHODS (see the top of the module).
    """
    assert len(forward) == len(reverse), "both are of one text"
    return Links.of([_joined(forward.of_pair(i), reverse.of_pair(i), method) for i in range(len(forward))])


def _joined(forward: list[Point], reverse: list[Point], method: Method) -> set[Point]:
    both, either = set(forward) & set(reverse), set(forward) | set(reverse)
    if method in ("intersection", "union"):
        return both if method == "intersection" else either
    growing = _Growing(both)
    growing.grow(either)
    for links in () if method == "grow-diag" else (forward, reverse):
        growing.add_free(links, both_free=method == "grow-diag-final-and")
    return growing.points


class _Growing:
    """The alignment of one sentence pair during symmetrisation."""

    def __init__(self, points: set[Point]) -> None:
        self.points: set[Point] = set()
        self.left: set[int] = set()
        self.right: set[int] = set()
        for point in points:
            self._add(point)

    def _add(self, point: Point) -> None:
        self.points.add(point)
        self.left.add(point[0])
        self.right.add(point[1])

    def grow(self, union: set[Point]) -> None:
        """Add neighbours of points if they are in ``union``, in sweeps until no point is added."""
        current, later = sorted(self.points), list[Point]()
        while current:
            point = heapq.heappop(current)
            for down, right in NEIGHBOURS:
                near = (point[0] + down, point[1] + right)
                # A point that was added has no free word, so it is not added again.
                is_free = near[0] not in self.left or near[1] not in self.right
                if near in union and is_free:
                    self._add(near)
                    # This sweep still reaches later points. Earlier points wait for the next sweep.
                    heapq.heappush(current if near > point else later, near)
            if not current:
                current, later = later, []

    def add_free(self, links: list[Point], both_free: bool) -> None:
        """Add alignments in order if one of their words is unaligned, or both words with ``both_free``."""
        for point in sorted(links):
            free = (point[0] not in self.left, point[1] not in self.right)
            if all(free) if both_free else any(free):
                self._add(point)
