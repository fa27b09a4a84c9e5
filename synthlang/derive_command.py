"""The command ``synthlang derive`` for a source of sentences and for a labelled task."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synthlang.errors import InputError
from synthlang.export.run import exists_already, export_language, partial_of
from synthlang.files import user_path
from synthlang.language import Language, bind_language, parse_language
from synthlang.progress import Display
from synthlang.reading import Reading
from synthlang.sources import open_source
from synthlang.sources.base import Source, counted_split, size_of, with_columns
from synthlang.sources.splits import NAMES, SPLITS
from synthlang.sources.text import FileSource
from synthlang.tasks import is_task, open_task
from synthlang.tasks.base import FileTask
from synthlang.tasks.derive import ParsedTask
from synthlang.tasks.export import export_task

if TYPE_CHECKING:
    from synthlang.vocabulary import Vocabulary


def derive_command(
    spec: str,
    language: str,
    out: Path,
    *,
    workers: int = 1,
    parser: str | None = None,
    fields: Sequence[str] = (),
    licence: str | None = None,
    vocabulary: str | None = None,
    counts: str | None = None,
    cache: Path | None = None,
    examples: int = 3,
) -> list[tuple[str, str]]:
    """Derive a source or a task, write the data set and report progress.

    See ``synthlang.derive`` for the arguments, the result and the errors. ``spec`` is the source or the task.
    """
    if is_task(spec) and vocabulary is not None:
        raise InputError(
            "the option is for a source of sentences, not for a task",
            "--vocabulary",
            hint="leave this option out",
            code="conflict",
        )
    if fields and not is_task(spec):
        reason = "the option is for a labelled task (nli:, qa:), not for a source of sentences"
        raise InputError(reason, "--field", hint="leave this option out", code="conflict")
    if out.exists() and not (out / "manifest.json").is_file() and not partial_of(out).exists():
        raise exists_already(out)  # before anything is parsed or trained
    spoken = parse_language(language)
    options = {"parser": parser, "vocabulary": vocabulary, "counts": counts, "licence": licence}
    command = rebuild_command(spec, options, fields)
    with Display() as display:
        parse = _parser(parser, cache, workers, display) if parser is not None else None
        if is_task(spec):
            _derive_task(spec, spoken, out, parse, tuple(fields), licence, counts, command, display)
            return []
        opened = with_columns(open_source(spec), spoken.requires)
        _show_files(spec, opened, display)
        source = opened if parse is None else parse(opened)
        text, split = _counted(source, counts)
        if split is not None:
            display.message(f"words are counted in the split {split}")
        learned_on = source if "train" in source.splits and split is None else text
        tokens = _vocabulary(spoken, learned_on, split, vocabulary)
        spoken = bind_language(spoken, text, tokens, split)
        spoken = bind_language(spoken, source, tokens)
        exported = export_language(
            source,
            spoken,
            out,
            source_name=spec,
            workers=workers,
            progress=display.counter(f"derive {spoken.name}", partial(size_of, source)),
            licence=licence,
            command=command,
            vocabulary=tokens,
            counted_in=split,
        )
        if tokens is not None:
            from synthlang.vocabulary import UNK

            first = spoken.derive(next(iter(source.batches(source.splits[0]))))
            reading = Reading.of(spoken.encode(first, tokens), UNK)
            display.message(f"{spoken.name}: {reading} (in the first {len(first):,} sentences)")
        sizes = ((SPLITS[theirs], size["kept"]) for theirs, size in exported["splits"].items())
        display.message(f"{out}: " + ", ".join(f"{split} {n} sentences" for split, n in sizes))
        for split, reasons in exported["counts"].items():
            for reason, number in reasons.items():
                display.message(f"{SPLITS[split]}: {reason}: {number}")
    return _first(source, spoken, examples)


def _derive_task(
    spec: str,
    spoken: Language,
    out: Path,
    parse: Callable[[Source], Source] | None,
    fields: tuple[str, ...],
    licence: str | None,
    counts: str | None,
    command: str,
    display: Display,
) -> None:
    task = open_task(spec)
    _show_files(spec, getattr(task, "source", task), display)
    task.field_rows(fields)
    if parse is not None:
        task = ParsedTask(task, parse)
    text, split = _counted(task.as_source(), counts)
    spoken = bind_language(spoken, text, split=split)
    progress = display.counter("derive", partial(size_of, task))
    manifest = export_task(
        task, spoken, out, fields=fields or None, licence=licence, command=command, progress=progress
    )
    for split, reasons in manifest["read"].items():
        for reason, count in reasons.items():
            display.message(f"{split}: {reason}: {count}")
    for config, splits in manifest["items"].items():
        display.message(f"{config}: " + ", ".join(f"{split} {n} items" for split, n in splits.items()))
    for config, splits in manifest["changes"].items():
        for split, reasons in splits.items():
            for reason, count in reasons.items():
                display.message(f"{config} {split}: {reason}: {count}")
    display.message(f"written: {out}")


def _show_files(spec: str, source: object, display: Display) -> None:
    """Report the split of each file of a source or a task."""
    if isinstance(source, FileSource | FileTask):
        display.message(f"derive {spec}: {source.read_as}")


def rebuild_command(spec: str, options: dict[str, str | None], fields: Sequence[str] = ()) -> str:
    """Return the command that rebuilds the data set from the language file in its folder."""
    words = ["synthlang", "derive", spec, "--language", "language.yaml"]
    for name, value in options.items():
        words += [f"--{name}", value] if value else []
    words += [word for name in fields for word in ("--field", name)]
    return shlex.join([*words, "--out", "DIR"])


def _counted(source: Source, counts: str | None) -> tuple[Source, str | None]:
    """Return the source whose words are counted, and its split if ``--counts`` names one."""
    if counts in NAMES:
        return source, counts
    return (source if counts is None else open_source(counts)), None


def _vocabulary(language: Language, source: Source, split: str | None, option: str | None) -> Vocabulary | None:
    """Load a vocabulary if ``option`` is a folder, or train one if it is a size."""
    if option is None:
        return None
    from synthlang.vocabularies.build import with_added_forms  # imports the tokenizers
    from synthlang.vocabulary import Vocabulary, train_vocabulary

    if not (option.isascii() and option.isdigit()):
        return Vocabulary.load(user_path(option))
    vocabulary = train_vocabulary(source.batches(counted_split(source, split)), int(option))
    return with_added_forms(vocabulary, [language], source, split=split)


def _first(source: Source, language: Language, number: int) -> list[tuple[str, str]]:
    """Return the first sentences that the language keeps, as (source, derived) texts."""
    for split in source.splits:
        for batch in source.batches(split):
            rewrite = language.rewrite(batch)  # the whole batch, since a cap counts the words of a batch
            if len(rewrite):
                some = rewrite.take(np.arange(min(number, len(rewrite))))
                return list(zip(some.source(batch).texts(), some.apply(batch).texts(), strict=True))
    return []


def _parser(parser: str, cache: Path | None, workers: int, display: Display) -> Callable[[Source], Source]:
    """Return a function that adds the trees of a parser to a source."""
    from synthlang.parsing import ParsedSource, open_engine

    engine = open_engine(parser)
    return lambda source: ParsedSource(
        source, engine, cache, workers=workers, report=display.counter("parse", partial(size_of, source))
    )
