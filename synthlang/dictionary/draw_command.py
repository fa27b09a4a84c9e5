"""What ``synthlang dictionary`` does: word dictionaries of a derived language and of a natural pair of languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthlang.config import parse
from synthlang.dictionary.word_dictionary import (
    FILE,
    DictionarySpec,
    Pair,
    WordDictionary,
    is_one_word,
    read_muse,
    write_words,
)
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.language import Language, bind_language, parse_language
from synthlang.overlap import count_words
from synthlang.progress import Display
from synthlang.rewrite import INSERTED
from synthlang.sources import open_source
from synthlang.sources.base import Source, counted_split, listed, word_counts

WordCounts = Counter[str]


@dataclass(frozen=True)
class Candidates:
    """What a dictionary can hold, and the texts it is about.

    source, target   how often each word occurs in either text; None: no text is known
    parents          fingerprints of what the candidates are made of
    left_out         reason → pairs that are none of the candidates
    """

    words: WordDictionary
    source: WordCounts | None
    target: WordCounts | None
    parents: dict[str, str]
    left_out: dict[str, int]


def derived_words(source: Source, language: Language, progress: Callable[[int], None] | None = None) -> Candidates:
    """Each word of the training text with every form it has in the language.

    The pairs follow the origin of each derived word, so a language that writes a word in
    several ways has several lines for it, the most frequent first; a deleted or an inserted
    word has none. ``progress(sentences)`` is called after each batch.
    """
    language = bind_language(language, source)
    derived, pairs = Counter[str](), Counter[Pair]()
    for batch in source.batches(counted_split(source)):
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
    left_out = {"pairs left out, white space in a word": len(ordered) - len(kept)} if len(kept) < len(ordered) else {}
    parents = {"source": source.fingerprint, "language": language.fingerprint}
    return Candidates(WordDictionary.of(kept), counts, derived, parents, left_out)


def natural_words(muse: Path, source: Source | None = None, target: Source | None = None) -> Candidates:
    """The pairs of a MUSE file whose words occur in the training texts of the two sources, where they are given.

    Words are compared as they are written: a lower-case dictionary covers lower-case words.
    """
    words = WordDictionary.of(read_muse(muse))
    from_counts, to_counts = (None if text is None else word_counts(text) for text in (source, target))
    kept, left_out = words.restrict(from_counts, to_counts)
    parents = {"pairs": words.digest}
    parents |= {n: s.fingerprint for n, s in (("source", source), ("target_source", target)) if s is not None}
    return Candidates(kept, from_counts, to_counts, parents, left_out)


def write_drawn(candidates: Candidates, spec: DictionarySpec, folder: Path) -> dict[str, Any]:
    """Draw a dictionary among candidates, write its folder and return the manifest.

    ``coverage`` in the manifest holds shares of the types and of the running words of each text
    that is known; the share in the spec counts the source words of the candidates only. No candidate
    at all is an InputError: the texts and the dictionary do not belong together.
    """
    if not len(candidates.words):
        reasons = listed(candidates.left_out) or "the text has no word"
        raise InputError(f"there is no pair to draw from ({reasons}); are the languages and their order right?")
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
    """Draw a dictionary and write its folder; returns the manifest.

    ``spec`` is a language (``trans+inv``, a YAML file) or a MUSE file. A language needs a
    source; a MUSE file is restricted to the words of ``source`` and ``target_source`` where
    they are given.
    """
    settings = parse(DictionarySpec, {"coverage": coverage, "by": by, "order": order, "seed": seed}, "dictionary")
    if out.exists():
        raise InputError("exists already; name a new folder", out)
    is_muse = _is_muse(spec)
    if not is_muse and source is None:
        raise InputError(f"the dictionary of the language {spec!r} is drawn from a text; name one with --source")
    if not is_muse and target_source is not None:
        raise InputError("--target-source is for a MUSE file; the words of a language follow from --source")
    text, target = (open_source(name) if name else None for name in (source, target_source))
    with Display() as display:
        if is_muse or text is None:
            candidates = natural_words(user_path(spec), text, target)
        else:
            language = bind_language(parse_language(spec), text)
            count = display.counter("dictionary")
            candidates = derived_words(text, language, lambda sentences: count("sentences", sentences))
        manifest = write_drawn(candidates, settings, out)
        for side, shares in manifest["coverage"].items():
            display.message(f"{side}: {shares['types']:.1%} of the types, {shares['tokens']:.1%} of the running words")
        for reason, number in manifest["left_out"].items():
            display.message(f"{reason}: {number}")
        display.message(f"written: {out} ({manifest['pairs']} pairs)")
    return manifest


def _is_muse(spec: str) -> bool:
    """Whether ``spec`` is a MUSE file; InputError if it looks like one but is none. Else it should be a language."""
    path = user_path(spec)
    if spec.endswith((".yaml", ".yml")):
        return False
    if path.is_file():
        return True
    try:
        parse_language(spec)
    except InputError as error:
        if path.is_dir():
            inside = f", as {path / FILE}" if (path / FILE).is_file() else ""
            raise InputError(f"is a folder; name a file in the MUSE format{inside}, or a language", path) from error
        if "@" not in spec and re.search(r"/|\.[A-Za-z]\w*$", spec):
            raise InputError("no such file; name a file in the MUSE format, or a language", path) from error
        raise
    return False
