"""Sections of a study report in reading order.

This module makes the sections on languages, scores, failed cells, left-out data, settings and provenance. Other modules
make the other sections.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from probes.claims.papers import names_in
from probes.figures.drawing import slug, standalone_svg
from probes.models.names import CellModel
from probes.report.against import alignment, movements
from probes.report.data import Study
from probes.report.differences import differences, differences_section
from probes.report.distances import word_distances
from probes.report.dose import dose_responses
from probes.report.files import FIGURES, HTML, MARKDOWN, TABLES
from probes.report.for_paper import for_paper
from probes.report.judged import Comparisons, beside_papers, judged_claims
from probes.report.latex import csv_table, latex_table
from probes.report.layers import by_layer, measures_alone, over_training, words_alone
from probes.report.maps import maps
from probes.report.numbers import Badge, Entry, number, where_bounds
from probes.report.overview import main_curve, overview, without
from probes.report.page import (
    Block,
    Code,
    Figures,
    Folded,
    Paragraph,
    Section,
    Table,
    Terms,
    flat,
    html_page,
    markdown_page,
)
from probes.report.printed import SHOWN, Printed
from probes.report.scores import (
    CLIPPED,
    FAILED_TRAINING,
    Column,
    Condition,
    Material,
    axis_columns,
    by_rows,
    grouped,
    scores_of,
)
from probes.report.summary import NAMES
from probes.report.training import pretraining, training
from probes.results.labels import Layout, axes_that_set, is_of_languages
from probes.results.measures import ALIGNMENT_MEASURES, TOKENS_PER_WORD
from probes.results.scores import MAJORITY, PERPLEXITY, SCORES
from probes.study.common_settings import DIFFERS
from synthlang.strict_yaml import write_yaml
from synthlang.wording import plural

CONDITIONS, SEEDS, FAILED, LOGS, DROPPED, CELLS = 120, 300, 50, 10, 150, 100
"""Largest numbers of rows in the tables of the page. LOGS is the largest number of logs."""
LOG_LINES = 60
"""Largest number of lines of a log, counted from its end."""
EXPLAINED = (
    "Source is the score of a model that was fine-tuned and tested on the source language. SUP (supervised) was "
    "fine-tuned and tested on the other language. ZS (zero-shot) was fine-tuned on the source language and tested on "
    "the other. Δ = SUP − ZS. Majority is the score of always predicting the most frequent label. Alignment is the "
    "mean of both directions of word-embedding alignment."
)
INTERVALS = (
    " Intervals are over pretraining seeds, each the mean of its fine-tuning seeds. With one pretraining they are over "
    "fine-tuning seeds."
)
TITLES = {**SHOWN, "sup": "SUP", MAJORITY: "Majority", "parent": "Source"}
"""Score → title of its column. On a phone the first columns are visible without scrolling."""
OF_PERPLEXITY = (
    "Perplexity is over masked words of the dev set of the source language, or over all its tokens for a decoder, as "
    "logged during pretraining."
)
OF_FAILED = (
    "Models that have not learned come last in each table and are excluded from means, figures, comparisons and "
    "claims. They exceed a limit of the study, or are hardly better than the majority baseline."
)
LANGUAGES = "This is one sentence of the training text in each language, decoded from the tokens that the models read."
DROPPED_CAPTION = (
    "The table counts items that a kind of stage left out, shortened, changed or could not change, and sentence pairs "
    "that remained. Least and Most are the smallest and the largest number in one stage. In stages is the number of "
    "stages with such items among all stages that read these data."
)
WRITTEN = "This is the study file. The key base names files whose settings it changes."
RESOLVED = (
    f"These are all settings after base files, the study file and defaults are combined. {DIFFERS} marks settings that "
    "differ between cells. Their values are in the labels of the cells and in the column Settings of the cell of "
    f"tables/cells.csv. {CellModel.ORIGINAL} is the model of the same cell before adjustment, {CellModel.ADJUSTED} the "
    f"model after it, {CellModel.TARGET} the model of target_model, and {CellModel.INIT} that of init_from."
)


def sections(study: Study, comparisons: Comparisons) -> list[Section]:
    """Return all sections of a report that have content, in reading order."""
    material = scores_of(study, comparisons.measures)
    printed = Printed(name for config in study.configs for name in names_in(config.get("paper")))
    found = differences(material)
    curves = (dose_responses(material), over_training(material), training(material))
    first = main_curve(material, printed, curves)
    doses, steps, runs = (without(section, first) for section in curves)
    parts = (
        overview(material, comparisons, found, printed, first),
        _languages(study, material.layout),
        differences_section(found),
        judged_claims(comparisons),
        beside_papers(comparisons),
        _failed(study),
        _scores(material) if material.rows or study.perplexities.empty else None,
        pretraining(material),
        doses,
        maps(material),
        alignment(material),
        movements(material),
        word_distances(material),
        words_alone(material),
        measures_alone(material),
        by_layer(material),
        steps,
        runs,
        _dropped(study),
        for_paper(material, found),
        _provenance(study),
        _settings(study),
    )
    return [part for part in parts if part is not None and part.blocks]


def files_of(title: str, under: str, parts: Sequence[Section]) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each file of a report: figures, tables, and the two pages last.

    A figure is an SVG file. A table with a name is a CSV and a LaTeX file.

    Args:
        title: The title of the page.
        under: The line under the title.
        parts: The sections of the report.
    """
    for block in (block for part in parts for block in flat(part.blocks)):
        for figure in block.figures if isinstance(block, Figures) else ():
            yield f"{FIGURES}/{figure.name}.svg", standalone_svg(figure)
        if isinstance(block, Table) and block.name:
            yield f"{TABLES}/{block.name}.csv", csv_table(block)
            yield f"{TABLES}/{block.name}.tex", latex_table(block)
    yield MARKDOWN, markdown_page(title, under, parts)
    yield HTML, html_page(title, under, parts)


