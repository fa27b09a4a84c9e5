"""What ``synthlang align`` does: links of parallel text, and how good they are where there is a gold standard."""

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
from synthlang.parallel.links import Links, read_counted, read_pharaoh, write_pharaoh
from synthlang.parallel.text import ParallelText, Splitter, read_joint, read_parallel

Bounds = tuple[float, float] | None
Interval = Callable[[NDArray[np.int64]], Bounds]
"""From the sums of sentence pairs [pairs, 4] to the bounds of their alignment error rate, 0 … 1."""

GIVEN = "given"
Direction = Literal["forward", "reverse"]
CHOICES: tuple[str, ...] = (*get_args(Direction), *METHODS)


@dataclass(frozen=True)
class AlignOptions:
    """The options of the command.

    program       the aligner; None: eflomal
    links         files of links to score instead: one, or those of both directions (all with left-right links)
    symmetrise    what ``out`` gets: one of CHOICES; None: intersection, or the one file of links as it is
    also          more text that the aligner learns from: a joint file, or two files as LEFT,RIGHT
    words         of the text, also_words of the rest: ``spaces`` separate them, or our ``rules`` find them
    lower         the aligner reads the words in lower case
    gold_first, links_first   the number of the first word: 0 or 1; None: 0 if some link has a word 0, else
                  they are refused
    """

    program: str | None = None
    links: tuple[Path, ...] = ()
    symmetrise: str | None = None
    also: tuple[str, ...] = ()
    lower: bool = False
    words: Splitter = "spaces"
    also_words: Splitter = "spaces"
    gold: Path | None = None
    gold_first: int | None = None
    gold_swapped: bool = False
    links_first: int | None = None
    links_swapped: bool = False
    blank: Blank = "wrong"

    def check(self) -> None:
        for name, value, known in (
            ("--program", self.program, PROGRAMS),
            ("--symmetrise", self.symmetrise, CHOICES),
            ("--blank", self.blank, BLANKS),
            ("--words", self.words, get_args(Splitter)),
            ("--also-words", self.also_words, get_args(Splitter)),
        ):
            if value is not None and value not in known:
                raise InputError(f"{name} {value}: there is {', '.join(known)}")
        if self.links and (self.program or self.also or self.lower):
            raise InputError("--links gives the links: leave out --program, --also and --lower")
        if len(self.links) > 2:
            raise InputError("--links takes one file, or two: forward and reverse")
        if len(self.links) == 1 and self.symmetrise:
            raise InputError("--symmetrise joins two directions: give --links twice, forward and reverse")


def align_command(
    texts: Sequence[Path],
    options: AlignOptions,
    out: Path | None,
    scores: Path | None,
    interval: Interval | None = None,
) -> dict[str, AlignmentErrors]:
    """Align the text (or read links of it), write the links to ``out`` and the scores as JSON to ``scores``.

    texts   one file of lines ``left ||| right``, or two files with a sentence a line

    Prints a table with a row for each way to join the directions. Returns the scores, none without a gold standard.
    """
    options.check()
    if scores is not None and options.gold is None:
        raise InputError("--scores needs a gold standard: --gold FILE")
    console = Console(soft_wrap=True, markup=False, emoji=False)
    text = _read(texts, options.words)
    lengths = text.left.lengths, text.right.lengths
    gold = options.gold and read_gold(options.gold, *lengths, options.gold_first, options.gold_swapped)
    sides = [_given(path, text, options) for path in options.links] or _aligned(text, options)
    links, outside = [side for side, _ in sides], sum(count for _, count in sides)
    _say(console, "links to words that the text does not have, left out", outside)
    wanted = options.symmetrise or (GIVEN if len(links) == 1 else "intersection")
    joined = {name: _joined(links, name) for name in ((GIVEN,) if len(links) == 1 else CHOICES if gold else (wanted,))}
    errors: dict[str, AlignmentErrors] = {}
    if gold:
        errors = {name: alignment_errors(found, gold.links, options.blank) for name, found in joined.items()}
        _say(console, "gold links to words that the text does not have, left out", gold.outside)
        what = "their links count as wrong (--blank skip)" if options.blank == "wrong" else "left out"
        _say(console, f"sentence pairs without a gold link: {what}", int(gold.blank.sum()))
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
    """The scores as fractions; an interval is [low, high] at 95 % over sentence pairs, or null."""
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
        raise InputError("name one file of lines 'left ||| right', or two files with a sentence a line")
    text = read_joint(texts[0], words) if len(texts) == 1 else read_parallel(texts[0], texts[1], words)
    if not len(text):
        raise InputError("is empty", texts[0])
    return text


def _given(path: Path, text: ParallelText, options: AlignOptions) -> tuple[Links, int]:
    """The links of a file, and how many were left out."""
    links = read_counted(path, options.links_first, "--links-first")
    if len(links) != len(text):
        raise InputError(f"is of {len(links)} sentence pairs, but the text has {len(text)}", path)
    return (links.swapped() if options.links_swapped else links).within(text.left.lengths, text.right.lengths)


def _aligned(text: ParallelText, options: AlignOptions) -> list[tuple[Links, int]]:
    """The links that the program finds in both directions, and how many were left out."""
    program: Program = options.program or "eflomal"  # type: ignore[assignment]  # check() has seen it
    whole = [text]
    for name in options.also:
        parts = [name] if user_path(name).exists() or "," not in name else name.split(",")
        whole.append(_read([user_path(part) for part in parts], options.also_words))
    left, right = concatenate([t.left for t in whole]), concatenate([t.right for t in whole])
    if options.lower:
        left, right = _lower(left), _lower(right)
    own = np.arange(len(text), dtype=np.int64)
    with TemporaryDirectory() as folder:
        made = Path(folder) / "links"
        align(program, left, right, made)
        links = [read_pharaoh(made / name).take(own) for name in (FORWARD, REVERSE)]
    return [side.within(text.left.lengths, text.right.lengths) for side in links]


def _lower(corpus: Corpus) -> Corpus:
    form = corpus.form.map_names(name.lower() for name in corpus.form.names or ())
    return replace(corpus, columns={**corpus.columns, FORM: form})


def _say(console: Console, what: str, count: int) -> None:
    if count:
        console.print(f"{what}: {count:,}")


def score_table(
    chosen: Mapping[str, Links], errors: Mapping[str, AlignmentErrors], bounds: Mapping[str, Bounds]
) -> Table:
    """How many links there are under each name, and their scores and intervals in percent where there are any."""
    some = next(iter(errors.values()), None)
    pairs = len(some.sums) if some else len(next(iter(chosen.values())))
    title = f"Links of {pairs:,} sentence pairs" + (", scores in %" if some else "")
    # with so little between the columns all of them fit into a terminal of 80
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
