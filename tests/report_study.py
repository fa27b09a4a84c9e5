"""A made-up study folder with known numbers, and a reader of the page made from it."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from probes.report.files import ReportPaths
from probes.report.folder import write_joined_report, write_report
from probes.results import views, write

OBJECTIVES = {"mlm": (5.0, 22.0), "dict_mlm": (38.0, 9.0), "align_mlm": (72.0, 4.0)}
"""Alignment and Δ of each objective under the harder language; half of Δ under the easier one."""
LANGUAGES = {"trans": 0.5, "trans+inv": 1.0}
EVIL = "<script>alert(1)</script>"
NAMES = (
    *("cell", "source", "language", "objective", "task", "task_name", "labels", "seed", "pretrain_seed", "metric"),
    *("pretrain", "transfer", "probe", "adjust"),
)
SCORES = (
    *("parent", "sup", "zs", "delta", "alignment_all", "alignment_dictionary", "alignment_held_out", "perplexity"),
    *("moved_embeddings", "moved_layers", "alignment_forward", "majority"),
)
MEASURES = ("cell", "labels", "pretrain_seed", "probe", "measure", "layer", "step", "value")


def _metrics(folder: Path, objective: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    with (folder / "metrics.jsonl").open("w") as handle:
        for step in range(20, 4001, 20):
            mlm = 2 + 5 * np.exp(-step / 700) + 0.1 * random.normal()
            record: dict[str, Any] = {"step": step, "loss": mlm, "mlm": mlm, "lr": 1e-3, "tokens_per_second": 9e3}
            record["tokens_seen"] = step * 4096
            if objective == "align_mlm":
                record |= {"align": -1 + np.exp(-step / 500), "loss": mlm + 10 * (-1 + np.exp(-step / 500))}
            if step % 500 == 0:
                record |= {
                    "validation/parent": np.exp(mlm),
                    "validation/derived": 1.2 * np.exp(mlm),
                    "alignment": step / 80,
                }
            handle.write(json.dumps(record) + "\n")


def make_study(
    folder: Path, seeds: int = 3, tasks: tuple[str, ...] = ("pos",), replicates: int = 1, curves: str = "trans"
) -> Path:
    """A study of 3 objectives × 2 languages with a failed and a pending cell.

    Only cells whose language is in ``curves`` (and not dict_mlm) have a run folder: drawing takes its time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    cells: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for replicate, objective, language in itertools.product(range(replicates), OBJECTIVES, LANGUAGES):
        (aligned, delta), factor = OBJECTIVES[objective], LANGUAGES[language]
        name = f"{objective}-{language}" + (f"-seed{replicate}" if replicates > 1 else "")
        pretrain = f"{len(cells):016x}"
        run = f"stages/pretrain-{pretrain}"
        drawn = language in curves.split() and objective != "dict_mlm" and not replicate
        if drawn:
            _metrics(folder / run, objective, len(cells))
        labels = {"objective": objective, "language": language}
        labels |= {"pretrain.seed": str(replicate)} if replicates > 1 else {}
        cells.append({
            "name": name, "labels": labels, "status": "done", "error": None, "run": run if drawn else None,
            "overrides": {"pretrain.objective.kind": objective, "pretrain.seed": replicate},
            "stages": {"derive": "ab" * 8, "pretrain": pretrain, "transfer": "cd" * 8},
        })  # fmt: skip
        align = aligned * (1.2 - 0.2 * factor) + random.normal()
        for task, seed in itertools.product(tasks, range(seeds)):
            sup, gap = 92 + random.normal(), delta * factor + 1.5 * random.normal()
            rows.append({
                "cell": name, "source": "mini-english", "language": language, "objective": objective, "task": task,
                "task_name": task, "labels": json.dumps(labels), "seed": seed, "metric": "token_accuracy",
                "pretrain": pretrain, "parent": sup + 1, "sup": sup, "zs": sup - gap, "delta": gap,
                "alignment_all": align, "alignment_dictionary": align + 5, "alignment_held_out": align - 5,
            })  # fmt: skip
    error = "InputError: learning rate is NaN <b>at</b> step 12"
    none: dict[str, Any] = {"labels": {}, "overrides": {}, "stages": {}, "run": None, "log": ""}
    log = f"Traceback (most recent call last):\n  {EVIL}"
    cells.append(none | {"name": EVIL, "status": "failed", "error": error, "log": log})
    cells.append(none | {"name": "later", "status": "pending", "error": None})
    study = {
        "format": 2,
        "axes": ["objective", "language", *(["pretrain.seed"] if replicates > 1 else [])],
        "store": "stages",
        "name": "example",
        "title": "Three objectives & two languages",
        "fingerprint": "0123456789abcdef",
        "config": {"pretrain": {"steps": 4000, "objective": {"name": "mlm", "alpha": 10}}, "tasks": list(tasks)},
        "environment": {"python": "3.11.9", "torch": "2.13.0", "threads": 2},
        "cells": cells,
        "seconds": {"pretrain-0000000000000000": 271.3, "derive-" + "ab" * 8: 0.4},
    }
    (folder / "study.json").write_text(json.dumps(study))
    write_rows(folder, rows)
    return folder


