"""How a downstream task is fine-tuned and scored: one YAML file, every key checked."""

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
    """Another natural language: its own sentences. Without ``train`` there is no SUP, and Δ is not known."""

    train: ItemsSpec | None = None
    dev: ItemsSpec | None = None
    test: ItemsSpec


class DevSet(StrictModel):
    """The dev set of a further language, by which a model is chosen, too: its own sentences, or those of the parent,
    derived."""

    language: LanguageSpec
    dev: ItemsSpec | None = None


class FeaturesConfig(StrictModel):
    """What the head reads, and which weights move.

    tune                   ``all``: the body is fine-tuned; ``none``: its states are features that stay as they are
    layers                 whose outputs: 1 … N, 0 for the embeddings, −1 for the last one; several are combined
    combine                ``mean`` of the layers, or all side by side (``concat``)
    freeze_embeddings      word embeddings stay as they are while the body is tuned: else those of the words in the
                           training text move away from their counterparts in another language, which do not move
    freeze_language_parts  what a language has of its own stays as it is (Conneau et al. 2020, section 4.3), so that a
                           head trained through one language's parts is tested through another's
    top_layers             so many new transformer layers between the features and the head (Conneau et al. 2020,
                           section 5.1.2: four on frozen features)
    subword                what stands for a word: its first or last subword, or the mean of all
    """

    tune: Literal["all", "none"] = "all"
    layers: tuple[int, ...] = Field(default=(-1,), min_length=1)
    combine: Literal["mean", "concat"] = "mean"
    freeze_embeddings: bool = False
    freeze_language_parts: bool = True
    top_layers: int = Field(default=0, ge=0)
    subword: Literal["first", "last", "mean"] = "first"


class HeadConfig(StrictModel):
    """What predicts. ``kind`` chooses among the heads for words (ner, pos, slots); other tasks have one head each.

    linear        a linear map of a word's vector
    crf           the same with a linear-chain CRF on top
    bilstm_crf    two BiLSTM layers of ``hidden`` units in each direction, then a CRF (Kulshreshtha et al. 2020)
    pooler        a dense layer and tanh, as wide as the state, below the linear map of ``<s>`` (BERT's pooler, as in
                  Hugging Face's classes; it starts from the checkpoint's, of an adjusted one from that of the model
                  before, and is drawn anew where there is none, as RoBERTa's is there) (nli)
    arc, relation sizes of the biaffine parser (Dozat & Manning 2017)
    answer_words  the longest answer that is given, in words, so that it does not depend on how a language is cut (qa)
    answer_tokens the same in tokens, besides (Devlin et al. 2019, the released script: 30); none: no limit
    """

    smoke: ClassVar[Mapping[str, Any]] = {"hidden": 16, "arc": 16, "relation": 16}

    kind: Literal["linear", "crf", "bilstm_crf"] = "linear"
    pooler: Annotated[bool, OmitDefaultFromHash()] = False
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    hidden: int = Field(default=256, ge=1)
    arc: int = Field(default=500, ge=1)
    relation: int = Field(default=100, ge=1)
    answer_words: int = Field(default=30, ge=1)
    answer_tokens: int | None = Field(default=None, ge=1)


class FineTuneConfig(StrictModel):
    """AdamW; the rate rises linearly over ``warmup_share`` of the steps, then falls to 0 (linear) or stays.

    epoch_items          items of an epoch, which go on through the training set pass after pass (the library of Conneau
                         et al. 2020: 20,000); none: each item once
    head_learning_rate   of the head and of new layers; none: the same
    patience             stop after so many epochs without a better dev score (none: all epochs)
    """

    smoke: ClassVar[Mapping[str, Any]] = {"epochs": 1, "epoch_items": lambda _: None, "patience": lambda _: None}

    epochs: int = Field(default=10, ge=1)
    epoch_items: Annotated[int | None, Field(ge=1), OmitDefaultFromHash()] = None
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


