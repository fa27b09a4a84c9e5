"""``python -m synthlang.bench``: how fast and how large the language engine is, as JSON.

Every speed is the median of some repeats, stands beside all of them, and beside a plain Python loop that does the same
on the same data in the same run: on a busy machine the ratio is what can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bench import loops
from bench.measured import Figures, tell
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.export import export_language
from synthlang.language import parse_language
from synthlang.parsing.command import conllu
from synthlang.rng import key_of, uniform
from synthlang.sources import open_source
from synthlang.sources.conllu import ConlluSource
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.text import TextSource

LANGUAGE = "trans+inv"
REORDER = {"name": "french-order", "transforms": [{"kind": "reorder", "model": "fr"}]}
BASELINE_SENTENCES = 20_000  # the plain loop is slow, and holds all rows
SOME_BATCHES = 50  # in memory at a time
TYPES, LETTERS, SENTENCES_A_LINE = 50_000, "etaoinshrdlucmfwypvbgkjqxz", 4  # of text of our own
INTERVAL = 0.05  # seconds between two looks at the memory


def main(arguments: list[str] | None = None) -> int:
    """Measure what the arguments say; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m synthlang.bench", description="Measure speed and memory.")
    parser.add_argument("--text", type=Path, help="a text file (default: text of our own)")
    parser.add_argument("--conllu", type=Path, help="a CoNLL-U file or folder (default: mini-english)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="worker counts of the export")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each measurement")
    parser.add_argument("--quick", action="store_true", help="little data, once: to see that it works")
    parser.add_argument("--out", type=Path, help="write the JSON to this file too")
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if min(*options.workers, options.repeats) < 1:
        parser.error("--workers and --repeats must be at least 1")
    if options.side:
        print(json.dumps(_export(options.text, Path(options.side[0]), int(options.side[1]))))
        return 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            result = _measure(options, Path(folder), 1 if options.quick else options.repeats)
        tell(result, options.out)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _measure(options: argparse.Namespace, folder: Path, repeats: int) -> Figures:
    text, trees = options.text, options.conllu
    if text is None:
        text = folder / "own.txt"
        write_text(text, 20_000 if options.quick else 3_000_000)
    if trees is None:
        trees = folder
        write_treebank(folder, 200 if options.quick else 10_000)
    return {
        "machine": {"system": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count()},
        "data": {"text": "own" if options.text is None else "given", "conllu": "own" if trees == folder else "given"},
        "speeds": {**_text_speeds(text, repeats), **_tree_speeds(trees, repeats)},
        "export": _exports(text, options.workers, repeats, folder),
    }


def speed_of(work: Callable[[], object], words: int, repeats: int) -> Figures:
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
    ratio = round(ours["words_per_second"] / theirs["words_per_second"], 3)
    return {**ours, "baseline": {"what": what, **theirs}, "ratio": ratio}


def _opened(source: TextSource | ConlluSource) -> tuple[list[Corpus], int, Callable[[], None]]:
    """The first batches of the first split, its words, and what reads all of it."""
    split = source.splits[0]

    def read() -> None:
        for _ in source.batches(split):
            pass

    return list(islice(source.batches(split), SOME_BATCHES)), _words(source.batches(split)), read


def _words(batches: Any) -> int:
    return sum(int(batch.offsets[-1]) for batch in batches)


def _text_speeds(path: Path, repeats: int) -> Figures:
    """Reading plain text, and inversion with transliteration of columns in memory."""
    source = TextSource(path)
    file = next(iter(source.files.values()))
    batches, total, read = _opened(source)
    sentences = [sentence.words for batch in batches for sentence in batch]
    language = parse_language(LANGUAGE)
    derived = compared(
        lambda: [language.derive(batch) for batch in batches],
        lambda: [loops.derive(words) for words in sentences],
        _words(batches),
        repeats,
        "a loop over sentences and words",
    )
    if file.suffix == ".gz":
        reading = speed_of(read, total, repeats)
    else:
        reading = compared(read, lambda: loops.read_text(file), total, repeats, "str.split of each line")
    return {"columns: inversion and transliteration": derived, "reading text": reading}


def _tree_speeds(path: Path, repeats: int) -> Figures:
    """Reading CoNLL-U, and reordering by the order model fr."""
    source = ConlluSource(path)
    file = source.files[source.splits[0]]
    batches, total, read = _opened(source)
    sentences = [sentence for batch in batches for sentence in batch]
    loop = "str.split of each line, nothing checked"
    found = {"reading CoNLL-U": compared(read, lambda: loops.read_conllu(file), total, repeats, loop)}
    try:
        language = parse_language(REORDER)
        language.derive(batches[0].between(0, 1))
    except InputError as error:
        return {**found, "reorder": {"skipped": str(error)}}
    found["reorder"] = compared(
        lambda: [language.derive(batch) for batch in batches],
        lambda: loops.shuffle_trees(sentences),
        _words(batches),
        repeats,
        "a recursion that shuffles the items of each node, without a model",
    )
    return found


