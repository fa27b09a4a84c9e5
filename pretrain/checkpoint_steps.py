"""Which steps have a checkpoint: by the policy of a run, and in a folder. Nothing here opens the weights."""

from __future__ import annotations

from pathlib import Path

from pretrain.config import CheckpointConfig
from synthlang.files import read_json

BEST = "best"
"""The key of a checkpoint's state that names the step of the best one."""


def kept_steps(policy: CheckpointConfig, last: int) -> list[int]:
    """The steps whose checkpoints a policy keeps at step ``last``, ascending, the best one left out.

    Only those count that are due: that a run was stopped in between and saved changes nothing.

    >>> kept_steps(CheckpointConfig(every=100, keep=2, archive=400), 950)
    [400, 800, 900, 950]
    """
    due = range(policy.every, last, policy.every)  # not a list: it may be long, and this is asked at every saving
    kept = {last, *due[max(0, len(due) - policy.keep + 1) :]}
    if policy.archive is not None:
        kept |= {step for step in range(policy.archive, last, policy.archive) if step % policy.every == 0}
    return sorted(kept)


def own_steps(folder: Path, policy: CheckpointConfig, last: int) -> list[int]:
    """The steps of the checkpoints that a finished run of ``last`` steps has by a policy, the best one with them.

    ``folder`` may hold others: of another policy, and none of some that were deleted.
    """
    best = read_json(folder / f"step-{last}" / "state.json").get(BEST)
    return sorted({*kept_steps(policy, last)} | ({best} if best is not None else set()))


def steps_in(folder: Path) -> list[int]:
    """The steps of the checkpoints in ``folder``, ascending."""
    names = (p.name.removeprefix("step-") for p in folder.glob("step-*"))
    return sorted(int(name) for name in names if name.isdigit())
