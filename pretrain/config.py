"""The configuration of a pretraining run: one YAML file, every key checked."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from synthlang.config import StrictModel
from synthlang.dictionary import DictionarySpec
from synthlang.fingerprint import fingerprint
from synthlang.language import Language, parse_language

FORMAT = 1  # raise when training gives other weights for the same config


class VocabularyConfig(StrictModel):
    """The parent's byte-level BPE: at most ``size`` tokens (V)."""

    size: int = Field(default=40_000, ge=261)
    min_frequency: int = Field(default=2, ge=1)


class ModelConfig(StrictModel):
    """RoBERTa's shape; ``init_std`` is the deviation of its random weights (0.02 suits hidden ≥ 512)."""

    layers: int = Field(default=8, ge=1)
    heads: int = Field(default=8, ge=1)
    hidden: int = Field(default=512, ge=1)
    feed_forward: int = Field(default=2048, ge=1)
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    init_std: float = Field(default=0.02, gt=0.0)

    @model_validator(mode="after")
    def _heads_divide(self) -> ModelConfig:
        if self.hidden % self.heads:
            raise ValueError(f"hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        return self


class ObjectiveConfig(StrictModel):
    """What is learned.

    kind          mlm, or align_mlm = MLM − alpha · mean cosine of the dictionary's pairs
    mask_rate     share of positions that are masked slots; of these 80 % become <mask>,
                  10 % a random word, 10 % stay
    random_words  where random words come from: all languages, the same one, or the parent
    alpha         weight of the alignment term (ALIGN-MLM, equation 2)
    """

    kind: Literal["mlm", "align_mlm"] = "mlm"
    mask_rate: float = Field(default=0.15, gt=0.0, lt=1.0)
    random_words: Literal["all", "same-language", "source-only"] = "all"
    alpha: float = Field(default=10.0, ge=0.0)


class BatchConfig(StrictModel):
    """``rows`` rows of ``length`` tokens a step, over all processes and micro-batches."""

    rows: int = Field(default=128, ge=2)
    length: int = Field(default=512, ge=8)
    accumulation: int = Field(default=1, ge=1)


class OptimizerConfig(StrictModel):
    """AdamW with a linear warm-up and a linear decay to zero."""

    learning_rate: float = Field(default=1e-4, gt=0.0)
    warmup_steps: int = Field(default=10_000, ge=0)
    weight_decay: float = Field(default=0.0, ge=0.0)
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    beta2: float = Field(default=0.999, ge=0.0, lt=1.0)
    epsilon: float = Field(default=1e-8, gt=0.0)
    clip: float | None = Field(default=1.0, gt=0.0)


class ValidationConfig(StrictModel):
    """Masked perplexity on ``rows`` rows of each language's dev split, ``every`` steps (0: never)."""

    every: int = Field(default=0, ge=0)
    rows: int = Field(default=128, ge=1)


class PretrainConfig(StrictModel):
    """A bilingual run: a source, a language derived from it, and how to train on both."""

    source: str
    language: Language
    seed: int = Field(default=0, ge=0)
    steps: int = Field(default=500_000, ge=1)
    vocabulary: VocabularyConfig = VocabularyConfig()
    dictionary: DictionarySpec = DictionarySpec()
    model: ModelConfig = ModelConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    batch: BatchConfig = BatchConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    validation: ValidationConfig = ValidationConfig()
    precision: Literal["float32", "bfloat16"] = "float32"
    log_every: int = Field(default=100, ge=1)
    checkpoint_every: int = Field(default=1000, ge=1)
    keep_checkpoints: int = Field(default=2, ge=1)

    @field_validator("language", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return parse_language(value) if isinstance(value, str | dict) else value

    @model_validator(mode="after")
    def _consistent(self) -> PretrainConfig:
        if self.objective.kind == "align_mlm" and self.language.script is None:
            raise ValueError(
                "objective.kind align_mlm needs a transliterated language: its dictionary pairs id and id + V"
            )
        if self.optimizer.warmup_steps >= self.steps:
            raise ValueError(
                f"optimizer.warmup_steps ({self.optimizer.warmup_steps}) must be below steps ({self.steps})"
            )
        return self

    def fingerprint(self, parents: dict[str, str]) -> str:
        """Of all that affects the weights: ``parents`` are the data artifacts trained on."""
        keys = {"seed", "steps", "model", "objective", "batch", "optimizer", "precision"}
        settings = self.model_dump(mode="json", include=keys)
        if self.objective.kind == "mlm":
            settings["objective"].pop("alpha")
        return fingerprint("pretrain", format=FORMAT, settings=settings, parents=parents)
