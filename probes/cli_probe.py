"""The commands that measure: ``synthlang probe``, ``synthlang align`` and ``synthlang correlate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import probes
from probes.cli_options import Model, Set, Threads, argument, names_of, option


def probe(
    model: Model,
    model2: Annotated[
        str | None, argument("Another model, which reads the other language (two monolingual models).")
    ] = None,
    probe: Annotated[
        str | None,
        option("Names of probes, or all (default: the config's, else all); see docs/probes.md.", metavar="P[,P…]"),
    ] = None,
    config: Annotated[
        Path | None, option("A YAML file, or a name: synthlang configs probes.", **names_of("probes"))
    ] = None,
    language: Annotated[
        str | None, option("The other language (default: the run's first derived one).", metavar="SPEC")
    ] = None,
    out: Annotated[Path | None, option("Folder of the results (default for a run: RUN/probes).")] = None,
    threads: Threads = None,
    overrides: Set = [],  # noqa: B006  typer copies it
) -> None:
    """Measure how a model aligns two languages: probes.json, figures and a page, probes.html."""
    probes.probe(
        model, model2, probes=probe, config=config, language=language, out=out, threads=threads, overrides=overrides
    )


def align(
    texts: Annotated[list[Path], argument("One file of lines 'left ||| right', or two: LEFT RIGHT.")],
    program: Annotated[str | None, option("The aligner: eflomal (default) or fast_align.")] = None,
    symmetrise: Annotated[
        str | None,
        option(
            "What --out gets: intersection (default), union, grow-diag, grow-diag-final, grow-diag-final-and, "
            "forward or reverse."
        ),
    ] = None,
    gold: Annotated[Path | None, option("Gold links to score by: i-j sure, ipj possible.")] = None,
    gold_first: Annotated[
        int | None, option("The number of the first word in it (default: found out).", min=0, max=1)
    ] = None,
    gold_reversed: Annotated[bool, option("Its links are right-left.", "--gold-reversed")] = False,
    links: Annotated[
        list[Path], option("Score these links, run no program; give it twice for forward and reverse.")
    ] = [],  # noqa: B006  typer copies it
    links_first: Annotated[
        int | None, option("The number of the first word in them (default: found out).", min=0, max=1)
    ] = None,
    links_reversed: Annotated[bool, option("They are right-left.", "--links-reversed")] = False,
    also: Annotated[
        list[str], option("More text for the aligner: a file, or LEFT,RIGHT; repeatable.", metavar="TEXT")
    ] = [],  # noqa: B006
    lower: Annotated[bool, option("The aligner reads lower case.", "--lower")] = False,
    words: Annotated[str, option("spaces separate words, or our rules find them.")] = "spaces",
    also_words: Annotated[str, option("The same for the text of --also.")] = "spaces",
    blank: Annotated[
        str, option("Sentence pairs without a gold link: wrong (links there are wrong) or skip.")
    ] = "wrong",
    out: Annotated[Path | None, option("Pharaoh file to write, words count from 0.")] = None,
    scores: Annotated[Path | None, option("JSON file to write the scores to.")] = None,
) -> None:
    """Align the words of parallel text; with a gold standard, alignment error rate, precision and recall."""
    from synthlang.parallel.align_command import AlignOptions

    options = AlignOptions(
        program=program,
        links=tuple(links),
        symmetrise=symmetrise,
        also=tuple(also),
        lower=lower,
        words=words,  # type: ignore[arg-type]  # AlignOptions.check() sees to it
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
        list[Path], argument("Tables to read: results.parquet or results.csv of studies, or similar ones.")
    ],
    x: Annotated[str, option("Column of the first number, such as alignment_all.", metavar="COLUMN")],
    y: Annotated[str, option("Column of the second number, such as delta.", metavar="COLUMN")],
    by: Annotated[str | None, option("Columns whose values form groups, such as task.", metavar="COLUMN[,…]")] = None,
    block: Annotated[
        str | None, option("Columns within which rows are compared, such as objective.", metavar="COLUMN[,…]")
    ] = None,
    cluster: Annotated[
        str | None, option("Columns of rows that belong together, or none (default: cell).", metavar="COLUMN[,…]")
    ] = None,
    kind: Annotated[str, option("Coefficients to compute, separated by commas.")] = "spearman,kendall,pearson",
    level: Annotated[float, option("Confidence level of the intervals.")] = 0.95,
    out: Annotated[Path | None, option("JSON file to write.")] = None,
    figure: Annotated[Path | None, option("SVG file to write.")] = None,
) -> None:
    """Correlate two columns of results: permutation p and bootstrap interval, also within blocks and by cluster."""
    groups = {"by": by, "block": block, "cluster": cluster}
    probes.correlate(files, x, y, **groups, kind=kind, level=level, out=out, figure=figure)
