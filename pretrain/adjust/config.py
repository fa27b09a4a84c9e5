"""The configuration of an adjustment: one YAML file, every key checked."""

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
from synthlang.references import ModelName

Side = Literal["left", "right"]
SIDES: tuple[Side, ...] = ("left", "right")
Pulled = Literal["words", "cls", "cls_sep", "all"]
FORMAT = 1  # raise when an adjustment gives other weights for the same config
OF_WEIGHTS = {"seed", "loss", "data", "rows", "accumulation", "epochs", "optimizer", "dropout", "precision"}
"""The settings that change the weights, besides the model and the pairs."""


class LossConfig(StrictModel):
    """L + λR: L pulls aligned words together, R holds words where they were in the model before.

    moves       the side that is pulled to the other one
    target      ``current``: L is between vectors of the current model, and both sides have a gradient (as-paper: Cao et
                al. 2020, section 3.3); ``frozen``: the other side's vectors are those of the model before, and only the
                moving side has one (as-code: most circulating copies)
    pulled      what is linked: ``words``, the token before a sentence (``cls``), those before and after it
                (``cls_sep``), or ``all`` of them (Impact, table 7)
    held        whose words R holds: those of the ``other`` side, of the ``moving`` one, of both, of none
    held_words  ``all`` words of the sentences and the sentence tokens that are pulled (Cao et al.); ``aligned``: only
                what is pulled (Kulshreshtha et al., eq. 8)
    hold        λ
    layers      1 … N, 0 for the embeddings, −1 for the last one, −2 for the one before; L and R are sums over them
                (Kulshreshtha et al. 2020, eq. 9: the last four), or of their mean with ``layers_as: mean``
    subword     which vector stands for a word: that of its first or last subword, or the mean of all
    distance    ``squared`` L2 (Cao et al.; Impact, eq. 1) or the L2 ``norm`` (Kulshreshtha et al., eq. 7 and 8)
    reduction   ``sum`` over the pairs and words of a step as printed, or the ``mean`` of each term
    """

    moves: Side = "left"
    target: Literal["current", "frozen"] = "current"
    pulled: Pulled = "words"
    held: Literal["other", "moving", "both", "none"] = "other"
    held_words: Literal["all", "aligned"] = "all"
    hold: float = Field(default=1.0, ge=0.0)
    layers: tuple[int, ...] = Field(default=(-1,), min_length=1)
    layers_as: Literal["each", "mean"] = "each"
    subword: Literal["start", "end", "mean"] = "end"
    distance: Literal["squared", "norm"] = "squared"
    reduction: Literal["sum", "mean"] = "sum"

    @property
    def other(self) -> Side:
        return "right" if self.moves == "left" else "left"

    @property
    def pulls_words(self) -> bool:
        return self.pulled in ("words", "all")

    @property
    def sentence_tokens(self) -> int:
        """How many of the two tokens around a sentence are pulled and held, the first one first."""
        return {"words": 0, "cls": 1, "cls_sep": 2, "all": 2}[self.pulled]

    @property
    def held_sides(self) -> tuple[Side, ...]:
        if not self.hold or self.held == "none":
            return ()
        return SIDES if self.held == "both" else (self.other if self.held == "other" else self.moves,)

    @property
    def current_sides(self) -> tuple[Side, ...]:
        """The sides that the model reads."""
        needed = {self.moves, *self.held_sides} | ({self.other} if self.target == "current" else set())
        return tuple(side for side in SIDES if side in needed)

    @property
    def frozen_sides(self) -> tuple[Side, ...]:
        """The sides that the model before has to read."""
        needed = {*self.held_sides} | ({self.other} if self.target == "frozen" else set())
        return tuple(side for side in SIDES if side in needed)


class AdamConfig(StrictModel):
    """Adam with a linear warm-up over a share of the steps (Cao et al. 2020, appendix A.1, for the defaults)."""

    learning_rate: float = Field(default=5e-5, gt=0.0)
    warmup_share: float = Field(default=0.1, ge=0.0, lt=1.0)
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    beta2: float = Field(default=0.98, ge=0.0, lt=1.0)
    epsilon: float = Field(default=1e-9, gt=0.0)
    weight_decay: float = Field(default=0.0, ge=0.0)
    clip: float | None = Field(default=None, gt=0.0)


class AdjustConfig(StrictModel):
    """An adjustment: a model, pairs of languages with their word alignments, and how to train.

    model     a Hugging Face name or folder, or a finished run of ours
    pairs     name → sentence pairs with links; all are trained at once, ``rows`` sentence pairs of each a step.
              A pair that is ``null`` is left out, as when a ``base`` has others
    epochs    times the largest pair is gone through; smaller ones begin anew meanwhile
    dropout   whether the model's dropout is on
    measure   distances of held-out words every so many steps (0: only before and after)
    """

    smoke: ClassVar[Mapping[str, Any]] = {"epochs": 1, "measure": 10, "log_every": 10}

    model: ModelName = Field(min_length=1)
    pairs: dict[str, PairConfig | None]
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    loss: LossConfig = LossConfig()
    data: DataConfig = DataConfig()
    rows: int = Field(default=2, ge=1)
    accumulation: int = Field(default=1, ge=1)
    epochs: int = Field(default=1, ge=1)
    optimizer: AdamConfig = AdamConfig()
    dropout: bool = True
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    measure: int = Field(default=0, ge=0)
    log_every: int = Field(default=100, ge=1)
    checkpoints: CheckpointConfig = CheckpointConfig()

    @field_validator("pairs")
    @classmethod
    def _some(cls, value: dict[str, PairConfig | None]) -> dict[str, PairConfig | None]:
        kept = {name: pair for name, pair in sorted(value.items()) if pair is not None}
        if not kept:
            raise ValueError("name at least one pair of languages")
        return {safe_name(name, "name of a pair"): pair for name, pair in kept.items()}

    @model_validator(mode="after")
    def _supported(self) -> AdjustConfig:
        if self.checkpoints.select == "best":
            raise ValueError("checkpoints.select must be last: an adjustment is not chosen by perplexity")
        return self

    @property
    def texts(self) -> dict[str, TextPair | DerivedPair]:
        """The pairs by name, in order of the names."""
        return {name: pair for name, pair in self.pairs.items() if pair is not None}

    def fingerprint(self, parents: dict[str, Any]) -> str:
        """Of all that affects the weights: ``parents`` are the model, its tokenizers and the linked sentence pairs."""
        settings = self.model_dump(mode="json", include=OF_WEIGHTS)
        return fingerprint("adjust", format=FORMAT, settings=settings, parents=parents)


def tokenizer_languages(name: str, pair: TextPair | DerivedPair, languages: Collection[str]) -> tuple[str, str]:
    """Return the languages of a run whose tokenizers the pair ``name`` needs, left and right.

    Raises:
        InputError: The pair names none, or a language that is not among the ``languages`` of the run.
    """
    derived = (pair.left.name, pair.right.name) if isinstance(pair, DerivedPair) else None
    read, hint = pair.tokenizers or derived, f"name two of {', '.join(languages)} in tokenizers"
    if read is None:
        raise InputError(
            "the languages of the run that it is of are not named", keys=("pairs", name), hint=hint, code="missing"
        )
    for language in read:
        if language not in languages:
            raise InputError(f"the run has no language {language!r}", keys=("pairs", name), hint=hint, code="unknown")
    return read
