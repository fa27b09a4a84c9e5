"""``python -m synthlang.bench``: speed and memory of the language engine, as JSON.

Every speed is the median of several repeats, which are listed as well. A plain Python loop does the same work on the
same data in the same run. On a busy machine only the ratio of both can be compared.
"""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterable
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synthlang.corpus import Corpus, Sentence
from synthlang.errors import InputError
from synthlang.export import export_language
from synthlang.language import parse_language
from synthlang.parsing.parse_command import conllu
from synthlang.rng import key_of, uniform
from synthlang.scripts import SCRIPTS
from synthlang.sources import open_source
from synthlang.sources.conllu import ConlluSource
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.text import TextSource
from synthlang_bench.measured import Figures, command, parser_of, tell

LANGUAGE = "trans+inv"
REORDER = {"name": "french-order", "transforms": [{"kind": "reorder", "model": "fr"}]}
BASELINE_SENTENCES = 20_000  # the plain loop is slow and holds all rows in memory
SOME_BATCHES = 50  # batches in memory at a time
TYPES, SENTENCES_A_LINE = 50_000, 4  # properties of the generated text
INTERVAL = 0.05  # seconds between two measurements of the memory


def derive_by_loop(words: list[str]) -> tuple[list[str], list[int]]:
    """Invert between final marks and transliterate, and return the words and their source indices."""
    letters, index, start = SCRIPTS["cyrillic"].letters, list[int](), 0
    for end in range(len(words) + 1):
        if end == len(words) or words[end] in (".", "!", "?"):
            index += [*range(end - 1, start - 1, -1), *([end] if end < len(words) else [])]
            start = end + 1
    return ["".join(letters[byte] for byte in words[i].encode("utf-8")) for i in index], index


def export_by_loop(sentences: Iterable[list[str]], path: Path) -> None:
    """Derive sentences and write them as Parquet from rows of Python objects, in all three configurations."""
    tables: dict[str, list[dict[str, Any]]] = {"parent": [], "derived": [], "parallel": []}
    for number, words in enumerate(sentences):
        derived, index = derive_by_loop(words)
        text, new = " ".join(words), " ".join(derived)
        pairs = [{"parent": a, "derived": b} for b, a in enumerate(index)]
        tables["parent"].append({"id": number, "text": text, "words": words})
        tables["derived"].append({"id": number, "text": new, "words": derived, "origin": index, "parent_text": text})
        tables["parallel"].append(
            {"id": number, "parent_text": text, "derived_text": new, "parent_words": words, "derived_words": derived}
            | {"alignment": pairs}
        )
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), path.with_suffix(f".{name}"), compression="zstd")


def shuffle_by_loop(sentences: Iterable[Sentence]) -> int:
    """Put each node's items in a random order, lay them out by recursion, and return the number of words."""
    draw, words = random.Random(0), 0  # noqa: S311  a stopwatch, no secret

    def laid_out(items: dict[int, list[int]], node: int) -> list[int]:
        order = [node, *items.get(node, [])]
        draw.shuffle(order)
        return [word for item in order for word in ([node] if item == node else laid_out(items, item))]

    for sentence in sentences:
        items: dict[int, list[int]] = {}
        for word, head in enumerate(sentence.columns["head"], start=1):
            items.setdefault(head, []).append(word)
        words += len(laid_out(items, items[0][0])) if 0 in items else 0
    return words


def read_text_by_loop(path: Path) -> int:
    """Return the number of words in a text file, which are separated by white space."""
    with path.open(encoding="utf-8") as handle:
        return sum(len(line.split()) for line in handle)


def read_conllu_by_loop(path: Path) -> int:
    """Split lines at tabs without any checks, and return the number of words."""
    kept = []
    with path.open(encoding="utf-8") as handle:
        for line in handle:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 10 and fields[0].isdigit():
                kept.append((fields[1], fields[3], int(fields[6]), fields[7]))
    return len(kept)


def speed_of(work: Callable[[], object], words: int, repeats: int) -> Figures:
    """Return the words per second of all repeats, and their median.

    ``work`` is called once in each repeat, and ``words`` is the number of words that a call processes.
    """
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append(round(words / (time.perf_counter() - start)))
    return {"words": words, "words_per_second": round(statistics.median(found)), "repeats": found}


