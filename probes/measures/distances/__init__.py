"""Settings and measures of the probe ``distances``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from pretrain.config.model import numbered
from probes.figures import MOST_PAIRS
from probes.measures.base import ProbeSettings
from probes.results.declared import ANY, AT_LEAST_ZERO, COEFFICIENT, SHARE, Entries, Measure, Tree
from synthlang.distribution import install_command
from synthlang.errors import InputError
from synthlang.references import ModelName

PAIRS = "pairs of words"
COUNT = Measure("pairs of words", PAIRS, AT_LEAST_ZERO)
APART = Measure("share", PAIRS, SHARE)
"""The measure of the area under the ROC curve (AUC)."""


def _distance(entry: Mapping[str, Any]) -> str:
    return str(entry["distance"])


def _mean(measure: Measure) -> Tree:
    return {"mean": measure}


LENGTH = _mean(Measure("distance", PAIRS, AT_LEAST_ZERO))
LAYER: Tree = {
    "auc": _mean(replace(APART, main=True)),
    "related": LENGTH,
    "unrelated": LENGTH,
    "zero_vectors": Measure("words", "linked words", AT_LEAST_ZERO),
    "same_word": COUNT,
}
"""The measures of one distance at one layer."""
CHANGE: Tree = {
    "auc": _mean(Measure("share", PAIRS, COEFFICIENT)),
    **dict.fromkeys(("related", "unrelated"), _mean(Measure("distance", PAIRS))),
}
"""The measures of the change from one model to another, for one distance at one layer."""
DIMENSION: Tree = {"mean": Measure("squared distance or cosine", PAIRS), "auc": _mean(APART)}
MEASURES: Tree = {
    "related": COUNT,
    "unrelated": COUNT,
    "sentence_pairs": Measure("sentence pairs", "sentence pairs", AT_LEAST_ZERO),
    "models": {ANY: {"layers": Entries(LAYER, _distance), "dimensions": Entries(DIMENSION, _distance)}},
    "changes": {ANY: Entries(CHANGE, _distance)},
}


BINS = 40
Distance = Literal["l2", "cosine"]
DISTANCES: tuple[Distance, ...] = ("l2", "cosine")
TOPS = (1, 3, 10, 100)
"""Default counts of largest dimensions to leave out. "The Impact of Cross-Lingual Adjustment" uses 10 and 100."""


class DistancesConfig(ProbeSettings):
    """Settings of distances of related and unrelated words ("The Impact of Cross-Lingual Adjustment", section 5.4)."""

    title: ClassVar[str] = "Distances"
    about: ClassVar[str] = (
        "Distances between translations and between unrelated words. The AUC is 0.5 by chance, and 1 if every "
        "related pair is closer than every unrelated pair."
    )
    run: ClassVar[str] = "probes.measures.distances.probe:distances_probe"
    compares_vectors: ClassVar[bool] = True
    measures: ClassVar[Tree] = MEASURES

    before: dict[str, ModelName] = Field(default_factory=dict)
    """Other models to compare on the same sentence pairs, such as the model before adjustment.

    Give a mapping from names to models, or a list of models. A model is a run, a folder or a name on Hugging Face. In a
    list, each model has the name of its folder.
    """
    name: str | None = Field(default=None, min_length=1)
    """Name of the probed model in comparisons (null: its own name)."""
    layer: int | None = None
    """Layer of the histograms and pictures, numbered as in ``layers`` (null: the last layer, as in the paper)."""
    bins: int = Field(default=BINS, ge=2, le=1000)
    """Number of bins of the histograms."""
    dimensions: tuple[int, ...] = TOPS
    """Numbers of largest dimensions to leave out, which shows how much the distances depend on them.

    An empty list skips this measurement, and the sentences are read once instead of twice.
    """
    picture: Literal["pca", "tsne", "none"] = "pca"
    """Picture of word pairs: principal components (``pca``), ``tsne`` (Cao et al. 2020, figure 1) or ``none``.

    ``tsne`` needs the extra ``probe``.
    """
    pairs: int = Field(default=40, ge=2, le=MOST_PAIRS)
    """Number of word pairs in the picture.

    The pairs are a random sample of the most frequent pairs, from a pool that is ten times as large. One occurrence of
    each pair is shown. If parts of speech are known, only open classes are used.
    """

    def check_installed(self) -> None:
        """Raise InputError if the picture is ``tsne`` and scikit-learn is not installed."""
        if self.picture == "tsne" and find_spec("sklearn") is None:
            hint = f"run {install_command('probe')}, or use pca"
            raise InputError("tsne needs scikit-learn", keys="picture", hint=hint, code="extra")

    def drawn(self, read: Sequence[int], count: int) -> int:
        """Return the layer of the figures in a model of ``count`` layers, of which the layers ``read`` are read.

        Raises:
            InputError: The model does not have the layer, or the layer is not read.
        """
        shown = read[-1] if self.layer is None else numbered((self.layer,), count, "distances.layer")[0]
        if shown not in read:
            reason = f"layer {shown} is not among the layers to read"
            raise InputError(reason, keys="distances.layer", hint="add the layer to the key layers", code="conflict")
        return shown

    @field_validator("before", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        names = [Path(str(model)).name or str(model) for model in value]
        if len(set(names)) < len(names):
            hint = "give each model a name, as in {NAME: MODEL, …}"
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two models have the name {twice!r}", hint=hint, code="duplicate")
        return {name: str(model) for name, model in zip(names, value, strict=True)}

    @field_validator("dimensions")
    @classmethod
    def _counts(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(top < 1 for top in value) or len(set(value)) < len(value):
            reason = f"must be different numbers of at least 1, not {list(value)}"
            raise InputError(reason, hint="write for example [1, 10]", code="range")
        return tuple(sorted(value))
