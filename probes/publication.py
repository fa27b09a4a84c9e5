"""A whole study on the hub: a repository for each model, a data set with the results, and a collection that joins them.

The plan of a publication is made from the folder of the study without the network. Absolute paths in settings and
tables are shortened, and logs of failed cells are left out.
"""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pretrain.model_push import model_repository
from probes.report.archive import without_place, without_places
from probes.report.files import HTML, report_files
from probes.results.columns import parquet_file
from probes.results.schema import MEASUREMENTS
from probes.stages.done import damage, kept_of
from probes.stages.kinds import RUN_STAGES
from probes.study.record import STAGES, STUDY, read_record
from probes.study.stage_folders import cell_stage
from synthlang.errors import InputError
from synthlang.export.card import card_config, card_header, code_block, markdown_table, write_card
from synthlang.hub_upload import LONGEST, NAME_RULE, Content, Repository, check_repository
from synthlang.strict_yaml import write_yaml
from synthlang.wording import first_few, plural

MODELS = tuple(name for name, kind in RUN_STAGES.items() if kind in ("pretrain", "adjust"))
"""Names of the stages of a cell whose models are published. Fine-tuned models are not published."""
RESULTS, MEASURES = "results.parquet", "measures.parquet"
OWN_FILE = "study.yaml"
KEY = 8
"""Number of digits of a stage key in the name of the repository of a model."""
TITLE, DESCRIPTION = 59, 150
"""Largest number of characters of the title and of the description of a collection."""
PARTIAL = "--partial uploads the rest"
PUBLIC = (
    *("format", "name", "title", "fingerprint", "config", "settings", "environment", "axes", "seconds", "dropped"),
    "examples",
)
FILES = {
    f"`{RESULTS}`": "a row for each task, seed and cell: SUP, ZS, Δ, alignment",
    f"`{MEASURES}`": "a row for each measure of a probe and for each perplexity",
    f"`{MEASUREMENTS}`": "all numbers in one table, with units and ranges",
    f"`{HTML}`": "the report, with tables and figures beside it",
    f"`{OWN_FILE}`": "the settings, which `synthlang study` runs again",
    f"`{STUDY}`": "cells, labels, fingerprints of all stages, seconds, versions",
}
"""File of the repository of results → its content, for the card."""
OF_CELL = ("name", "labels", "overrides", "status", "stages", "keys")
"""Published keys of a cell in study.json, where PUBLIC has those of a study. Other keys hold paths and logs."""


@dataclass(frozen=True)
class PublishedModel:
    """A pretrained or adjusted model of a study, which becomes a repository.

    Attributes:
        run: The folder of the run.
        labels: Label of each axis on which all cells with the model agree.
    """

    run: Path
    labels: Mapping[str, str]

    @property
    def key(self) -> str:
        """Key of the stage that made the model."""
        return self.run.name.rpartition("-")[2]


@dataclass(frozen=True)
class Publication:
    """The repositories and the collection of a study.

    Attributes:
        owner: The user or the organization that owns the repositories.
        title: Title of the collection.
        description: Description of the collection.
        repositories: The models, and last the data set with the results.
        left_out: Descriptions of the cells and models that a partial publication leaves out.
    """

    owner: str
    title: str
    description: str
    repositories: tuple[Repository, ...]
    left_out: tuple[str, ...]


def publication(folder: Path, to: str, partial: bool = False) -> Publication:
    """Return the plan of the publication of a study. Every file of its models is read and checked.

    Args:
        folder: The folder of the study.
        to: OWNER or OWNER/PREFIX. The names of all repositories begin with the prefix (default: the study's name).
        partial: True to leave out unfinished cells, damaged models, and models without weights.

    Raises:
        InputError: The study is unfinished or damaged, ``to`` or a name made from it is not valid, or a table or the
            report is missing.
    """
    record = read_record(folder)
    owner, prefix = _names(to, record)
    models, absent, freed = _models(folder, record)
    absent = [*_unfinished(record), *absent]
    left_out = [*absent, *freed]
    if left_out and not partial:
        hint = f"start the study again, which makes what is missing; {PARTIAL}" if absent else PARTIAL
        raise InputError(f"the study is incomplete: {'; '.join(left_out)}", folder, hint=hint, code="conflict")
    results = f"{owner}/{prefix}-results"
    names = {model.run.name: _model_name(owner, prefix, model) for model in models}
    about = _study_section(record, results)
    tables = [markdown_table(("axis", "label"), list(one.labels.items())) if one.labels else "" for one in models]
    repositories = [
        model_repository(model.run, names[model.run.name], [("Study", about + table)])
        for model, table in zip(models, tables, strict=True)
    ]
    repositories.append(_results(folder, record, results, [(names[one.run.name], one) for one in models], left_out))
    title = record.get("title") or record["name"]
    title = title if len(title) <= TITLE else f"{title[: TITLE - 1].rstrip()}…"
    description = f"synthlang study {record['name']}, fingerprint {record['fingerprint']}"[:DESCRIPTION]
    return Publication(owner, title, description, tuple(repositories), tuple(left_out))


