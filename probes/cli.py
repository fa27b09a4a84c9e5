"""The command ``synthlang``. Each subcommand imports its libraries only when it runs, so ``--help`` is quick."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from pretrain import pretrain as run_pretraining
from pretrain import run_adjustment
from pretrain.adjust.adjust_command import HELP as ADJUST_HELP
from pretrain.threads import set_environment
from probes import check_installation, cli_language, cli_study
from probes.cli_configs import configs
from probes.cli_data import data
from probes.cli_options import Commands, Model, Set, Smoke, Threads, argument, names_of, option
from probes.cli_order import order
from probes.cli_probe import align, correlate, probe
from probes.cli_transfer import compare, transfer
from synthlang import __version__
from synthlang.errors import InputError

app = Commands(
    name="synthlang",
    help="Derive synthetic languages, pretrain on them, measure alignment and zero-shot transfer.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"synthlang {__version__}")
        raise typer.Exit


@app.callback()
def main_options(
    _: Annotated[
        bool, option("Version of synthlang, printed alone.", "--version", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Handle the options that precede a subcommand."""


app.command()(cli_language.derive)
app.command()(cli_language.parse)
app.add_typer(order, name="order")
app.command()(cli_language.dictionary)
app.command()(cli_language.push)
app.add_typer(data, name="data")


@app.command()
def pretrain(
    config: Annotated[
        Path, argument("YAML file, or name of a run (synthlang configs runs lists them).", **names_of("runs"))
    ],
    out: Annotated[Path | None, option("Run folder (default: runs/NAME). An unfinished run continues.")] = None,
    threads: Threads = None,
    smoke: Smoke = False,
    overrides: Set = [],  # noqa: B006  typer copies it
) -> None:
    """Pretrain a model. On several devices, use accelerate launch -m pretrain.train CONFIG."""
    run_pretraining(config, out, overrides, smoke=smoke, threads=threads)


@app.command(help=ADJUST_HELP)
def adjust(
    model: Model,
    config: Annotated[Path, argument("YAML file, or name from synthlang configs adjust.", **names_of("adjust"))],
    out: Annotated[Path, option("Output folder. An unfinished adjustment continues.")],
    threads: Threads = None,
    smoke: Smoke = False,
    overrides: Set = [],  # noqa: B006
) -> None:
    """Adjust a finished model. Users see the text ADJUST_HELP."""
    run_adjustment(model, config, out, overrides, smoke=smoke, threads=threads)


app.command()(transfer)
app.command()(compare)


app.command()(probe)
app.command()(align)
app.command()(correlate)


app.command()(cli_study.study)
app.command()(cli_study.search)
app.command()(cli_study.report)
app.command()(cli_study.findings)
app.command()(cli_study.gc)


app.command()(configs)


@app.command()
def doctor() -> None:
    """Show required and installed packages, and the commands that install missing ones."""
    if not check_installation():
        raise typer.Exit(1)


def _with_source(error: InputError) -> InputError:
    """Add to the error for a missing file of a data set the command that fetches the data set."""
    if not error.absent:
        return error
    from synthlang.data.entries import name_of

    name = name_of(error.absent)
    return error if name is None else error.with_hint(f"run: synthlang data fetch {name}")


def main() -> None:
    """Run the command ``synthlang`` with the arguments of the process.

    For wrong input and for errors of the file system, print one line to standard error and exit with code 2. Ctrl-C
    exits with code 130.
    """
    for library in ("TRANSFORMERS", "HF_HUB"):  # what fails for good is an error of one line
        os.environ.setdefault(f"{library}_VERBOSITY", "error")
    set_environment()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals without arrows and dashes
    try:
        for text in (*sys.argv, os.getcwd()):
            if text != text.encode("utf-8", "ignore").decode():
                reason, hint = f"the argument or folder {text!a} is not UTF-8", "rename the folder, or write UTF-8"
                raise InputError(reason, hint=hint, code="format")
        app()
    except InputError as error:
        print(f"error: {_with_source(error)}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        hint = "; change the permissions, or choose another path" if isinstance(error, PermissionError) else ""
        print(f"error: {error.filename or 'file system'}: {error.strerror or error}{hint}", file=sys.stderr)
        raise SystemExit(2) from None
    except SystemExit as end:
        if end.code == 130:  # the code of typer for Ctrl-C
            print("stopped; run the same command again to continue", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
