"""Word dictionaries: files in the format of MUSE, how a dictionary is drawn by coverage, and its folder.

A MUSE file has a line ``source target``, several lines for a word with several translations; the two words have spaces
or a tab between them, so neither may hold white space. A third column, where it is read, is the weight of the pair.
UTF-8. Format: https://github.com/facebookresearch/MUSE (ground-truth bilingual dictionaries). A folder holds
dictionary.txt (in this format) and manifest.json, which says what the dictionary comes from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, field_validator

from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.files import atomic_file, claimed_folder, read_json, read_lines, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.references import OmitDefaultFromHash, UserFile, is_omitted
from synthlang.rng import key_of, random_bits
from synthlang.scripts import SPECIAL_TOKENS

Pair = tuple[str, str]


def read_muse(path: Path) -> list[Pair]:
    """The pairs of a file in its order, each once; blank lines are skipped.

    Raises InputError with the line for one that does not hold exactly two words: a damaged
    file must not become a smaller dictionary in silence.
    """
    pairs: dict[Pair, None] = {}
    for number, words in _lines(path):
        if len(words) != 2:
            if len(words) == 3 and _weight(words[2]) is not None:
                told = "the third column is a number; weights are read by code_switch with translations: weighted only"
                raise InputError(f"{told}, so delete it, or the line", path, number)
            raise _not_a_pair(words, "", path, number)
        pairs[words[0], words[1]] = None
    return list(pairs)


def read_weighted(path: Path) -> dict[Pair, float]:
    """The pairs of a file with their weights, the third column, such as the quality of a translation in PanLex.

    A file without weights gives each pair 1. Raises InputError with the line for one that holds neither two words nor
    these and a number above 0, where some lines have a weight and some have none, and for a pair that comes again with
    another weight.
    """
    weights: dict[Pair, float] = {}
    columns = 0
    for number, words in _lines(path):
        weight = _weight(words[2]) if len(words) == 3 else 1.0
        if len(words) not in (2, 3) or weight is None:
            raise _not_a_pair(words, ", and perhaps a weight, a number above 0", path, number)
        if columns not in (0, len(words)):
            raise InputError("some lines have a weight and some have none; give all of them one", path, number)
        columns = len(words)
        if weights.setdefault((words[0], words[1]), weight) != weight:
            raise InputError(f"the pair {words[0]} {words[1]} has two weights; keep one line of it", path, number)
    return weights


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number and the columns of each line that is not blank; InputError if there is none."""
    empty = True
    for number, line in read_lines(path):
        if words := line.split():
            empty = False
            yield number, words
    if empty:
        raise InputError("holds no pair of words", path)


def _not_a_pair(words: Sequence[str], also: str, path: Path, line: int) -> InputError:
    told = f"a line holds a source word and a target word{also}, here are {len(words)} words; mend or delete it"
    return InputError(told, path, line)


def _weight(text: str) -> float | None:
    """A number above 0; None for anything else."""
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if 0.0 < weight < inf else None


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


SPECIAL_IDS = tuple(range(len(SPECIAL_TOKENS)))  # of a vocabulary that was trained here


class DictionarySpec(StrictModel):
    """How a dictionary is drawn, and from what.

    coverage   share of the types that have a translation which it holds, 0–1
    by         what the share counts: ``type`` (ids, as ALIGN-MLM) or ``token`` (running text)
    order      which types come first: drawn uniformly, or the most frequent ones
    ids        of a run: among which ids of the first language it is drawn. ``lower-half`` of its vocabulary: what the
               released code of ALIGN-MLM does for DICT-MLM, whose quarter is therefore an eighth, of frequent types
    path       a MUSE file or the folder of a word dictionary; with several languages a file for each but the
               first, by its name. Default: the copies of a transliterated language
    """

    coverage: float = Field(default=0.25, ge=0.0, le=1.0)
    by: Literal["type", "token"] = "type"
    order: Literal["uniform", "frequent"] = "uniform"
    ids: Annotated[Literal["all", "lower-half"], OmitDefaultFromHash()] = "all"
    seed: int = Field(default=0, ge=0)
    path: UserFile | dict[str, UserFile] | None = None

    @field_validator("path")
    @classmethod
    def _named(cls, value: str | dict[str, str] | None) -> str | dict[str, str] | None:
        if value is not None and (not value or (isinstance(value, dict) and not all(value.values()))):
            raise ValueError("must name a file or a folder, or for each language one")
        return value

    @property
    def drawing(self) -> dict[str, Any]:
        """How it is drawn, for fingerprints and manifests: a file counts by its content, not by its path."""
        unused = {name for name in type(self).model_fields if is_omitted(self, name)}
        return self.model_dump(mode="json", exclude={"path"} | unused)


