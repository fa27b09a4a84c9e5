"""Settings of a transfer: the task, its data, fine-tuning and scoring."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pretrain.adjust.config import LossConfig
from pretrain.config.model import numbered
from probes.rotation.settings import RotationConfig
from probes.transfer.tasks.table import TASKS
from synthlang.catalogue import merged
from synthlang.config import StrictModel, assigned, parse
from synthlang.errors import Code, InputError
from synthlang.fingerprint import canonical_json
from synthlang.language import NamedLanguage
from synthlang.parallel.pairs import PairConfig, TextPair
from synthlang.parallel.prepare import DataConfig
from synthlang.references import ItemsSpec, LanguageSpec, ModelName, OmitDefaultFromHash, ParserSpec
from synthlang.wording import plural

FORMAT = 5  # raise when the same settings give other scores
SEARCHED = ("fine_tune", "head", "features")
"""Sections whose keys a search may have."""


class _Rule(NamedTuple):
    """A rule that involves several keys: true if the settings break it, and the error then."""

    is_broken: object
    key: str
    reason: str
    hint: str
    code: Code = "conflict"


def _check(rules: Iterable[_Rule]) -> None:
    for rule in rules:
        if rule.is_broken:
            raise InputError(rule.reason, keys=rule.key, hint=rule.hint, code=rule.code)


def _known_task(name: str) -> str:
    if name not in TASKS:
        *first, last = (repr(known) for known in TASKS)
        raise PydanticCustomError("literal_error", f"Input should be {', '.join(first)} or {last}")
    return name


TaskName = Annotated[str, AfterValidator(_known_task), WithJsonSchema({"enum": list(TASKS), "type": "string"})]


class TargetData(StrictModel):
    """Labelled sentences of a natural target language."""

    train: ItemsSpec | None = None
    """Training set of the target language (default: none, and then neither SUP nor Δ is measured)."""
    dev: ItemsSpec | None = None
    """Dev set of the target language (default: the dev split of ``train``, or one tenth of its items)."""
    test: ItemsSpec
    """Test set of the target language."""


class DevSet(StrictModel):
    """The dev set of an additional language for model selection."""

    language: LanguageSpec
    """Language: its name in the run, or a specification."""
    dev: ItemsSpec | None = None
    """Labelled sentences of this language (default: the dev set of the source language, derived)."""


class FeaturesConfig(StrictModel):
    """The features that the head reads, and the weights to fine-tune."""

    tune: Literal["all", "none"] = "all"
    """Weights of the pretrained model to fine-tune: ``all``, or ``none`` to use its states as fixed features."""
    layers: tuple[int, ...] = Field(default=(-1,), min_length=1)
    """Layers whose outputs are read: 1 … N, 0 for the embeddings, −1 for the last layer."""
    combine: Literal["mean", "concat"] = "mean"
    """Combination of several layers: their ``mean``, or ``concat`` for concatenation."""
    freeze_embeddings: bool = False
    """Keep the word embeddings fixed during fine-tuning.

    If they are trained, embeddings of words in the training text move away from their translations, which do not move.
    """
    freeze_language_parts: bool = True
    """Keep weights that belong to one language fixed (Conneau et al. 2020, section 4.3).

    A head trained with the weights of one language can then be tested with the weights of another.
    """
    top_layers: int = Field(default=0, ge=0)
    """Number of new transformer layers between features and head (Conneau et al. 2020, section 5.1.2: four)."""
    subword: Literal["first", "last", "mean"] = "first"
    """Vector of a word: its ``first`` or ``last`` subword, or the ``mean`` of all its subwords."""


class HeadConfig(StrictModel):
    """The prediction head. ``kind`` applies to ner, pos and slots. Every other task has only one head."""

    smoke: ClassVar[Mapping[str, Any]] = {"hidden": 16, "arc": 16, "relation": 16}

    kind: Literal["linear", "crf", "bilstm_crf"] = "linear"
    """Head for words: ``linear``, ``crf``, or ``bilstm_crf`` with two BiLSTM layers (Kulshreshtha et al. 2020)."""
    pooler: Annotated[bool | Literal["roberta"], OmitDefaultFromHash()] = False
    """Layers below the linear map of the row (nli): none, BERT's pooler (``true``), or RoBERTa's head (``roberta``).

    BERT's pooler is a dense layer and tanh, with the weights of the checkpoint. An adjusted model takes them from the
    model before the adjustment. If the checkpoint has no pooler, the weights are initialised randomly. RoBERTa's head
    has dropout, a dense layer and tanh, which is always initialised randomly.
    """
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Dropout rate of the head."""
    hidden: int = Field(default=256, ge=1)
    """Units of each BiLSTM layer in each direction."""
    arc: int = Field(default=500, ge=1)
    """Size of the arc vectors of the biaffine parser (Dozat & Manning 2017)."""
    relation: int = Field(default=100, ge=1)
    """Size of the relation vectors of the biaffine parser."""
    answer_words: int = Field(default=30, ge=1)
    """Maximum length of an answer in words (qa). Unlike tokens, words do not depend on the tokenizer."""
    answer_tokens: int | None = Field(default=None, ge=1)
    """Additional limit of an answer in tokens (default: none). The released script of Devlin et al. 2019 uses 30."""


