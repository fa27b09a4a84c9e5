"""The whole config of a run, with rules that concern several of its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pretrain.config.model import ModelConfig, SharingConfig
from pretrain.config.objective import ObjectiveConfig
from pretrain.config.sampling import SamplingConfig
from pretrain.config.training import BatchConfig, CheckpointConfig, OptimizerConfig, ValidationConfig, micro_batches
from synthlang.config import StrictModel
from synthlang.dictionary.word_dictionary import DictionarySpec
from synthlang.errors import InputError
from synthlang.files import safe_name
from synthlang.fingerprint import fingerprint
from synthlang.language import PARENT, NamedLanguage
from synthlang.model_files import DECODERS
from synthlang.references import ModelName, OmitDefaultFromHash, SourceSpec, resolved
from synthlang.smoke import smaller
from synthlang.vocabularies import ExtendSpec, VocabularySpec
from synthlang.wording import plural

FORMAT = 2  # raise when training gives other weights for the same config
OF_WEIGHTS = frozenset(
    {"seed", "steps", "model", "sharing", "sampling", "batch", "optimizer", "precision", "objective"}
)
"""The settings that affect the weights, besides the data."""


class LanguageConfig(StrictModel):
    """One language of a run: ``language`` derived from ``source``."""

    name: str = ""
    """Name of the language in metrics and exports (default: the name of ``language``)."""
    source: SourceSpec = ""
    """Source of the sentences (default: the source of the run)."""
    language: NamedLanguage = PARENT
    """Language derived from the source (default: the source language)."""
    copies: Annotated[int, Field(ge=1), OmitDefaultFromHash()] = 1
    """Number of copies of the training text, each with other random draws of ``code_switch``.

    An epoch has the rows of all copies. The vocabulary and the sentence pairs use the first copy.
    """

    @field_validator("name")
    @classmethod
    def _safe(cls, value: str) -> str:
        return safe_name(value, "language name") if value else value

    @model_validator(mode="after")
    def _has_name(self) -> LanguageConfig:
        if not self.name:
            object.__setattr__(self, "name", self.language.name)
        if self.copies > 1 and self.language.redrawn(1) is self.language:
            reason = f"the copies of {self.name} would be equal, since the language has no transform code_switch"
            raise InputError(reason, keys="copies", hint="leave this key out", code="no_effect")
        return self


class ParallelConfig(StrictModel):
    """Sentence pairs of two natural languages, for TLM.

    Sentence n of one source must translate sentence n of the other. Languages derived from the same source have pairs
    by construction.
    """

    languages: tuple[str, str]
    """Names of the two languages."""
    sources: tuple[SourceSpec, SourceSpec]
    """Sources of the two sides."""

    @field_validator("languages")
    @classmethod
    def _two(cls, value: tuple[str, str]) -> tuple[str, str]:
        if value[0] == value[1]:
            reason = f"the language {value[0]!r} is named twice"
            raise InputError(reason, hint="name two different languages", code="duplicate")
        return value

    @field_validator("sources")
    @classmethod
    def _keeps_lines(cls, value: tuple[str, str]) -> tuple[str, str]:
        for number, spec in enumerate(value):
            if spec.startswith("text:"):
                reason = f"{spec} splits lines into sentences, so the two sides would not be parallel"
                hint = f"write lines:{spec.removeprefix('text:')}"
                raise InputError(reason, keys=str(number), hint=hint, code="conflict")
        return value


class StartConfig(StrictModel):
    """A checkpoint in the format of Hugging Face, from which training starts."""

    model: ModelName = Field(min_length=1)
    """Name of the checkpoint, or folder with model and tokenizer."""
    extend: ExtendSpec | None = None
    """New subwords of a language that are added to the vocabulary first."""


class PretrainConfig(StrictModel):
    """A pretraining run: its languages and its training settings."""

    smoke: ClassVar[Mapping[str, Any]] = {
        "steps": 20,
        "sampling": lambda run: run.sampling.rescaled(run.steps, min(run.steps, 20)),
        "trackers": lambda _: (),
        "processes": lambda _: None,
        "log_every": 10,
        "vocabulary": lambda run: run.vocabulary if run.start else smaller(run.vocabulary),
        "model": lambda run: run.model if run.start else smaller(run.model),
    }

    source: SourceSpec = ""
    """Source of the sentences."""
    language: NamedLanguage | None = None
    """Language derived from the source. ``parent`` makes a monolingual run."""
    languages: tuple[LanguageConfig, ...] = ()
    """Languages, derived or natural, in place of ``language``. The first one is the source language."""
    parallel: tuple[ParallelConfig, ...] = ()
    """Sentence pairs of natural languages."""
    seed: int = Field(default=0, ge=0, le=2**63 - 1)  # columns of tables have 64 bits
    """Seed of the weights, the order of the data and the masks."""
    steps: int = Field(default=500_000, ge=1)
    """Number of steps."""
    start: StartConfig | None = None
    """Checkpoint to start from (default: random weights)."""
    vocabulary: VocabularySpec = VocabularySpec()
    """Settings of the vocabulary."""
    dictionary: DictionarySpec = DictionarySpec()
    """Dictionary of the terms dict and align."""
    model: ModelConfig = ModelConfig()
    """Shape of the model."""
    sharing: SharingConfig = SharingConfig()
    """Parts that the languages share."""
    objective: ObjectiveConfig = ObjectiveConfig()
    """Settings of the objective."""
    sampling: SamplingConfig = SamplingConfig()
    """Settings of the frequency with which each language is sampled."""
    batch: BatchConfig = BatchConfig()
    """Settings of the rows of a step."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """Settings of the optimizer and the learning rate."""
    validation: ValidationConfig = ValidationConfig()
    """Settings of validation."""
    checkpoints: CheckpointConfig = CheckpointConfig()
    """Settings of checkpoints."""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """Number format of the computation. Weights and optimizer are float32."""
    compile: Literal["auto", "on", "off"] = "auto"
    """Use of torch.compile. ``auto`` compiles runs of 2,000 steps and more on CUDA if triton is installed."""
    processes: int | None = Field(default=None, ge=1)
    """Number of processes that a launch must have (default: any number)."""
    shard: Annotated[bool, OmitDefaultFromHash()] = False
    """Split weights, gradients and optimizer over the processes (FSDP)."""
    trackers: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = ()
    """Trackers that also receive the metrics: tensorboard, wandb, trackio."""
    log_every: int = Field(default=100, ge=1)
    """Number of steps between lines of metrics."""

    @field_validator("languages", mode="before")
    @classmethod
    def _entries(cls, value: Any) -> Any:
        entries = value if isinstance(value, list | tuple) else [value]
        return tuple({"language": e} if isinstance(e, str) else e for e in entries)

    @model_validator(mode="after")
    def _languages_agree(self) -> PretrainConfig:
        given = {"vocabulary": self.vocabulary != VocabularySpec(), "model": self.model != ModelConfig()}
        if self.start is not None and (idle := next((key for key, is_given in given.items() if is_given), None)):
            reason = f"has no effect, because the checkpoint that the run starts from determines the {idle}"
            raise InputError(reason, keys=idle, hint="leave this key out", code="no_effect")
        if self.language is not None and self.languages:
            hint = "leave one of the two keys out"
            raise InputError("both language and languages are given", keys="languages", hint=hint, code="conflict")
        if self.language is None and not self.languages:
            raise InputError("is required", keys="language", hint="add this key, or the key languages", code="missing")
        for number, entry in enumerate(self.all_languages):
            if not entry.source:
                keys, hint = "source", "add this key"
                if self.languages:
                    keys, hint = f"languages.{number}.source", "add this key, or the key source of the run"
                raise InputError("is required", keys=keys, hint=hint, code="missing")
        names = Counter(entry.name for entry in self.all_languages)
        if twice := [name for name, count in names.items() if count > 1]:
            reason = f"{names[twice[0]]} languages have the name {twice[0]!r}"
            hint = "give each language its own name (key name)"
            raise InputError(reason, keys="languages", hint=hint, code="duplicate")
        self.sampling.check(names, self.steps)
        for number, pair in enumerate(self.parallel):
            if unknown := [name for name in pair.languages if name not in names]:
                reason = f"{unknown[0]!r} is not a language of the run"
                hint = f"name two of {', '.join(names)}" if len(names) > 1 else "leave parallel out"
                raise InputError(reason, keys=("parallel", str(number), "languages"), hint=hint, code="unknown")
        return self

    @model_validator(mode="after")
    def _sharing_fits(self) -> PretrainConfig:
        sharing = self.sharing
        if self.start is None and sharing.layers and max(sharing.layers) > self.model.layers:
            reason = (
                f"the model has only {plural(self.model.layers, 'layer')}, so it has no layer {max(sharing.layers)}"
            )
            hint = f"use numbers up to {self.model.layers}"
            raise InputError(reason, keys="sharing.layers", hint=hint, code="range")
        if sharing.separates and len(self.all_languages) == 1:
            reason = "a run with one language cannot have separate parts"
            raise InputError(reason, keys="sharing", hint="leave this key out", code="no_effect")
        if sharing.softmax == "language":
            self._check_softmax()
        return self

    def _check_softmax(self) -> None:
        """Check that a softmax over the ids of one language suits the objective and the vocabulary.

        Raises:
            InputError: A term also predicts words of another language, or all languages have the same ids.
        """
        if others := [term.name for term in self.objective.on if term.other_languages]:
            key, what, mended = "softmax", "a softmax over the ids of one language", "this key"
            if self.sharing.embeddings == "separate":
                key, what, mended = "embeddings", "separate embeddings", "this key and sharing.softmax"
            reason = f"the term {others[0]} predicts words of another language than the input, but {what} cannot"
            hint = f"set {mended} to shared, or choose an objective without the term {others[0]}"
            raise InputError(reason, keys=("sharing", key), hint=hint, code="conflict")
        if self.sharing.embeddings == "shared" and self.vocabulary.kind == "joint":
            reason = "the value language has no effect with a joint vocabulary, where all languages have the same ids"
            raise InputError(reason, keys="sharing.softmax", hint="leave this key out", code="no_effect")

    @model_validator(mode="after")
    def _kind_fits(self) -> PretrainConfig:
        objective, kind = self.objective, self.model.kind
        if self.start is None and objective.is_causal != (kind in DECODERS):
            key, reason = "objective", f"the term clm needs a decoder, but model.kind is {kind}"
            hint = f"set model.kind to {' or '.join(sorted(DECODERS))}"
            if kind in DECODERS:
                key, reason = "model.kind", f"{kind} is a decoder, which needs the term clm in the objective"
                hint = "set objective.kind to clm, or leave this key out"
            raise InputError(reason, keys=key, hint=hint, code="conflict")
        if objective.is_causal and "dict" in objective.terms and objective.dict_target != "switched":
            reason = (
                f"{objective.dict_target} is not possible with a decoder, whose term dict switches words of the input"
            )
            raise InputError(reason, keys="objective.dict_target", hint="set this key to switched", code="conflict")
        return self

    @model_validator(mode="after")
    def _objective_fits(self) -> PretrainConfig:
        if term := self.objective.needing("pairs"):
            if not self.parallel and not self.derived_pairs:
                hint = "add a language derived from the source, or sentence pairs under parallel"
                raise InputError(f"the term {term} needs sentence pairs", keys="objective", hint=hint, code="missing")
            if self.batch.length % 2:
                reason = f"{self.batch.length} must be even for the term {term}, which gives each language half a row"
                raise InputError(reason, keys="batch.length", hint="use an even number", code="conflict")
        term = self.objective.needing("dictionary")
        if term and self.dictionary.path is None:
            scripts = self.sharing.embeddings == "separate" or any(e.language.script for e in self.all_languages)
            if self.vocabulary.kind != "copied" or not scripts or self.start is not None:
                hint = "name a file of translations in dictionary.path"
                if self.start is None:
                    hint = f"use a transliterated language with vocabulary.kind copied, or {hint}"
                if len(self.all_languages) == 1:
                    hint = f"add a second language, or choose an objective without the term {term}"
                raise InputError(f"the term {term} needs a dictionary", keys="objective", hint=hint, code="missing")
        if term and not self.dictionary.coverage:
            reason = f"a share of 0 gives an empty dictionary, but the term {term} needs word pairs"
            raise InputError(reason, keys="dictionary.coverage", hint="set a share above 0", code="conflict")
        return self

    @model_validator(mode="after")
    def _shards(self) -> PretrainConfig:
        unfit = {
            "separate parts (sharing)": (self.sharing.separates, "remove shard or sharing"),
            "precision: float16": (self.precision == "float16", "set precision to bfloat16"),
            "compile: on": (self.compile == "on", "set compile to auto or off"),
        }
        for what, (is_on, hint) in unfit.items():
            if self.shard and is_on:
                raise InputError(f"cannot be combined with {what}", keys="shard", hint=hint, code="conflict")
        return self

    @model_validator(mode="after")
    def _sizes_fit(self) -> PretrainConfig:
        if self.model.positions is not None and self.batch.length > self.model.positions:
            reason = f"{self.model.positions} is less than batch.length ({self.batch.length})"
            hint = "raise model.positions, or lower batch.length"
            raise InputError(reason, keys="model.positions", hint=hint, code="conflict")
        self.checkpoints.check(self.steps)
        if self.checkpoints.select == "best" and not self.validation.every:
            reason = "best needs validation, because the checkpoint is selected by perplexity"
            hint = "set validation.every to a number above 0, or this key to last"
            raise InputError(reason, keys="checkpoints.select", hint=hint, code="missing")
        return self

    @property
    def all_languages(self) -> tuple[LanguageConfig, ...]:
        """The languages of the run, each with its source. The first is the source language."""
        if self.language is None:
            return tuple(m if m.source else m.model_copy(update={"source": self.source}) for m in self.languages)
        parent = LanguageConfig(source=self.source)
        derived = LanguageConfig(source=self.source, language=self.language)
        return (parent,) if not self.language.transforms else (parent, derived)

    @property
    def derived_pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of the first language of each source with every other language derived from this source.

        Languages are numbered as in ``all_languages``. An example is ((0, 1), (0, 2)) for two derived languages.
        """
        first: dict[str | None, int] = {}
        numbered = [(first.setdefault(entry.source, number), number) for number, entry in enumerate(self.all_languages)]
        return tuple((one, other) for one, other in numbered if one != other)

    def micro_batches(self, processes: int) -> int:
        """Return the number of micro-batches of a step over all processes.

        Raises:
            InputError: The config demands another number of processes than ``processes``, or the rows of a step cannot
                be split equally.
        """
        if self.processes is not None and processes != self.processes:
            launch = f"accelerate launch --num_processes {self.processes} -m pretrain.train"
            hint = f"set this key to {processes}, or start the run, if it is not part of a study, with: {launch} CONFIG"
            reason = f"{self.processes} is not the number of processes of this launch ({processes})"
            raise InputError(reason, keys="processes", hint=hint, code="conflict")
        try:
            return micro_batches(self.batch.rows, self.batch.accumulation, processes)
        except InputError as error:
            raise error.inside("batch") from error

    @property
    def tokens(self) -> int:
        """Number of tokens that the whole run reads, with padding."""
        return self.steps * self.batch.tokens

    @property
    def label(self) -> str:
        """Short description of the run: its objective, and its languages except the first, or its only language."""
        kind = self.objective.kind if self.objective.kind != "sum" else "+".join(self.objective.terms)
        return f"{kind} {' '.join(m.name for m in self.all_languages[1:]) or self.all_languages[0].name}"

    def fingerprint(self, parents: dict[str, str]) -> str:
        """Return the fingerprint of everything that affects the weights and the names of the exported models.

        ``parents`` are the fingerprints of the data artifacts.
        """
        named = resolved(self, lambda named: named.name)
        settings = {name: named[name] for name in OF_WEIGHTS} | {"objective": self.objective.identity()}
        if given := {str(i): m.name for i, m in enumerate(self.all_languages) if m.name != m.language.name}:
            settings["names"] = given
        if self.sharing.softmax == "language":  # a random word then always has the same language
            settings["objective"]["random_words"] = "same-language"
        if self.start is not None and self.start.extend is not None:
            settings["initialise"] = self.start.extend.initialise
        if self.checkpoints.select == "best":
            settings["selected"] = [named["checkpoints"], named["validation"]]
        return fingerprint("pretrain", format=FORMAT, settings=settings, parents=parents)
