"""The settings that all probes share: models, languages and text. The module imports no torch."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from pydantic import Field, model_validator

from pretrain.config.model import numbered
from probes.measures.base import ProbeSettings
from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.parallel.pairs import PairConfig
from synthlang.parallel.prepare import DataConfig
from synthlang.references import LanguageSpec, ModelName, omits_default


class ProbeDataConfig(DataConfig):
    """Choice of the sentence pairs, as in an adjustment, with a limit on the pairs to fit on."""

    sentences: int | None = Field(default=20_000, ge=1)
    """Number of sentence pairs to fit maps on, the last ones.

    ``retrieval.seen`` and ``cka`` read them beside the measured ones. The default is 20,000 whatever else is set; None:
    all.
    """


Settings = TypeVar("Settings", bound=ProbeSettings)


class InputConfig(StrictModel):
    """Settings of the probes, the languages and the text. A field of a subclass that is `ProbeSettings` is a probe."""

    probes: tuple[str, ...] = Field(default=(), min_length=1)
    """Names of the probes to run (default: all except those of plugins and those that came later)."""
    language: LanguageSpec | None = None
    """Language that the source language is compared with.

    For a run it is the name or spec of one of its languages (None: the first derived one), for other models the spec of
    a derived language, or any name with ``natural``.
    """
    natural: bool = False
    """Whether the other language is not derived from the source language.

    ``pairs`` must then name sentence pairs, unless only ``words`` is run. For the languages of a run it is known.
    """
    model2: ModelName | None = None
    """Model that reads the other language, if that is another model (two monolingual models)."""
    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    """Sentence pairs with links (left: the other language, right: the source language), as in an adjustment.

    None: the pretraining text in both languages, aligned by construction.
    """
    data: ProbeDataConfig = ProbeDataConfig()
    """Choice among the sentence pairs.

    The last ``dev`` before the last ``test`` are measured on, and the last ``sentences`` of the others are there to fit
    on.
    """
    subword: Literal["start", "end", "mean"] = "end"
    """Vector of a word in context: its first (``start``) or last subword (``end``; Cao et al.

    2020), or the ``mean`` of all.
    """
    layers: tuple[int, ...] | None = Field(default=None, min_length=1)
    """Numbers of the layers to read: 0 for the embeddings, 1 … N, and negative ones from the last (None: all)."""
    seed: int = Field(default=0, ge=0)
    """Seed of everything that is drawn."""

    @classmethod
    def table(cls) -> dict[str, type[ProbeSettings]]:
        """Return the settings of every probe by its name."""
        fields = ((name, field.annotation) for name, field in cls.model_fields.items())
        return {name: kind for name, kind in fields if isinstance(kind, type) and issubclass(kind, ProbeSettings)}

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        """Let ``probes`` take the names of the probes of a subclass, by default those that did not come later."""
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
        """Return the layers that are read of a model of ``count`` layers.

        Raises:
            InputError: The model lacks one of them.
        """
        return tuple(range(count + 1)) if self.layers is None else numbered(self.layers, count, "layers")

    def of(self, kind: type[Settings]) -> Settings:
        """Return the settings of a probe by their class."""
        found = next(value for value in vars(self).values() if isinstance(value, kind))
        assert isinstance(found, kind)
        return found

    def chosen(self) -> dict[str, ProbeSettings]:
        """Return the settings of the probes that are run."""
        return {name: getattr(self, name) for name in self.probes}

    def check_installed(self) -> None:
        """Raise InputError if an optional package that a probe needs is missing."""
        for name, settings in self.chosen().items():
            try:
                settings.check_installed()
            except InputError as error:
                raise error.inside(name) from error

    @property
    def reads_sentences(self) -> bool:
        """Whether a probe needs sentence pairs; ``words`` reads embeddings only."""
        return any(settings.reads_sentences for settings in self.chosen().values())

    @property
    def fits(self) -> bool:
        """Whether a probe fits something on sentence pairs that are not measured."""
        return any(settings.fits for settings in self.chosen().values())
