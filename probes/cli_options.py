"""Helpers and shared declarations for the options and arguments of the commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from synthlang.files import user_path


class Commands(typer.Typer):
    """Commands that expand ``~`` in their paths, because a shell does not expand the one in ``--out=~/x``."""

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


def option(help_text: str, *names: str, **more: Any) -> Any:
    """Declare an option, named after its parameter unless ``names`` are given. Typer takes ``more``."""
    return typer.Option(*names, help=help_text, **more)


def renamed(old: str, new: str) -> Any:
    """Declare the former name of an option, which is hidden and works with a warning for one release."""

    def warned(value: Any) -> Any:
        if value:
            typer.echo(f"warning: {old} is now {new}; the old name will be removed in the next release", err=True)
        return value

    return typer.Option(old, help=f"Former name of {new}.", hidden=True, callback=warned)


def argument(help_text: str, **more: Any) -> Any:
    """Declare an argument. Typer takes ``more``."""
    return typer.Argument(help=help_text, **more)


def names_of(*kinds: str) -> dict[str, Callable[[str], list[str]]]:
    """Return the completion of catalogue names for ``option`` and ``argument``."""

    def begun(incomplete: str) -> list[str]:
        from synthlang.catalogue import names

        return [name for kind in kinds for name in names(kind) if name.startswith(incomplete)]

    return {"autocompletion": begun}


def one_of(*words: str) -> dict[str, Callable[[str], list[str]]]:
    """Return the completion of given words for ``option`` and ``argument``."""
    return {"autocompletion": lambda incomplete: [word for word in words if word.startswith(incomplete)]}


Set = Annotated[list[str], option("Assignment to a key of the config (repeatable).", "--set", metavar="KEY=VALUE")]
Smoke = Annotated[
    bool, option("Smoke run: everything small, in seconds, written to OUT-smoke. The numbers mean nothing.", "--smoke")
]
Threads = Annotated[
    int | None, option("Number of threads in each process (default: OMP_NUM_THREADS, else the fastest number).", min=1)
]
Model = Annotated[str, argument("Finished run, model folder, or model name on Hugging Face.")]
