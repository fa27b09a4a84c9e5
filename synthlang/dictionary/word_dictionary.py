"""Word dictionaries: files in the format of MUSE, drawing by coverage, and the folder of a dictionary.

A MUSE file is UTF-8 and has a line ``source target`` for each pair, so a word with several translations has several
lines. Spaces or a tab separate the two words. Other white space and invisible characters are treated as in any text
(``sources.words``). An optional third column is the weight of the pair. The format is described at
https://github.com/facebookresearch/MUSE (ground-truth bilingual dictionaries). A folder has dictionary.txt in this
format, and manifest.json with the origin of the dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, field_validator

from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.files import atomic_file, claimed_folder, no_such, read_json, read_lines, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.references import UserFile
from synthlang.rng import key_of, random_bits
from synthlang.sources.base import nothing_in
from synthlang.sources.words import spaced, tidy
from synthlang.wording import plural

Pair = tuple[str, str]


def read_muse(path: Path) -> list[Pair]:
    """Read the distinct pairs of a MUSE file, in the order of its lines.

    Raises:
        InputError: The file cannot be read or has no pair, or a line does not have exactly two words.
    """
    pairs: dict[Pair, None] = {}
    for number, words in _lines(path):
        if len(words) != 2:
            if len(words) == 3 and _weight(words[2]) is not None:
                reason = "the third column is a weight, which only code_switch with translations: weighted uses"
                raise InputError(reason, path, number, hint="delete the third column", code="format")
            raise _not_a_pair(words, "a source word and a target word", path, number)
        pairs[words[0], words[1]] = None
    return list(pairs)


def read_weighted(path: Path) -> dict[Pair, float]:
    """Read the pairs of a file with their weights, such as the quality of a translation in PanLex.

    The third column is the weight. In a file of two columns each pair has the weight 1.

    Raises:
        InputError: The file cannot be read or has no pair, a line does not have two or three columns, a weight is not a
            number above 0, only some lines have a weight, or a pair has two weights.
    """
    weights: dict[Pair, float] = {}
    columns = 0
    for number, words in _lines(path):
        weight = _weight(words[2]) if len(words) == 3 else 1.0
        if len(words) not in (2, 3):
            raise _not_a_pair(words, "a source word, a target word and optionally a weight", path, number)
        if weight is None:
            reason = f"the weight must be a number above 0, not {words[2]!r}"
            raise InputError(reason, path, number, hint="correct the weight, or delete the line", code="range")
        if columns not in (0, len(words)):
            reason = "only some lines have a weight"
            raise InputError(reason, path, number, hint="give every line a weight or none", code="format")
        columns = len(words)
        if weights.setdefault((words[0], words[1]), weight) != weight:
            first = weights[words[0], words[1]]
            reason = f"the pair {' '.join(words[:2])!r} has two weights: {first:g} and {weight:g}"
            raise InputError(reason, path, number, hint="delete one of its lines", code="duplicate")
    return weights


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the columns of each line that is not blank. An empty file is an error."""
    empty = True
    for number, line in read_lines(path):
        if words := spaced(line):
            empty = False
            yield number, tidy(words, Counter())
    if empty:
        raise nothing_in("pair of words", path)


def _not_a_pair(words: Sequence[str], needed: str, path: Path, line: int) -> InputError:
    reason = f"the line must have {needed}, separated by spaces or tabs, but it has {plural(len(words), 'column')}"
    return InputError(reason, path, line, hint="correct or delete the line", code="format")


def _weight(text: str) -> float | None:
    """Parse a positive number, or return None."""
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0.0 < weight < inf else None


def write_muse(pairs: Iterable[Pair], path: Path) -> None:
    """Write pairs of words in the MUSE format, with a space between the words. An error does not name ``path``.

    Raises:
        InputError: A word is empty or contains white space.
        DiskError: The file cannot be written.
    """
    with atomic_file(path, "w") as handle:
        for source, target in pairs:
            for word in (source, target):
                if not is_one_word(word):
                    reason = f"the word {word!r} contains white space" if word else "a word is empty"
                    raise InputError(reason, hint="leave out the pair of this word", code="format")
            handle.write(f"{source} {target}\n")


def is_one_word(word: str) -> bool:
    """Return whether a MUSE file can hold the word."""
    return word.split() == [word]  # other programs that read the format separate words at any white space


