"""The command ``synthlang derive`` for a source of sentences and for a labelled task."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synthlang.errors import InputError
from synthlang.export.run import exists_already, export_language, partial_of
from synthlang.files import no_such, user_path
from synthlang.language import Language, bind_language, parse_language
from synthlang.progress import Display
from synthlang.reading import Reading
from synthlang.sources import open_source
from synthlang.sources.base import Source, counted_split, lacks_morphology, size_of, with_columns, word_counts
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

    ``spec`` is the source or the task. See ``synthlang.derive`` for the other arguments and the result.

    Raises:
        InputError: As for ``synthlang.derive``.
        DiskError: The data set cannot be written, or a worker process was killed.
    """
    _check_options(spec, fields, vocabulary, out)
    options = {"parser": parser, "vocabulary": vocabulary, "counts": counts, "licence": licence}
    command = _rebuild_command(spec, options, fields)
    with Display() as display:
        job = _Job(spec, parse_language(language), out, command, licence, counts, parser, cache, workers, display)
        if is_task(spec):
            _derive_task(job, tuple(fields))
            return []
        source, spoken = _derive_source(job, vocabulary)
    return _first(source, spoken, examples)


def _check_options(spec: str, fields: Sequence[str], vocabulary: str | None, out: Path) -> None:
    """Raise InputError for options that do not fit, and for an output that exists, before anything is parsed."""
    hint = "leave this option out"
    if is_task(spec) and vocabulary is not None:
        reason = "the option is for a source of sentences, not for a task"
        raise InputError(reason, "--vocabulary", hint=hint, code="conflict")
    if fields and not is_task(spec):
        reason = "the option is for a labelled task such as nli: or qa:, not for a source of sentences"
        raise InputError(reason, "--field", hint=hint, code="conflict")
    if out.exists() and not (out / "manifest.json").is_file() and not partial_of(out).exists():
        raise exists_already(out)


@dataclass(frozen=True)
class _Job:
    """A source or a task to derive, and the folder for it.

    Attributes:
        spec: The source or the task, as the user wrote it.
        language: The derived language.
        out: Folder to write.
        command: Command that rebuilds the folder, for the card.
        licence: SPDX id, or None.
        counts: Split or source whose words are counted, or None.
        parser: Parser that adds trees, or None.
        cache: Folder of parses, or None for the default.
        workers: Number of worker processes.
        display: Display of progress and messages.
    """

    spec: str
    language: Language
    out: Path
    command: str
    licence: str | None
    counts: str | None
    parser: str | None
    cache: Path | None
    workers: int
    display: Display

    @property
    def counted(self) -> str:
        """The source whose words are counted, as the user wrote it."""
        return self.spec if self.counts is None or self.counts in NAMES else self.counts

    def parsed(self, source: Source) -> Source:
        """Return a source with the trees of the parser, and with its features and lemmas if the source lacks them.

        Features and lemmas are added only if the language needs them. Without a parser the source is returned.

        Raises:
            InputError: The parser cannot be opened, or has no lemmatizer although the language needs lemmas.
        """
        if self.parser is None:
            return source
        from synthlang.parsing import ParsedSource, open_engine

        try:
            engine = open_engine(self.parser, morphology=lacks_morphology(source, self.language.requires))
        except InputError as error:
            raise error.inside(path="--parser") from error
        counter = self.display.counter("parse", partial(size_of, source))
        return ParsedSource(source, engine, self.cache, workers=self.workers, report=counter)


def _derive_source(job: _Job, vocabulary: str | None) -> tuple[Source, Language]:
    """Derive a source of sentences, and return the opened source and the language bound to its word counts."""
    display = job.display
    opened = with_columns(open_source(job.spec), job.language.requires)
    _show_files(job, opened)
    source = job.parsed(opened)
    text, split = _counted(source, job.counts)
    if split is not None:
        display.message(f"words are counted in the split {split}")
    learned_on = source if "train" in source.splits and split is None else text
    tokens = _vocabulary(job, learned_on, split, vocabulary)
    counted = bind_language(job.language, text, tokens, split, name=job.counted)
    spoken = bind_language(counted, source, tokens, name=job.spec)
    exported = export_language(
        source,
        spoken,
        job.out,
        source_name=job.spec,
        workers=job.workers,
        progress=display.counter(f"derive {spoken.name}", partial(size_of, source)),
        licence=job.licence,
        command=job.command,
        vocabulary=tokens,
        counted_in=split,
    )
    _show_export(job, source, spoken, tokens, exported)
    return source, spoken


