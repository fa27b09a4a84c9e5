"""The commands that measure: ``synthlang probe``, ``synthlang align`` and ``synthlang correlate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import probes
from probes.cli_options import Model, Set, Threads, argument, names_of, one_of, option


def probe(
    model: Model,
    model2: Annotated[
        str | None, argument("Second model, for the other language (default: MODEL reads both languages).")
    ] = None,
    probe: Annotated[
        str | None,
        option(
            "Comma-separated probes, or all (default: those of the config, else words,retrieval,maps,cka,distances).",
            metavar="P[,P…]",
        ),
    ] = None,
    config: Annotated[
        Path | None, option("YAML file, or name from synthlang configs probes (default: none).", **names_of("probes"))
    ] = None,
    language: Annotated[
        str | None,
        option(
            "Language to compare with the source language: one of the run, or a derived one such as trans+inv "
            "(default: that of the config, else the first derived or only other one of the run).",
            metavar="SPEC",
        ),
    ] = None,
    checkpoints: Annotated[
        str | None,
        option(
            "Checkpoints of the run to probe: selected, or all of them (default: as in the config, else selected).",
            **one_of("selected", "all"),
        ),
    ] = None,
    out: Annotated[Path | None, option("Folder for the results (default for a run: RUN/probes).")] = None,
    threads: Threads = None,
    overrides: Set = [],  # noqa: B006  typer copies it
) -> None:
    """Measure how well a model aligns two languages. Results are probes.json, figures and probes.html."""
    probes.probe(
        model,
        model2,
        probes=probe,
        config=config,
        language=language,
        checkpoints=checkpoints,
        out=out,
        threads=threads,
        overrides=overrides,
    )


def align(
    texts: Annotated[
        list[Path], argument("Parallel text: one file of lines 'left ||| right', or two files LEFT RIGHT.")
    ],
    program: Annotated[str | None, option("Aligner: eflomal or fast_align (default: eflomal).")] = None,
    symmetrise: Annotated[
        str | None,
        option(
            "Alignment to write and show: forward, reverse, or both combined by intersection, union, grow-diag, "
            "grow-diag-final or grow-diag-final-and (default: intersection, or that of a single --links file)."
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        option("File of gold word alignments, sure ones as i-j, possible ones as ipj (default: none, no scores)."),
    ] = None,
    gold_first: Annotated[
        int | None,
        option("Number of the first word in --gold: 0 or 1 (default: 0, if some word has it).", min=0, max=1),
    ] = None,
    gold_reversed: Annotated[
        bool, option("Right-left order of the pairs in --gold (default: left-right).", "--gold-reversed")
    ] = False,
    links: Annotated[
        list[Path],
        option(
            "File of existing word alignments, which replaces the aligner (default: none). A second file has the "
            "reverse direction."
        ),
    ] = [],  # noqa: B006  typer copies it
    links_first: Annotated[
        int | None,
        option("Number of the first word in --links: 0 or 1 (default: 0, if some word has it).", min=0, max=1),
    ] = None,
    links_reversed: Annotated[
        bool, option("Right-left order of the pairs in --links (default: left-right).", "--links-reversed")
    ] = False,
    also: Annotated[
        list[str],
        option("Additional text for the aligner: a file, or LEFT,RIGHT (default: none; repeatable).", metavar="TEXT"),
    ] = [],  # noqa: B006
    lower: Annotated[bool, option("Lower-casing of the text before alignment.", "--lower")] = False,
    words: Annotated[str, option("Tokenization: spaces (words between spaces) or rules (built-in).")] = "spaces",
    also_words: Annotated[
        str, option("Tokenization of the --also text: spaces (words between spaces) or rules (built-in).")
    ] = "spaces",
    blank: Annotated[
        str, option("Treatment of sentence pairs without a gold alignment: wrong (errors) or skip (left out).")
    ] = "wrong",
    out: Annotated[Path | None, option("Pharaoh file to write, with words numbered from 0 (default: none).")] = None,
    scores: Annotated[Path | None, option("JSON file for the scores (default: none).")] = None,
) -> None:
    """Align the words of parallel text.

    With a gold standard, also compute alignment error rate, precision and recall.
    """
    from synthlang.parallel.align_command import AlignOptions

    options = AlignOptions(
        program=program,
        links=tuple(links),
        symmetrise=symmetrise,
        also=tuple(also),
        lower=lower,
        words=words,  # type: ignore[arg-type]  # checked by AlignOptions.check()
        also_words=also_words,  # type: ignore[arg-type]
        gold=gold,
        gold_first=gold_first,
        gold_swapped=gold_reversed,
        links_first=links_first,
        links_swapped=links_reversed,
        blank=blank,  # type: ignore[arg-type]
    )
    probes.align(texts, options, out=out, scores=scores)


def correlate(
    files: Annotated[
        list[Path], argument("Tables: results.parquet or results.csv of studies, or other Parquet or CSV files.")
    ],
    x: Annotated[str, option("First column to correlate, such as alignment_all.", metavar="COLUMN")],
    y: Annotated[str, option("Second column to correlate, such as delta.", metavar="COLUMN")],
    by: Annotated[
        str | None,
        option(
            "Grouping columns, such as task. Each group has its own coefficients (default: one group).",
            metavar="COLUMN[,…]",
        ),
    ] = None,
    block: Annotated[
        str | None,
        option("Columns in which compared rows must agree, such as objective (default: none).", metavar="COLUMN[,…]"),
    ] = None,
    cluster: Annotated[
        str | None,
        option(
            "Columns that identify groups of dependent rows, or none (default: cell, if present).", metavar="COLUMN[,…]"
        ),
    ] = None,
    kind: Annotated[
        str, option("Comma-separated coefficients: spearman, kendall, pearson.")
    ] = "spearman,kendall,pearson",
    level: Annotated[float, option("Confidence level of the intervals, between 0 and 1.")] = 0.95,
    out: Annotated[Path | None, option("JSON file for the coefficients (default: none).")] = None,
    figure: Annotated[Path | None, option("SVG file for a scatter plot (default: none).")] = None,
) -> None:
    """Correlate two columns of results. A permutation test gives p, and the bootstrap an interval."""
    groups = {"by": by, "block": block, "cluster": cluster}
    probes.correlate(files, x, y, **groups, kind=kind, level=level, out=out, figure=figure)
