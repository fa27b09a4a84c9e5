"""The settings that all probes share: models, languages and text. The module does not import torch."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from pretrain.config.model import numbered
from probes.measures.base import ProbeSettings
from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.parallel.pairs import PairConfig
from synthlang.parallel.prepare import DataConfig
from synthlang.references import LanguageSpec, ModelName, OmitDefaultFromHash, omits_default


class ProbeDataConfig(DataConfig):
    """Selection of sentence pairs, as in an adjustment, with a limit on the pairs to fit on."""

    sentences: int | None = Field(default=20_000, ge=1)
    """Maximum number of sentence pairs to fit maps on, from the end of the text (null: all).

    ``retrieval.seen`` and ``cka`` also read these pairs.
    """


Settings = TypeVar("Settings", bound=ProbeSettings)


class InputConfig(StrictModel):
    """Settings of models, languages and text.

    Each field of a subclass whose type is a `ProbeSettings` adds a probe.
    """

    probes: tuple[str, ...] = Field(default=(), min_length=1)
    """Probes to run (default: words, retrieval, maps, cka and distances)."""
    language: LanguageSpec | None = None
    """Language to compare with the source language (null: the first derived or only other language of the run).

    For a run, give the name or specification of one of its languages. For other models, give the specification of a
    derived language, or any name together with ``natural``.
    """
    natural: bool = False
    """True if the other language is a natural language, and not derived from the source language.

    A natural language needs sentence pairs (``pairs``) if a probe reads them. The probes ``words``, ``sentences`` and
    ``minimal_pairs`` do not read sentence pairs. For a run, this key is set automatically. If the run has only one
    other language, ``language`` is set, too.
    """
    model2: ModelName | None = None
    """Second model, which reads the other language. Use it to compare two monolingual models."""
    checkpoints: Annotated[Literal["selected", "all"], OmitDefaultFromHash()] = "selected"
    """Checkpoints to probe: the ``selected`` checkpoint of the run, or ``all`` checkpoints that it keeps.

    In a study, ``all`` has the steps that ``checkpoints.at`` and ``checkpoints.archive`` of the pretraining name, and
    the last step. With ``all``, ``words.checkpoints`` has no effect.
    """
    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    """Sentence pairs with word alignments, as in an adjustment. The left side is the other language.

    The value null selects the pretraining text in both languages, which is aligned by construction.
    """
    data: ProbeDataConfig = ProbeDataConfig()
    """Selection of sentence pairs to measure on and to fit on.

    The last ``test`` pairs are left out. The ``dev`` pairs before the test pairs are measured, and the ``gap`` pairs
    before the dev pairs are left out. Maps are fitted on the last ``sentences`` of the remaining pairs.
    """
    subword: Literal["start", "end", "mean"] = "end"
    """Subword whose vector represents a word: ``start``, ``end`` (as in Cao et al. 2020), or the ``mean`` of all."""
    layers: tuple[int, ...] | None = Field(default=None, min_length=1)
    """Layers to read: 0 for the embeddings, 1 … N, negative numbers from the end (null: all)."""
    seed: int = Field(default=0, ge=0)
    """Seed of all random choices."""

    @classmethod
    def table(cls) -> dict[str, type[ProbeSettings]]:
        """Return the settings class of every probe by the name of the probe."""
        fields = ((name, field.annotation) for name, field in cls.model_fields.items())
        return {name: kind for name, kind in fields if isinstance(kind, type) and issubclass(kind, ProbeSettings)}

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        """Restrict ``probes`` to the probes of a subclass.

        The default leaves out probes that omit their settings from the fingerprint (plugins and later additions).
        """
        super().__pydantic_init_subclass__(**settings)
        names = tuple(cls.table())
        cls.model_fields["probes"].annotation = tuple[Literal[names], ...]  # type: ignore[valid-type]
        cls.model_fields["probes"].default = tuple(name for name in names if not omits_default(cls.model_fields[name]))
        cls.model_rebuild(force=True)

    @model_validator(mode="after")
    def _sound(self) -> InputConfig:
        if self.natural and self.language is None:
            reason = "is required, because natural: true needs a name for the other language"
            hint = "set this key to a language of the run, or for another model to any name, such as de"
            raise InputError(reason, keys="language", hint=hint, code="missing")
        self.check_pairs()
        return self

    def check_pairs(self) -> None:
        """Raise InputError for a natural language without the sentence pairs that a probe needs."""
        if self.natural and self.reads_sentences and not any(self.pairs.values()):
            reading = ", ".join(name for name, settings in self.chosen().items() if settings.reads_sentences)
            reason = f"is required by {reading}, because {self.language} is not derived from the source language"
            others = ", ".join(name for name, kind in self.table().items() if not kind.reads_sentences)
            hint = f"give sentence pairs, or run only probes that read none: {others}"
            raise InputError(reason, keys="pairs", hint=hint, code="missing")

    def numbers(self, count: int) -> tuple[int, ...]:
        """Return the numbers of the layers to read in a model of ``count`` layers, from 0 for the embeddings.

        Raises:
            InputError: The model does not have one of the layers, or a layer is named twice.
        """
        return tuple(range(count + 1)) if self.layers is None else numbered(self.layers, count, "layers")

    def of(self, kind: type[Settings]) -> Settings:
        """Return the settings of the probe whose settings class is ``kind``."""
        found = next(value for value in vars(self).values() if isinstance(value, kind))
        assert isinstance(found, kind)
        return found

    def chosen(self) -> dict[str, ProbeSettings]:
        """Return the settings of the probes to run, by name, in the order of ``probes``."""
        return {name: getattr(self, name) for name in self.probes}

    def check_installed(self) -> None:
        """Raise InputError if an optional package that a probe to run needs is missing."""
        for name, settings in self.chosen().items():
            try:
                settings.check_installed()
            except InputError as error:
                raise error.inside(name) from error

    def check_text(self, text: str | None, other: str | None, natural: bool) -> None:
        """Check the texts that probes read besides the sentence pairs (see ``ProbeSettings.check``).

        Args:
            text: The spec of the pretraining text in the source language, or None if it is not known.
            other: The spec of the pretraining text in a natural other language, or None if there is none.
            natural: True if the other language is natural.

        Raises:
            InputError: A text of a probe to run is not known, cannot be opened, or lacks a split.
        """
        for name, settings in self.chosen().items():
            module, _, function = settings.check.partition(":")
            try:
                if module:
                    getattr(import_module(module), function)(settings, text, other, natural)
            except InputError as error:
                raise error.inside(name) from error

    @property
    def reads_sentences(self) -> bool:
        """True if a probe to run needs sentence pairs."""
        return any(settings.reads_sentences for settings in self.chosen().values())

    @property
    def fits(self) -> bool:
        """True if a probe to run fits a map on sentence pairs outside the measured pairs."""
        return any(settings.fits for settings in self.chosen().values())