class ContinualConfig(StrictModel):
    """L_target + α · L_align (The Impact of Cross-Lingual Adjustment, equation 2; α = 0.01, 16 pairs a step).

    pairs   sentence pairs with links, as in an adjustment; none: the pretraining text in the derived language and in
            the parent's, aligned by construction
    before  the model that f⁰ of the regularizer is: a run, a folder or a name. None: the original model, as printed
            ("initial values in the 'original' mBERT", equation 1), that is what an adjusted model was adjusted from,
            and of a model that was not adjusted itself. In a study ``cell:model`` is the cell's model before it is
            adjusted and ``cell:adjusted`` that after
    """

    alpha: float = Field(default=0.01, ge=0.0)
    rows: int = Field(default=16, ge=1)
    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    loss: LossConfig = LossConfig(subword="mean", pulled="all")
    data: DataConfig = DataConfig(dev=0)
    before: Annotated[ModelName | None, OmitDefaultFromHash()] = None

    @property
    def has_text(self) -> bool:
        """Whether sentences of the target language itself are named, so that it need not be a derived one."""
        return any(isinstance(pair, TextPair) for pair in self.pairs.values())


class TransferConfig(StrictModel):
    """A task, its data, and how a model is fine-tuned on it (ALIGN-MLM, appendix H, for the defaults).

    language           what is transferred to: the name of one of the run's languages (none: the first derived one); for
                       other models the spec of a derived one
    train, dev, test   sources of the parent's labelled sentences (none: the text that the run was trained on). Without
                       ``dev`` it is the dev split of ``train``, or one item in ten of it; without ``test`` the test
                       split of ``train``. A source with several splits gives the one of that name; ``SOURCE#dev``
                       chooses another one
    target             the sentences of another natural language; none: those of the parent, derived
    mixed              pair tasks are also tested with one text in the target language and the other in the parent's:
                       all items with each text in turn (``true``), or each item once, with a text that is drawn at
                       random (``random``; Impact, section 4.2); with a ``target`` its test set has to be the
                       translation of the parent's, item for item
    chosen_by          the dev sets by whose score the epoch and the settings of a model that is trained on the parent
                       are chosen: the parent's (``source``), the ``target`` language's (Kulshreshtha et al. 2020,
                       section 4.2), or the ``mean`` of the scores on both and on those of ``dev_also`` (Cao et al.
                       2020, section 3.5). SUP is always chosen by the dev set of its own language
    dev_also           with ``chosen_by: mean`` the dev sets of further languages; one that is the parent's or the
                       target's own counts once
    tested_on          ``test``; ``dev``: the scores are those of the dev sets, not of the test sets (Kulshreshtha et
                       al. 2020, section 4.2); ``both``: beside ``parent``, ``zs`` and ``sup`` there are ``parent dev``,
                       ``zs dev`` and ``sup dev``. Items in two languages (``mixed``) are always those of the test sets
    sup                whether a model is trained on the target language, too, where there is something to train on;
                       without one there is neither SUP nor Δ, and a transfer takes half the time
    parser             an engine such as ``spacy:NAME`` that gives the sentences trees, for languages that need them
    train_items …      at most so many of each split, the first ones of the file (none: all)
    length             longest row in tokens, sentence tokens included (none: what the model reads); words beyond it are
                       not predicted and count as errors; ``stride`` tokens of a paragraph come again in its next window
                       (qa)
    search             dotted key → values: every combination is fine-tuned, those best by ``chosen_by`` are kept
                       (``best`` of them; scores are means over them, as in Conneau et al. 2020, section 3.2)
    target_model       the model that reads the target language, on frozen features, when it is another one
    """

    smoke: ClassVar[Mapping[str, Any]] = {
        "train_items": 64,
        "dev_items": 32,
        "test_items": 32,
        "search": lambda config: {key: values[:1] for key, values in config.search.items()},
        "best": 1,
    }

    task: TaskName = "pos"
    language: LanguageSpec | None = None
    train: ItemsSpec | None = None
    dev: ItemsSpec | None = None
    test: ItemsSpec | None = None
    target: TargetData | None = None
    mixed: bool | Literal["random"] = False
    chosen_by: Annotated[Literal["source", "target", "mean"], OmitDefaultFromHash()] = "source"
    dev_also: Annotated[tuple[DevSet, ...], OmitDefaultFromHash()] = ()
    tested_on: Annotated[Literal["test", "dev", "both"], OmitDefaultFromHash()] = "test"
    sup: Annotated[bool, OmitDefaultFromHash()] = True
    parser: ParserSpec | None = None
    train_items: int | None = Field(default=None, ge=1)
    dev_items: int | None = Field(default=None, ge=1)
    test_items: int | None = Field(default=None, ge=1)
    length: int | None = Field(default=None, ge=8)
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
    def aligning(self) -> ContinualConfig | None:
        """``continual``, where its loss has a weight."""
        return self.continual if self.continual is not None and self.continual.alpha else None

    @property
    def of_source(self) -> TransferConfig:
        """The same without what the fit on the source language, and its dev score, do not depend on.

        Of the target language that is all but, with continual learning, which one it is.
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
        """The same without what the fit on a language, and its dev score, do not depend on, so that transfers that need
        the same fit have it in common."""
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
        """The keys that differ from their defaults and mean nothing for the task."""
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
                raise ValueError(f"{key!r} must be a dotted key with a list of values, as in {{{key}.NAME: [1, 2]}}")
            if str(key).split(".")[0] not in ("fine_tune", "head", "features"):
                raise ValueError(f"{key!r} must be a key of fine_tune, head or features")
            if values == []:
                raise ValueError(f"{key!r} has no values")
        return value

    @model_validator(mode="after")
    def _sound(self) -> TransferConfig:
        frozen, pairs = self.features.tune == "none", [name for name, task in TASKS.items() if task.pairs]
        no_dev = self.target is not None and self.target.dev is None and self.target.train is None
        wrong = {
            "target_model needs features that stay as they are: features.tune none": self.target_model and not frozen,
            "continual learning moves the body: features.tune must be all": self.continual and frozen,
            f"mixed is for tasks of pairs: {' and '.join(pairs)}": self.mixed and self.task not in pairs,
            "mixed needs one model that reads both texts: leave target_model out": self.mixed and self.target_model,
            "mixed rows have both languages, and a rotation moves the states of one: leave one out": (
                self.mixed and self.rotation
            ),
            f"chosen_by {self.chosen_by} needs target.dev, the target language's own dev set": (
                self.chosen_by != "source" and no_dev
            ),
            f"tested_on {self.tested_on} needs target.dev, the target language's own dev set": (
                self.tested_on != "test" and no_dev
            ),
            "dev_also has no effect unless chosen_by is mean": self.dev_also and self.chosen_by != "mean",
            "dev_also needs one model that reads every language as it is: leave target_model and rotation out": (
                self.dev_also and (self.target_model is not None or self.rotation is not None)
            ),
        }
        for message, is_wrong in wrong.items():
            if is_wrong:
                raise ValueError(message)
        return self


def combinations(config: TransferConfig) -> list[tuple[str, TransferConfig]]:
    """(label, settings) of every combination of the values in ``search``, the last key changing fastest.

    Equal ones come once. Without a search the settings as they are, under the label "". InputError names a key or value
    that is not allowed.
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
            raise InputError(f"search: {label}: {error}") from error
    return list(found.items())


def check_tried(config: TransferConfig, counts: Iterable[int]) -> None:
    """Raise InputError for what no combination can be, and for a layer that a model does not have.

    ``counts`` are the numbers of layers of the models that read.
    """
    tried = combinations(config)
    if config.best > len(tried):
        raise InputError(f"best {config.best}: the search has {len(tried)} combination{'s' * (len(tried) != 1)}")
    also = () if config.continual is None else config.continual.loss.layers
    for count in counts:
        for _, settings in tried:
            numbered(settings.features.layers, count, "features.layers")
        numbered(also, count, "continual.loss.layers")
