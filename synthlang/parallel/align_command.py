"""The command ``synthlang align``: word alignments of parallel text, with scores against a gold standard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from synthlang.corpus import FORM, Corpus, concatenate
from synthlang.errors import InputError
from synthlang.files import user_path, write_json
from synthlang.parallel.aligners import FORWARD, METHODS, PROGRAMS, REVERSE, Program, align, symmetrise
from synthlang.parallel.error_rates import BLANKS, AlignmentErrors, Blank, Gold, alignment_errors, read_gold
from synthlang.parallel.links import Links, check_sentences, read_counted, read_pharaoh, write_pharaoh
from synthlang.parallel.text import ParallelText, Splitter, read_joint, read_parallel
from synthlang.sources.base import nothing_in
from synthlang.wording import enumerated

Bounds = tuple[float, float] | None
Interval = Callable[[NDArray[np.int64]], Bounds]
"""Function from the sums of sentence pairs [pairs, 4] to bounds of the alignment error rate, 0 to 1."""

GIVEN = "given"
Direction = Literal["forward", "reverse"]
CHOICES: tuple[str, ...] = (*get_args(Direction), *METHODS)


@dataclass(frozen=True)
class AlignOptions:
    """Options of ``synthlang align``."""

    program: str | None = None
    """The aligner (default: eflomal)."""
    links: tuple[Path, ...] = ()
    """Files of word alignments to score in place of an aligner: one file, or a forward and a reverse file."""
    symmetrise: str | None = None
    """Alignment to write, one of CHOICES (default: intersection, or a single file unchanged)."""
    also: tuple[str, ...] = ()
    """Further text to train the aligner on: a joint file, or two files as LEFT,RIGHT."""
    lower: bool = False
    """True to convert the words to lower case for the aligner."""
    words: Splitter = "spaces"
    """Splitting of the text into words: at ``spaces``, or by our ``rules``."""
    also_words: Splitter = "spaces"
    """Splitting of the further text into words."""
    gold: Path | None = None
    """File with the gold standard."""
    gold_first: int | None = None
    """Number of the first word in the gold standard, 0 or 1. With None, some word must have the number 0."""
    gold_swapped: bool = False
    """True if the gold standard has right-left pairs."""
    links_first: int | None = None
    """Number of the first word in the files of alignments, as for ``gold_first``."""
    links_swapped: bool = False
    """True if the files of alignments have right-left pairs."""
    blank: Blank = "wrong"
    """Treatment of sentence pairs without a gold alignment (see ``alignment_errors``)."""

    def check(self) -> None:
        """Check the values and the combination of the options.

        Raises:
            InputError: A value is unknown, options exclude each other, or more than two files of alignments are given.
        """
        for name, value, known in (
            ("--program", self.program, PROGRAMS),
            ("--symmetrise", self.symmetrise, CHOICES),
            ("--blank", self.blank, BLANKS),
            ("--words", self.words, get_args(Splitter)),
            ("--also-words", self.also_words, get_args(Splitter)),
        ):
            if value is not None and value not in known:
                hint = f"use {', '.join(known[:-1])} or {known[-1]}"
                raise InputError(f"unknown value {value!r}", name, hint=hint, code="unknown")
        of_aligner = {"--program": self.program, "--also": self.also, "--lower": self.lower}
        if self.links and (given := [name for name, value in of_aligner.items() if value]):
            reason = "word alignments from files cannot be combined with the options of an aligner"
            hint = f"leave out {enumerated(given)}, or leave out --links to run an aligner"
            raise InputError(reason, "--links", hint=hint, code="conflict")
        if len(self.links) > 2:
            hint = "give one file, or a forward and a reverse file"
            reason = f"{len(self.links)} files are given, but at most two can be used"
            raise InputError(reason, "--links", hint=hint, code="range")
        if len(self.links) == 1 and self.symmetrise:
            reason = f"{self.symmetrise!r} needs the word alignments of both directions, but --links has one file"
            hint = "give --links twice, forward and reverse, or leave this option out"
            raise InputError(reason, "--symmetrise", hint=hint, code="conflict")


def align_command(
    texts: Sequence[Path],
    options: AlignOptions,
    out: Path | None,
    scores: Path | None,
    interval: Interval | None = None,
) -> dict[str, AlignmentErrors]:
    """Align a text (or read its word alignments), print a table of scores and write the results.

    Args:
        texts: One file of lines ``left ||| right``, or two files with one sentence per line.
        options: Options of the command.
        out: File for the word alignments.
        scores: JSON file for the scores.
        interval: Function that computes the interval of an error rate (default: no intervals).

    Returns:
        The scores of each alignment by its name in CHOICES, or ``given`` for a single file. The dictionary is empty
        without a gold standard.

    Raises:
        InputError: The options do not fit together, a file cannot be read or does not match the text, the text has no
            sentence pair, the aligner is not installed or fails, or ``out`` or ``scores`` has no name.
        DiskError: ``out`` or ``scores`` cannot be written.
    """
    options.check()
    if scores is not None and options.gold is None:
        hint = "name a file of gold word alignments with --gold, or leave this option out"
        raise InputError("scores need a gold standard", "--scores", hint=hint, code="missing")
    console = Console(soft_wrap=True, markup=False, emoji=False)
    text = _read(texts, options.words)
    for reason, count in text.counts.items():
        _show_count(console, reason, count)
    lengths = text.left.lengths, text.right.lengths
    gold = options.gold and read_gold(options.gold, *lengths, options.gold_first, options.gold_swapped)
    sides = [_given(path, text, options) for path in options.links] or _aligned(text, options)
    links, outside = [side for side, _ in sides], sum(count for _, count in sides)
    _show_count(console, "word alignments left out because the text has no such word", outside)
    wanted = options.symmetrise or (GIVEN if len(links) == 1 else "intersection")
    joined = {name: _joined(links, name) for name in ((GIVEN,) if len(links) == 1 else CHOICES if gold else (wanted,))}
    errors: dict[str, AlignmentErrors] = {}
    if gold:
        errors = {name: alignment_errors(found, gold.links, options.blank) for name, found in joined.items()}
        _show_count(console, "gold alignments left out because the text has no such word", gold.outside)
        what = "counted as wrong (--blank)" if options.blank == "wrong" else "left out"
        _show_count(console, f"sentence pairs without a gold alignment, {what}", int(gold.blank.sum()))
    bounds = {} if interval is None else {name: interval(found.sums) for name, found in errors.items()}
    console.print(score_table(joined, errors, bounds), soft_wrap=False)
    if out is not None:
        write_pharaoh(out, joined[wanted])
        console.print(f"written: {out} ({wanted})")
    if scores is not None and gold:
        write_json(scores, _to_json(text, options, gold, outside, errors, bounds))
        console.print(f"written: {scores}")
    return errors


def _to_json(
    text: ParallelText,
    options: AlignOptions,
    gold: Gold,
    outside: int,
    errors: Mapping[str, AlignmentErrors],
    bounds: Mapping[str, Bounds],
) -> dict[str, Any]:
    """Return the results for JSON. Scores are fractions, and intervals are [low, high] at 95 % or null."""
    return {
        "text": text.fingerprint,
        "program": None if options.links else options.program or "eflomal",
        "pairs": len(text),
        "blank": options.blank,
        "gold_links_outside": gold.outside,
        "gold_blank_pairs": int(gold.blank.sum()),
        "links_outside": outside,
        "scores": {name: {**found.to_json(), "interval": bounds.get(name)} for name, found in errors.items()},
    }


def _joined(links: Sequence[Links], name: str) -> Links:
    if name in (GIVEN, "forward"):
        return links[0]
    return links[1] if name == "reverse" else symmetrise(links[0], links[1], name)  # type: ignore[arg-type]


def _read(texts: Sequence[Path], words: Splitter) -> ParallelText:
    if len(texts) not in (1, 2):
        hint = "name one file of lines 'left ||| right', or two files with one sentence per line"
        raise InputError(f"parallel text is one or two files, not {len(texts)}", hint=hint, code="range")
    text = read_joint(texts[0], words) if len(texts) == 1 else read_parallel(texts[0], texts[1], words)
    if not len(text):
        raise nothing_in("sentence pair", texts[0])
    return text


def _given(path: Path, text: ParallelText, options: AlignOptions) -> tuple[Links, int]:
    """Read the word alignments of a file. Alignments of words outside the text are dropped and counted."""
    links = read_counted(path, options.links_first, "--links-first")
    check_sentences(path, len(links), len(text))
    return (links.swapped() if options.links_swapped else links).within(text.left.lengths, text.right.lengths)


def _aligned(text: ParallelText, options: AlignOptions) -> list[tuple[Links, int]]:
    """Run the aligner. Return the word alignments of each direction, and the number of dropped alignments."""
    program: Program = options.program or "eflomal"  # type: ignore[assignment]  # check() has accepted it
    whole = [text]
    for name in options.also:
        parts = [name] if user_path(name).exists() or "," not in name else name.split(",")
        try:
            whole.append(_read([user_path(part) for part in parts], options.also_words))
        except InputError as error:
            raise error.inside(path=f"--also {name}") from error
    left, right = concatenate([t.left for t in whole]), concatenate([t.right for t in whole])
    if options.lower:
        left, right = _lower(left), _lower(right)
    own = np.arange(len(text), dtype=np.int64)
    with TemporaryDirectory() as folder:
        made = Path(folder) / "links"
        align(program, left, right, made, text.path)
        links = [read_pharaoh(made / name).take(own) for name in (FORWARD, REVERSE)]
    return [side.within(text.left.lengths, text.right.lengths) for side in links]


def _lower(corpus: Corpus) -> Corpus:
    form = corpus.form.map_names(name.lower() for name in corpus.form.names or ())
    return replace(corpus, columns={**corpus.columns, FORM: form})


def _show_count(console: Console, what: str, count: int) -> None:
    if count:
        console.print(f"{what}: {count:,}")


def score_table(
    chosen: Mapping[str, Links], errors: Mapping[str, AlignmentErrors], bounds: Mapping[str, Bounds]
) -> Table:
    """Return a table with the number of word alignments of each method, and scores and intervals in percent.

    Args:
        chosen: The word alignments of each method by name.
        errors: The scores of each method by name, or none without a gold standard.
        bounds: Bounds of the alignment error rate of each method by name, or none.
    """
    some = next(iter(errors.values()), None)
    pairs = len(some.sums) if some else len(next(iter(chosen.values())))
    title = f"Word alignments of {pairs:,} sentence pairs" + (", scores in %" if some else "")
    # The space between columns is small, so that all of them fit into a terminal of 80 characters.
    table = Table(title=title, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column("", no_wrap=True)
    scored = ("AER", *(["95 % interval"] if bounds else []), "precision", "recall", "F1") if some else ()
    for column in ("links", *scored):
        table.add_column(column, justify="right", no_wrap=True)
    for name, links in chosen.items():
        row = [f"{len(links.left):,}"]
        if some:
            aer, *others = ("–" if score is None else f"{100 * score:.1f}" for score in errors[name].scores.values())
            row += [aer, *([_range(bounds[name])] if bounds else []), *others]
        table.add_row(name, *row)
    return table


def _range(bounds: Bounds) -> str:
    return "–" if bounds is None else f"{100 * bounds[0]:.1f} … {100 * bounds[1]:.1f}"
