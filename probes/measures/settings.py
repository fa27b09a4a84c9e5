"""What ``synthlang probe`` measures and on which text: one YAML file, every key checked."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field, model_validator

from pretrain.adjust.config import DataConfig
from pretrain.adjust.pairs import PairConfig
from pretrain.config.model import numbered
from probes.measures.cka.settings import CkaConfig
from probes.measures.distances.settings import DistancesConfig
from probes.measures.maps.settings import MapsConfig
from probes.measures.retrieval.settings import RetrievalConfig
from probes.measures.words.settings import WordsConfig
from synthlang.config import StrictModel
from synthlang.references import LanguageSpec, ModelName

FORMAT = 3  # raise when the same settings give other numbers

ProbeName = Literal["words", "retrieval", "maps", "cka", "distances"]
PROBES: tuple[ProbeName, ...] = get_args(ProbeName)


class ProbeDataConfig(DataConfig):
    """What is taken of the sentence pairs, as in an adjustment, but of the pairs to fit on the last ``sentences`` only.

    sentences   how many sentence pairs maps are fitted on, and which ``retrieval.seen`` and ``cka`` read beside the
                measured ones: 20,000 whatever else is set; none: all
    """

    sentences: int | None = Field(default=20_000, ge=1)


class ProbeConfig(StrictModel):
    """Probes, the languages and the text they are measured on.

    probes     which
    language   what the parent is compared with: for a run the name or spec of one of its languages (none: the first
               derived one), for other models the spec of a derived one, or any name with ``natural``
    natural    the other language is not derived from the parent: ``pairs`` must name sentence pairs, unless only
               ``words`` is asked for. Of the languages of a run it is known
    model2     what reads the other language, when that is another model (two monolingual models)
    pairs      sentence pairs with links (left: the other language, right: the parent), as in an adjustment; none: the
               pretraining text in both languages, aligned by construction
    data       which of them: the last ``dev`` before the last ``test`` are measured on, and of the others the last
               ``sentences`` (20,000) are there to fit on
    subword    what stands for a word in context: its first (``start``) or last subword (``end``; Cao et al. 2020), or
               the mean of all
    layers     whose states: 0 for the embeddings, 1 … N, negative ones count from the last; none: all
    seed       of everything that is drawn
    """

    probes: tuple[ProbeName, ...] = Field(default=PROBES, min_length=1)
    language: LanguageSpec | None = None
    natural: bool = False
    model2: ModelName | None = None
    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    data: ProbeDataConfig = ProbeDataConfig()
    subword: Literal["start", "end", "mean"] = "end"
    layers: tuple[int, ...] | None = Field(default=None, min_length=1)
    seed: int = Field(default=0, ge=0)
    words: WordsConfig = WordsConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    maps: MapsConfig = MapsConfig()
    cka: CkaConfig = CkaConfig()
    distances: DistancesConfig = DistancesConfig()

    @model_validator(mode="after")
    def _sound(self) -> ProbeConfig:
        if self.natural and self.language is None:
            raise ValueError("natural: the other language needs a name: language")
        if self.natural and self.reads_sentences and not any(self.pairs.values()):
            raise ValueError(
                "natural: nothing is aligned by construction; name sentence pairs (pairs), or ask for words only"
            )
        return self

    def numbers(self, count: int) -> tuple[int, ...]:
        """The layers that are read of a model of ``count``; InputError for one that it does not have."""
        return tuple(range(count + 1)) if self.layers is None else numbered(self.layers, count, "layers")

    @property
    def reads_sentences(self) -> bool:
        """Whether a probe needs sentence pairs; ``words`` reads embeddings only."""
        return set(self.probes) != {"words"}

    @property
    def fits(self) -> bool:
        """Whether a probe fits something on sentence pairs that are not measured."""
        return "maps" in self.probes or ("retrieval" in self.probes and self.retrieval.fits)
