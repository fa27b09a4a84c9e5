"""Settings of the probe ``cka``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from probes.measures.base import ProbeSettings
from probes.results.declared import AT_LEAST_ZERO, COEFFICIENT, SHARE, Measure, PerLayer, Tree
from synthlang.errors import InputError
from synthlang.references import ModelName

Pooling = Literal["mean", "first", "words"]
Estimator = Literal["biased", "debiased"]
Random = Literal["target", "both"]
ESTIMATORS: dict[Estimator, tuple[float, float]] = {"biased": SHARE, "debiased": COEFFICIENT}
"""The estimators of CKA and their ranges. The debiased estimator may be negative."""


def _comparison(key: str) -> Tree:
    """Return the measures of one comparison of two sets of states."""
    over = "sentences or linked words"
    same = {
        name: Measure("CKA", over, within, f"the same layer of two {key}, {name}", main=name == "debiased")
        for name, within in ESTIMATORS.items()
    }
    return {
        "items": Measure("items", "sentences or linked words", AT_LEAST_ZERO),
        "same_layer": {name: PerLayer("left_layers", measure) for name, measure in same.items()},
        "mean": {name: Measure("CKA", "layers", within) for name, within in ESTIMATORS.items()},
    }


COMPARISONS = ("languages", "random_target", "random_both", "paraphrase")
MEASURES: Tree = {
    "sentences": Measure("sentence pairs", "sentence pairs", AT_LEAST_ZERO),
    "comparisons": {key: _comparison(key) for key in COMPARISONS},
}


class CkaConfig(ProbeSettings):
    """Settings of CKA: the states to compare and the references (Conneau et al. 2020, section 5.2)."""

    smoke: ClassVar[Mapping[str, Any]] = {"sentences": 40}

    title: ClassVar[str] = "Similarity of layers"
    about: ClassVar[str] = (
        "Similarity of the representations of sentences and their translations, up to a rotation: linear CKA, from 0 "
        "to 1. References are models with random weights and, if given, a second model of the source language."
    )
    run: ClassVar[str] = "probes.measures.cka.probe:cka_probe"
    measures: ClassVar[Tree] = MEASURES

    sentences: int = Field(default=10_000, ge=2)
    """Maximum number of sentence pairs, drawn from the pairs to measure and the pairs to fit on.

    CKA fits no map, so the pairs for fitting are measured as well. Only ``pooling: words`` needs word alignments.
    """
    pooling: Pooling = "mean"
    """Items to compare: sentences by the ``mean`` of their tokens or by the ``first`` token, or aligned ``words``."""
    random: tuple[Random, ...] = ("target", "both")
    """Lower references: models with random weights read the ``target`` language (figure 7) or ``both`` languages.

    With ``both``, the similarity comes from the tokens alone. An empty list means no such reference.
    """
    paraphrase: ModelName | None = Field(default=None, min_length=1)
    """Second model of the source language, as an upper reference, such as a model with another seed (null: none).

    Give a run, a folder or a name on Hugging Face. The model reads the same sentences of the source language.
    """
    estimator: Estimator = "biased"
    """Estimator in the figures: ``biased`` (as in the paper) or ``debiased``. Results contain both."""

    @property
    def needs_links(self) -> bool:
        """True if the items are aligned words."""
        return self.pooling == "words"

    @field_validator("random")
    @classmethod
    def _once(cls, value: tuple[Random, ...]) -> tuple[Random, ...]:
        return tuple(dict.fromkeys(value))

    def check_pooling(self, is_causal: bool) -> None:
        """Raise InputError if a decoder (``is_causal``) would read sentences at <s>, which sees no other token."""
        if is_causal and self.pooling == "first":
            reason = "is first, but in a decoder the first token <s> has no information on the sentence"
            raise InputError(reason, keys="cka.pooling", hint="set this key to mean or words", code="conflict")
