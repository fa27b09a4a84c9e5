"""Pharaoh files: a line for each sentence pair, ``i-j`` for each link, ``ipj`` for a possible one.

fast_align, eflomal, awesome-align, simalign and Moses write them counting from 0; gold standards often count from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from synthlang.alignments.links import Links
from synthlang.errors import InputError
from synthlang.files import atomic_file, read_lines

LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")
FEW = 1000  # lines, by which a file of something else is told


def read_pharaoh(path: Path, first: int = 0) -> Links:
    """The links of a file whose first word is number ``first`` (0 or 1); a blank line is a pair without a link.

    Raises InputError, with the line, for anything that is no link and for a 0 where words count from 1.
    """
    sentence, left, right, sure = [], [], [], []
    number = 0
    for number, line in read_lines(path):
        for a, b, kind in _links(line, first, path, number):
            sentence.append(number - 1)
            left.append(a)
            right.append(b)
            sure.append(kind == "-")
    places, lefts, rights = (np.asarray(column, np.int64) for column in (sentence, left, right))
    return Links.build(places, lefts, rights, np.asarray(sure, bool), number)


def check_pharaoh(path: Path, first: int = 0) -> None:
    """Raise InputError, as ``read_pharaoh`` does, for anything in the first lines that is no link."""
    for number, line in islice(read_lines(path), FEW):
        list(_links(line, first, path, number))


def _links(line: str, first: int, path: Path, number: int) -> Iterator[tuple[int, int, str]]:
    """Left and right word of each link of a line, and whether it is sure (``-``) or possible (``p``)."""
    for token in line.split():
        match = LINK.fullmatch(token)
        if match is None:
            raise InputError(f"{token!r} is no link; links are i-j, or ipj for a possible one", path, number)
        a, b = int(match[1]) - first, int(match[3]) - first
        if min(a, b) < 0:
            raise InputError(f"{token!r}: there is no word 0 where words count from 1; use first: 0", path, number)
        yield a, b, match[2]


def read_counted(path: Path, first: int | None, option: str) -> Links:
    """``read_pharaoh``; with ``first`` None words count from 0, and a file that does not show it is refused.

    A file that counts from 1 has no word 0, so without one InputError asks for ``option`` of the command.
    """
    links = read_pharaoh(path, first or 0)
    if first is None and len(links.left) and min(links.left.min(), links.right.min()) > 0:
        raise InputError(f"has no word 0: say whether its words count from 0 or from 1 ({option})", path)
    return links


def write_pharaoh(path: Path, links: Links, first: int = 0) -> None:
    """Write links, atomically."""
    marks = np.where(links.sure, "-", "p").tolist()
    left, right = (links.left + first).tolist(), (links.right + first).tolist()
    texts = [f"{a}{mark}{b}" for a, mark, b in zip(left, marks, right, strict=True)]
    bounds = links.offsets.tolist()
    with atomic_file(path, "w") as handle:
        handle.writelines(" ".join(texts[a:b]) + "\n" for a, b in pairwise(bounds))
