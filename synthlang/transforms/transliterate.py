"""Transliteration: words in another script, a copy of the vocabulary (ALIGN-MLM, T_trans)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr, field_validator

from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.files import read_lines
from synthlang.fingerprint import fingerprint
from synthlang.rewrite import Rewrite
from synthlang.rng import key_of, uniform_of_keys
from synthlang.scripts import SCRIPTS, SPECIAL_TOKENS, Script
from synthlang.sources.words import one_word, visible
from synthlang.transforms.base import Transform, parent_words


class Transliterate(Transform):
    """Write a share ``strength`` of the words in ``script``: ``the cat`` → ``тхе цат``.

    Types are chosen by their source word. The choice is therefore the same in every text and with any other
    transforms, and it grows with the strength. The ids of a chosen word move by V (see ``vocabulary``).

    A sentence is dropped and counted if a word that is not chosen has letters of the script, because it could not be
    distinguished from a transliterated word.
    """

    file_fields: ClassVar[tuple[str, ...]] = ("types",)
    short_name: ClassVar[tuple[str, str] | None] = ("trans", "script")

    kind: Literal["transliterate"] = "transliterate"
    script: str = "cyrillic"
    """Script of the transliterated words."""
    unit: Literal["word", "token"] = "word"
    """Unit of change: words, or the tokens of a vocabulary."""
    by: Literal["type", "token"] = "type"
    """Unit of the share: word types, or tokens (running words of the training text)."""
    order: Literal["uniform", "frequent"] = "uniform"
    """Order in which types are chosen: ``uniform`` by a hash of the form, or the most ``frequent`` first."""
    types: Path | None = Field(default=None)
    """File with the word types of which the share is chosen (default: all types). Other types are unchanged."""
    _listed: frozenset[str] | None = PrivateAttr(default=None)
    _counts: Mapping[str, int] | None = PrivateAttr(default=None)
    _limits: dict[int, float] = PrivateAttr(default_factory=dict)
    _frequent: frozenset[str] = PrivateAttr(default=frozenset())

    @field_validator("script")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in SCRIPTS:
            raise InputError(f"unknown script {value!r}", hint=f"choose one of {', '.join(SCRIPTS)}", code="unknown")
        return value

    def model_post_init(self, context: Any, /) -> None:
        """Read the listed words once, so that the fingerprint covers the words in use.

        Raises:
            InputError: The list cannot be read (see ``read_types``).
        """
        del context
        try:
            self._listed = None if self.types is None else read_types(self.types)
        except InputError as error:
            raise error.inside("types") from error

    def identity(self) -> dict[str, Any]:
        words = None if self._listed is None else fingerprint("types", words=sorted(self._listed))
        return {**super().identity(), "types": words}

    @property
    def needs_counts(self) -> bool:
        return 0.0 < self.strength < 1.0 and (self.by == "token" or self.order == "frequent")

    def bind(self, counts: Mapping[str, int]) -> Self:
        bound = self.model_copy()
        if self.needs_counts:
            bound._counts, bound._limits = counts, {}
            if self.order == "frequent":
                bound._frequent = most_frequent(counts, self._candidates(counts), self.strength, self.by == "token")
        return bound

    def _candidates(self, counts: Mapping[str, int]) -> frozenset[str]:
        return frozenset(counts) if self._listed is None else self._listed

    def chosen(self, forms: Sequence[str], key: int) -> list[bool]:
        """Return for each source word of ``forms`` whether its type is written in the script.

        ``key`` is the random key of the transform.
        """
        listed = self._listed
        if self.needs_counts and self.order == "frequent":
            return [form in self._frequent for form in forms]
        below = [True] * len(forms)
        if self.strength < 1.0:
            below = (type_hashes(key, forms) < self._limit(key)).tolist()
        return below if listed is None else [b and form in listed for b, form in zip(below, forms, strict=True)]

    def _limit(self, key: int) -> float:
        """Return the hash below which a type is chosen."""
        if not self.needs_counts:
            return self.strength
        if key not in self._limits:
            assert self._counts is not None
            self._limits[key] = hash_limit(self._counts, self._candidates(self._counts), self.strength, key)
        return self._limits[key]

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        if self.needs_counts and self._counts is None:
            reason = (
                f"transliterate with by: {self.by} and order: {self.order} needs the word counts of a training text"
            )
            hint = "bind the language to its source with synthlang.language.bind_language first"
            raise InputError(reason, hint=hint, code="missing")
        script = SCRIPTS[self.script]
        if self.unit == "token":
            return Rewrite.identity(corpus, self._tokens(corpus, script, key))
        written, unclear = self._words(corpus, script, key)
        result = Rewrite.identity(corpus, written)
        if not unclear.any():
            return result
        whole = np.bincount(corpus.sentence_of_word[unclear], minlength=len(corpus)) == 0
        reason = f"transliterate: sentences dropped, a word that stays has letters of the script {self.script}"
        return result.take(np.flatnonzero(whole)).counted({reason: ~whole})

    def _tokens(self, corpus: Corpus, script: Script, key: int) -> Column:
        """Return the tokens of the batch, with the chosen tokens written in the script."""
        names = corpus.form.names or ()
        chosen = self.chosen(names, key)
        return corpus.form.map_names(script.encode_token(n) if c else n for n, c in zip(names, chosen, strict=True))

    def _words(self, corpus: Corpus, script: Script, key: int) -> tuple[Column, NDArray[np.bool_]]:
        """Return the forms with the chosen types in the script, and flags of unclear words, [words].

        A word is unclear if it is not chosen but has letters of the script.
        """
        if self.strength >= 1.0 and self._listed is None:
            every = corpus.form.map_names(_encode_all(script, corpus.form.names or ()))
            return every, np.zeros(len(every.codes), bool)
        form, parent = corpus.form, parent_words(corpus)
        names, parents = form.names or (), parent.names or ()
        if names is not parents or not np.array_equal(form.codes, parent.codes):
            # Earlier transforms changed or inserted words: each pair of a form and its source word gets one name.
            pairs, codes = np.unique(form.codes.astype(np.int64) * len(parents) + parent.codes, return_inverse=True)
            both = [(names[pair // len(parents)], parents[pair % len(parents)]) for pair in pairs.tolist()]
            names = tuple(name for name, _ in both)
            # an inserted word is its own source word
            parents = tuple(name if parent == "_" else parent for name, parent in both)
            form = Column(codes.astype(np.int32), names)
        chosen = self.chosen(parents, key)
        unclear = [not is_chosen and script.occurs_in(name) for name, is_chosen in zip(names, chosen, strict=True)]
        stays_unclear = np.asarray(unclear, bool)[form.codes]
        written = iter(_encode_all(script, [name for name, is_chosen in zip(names, chosen, strict=True) if is_chosen]))
        forms = [next(written) if is_chosen else name for name, is_chosen in zip(names, chosen, strict=True)]
        # A form may have had several source words.
        column = form.map_names(forms) if names is corpus.form.names else Column.of(forms).take(form.codes)
        return column, stays_unclear

    def inverse(self, corpus: Corpus, key: int) -> Rewrite:
        del key  # the letters show which words were changed
        script = SCRIPTS[self.script]
        decode = script.decode_token if self.unit == "token" else script.decode
        # a word of a sentence that was left out may be no word in the script
        return Rewrite.identity(corpus, corpus.form.map_used(decode))


def type_hashes(key: int, forms: Sequence[str]) -> NDArray[np.float64]:
    """Return a random number in [0, 1) for each form, a function of the form and ``key``, [forms].

    A form is chosen if its number is below the share.
    """
    return uniform_of_keys([key_of("type", key, form) for form in forms])


def read_types(path: Path) -> frozenset[str]:
    """Read a list of words: one on each line, or the first column of a table with tabs.

    Raises:
        InputError: The file cannot be read, a line does not hold one word, or the file holds no word.
    """
    words = set()
    for number, line in read_lines(path):
        word = visible(line.split("\t")[0]).strip(" ")
        if " " in word:
            hint = "write one word on each line, or in the first column of a table"
            raise InputError(f"{word!r} is not one word", path, number, hint=hint, code="format")
        if not word and line.strip():
            raise InputError(
                "has an empty first column", path, number, hint="write a word there, or delete the line", code="format"
            )
        words.add(one_word(word))
    words.discard("")
    if not words:
        raise InputError("has no word", path, hint="write at least one word", code="empty")
    return frozenset(words)


def most_frequent(counts: Mapping[str, int], candidates: Iterable[str], share: float, by_token: bool) -> frozenset[str]:
    """Return the most frequent candidates. Ties are sorted by form.

    By type, ``round(share · number of candidates)`` candidates are returned. By token, the fewest candidates are
    returned that make up ``share`` of the running words of all candidates, as in ``DictionarySpec``.

    Args:
        counts: Number of occurrences of each word.
        candidates: Word types to choose from.
        share: Share of the candidates, or of their running words, 0 to 1.
        by_token: True for a share of running words.
    """
    ordered = sorted(candidates, key=lambda form: (-counts.get(form, 0), form))
    return frozenset(ordered[: _until(ordered, counts, share) if by_token else round(share * len(ordered))])


def hash_limit(counts: Mapping[str, int], candidates: Iterable[str], share: float, key: int) -> float:
    """Return the limit of hashes below which types make up ``share`` of the running words of all candidates.

    The limit is a number from 0 to 1. The types below it are as few as possible, in the order of their hashes. The
    hashes are the result of ``type_hashes`` with ``key``. See ``most_frequent`` for the other arguments.
    """
    forms = sorted(candidates)
    hashes = type_hashes(key, forms)
    rank = np.argsort(hashes, kind="stable")
    chosen = _until([forms[i] for i in rank.tolist()], counts, share)
    return float(hashes[rank[chosen]]) if chosen < len(forms) else 1.0


def _until(ordered: list[str], counts: Mapping[str, int], share: float) -> int:
    """Return the smallest number of leading types that cover the share of running words."""
    running = np.asarray([counts.get(form, 0) for form in ordered], np.int64)
    return int((np.cumsum(running) - running < share * running.sum()).sum())


def _encode_all(script: Script, words: Sequence[str]) -> list[str]:
    """Encode all words in one pass, with the results of ``script.encode``."""
    end = "\n"  # no word contains it
    text = end.join(words)
    if not words:
        return []
    letters = dict(enumerate(script.letters))
    written = text.encode("utf-8").decode("latin-1").translate(letters).split(script.letters[ord(end)])
    if any(token in text for token in SPECIAL_TOKENS):  # special tokens stay as they are
        for i, word in enumerate(words):
            if "<" in word:
                written[i] = script.encode(word)
    return written
