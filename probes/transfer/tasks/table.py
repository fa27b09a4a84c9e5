"""The table of all downstream tasks: built-in tasks and plugins."""

from __future__ import annotations

from probes.transfer.tasks.entry import OURS, TaskEntry
from synthlang.plugins import added

TASKS: dict[str, TaskEntry] = OURS | added("tasks", TaskEntry, OURS, instances=True)
