"""The settings that all probes share: models, languages and text. The module imports no torch."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from pydantic import Field, model_validator

from pretrain.config.model import numbered
from probes.measures.base import ProbeSettings
from synthlang.config import StrictModel
from synthlang.parallel.pairs import PairConfig
from synthlang.parallel.prepare import DataConfig
from synthlang.references import LanguageSpec, ModelName, omits_default


class ProbeDataConfig(DataConfig):
    """What is taken of the sentence pairs, as in an adjustment, but of the pairs to fit on the last ``sentences`` only.

    sentences   how many sentence pairs maps are fitted on, and which ``retrieval.seen`` and ``cka`` read beside the
                measured ones: 20,000 whatever else is set; none: all
    """

    sentences: int | None = Field(default=20_000, ge=1)


Settings = TypeVar("Settings", bound=ProbeSettings)


class InputConfig(StrictModel):
    """Which probes, of which languages and on which text; a field of a subclass that is ``ProbeSettings`` is a probe.

    probes     which (none: all but those of plugins, and those that came ``OmitDefaultFromHash``)
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

    probes: tuple[str, ...] = Field(default=(), min_length=1)
    language: LanguageSpec | None = None
    natural: bool = False
    model2: ModelName | None = None
    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    data: ProbeDataConfig = ProbeDataConfig()
    subword: Literal["start", "end", "mean"] = "end"
    layers: tuple[int, ...] | None = Field(default=None, min_length=1)
    seed: int = Field(default=0, ge=0)

    @classmethod
    def table(cls) -> dict[str, type[ProbeSettings]]:
        """Name → settings of every probe that there is."""
        fields = ((name, field.annotation) for name, field in cls.model_fields.items())
        return {name: kind for name, kind in fields if isinstance(kind, type) and issubclass(kind, ProbeSettings)}

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        """``probes`` takes the names of the probes that there are; where none is named, all that did not come later."""
        super().__pydantic_init_subclass__(**settings)
        names = tuple(cls.table())
        cls.model_fields["probes"].annotation = tuple[Literal[names], ...]  # type: ignore[valid-type]
        cls.model_fields["probes"].default = tuple(name for name in names if not omits_default(cls.model_fields[name]))
        cls.model_rebuild(force=True)

    @model_validator(mode="after")
    def _sound(self) -> InputConfig:
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

    def of(self, kind: type[Settings]) -> Settings:
        """The settings of a probe, by their class."""
        found = next(value for value in vars(self).values() if isinstance(value, kind))
        assert isinstance(found, kind)
        return found

    def chosen(self) -> dict[str, ProbeSettings]:
        """The settings of the probes that are asked for."""
        return {name: getattr(self, name) for name in self.probes}

    @property
    def reads_sentences(self) -> bool:
        """Whether a probe needs sentence pairs; ``words`` reads embeddings only."""
        return any(settings.reads_sentences for settings in self.chosen().values())

    @property
    def fits(self) -> bool:
        """Whether a probe fits something on sentence pairs that are not measured."""
        return any(settings.fits for settings in self.chosen().values())
