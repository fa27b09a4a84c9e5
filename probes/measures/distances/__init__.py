"""Settings of the probe ``distances``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from pretrain.config.model import numbered
from probes.figures import MOST_PAIRS
from probes.measures.base import ProbeSettings
from probes.measures.distances.declared import MEASURES
from probes.results.declared import Tree
from synthlang.errors import InputError
from synthlang.references import ModelName

BINS = 40
Distance = Literal["l2", "cosine"]
DISTANCES: tuple[Distance, ...] = ("l2", "cosine")
TOPS = (1, 3, 10, 100)
"""How many of the largest dimensions are taken together; the paper names 10 and 100."""


class DistancesConfig(ProbeSettings):
    """Settings of distances of related and unrelated words ("The Impact of Cross-Lingual Adjustment", section 5.4)."""

    title: ClassVar[str] = "Distances"
    about: ClassVar[str] = (
        "Whether words that translate each other lie closer than words that do not: AUC is 0.5 by chance and 1 where "
        "every related pair is closer than every unrelated one."
    )
    run: ClassVar[str] = "probes.measures.distances.probe:distances_probe"
    measures: ClassVar[Tree] = MEASURES

    before: dict[str, ModelName] = Field(default_factory=dict)
    """Other models that read the same sentence pairs, such as the one before adjustment, as name → run, folder or name
    of Hugging Face. A list takes the names of the folders.
    """
    name: str | None = Field(default=None, min_length=1)
    """Name of the probed model beside them (None: its own name)."""
    layer: int | None = None
    """Layer of the histograms and pictures: 0 for the embeddings, 1 … N, and negative numbers from the last (None: the
    last layer that is read, as in the paper).
    """
    bins: int = Field(default=BINS, ge=2, le=1000)
    """Number of bins of the histograms."""
    dimensions: tuple[int, ...] = TOPS
    """Numbers of the largest dimensions that are left out together, to see how much depends on them.

    Without any, the sentences are read once instead of twice.
    """
    picture: Literal["pca", "tsne", "none"] = "pca"
    """Picture of word pairs in a plane: principal components (``pca``), ``tsne`` (Cao et al.

    2020, figure 1; needs the extra ``probe``) or ``none``.
    """
    pairs: int = Field(default=40, ge=2, le=MOST_PAIRS)
    """Number of word pairs in the picture.

    The seed draws them from the ten times as many that are linked most often, of open classes where parts of speech are
    known, with one occurrence of each.
    """

    def check_installed(self) -> None:
        if self.picture == "tsne" and find_spec("sklearn") is None:
            hint = "pip install 'synthlang[probe]', or take pca"
            raise InputError("tsne needs scikit-learn", keys="picture", hint=hint, code="extra")

    def drawn(self, read: Sequence[int], count: int) -> int:
        """Return the layer that is drawn, one of those that are ``read`` of ``count``.

        Raises:
            InputError: The layer is not among them.
        """
        shown = read[-1] if self.layer is None else numbered((self.layer,), count, "distances.layer")[0]
        if shown not in read:
            reason = f"layer {shown} is not among those that are read (layers)"
            raise InputError(reason, keys="distances.layer", code="conflict")
        return shown

    @field_validator("before", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        names = [Path(str(model)).name or str(model) for model in value]
        if len(set(names)) < len(names):
            raise ValueError("two models have one name; give names: {NAME: MODEL, …}")
        return {name: str(model) for name, model in zip(names, value, strict=True)}

    @field_validator("dimensions")
    @classmethod
    def _counts(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(top < 1 for top in value) or len(set(value)) < len(value):
            raise ValueError("dimensions are counts from 1 on, each once")
        return tuple(sorted(value))
