"""Tests over the examples of a test set, for numbers that a paper marks by such tests.

"For QA and XNLI we first average metric values for each example over different runs and then carry out a paired t-test
… For NER we concatenate example-specific predictions for all seeds and run 1,000 iterations of a permutation test"
("The Impact of Cross-Lingual Adjustment", section 5.1). Such a test shows the uncertainty from the choice of test
examples. The interval beside it shows the uncertainty from the choice of model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from probes.claims import papers
from probes.claims.observed import Results
from probes.claims.papers import Marking, PaperNumber
from probes.claims.spec import Quantity
from probes.claims.tables import difference_of
from probes.report.data import Cell, Study
from probes.report.numbers import Badge, Entry, shown_p
from probes.report.page import Block, Table
from probes.results.labels import is_seed
from probes.results.read import distinct, is_score
from probes.stages.base import PREDICTIONS, RESULT
from probes.statistics import TEST_ROUNDS, Interval, PairedTest
from probes.transfer.compare import item_test
from probes.transfer.config import TransferConfig
from probes.transfer.result import read_predictions
from probes.transfer.run import Predictions
from probes.transfer.tasks.base import task_of
from probes.transfer.tasks.metrics import Floats, Metric
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.rng import key_of
from synthlang.wording import plural

LEVEL = 0.05
MIXED = "mixed"
MARKS = {True: "marked", False: "not marked"}
ROWS = 100
CAPTION = (
    "A mark is a significant difference (p < .05, not corrected) over the examples of a test set, as in the paper. For "
    "a score that is a mean over examples the test is a paired t-test of examples averaged over the runs. For other "
    f"scores it is a permutation test with {TEST_ROUNDS:,} rounds over the predictions of all runs. Where models have "
    "several adjustments and several seeds of fine-tuning, only runs whose two seeds are equal count, as in the paper. "
    "The column Over models has the same difference with its interval over models, which these tests do not cover."
)
Run = tuple[tuple[str, ...], int]
"""Seeds of the model, and seed of fine-tuning."""
Transfers = dict[str, list[tuple[Cell, int, Path]]]
"""Task → the cell, the seed and the folder of each transfer."""
Tested = tuple[PairedTest, str] | str
"""Result of a test with its name and number of runs, or the reason why the test is impossible."""


def example_blocks(table: papers.PaperTable, study: Study, results: Results, name: str) -> list[Block]:
    """Return a table of tests over examples that repeat the tests of a paper.

    The result is empty if no test is possible, for example without predictions.

    Args:
        table: The table of the paper.
        study: The study, whose transfers are tested.
        results: The results, for the difference over models that is shown beside a test.
        name: Name of the files of the returned table.
    """
    transfers, rows, known = _transfers(study), list[list[Entry]](), False
    for cell in table.numbers:
        if (marking := cell.marking) is not None:
            test, over = _tested(cell, marking, transfers), difference_of(cell.quantity, marking.against, results)
            known = known or not isinstance(test, str)
            if not isinstance(test, str) or over is not None:
                rows.append(_row(cell, marking, test, None if over is None else over.interval))
    header = ["condition", "against", "score", "Paper", "Ours", "Difference", "Test", "p", "Over models"]
    caption = f"{table.paper}, {table.name}. {CAPTION}"
    return [Table(caption, header, rows, 4, name, ROWS, table.digits)] if known else []


def _row(cell: PaperNumber, marking: Marking, test: Tested, over: Interval | None) -> list[Entry]:
    """Return a row: the comparison, the mark in the paper, our test, and the interval over models."""
    where, other = dict(cell.quantity.where), marking.against.where
    row: list[Entry] = [
        ", ".join(label for axis, label in where.items() if axis != "task"),
        ", ".join(label for axis, label in other.items() if where.get(axis) != label),
        f"{where.get('task', '')} {cell.quantity.measure}".strip(),
        MARKS[marking.printed],
    ]
    models: Entry = "–" if over is None else over
    if isinstance(test, str):
        return [*row, "–", "–", test, "–", models]
    found, by = test
    if found.p is None:
        return [*row, "–", "–", found.reason or "no p", "–", models]
    marked = found.p < LEVEL
    badge = Badge(MARKS[marked], "good" if marked == marking.printed else "bad")
    return [*row, badge, found.difference, by, shown_p(found.p), models]


def _tested(cell: PaperNumber, marking: Marking, transfers: Transfers) -> Tested:
    """Test the comparison of a paper on our predictions, or return the reason why this is impossible."""
    try:
        folders = _folders(*(_runs(quantity, transfers) for quantity in (marking.against, cell.quantity)))
        before, after = (list(_read(side, cell.quantity.measure)) for side in folders)
    except InputError as error:
        return f"predictions cannot be read: {error}"
    if not before or len(before) != len(after):
        return "the two sides share no run with predictions"
    first = before[0]
    if any((one.ids, one.gold) != (first.ids, first.gold) for one in (*before, *after)):
        return "the runs were tested on different examples"
    key = key_of("example-test", *map(str, (*cell.quantity.where.items(), cell.quantity.measure)))
    found = item_test(_stats(before), _stats(after), first.metric, key)
    by = "paired t-test" if first.metric.of_items else "permutation test"
    return found, f"{by}, {plural(len(before), 'run')}"


class _Run(NamedTuple):
    """Concatenated predictions of a run on all test sets of a measure."""

    ids: list[str]
    gold: list[Any]
    predicted: list[Any]
    metric: Metric


def _stats(runs: Sequence[_Run]) -> Floats:
    return np.stack([one.metric.stats(one.gold, one.predicted) for one in runs])


def _transfers(study: Study) -> Transfers:
    """Return for each task the transfers that have predictions and are not excluded."""
    cells, found = {cell.name: cell for cell in study.cells}, Transfers()
    for task, name, seed in distinct(study.table[is_score(study.table)], "task", "cell", "seed"):
        folder = cells[name].stage(f"transfer {task} seed {seed}")
        if folder is not None and (folder / PREDICTIONS).is_file():
            found.setdefault(task, []).append((cells[name], seed, folder))
    return found


def _runs(quantity: Quantity, transfers: Transfers) -> dict[Run, Path]:
    """Return the folders of the transfers on which a quantity is computed."""
    where, found = dict(quantity.where), dict[Run, Path]()
    for cell, seed, folder in transfers.get(where.pop("task", ""), ()):
        if where.items() <= cell.labels.items():
            found[tuple(label for axis, label in cell.labels.items() if is_seed(axis)), seed] = folder
    return found


def _folders(one: Mapping[Run, Path], other: Mapping[Run, Path]) -> tuple[list[Path], list[Path]]:
    """Return the folders of the runs that both sides have, in the same order."""
    sides: list[dict[Any, Path]] = []
    by_model = len({seed for _, seed in (*one, *other)}) == 1 and len({*one, *other}) > 1
    for side in (one, other):
        sides.append({seeds: folder for (seeds, _), folder in side.items()} if by_model else _as_printed(side))
    shared = sorted(sides[0].keys() & sides[1].keys())
    return [sides[0][key] for key in shared], [sides[1][key] for key in shared]


def _as_printed(runs: Mapping[Run, Path]) -> dict[int, Path]:
    """Choose one run for each fine-tuning seed.

    A run of a model that was adjusted with the same seed is preferred. Otherwise the first run is chosen.
    """
    chosen: dict[int, Path] = {}
    for run in sorted(runs, key=lambda run: (str(run[1]) not in run[0], run)):
        chosen.setdefault(run[1], runs[run])
    return chosen


def _read(folders: Sequence[Path], measure: str) -> Iterator[_Run]:
    """Yield the predictions on the test sets of a measure, for each transfer and searched setting."""
    for folder in folders:
        config, parts = _predictions(folder)
        for setting in sorted({part.setting for part in parts}):
            chosen = [part for part in parts if part.setting == setting and _is_of(part.test, measure)]
            if chosen:
                yield _Run(
                    [name for part in chosen for name in part.ids],
                    [gold for part in chosen for gold in part.gold],
                    [predicted for part in chosen for predicted in part.predicted],
                    task_of(config).main_metric(),
                )


@lru_cache(maxsize=64)
def _predictions(folder: Path) -> tuple[TransferConfig, Sequence[Predictions]]:
    """Return the settings of a transfer and the predictions of its models."""
    record = read_json(folder / RESULT)
    config = parse(TransferConfig, {**record["settings"], "task": record["task"]}, folder / RESULT)
    return config, read_predictions(folder / PREDICTIONS)


def _is_of(test: str, measure: str) -> bool:
    """Return whether a measure is computed on a test set. ``mixed`` is computed on all mixed sets."""
    return test == measure or (measure == MIXED and test.startswith(f"{MIXED} "))
