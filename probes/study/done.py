"""What of a store is done: stages that are there as they were left, and what is noted of them.

The last file of a stage that is written says that it is done; ``stage.json`` is for people, and for forecasts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pretrain.folder import is_as_exported
from probes.study.stage import DONE, KINDS, Stage
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.store import Store

NOTE = "stage.json"
DROPPED = "dropped.json"  # of a run: what `synthlang gc` left of it
END = b"\n}\n"  # of a JSON object that is whole and holds something, as write_json writes it


def is_done(store: Store, stage: Stage) -> bool:
    """Whether the stage is there as it was left."""
    return is_intact(stage.kind, store.path(stage.kind, stage.key))


def is_whole(kind: str, folder: Path) -> bool:
    """Whether a stage is there with its files, of which the one that is written last is not truncated (by its end)."""
    paths = [folder / name for name in KINDS[kind].content]
    if not all(path.is_file() for path in paths):
        return False
    with paths[0].open("rb") as handle:
        handle.seek(max(0, paths[0].stat().st_size - len(END)))
        return handle.read() == END


def is_intact(kind: str, folder: Path) -> bool:
    """Whether a stage is whole and its export, if it has one, as it was written: by the sizes of the files.

    Not of one whose weights were deleted for good.
    """
    if not is_whole(kind, folder):
        return False
    if KINDS[kind].content[0] != DONE:
        return True
    try:
        return is_as_exported(folder, read_json(folder / DONE)) or kept_of(folder) == "results"
    except InputError:  # damaged, though it ends as it should
        return False


def kept_of(run: Path) -> str | None:
    """What is left of a run by the policy that was applied; None if nothing was deleted."""
    return str(read_json(run / DROPPED)["keep"]) if (run / DROPPED).exists() else None


def note(store: Store, stage: Stage, seconds: float) -> None:
    write_json(store.path(stage.kind, stage.key) / NOTE, {"label": stage.label, "seconds": round(seconds, 1)})


def noted(folder: Path) -> dict[str, Any]:
    """What is written down of a stage; nothing of one whose maker was killed before that."""
    path = folder / NOTE
    return dict(read_json(path)) if path.exists() else {}


def seconds_of(folder: Path) -> float:
    return float(noted(folder).get("seconds", 0.0))


def mean_seconds(store: Store, kinds: Iterable[str]) -> dict[str, tuple[float, int]]:
    """Kind → the mean time of its stages in the store, and of how many; without kinds that have none."""
    total, count = Counter[str](), Counter[str]()
    for kind in kinds:
        for path in store.root.glob(f"{kind}-*/{NOTE}"):
            total[kind] += float(read_json(path)["seconds"])  # type: ignore[assignment]
            count[kind] += 1
    return {kind: (total[kind] / count[kind], count[kind]) for kind in count}
