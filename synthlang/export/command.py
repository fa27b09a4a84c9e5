"""What ``synthlang derive`` does with a source of sentences."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

import numpy as np

from synthlang.export.run import export_language
from synthlang.language import Language, bind_language, parse_language
from synthlang.progress import Display
from synthlang.sources import open_source
from synthlang.sources.base import Source, size_of
from synthlang.vocabulary import Vocabulary, train_vocabulary


def derive_command(
    spec: str,
    language: str,
    out: Path,
    *,
    workers: int = 1,
    parser: str | None = None,
    licence: str | None = None,
    vocabulary: str | None = None,
    counts_source: str | None = None,
    cache: Path | None = None,
    examples: int = 3,
) -> list[tuple[str, str]]:
    """Derive a source, write it as a data set, say what happened; returns the first sentences of both languages.

    parser          an engine such as ``spacy:NAME`` that gives the sentences their trees
    vocabulary      for token ids, too: how many tokens to train, or the folder of a tokenizer
    counts_source   the text whose word counts the language needs (None: the source's training split)
    cache           where parses are kept (None: the usual place)
    """
    spoken = parse_language(language)
    source = open_source(spec)
    with Display() as display:
        if parser is not None:
            source = _parsed(source, parser, cache, workers, display)
        tokens = _vocabulary(source, vocabulary)
        if counts_source is not None:
            spoken = bind_language(spoken, open_source(counts_source), tokens)
        spoken = bind_language(spoken, source, tokens)
        options = {"parser": parser, "vocabulary": vocabulary, "counts": counts_source, "licence": licence}
        exported = export_language(
            source,
            spoken,
            out,
            source_name=spec,
            workers=workers,
            progress=display.counter(f"derive {spoken.name}", partial(size_of, source)),
            licence=licence,
            command=rebuild_command(spec, options),
            vocabulary=tokens,
        )
        display.message(f"{out}: " + ", ".join(f"{split} {n} sentences" for split, n in exported.items()))
        for split, reasons in exported.counts.items():
            for reason, number in reasons.items():
                display.message(f"{split}: {reason}: {number}")
    return _first(source, spoken, examples)


def rebuild_command(spec: str, options: dict[str, str | None]) -> str:
    """The command that makes the data set again from the language in its folder."""
    words = ["synthlang", "derive", spec, "--language", "language.yaml"]
    for name, value in options.items():
        words += [f"--{name}", value] if value else []
    return shlex.join([*words, "--out", "DIR"])


def _parsed(source: Source, parser: str, cache: Path | None, workers: int, display: Display) -> Source:
    from synthlang.parsing import ParsedSource, open_engine

    report = display.counter("parse", partial(size_of, source))
    return ParsedSource(source, open_engine(parser), cache, workers=workers, report=report)


def _vocabulary(source: Source, option: str | None) -> Vocabulary | None:
    """The vocabulary in a folder, or one of so many tokens of the training split."""
    if option is None:
        return None
    if not (option.isascii() and option.isdigit()):
        return Vocabulary.load(Path(option))
    return train_vocabulary(source.batches("train" if "train" in source.splits else source.splits[0]), int(option))


def _first(source: Source, language: Language, number: int) -> list[tuple[str, str]]:
    """Some sentences of the first split that has one, as texts."""
    for split in source.splits:
        for batch in source.batches(split):
            rewrite = language.rewrite(batch)  # whole: a cap counts the words of a batch
            if len(rewrite):
                some = rewrite.take(np.arange(min(number, len(rewrite))))
                return list(zip(some.source(batch).texts(), some.apply(batch).texts(), strict=True))
    return []
