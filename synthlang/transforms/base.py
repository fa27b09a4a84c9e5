"""The base class of transforms: frozen settings with a strength, and a rewrite of batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from synthlang.config import StrictModel
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.rewrite import Rewrite
from synthlang.rng import key_of, uniform
from synthlang.sources.base import HINTS

MOST_WORDS = 1_000_000
"""Largest number of words that a window, a chunk or a distance may have."""


class Transform(StrictModel):
    """A function from sentences to sentences, whose ``strength`` is a number from 0 (identity) to 1 (full change).

    Attributes:
        short_name: Name of the transform in language names, and the option after the @, as in ``reorder@ga``. None if
            names of languages cannot have the transform.
        file_fields: Options that may name a file.
    """

    short_name: ClassVar[tuple[str, str] | None] = None
    file_fields: ClassVar[tuple[str, ...]] = ()

    kind: str
    """Name by which a language selects the transform."""
    strength: float = Field(default=1.0, ge=0.0, le=1.0)
    """Amount of change, from 0 (none) to 1 (full). For most kinds it is the share of the sentences that change."""

    @property
    def requires(self) -> tuple[str, ...]:
        """The columns that the transform reads besides the forms. A subclass may give a ClassVar instead."""
        return ()

    @property
    def invertible(self) -> bool:
        """True if ``inverse`` restores the source exactly. A subclass may give a ClassVar instead."""
        return True

    @property
    def keeps_forms(self) -> bool:
        """True if the transform only moves words. A subclass may give a ClassVar instead."""
        return False

    @property
    def needs_counts(self) -> bool:
        """True if the transform depends on word counts, so that ``bind`` must be called first."""
        return False

    def bind(self, counts: Mapping[str, int]) -> Self:
        """Return the transform with the word counts that it needs. The transform itself does not change.

        ``counts`` maps each word of the counted text to its number of occurrences. For ``unit: token`` it maps tokens.
        """
        del counts
        return self

    @property
    def adds_forms(self) -> bool:
        """True if the transform writes forms that the source does not have, which ``added_forms`` lists.

        A subclass may give a ClassVar instead.
        """
        return False

    def added_forms(self, words: Sequence[str], key: int) -> tuple[str, ...]:
        """Return the forms, or parts of forms, that the transform may add to a text of these source words.

        A vocabulary that is trained on the source alone gets one token for each of these forms. A form that starts a
        word has a space before it. ``key`` is the random key of the transform.
        """
        del words, key
        return ()

    @property
    def added_tokens(self) -> tuple[str, ...]:
        """The tokens that the transform inserts as separate words. The vocabulary must have them."""
        return ()

    @property
    def flags_sentences(self) -> bool:
        """True if every rewrite flags the affected sentences (``Rewrite.affected``). A subclass may give a ClassVar."""
        return False

    def redrawn(self, number: int) -> Self:
        """Return a copy with another set of random draws for running words.

        A transform without such draws returns itself. Choices of word types do not change.
        """
        del number
        return self

    def files(self) -> dict[str, Path]:
        """Return the existing files that the options ``file_fields`` name, by option.

        Raises:
            InputError: A name begins with ``~USER``, and the user does not exist.
        """
        named = {field: getattr(self, field) for field in self.file_fields}
        paths = {field: user_path(value) for field, value in named.items() if value is not None}
        return {field: path for field, path in paths.items() if path.is_file()}

    def identity(self) -> dict[str, Any]:
        """Return the settings for a fingerprint, with the content of files in place of their names."""
        return self.model_dump(mode="json")

    @abstractmethod
    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        """Return the rewrite of a batch, which is a function of the sentences, their ids and the random ``key``.

        Raises:
            InputError: The batch lacks a column of ``requires``, or a word cannot be rewritten.
        """

    def inverse(self, corpus: Corpus, key: int) -> Rewrite:
        """Return the rewrite that undoes ``rewrite`` with the same key on its output.

        Raises:
            InputError: The transform has no inverse.
        """
        del corpus, key
        hint = "use the columns origin and parent_text of a derived data set to relate it to its source"
        raise InputError(f"the transform {self.kind} has no inverse", hint=hint, code="unsupported")


def chosen_sentences(corpus: Corpus, key: int, strength: float) -> NDArray[np.bool_]:
    """Flag a random share ``strength`` of the sentences, [sentences].

    A sentence is chosen if its random number, a function of ``key`` and its id, is below ``strength``. A larger share
    therefore includes every smaller share.
    """
    return uniform(key_of("sentence", key), corpus.ids) < strength


def filtered(result: Rewrite, affected: NDArray[np.bool_], fits: NDArray[np.bool_], reason: str) -> Rewrite:
    """Flag the affected sentences of a rewrite of all sentences, and leave out affected sentences that do not fit.

    Args:
        result: The rewrite.
        affected: Flags of the sentences that the transform affects, [sentences].
        fits: Flags of the sentences that pass the filter, [sentences]. A sentence that is not affected always stays.
        reason: Key of ``counts`` for the number of sentences that are left out.
    """
    keep = fits | ~affected
    flagged = replace(result, affected=affected)
    return flagged if keep.all() else flagged.take(np.flatnonzero(keep)).counted({**result.counts, reason: ~keep})


def check_order(transform: Transform, smaller: str, larger: str) -> None:
    """Check that the option ``smaller`` of a transform does not exceed the option ``larger``.

    Raises:
        InputError: It does. The error names ``larger``, or ``smaller`` if ``larger`` has its default.
    """
    low, high = getattr(transform, smaller), getattr(transform, larger)
    if high is not None and high < low:
        reason, key = f"{high} is smaller than {smaller} ({low})", larger
        if key not in transform.model_fields_set:
            reason, key = f"{low} is larger than {larger} ({high})", smaller
        raise InputError(reason, keys=key, hint=f"set {larger} to {low} or more", code="range")


def parent_words(corpus: Corpus) -> Column:
    """Return the source word of each word, or ``_`` for an inserted word.

    Without a column ``parent``, the source words are the words of the corpus itself.
    """
    return corpus.columns.get("parent", corpus.form)


def is_listed(words: Column, listed: Sequence[str]) -> NDArray[np.bool_]:
    """Return whether each word is in the list ``listed``, in upper or lower case, [words]."""
    forms = {form.lower() for form in listed}
    return words.lookup(lambda name: name.lower() in forms)


def check_columns(corpus: Corpus, transform: Transform) -> None:
    """Check that the corpus has every column that the transform reads.

    Raises:
        InputError: A column is missing. A corpus without sentences is never refused.
    """
    missing = [name for name in transform.requires if name not in corpus.columns]
    if missing and len(corpus):
        columns = ", ".join(name for name in corpus.columns if name != "parent")
        reason = f"the transform {transform.kind} needs the column {missing[0]!r}, but the corpus has only {columns}"
        raise InputError(reason, hint=HINTS.get(missing[0], "use a source with this column"), code="missing")