def compared(work: Callable[[], object], loop: Callable[[], object], words: int, repeats: int, what: str) -> Figures:
    """Return the speed of ``work``, and its ratio to the speed of the plain loop ``loop``.

    Both process ``words`` words in a call. ``what`` is a description of the loop for the result.
    """
    ours, theirs = speed_of(work, words, repeats), speed_of(loop, words, repeats)
    ratio = round(ours["words_per_second"] / theirs["words_per_second"], 3)
    return {**ours, "baseline": {"what": what, **theirs}, "ratio": ratio}


def _opened(source: TextSource | ConlluSource) -> tuple[list[Corpus], int, Callable[[], int]]:
    """Return the first batches of the first split, the number of its words, and a function that reads the split."""
    split = source.splits[0]

    def read() -> int:
        return _words(source.batches(split))

    return list(islice(source.batches(split), SOME_BATCHES)), read(), read


def _words(batches: Iterable[Corpus]) -> int:
    return sum(int(batch.offsets[-1]) for batch in batches)


def _text_speeds(path: Path, repeats: int) -> Figures:
    """Measure reading of plain text, and inversion with transliteration of columns in memory."""
    source = TextSource(path)
    file = next(iter(source.files.values()))
    batches, total, read = _opened(source)
    sentences = [sentence.words for batch in batches for sentence in batch]
    language, words = parse_language(LANGUAGE), _words(batches)
    if file.suffix == ".gz":
        reading = speed_of(read, total, repeats)
    else:
        reading = compared(read, lambda: read_text_by_loop(file), total, repeats, "str.split of each line")
    return {
        "columns: inversion and transliteration": compared(
            lambda: [language.derive(batch) for batch in batches],
            lambda: [derive_by_loop(words) for words in sentences],
            words,
            repeats,
            "a loop over sentences and words",
        ),
        "reading text": reading,
    }


def _tree_speeds(path: Path, repeats: int) -> Figures:
    """Measure reading of CoNLL-U, and reordering by the order model fr."""
    source = ConlluSource(path)
    file = source.files[source.splits[0]]
    batches, total, read = _opened(source)
    sentences = [sentence for batch in batches for sentence in batch]
    loop = "str.split of each line, nothing checked"
    found = {"reading CoNLL-U": compared(read, lambda: read_conllu_by_loop(file), total, repeats, loop)}
    try:
        language = parse_language(REORDER)
        language.derive(batches[0].between(0, 1))
    except InputError as error:
        return {**found, "reorder": {"skipped": str(error)}}
    found["reorder"] = compared(
        lambda: [language.derive(batch) for batch in batches],
        lambda: shuffle_by_loop(sentences),
        _words(batches),
        repeats,
        "a recursion that shuffles the items of each node, without a model",
    )
    return found


def _exports(text: Path, workers: list[int], repeats: int, folder: Path) -> Figures:
    """Measure the export of a text file in all configurations, for each number of workers."""
    source = TextSource(text)
    every = (sentence.words for batch in source.batches(source.splits[0]) for sentence in batch)
    sentences = list(islice(every, BASELINE_SENTENCES))
    loop = speed_of(lambda: export_by_loop(sentences, folder / "loop"), sum(map(len, sentences)), repeats)
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
            "peak_pss_mb": max(run["peak_pss_mb"] for run in runs) or None,
        }
    if {1, 2} <= set(workers):
        one, two = (found[f"workers {count}"] for count in (1, 2))
        found["speed-up of two workers"] = round(two["words_per_second"] / one["words_per_second"], 3)
        found["speed-up of two workers, best repeats"] = round(max(two["repeats"]) / max(one["repeats"]), 3)
    return found


def export(options: Namespace) -> Figures:
    """Export the text file ``options.text`` to the folder ``options.to``, and return seconds and words.

    This function runs in a separate process, whose memory is measured from outside.

    Raises:
        InputError: As for ``export_language``, or the text cannot be read.
        DiskError: The folder cannot be written.
    """
    start, source = time.perf_counter(), f"text:{options.text}"
    written = export_language(
        open_source(source), parse_language(LANGUAGE), Path(options.to), source_name=source, workers=options.workers
    )
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "words": sum(size["words"] for size in written["splits"].values())}


