"""Settings of the probe ``cka``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from probes.measures.base import ProbeSettings
from probes.results.declared import AT_LEAST_ZERO, COEFFICIENT, SHARE, Measure, PerLayer, Tree
from synthlang.references import ModelName

ESTIMATORS = {"biased": SHARE, "debiased": COEFFICIENT}
"""The estimators of CKA and their ranges: the debiased one may be negative."""


def _comparison(key: str) -> Tree:
    """Return the measures of one comparison of two sets of states."""
    over = "sentences or linked words"
    same = {
        name: Measure("CKA", over, within, f"the same layer of two {key}, {name}")
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
Pooling = Literal["mean", "first", "words"]
Estimator = Literal["biased", "debiased"]
Random = Literal["target", "both"]


class CkaConfig(ProbeSettings):
    """Settings of the states that are compared, and of the references (Conneau et al. 2020, section 5.2)."""

    smoke: ClassVar[Mapping[str, Any]] = {"sentences": 40}

    title: ClassVar[str] = "Similarity of layers"
    about: ClassVar[str] = (
        "Linear CKA, from 0 to 1: how similar the representations of sentences and of their translations are, up to a "
        "rotation; compared with models of random weights and, if given, with a paraphrase."
    )
    run: ClassVar[str] = "probes.measures.cka.probe:cka_probe"
    measures: ClassVar[Tree] = MEASURES

    sentences: int = Field(default=10_000, ge=2)
    """Number of sentence pairs.

    The seed draws them from all except those of ``data.test``; since nothing is fitted, none has to be held out.
    """
    pooling: Pooling = "mean"
    """Vector of a sentence: the ``mean`` of its tokens, or the state of the ``first`` token (``<s>``).

    ``words`` compares linked words instead of sentences, each by ``subword``.
    """
    random: tuple[Random, ...] = ("target", "both")
    """Lower references.

    An encoder with weights drawn by the seed reads the ``target`` language and the model the source (figure 7), or it
    reads ``both``, which measures what tokens alone give.
    """
    paraphrase: ModelName | None = Field(default=None, min_length=1)
    """Upper reference: another model of the source language, such as one of another seed.

    It is a run, a folder or a name of Hugging Face, and reads the same source sentences. None: not measured.
    """
    estimator: Estimator = "biased"
    """Estimator of the figures; the results hold both. ``biased`` is that of the paper."""

    @field_validator("random")
    @classmethod
    def _once(cls, value: tuple[Random, ...]) -> tuple[Random, ...]:
        return tuple(dict.fromkeys(value))
