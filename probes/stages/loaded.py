"""Imports of everything that stages need, so that processes forked after this import start fast."""

from __future__ import annotations

import torch._dynamo  # noqa: F401 (by the first optimizer of a process, in more than a second)

import probes.measures.probe_command
import probes.measures.words.alignment
import probes.stages.inputs
import probes.stages.kinds
import probes.stages.opened
import probes.transfer.result
import probes.transfer.run
import probes.transfer.splits  # noqa: F401
