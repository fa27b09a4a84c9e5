"""The commands about downstream tasks: ``synthlang transfer`` and ``synthlang compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probes.transfer.tasks import TASKS

*_FIRST, _LAST = TASKS
NAMES = f"{', '.join(_FIRST)} or {_LAST}"


def transfer(
    model: Annotated[str, typer.Argument(help="A finished run, a folder or a name of Hugging Face.")],
    task: Annotated[str | None, typer.Option(help=f"The task: {NAMES} (default: the config's, or pos).")] = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file, such as one of configs/transfer.")] = None,
    train: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="The parent's items to train on (default: the run's text).")
    ] = None,
    dev: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Items to choose by (default: that source's dev split).")
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Items to test on (default: its test split).")
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="The language to transfer to (default: the run's first derived one)."),
    ] = None,
    target_train: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Another natural language: its own items to train on.")
    ] = None,
    target_dev: Annotated[str | None, typer.Option(metavar="SOURCE", help="Its items to choose by.")] = None,
    target_test: Annotated[str | None, typer.Option(metavar="SOURCE", help="Its items to test on.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Fine-tune with seeds 0 … N − 1; more can be added later.")] = 3,
    out: Annotated[
        Path | None, typer.Option(help="JSON file to write (default for a run: RUN/transfer/TASK-LANGUAGE.json).")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder for the models fine-tuned on the parent, as synthlang probe reads them.")
    ] = None,
    overrides: Annotated[
        list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the config; repeatable.")
    ] = [],  # noqa: B006  typer copies it
) -> None:
    """Fine-tune on the parent and on another language; report SUP, ZS and Δ = SUP − ZS.

    SOURCE is what the task's items are read from: a file or folder in the field's format, hf:NAME or
    builtin:mini-english; SOURCE#dev takes another split than that of the option's name.
    """
    from probes.transfer.command import read_transfer_config, transfer_command

    options = {"task": task, "train": train, "dev": dev, "test": test, "language": language}
    target = {"train": target_train, "dev": target_dev, "test": target_test}
    transfer_command(model, read_transfer_config(config, options, target, overrides), seeds, out, keep)


def compare(
    results: Annotated[list[Path], typer.Argument(help="Results of synthlang transfer, the baseline first.")],
    metric: Annotated[
        list[str], typer.Option(help="A score to compare; repeatable (default: the task's main one).")
    ] = [],  # noqa: B006
    test: Annotated[
        list[str], typer.Option(help="A test: parent, zs, sup, …; repeatable (default: all that all files have).")
    ] = [],  # noqa: B006
    correction: Annotated[str, typer.Option(help="For many comparisons: holm, bh or none.")] = "holm",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the permutation test.")] = 1000,
    swap: Annotated[
        str,
        typer.Option(help="What that test swaps: each prediction (as in the papers) or an item with all its seeds."),
    ] = "prediction",
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
) -> None:
    """Test whether results differ from the first one: paired t-test and permutation test of the kept predictions."""
    from probes.transfer.command import show_comparison
    from probes.transfer.compare import compare as compared

    found = compared(results, metrics=metric, tests=test, correction=correction, rounds=rounds, swap=swap)
    show_comparison(found, out)
