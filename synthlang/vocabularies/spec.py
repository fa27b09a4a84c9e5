"""Settings of vocabularies: how the ids of a run come about, and new subwords of a language."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from synthlang.config import StrictModel
from synthlang.scripts import SPECIAL_TOKENS

SMALLEST = len(SPECIAL_TOKENS) + 256  # the specials and every byte


class VocabularySpec(StrictModel):
    """Which ids the languages (members) of a run have.

    copied    one byte-level BPE of the source; a language in a script has copies of its tokens, V ids further
              for the first script, 2V for the second (ALIGN-MLM, section 3.2). Needs one source for all
    joint     one BPE of the text of all members together is everyone's tokenizer (Conneau et al. 2020, default)
    joined    a BPE for each member, the union of their tokens: the same string is the same id (default anchors)
    prefixed  a BPE for each member, each token under its member's prefix: only the specials are shared (no anchors)

    ``size`` counts the tokens of one BPE, specials and bytes included: with joined and prefixed each member has one.
    """

    kind: Literal["copied", "joint", "joined", "prefixed"] = "copied"
    size: int = Field(default=40_000, ge=SMALLEST)
    min_frequency: int = Field(default=2, ge=1)


class ExtendSpec(StrictModel):
    """New subwords for a language that a checkpoint covers poorly (Wang et al. 2020, E-mBERT).

    They are learned on the training text of the member ``language`` by the tokenizer's own algorithm: at most
    ``size``, of words (or pieces) that occur at least ``min_frequency`` times. ``initialise`` says what their
    embeddings start from: the mean of the old ``pieces`` of each, the mean of all old ones, or ``random`` numbers.
    """

    language: str
    size: int = Field(default=10_000, ge=1)
    min_frequency: int = Field(default=2, ge=1)
    initialise: Literal["pieces", "mean", "random"] = "pieces"