def draw_types(spec: DictionarySpec, names: NDArray[np.uint64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indices [n] of the drawn types, sorted.

    names    [types] what a type is known by, whatever else is there: its id, or a hash of its form
    counts   [types] how often each occurs

    Types are taken in the order of the spec while the share stays at most ``coverage``
    (types) or until it is reached (tokens).
    """
    if spec.order == "uniform":
        ordered = np.argsort(random_bits(key_of("dictionary", spec.seed), names), kind="stable")
    else:
        ordered = np.argsort(-counts, kind="stable")
    if spec.by == "type":
        return np.sort(ordered[: round(spec.coverage * len(ordered))])
    before = np.cumsum(counts[ordered]) - counts[ordered]
    return np.sort(ordered[before < spec.coverage * counts.sum()])


def trained_types(counts: NDArray[np.int64], specials: ArrayLike = SPECIAL_IDS) -> NDArray[np.int64]:
    """The ids that occur in the text the model trains on, sorted; ``specials`` left out (default: ours, 0–4)."""
    ids = np.flatnonzero(counts > 0)
    return ids[~np.isin(ids, specials)].astype(np.int64)


FORMAT = 1
FILE = "dictionary.txt"


@dataclass(frozen=True)
class WordDictionary:
    """Pairs of words: ``source[i]`` is translated by ``target[i]``; a word may have several translations."""

    source: tuple[str, ...]
    target: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.source) == len(self.target)

    def __len__(self) -> int:
        return len(self.source)

    @staticmethod
    def of(pairs: list[Pair]) -> WordDictionary:
        return WordDictionary(tuple(a for a, _ in pairs), tuple(b for _, b in pairs))

    @property
    def pairs(self) -> list[Pair]:
        return list(zip(self.source, self.target, strict=True))

    @cached_property
    def digest(self) -> str:
        return fingerprint("pairs", pairs=[list(pair) for pair in self.pairs])

    def restrict(
        self, source: Mapping[str, int] | None, target: Mapping[str, int] | None
    ) -> tuple[WordDictionary, dict[str, int]]:
        """The pairs whose words occur in both texts (counts by word; None: any word), and how many do not."""
        kept: list[Pair] = []
        left_out: Counter[str] = Counter()
        for a, b in self.pairs:
            if source is not None and not source.get(a):
                left_out["pairs left out, source word not in the text"] += 1
            elif target is not None and not target.get(b):
                left_out["pairs left out, target word not in the text"] += 1
            else:
                kept.append((a, b))
        return WordDictionary.of(kept), dict(left_out)

    def draw(self, spec: DictionarySpec, counts: Mapping[str, int] | None) -> WordDictionary:
        """The share of the spec, counted over the source words here; a drawn word keeps all its translations.

        ``counts`` says how often each source word occurs; without it neither running text nor
        frequency are known, so only ``by: type`` with ``order: uniform`` can be drawn. The
        uniform draw hashes the word itself: it is the same whatever other words there are.
        """
        if counts is None and (spec.by == "token" or spec.order == "frequent"):
            wanted = "coverage by token" if spec.by == "token" else "the most frequent words"
            raise InputError(f"{wanted} needs the counts of a text; name one with --source")
        types = list(dict.fromkeys(self.source))
        names = np.asarray([key_of("word", word) for word in types], np.uint64)
        amounts = np.asarray([1 if counts is None else counts.get(word, 0) for word in types], np.int64)
        chosen = {types[index] for index in draw_types(spec, names, amounts).tolist()}
        return WordDictionary.of([pair for pair in self.pairs if pair[0] in chosen])

    def coverage(self, counts: Mapping[str, int], side: str = "source") -> dict[str, float]:
        """Share of the types and of the running words of a text that the words of one side are."""
        words = set(self.source if side == "source" else self.target)
        running = sum(counts.values())
        types = sum(1 for word in words if counts.get(word, 0) > 0)
        tokens = sum(counts.get(word, 0) for word in words)
        return {"types": types / max(len(counts), 1), "tokens": tokens / max(running, 1)}


def write_words(
    dictionary: WordDictionary,
    folder: Path,
    spec: DictionarySpec,
    parents: Mapping[str, str],
    report: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the folder of a drawn dictionary and return its manifest; ``report`` goes into it."""
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
    """A saved dictionary and its manifest; InputError if the two differ."""
    manifest, path = read_json(folder / "manifest.json"), folder / FILE
    if not path.is_file():
        raise InputError("no such file; is this the folder of a word dictionary?", path)
    if not isinstance(manifest, dict) or manifest.get("sha256") != sha256_file(path):
        raise InputError("differs from its manifest; make the dictionary again", path)
    return WordDictionary.of(read_muse(path) if path.stat().st_size else []), manifest
