"""Settings of all tests: offline, no time limits inside a test, one thread; figures are painted and not rendered."""

import multiprocessing
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import typer.main
from hypothesis import settings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_NUM_THREADS", "1")

# examples are reproducible, and a slow machine is no failure
settings.register_profile("synthlang", deadline=None, derandomize=True)
settings.load_profile("synthlang")
RENDERED: list[bool] = []
"""Has an entry while figures are rendered."""


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """Typer makes the commands anew at every call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_server_of_processes() -> Iterator[None]:
    """It has what any test wants loaded: the one server of a test process loads what the first who needs it asks for,
    and each process of another one would load the rest anew."""
    loaded = ["synthlang.worker_start", "probes.stages.loaded", "probes.cli_study", "probes.study.checks"]
    loaded += [f"transformers.models.{name}.modeling_{name}" for name in ("roberta", "bert")]  # for exports
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(loaded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(context), "set_forkserver_preload", lambda *_: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def unrendered() -> Iterator[None]:
    """Figures are painted, but laid out and rendered only with `rendered`: that takes most of the time of a report."""
    from probes.figures import drawing  # and matplotlib with it

    real = drawing._Canvas.print_svg, drawing.png

    def empty(self: Any, file: Any, **options: Any) -> None:
        if RENDERED or "draw" in vars(self.figure):  # in which case matplotlib asks what would draw it
            real[0](self, file, **options)
        else:
            file.write(b'<svg xmlns="http://www.w3.org/2000/svg"></svg>')

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing._Canvas, "print_svg", empty)
        patch.setattr(drawing, "png", lambda *given: real[1](*given) if RENDERED else b"")
        yield


@pytest.fixture
def rendered() -> Iterator[None]:
    """With the figures that users get."""
    RENDERED.append(True)
    yield
    RENDERED.clear()
