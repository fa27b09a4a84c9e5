"""Aligners: external programs that align parallel text, run in both directions.

eflomal (Östling & Tiedemann 2016, GPL-3) comes with the extra ``align``; fast_align (Dyer et al. 2013) is a program to
build from its source and to put on the PATH. Neither is imported: text goes in and Pharaoh files come out.
eflomal draws its random numbers from the operating system, so two runs differ in some links: the result is an
artifact that is made once, and what is trained on it names it by its content.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from synthlang.alignments.links import Links
from synthlang.alignments.pharaoh import read_pharaoh, write_pharaoh
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import atomic_folder

Program = Literal["eflomal", "fast_align"]
PROGRAMS: tuple[Program, ...] = get_args(Program)
FORWARD, REVERSE = "forward.txt", "reverse.txt"
FORMAT = 1  # raise when the same text is given to an aligner in another way


def align(program: Program, left: Corpus, right: Corpus, folder: Path) -> None:
    """Write ``folder`` (which must not exist) with ``forward.txt`` and ``reverse.txt``, a line for each sentence pair.

    Pairs with an empty side are not given to the program and have no link. Raises InputError if the program is
    not there or fails.
    """
    command = find_aligner(program)
    rows = np.flatnonzero((left.lengths > 0) & (right.lengths > 0))
    if not len(rows):
        raise InputError("parallel text has no sentence pair with words on both sides")
    texts = [corpus.take(rows).texts() for corpus in (left, right)]
    with atomic_folder(folder) as temporary:
        _RUNNERS[program](command, texts[0], texts[1], temporary)
        for path in (temporary / FORWARD, temporary / REVERSE):
            links = read_pharaoh(path)
            if len(links) != len(rows):
                raise InputError(f"{program} wrote {len(links)} lines for {len(rows)} sentence pairs")
            whole = Links.build(
                rows[links.sentence], links.left.astype(np.int64), links.right.astype(np.int64), links.sure, len(left)
            )
            write_pharaoh(path, whole)


def find_aligner(program: Program) -> str:
    """Where the program is; InputError that says how to get it."""
    name = {"eflomal": "eflomal-align", "fast_align": "fast_align"}[program]
    beside = Path(sys.executable).parent / name  # a virtual environment need not be on the PATH
    found = shutil.which(name) or (str(beside) if beside.is_file() else None)
    if found is None:
        how = {
            "eflomal": "pip install 'synthlang[align]' or pip install eflomal (it is built with a C compiler)",
            "fast_align": "build it from its source and put the program fast_align on the PATH",
        }[program]
        raise InputError(f"the aligner {program} is not installed: {how}; or give a file of links")
    return found


def _eflomal(command: str, left: list[str], right: list[str], folder: Path) -> None:
    paths = [folder / "left.txt", folder / "right.txt"]
    for path, lines in zip(paths, (left, right), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = ["-s", str(paths[0]), "-t", str(paths[1]), "-f", str(folder / FORWARD), "-r", str(folder / REVERSE)]
    _run([command, *files])
    for path in paths:
        path.unlink()


def _fast_align(command: str, left: list[str], right: list[str], folder: Path) -> None:
    path = folder / "text.txt"
    # a word of three bars would be a separator
    pairs = (f"{a.replace('|||', '|')} ||| {b.replace('|||', '|')}\n" for a, b in zip(left, right, strict=True))
    path.write_text("".join(pairs), encoding="utf-8")
    # the settings its authors recommend: diagonal, optimised tension, variational Bayes
    for output, options in ((FORWARD, []), (REVERSE, ["-r"])):
        (folder / output).write_bytes(_run([command, "-i", str(path), "-d", "-o", "-v", *options]))
    path.unlink()


_RUNNERS: dict[Program, Callable[[str, list[str], list[str], Path], None]] = {
    "eflomal": _eflomal,
    "fast_align": _fast_align,
}


def _run(command: Sequence[str]) -> bytes:
    try:
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  a program the user named
    except OSError as error:
        raise InputError(f"cannot run: {error.strerror or error}", command[0]) from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        raise InputError(f"failed with exit code {done.returncode}: {said[-1]}", command[0])
    return done.stdout
