"""The commands ``synthlang derive``, ``parse``, ``push`` and ``dictionary``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import probes
import synthlang
from probes.cli_options import NoWait, Slurm, argument, names_of, one_of, option
from probes.study.options import EXECUTORS

SourceArgument = Annotated[
    str,
    argument(
        "Source: builtin:mini-english[?types=N&sentences=N&seed=N], text:PATH, conllu:PATH[?feats&lemma], "
        "hf:NAME[:CONFIG][?streaming], iob:PATH or slots:PATH."
    ),
]
Workers = Annotated[int, option("Number of worker processes. The output is identical for any number.", min=1)]
Cache = Annotated[Path | None, option("Folder for cached parses (default: ~/.cache/synthlang/parses).")]


def derive(
    source: Annotated[
        str,
        argument(
            "Source (see synthlang parse --help), or labelled task: nli:, ner:, pos:, parsing:, slots:, qa: or "
            "minimal: followed by a PATH, hf:NAME or builtin:mini-english."
        ),
    ],
    language: Annotated[
        str,
        option(
            "Derived language: name (trans+inv, trans:0.5+perm), entry from synthlang configs derived, or YAML file.",
            **names_of("derived"),
        ),
    ],
    out: Annotated[Path, option("Data set folder to write. A folder that already holds this data set is not changed.")],
    workers: Workers = 1,
    parser: Annotated[
        str | None,
        option(
            "Parser that gives all sentences new trees: spacy:NAME, spacy:FOLDER, stanza:LANG or stanza:FOLDER "
            "(default: none)."
        ),
    ] = None,
    licence: Annotated[
        str | None,
        option(
            "Licence for the data set card, as on Hugging Face: cc-by-sa-4.0 (default: of the source, else unknown)."
        ),
    ] = None,
    vocabulary: Annotated[
        str | None,
        option(
            "Vocabulary for token ids: a number of tokens to train (at least 261), or a tokenizer folder (default: "
            "no token ids). A labelled task cannot have one."
        ),
    ] = None,
    counts: Annotated[
        str | None,
        option("Text in which words are counted, if needed: train, dev, test or a source (default: train)."),
    ] = None,
    field: Annotated[
        list[str],
        option(
            "Field of a labelled task, such as premise, that is derived in the configuration 'mixed'. All other fields "
            "stay in the source language there (default: none; repeatable)."
        ),
    ] = [],  # noqa: B006  typer copies it
    cache: Cache = None,
) -> None:
    """Derive a language and write a data set folder. datasets.load_dataset can read it."""
    examples = synthlang.derive(
        source,
        language,
        out,
        workers=workers,
        parser=parser,
        fields=field,
        licence=licence,
        vocabulary=vocabulary,
        counts=counts,
        cache=cache,
    )
    for before, after in examples:
        typer.echo(f"  {before}\n→ {after}")


def parse(
    source: SourceArgument,
    out: Annotated[Path, option("Folder for train.conllu, dev.conllu and test.conllu.")],
    engine: Annotated[Literal["spacy", "stanza"], option("Parser: spacy or stanza.")] = "spacy",
    model: Annotated[
        str | None,
        option("Model: spaCy pipeline, Stanza language or folder (default: en_core_web_sm for spacy, en for stanza)."),
    ] = None,
    tokens: Annotated[
        Literal["source", "engine"],
        option("Tokenization: source (keep its words) or engine (let the parser split plain text)."),
    ] = "source",
    morphology: Annotated[
        bool, option("Morphological features and lemmas, in addition to tags and trees.", "--morphology")
    ] = False,
    executor: Annotated[
        str,
        option("Executor: local (worker processes), in-process (this process) or slurm (jobs).", **one_of(*EXECUTORS)),
    ] = "local",
    workers: Annotated[
        int | None,
        option(
            "Number of worker processes (default: one per CUDA device, else 1). Any number gives the same output.",
            min=1,
        ),
    ] = None,
    slurm: Slurm = [],  # noqa: B006  typer copies it
    no_wait: NoWait = False,
    retry: Annotated[int, option("Number of retries of a failed job of --executor slurm.", min=0)] = 0,
    job_sentences: Annotated[
        int | None, option("Number of sentences for each job of --executor slurm (default: 100,000).", min=1)
    ] = None,
    cache: Cache = None,
) -> None:
    """Annotate text with a parser. An interrupted run continues where it stopped."""
    probes.parse(
        source,
        out,
        engine=engine,
        model=model,
        tokens=tokens,
        morphology=morphology,
        executor=executor,
        workers=workers,
        slurm=slurm,
        wait=not no_wait,
        retry=retry,
        job_sentences=job_sentences,
        cache=cache,
    )


def push(
    folder: Annotated[
        Path,
        argument(
            "Study folder, data set folder from derive, finished run, or one export of a run (RUN/export/LANGUAGE)."
        ),
    ],
    repo: Annotated[
        str | None, argument("Repository on the Hugging Face hub, except for a study: USER/NAME (default: none).")
    ] = None,
    to: Annotated[
        str | None,
        option(
            "Owner of the repositories of a study, and prefix of their names (default: the study's name as prefix).",
            metavar="OWNER[/PREFIX]",
        ),
    ] = None,
    public: Annotated[bool, option("Visibility of new repositories.", "--public/--private")] = False,
    partial: Annotated[
        bool,
        option(
            "Partial upload of a study, without unfinished cells, damaged models and models without weights.",
            "--partial",
        ),
    ] = False,
    dry_run: Annotated[bool, option("List of what would be uploaded, without any upload.", "--dry-run")] = False,
) -> None:
    """Upload a study, a model or a data set to the hub. No other command uploads anything."""
    if addresses := probes.push(folder, repo, to=to, public=public, partial=partial, dry_run=dry_run):
        typer.echo(addresses[-1])


def dictionary(
    spec: Annotated[str, argument("Derived language (name or YAML file), or MUSE file of two natural languages.")],
    out: Annotated[Path, option("Folder for dictionary.txt (MUSE format) and manifest.json.")],
    source: Annotated[
        str | None,
        option(
            "Source whose training split gives word counts (default: none). Required for a derived language. Pairs "
            "of a MUSE file whose source word does not occur there are left out."
        ),
    ] = None,
    coverage: Annotated[
        float, option("Share of the source words with a translation that are sampled, from 0 to 1.", min=0.0, max=1.0)
    ] = 0.25,
    by: Annotated[
        Literal["type", "token"],
        option("Unit of --coverage: type (distinct words) or token (running words, needs --source)."),
    ] = "type",
    order: Annotated[
        Literal["uniform", "frequent"],
        option("Selection of the words: uniform (at random) or frequent (most frequent first, needs --source)."),
    ] = "uniform",
    seed: Annotated[int, option("Seed for sampling the words.", min=0)] = 0,
    target_source: Annotated[
        str | None,
        option(
            "Source in the target language of a MUSE file (default: none). Pairs whose translation does not occur in "
            "its training split are left out."
        ),
    ] = None,
) -> None:
    """Sample a bilingual dictionary and write it in MUSE format."""
    options: dict[str, Any] = {"coverage": coverage, "by": by, "order": order, "seed": seed}
    synthlang.draw_dictionary(spec, out, source=source, target_source=target_source, **options)
