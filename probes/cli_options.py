"""Options and arguments that several commands share, and helpers that declare options and arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.models import OptionInfo

from synthlang.files import user_path

METAVARS = {int: "N", float: "X", str: "TEXT", Path: "PATH"}
"""Placeholder of the value of an option in the help, by its type."""


class Commands(typer.Typer):
    """Commands that expand ``~`` in paths, since a shell does not expand it in ``--out=~/x``.

    The help shows the values of options by METAVARS.
    """

    def command(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        """Register a function as a command, as Typer does. Paths among its arguments are expanded."""
        register = super().command(*args, **options)

        def registered(function: Callable[..., None]) -> Callable[..., None]:
            function.__annotations__ = _with_metavars(get_type_hints(function, include_extras=True))

            @wraps(function)
            def called(**given: Any) -> None:
                function(**{name: _at_home(value) for name, value in given.items()})

            register(called)
            return function

        return registered


def _with_metavars(annotations: dict[str, Any]) -> dict[str, Any]:
    """Set the placeholder of each option that has none. Flags and lists of choices keep those of Typer."""
    for annotation in annotations.values():
        kind, *given = get_args(annotation)[:2] or (annotation,)
        types = [one for part in (get_args(kind) or (kind,)) for one in (get_args(part) or (part,))]
        for declared in given:
            if isinstance(declared, OptionInfo) and declared.metavar is None:
                declared.metavar = next((METAVARS[one] for one in types if one in METAVARS), None)
    return annotations


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


def one_of(*words: str) -> dict[str, Any]:
    """Return the placeholder and the shell completion of a choice of words, as keywords of ``option``."""
    return {
        "autocompletion": lambda incomplete: [word for word in words if word.startswith(incomplete)],
        "metavar": "NAME",
    }


Set = Annotated[
    list[str],
    option(
        "New value for a config key. Dots separate nested keys (default: none; repeatable).",
        "--set",
        metavar="KEY=VALUE",
    ),
]
Smoke = Annotated[
    bool,
    option(
        "Smoke test: tiny settings, done in seconds, written to OUT with -smoke added to the name. Its scores mean "
        "nothing.",
        "--smoke",
    ),
]
Threads = Annotated[
    int | None,
    option(
        "Number of CPU threads per process (default: OMP_NUM_THREADS, else chosen by model width and cores).", min=1
    ),
]
Slurm = Annotated[
    list[str],
    option(
        "Slurm option for --executor slurm, such as partition=gpu (default: none; repeatable).", metavar="KEY=VALUE"
    ),
]
NoWait = Annotated[bool, option("Submission of the Slurm jobs without waiting for their results.", "--no-wait")]
Model = Annotated[str, argument("Finished run, model folder, or model name on Hugging Face.")]
