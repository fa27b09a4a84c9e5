"""Settings of the probe ``words``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import field_validator

from probes.measures.base import ProbeSettings
from probes.measures.words.declared import WORDS
from probes.results.declared import Tree
from synthlang.errors import InputError
from synthlang.references import OmitDefaultFromHash, UserFile


def no_rows(wanted: str, names: Sequence[str]) -> InputError:
    """Return the error for a language that the first of a run's languages cannot be compared with."""
    what = "is the source itself" if wanted == names[0] else "is no language of the run, so it has no rows of its own"
    others = ", ".join(names[1:]) or "none"
    reason = f"the probe words has nothing to compare: {wanted} {what}"
    return InputError(reason, keys="language", hint=f"name another language (there is {others})", code="unknown")


def no_dictionary() -> InputError:
    """Return the error for models of which it is not known which words are translations."""
    reason = "which words are translations is known only of one run with both languages"
    return InputError(reason, keys="words.dictionary", hint="name a file of translations", code="missing")


class WordsConfig(ProbeSettings):
    """Settings of word-embedding alignment."""

    title: ClassVar[str] = "Word embeddings"
    about: ClassVar[str] = (
        "How often the nearest word embedding of the other language is that of the translation, in percent. Every word "
        "of the other language that occurs in training is a candidate. Words of the training dictionary were "
        "aligned on purpose; held-out words show what the model learned by itself."
    )
    run: ClassVar[str] = "probes.measures.words.probe:words_probe"
    measures: ClassVar[Tree] = WORDS
    reads_sentences: ClassVar[bool] = False

    bands: tuple[int, ...] = (100, 1000, 5000)
    """Last frequency rank of each band. One more band has the rest."""
    checkpoints: bool = True
    """Whether every checkpoint that the run keeps is measured, too, to see when alignment emerges."""
    language_ids: Annotated[bool, OmitDefaultFromHash()] = False
    """Whether the embedding of its language is added to each row before the cosine.

    The released code of ALIGN-MLM does so for models with language ids (XLM); its text describes the rows alone.
    """
    dictionary: UserFile | None = None
    """MUSE file of words of the source and of the other language.

    Words that are one token in both are compared, without bands and checkpoints. None: the translations that the run
    itself knows.
    """

    @field_validator("bands")
    @classmethod
    def _growing(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if list(value) != sorted(set(value)) or any(last < 1 for last in value):
            raise ValueError(f"ranks must be at least 1 and grow, not {list(value)}")
        return value