class DictionarySpec(StrictModel):
    """Settings for drawing a dictionary."""

    coverage: float = Field(default=0.25, ge=0.0, le=1.0)
    """Share of the types with a translation that are drawn, 0 to 1."""
    by: Literal["type", "token"] = "type"
    """Unit of the share: ``type`` (ids, as in ALIGN-MLM) or ``token`` (running text)."""
    order: Literal["uniform", "frequent"] = "uniform"
    """Order of the types: drawn uniformly, or the most frequent first."""
    seed: int = Field(default=0, ge=0)
    """Seed of the uniform draw."""
    path: UserFile | dict[str, UserFile] | None = None
    """A MUSE file or the folder of a word dictionary (default: the copied tokens of a transliterated language).

    With more than two languages, give a file for each language but the first, by name.
    """

    @field_validator("path")
    @classmethod
    def _named(cls, value: str | dict[str, str] | None) -> str | dict[str, str] | None:
        empty = [name for name, file in value.items() if not file][:1] if isinstance(value, dict) else []
        if value is not None and (not value or empty):
            hint = "name a file or the folder of a dictionary"
            raise InputError("is empty", keys=empty, hint=hint, code="empty")
        return value

    @property
    def drawing(self) -> dict[str, Any]:
        """The settings of the draw for fingerprints and manifests, without the path of a file."""
        return self.model_dump(mode="json", exclude={"path"})


