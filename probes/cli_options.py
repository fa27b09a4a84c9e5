"""What options and arguments of the commands are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer


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
Model = Annotated[str, argument("A finished run, a folder or a name of Hugging Face.")]
"""A model."""
