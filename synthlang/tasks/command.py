"""What ``synthlang derive`` does with a labelled task."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.language import bind_language, parse_language
from synthlang.progress import Display
from synthlang.sources import open_source
from synthlang.sources.base import size_of
from synthlang.tasks import open_task
from synthlang.tasks.base import TaskSet
from synthlang.tasks.export import export_task


def derive_task_command(
    spec: str,
    language: str,
    out: Path,
    *,
    parser: str | None = None,
    fields: tuple[str, ...] | None = None,
    licence: str | None = None,
    counts_source: str | None = None,
    cache: Path | None = None,
    workers: int = 1,
) -> dict[str, Any]:
    """Derive a task set and write it as a data set; returns the manifest.

    parser          an engine such as ``spacy:NAME`` that gives the sentences their trees
    fields          the config ``mixed`` has only these in the derived language
    counts_source   the text whose word counts the language needs, if it needs any: that of the
                    pretraining; without it the task's own training split
    cache, workers  where parses are kept (None: the usual place), and how many processes parse
    """
    if out.exists():
        raise InputError("exists already; name a new folder", out)
    task = open_task(spec)
    task.field_rows(fields)
    spoken = parse_language(language)
    with Display() as display:
        if parser is not None:
            task = _parsed(task, parser, cache, workers, display)
        if counts_source is not None:
            spoken = bind_language(spoken, open_source(counts_source))
        progress = display.counter("derive", partial(size_of, task))
        command = _rebuild(spec, parser, fields, counts_source, licence)
        manifest = export_task(task, spoken, out, fields=fields, licence=licence, command=command, progress=progress)
        for config, splits in manifest["items"].items():
            display.message(f"{config}: " + ", ".join(f"{split} {n} items" for split, n in splits.items()))
        for config, splits in manifest["changes"].items():
            for split, counts in splits.items():
                for reason, count in counts.items():
                    display.message(f"{config} {split}: {reason}: {count}")
        display.message(f"written: {out}")
    return manifest


def _parsed(task: TaskSet, parser: str, cache: Path | None, workers: int, display: Display) -> TaskSet:
    from synthlang.parsing import ParsedSource, open_engine
    from synthlang.tasks.derive import ParsedTask

    engine, report = open_engine(parser), display.counter("parse", partial(size_of, task.as_source()))
    return ParsedTask(task, lambda source: ParsedSource(source, engine, cache, workers=workers, report=report))


def _rebuild(
    spec: str, parser: str | None, fields: tuple[str, ...] | None, counts_source: str | None, licence: str | None
) -> str:
    """The command that makes the data set again from the language in its folder."""
    words = ["synthlang", "derive", spec, "--language", "language.yaml"]
    words += ["--parser", parser] if parser else []
    words += ["--counts", counts_source] if counts_source else []
    words += ["--licence", licence] if licence else []
    words += [word for name in fields or () for word in ("--field", name)]
    return shlex.join([*words, "--out", "DIR"])
