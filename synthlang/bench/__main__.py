"""``python -m synthlang.bench``: measure and print JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

from synthlang.bench import baselines
from synthlang.bench.data import write_text, write_treebank
from synthlang.bench.memory import measured_export
from synthlang.bench.speeds import speed_of, text_speeds, tree_speeds
from synthlang.errors import InputError
from synthlang.files import write_json
from synthlang.sources.text import TextSource

LANGUAGE = "trans+inv"
BASELINE_SENTENCES = 20_000  # the plain loop is slow, and holds all rows


def main(arguments: list[str] | None = None) -> int:
    """Measure what the arguments say; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m synthlang.bench", description="Measure speed and memory.")
    parser.add_argument("--text", type=Path, help="a text file (default: text of our own)")
    parser.add_argument("--conllu", type=Path, help="a CoNLL-U file or folder (default: mini-english)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="worker counts of the export")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each measurement")
    parser.add_argument("--quick", action="store_true", help="little data, once: to see that it works")
    parser.add_argument("--out", type=Path, help="write the JSON to this file too")
    options = parser.parse_args(arguments)
    if min(*options.workers, options.repeats) < 1:
        parser.error("--workers and --repeats must be at least 1")
    repeats = 1 if options.quick else options.repeats
    try:
        with tempfile.TemporaryDirectory() as folder:
            result = measure(options, Path(folder), repeats)
        print(json.dumps(result, indent=2, ensure_ascii=False))
        if options.out:
            write_json(options.out, result)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def measure(options: argparse.Namespace, folder: Path, repeats: int) -> dict[str, Any]:
    """All measurements."""
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
        "speeds": {**text_speeds(text, repeats), **tree_speeds(trees, repeats)},
        "export": _exports(text, options.workers, repeats, folder),
    }


def _exports(text: Path, workers: list[int], repeats: int, folder: Path) -> dict[str, Any]:
    """Text file to data set in all configurations, for each number of workers."""
    batches = TextSource(text).batches("train" if text.is_file() else TextSource(text).splits[0])
    sentences = [s.words for s in islice((s for batch in batches for s in batch), BASELINE_SENTENCES)]
    words = sum(map(len, sentences))
    loop = speed_of(lambda: baselines.export(sentences, folder / "loop"), words, repeats)
    found: dict[str, Any] = {"baseline": {"what": "a loop that makes rows of Python objects, reading left out", **loop}}
    for count in workers:
        runs = [measured_export(f"text:{text}", LANGUAGE, count) for _ in range(repeats)]
        speeds = [round(run["words"] / run["seconds"]) for run in runs]
        speed = statistics.median(speeds)
        found[f"workers {count}"] = {
            "words": runs[0]["words"],
            "words_per_second": round(speed),
            "repeats": speeds,
            "ratio": round(speed / loop["words_per_second"], 3),
            "peak_rss_mb": max(run["peak_rss_mb"] for run in runs),
            "peak_pss_mb": max((run["peak_pss_mb"] or 0 for run in runs), default=0) or None,
        }
    if {1, 2} <= set(workers):
        one, two = (found[f"workers {count}"] for count in (1, 2))
        found["speed-up of two workers"] = round(two["words_per_second"] / one["words_per_second"], 3)
        found["speed-up of two workers, best repeats"] = round(max(two["repeats"]) / max(one["repeats"]), 3)
    return found


if __name__ == "__main__":
    sys.exit(main())
