"""The configuration of an adjustment, which is read from a YAML file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pretrain.config import CheckpointConfig
from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.files import safe_name
from synthlang.fingerprint import fingerprint
from synthlang.parallel.pairs import DerivedPair, PairConfig, TextPair
from synthlang.parallel.prepare import DataConfig
from synthlang.references import ModelName, resolved
from synthlang.wording import first_few

Side = Literal["left", "right"]
SIDES: tuple[Side, ...] = ("left", "right")
Pulled = Literal["words", "cls", "cls_sep", "all"]
FORMAT = 1  # raise when an adjustment gives other weights for the same config
OF_WEIGHTS = {"seed", "loss", "data", "rows", "accumulation", "epochs", "optimizer", "dropout", "precision"}
"""The settings that affect the weights, besides the model and the pairs."""


class LossConfig(StrictModel):
    """The loss L + λR: L pulls aligned words together, and R holds words near their vectors in the original model.

    ``pulled`` selects words, sentence tokens or both. The equations are in ``pretrain.adjust.loss``.
    """

    moves: Side = "left"
    """Side that is pulled to the other side."""
    target: Literal["current", "frozen"] = "current"
    """Model that gives the vectors of the other side in L.

    With ``current``, both sides have a gradient, as printed in Cao et al. 2020, section 3.3. With ``frozen``, the
    original model, only the moving side has a gradient, as in most circulating copies of their code.
    """
    pulled: Pulled = "words"
    """Tokens that are pulled, as in "The Impact of Cross-Lingual Adjustment" (2022), table 7.

    ``words`` are the aligned words, ``cls`` is the token before a sentence, ``cls_sep`` are the tokens before and after
    a sentence, and ``all`` are all of these.
    """
    held: Literal["other", "moving", "both", "none"] = "other"
    """Side whose words R holds: the ``other`` side, the ``moving`` side, ``both`` or ``none``."""
    held_words: Literal["all", "aligned"] = "all"
    """Words that R holds.

    ``all`` holds all words of the sentences and the pulled sentence tokens (Cao et al.). ``aligned`` holds only the
    pulled items (Kulshreshtha et al. 2020, equation 8).
    """
    hold: float = Field(default=1.0, ge=0.0)
    """Weight λ of R."""
    layers: tuple[int, ...] = Field(default=(-1,), min_length=1)
    """Layers that L and R compare.

    0 is the embeddings, 1 … N are the layers, and −1, −2, … count from the last layer. ``layers_as`` selects the sum or
    the mean of several layers. Kulshreshtha et al. 2020, equation 9, use the last four layers.
    """
    layers_as: Literal["each", "mean"] = "each"
    """Sum of the losses of ``each`` layer, or one loss of the ``mean`` of the layers."""
    subword: Literal["start", "end", "mean"] = "end"
    """Vector of a word: the first subword, the last subword, or the mean of all subwords."""
    distance: Literal["squared", "norm"] = "squared"
    """L2 distance of two vectors: ``squared`` (Cao et al. 2020) or ``norm`` (Kulshreshtha et al. 2020, equation 7)."""
    reduction: Literal["sum", "mean"] = "sum"
    """Reduction over the pairs and words of a step: ``sum``, as printed in Cao et al. 2020, or ``mean``."""

    @property
    def other(self) -> Side:
        """The side to which the side ``moves`` is pulled."""
        return "right" if self.moves == "left" else "left"

    @property
    def pulls_words(self) -> bool:
        """True if aligned words are pulled, alone or with sentence tokens."""
        return self.pulled in ("words", "all")

    @property
    def sentence_tokens(self) -> int:
        """Number of tokens around a sentence that are pulled and held: none, the first one, or both."""
        return {"words": 0, "cls": 1, "cls_sep": 2, "all": 2}[self.pulled]

    @property
    def held_sides(self) -> tuple[Side, ...]:
        """The sides whose words R holds, which are none if λ is 0."""
        if not self.hold or self.held == "none":
            return ()
        return SIDES if self.held == "both" else (self.other if self.held == "other" else self.moves,)

    @property
    def current_sides(self) -> tuple[Side, ...]:
        """The sides that the current model reads, left before right."""
        needed = {self.moves, *self.held_sides} | ({self.other} if self.target == "current" else set())
        return tuple(side for side in SIDES if side in needed)

    @property
    def frozen_sides(self) -> tuple[Side, ...]:
        """The sides that the original model reads, left before right."""
        needed = {*self.held_sides} | ({self.other} if self.target == "frozen" else set())
        return tuple(side for side in SIDES if side in needed)


class AdamConfig(StrictModel):
    """AdamW with a linear warm-up over a share of the steps. Defaults are from Cao et al. 2020, appendix A.1.

    Without weight decay, as by default, AdamW equals Adam.
    """

    learning_rate: float = Field(default=5e-5, gt=0.0)
    """Largest learning rate."""
    warmup_share: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of the steps in which the rate rises linearly, rounded down to a step."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Course of the learning rate after the warm-up."""
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Decay rate of the first moment."""
    beta2: float = Field(default=0.98, ge=0.0, lt=1.0)
    """Decay rate of the second moment."""
    epsilon: float = Field(default=1e-9, gt=0.0)
    """Number that is added to the denominator of an update."""
    weight_decay: float = Field(default=0.0, ge=0.0)
    """Weight decay of the matrices. Biases and LayerNorms have none."""
    clip: float | None = Field(default=None, gt=0.0)
    """Largest norm of the gradient. With null, gradients are not clipped."""


class AdjustConfig(StrictModel):
    """An adjustment: a model, word-aligned pairs of languages, and training settings."""

    smoke: ClassVar[Mapping[str, Any]] = {"epochs": 1, "measure": 10, "log_every": 10}

    model: ModelName = Field(min_length=1)
    """A Hugging Face name or folder, or a finished run."""
    pairs: dict[str, PairConfig | None]
    """Word-aligned sentence pairs by name, which are trained together.

    A pair that is ``null`` is left out, for example to remove a pair of a ``base``.
    """
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """Seed of the order of the sentence pairs and of the dropout."""
    loss: LossConfig = LossConfig()
    """Settings of the loss."""
    data: DataConfig = DataConfig()
    """Selection of the sentence pairs."""
    rows: int = Field(default=2, ge=1)
    """Number of sentence pairs of each pair of languages in a step."""
    accumulation: int = Field(default=1, ge=1)
    """Number of micro-batches into which each process splits its part of a step."""
    epochs: int = Field(default=1, ge=1)
    """Number of epochs of the largest pair. Smaller pairs are repeated."""
    optimizer: AdamConfig = AdamConfig()
    """Settings of the optimizer and the learning rate."""
    dropout: bool = True
    """Train with the model's dropout."""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """Number format of the computation. Weights and optimizer are float32."""
    measure: int = Field(default=0, ge=0)
    """Number of steps between measurements of the distances of held-out words. 0 measures only before and after."""
    log_every: int = Field(default=100, ge=1)
    """Number of steps between lines of metrics."""
    checkpoints: CheckpointConfig = CheckpointConfig()
    """Settings of checkpoints."""

    @field_validator("pairs")
    @classmethod
    def _some(cls, value: dict[str, PairConfig | None]) -> dict[str, PairConfig | None]:
        kept = {name: pair for name, pair in sorted(value.items()) if pair is not None}
        if not kept:
            raise InputError("no pair of languages is given", hint="add at least one pair", code="empty")
        return {safe_name(name, "name of a pair"): pair for name, pair in kept.items()}

    @model_validator(mode="after")
    def _supported(self) -> AdjustConfig:
        if self.checkpoints.select == "best":
            reason = "best needs perplexity, which an adjustment does not measure"
            raise InputError(reason, keys="checkpoints.select", hint="set this key to last", code="unsupported")
        if self.checkpoints.at is not None:
            reason = "cannot name steps of an adjustment, whose number of steps depends on its sentence pairs"
            hint = "leave this key out, and set checkpoints.archive instead"
            raise InputError(reason, keys="checkpoints.at", hint=hint, code="unsupported")
        return self

    @property
    def texts(self) -> dict[str, TextPair | DerivedPair]:
        """The pairs that are not null, sorted by name."""
        return {name: pair for name, pair in self.pairs.items() if pair is not None}

    def fingerprint(self, parents: dict[str, Any]) -> str:
        """Return the fingerprint of everything that affects the weights.

        ``parents`` are the fingerprints of the model, its tokenizers and the word-aligned sentence pairs.
        """
        settings = {key: value for key, value in resolved(self, lambda named: named.name).items() if key in OF_WEIGHTS}
        return fingerprint("adjust", format=FORMAT, settings=settings, parents=parents)