class FineTuneConfig(StrictModel):
    """The optimizer (AdamW) and the length of fine-tuning.

    The learning rate rises linearly over ``warmup_share`` of the steps. Then it follows ``schedule``.
    """

    smoke: ClassVar[Mapping[str, Any]] = {"epochs": 1, "epoch_items": lambda _: None, "patience": lambda _: None}

    epochs: int = Field(default=10, ge=1)
    """Number of epochs. The weights of the best epoch on the dev set are kept."""
    epoch_items: Annotated[int | None, Field(ge=1), OmitDefaultFromHash()] = None
    """Number of items in an epoch (default: the whole training set).

    Each epoch continues in the training set where the previous epoch ended. The library of Conneau et al. 2020 uses
    20,000.
    """
    rows: int = Field(default=32, ge=1)
    """Number of rows in a step."""
    learning_rate: float = Field(default=2e-5, gt=0.0)
    """Peak learning rate of the pretrained weights."""
    head_learning_rate: float | None = Field(default=None, gt=0.0)
    """Peak learning rate of the head and of new layers (default: ``learning_rate``)."""
    schedule: Literal["linear", "constant"] = "linear"
    """Learning rate after the warm-up: ``linear`` decay to 0, or ``constant``."""
    warmup_share: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of the steps in which the learning rate rises, 0 to 1."""
    weight_decay: float = Field(default=0.0, ge=0.0)
    """Weight decay of AdamW. It applies to matrices only, not to biases and norms."""
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Decay rate β₁ of the first moment in AdamW."""
    beta2: float = Field(default=0.999, ge=0.0, lt=1.0)
    """Decay rate β₂ of the second moment in AdamW."""
    epsilon: float = Field(default=1e-8, gt=0.0)
    """Constant ε in the denominator of AdamW."""
    clip: float | None = Field(default=1.0, gt=0.0)
    """Maximum norm of the gradient (null: no limit)."""
    patience: int | None = Field(default=None, ge=1)
    """Number of epochs without a better dev score after which training stops (default: all epochs run)."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the pretrained model. The head always uses float32."""


class ScoreConfig(StrictModel):
    """The main metric, and the rules of normalisation before predictions are scored."""

    metric: str | None = None
    """Main metric, which selects epochs and settings and gives Δ (default: the usual metric of the task)."""
    repair: Literal["none", "final-type"] = "none"
    """Repair of predicted BIO tags: ``none``, or ``final-type`` (Conneau et al. 2020, section 3.2).

    Without repair, an I tag that does not continue a mention is ignored. ``final-type`` turns a standalone I-X into
    B-X, and B-X I-Y I-Z into B-Z I-Z I-Z.
    """
    punctuation: bool = True
    """Count words with the gold tag PUNCT in the main score of the parser, as in CoNLL 2018."""
    answers: str = Field(default="squad", pattern=r"^(squad|mlqa-[a-z]{2})$")
    """Normalisation of answers before comparison: ``squad``, or the rules of MLQA for a language, ``mlqa-xx``."""