def _languages(study: Study, layout: Layout) -> Section | None:
    """Return the section with an example sentence of each language, or None if no sentence is recorded."""
    labels = {cell.name: cell.labels for cell in study.cells}
    of_languages = axes_that_set(study.config, is_of_languages)
    axes = [axis for axis in layout.axes if axis in of_languages or is_of_languages(axis)]
    items = list[tuple[str | Badge, Sequence[str]]]()
    for place, example in enumerate(study.examples):
        name, label = example["language"], layout.only(labels.get(example["cell"], {}), axes)
        is_source = place == 0 or name == study.examples[0]["language"]
        items.append((name if is_source or label in ("", name) else f"{label} ({name})", [example["text"]]))
    return Section("Languages", [Paragraph(LANGUAGES), Terms(items)]) if items else None


def _failed(study: Study) -> Section | None:
    cells = [cell for cell in study.cells if cell.status == "failed"]
    if not cells:
        return None
    caption = "These cells failed with an error."
    table = Table(caption, ["Cell", "Error"], [[c.name, c.error or "no message"] for c in cells], 2, "failed", FAILED)
    logs = [
        Folded(f"{c.name}: log", [Code("\n".join(c.log.rstrip().splitlines()[-LOG_LINES:]))])
        for c in [cell for cell in cells if cell.log.strip()][:LOGS]
    ]
    return Section("Failed cells", [table, *logs])


def _scores(material: Material) -> Section:
    if not material.rows:
        return Section("Scores", [Paragraph("No cell has been scored.", "note")])
    every_seed = _every_seed(material)
    told = f" {OF_PERPLEXITY}" if "Perplexity" in every_seed.header else ""
    tasks = grouped(material.every, lambda condition: condition.task)
    tables = [_table(task, members, material, place) for place, (task, members) in enumerate(tasks.items(), 1)]
    intervals = where_bounds((entry for table in tables for row in table.rows for entry in row), INTERVALS)
    blocks: list[Block] = [Paragraph(f"{EXPLAINED}{intervals}{told} {CLIPPED}")]
    blocks += [Paragraph(OF_FAILED)] if material.failed else []
    blocks += tables
    return Section("Scores", [*blocks, Folded("Every seed", [every_seed])])


def _every_seed(material: Material) -> Table:
    rows = material.rows
    columns: list[Column] = [
        ("Cell", [row.cell for row in rows]),
        ("Task", [row.task for row in rows]),
        ("Metric", [row.metric.replace("_", " ") for row in rows]),
        ("Pretraining seed", ["–" if row.pretrain_seed is None else str(row.pretrain_seed) for row in rows]),
        ("Fine-tuning seed", ["–" if row.seed is None else str(row.seed) for row in rows]),
        *((TITLES[name], [row.values.get(name) for row in rows]) for name in SCORES),
    ]
    if any(PERPLEXITY in row.values for row in rows):
        columns.append(("Perplexity", [row.values.get(PERPLEXITY) for row in rows]))
    if material.failed:
        columns.append(("Not learned", [row.failed or "–" for row in rows]))
    return Table("Scores in percent, a row for each fine-tuning seed.", *by_rows(columns), 3, "seeds", SEEDS, 2)