def draw_types(spec: DictionarySpec, names: NDArray[np.uint64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw types and return their sorted indices [n].

    Types are taken in the order of the spec. With ``by: type``, a share ``coverage`` of the types is taken, rounded to
    the nearest number of types. With ``by: token``, as many types are taken as are needed to reach this share of the
    tokens.

    Args:
        spec: Settings of the draw.
        names: Id or hash of each type, which does not depend on the other types, [types].
        counts: Count of each type, [types].
    """
    if spec.order == "uniform":
        ordered = np.argsort(random_bits(key_of("dictionary", spec.seed), names), kind="stable")
    else:
        ordered = np.argsort(-counts, kind="stable")
    if spec.by == "type":
        return np.sort(ordered[: round(spec.coverage * len(ordered))])
    before = np.cumsum(counts[ordered]) - counts[ordered]
    return np.sort(ordered[before < spec.coverage * counts.sum()])


def trained_types(counts: NDArray[np.int64], specials: ArrayLike) -> NDArray[np.int64]:
    """Return the sorted ids that occur in the training text, without ``specials``, [n] int64.

    ``counts`` [ids] holds the number of occurrences of each id.
    """
    ids = np.flatnonzero(counts > 0)
    return ids[~np.isin(ids, specials)].astype(np.int64)


FORMAT = 1
FILE = "dictionary.txt"
NO_SOURCE = "pairs left out because the source word is not in the text"
NO_TARGET = "pairs left out because the target word is not in the text"


@dataclass(frozen=True)
class WordDictionary:
    """Pairs of words: ``target[i]`` translates ``source[i]``. A word may have several translations."""

    source: tuple[str, ...]
    target: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.source) == len(self.target)

    def __len__(self) -> int:
        return len(self.source)

    @staticmethod
    def of(pairs: list[Pair]) -> WordDictionary:
        """Build a dictionary from pairs (source word, target word), in their order."""
        return WordDictionary(tuple(a for a, _ in pairs), tuple(b for _, b in pairs))

    @property
    def pairs(self) -> list[Pair]:
        """The pairs (source, target) in order."""
        return list(zip(self.source, self.target, strict=True))

    @cached_property
    def digest(self) -> str:
        """Fingerprint of the pairs and their order."""
        return fingerprint("pairs", pairs=[list(pair) for pair in self.pairs])

    def restrict(
        self, source: Mapping[str, int] | None, target: Mapping[str, int] | None
    ) -> tuple[WordDictionary, dict[str, int]]:
        """Return the pairs whose words occur in both texts, and the number of omitted pairs by reason.

        ``source`` and ``target`` are the word counts of the texts. None accepts any word.
        """
        kept: list[Pair] = []
        left_out: Counter[str] = Counter()
        for a, b in self.pairs:
            if source is not None and not source.get(a):
                left_out[NO_SOURCE] += 1
            elif target is not None and not target.get(b):
                left_out[NO_TARGET] += 1
            else:
                kept.append((a, b))
        return WordDictionary.of(kept), dict(left_out)

    @property
    def swapped(self) -> WordDictionary:
        """The dictionary with source and target words swapped."""
        return WordDictionary(self.target, self.source)

    def draw(self, spec: DictionarySpec, counts: Mapping[str, int] | None) -> WordDictionary:
        """Draw source words, each with all its translations.

        ``counts`` counts the source words in a text. Without it, only ``by: type`` with ``order: uniform`` is possible.
        The uniform draw hashes the word itself, so it does not depend on the other words.

        Raises:
            InputError: The settings need word counts, and there are none.
        """
        if counts is None and (spec.by == "token" or spec.order == "frequent"):
            key, value = ("by", "token") if spec.by == "token" else ("order", "frequent")
            reason, hint = f"{value!r} needs the word counts of a text", "name a text with --source"
            raise InputError(reason, f"--{key}", hint=hint, code="missing")
        types = list(dict.fromkeys(self.source))
        names = np.asarray([key_of("word", word) for word in types], np.uint64)
        amounts = np.asarray([1 if counts is None else counts.get(word, 0) for word in types], np.int64)
        chosen = {types[index] for index in draw_types(spec, names, amounts).tolist()}
        return WordDictionary.of([pair for pair in self.pairs if pair[0] in chosen])

    def coverage(self, counts: Mapping[str, int], side: str = "source") -> dict[str, float]:
        """Return the shares of the ``types`` and ``tokens`` (running words) of a text that one side covers, 0–1.

        ``counts`` maps the words of the text to their numbers of occurrences. ``side`` is ``source`` or ``target``.
        """
        words = set(self.source if side == "source" else self.target)
        running = sum(counts.values())
        types = sum(1 for word in words if counts.get(word, 0) > 0)
        tokens = sum(counts.get(word, 0) for word in words)
        return {"types": types / max(len(counts), 1), "tokens": tokens / max(running, 1)}


LEAST_USED = 0.25
"""Share of the pairs of a file below which the message about the used pairs is a warning."""


def told_use(used: int, total: int, swapped: int) -> str:
    """Return a message that ``used`` of the ``total`` pairs of a file are used. A share below LEAST_USED is a warning.

    ``swapped`` is the number of pairs that would be used if the columns of the file were swapped.

    >>> told_use(318, 1272, 640)
    '318 of 1,272 pairs of the dictionary are used (25 %); 640 if its columns are swapped, so check their order'
    """
    line = f"{used:,} of {total:,} pairs of the dictionary are used ({100 * used / max(total, 1):.0f} %)"
    turned = f"; {swapped:,} if its columns are swapped, so check their order" if swapped > used else ""
    return ("warning: only " if used < LEAST_USED * total else "") + line + turned


def write_words(
    dictionary: WordDictionary,
    folder: Path,
    spec: DictionarySpec,
    parents: Mapping[str, str],
    report: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the folder of a drawn dictionary and return its manifest, which includes ``parents`` and ``report``.

    Raises:
        InputError: The folder exists, another process writes it, or a word is empty or contains white space.
        DiskError: The folder cannot be written.
    """
    with claimed_folder(folder) as temporary:
        write_muse(dictionary.pairs, temporary / FILE)
        made_of = {"spec": spec.drawing, "parents": dict(parents)}
        manifest = {
            **report,
            **made_of,
            "fingerprint": fingerprint("word-dictionary", format=FORMAT, **made_of),
            "format": FORMAT,
            "pairs": len(dictionary),
            "source_words": len(set(dictionary.source)),
            "target_words": len(set(dictionary.target)),
            "sha256": sha256_file(temporary / FILE),
        }
        write_json(temporary / "manifest.json", manifest)
    return manifest


def read_words(folder: Path) -> tuple[WordDictionary, dict[str, Any]]:
    """Read a dictionary of words and its manifest from a folder that ``write_words`` wrote.

    Raises:
        InputError: A file is missing or cannot be read, or dictionary.txt differs from the manifest or is not in the
            MUSE format.
    """
    path = folder / FILE
    for file in (path, folder / "manifest.json"):
        if not file.is_file():
            raise no_such(file, hint="name the folder of a dictionary that synthlang dictionary wrote, or a MUSE file")
    manifest = read_json(folder / "manifest.json")
    if not isinstance(manifest, dict) or manifest.get("sha256") != sha256_file(path):
        reason = "does not match the checksum in manifest.json"
        hint = "sample the dictionary again with synthlang dictionary, or name this file, not its folder"
        raise InputError(reason, path, hint=hint, code="damaged")
    return WordDictionary.of(read_muse(path) if path.stat().st_size else []), manifest
