"""The studies of the catalogue, each read once for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from probes.study.cell import Cell
from probes.study.cells import load_study
from probes.study.config import StudyConfig
from probes.study.graph import Graph, graph


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder to run commands in, with the dictionaries that a user links under data/."""
    folder = tmp_path_factory.mktemp("place")
    muse = folder / "data" / "muse"
    muse.mkdir(parents=True)
    for language in ("fr", "ru", "zh"):
        (muse / f"en-{language}.txt").write_text("house maison\n", encoding="utf-8")
        (muse / f"{language}-en.txt").write_text("maison house\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def catalogued(name: str) -> str:
    """Return NAME/SIZE for SIZE/NAME, and the other way round."""
    return "/".join(reversed(name.split("/")))


@cache
def study(name: str, *assignments: str) -> tuple[StudyConfig, list[Cell]]:
    """Return a study by SIZE/NAME, and its cells. The test runs in `place`."""
    return load_study(Path(catalogued(name)), list(assignments))


@cache
def stages(name: str, *assignments: str) -> Graph:
    """Return the stages of a study by SIZE/NAME."""
    config, cells = study(name, *assignments)
    return graph(cells, config.seeds)
