"""How a downstream task is fine-tuned and scored: one YAML file, every key checked."""

from __future__ import annotations

import operator
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from probes.rotation.settings import RotationConfig
from probes.transfer.continual_config import ContinualConfig
from synthlang.config import StrictModel
from synthlang.references import ItemsSpec, LanguageSpec, ModelName, ParserSpec

OF_TASKS = {
    "stride": ("qa",),
    "features.subword": ("ner", "pos", "slots", "parsing"),
    "head.kind": ("ner", "pos", "slots"),
    "head.hidden": ("ner", "pos", "slots"),
    "head.arc": ("parsing",),
    "head.relation": ("parsing",),
    "head.answer_words": ("qa",),
    "head.answer_tokens": ("qa",),
    "score.repair": ("ner", "slots"),
    "score.punctuation": ("parsing",),
    "score.answers": ("qa",),
}  # settings that not all tasks have
FORMAT = 5  # raise when the same settings give other scores

TaskName = Literal["nli", "ner", "pos", "parsing", "slots", "qa"]


class TargetData(StrictModel):
    """Another natural language: its own sentences. Without ``train`` there is no SUP, and Δ is not known."""

    train: ItemsSpec | None = None
    dev: ItemsSpec | None = None
    test: ItemsSpec


class FeaturesConfig(StrictModel):
    """What the head reads, and which weights move.

    tune                   ``all``: the body is fine-tuned; ``none``: its states are features that stay as they are
    layers                 whose outputs: 1 … N, 0 for the embeddings, −1 for the last one; several are combined
    combine                ``mean`` of the layers, or all side by side (``concat``)
    freeze_language_parts  what a language has of its own stays as it is (Conneau et al. 2020, section 4.3), so that a
                           head trained through one language's parts is tested through another's
    top_layers             so many new transformer layers between the features and the head (Conneau et al. 2020,
                           section 5.1.2: four on frozen features)
    subword                what stands for a word: its first or last subword, or the mean of all
    """

    tune: Literal["all", "none"] = "all"
    layers: tuple[int, ...] = Field(default=(-1,), min_length=1)
    combine: Literal["mean", "concat"] = "mean"
    freeze_language_parts: bool = True
    top_layers: int = Field(default=0, ge=0)
    subword: Literal["first", "last", "mean"] = "first"


class HeadConfig(StrictModel):
    """What predicts. ``kind`` chooses among the heads for words (ner, pos, slots); other tasks have one head each.

    linear        a linear map of a word's vector
    crf           the same with a linear-chain CRF on top
    bilstm_crf    two BiLSTM layers of ``hidden`` units in each direction, then a CRF (Kulshreshtha et al. 2020)
    arc, relation sizes of the biaffine parser (Dozat & Manning 2017)
    answer_words  the longest answer that is given, in words, so that it does not depend on how a language is cut (qa)
    answer_tokens the same in tokens, besides (Devlin et al. 2019, the released script: 30); none: no limit
    """

    kind: Literal["linear", "crf", "bilstm_crf"] = "linear"
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    hidden: int = Field(default=256, ge=1)
    arc: int = Field(default=500, ge=1)
    relation: int = Field(default=100, ge=1)
    answer_words: int = Field(default=30, ge=1)
    answer_tokens: int | None = Field(default=None, ge=1)


class FineTuneConfig(StrictModel):
    """AdamW; the rate rises linearly over ``warmup_share`` of the steps, then falls to 0 (linear) or stays.

    head_learning_rate   of the head and of new layers; none: the same
    patience             stop after so many epochs without a better dev score (none: all epochs)
    """

    epochs: int = Field(default=10, ge=1)
    rows: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=2e-5, gt=0.0)
    head_learning_rate: float | None = Field(default=None, gt=0.0)
    schedule: Literal["linear", "constant"] = "linear"
    warmup_share: float = Field(default=0.1, ge=0.0, lt=1.0)
    weight_decay: float = Field(default=0.0, ge=0.0)
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    beta2: float = Field(default=0.999, ge=0.0, lt=1.0)
    epsilon: float = Field(default=1e-8, gt=0.0)
    clip: float | None = Field(default=1.0, gt=0.0)
    patience: int | None = Field(default=None, ge=1)
    precision: Literal["float32", "bfloat16"] = "float32"


class ScoreConfig(StrictModel):
    """Rules of the scores.

    metric        the one that epochs and settings are chosen by and Δ is of; none: the task's usual one
    repair        of predicted BIO tags: ``none`` (strict: an I that continues nothing is no mention) or ``final-type``
                  (Conneau et al. 2020, section 3.2: standalone I-X becomes B-X, and B-X I-Y I-Z becomes B-Z I-Z I-Z)
    punctuation   whether the parser's main score counts words whose gold upos is PUNCT (CoNLL 2018 does)
    answers       normalisation of answers before they are compared: ``squad``, or ``mlqa-xx`` for the rules of MLQA
                  in the language xx
    """

    metric: str | None = None
    repair: Literal["none", "final-type"] = "none"
    punctuation: bool = True
    answers: str = Field(default="squad", pattern=r"^(squad|mlqa-[a-z]{2})$")


