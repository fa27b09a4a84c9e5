"""What is learned: a weighted sum of terms."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from synthlang.config import StrictModel

Term = Literal["mlm", "tlm", "dict", "align"]
TERMS: tuple[Term, ...] = ("mlm", "tlm", "dict", "align")
KINDS: dict[str, tuple[Term, ...]] = {
    "mlm": ("mlm",),
    "xlm": ("mlm", "tlm"),
    "dict_mlm": ("mlm", "dict"),
    "align_mlm": ("mlm", "align"),
    "sum": (),
}


class ObjectiveConfig(StrictModel):
    """What is learned: L = Σ weight · (its cross entropies) / (masked slots of the batch) + alpha · L_align.

    kind          which terms there are: mlm; xlm = mlm + tlm; dict_mlm = mlm + dict; align_mlm = mlm + align;
                  sum = those named in ``weights``
    weights       weight of a term (default 1, of ``align`` alpha); may add a term to those of the kind
    mask_rate     share of positions that are masked slots; of these 80 % become <mask>,
                  10 % a random word, 10 % stay
    random_words  where random words come from: all languages, the same one, or the first (the parent)
    alpha         weight of the alignment term (ALIGN-MLM, equation 2)
    tlm_rate      share of the sentence pairs that TLM trains on (XLM; ALIGN-MLM, appendix C)
    dict_rate     share of the slots that are dictionary slots (DICT-MLM-50: half of them)
    dict_target   what a dictionary slot is: ``as-paper`` predicts the translation of the word (a word without one
                  stays as it is), ``as-code`` shows the translation and predicts the word, ``corrected`` predicts
                  the translation under its own language id (a word without one is masked as usual)
    language_ids  an embedding for each language, added before the first LayerNorm; default: with tlm or dict
    """

    kind: Literal["mlm", "xlm", "dict_mlm", "align_mlm", "sum"] = "mlm"
    weights: dict[Term, float] = Field(default_factory=dict)
    mask_rate: float = Field(default=0.15, gt=0.0, lt=1.0)
    random_words: Literal["all", "same-language", "source-only"] = "all"
    alpha: float = Field(default=10.0, ge=0.0)
    tlm_rate: float = Field(default=0.25, gt=0.0, le=1.0)
    dict_rate: float = Field(default=0.5, gt=0.0, le=1.0)
    dict_target: Literal["as-paper", "as-code", "corrected"] = "corrected"
    language_ids: bool | None = None

    @field_validator("weights")
    @classmethod
    def _not_negative(cls, value: dict[Term, float]) -> dict[Term, float]:
        if any(weight < 0 for weight in value.values()):
            raise ValueError("a weight must not be negative")
        return value

    @model_validator(mode="after")
    def _has_terms(self) -> ObjectiveConfig:
        if self.kind == "align_mlm" and "align" in self.weights:
            raise ValueError("alpha is the weight of align_mlm's alignment term; leave align out of weights")
        if not any(self.terms.get(term, 0.0) for term in ("mlm", "tlm", "dict")):
            raise ValueError("must have mlm, tlm or dict with a weight above 0, as in weights: {mlm: 1, align: 10}")
        return self

    @property
    def terms(self) -> dict[Term, float]:
        """Each term that is on, with its weight, in the order of TERMS."""
        weights: dict[Term, float] = {t: self.alpha if t == "align" else 1.0 for t in KINDS[self.kind]}
        weights |= self.weights
        return {term: weights[term] for term in TERMS if term in weights}

    @property
    def uses_language_ids(self) -> bool:
        """Whether tokens carry the embedding of their language (ALIGN-MLM, appendix G.3 to G.5)."""
        return bool({"tlm", "dict"} & self.terms.keys()) if self.language_ids is None else self.language_ids

    @property
    def needs_dictionary(self) -> bool:
        """Whether a term reads the dictionary."""
        return bool({"dict", "align"} & self.terms.keys())

    def identity(self) -> dict[str, Any]:
        """What affects the weights: the terms, and of the settings those that a term reads."""
        settings: dict[str, Any] = {"terms": self.terms, "language_ids": self.uses_language_ids}
        settings |= {"mask_rate": self.mask_rate, "random_words": self.random_words}
        if "tlm" in self.terms:
            settings["tlm_rate"] = self.tlm_rate
        if "dict" in self.terms:
            settings |= {"dict_rate": self.dict_rate, "dict_target": self.dict_target}
        return settings