class ContinualConfig(StrictModel):
    """Continual learning: L_target + α · L_align (The Impact of Cross-Lingual Adjustment, equation 2)."""

    alpha: float = Field(default=0.01, ge=0.0)
    """Weight α of the alignment loss. 0 turns it off."""
    rows: int = Field(default=16, ge=1)
    """Number of sentence pairs or of word pairs (``sample``) of each pair of languages in a step."""
    sample: Annotated[Literal["sentences", "words"], OmitDefaultFromHash()] = "sentences"
    """Pairs that a step draws: ``sentences`` with all their word alignments, or single pairs of aligned ``words``.

    The paper prints ``words`` (section 3: "a small batch of aligned pairs of words"). With them, ``loss.pulled: all``
    also draws pairs of sentence tokens, and ``loss.held_words: aligned`` holds only the drawn words.
    """
    pairs: dict[str, PairConfig | None] = Field(default_factory=dict)
    """Sentence pairs with word alignments, as in an adjustment (default: the pretraining text and its derived copy)."""
    loss: LossConfig = LossConfig(subword="mean", pulled="all")
    """Alignment loss."""
    data: DataConfig = DataConfig(dev=0)
    """Filters for the sentence pairs."""
    before: Annotated[ModelName | None, OmitDefaultFromHash()] = None
    """Model f⁰ of the regularizer: a run, a folder or a name (default: the model before any adjustment).

    The default follows the paper ("initial values in the 'original' mBERT", equation 1). In a study, ``cell:model`` is
    the model of the cell before its adjustment, and ``cell:adjusted`` is the model after it.
    """

    @property
    def has_text(self) -> bool:
        """True if the config gives sentences of the target language, which may then be a natural language."""
        return any(isinstance(pair, TextPair) for pair in self.pairs.values())