def _watched_export(text: Path, workers: int) -> Figures:
    """Export, and return words, seconds, and the peak of the total memory of all processes in MB.

    ``rss`` counts a shared page once for each process, and ``pss`` once in total (Linux only, else 0).
    """
    peak = {"rss": 0.0, "pss": 0.0}
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "out").open("w+") as out:
        started = command(export, Namespace(text=text, to=f"{folder}/data", workers=workers))
        process = subprocess.Popen(started, stdout=out)  # noqa: S603  our own interpreter and code
        while process.poll() is None:
            memory = _memory(process.pid)
            peak = {kind: max(most, sum(getattr(one, kind, 0) for one in memory)) for kind, most in peak.items()}
            time.sleep(INTERVAL)
        if process.returncode:
            raise RuntimeError(f"the export ended with code {process.returncode}")
        out.seek(0)
        return {**json.load(out), **{f"peak_{kind}_mb": round(most / 2**20, 1) for kind, most in peak.items()}}


def _memory(pid: int) -> list[Any]:
    """Return the memory of a process and of its children that are still running."""
    import psutil

    found = []
    try:
        parent = psutil.Process(pid)
        for one in (parent, *parent.children(recursive=True)):
            found.append(one.memory_full_info())
    except psutil.Error:
        return found
    return found


def write_text(path: Path, words: int) -> None:
    """Write about ``words`` words in sentences of 5 to 34 words.

    The word of rank r has a probability ∝ 1 / r, and frequent words are short.
    """
    letters, key, chance = "etaoinshrdlucmfwypvbgkjqxz", key_of("bench"), 1 / np.arange(1, TYPES + 1)
    names = list(islice(("".join(name) for n in range(1, 5) for name in product(letters, repeat=n)), TYPES))
    ranks = np.searchsorted(np.cumsum(chance / chance.sum()), uniform(key, np.arange(words)))
    drawn = [names[min(rank, TYPES - 1)] for rank in ranks.tolist()]
    ends = np.cumsum(5 + (uniform(key, 1, np.arange(words // 5 + 1)) * 30).astype(np.int64))
    sentences = [
        " ".join(drawn[a:b]).capitalize() + "." for a, b in zip([0, *ends[:-1]], ends, strict=True) if drawn[a:b]
    ]
    lines = [sentences[i : i + SENTENCES_A_LINE] for i in range(0, len(sentences), SENTENCES_A_LINE)]
    path.write_text("\n".join(" ".join(line) for line in lines) + "\n", encoding="utf-8")


def write_treebank(folder: Path, sentences: int) -> None:
    """Write ``sentences`` sentences of mini-english as CoNLL-U to the file ``mini-train.conllu`` in a folder."""
    with (folder / "mini-train.conllu").open("w", encoding="utf-8") as handle:
        for batch in MiniEnglish(sentences=sentences).batches("train"):
            handle.writelines(conllu(sentence, "train") for sentence in batch)


def _measure(options: Namespace, folder: Path) -> Figures:
    text, trees, repeats = options.text, options.conllu, 1 if options.quick else options.repeats
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


def main(arguments: list[str] | None = None) -> int:
    """Measure speed and memory by the arguments, and return the exit code."""
    parser = parser_of("synthlang", "Measure speed and memory.")
    parser.add_argument("--text", type=Path, help="Text file to measure (default: generated text).")
    parser.add_argument(
        "--conllu", type=Path, help="CoNLL-U file or folder to measure (default: trees of builtin:mini-english)."
    )
    workers = "Numbers of worker processes to time the export with (default: %(default)s)."
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help=workers)
    parser.add_argument("--quick", action="store_true", help="Quick check with little data and one repeat.")
    options = parser.parse_args(arguments)
    if min(*options.workers, options.repeats) < 1:
        parser.error(f"--workers ({min(options.workers)}) and --repeats ({options.repeats}) must be at least 1")
    try:
        with tempfile.TemporaryDirectory() as folder:
            tell(_measure(options, Path(folder)), options.out)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
