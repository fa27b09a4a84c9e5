"""The commands of data sets: list, fetch, check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import probes
from probes.cli_options import Commands, argument, names_of, one_of, option
from synthlang.catalogue import SIZES

data = Commands(
    help="Work with the data sets that studies read: list, fetch and check them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _names(default: str) -> Any:
    return argument(f"Data sets, by their names in the catalogue (default: {default}).", **names_of("data"))


For = Annotated[
    Path | None,
    option(
        "Study whose data sets are added to NAMES: a YAML file, or a name (default: none).",
        "--for",
        metavar="STUDY",
        **names_of("studies"),
    ),
]
Size = Annotated[
    str | None,
    option(
        "Size of the study: paper, or lab with free sources where they exist (default: the size in the name of STUDY, "
        "or without a size the sources of the paper and no word alignment).",
        **one_of(*SIZES),
    ),
]
To = Annotated[Path, option("Folder of the data.")]


@data.command("list")
def list_(
    study: For = None,
    size: Size = None,
    to: To = Path("data"),
    names: Annotated[list[str] | None, _names("those of STUDY, else all")] = None,
) -> None:
    """List data sets with their state, size, licence and evidence for the source."""
    probes.list_data(names or (), study, size=size, to=to)


@data.command()
def fetch(
    names: Annotated[list[str] | None, _names("those of STUDY")] = None,
    study: For = None,
    size: Size = None,
    to: To = Path("data"),
    source: Annotated[
        str | None,
        option("Mirror in place of the sources: a folder, or an address (default: none).", "--from", metavar="MIRROR"),
    ] = None,
    keep_downloads: Annotated[
        bool,
        option(
            "Downloads kept in TO/.downloads, as a mirror for --from (default: deleted unless a data set failed).",
            "--keep-downloads",
        ),
    ] = False,
    no_steps: Annotated[
        bool,
        option(
            "No steps after the download: no parsing, segmentation or word alignment (default: all steps).",
            "--no-steps",
        ),
    ] = False,
    workers: Annotated[
        int, option("Number of worker processes of the steps. The output is identical for any number.", min=1)
    ] = 1,
    yes: Annotated[bool, option("Consent to the download and the steps, without a question.", "--yes")] = False,
) -> None:
    """Fetch data sets: download, verify and convert them, and run their steps, such as parsing.

    An interrupted fetch continues with the same command.
    """
    probes.fetch_data(
        names or (),
        study,
        size=size,
        to=to,
        source=source,
        keep_downloads=keep_downloads,
        steps=not no_steps,
        workers=workers,
        ask=not yes,
    )


@data.command()
def check(names: Annotated[list[str] | None, _names("all that are in TO")] = None, to: To = Path("data")) -> None:
    """Check data sets against their record, and read them as a study would."""
    if not probes.check_data(names or (), to=to):
        raise typer.Exit(1)