# --- models


def _unfinished(record: Mapping[str, Any]) -> list[str]:
    names = [cell["name"] for cell in record["cells"] if cell["status"] != "done"]
    verb = "is" if len(names) == 1 else "are"
    told = f"{len(names)} of {plural(len(record['cells']), 'cell')} {verb} not finished: {first_few(names, 1, '; ')}"
    return [told] if names else []


def _models(folder: Path, record: Mapping[str, Any]) -> tuple[list[PublishedModel], list[str], list[str]]:
    """Return the models with weights, and descriptions of damaged models and of models whose weights were deleted."""
    labels, axes = dict[str, dict[str, str]](), record["axes"]
    for cell in record["cells"]:
        for name in MODELS:
            if name in cell["stages"]:
                stage = cell_stage(name, cell["stages"][name])
                known = labels.setdefault(
                    stage, {axis: cell["labels"][axis] for axis in axes if axis in cell["labels"]}
                )
                labels[stage] = {axis: label for axis, label in known.items() if cell["labels"].get(axis) == label}
    store = folder / record["store"]
    found = [PublishedModel(store / stage, of) for stage, of in labels.items()]
    damaged = [model for model in found if not model.run.is_dir() or damage(model.run, thorough=True)]
    freed = [model for model in found if model not in damaged and kept_of(model.run) == "results"]
    return (
        [model for model in found if model not in damaged and model not in freed],
        _counted(damaged, "damaged or missing"),
        _counted(freed, "without weights, which synthlang gc deleted"),
    )


def _counted(models: Sequence[PublishedModel], what: str) -> list[str]:
    return [f"{plural(len(models), 'model')} {what}: {first_few([m.run.name for m in models], 1)}"] if models else []


