"""The commands that measure: ``synthlang probe``, ``synthlang align`` and ``synthlang correlate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def probe(
    model: Annotated[str, typer.Argument(help="A finished run, a folder or a name of Hugging Face.")],
    model2: Annotated[
        str | None, typer.Argument(help="Another model, which reads the other language (two monolingual models).")
    ] = None,
    probe: Annotated[
        str | None,
        typer.Option(
            metavar="P[,P…]",
            help="Names of probes, or all (default: the config's, else all); see docs/probes.md.",
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file, such as one of configs/probes.")] = None,
    language: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="The other language (default: the run's first derived one)."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results (default for a run: RUN/probes).")] = None,
    overrides: Annotated[
        list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the config; repeatable.")
    ] = [],  # noqa: B006  typer copies it
) -> None:
    """Measure how a model aligns two languages: probes.json, figures and a page, probes.html."""
    from probes.measures.command import probe_command, probe_names, read_probe_config

    options = {"language": language, "model2": model2, "probes": probe_names(probe)}
    probe_command(model, read_probe_config(config, options, overrides), out)


def align(
    texts: Annotated[list[Path], typer.Argument(help="One file of lines 'left ||| right', or two: LEFT RIGHT.")],
    program: Annotated[str | None, typer.Option(help="The aligner: eflomal (default) or fast_align.")] = None,
    symmetrise: Annotated[
        str | None,
        typer.Option(
            help="What --out gets: intersection (default), union, grow-diag, grow-diag-final, grow-diag-final-and, "
            "forward or reverse."
        ),
    ] = None,
    gold: Annotated[Path | None, typer.Option(help="Gold links to score by: i-j sure, ipj possible.")] = None,
    gold_first: Annotated[
        int | None, typer.Option(min=0, max=1, help="The number of the first word in it (default: found out).")
    ] = None,
    gold_reversed: Annotated[bool, typer.Option("--gold-reversed", help="Its links are right-left.")] = False,
    links: Annotated[
        list[Path], typer.Option(help="Score these links, run no program; give it twice for forward and reverse.")
    ] = [],  # noqa: B006  typer copies it
    links_first: Annotated[
        int | None, typer.Option(min=0, max=1, help="The number of the first word in them (default: found out).")
    ] = None,
    links_reversed: Annotated[bool, typer.Option("--links-reversed", help="They are right-left.")] = False,
    also: Annotated[
        list[str], typer.Option(metavar="TEXT", help="More text for the aligner: a file, or LEFT,RIGHT; repeatable.")
    ] = [],  # noqa: B006
    lower: Annotated[bool, typer.Option("--lower", help="The aligner reads lower case.")] = False,
    words: Annotated[str, typer.Option(help="spaces separate words, or our rules find them.")] = "spaces",
    also_words: Annotated[str, typer.Option(help="The same for the text of --also.")] = "spaces",
    blank: Annotated[
        str, typer.Option(help="Sentence pairs without a gold link: wrong (links there are wrong) or skip.")
    ] = "wrong",
    out: Annotated[Path | None, typer.Option(help="Pharaoh file to write, words count from 0.")] = None,
    scores: Annotated[Path | None, typer.Option(help="JSON file to write the scores to.")] = None,
) -> None:
    """Align the words of parallel text; with a gold standard, alignment error rate, precision and recall."""
    from probes.statistics.alignment import alignment_interval
    from synthlang.parallel.command import AlignOptions, align_command

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
    align_command(texts, options, out, scores, alignment_interval)


def correlate(
    files: Annotated[
        list[Path], typer.Argument(help="results.parquet or results.csv of studies, or tables like them.")
    ],
    x: Annotated[str, typer.Option(metavar="COLUMN", help="A column of numbers, such as alignment_all.")],
    y: Annotated[str, typer.Option(metavar="COLUMN", help="Another one, such as delta.")],
    by: Annotated[str | None, typer.Option(metavar="COLUMN[,…]", help="A group for each value, such as task.")] = None,
    block: Annotated[
        str | None, typer.Option(metavar="COLUMN[,…]", help="Compare rows only within these, such as objective.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="COLUMN[,…]", help="Rows that belong together (default: cell if there is one); or none."),
    ] = None,
    kind: Annotated[str, typer.Option(help="Of spearman, kendall and pearson, those to compute.")] = (
        "spearman,kendall,pearson"
    ),
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    figure: Annotated[Path | None, typer.Option(help="SVG file to write.")] = None,
) -> None:
    """Correlate two columns of results: permutation p and bootstrap interval, also within blocks and by cluster."""
    from probes.correlation import CorrelateOptions, correlate_command

    options = CorrelateOptions.of(x, y, by, block, cluster, kind, level)
    correlate_command(files, options, out, figure)
