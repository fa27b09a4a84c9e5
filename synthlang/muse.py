"""Dictionaries in the format of MUSE: a line ``source target``, several lines for a word with several translations.

The two words have spaces or a tab between them, so neither may hold white space. UTF-8.
Format: https://github.com/facebookresearch/MUSE (ground-truth bilingual dictionaries).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from synthlang.errors import InputError
from synthlang.files import atomic_file, read_lines

Pair = tuple[str, str]


def read_muse(path: Path) -> list[Pair]:
    """The pairs of a file in its order, each once; blank lines are skipped.

    Raises InputError with the line for one that does not hold exactly two words: a damaged
    file must not become a smaller dictionary in silence.
    """
    pairs: dict[Pair, None] = {}
    for number, line in read_lines(path):
        words = line.split()
        if words and len(words) != 2:
            raise InputError(
                f"a line holds a source word and a target word, here are {len(words)} words; mend or delete it",
                path,
                number,
            )
        if words:
            pairs[words[0], words[1]] = None
    if not pairs:
        raise InputError("holds no pair of words", path)
    return list(pairs)


def write_muse(pairs: Iterable[Pair], path: Path) -> None:
    """Write pairs, a space between the words; ``read_muse`` gives them back.

    Raises InputError for a word that is empty or holds white space: no reader could tell the two apart.
    """
    with atomic_file(path, "w") as handle:
        for source, target in pairs:
            for word in (source, target):
                if not is_one_word(word):
                    raise InputError(f"the word {word!r} is empty or holds white space; leave it out", path)
            handle.write(f"{source} {target}\n")


def is_one_word(word: str) -> bool:
    """Whether a MUSE file can hold the word."""
    return word.split() == [word]
