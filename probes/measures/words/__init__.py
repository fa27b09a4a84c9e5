"""Settings and measures of the probe ``words``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import field_validator

from probes.measures.base import ProbeSettings
from probes.results.declared import ANY, AT_LEAST_ZERO, PERCENT, Entries, Measure, Tree
from synthlang.errors import InputError
from synthlang.references import OmitDefaultFromHash, UserFile

FOUND = Measure("percent", "word types", PERCENT)
TYPES = Measure("word types", "word types", AT_LEAST_ZERO)
DIRECTIONS: Tree = {"forward": FOUND, "backward": FOUND, "mean": replace(FOUND, main=True)}
SCORES: Tree = {ANY: {"cosine": DIRECTIONS, "csls": DIRECTIONS}}
"""The scores of each subset of words: all words, dictionary words and held-out words."""


def _ranks(band: Mapping[str, Any]) -> str:
    """Return the frequency ranks of a band, such as "101-1000", or "5001-" for the last."""
    return f"{band['from']}-{band['to'] or ''}"


OF_LANGUAGE: Tree = {"types": TYPES, "scores": SCORES, "bands": Entries({"types": TYPES, "scores": SCORES}, _ranks)}
ALIGNMENT: Tree = {**OF_LANGUAGE, "languages": {ANY: OF_LANGUAGE}}
"""The measures of the alignment of a run: at the top level for one language, and in ``languages`` for each."""
WORDS: Tree = {**ALIGNMENT, "checkpoints": Entries({"languages": {ANY: OF_LANGUAGE}})}
"""The measures of the probe ``words``, which also measures checkpoints."""


def no_rows(wanted: str, names: Sequence[str]) -> InputError:
    """Return the error for a language that cannot be compared with the source language of a run.

    ``wanted`` is the name of the language. ``names`` are the languages of the run, the source language first.
    """
    what = "is the source language" if wanted == names[0] else "is not a language of the run"
    reason = f"the probe words has nothing to compare, because {wanted} {what}"
    choice = f"choose from {', '.join(names[1:])}, or " if names[1:] else ""
    return InputError(reason, keys="language", hint=f"{choice}remove the probe words", code="unknown")


def no_dictionary() -> InputError:
    """Return the error for models without known word translations."""
    reason = "is required, because word translations are known only for a run that has both languages"
    hint = "give a file of translations, or remove the probe words"
    return InputError(reason, keys="words.dictionary", hint=hint, code="missing")


class WordsConfig(ProbeSettings):
    """Settings of word-embedding alignment."""

    title: ClassVar[str] = "Word embeddings"
    about: ClassVar[str] = (
        "Percentage of words whose nearest word embedding in the other language belongs to their translation. Every "
        "word of the other language that occurs in training is a candidate. Words of the training dictionary may have "
        "been aligned by the objective. Held-out words measure alignment that the model learned without a dictionary."
    )
    run: ClassVar[str] = "probes.measures.words.probe:words_probe"
    measures: ClassVar[Tree] = WORDS
    reads_sentences: ClassVar[bool] = False
    compares_vectors: ClassVar[bool] = True

    bands: tuple[int, ...] = (100, 1000, 5000)
    """Last frequency rank of each band of words. Words of higher rank numbers form one more band."""
    checkpoints: bool = True
    """Also measure the checkpoints of the run, to see when alignment emerges."""
    language_ids: Annotated[bool, OmitDefaultFromHash()] = False
    """Add the embedding of the language to each row before the cosine.

    The released code of ALIGN-MLM does this for models with language ids (XLM). The paper describes the rows alone.
    """
    dictionary: UserFile | None = None
    """MUSE file of translations, source words first (null: the translations that follow from the derivation).

    Only words that are one token in both languages are compared. Bands and checkpoints are not measured. A word counts
    as found if the nearest word is one of its translations, as in MUSE.
    """

    @field_validator("bands")
    @classmethod
    def _growing(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if list(value) != sorted(set(value)) or any(last < 1 for last in value):
            reason = f"must be increasing ranks of at least 1, not {list(value)}"
            raise InputError(reason, hint="write for example [100, 1000]", code="range")
        return value
