"""State of the stages of a store: finished, complete or damaged. Every file with a checksum can be verified.

A stage is finished when the file that is written last exists. The note ``stage.json`` holds the label of the stage and
the time that it took, for messages and forecasts.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from pretrain.folder import is_as_exported
from probes.stages.base import DONE, Stage
from synthlang.checksums import RECORD, damaged_files, record_checksums
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.store import Store
from synthlang.wording import plural

NOTE = "stage.json"
DROPPED = "dropped.json"
"""File of a run that records the policy by which ``synthlang gc`` deleted weights."""
CHECKPOINTS = "checkpoints"
"""Folder of the checkpoints of a run."""
NOT_OF_STAGE = (NOTE, DROPPED, CHECKPOINTS, "data", "probes", "transfer")
"""Files without a checksum in the record: notes, checkpoints (which have their own checksums) and later additions."""
END = b"\n}\n"
"""Last bytes of a JSON object that is not empty, as ``write_json`` writes it."""


def is_done(store: Store, stage: Stage) -> bool:
    """Return whether a stage is finished and undamaged.

    Raises:
        InputError: The record of the checksums of the stage, or its file ``dropped.json``, cannot be read.
    """
    return is_intact(stage.content, store.path(stage.kind, stage.key))


def is_whole(content: tuple[str, ...], folder: Path) -> bool:
    """Return whether the folder of a stage has all files of ``content``.

    The first file is written last, so only this file is checked for truncation.
    """
    paths = [folder / name for name in content]
    if not all(path.is_file() for path in paths):
        return False
    with paths[0].open("rb") as handle:
        handle.seek(max(0, paths[0].stat().st_size - len(END)))
        return handle.read() == END


def is_intact(content: tuple[str, ...], folder: Path) -> bool:
    """Return whether a stage is complete and its files are as they were written.

    A run from which ``synthlang gc`` deleted all weights counts as intact. ``content`` has the files of the stage, of
    which the first was written last.

    Raises:
        InputError: The record of the checksums in ``folder``, or the file ``dropped.json``, cannot be read.
    """
    if not is_whole(content, folder) or damage(folder):
        return False
    if content[0] != DONE:
        return True
    try:
        return is_as_exported(folder, read_json(folder / DONE)) or kept_of(folder) == "results"
    except InputError:  # damaged before its last bytes
        return False


def damage(folder: Path, thorough: bool = False) -> list[str]:
    """Return the names of the files of a finished stage that are damaged or missing.

    A folder without a record of checksums has no such files. If ``synthlang gc`` deleted all weights of a run, missing
    files of the run do not count.

    Args:
        folder: The folder of the stage.
        thorough: True to read every file (see ``damaged_files``). By default, sizes and times are compared, and only
            files that are younger than the record are read.

    Raises:
        InputError: The record of the checksums in ``folder``, or the file ``dropped.json``, cannot be read.
    """
    found = damaged_files(folder, thorough)
    return [name for name in found if (folder / name).exists()] if found and kept_of(folder) == "results" else found


def kept_of(run: Path) -> str | None:
    """Return the policy by which ``synthlang gc`` deleted weights of a run, or None if it deleted none.

    Raises:
        InputError: The file ``dropped.json`` of the run cannot be read.
    """
    return str(read_json(run / DROPPED)["keep"]) if (run / DROPPED).exists() else None


def note(store: Store, stage: Stage, seconds: float) -> None:
    """Write the note of a stage that took ``seconds``, and the checksums of its files if they are not written yet."""
    folder = store.path(stage.kind, stage.key)
    with store.lock(stage.kind, stage.key):  # another study may open the stage now, and delete temporary files in it
        if not (folder / RECORD).exists():
            record_checksums(folder, NOT_OF_STAGE)
        write_json(folder / NOTE, {"label": stage.label, "seconds": round(seconds, 1)})


def noted(folder: Path) -> dict[str, Any]:
    """Return the note of a stage. It is empty if the process that made the stage was killed before it wrote one.

    Raises:
        InputError: The note cannot be read.
    """
    path = folder / NOTE
    return dict(read_json(path)) if path.exists() else {}


def seconds_of(folder: Path) -> float:
    """Return the seconds that a stage took, or 0 if it has no note or its note does not record them.

    Raises:
        InputError: The note cannot be read.
    """
    return float(noted(folder).get("seconds", 0.0))


def mean_seconds(store: Store, kinds: Iterable[str]) -> dict[str, tuple[float, int]]:
    """Return kind → (mean seconds, number of stages), over the stages in the store that have a note.

    A kind without such a stage is left out. A note without a time counts as 0 seconds.

    Raises:
        InputError: A note cannot be read.
    """
    known = {kind: [seconds_of(path.parent) for path in store.root.glob(f"{kind}-*/{NOTE}")] for kind in kinds}
    return {kind: (fmean(seconds), len(seconds)) for kind, seconds in known.items() if seconds}


# --- a whole store ---


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
            label = ""
            with suppress(InputError):  # without a readable note, only the label is lost
                label = str(noted(folder).get("label", ""))
            found.append(DamagedFolder(folder, label, files, checkpoints))
    return found


def _damaged_checkpoints(run: Path) -> list[str]:
    steps = sorted(run.glob(f"{CHECKPOINTS}/step-*"))
    if not steps:
        return []
    from pretrain.checkpoints import is_sound  # with torch

    return [f"{CHECKPOINTS}/{step.name}" for step in steps if not is_sound(step)]
