"""The commands about downstream tasks: ``synthlang transfer`` and ``synthlang compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import probes
from probes.cli_options import Model, Set, Smoke, Threads, argument, names_of, one_of, option, renamed
from probes.transfer.tasks.entry import OURS

NAMES = f"{', '.join(OURS)}, or the task of a plugin"


def transfer(
    model: Model,
    task: Annotated[
        str | None, option(f"Task: {NAMES} (default: the task of the config, else pos).", **one_of(*OURS))
    ] = None,
    config: Annotated[
        Path | None,
        option("YAML file, or name from synthlang configs transfer (default: none).", **names_of("transfer")),
    ] = None,
    train: Annotated[
        str | None,
        option(
            "Training items in the source language (default: those of the config, else the text of the run).",
            metavar="SOURCE",
        ),
    ] = None,
    dev: Annotated[
        str | None,
        option(
            "Items for model selection in the source language (default: those of the config, else dev split of the "
            "training items, else their last tenth).",
            metavar="SOURCE",
        ),
    ] = None,
    test: Annotated[
        str | None,
        option(
            "Test items in the source language (default: those of the config, else test split of the training items).",
            metavar="SOURCE",
        ),
    ] = None,
    language: Annotated[
        str | None,
        option(
            "Target language: a language of the run, or a derived one such as trans+inv (default: that of the config, "
            "else the first derived language of the run). Required with --target-test, and for a MODEL that is not a "
            "run, where a natural language may have any name.",
            metavar="SPEC",
        ),
    ] = None,
    target_train: Annotated[
        str | None,
        option(
            "Training items in a natural target language (default: those of the config, else none, and no SUP).",
            metavar="SOURCE",
        ),
    ] = None,
    target_dev: Annotated[
        str | None,
        option(
            "Items for model selection in a natural target language (default: those of the config, else dev split of "
            "its training items, else their last tenth).",
            metavar="SOURCE",
        ),
    ] = None,
    target_test: Annotated[
        str | None,
        option(
            "Test items in a natural target language (default: those of the config, else test items derived from those "
            "in the source language).",
            metavar="SOURCE",
        ),
    ] = None,
    seeds: Annotated[
        int,
        option(
            "Number of fine-tuning seeds, numbered from 0. A later call with more seeds only runs the new ones.", min=1
        ),
    ] = 3,
    out: Annotated[
        Path | None, option("JSON file to write (default for a run: RUN/transfer/TASK-LANGUAGE.json).")
    ] = None,
    save_models: Annotated[
        Path | None,
        option("Folder for the models fine-tuned on the source language, for synthlang probe (default: not saved)."),
    ] = None,
    keep: Annotated[Path | None, renamed("--keep", "--save-models")] = None,
    threads: Threads = None,
    smoke: Smoke = False,
    overrides: Set = [],  # noqa: B006  typer copies it
) -> None:
    """Fine-tune a model on a task, and test it on two languages.

    Scores of the target language are SUP after training on it, and ZS after training on the source language.
    Δ is SUP − ZS.

    SOURCE is a file or folder in the usual format of the task, hf:NAME or builtin:mini-english. SOURCE#SPLIT selects
    a split, for example --test SOURCE#dev.
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
        save_models=save_models or keep,
        smoke=smoke,
        threads=threads,
        overrides=overrides,
    )


def compare(
    results: Annotated[list[Path], argument("JSON files of synthlang transfer, the baseline first.")],
    metric: Annotated[list[str], option("Score to compare (default: the main score of the task; repeatable).")] = [],  # noqa: B006
    test: Annotated[
        list[str],
        option(
            "Test set to compare, such as parent (source language), zs or sup (target language) "
            "(default: every set that all files have; repeatable).",
        ),
    ] = [],  # noqa: B006
    correction: Annotated[
        str,
        option(
            "Correction for multiple comparisons: holm, bh (Benjamini–Hochberg) or none.",
            **one_of("holm", "bh", "none"),
        ),
    ] = "holm",
    rounds: Annotated[int, option("Number of permutations of each permutation test.", min=1)] = 1000,
    swap: Annotated[
        str,
        option(
            "Unit to permute: prediction (as in the papers) or item (with its predictions of all seeds).",
            **one_of("prediction", "item"),
        ),
    ] = "prediction",
    out: Annotated[
        Path | None, option("JSON file to write with the differences and their p values (default: none).")
    ] = None,
) -> None:
    """Test whether results differ from a baseline.

    The first file is the baseline. Each other file is compared with it on the same test items. Scores that are means
    over items get a paired t-test, and other scores get a permutation test.
    """
    from probes.transfer.transfer_command import show_comparison

    options = {"correction": correction, "swap": swap}
    show_comparison(probes.compare(results, metrics=metric, tests=test, rounds=rounds, **options), out)
