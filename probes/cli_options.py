"""What options and arguments of the commands are written with."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def option(said: str, *names: str, **more: Any) -> Any:
    """An option, of the name of its parameter or of these; ``more`` is Typer's."""
    return typer.Option(*names, help=said, **more)


def argument(said: str, **more: Any) -> Any:
    return typer.Argument(help=said, **more)


Set = Annotated[list[str], option("Override a key of the config; repeatable.", "--set", metavar="KEY=VALUE")]
"""KEY=VALUE for a config."""
Model = Annotated[str, argument("A finished run, a folder or a name of Hugging Face.")]
"""A model."""
