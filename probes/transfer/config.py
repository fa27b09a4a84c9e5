"""Settings of a transfer: the task, its data, fine-tuning and scoring."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from functools import reduce
from itertools import product
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pretrain.adjust.config import LossConfig
from pretrain.config.model import numbered
from probes.rotation.settings import RotationConfig
from probes.transfer.tasks.table import TASKS
from synthlang.catalogue import merged
from synthlang.config import StrictModel, assigned, parse
from synthlang.errors import InputError
from synthlang.fingerprint import canonical_json
from synthlang.parallel.pairs import PairConfig, TextPair
from synthlang.parallel.prepare import DataConfig
from synthlang.references import ItemsSpec, LanguageSpec, ModelName, OmitDefaultFromHash, ParserSpec

FORMAT = 5  # raise when the same settings give other scores


def _known_task(name: str) -> str:
    if name not in TASKS:
        *first, last = (repr(known) for known in TASKS)
        raise PydanticCustomError("literal_error", f"Input should be {', '.join(first)} or {last}")
    return name


TaskName = Annotated[str, AfterValidator(_known_task), WithJsonSchema({"enum": list(TASKS), "type": "string"})]


class TargetData(StrictModel):
    """Labelled sentences of another natural language."""

    train: ItemsSpec | None = None
    """The training set. Without it there is neither SUP nor Δ."""
    dev: ItemsSpec | None = None
    """The dev set (default: the dev split of ``train``)."""
    test: ItemsSpec
    """The test set."""


class DevSet(StrictModel):
    """The dev set of a further language that takes part in the choice of a model."""

    language: LanguageSpec
    """The language, by its name in the run or by a spec."""
    dev: ItemsSpec | None = None
    """Its own labelled sentences (default: the source language's dev set, derived)."""


class FeaturesConfig(StrictModel):
    """The input of the head and the weights that move."""

    tune: Literal["all", "none"] = "all"
    """``all`` fine-tunes the body; ``none`` keeps its states as fixed features."""
    layers: tuple[int, ...] = Field(default=(-1,), min_length=1)
    """The layers whose outputs are read: 1 … N, 0 for the embeddings, −1 for the last layer."""
    combine: Literal["mean", "concat"] = "mean"
    """How several layers are combined: by their mean or side by side."""
    freeze_embeddings: bool = False
    """Keep the word embeddings fixed while the body is tuned. Otherwise the embeddings of words in the training text
    move away from their translations, which do not move."""
    freeze_language_parts: bool = True
    """Keep the parts that belong to one language fixed (Conneau et al. 2020, section 4.3), so that a head trained
    through the parts of one language can be tested through those of another."""
    top_layers: int = Field(default=0, ge=0)
    """The number of new transformer layers between the features and the head (Conneau et al. 2020, section 5.1.2, puts
    four on frozen features)."""
    subword: Literal["first", "last", "mean"] = "first"
    """The vector of a word: that of its first subword, of its last subword, or the mean of all."""


class HeadConfig(StrictModel):
    """The part that predicts. ``kind`` chooses a head for words (ner, pos, slots); other tasks have one head each."""

    smoke: ClassVar[Mapping[str, Any]] = {"hidden": 16, "arc": 16, "relation": 16}

    kind: Literal["linear", "crf", "bilstm_crf"] = "linear"
    """``linear`` is a linear map of a word's vector, ``crf`` adds a linear-chain CRF, and ``bilstm_crf`` puts two
    BiLSTM layers below the CRF (Kulshreshtha et al. 2020)."""
    pooler: Annotated[bool, OmitDefaultFromHash()] = False
    """Put a dense layer and tanh, as wide as the state, below the linear map of ``<s>`` (nli). It is BERT's pooler and
    starts from the checkpoint's; an adjusted model takes that of the model before. Where a checkpoint has none, as
    RoBERTa's, the weights are drawn anew."""
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    """The dropout below the head."""
    hidden: int = Field(default=256, ge=1)
    """The units of each BiLSTM layer in each direction."""
    arc: int = Field(default=500, ge=1)
    """The size of the arc vectors of the biaffine parser (Dozat & Manning 2017)."""
    relation: int = Field(default=100, ge=1)
    """The size of its relation vectors."""
    answer_words: int = Field(default=30, ge=1)
    """The longest answer in words (qa). A limit in words does not depend on how a language is cut into tokens."""
    answer_tokens: int | None = Field(default=None, ge=1)
    """A further limit in tokens (the released script of Devlin et al. 2019 has 30; default: none)."""


class FineTuneConfig(StrictModel):
    """The optimizer (AdamW) and the length of fine-tuning.

    The rate rises linearly over ``warmup_share`` of the steps. Then it falls to 0 or stays, by ``schedule``.
    """

    smoke: ClassVar[Mapping[str, Any]] = {"epochs": 1, "epoch_items": lambda _: None, "patience": lambda _: None}

    epochs: int = Field(default=10, ge=1)
    """The number of epochs. The model keeps the weights of the epoch that is best on the dev set."""
    epoch_items: Annotated[int | None, Field(ge=1), OmitDefaultFromHash()] = None
    """The items of an epoch, which continue through the training set pass after pass (the library of Conneau et al.
    2020: 20,000; default: each item once)."""
    rows: int = Field(default=32, ge=1)
    """The rows of a step."""
    learning_rate: float = Field(default=2e-5, gt=0.0)
    """The peak learning rate of the body."""
    head_learning_rate: float | None = Field(default=None, gt=0.0)
    """The peak learning rate of the head and of new layers (default: that of the body)."""
    schedule: Literal["linear", "constant"] = "linear"
    """The rate after the warm-up: a linear fall to 0, or a constant."""
    warmup_share: float = Field(default=0.1, ge=0.0, lt=1.0)
    """The share of the steps over which the rate rises."""
    weight_decay: float = Field(default=0.0, ge=0.0)
    """The weight decay of matrices."""
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """AdamW's β₁."""
    beta2: float = Field(default=0.999, ge=0.0, lt=1.0)
    """AdamW's β₂."""
    epsilon: float = Field(default=1e-8, gt=0.0)
    """AdamW's ε."""
    clip: float | None = Field(default=1.0, gt=0.0)
    """The largest norm of the gradient (none: no limit)."""
    patience: int | None = Field(default=None, ge=1)
    """Stop after this number of epochs without a better dev score (default: run all epochs)."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """The precision of the body's arithmetic. The head computes in float32."""


class ScoreConfig(StrictModel):
    """Rules of scoring."""

    metric: str | None = None
    """The metric that chooses epochs and settings and that Δ is computed from (default: the usual one of the task)."""
    repair: Literal["none", "final-type"] = "none"
    """Repair of predicted BIO tags. ``none`` is strict: an I tag that continues nothing is no mention. ``final-type``
    turns a standalone I-X into B-X, and B-X I-Y I-Z into B-Z I-Z I-Z (Conneau et al. 2020, section 3.2)."""
    punctuation: bool = True
    """Count words whose gold tag is PUNCT in the parser's main score, as CoNLL 2018 does."""
    answers: str = Field(default="squad", pattern=r"^(squad|mlqa-[a-z]{2})$")
    """The normalisation of answers before they are compared: ``squad``, or MLQA's rules, ``mlqa-xx``."""


class ContinualConfig(StrictModel):
    """Continual learning: L_target + α · L_align (The Impact of Cross-Lingual Adjustment, equation 2)."""

    alpha: float = Field(default=0.01, ge=0.0)
    """The weight α of the alignment loss. 0 turns it off."""
    rows: int = Field(default=16, ge=1)
    """The sentence pairs of a step."""
    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    """Sentence pairs with word alignments, as in an adjustment (default: the pretraining text in the derived language
    and in the source language, which are aligned by construction)."""
    loss: LossConfig = LossConfig(subword="mean", pulled="all")
    """The alignment loss."""
    data: DataConfig = DataConfig(dev=0)
    """The filters of the sentence pairs."""
    before: Annotated[ModelName | None, OmitDefaultFromHash()] = None
    """The model f⁰ of the regularizer: a run, a folder or a name. The default is the original model, as printed
    ("initial values in the 'original' mBERT", equation 1): for an adjusted model the one it was adjusted from, else
    the model itself. In a study ``cell:model`` is the model of the cell before its adjustment and ``cell:adjusted``
    the one after."""

    @property
    def has_text(self) -> bool:
        """Whether the config names sentences of the target language, so that it need not be a derived one."""
        return any(isinstance(pair, TextPair) for pair in self.pairs.values())


class TransferConfig(StrictModel):
    """A task, its data, and how a model is fine-tuned on it. The defaults are those of ALIGN-MLM, appendix H."""

    smoke: ClassVar[Mapping[str, Any]] = {
        "train_items": 64,
        "dev_items": 32,
        "test_items": 32,
        "search": lambda config: {key: values[:1] for key, values in config.search.items()},
        "best": 1,
    }

    task: TaskName = "pos"
    """The downstream task."""
    language: LanguageSpec | None = None
    """The target language: the name of one of the run's languages (default: the first derived one), or for other models
    the spec of a derived language."""
    train: ItemsSpec | None = None
    """The training set of the source language (default: the text that the run was trained on). ``SOURCE#dev`` chooses
    another split of a source."""
    dev: ItemsSpec | None = None
    """The dev set of the source language (default: the dev split of ``train``, or one item in ten of it)."""
    test: ItemsSpec | None = None
    """The test set of the source language (default: the test split of ``train``)."""
    target: TargetData | None = None
    """Labelled sentences of another natural language (default: those of the source language, derived)."""
    mixed: bool | Literal["random"] = False
    """Test pair tasks also with one text in the target language and the other in the source language. ``true`` tests
    all items with each text in turn; ``random`` tests each item once with a text drawn at random (Impact, section
    4.2). With a ``target``, its test set must be the translation of the source's, item for item."""
    chosen_by: Annotated[Literal["source", "target", "mean"], OmitDefaultFromHash()] = "source"
    """The dev sets that choose the epoch and the settings of a model trained on the source language: its own
    (``source``), that of the ``target`` language (Kulshreshtha et al. 2020, section 4.2), or the ``mean`` of both
    and of ``dev_also`` (Cao et al. 2020, section 3.5). SUP is always chosen by the dev set of its own language."""
    dev_also: Annotated[tuple[DevSet, ...], OmitDefaultFromHash()] = ()
    """Dev sets of further languages for ``chosen_by: mean``. A set that is the source's or the target's own counts
    once."""
    tested_on: Annotated[Literal["test", "dev", "both"], OmitDefaultFromHash()] = "test"
    """The sets of the scores: ``test``, ``dev`` in their place (Kulshreshtha et al. 2020, section 4.2), or ``both``,
    which adds ``parent dev``, ``zs dev`` and ``sup dev``. Items in two languages (``mixed``) always come from the
    test sets."""
    sup: Annotated[bool, OmitDefaultFromHash()] = True
    """Train a model on the target language too, where training items exist. Without it there is neither SUP nor Δ, and
    a transfer takes half the time."""
    parser: ParserSpec | None = None
    """A parser such as ``spacy:NAME`` that adds trees to the sentences, for languages that need them."""
    train_items: int | None = Field(default=None, ge=1)
    """The number of training items, the first ones of the file (default: all)."""
    dev_items: int | None = Field(default=None, ge=1)
    """The number of dev items (default: all)."""
    test_items: int | None = Field(default=None, ge=1)
    """The number of test items (default: all)."""
    length: int | None = Field(default=None, ge=8)
    """The longest row in tokens, with its special tokens (default: the length that the model reads). Words beyond it
    are not predicted and count as errors."""
    stride: int = Field(default=64, ge=0)
    """The tokens of a paragraph that its next window repeats (qa)."""
    features: FeaturesConfig = FeaturesConfig()
    """The input of the head and the weights that move."""
    head: HeadConfig = HeadConfig()
    """The part that predicts."""
    fine_tune: FineTuneConfig = FineTuneConfig()
    """The optimizer and the length of fine-tuning."""
    score: ScoreConfig = ScoreConfig()
    """The rules of scoring."""
    search: dict[str, list[Any]] = Field(default_factory=dict)
    """Dotted key → values. Every combination is fine-tuned, and ``chosen_by`` ranks them."""
    best: int = Field(default=1, ge=1)
    """The number of combinations that are kept. Scores are means over them (Conneau et al. 2020, section 3.2)."""
    continual: ContinualConfig | None = None
    """Continual learning beside the task (default: none)."""
    rotation: RotationConfig | None = None
    """A rotation of the features of one language (default: none)."""
    target_model: ModelName | None = None
    """Another model that reads the target language, on frozen features (default: none)."""

    @property
    def aligning(self) -> ContinualConfig | None:
        """``continual``, where its loss has a weight."""
        return self.continual if self.continual is not None and self.continual.alpha else None

    @property
    def of_source(self) -> TransferConfig:
        """The settings without everything that the fit on the source language and its dev score do not depend on.

        Of the target language only its identity stays, and only with continual learning.
        """
        unread: dict[str, Any] = {
            "target": None,
            "test": None,
            "test_items": None,
            "mixed": False,
            "continual": self.aligning,
            "tested_on": "test",
            "sup": True,
        }
        return self.model_copy(update=unread | ({"language": None} if self.aligning is None else {}))

    def of_fit(self, trained: Literal["source", "target"]) -> TransferConfig:
        """Return the settings without everything that the fit on one language and its dev score do not depend on.

        Transfers with equal results of this function share the fit.
        """
        rotation = self.rotation
        if rotation is not None and (rotation.map or rotation.normalise or rotation.moves == trained):
            return self
        plain = self.model_copy(update={"rotation": None})
        if trained == "source":
            return plain.of_source if self.chosen_by == "source" else plain
        unread = {"test": None, "test_items": None, "mixed": False, "tested_on": "test", "chosen_by": "source"}
        return plain.model_copy(update={**unread, "dev_also": (), "continual": self.aligning})

    @property
    def idle(self) -> list[str]:
        """The keys that differ from their defaults and have no effect on the task."""
        plain, used = TransferConfig(), set(TASKS[self.task].settings)
        if self.rotation is not None:
            used.add("features.subword")  # a rotation is fitted on words, whatever the task
        others = sorted({key for entry in TASKS.values() for key in entry.settings} - used)
        values = {key: operator.attrgetter(key) for key in others}
        return [key for key, value in values.items() if value(self) != value(plain)]

    @field_validator("search", mode="before")
    @classmethod
    def _dotted(cls, value: Any) -> Any:
        for key, values in value.items() if isinstance(value, dict) else ():
            if isinstance(values, dict):
                hint = f"write a dotted key with a list of values, as in {{{key}.NAME: [1, 2]}}"
                raise InputError("is a section of keys", keys=[str(key)], hint=hint, code="type")
            if str(key).split(".")[0] not in ("fine_tune", "head", "features"):
                raise InputError("is no key of fine_tune, head or features", keys=[str(key)], code="unknown")
            if values == []:
                raise InputError("has no values", keys=[str(key)], code="empty")
        return value

    @model_validator(mode="after")
    def _sound(self) -> TransferConfig:
        """Check the rules about several keys."""
        frozen, pairs = self.features.tune == "none", [name for name, task in TASKS.items() if task.pairs]
        no_dev = self.target is not None and self.target.dev is None and self.target.train is None
        wrong = {
            ("target_model", "needs features that stay as they are", "set features.tune to none"): (
                self.target_model and not frozen
            ),
            ("continual", "moves the body, and features.tune is none", "set features.tune to all"): (
                self.continual and frozen
            ),
            ("mixed", "is for tasks of pairs", f"use it with {' or '.join(pairs)}"): (
                self.mixed and self.task not in pairs
            ),
            ("mixed", "needs one model that reads both texts", "leave target_model out"): (
                self.mixed and self.target_model
            ),
            ("mixed", "puts both languages in a row, and a rotation moves the states of one", "leave one out"): (
                self.mixed and self.rotation
            ),
            ("chosen_by", f"{self.chosen_by} needs the target language's own dev set", "name target.dev"): (
                self.chosen_by != "source" and no_dev
            ),
            ("tested_on", f"{self.tested_on} needs the target language's own dev set", "name target.dev"): (
                self.tested_on != "test" and no_dev
            ),
            ("dev_also", "has no effect unless chosen_by is mean", "set chosen_by to mean"): (
                self.dev_also and self.chosen_by != "mean"
            ),
            (
                "dev_also",
                "needs one model that reads every language as it is",
                "leave target_model and rotation out",
            ): self.dev_also and (self.target_model is not None or self.rotation is not None),
        }
        for (key, reason, hint), is_wrong in wrong.items():
            if is_wrong:
                raise InputError(reason, keys=key, hint=hint, code="conflict")
        return self


def combinations(config: TransferConfig) -> list[tuple[str, TransferConfig]]:
    """Return label and settings of every combination of the values in ``search``, the last key changing fastest.

    Equal combinations come once. Without a search the settings stand alone, under the label "".

    Raises:
        InputError: A key or a value of the search is not allowed.
    """
    base = config.model_dump(mode="json", round_trip=True) | {"search": {}}
    found: dict[str, TransferConfig] = {}
    for values in product(*config.search.values()):
        chosen = dict(zip(config.search, values, strict=True))
        shown = {key: value if isinstance(value, str) else canonical_json(value) for key, value in chosen.items()}
        label = " ".join(f"{key}={text}" for key, text in shown.items())
        changes = [assigned({}, key.split("."), value) for key, value in chosen.items()]
        try:
            found.setdefault(label, parse(TransferConfig, reduce(merged, changes, base)))
        except InputError as error:
            raise error.inside("search") from error
    return list(found.items())


def check_tried(config: TransferConfig, counts: Iterable[int]) -> None:
    """Check every combination of the search, and its layers against the models.

    Args:
        config: The settings.
        counts: The number of layers of each model that reads.

    Raises:
        InputError: No combination can be made, ``best`` exceeds their number, or a model lacks a layer.
    """
    tried = combinations(config)
    if config.best > len(tried):
        reason = f"{config.best} exceeds the {len(tried)} combination{'s' * (len(tried) != 1)} of the search"
        raise InputError(reason, keys="best", code="range")
    also = () if config.continual is None else config.continual.loss.layers
    for count in counts:
        for _, settings in tried:
            numbered(settings.features.layers, count, "features.layers")
        numbered(also, count, "continual.loss.layers")