def _table(task: str, conditions: Sequence[Condition], material: Material, place: int) -> Table:
    metric = conditions[0].first.metric.replace("_", " ")
    columns = axis_columns(material.layout, [c.labels for c in conditions])
    texts = len(columns)
    columns.append(("Seeds", [c.seeds for c in conditions]))
    if material.failed:
        columns.append(("Training", [FAILED_TRAINING if c.has_failed else "–" for c in conditions]))
    titles = {
        **TITLES,
        TOKENS_PER_WORD: "Tokens\nper word",
        PERPLEXITY: "Perplexity",
        **{name: f"Alignment\n{NAMES[name]}" for name in ALIGNMENT_MEASURES},
    }
    for name, title in titles.items():
        values: list[Entry] = [c.mean(name) if name == MAJORITY else c.interval(name) for c in conditions]
        if name == TOKENS_PER_WORD:  # two digits, since a marker on every tenth word is a tenth of a token
            values = [None if (mean := c.mean(name)) is None else number(mean, 2) for c in conditions]
        if name in SCORES or any(value is not None for value in values):
            columns.append((title, values))
    name = f"scores-{slug(task, place)}"
    header, rows = by_rows(columns)
    intervals = where_bounds(chain(*rows), ", with 95 % intervals (Student's t)")
    caption = f"{task}{f' ({metric})' if metric else ''}: means in percent{intervals}."
    return Table(caption, header, rows, texts, name, CONDITIONS).without_constant()


def _dropped(study: Study) -> Section | None:
    """Return the section on data that stages left out or changed, or None if nothing was recorded."""
    if not study.dropped:
        return None
    body: list[list[Entry]] = []
    for path, count in _drop_counts(study.dropped):
        *stage, data, reason = ("", "", *path)[-max(3, len(path)) :]
        where = [" › ".join(filter(None, stage)), data, reason]
        body.append([*where, count["least"], count["most"], f"{count['stages']:,} of {count['of']:,}"])
    if not body:
        return Section("What was left out", [Paragraph("Nothing was left out.")])
    header = ["Stage", "Data", "What", "Least", "Most", "In stages"]
    return Section("What was left out", [Table(DROPPED_CAPTION, header, body, 3, "dropped", DROPPED)])


def _drop_counts(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, int]]]:
    """Yield every count with the keys that lead to it. In a joined report the first key is a study."""
    if not isinstance(value, Mapping):
        return
    if all(isinstance(value.get(key), int) for key in ("least", "most", "stages", "of")):
        yield path, value
        return
    for key, inner in value.items():
        yield from _drop_counts(inner, (*path, str(key)))


def _settings(study: Study) -> Section:
    """Return the section with the study file and the resolved settings as YAML."""
    written = write_yaml(dict(study.config)) if study.config else "No settings were recorded."
    blocks: list[Block] = [Paragraph(WRITTEN), Code(written)]
    if study.settings:
        full = Code(write_yaml(dict(study.settings)))
        blocks.append(Folded("All settings", [Paragraph(RESOLVED), full], aside=True))
    else:
        blocks.append(
            Paragraph("The combined settings are not recorded. Run the study command again to record them.", "note")
        )
    return Section("Settings", blocks)


def _provenance(study: Study) -> Section:
    """Return the section with fingerprints, environment and computing time."""
    stages = list(dict.fromkeys(stage for cell in study.cells for stage in cell.stages))
    changed = [", ".join(f"{key}={_value(value)}" for key, value in c.overrides.items()) for c in study.cells]
    body = [
        [c.name, c.status, *(c.stages.get(stage, "–") for stage in stages), changes or "–"]
        for c, changes in zip(study.cells, changed, strict=True)
    ]
    blocks: list[Block] = [Paragraph(f"Study {study.name}, fingerprint {study.fingerprint or 'unknown'}.")]
    if body:
        header = ["Cell", "Status", *(f"{stage} fingerprint" for stage in stages), "Settings of the cell"]
        caption = "Cells and the fingerprints of their stages."
        table = Table(caption, header, body, len(header), "cells", CELLS)
        blocks.append(Folded(f"Fingerprints of {plural(len(body), 'cell')}, stage by stage", [table], aside=True))
    if study.environment:
        environment = [[key, _value(value)] for key, value in study.environment.items()]
        blocks.append(Table("Environment.", ["What", "Version or value"], environment, 2, "environment"))
    if study.seconds:
        by_kind = grouped(sorted(study.seconds.items()), lambda item: item[0].rsplit("-", 1)[0])
        kinds = {kind: [seconds for _, seconds in of] for kind, of in by_kind.items()}
        times: list[list[Entry]] = [
            [kind, len(of), duration(sum(of)), duration(max(of))]
            for kind, of in (*kinds.items(), ("all", list(study.seconds.values())))
        ]
        header = ["Stage", "Number", "Total", "Longest"]
        blocks.append(
            Table(
                "Computing time of the stages (h:mm:ss). Stages that ran at the same time count in full.", header, times
            )
        )
    else:
        blocks.append(Paragraph("No times were recorded.", "note"))
    return Section("Provenance", blocks)


def duration(seconds: float) -> str:
    """Return a duration as h:mm:ss, with tenths of seconds below 10 seconds.

    >>> duration(3725.4), duration(0.42)
    ('1:02:05', '0:00:00.4')
    """
    if seconds < 10:
        return f"0:00:{seconds:04.1f}"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