class TransferConfig(StrictModel):
    """A task, its data and the settings of fine-tuning. The defaults follow ALIGN-MLM, appendix H."""

    smoke: ClassVar[Mapping[str, Any]] = {
        "train_items": 64,
        "dev_items": 32,
        "test_items": 32,
        "search": lambda config: {key: values[:1] for key, values in config.search.items()},
        "best": 1,
    }

    task: TaskName = "pos"
    """Downstream task."""
    language: LanguageSpec | None = None
    """Target language: its name in the run, or a derived language (null: the first derived language of the run).

    In a study, null is also the only other language of a run without derived languages.
    """
    train: ItemsSpec | None = None
    """Training set of the source language, such as ``SOURCE#dev`` (default: the text that the run was trained on)."""
    train_language: Annotated[NamedLanguage | None, OmitDefaultFromHash()] = None
    """Language into which the training and dev items of the source language are derived (default: no change).

    The model then trains on the derived items, with the tokenizer of the source language. Test items stay as they are.
    "The Impact of Cross-Lingual Adjustment", section 5.3, trains on SQuAD with the verb last, the language ``sov``. SUP
    is not possible, so set ``sup: false``.
    """
    dev: ItemsSpec | None = None
    """Dev set of the source language (default: the dev split of ``train``, or one tenth of its items)."""
    test: ItemsSpec | None = None
    """Test set of the source language (default: the test split of ``train``)."""
    target: TargetData | None = None
    """Labelled sentences of a natural target language (default: the source items, derived)."""
    mixed: bool | Literal["random"] = False
    """Also test pairs with one text in each language (The Impact of Cross-Lingual Adjustment, section 4.2).

    ``true`` tests every item twice, each time with another text in the target language. ``random`` tests every item
    once, and draws the text. With a ``target``, its test set must be a translation of the source test set, with the
    same ids or in the same order.
    """
    chosen_by: Annotated[Literal["source", "target", "mean"], OmitDefaultFromHash()] = "source"
    """Dev sets to select the model trained on the source language: ``source``, ``target`` or ``mean``.

    ``target`` follows Kulshreshtha et al. 2020, section 4.2. ``mean`` averages the dev scores of both languages and of
    ``dev_also`` (Cao et al. 2020, section 3.5). The model trained on the target language (SUP) is always selected on
    the dev set of that language.
    """
    dev_also: Annotated[tuple[DevSet, ...], OmitDefaultFromHash()] = ()
    """Dev sets of additional languages for ``chosen_by: mean``. A dev set that is listed twice counts once."""
    tested_on: Annotated[Literal["test", "dev", "both"], OmitDefaultFromHash()] = "test"
    """Sets to score: ``test``, ``dev`` (Kulshreshtha et al. 2020, section 4.2), or ``both``.

    ``both`` adds the scores ``parent dev``, ``zs dev`` and ``sup dev``. Items in two languages (``mixed``) always come
    from the test sets.
    """
    sup: Annotated[bool, OmitDefaultFromHash()] = True
    """Also fine-tune a model on the target language, if it has training items.

    If false, neither SUP nor Δ is measured, and a transfer takes half the time.
    """
    parser: ParserSpec | None = None
    """Parser, such as ``spacy:NAME``, for derived languages that need trees (default: none)."""
    train_items: int | None = Field(default=None, ge=1)
    """Number of training items, from the beginning of the set (default: all)."""
    dev_items: int | None = Field(default=None, ge=1)
    """Number of dev items (default: all)."""
    test_items: int | None = Field(default=None, ge=1)
    """Number of test items (default: all)."""
    length: int | None = Field(default=None, ge=8)
    """Maximum length of a row in tokens, including special tokens (default: the maximum of the model).

    Words beyond the limit count as errors in pos and parsing. In ner and slots, their predicted tag is O.
    """
    stride: int = Field(default=64, ge=0)
    """Overlap of two windows of a paragraph, in tokens (qa)."""
    features: FeaturesConfig = FeaturesConfig()
    """Features that the head reads, and the weights to fine-tune."""
    head: HeadConfig = HeadConfig()
    """Prediction head."""
    fine_tune: FineTuneConfig = FineTuneConfig()
    """Optimizer and length of fine-tuning."""
    score: ScoreConfig = ScoreConfig()
    """Main metric and rules of scoring."""
    search: dict[str, list[Any]] = Field(default_factory=dict)
    """Grid search: dotted keys with lists of values.

    Every combination is fine-tuned. The dev sets of ``chosen_by`` rank the combinations.
    """
    best: int = Field(default=1, ge=1)
    """Number of best combinations to average scores over (Conneau et al. 2020, section 3.2)."""
    continual: ContinualConfig | None = None
    """Continual learning during fine-tuning (default: none)."""
    rotation: RotationConfig | None = None
    """Rotation of the features of one language (default: none)."""
    target_model: ModelName | None = None
    """Second model, which reads the target language, on frozen features (default: none)."""

    @property
    def aligning(self) -> ContinualConfig | None:
        """The settings ``continual``, or None if the weight of their loss is 0."""
        return self.continual if self.continual is not None and self.continual.alpha else None

    @property
    def of_source(self) -> TransferConfig:
        """The settings with defaults for all keys that do not affect the fit on the source language or its dev score.

        The key ``language`` is kept only for continual learning.
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
        """Return the settings with defaults for all keys that do not affect the fit on one language or its dev score.

        ``trained`` is the language of the fit. Transfers with equal results of this method share the fit.
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
        """The dotted keys that differ from their defaults but have no effect on the task, sorted."""
        plain, used = TransferConfig(), set(TASKS[self.task].settings)
        if self.rotation is not None:
            used.add("features.subword")  # a rotation is fitted on words for every task
        others = sorted({key for entry in TASKS.values() for key in entry.settings} - used)
        values = {key: operator.attrgetter(key) for key in others}
        return [key for key, value in values.items() if value(self) != value(plain)]

    @field_validator("search", mode="before")
    @classmethod
    def _dotted(cls, value: Any) -> Any:
        for key, values in value.items() if isinstance(value, dict) else ():
            if str(key).split(".")[0] not in SEARCHED:
                hint = "give a dotted key such as fine_tune.learning_rate"
                reason = "is not a key of fine_tune, head or features"
                raise InputError(reason, keys=[str(key)], hint=hint, code="unknown")
            if isinstance(values, dict):
                dotted = f"{key}.{next(iter(values), 'NAME')}" if key in SEARCHED else key
                hint = f"write a dotted key with a list of values, as in search: {{{dotted}: [VALUE, VALUE]}}"
                raise InputError("is a section, not a list of values", keys=[str(key)], hint=hint, code="type")
            if values == []:
                raise InputError("has no values", keys=[str(key)], hint="list at least one value", code="empty")
        return value

    @model_validator(mode="after")
    def _sound(self) -> TransferConfig:
        """Check the rules that involve several keys."""
        _check((*self._rules_of_models(), *self._rules_of_sets()))
        return self

    def _rules_of_models(self) -> Iterator[_Rule]:
        frozen, pairs = self.features.tune == "none", [name for name, task in TASKS.items() if task.pairs]
        reason = "needs frozen features, so that both models stay as they are"
        yield _Rule(self.target_model and not frozen, "target_model", reason, "set features.tune to none")
        reason, hint = "needs fine-tuning of the whole model, but features.tune is none", "remove continual"
        hint += "" if self.target_model else ", or set features.tune to all"
        yield _Rule(self.continual and frozen, "continual", reason, hint)
        if self.mixed:
            hint = f"set task to {' or '.join(pairs)}, or leave mixed out"
            yield _Rule(self.task not in pairs, "mixed", "is only for tasks on two texts", hint)
            reason = "needs one model that reads both texts"
            yield _Rule(self.target_model, "mixed", reason, "remove mixed or target_model")
            reason = "puts both languages into a row, but a rotation is for rows of one language"
            yield _Rule(self.rotation, "mixed", reason, "remove mixed or rotation")

    def _rules_of_sets(self) -> Iterator[_Rule]:
        no_dev = self.target is not None and self.target.dev is None and self.target.train is None
        reason = f"{self.chosen_by} needs a dev set of the target language"
        yield _Rule(self.chosen_by != "source" and no_dev, "chosen_by", reason, "set target.dev")
        if self.train_language is not None:
            reason = "cannot be combined with SUP, because the model trains on derived items"
            yield _Rule(self.sup, "train_language", reason, "set sup to false")
            reason = f"conflicts with chosen_by: {self.chosen_by}"
            yield _Rule(self.chosen_by != "source", "train_language", reason, "set chosen_by to source")
        reason = f"{self.tested_on} needs a dev set of the target language"
        yield _Rule(self.tested_on != "test" and no_dev, "tested_on", reason, "set target.dev")
        if self.dev_also:
            reason, hint = "has no effect unless chosen_by is mean", "set chosen_by to mean"
            yield _Rule(self.chosen_by != "mean", "dev_also", reason, hint, "no_effect")
            others = [key for key in ("target_model", "rotation") if getattr(self, key) is not None]
            reason = "needs one model for all languages and no rotation"
            yield _Rule(others, "dev_also", reason, f"remove {' and '.join(others)}")


