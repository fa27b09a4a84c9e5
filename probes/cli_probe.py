"""The commands that measure: ``synthlang probe``, ``synthlang align`` and ``synthlang correlate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from probes.cli_options import Model, Set, Threads, argument, option


def probe(
    model: Model,
    model2: Annotated[
        str | None, argument("Another model, which reads the other language (two monolingual models).")
    ] = None,
    probe: Annotated[
        str | None,
        option("Names of probes, or all (default: the config's, else all); see docs/probes.md.", metavar="P[,P…]"),
    ] = None,
    config: Annotated[Path | None, option("A YAML file, or a name: synthlang configs probes.")] = None,
    language: Annotated[
        str | None, option("The other language (default: the run's first derived one).", metavar="SPEC")
    ] = None,
    out: Annotated[Path | None, option("Folder of the results (default for a run: RUN/probes).")] = None,
    threads: Threads = None,
    overrides: Set = [],  # noqa: B006  typer copies it
) -> None:
    """Measure how a model aligns two languages: probes.json, figures and a page, probes.html."""
    from probes.measures.probe_command import probe_command, probe_names, read_probe_config

    options = {"language": language, "model2": model2, "probes": probe_names(probe)}
    probe_command(model, read_probe_config(config, options, overrides), out, threads)


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
    from probes.statistics import alignment_interval
    from synthlang.parallel.align_command import AlignOptions, align_command

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
    files: Annotated[list[Path], argument("results.parquet or results.csv of studies, or tables like them.")],
    x: Annotated[str, option("A column of numbers, such as alignment_all.", metavar="COLUMN")],
    y: Annotated[str, option("Another one, such as delta.", metavar="COLUMN")],
    by: Annotated[str | None, option("A group for each value, such as task.", metavar="COLUMN[,…]")] = None,
    block: Annotated[
        str | None, option("Compare rows only within these, such as objective.", metavar="COLUMN[,…]")
    ] = None,
    cluster: Annotated[
        str | None, option("Rows that belong together (default: cell if there is one); or none.", metavar="COLUMN[,…]")
    ] = None,
    kind: Annotated[str, option("Of spearman, kendall and pearson, those to compute.")] = ("spearman,kendall,pearson"),
    level: Annotated[float, option("Of the intervals.")] = 0.95,
    out: Annotated[Path | None, option("JSON file to write.")] = None,
    figure: Annotated[Path | None, option("SVG file to write.")] = None,
) -> None:
    """Correlate two columns of results: permutation p and bootstrap interval, also within blocks and by cluster."""
    from probes.correlation import CorrelateOptions, correlate_command

    options = CorrelateOptions.of(x, y, by, block, cluster, kind, level)
    correlate_command(files, options, out, figure)