def tokenizer_languages(name: str, pair: TextPair | DerivedPair, languages: Collection[str]) -> tuple[str, str]:
    """Return the languages of a run whose tokenizers the pair ``name`` needs, left and right.

    Raises:
        InputError: The pair names no languages, or the run does not have them among its ``languages``.
    """
    derived = (pair.left.name, pair.right.name) if isinstance(pair, DerivedPair) else None
    read, known = pair.tokenizers or derived, first_few(list(languages), 20)
    hint = f"set tokenizers to a language for left and one for right, from the languages of the run: {known}"
    keys = ("pairs", name) if pair.tokenizers is None and derived else ("pairs", name, "tokenizers")
    if read is None:
        reason = "is required, because the model is a run with a tokenizer for each language"
        raise InputError(reason, keys=keys, hint=hint, code="missing")
    for language in read:
        if language not in languages:
            raise InputError(f"the run has no language {language!r}", keys=keys, hint=hint, code="unknown")
    return read


def check_adjusted(is_causal: bool, *keys: str) -> None:
    """Check that the model to adjust is an encoder. ``is_causal`` is True for a decoder. Errors name the ``keys``.

    Raises:
        InputError: The model is a decoder.
    """
    if is_causal:
        reason = "the model is a decoder, which can be probed and fine-tuned but not adjusted"
        raise InputError(reason, keys=keys, hint="adjust an encoder", code="unsupported")
