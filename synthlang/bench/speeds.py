"""Words per second of each kind of work, each beside a plain loop."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synthlang.bench import baselines
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.language import parse_language
from synthlang.sources.conllu import ConlluSource
from synthlang.sources.text import TextSource

SOME_BATCHES = 50  # in memory at a time
REORDER = {"name": "french-order", "transforms": [{"kind": "reorder", "model": "fr"}]}


def speed_of(work: Callable[[], object], words: int, repeats: int) -> dict[str, Any]:
    """Words per second: the median of the repeats, and all of them."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append(round(words / (time.perf_counter() - start)))
    return {"words": words, "words_per_second": round(statistics.median(found)), "repeats": found}


def compared(
    work: Callable[[], object], loop: Callable[[], object], words: int, repeats: int, what: str
) -> dict[str, Any]:
    """The speed of ``work`` and its ratio to that of the plain loop ``what``."""
    ours, theirs = speed_of(work, words, repeats), speed_of(loop, words, repeats)
    baseline = {"what": what, **theirs}
    return {**ours, "baseline": baseline, "ratio": round(ours["words_per_second"] / theirs["words_per_second"], 3)}


def words_in(batches: list[Corpus]) -> int:
    """Words of all batches."""
    return sum(int(batch.offsets[-1]) for batch in batches)


def some_batches(source: TextSource | ConlluSource) -> list[Corpus]:
    """The first batches of the first split."""
    batches = source.batches(source.splits[0])
    return [batch for batch, _ in zip(batches, range(SOME_BATCHES), strict=False)]


def text_speeds(path: Path, repeats: int) -> dict[str, Any]:
    """Reading plain text, and inversion with transliteration of columns in memory."""
    source = TextSource(path)
    file = next(iter(source.files.values()))
    batches = some_batches(source)
    sentences = [sentence.words for batch in batches for sentence in batch]
    total = sum(words_in([batch]) for batch in source.batches(source.splits[0]))
    language = parse_language("trans+inv")

    def read() -> None:
        for _ in source.batches(source.splits[0]):
            pass

    found = {
        "columns: inversion and transliteration": compared(
            lambda: [language.derive(batch) for batch in batches],
            lambda: [baselines.derive(words) for words in sentences],
            words_in(batches),
            repeats,
            "a loop over sentences and words",
        )
    }
    if file.suffix == ".gz":
        found["reading text"] = speed_of(read, total, repeats)
    else:
        loop = "str.split of each line"
        found["reading text"] = compared(read, lambda: baselines.read_text(file), total, repeats, loop)
    return found


def tree_speeds(path: Path, repeats: int) -> dict[str, Any]:
    """Reading CoNLL-U, and reordering by the order model fr."""
    source = ConlluSource(path)
    file = source.files[source.splits[0]]
    batches = some_batches(source)
    sentences = [sentence for batch in batches for sentence in batch]
    total = sum(words_in([batch]) for batch in source.batches(source.splits[0]))

    def read() -> None:
        for _ in source.batches(source.splits[0]):
            pass

    loop = "str.split of each line, nothing checked"
    found = {"reading CoNLL-U": compared(read, lambda: baselines.read_conllu(file), total, repeats, loop)}
    try:
        language = parse_language(REORDER)
        language.derive(batches[0].between(0, 1))
    except InputError as error:
        return {**found, "reorder": {"skipped": str(error)}}
    found["reorder"] = compared(
        lambda: [language.derive(batch) for batch in batches],
        lambda: baselines.shuffle_trees(sentences),
        words_in(batches),
        repeats,
        "a recursion that shuffles the items of each node, without a model",
    )
    return found