def _names(to: str, record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the owner and the prefix of the names of the repositories.

    Raises:
        InputError: ``to`` is no valid name, a name would be too long, or the study's name has no letter for a prefix.
    """
    owner, slash, prefix = to.partition("/")
    try:
        check_repository(to)
    except InputError as error:
        hint = f"write OWNER or OWNER/PREFIX, {NAME_RULE}; OWNER and PREFIX begin with a letter or a digit"
        raise InputError(error.reason, "--to", hint=hint, code=error.code) from error
    if not slash:
        name, scale = record["name"], str(record["config"].get("scale") or "")
        is_named = re.search(rf"(?<![A-Za-z0-9]){re.escape(scale)}(?![A-Za-z0-9])", name)
        prefix = _slug(name if is_named else f"{name}-{scale}")
        if not prefix:
            reason = f"the study's name {name!r} has no letter (A–Z) or digit for a repository"
            raise InputError(reason, "--to", hint="name a prefix, as OWNER/PREFIX", code="format")
    if (over := len(f"{owner}/{prefix}-results") + KEY - LONGEST) > 0:
        reason = (
            f"{owner}/{prefix} is {plural(over, 'character')} too long, because a repository adds a longer ending and "
            f"its name has at most {LONGEST} characters"
        )
        raise InputError(reason, "--to", hint="name a shorter prefix, as OWNER/PREFIX", code="range")
    return owner, prefix


def _model_name(owner: str, prefix: str, model: PublishedModel) -> str:
    """Return the name of a model's repository, with readable labels and the beginning of its unique key."""
    room = LONGEST - len(f"{owner}/{prefix}--") - KEY
    readable = _slug("-".join(model.labels.values()))[:room].strip("-.")
    return f"{owner}/{'-'.join(filter(None, (prefix, readable, model.key[:KEY])))}"


def _slug(text: str) -> str:
    """Replace each run of characters that a name on the hub cannot have by a hyphen.

    >>> _slug("ALIGN-MLM, trans+inv -- α=0.5")
    'ALIGN-MLM-trans-inv-0.5'
    """
    return re.sub(r"[^A-Za-z0-9.]+", "-", re.sub(r"\.\.+", "-", text)).strip("-.")


def _study_section(record: Mapping[str, Any], results: str) -> str:
    title = record.get("title") or record["name"]
    return (
        f"This model is part of the study **{title}** (`{record['name']}`, fingerprint `{record['fingerprint']}`). "
        f"Its results are in the data set [{results}](https://huggingface.co/datasets/{results}).\n\n"
    )


# --- results


def _results(
    folder: Path,
    record: Mapping[str, Any],
    repo_id: str,
    models: Sequence[tuple[str, PublishedModel]],
    left_out: Sequence[str],
) -> Repository:
    """Return the repository with the tables, the report, the study file and the fingerprints.

    Raises:
        InputError: A table or the report is missing or cannot be read.
    """
    tables = {name: _table(folder / name) for name in (RESULTS, MEASURES, MEASUREMENTS)}
    report = report_files(folder)
    if HTML not in report:
        hint = f"run: synthlang report {shlex.quote(str(folder))}"
        raise InputError("has no report", folder, hint=hint, code="missing")
    card = _card(folder, record, repo_id, models, left_out)
    files: dict[str, Content] = {
        "README.md": card.encode(),
        OWN_FILE: write_yaml(_own_file(record)).encode(),
        STUDY: (
            json.dumps(_public(record), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        ).encode(),
        **tables,
        **{name: folder / name for name in sorted(report)},
    }
    return Repository(repo_id, "dataset", f"synthlang study {record['fingerprint']}", files)


def _table(path: Path) -> Content:
    """Return the path of a table, or its bytes with shortened paths in the column ``source``.

    Raises:
        InputError: The file is missing or cannot be read as Parquet.
    """
    if not path.is_file():
        hint = "start the study again, which writes its tables"
        raise InputError("is missing", path, hint=hint, code="missing")
    with parquet_file(path) as file:
        table = file.read()
    if "source" not in table.column_names:
        return path
    sources = table["source"].to_pylist()
    short = [None if text is None else without_place(text) for text in sources]
    if short == sources:
        return path
    out = io.BytesIO()
    number = table.column_names.index("source")
    pq.write_table(table.set_column(number, "source", pa.array(short, pa.string())), out)
    return out.getvalue()


def _public(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of study.json without paths and logs of the machine. ``synthlang report`` can read it."""
    cells = [{key: cell[key] for key in OF_CELL} for cell in record["cells"]]
    found = {key: record[key] for key in PUBLIC if key in record}
    return dict(without_places({**found, "store": STAGES, "cells": cells}))


def _own_file(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the study as the content of a file for ``synthlang study``.

    Keys without a value are left out, because such a key would replace the value of a base.
    """
    return {key: value for key, value in without_places(record["config"]).items() if value not in (None, [], {})}


def _card(
    folder: Path,
    record: Mapping[str, Any],
    repo_id: str,
    models: Sequence[tuple[str, PublishedModel]],
    left_out: Sequence[str],
) -> str:
    title = record.get("title") or record["name"]
    configs = [card_config("results", {"train": RESULTS}, default=True), card_config("measures", {"train": MEASURES})]
    rows = pq.read_metadata(folder / RESULTS).num_rows
    header = card_header(configs, pretty_name=title, rows=rows, tags=["synthlang"])
    about = (
        f"The results of the synthlang study **{title}**: `results` has a row for each transfer, and `measures` a row "
        "for each number of a probe. Each is one split, `train`. `report.html` is the report."
    )
    code = f"from datasets import load_dataset\n\nresults = load_dataset({repo_id!r}, 'results', split='train')"
    again = f"synthlang study {OWN_FILE} --out runs/again"
    sections = [
        ("", about),
        ("", code_block(code, "python")),
        *([("Left out", "\n".join(f"- {what}" for what in left_out))] if left_out else []),
        ("Models", _models_table(models)),
        ("Files", markdown_table(("file", "content"), list(FILES.items()))),
        ("How to reproduce it", f"{code_block(again, 'sh')}\n\n{_environment(record)}"),
    ]
    return write_card(title, header, sections)


def _models_table(models: Sequence[tuple[str, PublishedModel]]) -> str:
    if not models:
        return "The study has no models of its own."
    axes = list(dict.fromkeys(axis for _, model in models for axis in model.labels))
    rows = [
        (f"[{name}](https://huggingface.co/{name})", *(model.labels.get(axis, "") for axis in axes))
        for name, model in models
    ]
    return markdown_table(("model", *axes), rows)


def _environment(record: Mapping[str, Any]) -> str:
    lines: Iterator[str] = (f"- {name}: {value}" for name, value in (record.get("environment") or {}).items())
    return "\n".join([f"- fingerprint of the study: `{record['fingerprint']}`", *lines])