def make_grid(
    folder: Path,
    axes: dict[str, list[str]],
    tasks: tuple[str, ...] = ("pos",),
    seeds: int = 2,
    layers: int = 0,
    steps: tuple[int, ...] = (),
    jitter: float = 0.0,
    **more: Any,
) -> Path:
    """Write a finished study of every combination of labels, in which ``pretrain.seed`` is an axis like others.

    The Δ of a cell is 10 + its number + the fine-tuning seed, or with ``jitter`` a little more. With layers and steps
    it has a CKA of each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cells, rows, measured = [], [], []
    for number, values in enumerate(itertools.product(*axes.values())):
        labels = dict(zip(axes, values, strict=True))
        name, text = ", ".join(values), json.dumps(labels)
        pretrain = f"{crc32(str(more.get('name', '')).encode()):08x}{number:08x}"
        stages = {"pretrain": pretrain} | {f"transfer {t} seed {s}": "cd" * 8 for t in tasks for s in range(seeds)}
        run = f"stages/pretrain-{pretrain}"
        cell = {"name": name, "labels": labels, "overrides": {f"pretrain.{k}": v for k, v in labels.items()}}
        cells.append(cell | {"status": "done", "error": None, "log": "", "keys": stages, "stages": stages, "run": run})
        for task, seed in itertools.product(tasks, range(seeds)):
            delta = 10.0 + number + seed + jitter * (number * 7 % 5 + seed)
            row = {"cell": name, "labels": text, "task": task, "task_name": task, "seed": seed, "metric": "f1"}
            row |= {"pretrain_seed": labels.get("pretrain.seed", "0"), "pretrain": pretrain, "source": "mini"}
            row |= {"language": "trans", "objective": "mlm", "parent": 95.0, "sup": 90.0, "zs": 90.0 - delta}
            rows.append(row | {"delta": delta, "alignment_all": 50.0 - number, "transfer": "cd" * 8})
        places: Iterable[tuple[Any, Any]] = itertools.product(range(layers) if layers else [""], steps or [""])
        for layer, step in places:
            if layers or steps:
                value = 0.01 * number + 0.1 * (layer or 0) + 1e-4 * (step or 0) + 0.01 * jitter * (number * 7 % 5)
                measured.append(
                    [name, text, labels.get("pretrain.seed", 0), "cka", "cka.same_layer.debiased", layer, step, value]
                )
    study = {"format": 2, "name": "grid", "title": "A grid", "fingerprint": "ab" * 8, "config": {}, "axes": list(axes)}
    study |= {"environment": {"python": "3.11"}, "cells": cells, "seconds": {}, "store": "stages"}
    (folder / "study.json").write_text(json.dumps(study | more))
    write_rows(folder, rows)
    write_measures(folder, measured)
    return folder


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write results.csv for tests and results.parquet for reports. Texts of numbers become numbers."""
    with (folder / "results.csv").open("w", newline="") as handle:
        writer = csv.DictWriter(handle, NAMES + SCORES, restval="")
        writer.writeheader()
        writer.writerows(rows)
    _write_parquet(folder / "results.parquet", views.RESULTS, rows)


