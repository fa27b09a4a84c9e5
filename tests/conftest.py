"""Settings of all tests: no network, no time limits inside a test, one thread, empty figures."""

import gc
import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing import forkserver, util
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from hypothesis import settings

from synthlang.worker_start import as_here
from synthlang.workers import cores
from tests.forked_python import forked_python

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_NUM_THREADS", "1")

# examples are reproducible, and a slow machine is no failure
settings.register_profile("synthlang", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("synthlang")
DRAWN: list[str] = []
"""List that has an entry while figures are ``painted`` or ``rendered``."""
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'


def pytest_xdist_auto_num_workers() -> int:
    """Have one test process more than there are processors, because some tests wait for processes or a clock."""
    return cores() + 1


def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Import all tests once, if all of them run, and fork the test processes from this process."""
    if config.args_source == pytest.Config.ArgsSource.TESTPATHS and sys.platform == "linux":
        from tests.forked_workers import fork_workers  # and execnet with it, which pytest-xdist brings

        for path in sorted(Path(__file__).parent.glob("test_*.py")):
            with suppress(Exception, pytest.skip.Exception):  # the collection reports it
                import_module(f"tests.{path.stem}")
        gc.freeze()
        fork_workers(len(specs))


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_a_disk() -> Iterator[None]:
    """Turn fsync off. A killed process loses nothing that it has written, and no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def pytest_collection_finish() -> None:
    """Keep what is imported out of garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """Cache the commands, which Typer would build again at every call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def undrawn() -> Iterator[None]:
    """Leave figures empty, which saves most of the time of a report. `painted` and `rendered` draw them."""
    from probes.figures import drawing, lines, printed, scatter  # and matplotlib with it

    draw, print_svg, png = drawing.draw, drawing._Canvas.print_svg, drawing.png

    def empty(self: Any, file: Any, **options: Any) -> None:
        if "rendered" in DRAWN or "draw" in vars(self.figure):  # in which case matplotlib asks what would draw it
            print_svg(self, file, **options)
        else:
            file.write(EMPTY.encode())

    with pytest.MonkeyPatch.context() as patch:
        for module in (drawing, lines, printed, scatter):
            patch.setattr(module, "draw", lambda *given: draw(*given) if DRAWN else EMPTY)
        patch.setattr(drawing._Canvas, "print_svg", empty)
        patch.setattr(drawing, "png", lambda *given: png(*given) if "rendered" in DRAWN else b"")
        yield


@pytest.fixture(scope="session", autouse=True)
def one_server_of_processes(undrawn: None, nothing_waits_for_a_disk: None) -> Iterator[None]:
    """Preload everything that tests need in the server of worker processes.

    A test process has only one server. It loads what its first user requests, and each worker would load the rest.
    Where the test process itself has everything loaded, as when all tests run, the server is a fork of it.
    """
    loaded = ["synthlang.worker_start", "probes.stages.loaded", "probes.cli_study", "probes.study.checks"]
    loaded += [f"transformers.models.{name}.modeling_{name}" for name in ("roberta", "bert")]  # for exports
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(loaded)
    if sys.modules.keys() >= set(loaded):
        with pytest.MonkeyPatch.context() as patch, as_here():
            patch.setattr(util, "spawnv_passfds", forked_python)
            forkserver.ensure_running()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(context), "set_forkserver_preload", lambda *_: None)
        yield


@pytest.fixture
def painted() -> Iterator[None]:
    """Make all of a figure, but do not lay it out or render it."""
    DRAWN.append("painted")
    yield
    DRAWN.clear()


@pytest.fixture
def rendered() -> Iterator[None]:
    """Draw the figures that users get."""
    DRAWN.append("rendered")
    yield
    DRAWN.clear()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run of trans+inv that was only prepared, with random weights."""
    from tests.aligned_runs import random_run

    return random_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two prepared runs with random weights: one with all parts shared by both languages, one with separate parts."""
    from tests.aligned_runs import SEPARATE, random_run

    folder = tmp_path_factory.mktemp("store")
    return {"shared": random_run(folder), "separate": random_run(folder, **SEPARATE)}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The YAML of the tiny study."""
    from tests.study_cases import TINY

    path = tmp_path_factory.getbasetemp() / "study.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny study, run without interruption in one process. It is made once and only read."""
    from tests.study_cases import run_here

    folder = tmp_path_factory.getbasetemp() / "finished-study"
    if not (folder / "report.html").exists():
        run_here(folder)
    return folder
