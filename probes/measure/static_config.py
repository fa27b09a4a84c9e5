"""Settings of word vectors without context, for the probes ``maps`` and ``retrieval``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from probes.maps.methods import Method
from probes.static.config import POOLS, Pool, StaticConfig
from synthlang.config import StrictModel
from synthlang.references import UserFile


class StaticBaseline(StrictModel):
    """One vector for a word (Cao et al. 2020, section 3.4), for comparison: normalised, rotated, with its sentence's.

    supervision   ``parallel``: linked words, as the paper has it, or the ``dictionary``
    pools         what a sentence adds to its words: mean, largest and smallest values
    normalise     of each language, over all its words, before the rotation
    """

    supervision: Literal["parallel", "dictionary"] = "parallel"
    pools: tuple[Pool, ...] = POOLS
    normalise: Method = "unit-centre-unit"


class TrainedVectors(StaticBaseline):
    """Trained on each side of the sentence pairs by itself; gensim comes with the extra ``probe``, ``ppmi`` needs none.

    text   the sentence pairs that maps are ``fitted`` on; or all before those that are measured, with ``apart`` every
           other one for each language, so that no language reads what translates the other's text, as in vectors of
           two Wikipedias (vectors trained on translations have nearly one shape already)
    """

    kind: Literal["train"] = "train"
    text: Literal["fitted", "apart"] = "fitted"
    vectors: StaticConfig = StaticConfig()


class LoadedVectors(StaticBaseline):
    """Read from ``.vec`` files of the other language (``left``) and the parent (``right``): their first ``words``.

    lower   a word without a vector gets that of the word in small letters, for files that have no others
    """

    kind: Literal["load"]
    left: UserFile
    right: UserFile
    words: int | None = Field(default=200_000, ge=1)
    lower: bool = False


StaticSettings = Annotated[TrainedVectors | LoadedVectors, Field(discriminator="kind")]
