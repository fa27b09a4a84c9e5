"""Which languages a run has, how often each is seen, and what it starts from."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from synthlang.config import StrictModel
from synthlang.files import safe_name
from synthlang.language import PARENT, NamedLanguage
from synthlang.references import ModelName, SourceSpec
from synthlang.vocabularies import ExtendSpec


class LanguageConfig(StrictModel):
    """One language of a run: ``language`` derived from ``source``.

    name      what it is called in metrics and exports (default: the language's name)
    source    default: the source of the run
    language  default: the source's own language, as it is
    """

    name: str = ""
    source: SourceSpec = ""
    language: NamedLanguage = PARENT

    @field_validator("name")
    @classmethod
    def _safe(cls, value: str) -> str:
        return safe_name(value, "language name") if value else value

    @model_validator(mode="after")
    def _has_name(self) -> LanguageConfig:
        if not self.name:
            object.__setattr__(self, "name", self.language.name)
        return self


class ParallelConfig(StrictModel):
    """Sentence pairs of two natural languages, for TLM: sentence n of one source translates sentence n of the other.

    A language derived from the same source has its pairs by construction.
    """

    languages: tuple[str, str]
    sources: tuple[SourceSpec, SourceSpec]

    @field_validator("languages")
    @classmethod
    def _two(cls, value: tuple[str, str]) -> tuple[str, str]:
        if value[0] == value[1]:
            raise ValueError(f"must be two languages, not {value[0]!r} twice")
        return value

    @field_validator("sources")
    @classmethod
    def _keeps_lines(cls, value: tuple[str, str]) -> tuple[str, str]:
        for spec in value:
            if spec.startswith("text:"):
                raise ValueError(f"{spec} cuts lines into sentences; write lines:{spec.removeprefix('text:')}")
        return value


class SamplingConfig(StrictModel):
    """A language is sampled by its share of the sentences, to the power of ``exponent`` (0: all alike; 0.7: XLM)."""

    exponent: float = Field(default=0.0, ge=0.0, le=1.0)


class StartConfig(StrictModel):
    """Go on from a checkpoint in the format of Hugging Face: a name or a folder with model and tokenizer.

    extend   add new subwords of a language to its vocabulary first
    """

    model: ModelName = Field(min_length=1)
    extend: ExtendSpec | None = None