class TransferConfig(StrictModel):
    """A task, its data, and how a model is fine-tuned on it (ALIGN-MLM, appendix H, for the defaults).

    language           what is transferred to: the name of one of the run's languages (none: the first derived one); for
                       other models the spec of a derived one
    train, dev, test   sources of the parent's labelled sentences (none: the text that the run was trained on). Without
                       ``dev`` it is the dev split of ``train``, or one item in ten of it; without ``test`` the test
                       split of ``train``. A source with several splits gives the one of that name; ``SOURCE#dev``
                       chooses another one
    target             the sentences of another natural language; none: those of the parent, derived
    mixed              pair tasks are also tested with one text in the target language and the other in the parent's;
                       with a ``target`` its test set has to be the translation of the parent's, item for item
    parser             an engine such as ``spacy:NAME`` that gives the sentences trees, for languages that need them
    train_items …      at most so many of each split, the first ones of the file (none: all)
    length             longest row in tokens, sentence tokens included; words beyond it are not predicted and count as
                       errors; ``stride`` tokens of a paragraph come again in its next window (qa)
    search             dotted key → values: every combination is fine-tuned, those best on the source's dev set are kept
                       (``best`` of them; scores are means over them, as in Conneau et al. 2020, section 3.2)
    target_model       the model that reads the target language, on frozen features, when it is another one
    """

    task: TaskName = "pos"
    language: LanguageSpec | None = None
    train: ItemsSpec | None = None
    dev: ItemsSpec | None = None
    test: ItemsSpec | None = None
    target: TargetData | None = None
    mixed: bool = False
    parser: ParserSpec | None = None
    train_items: int | None = Field(default=None, ge=1)
    dev_items: int | None = Field(default=None, ge=1)
    test_items: int | None = Field(default=None, ge=1)
    length: int = Field(default=128, ge=8)
    stride: int = Field(default=64, ge=0)
    features: FeaturesConfig = FeaturesConfig()
    head: HeadConfig = HeadConfig()
    fine_tune: FineTuneConfig = FineTuneConfig()
    score: ScoreConfig = ScoreConfig()
    search: dict[str, list[Any]] = Field(default_factory=dict)
    best: int = Field(default=1, ge=1)
    continual: ContinualConfig | None = None
    rotation: RotationConfig | None = None
    target_model: ModelName | None = None

    @property
    def of_source(self) -> TransferConfig:
        """The same without what the fit on the source language, and its dev score, do not depend on.

        Of the target language that is all but, with continual learning, which one it is.
        """
        continual = self.continual if self.continual is not None and self.continual.alpha else None
        changes: dict[str, Any] = {"target": None, "test": None, "test_items": None, "mixed": False}
        changes |= {"continual": continual} | ({"language": None} if continual is None else {})
        return self.model_copy(update=changes)

    @property
    def idle(self) -> list[str]:
        """The keys that differ from their defaults and mean nothing for the task."""
        found, plain = [], TransferConfig()
        for key, tasks in OF_TASKS.items():
            mine, usual = (operator.attrgetter(key)(held) for held in (self, plain))
            if key == "features.subword" and self.rotation is not None:
                continue  # a rotation is fitted on words, whatever the task
            if self.task not in tasks and mine != usual:
                found.append(key)
        return found

    @field_validator("search", mode="before")
    @classmethod
    def _dotted(cls, value: Any) -> Any:
        for key, values in value.items() if isinstance(value, dict) else ():
            if isinstance(values, dict):
                raise ValueError(f"{key!r} must be a dotted key with a list of values, as in {{{key}.NAME: [1, 2]}}")
        return value

    @field_validator("search")
    @classmethod
    def _known(cls, value: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for key, values in value.items():
            if key.split(".")[0] not in ("fine_tune", "head", "features"):
                raise ValueError(f"{key!r} must be a key of fine_tune, head or features")
            if not values:
                raise ValueError(f"{key!r} has no values")
        return value

    @model_validator(mode="after")
    def _sound(self) -> TransferConfig:
        frozen = self.features.tune == "none"
        if not frozen and self.target_model:
            raise ValueError("target_model needs features that stay as they are: features.tune none")
        if frozen and self.continual:
            raise ValueError("continual learning moves the body: features.tune must be all")
        if self.mixed and self.task not in ("nli", "qa"):
            raise ValueError("mixed is for tasks of pairs: nli and qa")
        if self.mixed and self.target_model is not None:
            raise ValueError("mixed needs one model that reads both texts: leave target_model out")
        if self.mixed and self.rotation is not None:
            raise ValueError("mixed rows have both languages, and a rotation moves the states of one: leave one out")
        return self
