"""Access to a run folder without its weights: metrics.jsonl, steps with checkpoints, sizes of exported files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pretrain.config import CheckpointConfig, PretrainConfig
from synthlang.files import TEMPORARY, append_line, atomic_file, read_json

READINGS = "readings"
"""Key of done.json with the tokens per word and the share of unknown tokens of each language."""
BEST = "best"
"""Key in the state of a checkpoint for the step of the best checkpoint."""


def kept_steps(policy: CheckpointConfig, last: int, steps: int | None = None) -> list[int]:
    """Return the sorted steps whose checkpoints a policy keeps at step ``last``, apart from the best checkpoint.

    Only due steps count, so a checkpoint that was saved when the run was stopped has no effect.

    Args:
        policy: Settings of saving and deleting checkpoints.
        last: The present step.
        steps: The number of steps of the run (default: ``last``).

    >>> kept_steps(CheckpointConfig(every=100, keep=2, archive=400, at=(10, 0.5)), 950)
    [10, 400, 475, 800, 900, 950]
    """
    due = range(policy.every, last, policy.every)  # a list could be long, and this runs at every checkpoint
    kept = {last, *due[max(0, len(due) - policy.keep + 1) :]}
    named = named_steps(policy, last if steps is None else steps)
    return sorted(kept | {step for step in named if step <= last})


def named_steps(policy: CheckpointConfig, steps: int) -> list[int]:
    """Return the sorted steps that ``archive`` and ``at`` name in a run of ``steps`` steps, and the last step.

    >>> named_steps(CheckpointConfig(every=100, keep=2, archive=400, at=(10, 0.5)), 950)
    [10, 400, 475, 800, 950]
    """
    found = {*policy.steps_at(steps), steps}
    if policy.archive is not None:
        found |= {step for step in range(policy.archive, steps, policy.archive) if step % policy.every == 0}
    return sorted(found)


def present_steps(folder: Path, policy: CheckpointConfig, last: int) -> list[int]:
    """Return the sorted steps that a finished run of ``last`` steps keeps and whose checkpoints are in ``folder``.

    The step of the best checkpoint is included. Checkpoints that only another policy keeps are left out. Damaged
    checkpoints are included.

    Raises:
        InputError: The state of the last checkpoint cannot be read.
    """
    best = read_json(folder / f"step-{last}" / "state.json").get(BEST)
    kept = {*kept_steps(policy, last)} | ({best} if best is not None else set())
    return sorted(step for step in kept if (folder / f"step-{step}").exists())


def steps_in(folder: Path) -> list[int]:
    """Return the sorted steps of all checkpoints in a folder, including damaged checkpoints."""
    names = (p.name.removeprefix("step-") for p in folder.glob("step-*"))
    return sorted(int(name) for name in names if name.isdigit())


EXPORT = "export"  # the folder in a run, and the key in done.json
CARD = "README.md"  # a page that users may change


def export_sizes(run: Path) -> dict[str, int]:
    """Return the size in bytes of each file of the export by its path in the folder, except cards."""
    folder = run / EXPORT
    names = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name.as_posix(): path.stat().st_size
        for name, path in names.items()
        if name.name != CARD and not any(part.startswith(TEMPORARY) for part in name.parts)
    }


def is_as_exported(run: Path, done: Mapping[str, Any]) -> bool:
    """Return True if every file of the export that the run's done.json records has its recorded size.

    ``done`` is the content of done.json. Other files, such as cards, are not checked.
    """
    files = ((run / EXPORT / name, size) for name, size in done.get(EXPORT, {}).items())
    return all(path.is_file() and path.stat().st_size == size for path, size in files)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the lines of metrics.jsonl before the first damaged line, or [] if there is no file.

    A kill or a crash may have cut the file.
    """
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            break
        if not (isinstance(row, dict) and isinstance(row.get("step"), int)):
            break
        rows.append(row)
    return rows


def selected_row(run: Path, config: PretrainConfig) -> dict[str, Any]:
    """Return the line of the log at the selected checkpoint, or {} if the log ends before the last step.

    The best step is found in the log as in ``Trainer._note_best``, so the weights are not needed.
    """
    rows = {row["step"]: row for row in read_metrics(run / "metrics.jsonl")}
    if config.steps not in rows:
        return {}
    selected, every = rows[config.steps], config.checkpoints.every
    if config.checkpoints.select == "best":
        parent = f"validation/{config.all_languages[0].name}"
        due = [row for step, row in rows.items() if parent in row and (step % every == 0 or step == config.steps)]
        selected = min(due, key=lambda row: float(row[parent]), default=selected)
    return selected


class MetricsLog:
    """Log of the metrics of a run, the file ``path`` with JSON lines. Only the main process (``is_main``) writes it."""

    def __init__(self, path: Path, is_main: bool) -> None:
        self.path = path
        self.is_main = is_main

    def cut(self, step: int) -> None:
        """Drop the lines after ``step``, from which the run continues.

        Raises:
            DiskError: The file cannot be written.
        """
        if self.is_main:
            rows = [row for row in read_metrics(self.path) if row["step"] <= step]
            with atomic_file(self.path, "w") as handle:
                handle.writelines(json.dumps(row) + "\n" for row in rows)

    def write(self, row: dict[str, Any]) -> None:
        """Append ``row`` as a line of JSON.

        Raises:
            ValueError: A number is NaN or infinite, which JSON cannot hold.
            DiskError: The file cannot be written.
        """
        if self.is_main:
            append_line(self.path, json.dumps(row, allow_nan=False))
