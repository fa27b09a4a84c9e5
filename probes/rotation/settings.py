"""Settings of rotations between two languages: of the probes, and of the features of a transfer; without torch."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from synthlang.config import StrictModel
from synthlang.parallel.pairs import PairConfig
from synthlang.parallel.prepare import DataConfig
from synthlang.references import OmitDefaultFromHash, UserFile

Method = Literal["none", "centre", "unit", "unit-centre-unit", "iterative", "iterative-as-printed"]
METHODS: tuple[Method, ...] = get_args(Method)
ToUnitLength = Literal["unit", "unit-centre-unit", "iterative", "iterative-as-printed"]
ROUNDS = 5  # Zhang et al. 2019 and their code


class FitSettings(StrictModel):
    """How an orthogonal map of each layer is fitted.

    normalise   of both languages before a map is fitted and applied: ``iterative`` (Emerging Cross-lingual Structure,
                section 5.1), ``none`` or ``centre`` (Kulshreshtha et al. 2020), or ``unit-centre-unit`` (Cao et al.
                2020, section 3.4)
    rounds      of ``iterative``
    moves       whose states are mapped to the other language's
    words       at most so many linked words or translations are used (none: all); with a normalisation that centres,
                their vectors wait in a temporary file (TMPDIR) of 8 · layers · d bytes for each word
    """

    normalise: Method = "iterative"
    rounds: int = Field(default=ROUNDS, ge=1)
    moves: Literal["target", "source"] = "target"
    words: int | None = Field(default=100_000, ge=2)


class RotationConfig(StrictModel):
    """An orthogonal map of each layer between the languages (Kulshreshtha et al. 2020, section 2).

    It is fitted before the model is fine-tuned and stays as it is; the body may be fine-tuned below it
    (``features.tune: all``, Cao et al. 2020, table 1) or stay as it is (``none``).

    pairs    one pair of languages, ``left`` the target and ``right`` the source; none: the pretraining text in the
             derived language and in the parent's, aligned by construction
    moves    whose features are mapped into the space of the other one: those of the ``source`` (Kulshreshtha et al.),
             or those of the ``target`` (Conneau et al. 2020, section 5.1.2)
    centre   languages are centred first and moved to the other's mean (NormRotateAlign, equations 4 and 5)
    normalise     instead of ``centre``, which is not read then: both languages' states are brought to unit length, as
             ``iterative`` has it (Conneau et al. 2020, section 5.1), before the map is fitted and wherever features are
             read. The means that are subtracted are those of the words that the map was fitted on, each language's its
             own. A length, once gone, cannot be given back: so the head learns on normalised states
    supervision   ``parallel``: linked words in context; ``dictionary``: the means of all occurrences of words that
             translate each other (section 2.2.1); ``sentences``: the means of the tokens of parallel sentences
             (Aldarmaki and Diab 2019, as Cao et al. 2020, table 1, have it)
    dictionary    of that supervision, a MUSE file of words of the parent and of the other language (section 4.1); none:
             the most frequent link of each word in the sentence pairs
    lower    words that differ in capital letters only are one; none: yes where ``dictionary`` is a file
    words    at most so many pairs of words, or of sentences, are used
    map      a folder of maps that the probe ``maps`` saved for these models and languages (SAVE/SUPERVISION): then
             nothing is fitted, and of the other keys ``moves`` counts alone
    """

    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    moves: Literal["source", "target"] = "source"
    centre: bool = True
    normalise: Annotated[ToUnitLength | None, OmitDefaultFromHash()] = None
    supervision: Literal["parallel", "dictionary", "sentences"] = "parallel"
    dictionary: UserFile | None = None
    lower: bool | None = None
    data: DataConfig = DataConfig(dev=0, sentences=30_000)
    words: int = Field(default=100_000, ge=2)
    map: UserFile | None = None

    @property
    def in_small_letters(self) -> bool:
        """Whether words are compared in small letters."""
        return self.dictionary is not None if self.lower is None else self.lower

    @model_validator(mode="after")
    def _read(self) -> RotationConfig:
        if self.dictionary is not None and self.supervision != "dictionary":
            told = f"dictionary is not read with supervision: {self.supervision}"
            raise ValueError(f"{told}; set supervision: dictionary, or leave the file out")
        return self