def _exports(text: Path, workers: list[int], repeats: int, folder: Path) -> Figures:
    """Text file to data set in all configurations, for each number of workers."""
    batches = TextSource(text).batches("train" if text.is_file() else TextSource(text).splits[0])
    sentences = [s.words for s in islice((s for batch in batches for s in batch), BASELINE_SENTENCES)]
    loop = speed_of(lambda: loops.export(sentences, folder / "loop"), sum(map(len, sentences)), repeats)
    found: Figures = {"baseline": {"what": "a loop that makes rows of Python objects, reading left out", **loop}}
    for count in workers:
        runs = [_watched_export(text, count) for _ in range(repeats)]
        speeds = [round(run["words"] / run["seconds"]) for run in runs]
        speed = statistics.median(speeds)
        found[f"workers {count}"] = {
            "words": runs[0]["words"],
            "words_per_second": round(speed),
            "repeats": speeds,
            "ratio": round(speed / loop["words_per_second"], 3),
            "peak_rss_mb": max(run["peak_rss_mb"] for run in runs),
            "peak_pss_mb": max(run["peak_pss_mb"] or 0 for run in runs) or None,
        }
    if {1, 2} <= set(workers):
        one, two = (found[f"workers {count}"] for count in (1, 2))
        found["speed-up of two workers"] = round(two["words_per_second"] / one["words_per_second"], 3)
        found["speed-up of two workers, best repeats"] = round(max(two["repeats"]) / max(one["repeats"]), 3)
    return found


def _export(text: Path, folder: Path, workers: int) -> Figures:
    """In a process of its own: an export, its seconds and words."""
    start, source = time.perf_counter(), f"text:{text}"
    written = export_language(
        open_source(source), parse_language(LANGUAGE), folder, source_name=source, workers=workers
    )
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "words": sum(size["words"] for size in written["splits"].values())}


def _watched_export(text: Path, workers: int) -> Figures:
    """Words, seconds, and the peak over time of the memory of all processes together, in MB.

    ``rss`` counts a page once in each process that shares it, ``pss`` once in all (Linux only, else None).
    """
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "out").open("w+") as out:
        command = [sys.executable, "-m", "bench.synthlang", "--text", str(text), "--side", f"{folder}/data"]
        process = subprocess.Popen([*command, str(workers)], stdout=out)  # noqa: S603  our own interpreter and code
        rss, pss = _peak_memory(process)
        if process.returncode:
            raise RuntimeError(f"the export ended with code {process.returncode}")
        out.seek(0)
        return {"workers": workers, **json.load(out), "peak_rss_mb": rss, "peak_pss_mb": pss}


def _peak_memory(process: subprocess.Popen[bytes]) -> tuple[float, float | None]:
    import psutil

    peak = {"rss": 0.0, "pss": 0.0}
    while process.poll() is None:
        now = {"rss": 0.0, "pss": 0.0}
        try:
            family = [parent := psutil.Process(process.pid), *parent.children(recursive=True)]
        except psutil.Error:
            family = []
        for one in family:
            try:
                info = one.memory_full_info()
                now = {"rss": now["rss"] + info.rss, "pss": now["pss"] + getattr(info, "pss", 0.0)}
            except psutil.Error:  # it has just ended
                continue
        peak = {kind: max(value, now[kind] / 2**20) for kind, value in peak.items()}
        time.sleep(INTERVAL)
    return round(peak["rss"], 1), round(peak["pss"], 1) or None


def write_text(path: Path, words: int) -> None:
    """A file of about ``words`` words: rank r with probability ∝ 1 / r, 5 to 34 words a sentence."""
    key, chance = key_of("bench"), 1 / np.arange(1, TYPES + 1)
    ranks = np.searchsorted(np.cumsum(chance / chance.sum()), uniform(key, np.arange(words)))
    names = [_name(rank) for rank in range(TYPES)]
    ends = np.cumsum(5 + (uniform(key, 1, np.arange(words // 5 + 1)) * 30).astype(np.int64))
    drawn = [names[min(rank, TYPES - 1)] for rank in ranks.tolist()]
    sentences = [
        " ".join(drawn[a:b]).capitalize() + "." for a, b in zip([0, *ends[:-1]], ends, strict=True) if drawn[a:b]
    ]
    lines = [sentences[i : i + SENTENCES_A_LINE] for i in range(0, len(sentences), SENTENCES_A_LINE)]
    path.write_text("\n".join(" ".join(line) for line in lines) + "\n", encoding="utf-8")


def _name(rank: int) -> str:
    """Short words are the frequent ones, as in any language."""
    letters, rest = "", rank + 1
    while rest:
        rest, letter = divmod(rest, len(LETTERS))
        letters += LETTERS[letter]
    return letters


def write_treebank(folder: Path, sentences: int) -> None:
    """A folder with the training split of mini-english as CoNLL-U."""
    with (folder / "mini-train.conllu").open("w", encoding="utf-8") as handle:
        for batch in MiniEnglish(sentences=sentences).batches("train"):
            handle.writelines(conllu(sentence, "train") for sentence in batch)


if __name__ == "__main__":
    sys.exit(main())
