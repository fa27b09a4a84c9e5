"""What options and arguments of the commands are written with."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from synthlang.files import user_path


class Commands(typer.Typer):
    """Commands in whose paths ``~`` is filled in: a shell leaves that of ``--out=~/x`` alone."""

    def command(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        """Register a function as a command, as Typer does."""
        register = super().command(*args, **options)

        def registered(function: Callable[..., None]) -> Callable[..., None]:
            @wraps(function)
            def called(**given: Any) -> None:
                function(**{name: _at_home(value) for name, value in given.items()})

            register(called)
            return function

        return registered


def _at_home(value: Any) -> Any:
    if isinstance(value, list):
        return [_at_home(item) for item in value]
    return user_path(value) if isinstance(value, Path) else value


def option(said: str, *names: str, **more: Any) -> Any:
    """An option, of the name of its parameter or of these; ``more`` is Typer's."""
    return typer.Option(*names, help=said, **more)


def argument(said: str, **more: Any) -> Any:
    return typer.Argument(help=said, **more)


def names_of(*kinds: str) -> dict[str, Callable[[str], list[str]]]:
    """For ``option`` and ``argument``: a shell completes names of the catalogue, else files."""

    def begun(incomplete: str) -> list[str]:
        from synthlang.catalogue import names

        return [name for kind in kinds for name in names(kind) if name.startswith(incomplete)]

    return {"autocompletion": begun}


def one_of(*words: str) -> dict[str, Callable[[str], list[str]]]:
    """The same of given words."""
    return {"autocompletion": lambda incomplete: [word for word in words if word.startswith(incomplete)]}


Set = Annotated[list[str], option("Override a key of the config; repeatable.", "--set", metavar="KEY=VALUE")]
"""KEY=VALUE for a config."""
Smoke = Annotated[
    bool, option("Try it in seconds: everything small, written to OUT-smoke; the numbers mean nothing.", "--smoke")
]
"""Whether the settings are made small."""
Threads = Annotated[
    int | None, option("Threads of a process (default: OMP_NUM_THREADS, else the number that is fastest).", min=1)
]
Model = Annotated[str, argument("A finished run, a folder or a name of Hugging Face.")]
"""A model."""
