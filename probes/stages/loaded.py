"""Imports everything that stages need to run, for processes that are forked from one that has it loaded."""

from __future__ import annotations

import probes.measures.probe_command
import probes.measures.words.alignment
import probes.stages.inputs
import probes.stages.kinds
import probes.stages.opened
import probes.transfer.result
import probes.transfer.run
import probes.transfer.splits  # noqa: F401
