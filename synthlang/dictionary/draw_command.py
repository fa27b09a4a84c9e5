"""The command ``synthlang dictionary`` for a derived language and for a natural pair of languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthlang.config import parse
from synthlang.corpus import count_words
from synthlang.dictionary.word_dictionary import (
    FILE,
    DictionarySpec,
    Pair,
    WordDictionary,
    is_one_word,
    read_muse,
    told_use,
    write_words,
)
from synthlang.errors import InputError
from synthlang.files import no_such, user_path
from synthlang.language import PARENT, Language, bind_language, checked_source, parse_language
from synthlang.progress import Display
from synthlang.rewrite import INSERTED
from synthlang.sources import open_source
from synthlang.sources.base import Source, because, counted_split, word_counts

WordCounts = Counter[str]
WHITE_SPACE = "pairs left out because a word has white space in it"
MUSE = "pairs"
"""Key of the parent of candidates that come from a MUSE file."""


@dataclass(frozen=True)
class Candidates:
    """Pairs from which a dictionary is drawn, and the word counts of the texts.

    Attributes:
        words: The pairs of words.
        source: Counts of the words in the source text, or None without a text.
        target: Counts of the words in the target text, or None without a text.
        parents: Fingerprints of the data behind the candidates.
        left_out: Number of omitted pairs, by reason.
        use: Message with the number of pairs of a file that are used, or "" without a text.
    """

    words: WordDictionary
    source: WordCounts | None
    target: WordCounts | None
    parents: dict[str, str]
    left_out: dict[str, int]
    use: str = ""


def derived_words(
    source: Source, language: Language, progress: Callable[[int], None] | None = None, name: str = "the source"
) -> Candidates:
    """Pair each word of the training text with every form that it has in the language.

    The forms of a word are sorted by frequency. Deleted and inserted words and words with white space are in no pair.
    ``progress(sentences)`` is called after each batch. ``name`` is the source as the user wrote it, for errors.

    Raises:
        InputError: The source lacks a column or the training split, the source cannot be read, or the language cannot
            be applied to a sentence.
    """
    language = bind_language(language, source, name=name)
    source = checked_source(language, source, name)
    derived, pairs = Counter[str](), Counter[Pair]()
    for batch in source.batches(counted_split(source, name=name)):
        rewrite = language.rewrite(batch)
        before, after = rewrite.source(batch), rewrite.form
        start = np.repeat(before.offsets[:-1], np.diff(rewrite.offsets))
        known = rewrite.source_index != INSERTED
        parent = before.form.codes[(rewrite.source_index + start)[known]]
        old, new = before.form.names or (), after.names or ()
        both, amount = np.unique(np.stack([parent, after.codes[known]]), axis=1, return_counts=True)
        for a, b, n in zip(*both.tolist(), amount.tolist(), strict=True):
            pairs[old[a], new[b]] += n
        count_words(derived, rewrite.apply(batch))
        if progress:
            progress(len(batch))
    counts = word_counts(source)
    ordered = sorted(pairs, key=lambda pair: (-counts[pair[0]], pair[0], -pairs[pair], pair[1]))
    kept = [pair for pair in ordered if is_one_word(pair[0]) and is_one_word(pair[1])]
    left_out = {WHITE_SPACE: len(ordered) - len(kept)} if len(kept) < len(ordered) else {}
    parents = {"source": source.fingerprint, "language": language.fingerprint}
    return Candidates(WordDictionary.of(kept), counts, derived, parents, left_out)


def natural_words(
    muse: Path,
    source: Source | None = None,
    target: Source | None = None,
    names: tuple[str, str] = ("the source", "the target source"),
) -> Candidates:
    """Return the pairs of a MUSE file whose words occur in the training texts of the given sources.

    Case matters: a lower-case dictionary covers only lower-case words.

    Args:
        muse: The file.
        source: Text of the language of the first column (default: any word is accepted).
        target: Text of the language of the second column (default: any word is accepted).
        names: The two texts as the user wrote them, for errors.

    Raises:
        InputError: The file or a text cannot be read, or a source lacks the training split.
    """
    words = WordDictionary.of(read_muse(muse))
    texts = zip((source, target), names, strict=True)
    from_counts, to_counts = (None if text is None else word_counts(text, name=name) for text, name in texts)
    kept, left_out = words.restrict(from_counts, to_counts)
    parents = {MUSE: words.digest}
    parents |= {n: s.fingerprint for n, s in (("source", source), ("target_source", target)) if s is not None}
    turned, _ = words.swapped.restrict(from_counts, to_counts)
    use = "" if from_counts is None and to_counts is None else told_use(len(kept), len(words), len(turned))
    return Candidates(kept, from_counts, to_counts, parents, left_out, use)


def write_drawn(candidates: Candidates, spec: DictionarySpec, folder: Path) -> dict[str, Any]:
    """Draw a dictionary from candidates, write its folder and return the manifest.

    ``coverage`` in the manifest has the covered shares of types and running words of each given text. The share in the
    spec counts only the source words of the candidates.

    Raises:
        InputError: The candidates are empty, the settings need word counts that the candidates lack, or the folder
            exists or is being written by another process.
        DiskError: The folder cannot be written.
    """
    if not len(candidates.words):
        reason = f"no pair of words is left to draw from{because(candidates.left_out)}"
        hint = "use a larger text, or a language that keeps more of its sentences"
        if MUSE in candidates.parents:
            hint = "use texts in the languages of the dictionary, --source for its first column"
        raise InputError(reason, hint=hint, code="empty")
    drawn = candidates.words.draw(spec, candidates.source)
    texts = (("source", candidates.source), ("target", candidates.target))
    report = {
        "candidates": {"pairs": len(candidates.words), "source_words": len(set(candidates.words.source))},
        "left_out": candidates.left_out,
        "coverage": {side: drawn.coverage(counts, side) for side, counts in texts if counts is not None},
    }
    return write_words(drawn, folder, spec, candidates.parents, report)


def dictionary_command(
    spec: str,
    source: str | None,
    out: Path,
    *,
    target_source: str | None = None,
    coverage: float = 0.25,
    by: str = "type",
    order: str = "uniform",
    seed: int = 0,
) -> dict[str, Any]:
    """Draw a dictionary, write its folder and return the manifest.

    See ``synthlang.draw_dictionary`` for the arguments.

    Raises:
        InputError: ``out`` exists, a setting is invalid, a source is missing or does not apply, an input cannot be
            read, or no pair of words is left.
        DiskError: The folder cannot be written.
    """
    try:
        settings = parse(DictionarySpec, {"coverage": coverage, "by": by, "order": order, "seed": seed})
    except InputError as error:
        raise InputError(error.reason, f"--{error.keys[0]}", hint=error.hint, code=error.code) from error
    if out.exists():
        raise InputError("exists already", out, hint="name a new folder", code="exists")
    is_muse = _is_muse(spec)
    language = PARENT if is_muse else parse_language(spec)
    if not is_muse and source is None:
        reason = f"the dictionary of the language {spec!r} needs a text whose words are counted"
        raise InputError(reason, "--source", hint="name a source, such as text:PATH", code="missing")
    if not is_muse and target_source is not None:
        reason = "the option applies only to a MUSE file"
        hint = "leave this option out, since the target words of a language are derived from --source"
        raise InputError(reason, "--target-source", hint=hint, code="conflict")
    text, target = (open_source(name) if name else None for name in (source, target_source))
    with Display() as display:
        if is_muse or text is None:
            candidates = natural_words(user_path(spec), text, target, (str(source), str(target_source)))
        else:
            count = display.counter("dictionary")
            candidates = derived_words(text, language, lambda sentences: count("sentences", sentences), str(source))
        try:
            manifest = write_drawn(candidates, settings, out)
        except InputError as error:
            raise error.inside(path=spec) from error
        for side, shares in manifest["coverage"].items():
            display.message(f"{side}: {shares['types']:.1%} of the types, {shares['tokens']:.1%} of the running words")
        if candidates.use:
            display.message(candidates.use)
        for reason, number in manifest["left_out"].items():
            display.message(f"{reason}: {number}")
        display.message(f"written: {out} ({manifest['pairs']} pairs)")
    return manifest


def _is_muse(spec: str) -> bool:
    """Return True for a MUSE file and False for a language, and refuse any other path."""
    path = user_path(spec)
    if spec.endswith((".yaml", ".yml")):
        return False
    if path.is_file():
        return True
    try:
        parse_language(spec)
    except InputError as error:
        if path.is_dir():
            inside = f" ({path / FILE})" if (path / FILE).is_file() else ""
            hint = f"name a file in the MUSE format{inside} or a language"
            raise InputError("is a folder, not a file", path, hint=hint, code="type") from error
        if "@" not in spec and re.search(r"/|\.[A-Za-z]\w*$", spec):
            hint = "name a file in the MUSE format or a language"
            raise no_such(path, hint=hint) from error
        raise
    return False
