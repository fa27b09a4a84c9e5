"""Options and arguments that several commands share, and helpers to declare more."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from synthlang.files import user_path


class Commands(typer.Typer):
    """Commands that expand ``~`` in paths. A shell does not expand it in ``--out=~/x``."""

    def command(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        """Register a function as a command, as Typer does. Paths among its arguments are expanded."""
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
    """Declare an option with ``names`` (default: the name of the parameter). Typer receives ``more``."""
    return typer.Option(*names, help=help_text, **more)


def renamed(old: str, new: str) -> Any:
    """Declare a hidden former name of an option, which still works but prints a warning."""

    def warned(value: Any) -> Any:
        if value:
            typer.echo(f"warning: {old} is now {new}; the old name will be removed in the next release", err=True)
        return value

    return typer.Option(old, help=f"Former name of {new}.", hidden=True, callback=warned)


def argument(help_text: str, **more: Any) -> Any:
    """Declare an argument. Typer receives ``more``."""
    return typer.Argument(help=help_text, **more)


def names_of(*kinds: str) -> dict[str, Callable[[str], list[str]]]:
    """Return shell completion of the catalogue names of ``kinds``, as keywords of ``option`` or ``argument``."""

    def begun(incomplete: str) -> list[str]:
        from synthlang.catalogue import names

        return [name for kind in kinds for name in names(kind) if name.startswith(incomplete)]

    return {"autocompletion": begun}


def one_of(*words: str) -> dict[str, Callable[[str], list[str]]]:
    """Return shell completion of the given words, as keywords of ``option`` or ``argument``."""
    return {"autocompletion": lambda incomplete: [word for word in words if word.startswith(incomplete)]}


Set = Annotated[list[str], option("New value for a config key (repeatable).", "--set", metavar="KEY=VALUE")]
Smoke = Annotated[
    bool,
    option("Smoke test: tiny settings, done in seconds, written to OUT-smoke. Its scores mean nothing.", "--smoke"),
]
Threads = Annotated[
    int | None, option("Threads per process (default: OMP_NUM_THREADS, else chosen by model width and cores).", min=1)
]
Slurm = Annotated[
    list[str],
    option(
        "Slurm option for --executor slurm, such as partition=gpu (default: none; repeatable).", metavar="KEY=VALUE"
    ),
]
NoWait = Annotated[bool, option("Submission of the Slurm jobs without waiting for their results.", "--no-wait")]
Model = Annotated[str, argument("Finished run, model folder, or model name on Hugging Face.")]