def combinations(config: TransferConfig) -> list[tuple[str, TransferConfig]]:
    """Return the distinct combinations of the values in ``search`` as (label, settings).

    The last key changes fastest. Without a search, the result is the settings themselves with the label "".

    Raises:
        InputError: A key or a value of the search is not allowed.
    """
    if not config.search:
        return [("", config)]
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
            if error.keys[:1] and error.keys[0] in SEARCHED:
                raise error.inside("search") from error
            raise error.with_hint(f"search has {label}") from error  # a rule on another key that excludes a value
    return list(found.items())


def _searched(config: TransferConfig, key: str) -> str:
    """Return the place of the values of a key: the key itself, or the key in ``search``."""
    return f"search.{key}" if key in config.search else key


def check_tried(config: TransferConfig, counts: Iterable[int]) -> None:
    """Check every combination of the search, and check that the models have its layers.

    ``counts`` has the number of layers of each model.

    Raises:
        InputError: A combination is not allowed, ``best`` exceeds the number of combinations, a model lacks a layer, or
            a layer is named twice.
    """
    tried = combinations(config)
    if config.best > len(tried):
        found = f"search has only {plural(len(tried), 'combination')}" if config.search else "there is no search"
        reason = f"must be at most {len(tried)}, not {config.best}, because {found}"
        raise InputError(reason, keys="best", hint="lower this number, or search more values", code="range")
    also = () if config.continual is None else config.continual.loss.layers
    for count in counts:
        for _, settings in tried:
            numbered(settings.features.layers, count, _searched(config, "features.layers"))
        numbered(also, count, "continual.loss.layers")


def check_decoder(config: TransferConfig, is_causal: bool) -> None:
    """Check settings that a decoder cannot have, in which a token sees no later token. Other models pass.

    ``is_causal`` is True for a decoder. Every combination of the search is checked. Settings that the task does not
    read are never an error.

    Raises:
        InputError: A decoder would read words at their first subword, which does not see the later subwords, or
            continual learning would pull only the tokens before sentences, which see no word. The error is also
            raised if a combination of the search is not allowed.
    """
    if not is_causal:
        return
    reads_words = config.rotation is not None or "features.subword" in TASKS[config.task].settings
    reads_first = reads_words and any(tried.features.subword == "first" for _, tried in combinations(config))
    at_last = "a decoder sees a whole word only at its last subword"
    reason = f"first is not possible, because {at_last}"
    rules = [_Rule(reads_first, _searched(config, "features.subword"), reason, "use last")]
    if config.aligning is not None:
        loss, key = config.aligning.loss, "continual.loss"
        reason = f"start is not possible, because {at_last}"
        rules.append(_Rule(loss.subword == "start", f"{key}.subword", reason, "set this key to end"))
        reason = "cls is not possible, because in a decoder <s> sees no word"
        rules.append(_Rule(loss.pulled == "cls", f"{key}.pulled", reason, "set this key to words"))
    _check(rules)