def _show_export(
    job: _Job, source: Source, spoken: Language, tokens: Vocabulary | None, exported: Mapping[str, Any]
) -> None:
    """Report tokens per word, the sizes of the splits, and counts of changes."""
    if tokens is not None:
        from synthlang.vocabulary import UNK

        first = spoken.derive(next(iter(source.batches(source.splits[0]))))
        reading = Reading.of(spoken.encode(first, tokens), UNK)
        job.display.message(f"{spoken.name}: {reading} (in the first {len(first):,} sentences)")
    sizes = ((SPLITS[theirs], size["kept"]) for theirs, size in exported["splits"].items())
    job.display.message(f"{job.out}: " + ", ".join(f"{split} {n} sentences" for split, n in sizes))
    for split, reasons in exported["counts"].items():
        for reason, number in reasons.items():
            job.display.message(f"{SPLITS[split]}: {reason}: {number}")


def _derive_task(job: _Job, fields: tuple[str, ...]) -> None:
    """Derive a labelled task, write the data set and report the counts of items and changes."""
    display = job.display
    task = with_columns(open_task(job.spec), job.language.requires)
    _show_files(job, getattr(task, "source", task))
    task.field_rows(fields)
    if job.parser is not None:
        task = ParsedTask(task, job.parsed)
    text, split = _counted(task.as_source(), job.counts)
    spoken = bind_language(job.language, text, split=split, name=job.counted)
    progress = display.counter("derive", partial(size_of, task))
    manifest = export_task(
        task, spoken, job.out, fields=fields or None, licence=job.licence, command=job.command, progress=progress
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
    display.message(f"written: {job.out}")


def _show_files(job: _Job, source: object) -> None:
    """Report the split of each file of a source or a task."""
    if isinstance(source, FileSource | FileTask):
        job.display.message(f"derive {job.spec}: {source.read_as}")


def _rebuild_command(spec: str, options: Mapping[str, str | None], fields: Sequence[str]) -> str:
    """Return the command that rebuilds a data set from the language file in the folder of the data set."""
    words = ["synthlang", "derive", spec, "--language", "language.yaml"]
    for name, value in options.items():
        words += [f"--{name}", value] if value else []
    words += [word for name in fields for word in ("--field", name)]
    return shlex.join([*words, "--out", "DIR"])


def _counted(source: Source, counts: str | None) -> tuple[Source, str | None]:
    """Return the source whose words are counted, and its split if ``--counts`` names one."""
    if counts in NAMES:
        return source, counts
    try:
        return (source if counts is None else open_source(counts)), None
    except InputError as error:
        raise error.inside(path="--counts") from error


def _vocabulary(job: _Job, source: Source, split: str | None, option: str | None) -> Vocabulary | None:
    """Load a vocabulary if ``option`` is a folder, or train one if it is a size."""
    if option is None:
        return None
    from synthlang.vocabularies.build import with_added_forms  # imports the tokenizers
    from synthlang.vocabulary import Vocabulary, train_vocabulary

    if not (option.isascii() and option.isdigit()):
        folder = user_path(option)
        if not folder.exists():
            raise no_such(folder, "folder", hint="give a size such as 8000, or the folder of a tokenizer")
        return Vocabulary.load(folder)
    batches = source.batches(counted_split(source, split, job.counted))
    try:
        vocabulary = train_vocabulary(batches, int(option))
    except InputError as error:
        raise error.inside(path="--vocabulary") from error
    return with_added_forms(vocabulary, [job.language], partial(word_counts, source, split, job.counted))


def _first(source: Source, language: Language, number: int) -> list[tuple[str, str]]:
    """Return the first sentences that the language keeps, as (source, derived) texts."""
    for split in source.splits:
        for batch in source.batches(split):
            rewrite = language.rewrite(batch)  # the whole batch, since a cap counts the words of a batch
            if len(rewrite):
                some = rewrite.take(np.arange(min(number, len(rewrite))))
                return list(zip(some.source(batch).texts(), some.apply(batch).texts(), strict=True))
    return []