def write_view(folder: Path, name: str, columns: Mapping[str, pa.DataType], rows: Iterable[Mapping[str, Any]]) -> None:
    """A view as a study writes it."""
    with write._view_file(folder, name, columns) as file:
        for row in rows:
            file.add(row)


def write_measures(folder: Path, rows: Sequence[Sequence[Any]]) -> None:
    with (folder / "measures.csv").open("w", newline="") as handle:
        csv.writer(handle).writerows([MEASURES, *rows])
    records = [dict(zip(MEASURES, row, strict=True)) for row in rows]
    _write_parquet(folder / "measures.parquet", views.MEASURES, records)


def _write_parquet(path: Path, columns: Mapping[str, pa.DataType], rows: Sequence[Mapping[str, Any]]) -> None:
    texts = {name: [None if row.get(name) in (None, "") else str(row[name]) for row in rows] for name in columns}
    arrays = [pa.array(texts[name], pa.string()).cast(kind) for name, kind in columns.items()]
    pq.write_table(pa.table(arrays, list(columns)), path)


def change(folder: Path, **values: Any) -> None:
    """Change values of study.json."""
    path = folder / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def cells_of(folder: Path) -> list[dict[str, Any]]:
    """Return the cells in study.json."""
    found: list[dict[str, Any]] = json.loads((folder / "study.json").read_text())["cells"]
    return found


def change_rows(folder: Path, change: Callable[[dict[str, str], dict[str, str]], Mapping[str, Any]]) -> None:
    """Update each row of the results with the values that ``change`` returns for it and its labels."""
    write_rows(folder, [row | dict(change(row, json.loads(row["labels"]))) for row in read_rows(folder)])


class Report:
    """A report that was written: its page and Markdown as texts, its tables as files, the names of its figures."""

    def __init__(self, paths: ReportPaths) -> None:
        self.paths = paths
        self.html, self.text = paths.html.read_text(encoding="utf-8"), paths.markdown.read_text(encoding="utf-8")
        self.figures = {path.stem for path in paths.figures.iterdir()}

    def table(self, *header: str) -> list[dict[str, str]]:
        """The first table of the page that has these columns."""
        return Page(self.html).table(*header)

    def file(self, name: str) -> list[dict[str, str]]:
        """The rows of tables/NAME.csv."""
        with (self.paths.tables / f"{name}.csv").open() as handle:
            return list(csv.DictReader(handle))

    @property
    def lead(self) -> str:
        """The summary."""
        return self.text.split("## At a glance")[1].split("\n## ")[0]


def report(folder: Path) -> Report:
    """The report of a study, written."""
    return Report(write_report(folder))


def joined(folders: Sequence[Path], out: Path) -> Report:
    """The report of several studies, written."""
    return Report(write_joined_report(folders, out))


class Page(HTMLParser):
    """Tables as lists of rows of text, every address that is loaded or followed, and unclosed tags."""

    VOID = frozenset({"meta", "link", "br", "img", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.addresses += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "data", "action")
        ]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "small":
            self.tables[-1][-1][-1] += "|"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data

    def table(self, *header: str) -> list[dict[str, str]]:
        for rows in self.tables:
            if set(header) <= set(rows[0]):
                return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
        raise AssertionError(f"no table with {header}")


def read_rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open() as handle:
        return list(csv.DictReader(handle))
