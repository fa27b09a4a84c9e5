"""Verification of a whole store: every file with a checksum is read, and the damaged ones are listed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from probes.stages.done import damage, noted
from probes.stages.making import CHECKPOINTS
from synthlang.errors import InputError
from synthlang.wording import plural

STEPS = f"{CHECKPOINTS}/step-*"


@dataclass(frozen=True)
class DamagedFolder:
    """A folder of a store with damaged files.

    Attributes:
        folder: The folder.
        label: Name of the stage, or "" for data from which stages are made, and for a stage without a readable note.
        files: Names of the damaged or missing files. The next start of a study that needs the folder makes it again.
        checkpoints: Names of the damaged checkpoints, which the next start skips.
    """

    folder: Path
    label: str
    files: tuple[str, ...]
    checkpoints: tuple[str, ...]

    def __str__(self) -> str:
        again = f"the next start makes {self.label or 'this folder'} again"
        other = "the next start uses another checkpoint"
        found = (("damaged file", self.files, again), ("damaged checkpoint", self.checkpoints, other))
        lines = (
            f"{self.folder} has {plural(len(of), noun)}: {', '.join(of)}; {then}" for noun, of, then in found if of
        )
        return "\n".join(lines)


def verify_store(root: Path) -> list[DamagedFolder]:
    """Read every file of a store that has a checksum, and return the folders with damage.

    The folder ``root`` must exist.

    Raises:
        InputError: A record of checksums, or a file ``dropped.json`` of a run, cannot be read.
    """
    found = []
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")):
        files, checkpoints = tuple(damage(folder, thorough=True)), tuple(_damaged_checkpoints(folder))
        if files or checkpoints:
            found.append(DamagedFolder(folder, _label(folder), files, checkpoints))
    return found


def _label(folder: Path) -> str:
    try:
        return str(noted(folder).get("label", ""))
    except InputError:  # only the label would be lost
        return ""


def _damaged_checkpoints(run: Path) -> list[str]:
    steps = sorted(run.glob(STEPS))
    if not steps:
        return []
    from pretrain.checkpoints import is_sound  # with torch

    return [f"{CHECKPOINTS}/{step.name}" for step in steps if not is_sound(step)]
