"""The commands about downstream tasks: ``synthlang transfer`` and ``synthlang compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import probes
from probes.cli_options import Model, Set, Smoke, Threads, argument, names_of, one_of, option
from probes.transfer.tasks.entry import OURS

NAMES = f"{', '.join(OURS)}, or a plugin's"


def transfer(
    model: Model,
    task: Annotated[str | None, option(f"The task: {NAMES} (default: the config's, or pos).", **one_of(*OURS))] = None,
    config: Annotated[
        Path | None, option("A YAML file, or a name: synthlang configs transfer.", **names_of("transfer"))
    ] = None,
    train: Annotated[
        str | None, option("The parent's items to train on (default: the run's text).", metavar="SOURCE")
    ] = None,
    dev: Annotated[
        str | None, option("Items to choose by (default: that source's dev split).", metavar="SOURCE")
    ] = None,
    test: Annotated[str | None, option("Items to test on (default: its test split).", metavar="SOURCE")] = None,
    language: Annotated[
        str | None, option("The language to transfer to (default: the run's first derived one).", metavar="SPEC")
    ] = None,
    target_train: Annotated[
        str | None, option("Another natural language: its own items to train on.", metavar="SOURCE")
    ] = None,
    target_dev: Annotated[str | None, option("Its items to choose by.", metavar="SOURCE")] = None,
    target_test: Annotated[str | None, option("Its items to test on.", metavar="SOURCE")] = None,
    seeds: Annotated[int, option("Fine-tune with seeds 0 … N − 1; more can be added later.", min=1)] = 3,
    out: Annotated[
        Path | None, option("JSON file to write (default for a run: RUN/transfer/TASK-LANGUAGE.json).")
    ] = None,
    keep: Annotated[
        Path | None, option("Folder for the models fine-tuned on the parent, as synthlang probe reads them.")
    ] = None,
    threads: Threads = None,
    smoke: Smoke = False,
    overrides: Set = [],  # noqa: B006  typer copies it
) -> None:
    """Fine-tune on the parent and on another language; report SUP, ZS and Δ = SUP − ZS.

    SOURCE is what the task's items are read from: a file or folder in the field's format, hf:NAME or
    builtin:mini-english; SOURCE#dev takes another split than that of the option's name.
    """
    probes.run_transfer(
        model,
        task,
        config=config,
        train=train,
        dev=dev,
        test=test,
        language=language,
        target={"train": target_train, "dev": target_dev, "test": target_test},
        seeds=seeds,
        out=out,
        keep=keep,
        smoke=smoke,
        threads=threads,
        overrides=overrides,
    )


def compare(
    results: Annotated[list[Path], argument("Results of synthlang transfer, the baseline first.")],
    metric: Annotated[list[str], option("A score to compare; repeatable (default: the task's main one).")] = [],  # noqa: B006
    test: Annotated[
        list[str], option("A test: parent, zs, sup, …; repeatable (default: all that all files have).")
    ] = [],  # noqa: B006
    correction: Annotated[str, option("For many comparisons: holm, bh or none.")] = "holm",
    rounds: Annotated[int, option("Rounds of the permutation test.", min=1)] = 1000,
    swap: Annotated[
        str, option("What that test swaps: each prediction (as in the papers) or an item with all its seeds.")
    ] = "prediction",
    out: Annotated[Path | None, option("JSON file to write.")] = None,
) -> None:
    """Test whether results differ from the first one: paired t-test and permutation test of the kept predictions."""
    from probes.transfer.transfer_command import show_comparison

    options = {"correction": correction, "swap": swap}
    show_comparison(probes.compare(results, metrics=metric, tests=test, rounds=rounds, **options), out)
