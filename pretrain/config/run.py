"""The whole config of a run: which languages it has, what it starts from, its other parts, what they must agree on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pretrain.config.model import ModelConfig, SharingConfig
from pretrain.config.objective import ObjectiveConfig
from pretrain.config.training import BatchConfig, CheckpointConfig, OptimizerConfig, ValidationConfig, micro_batches
from synthlang.config import StrictModel
from synthlang.dictionary.word_dictionary import DictionarySpec
from synthlang.errors import InputError
from synthlang.files import safe_name
from synthlang.fingerprint import fingerprint
from synthlang.language import PARENT, NamedLanguage
from synthlang.references import ModelName, OmitDefaultFromHash, SourceSpec, resolved
from synthlang.smoke import smaller
from synthlang.vocabularies import ExtendSpec, VocabularySpec

FORMAT = 2  # raise when training gives other weights for the same config
OF_WEIGHTS = frozenset(
    {"seed", "steps", "model", "sharing", "sampling", "batch", "optimizer", "precision", "objective"}
)
"""The settings that change the weights, besides the data."""


class LanguageConfig(StrictModel):
    """One language of a run: ``language`` derived from ``source``.

    name      what it is called in metrics and exports (default: the language's name)
    source    default: the source of the run
    language  default: the source's own language, as it is
    copies    of the training text, each with other draws of ``code_switch``, so that epochs differ in what is switched;
              an epoch has the rows of all of them. The vocabulary, and pairs, are of the first
    """

    name: str = ""
    source: SourceSpec = ""
    language: NamedLanguage = PARENT
    copies: Annotated[int, Field(ge=1), OmitDefaultFromHash()] = 1

    @field_validator("name")
    @classmethod
    def _safe(cls, value: str) -> str:
        return safe_name(value, "language name") if value else value

    @model_validator(mode="after")
    def _has_name(self) -> LanguageConfig:
        if not self.name:
            object.__setattr__(self, "name", self.language.name)
        if self.copies > 1 and self.language.redrawn(1) is self.language:
            raise ValueError(f"copies of {self.name} would all be the same: it has no transform code_switch")
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
    """A language is sampled by its share of the sentences, to the power of ``exponent`` (0: all alike; 0.7: XLM).

    shares    or by a number for each language, of any scale; then ``exponent`` is not read
    batches   ``mixed``: each step has rows of every language, as many as its share says; ``one-language``: all rows of
              a step are of one language, or of the sentence pairs of two, which is drawn by these shares (Conneau et
              al. 2020, "Emerging Cross-lingual Structure", section 3.1)
    """

    exponent: float = Field(default=0.0, ge=0.0, le=1.0)
    shares: Annotated[dict[str, Annotated[float, Field(gt=0.0)]] | None, OmitDefaultFromHash()] = None
    batches: Annotated[Literal["mixed", "one-language"], OmitDefaultFromHash()] = "mixed"


class StartConfig(StrictModel):
    """Go on from a checkpoint in the format of Hugging Face: a name or a folder with model and tokenizer.

    extend   add new subwords of a language to its vocabulary first
    """

    model: ModelName = Field(min_length=1)
    extend: ExtendSpec | None = None


class PretrainConfig(StrictModel):
    """A run: languages, and how to train on them.

    source     where the parent's sentences come from
    language   a language derived from it (or ``parent``: a monolingual run)
    languages  instead of ``language``: any number of languages, derived or natural, the first one is the parent
    processes  how many a launch must have (default: any number)
    shard      each process holds a part of weights, gradients and optimizer (FSDP); default: all of them
    compile    torch.compile: ``auto`` where it pays
    trackers   also log to tensorboard, wandb or trackio
    """

    smoke: ClassVar[Mapping[str, Any]] = {
        "steps": 20,
        "trackers": lambda _: (),
        "processes": lambda _: None,
        "log_every": 10,
        "vocabulary": lambda run: run.vocabulary if run.start else smaller(run.vocabulary),
        "model": lambda run: run.model if run.start else smaller(run.model),
    }

    source: SourceSpec = ""
    language: NamedLanguage | None = None
    languages: tuple[LanguageConfig, ...] = ()
    parallel: tuple[ParallelConfig, ...] = ()
    seed: int = Field(default=0, ge=0, le=2**63 - 1)  # tables hold 64 bits
    steps: int = Field(default=500_000, ge=1)
    start: StartConfig | None = None
    vocabulary: VocabularySpec = VocabularySpec()
    dictionary: DictionarySpec = DictionarySpec()
    model: ModelConfig = ModelConfig()
    sharing: SharingConfig = SharingConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    sampling: SamplingConfig = SamplingConfig()
    batch: BatchConfig = BatchConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    validation: ValidationConfig = ValidationConfig()
    checkpoints: CheckpointConfig = CheckpointConfig()
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    compile: Literal["auto", "on", "off"] = "auto"
    processes: int | None = Field(default=None, ge=1)
    shard: Annotated[bool, OmitDefaultFromHash()] = False
    trackers: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = ()
    log_every: int = Field(default=100, ge=1)

    @field_validator("languages", mode="before")
    @classmethod
    def _entries(cls, value: Any) -> Any:
        entries = value if isinstance(value, list | tuple) else [value]
        return tuple({"language": e} if isinstance(e, str) else e for e in entries)

    @model_validator(mode="after")
    def _languages_agree(self) -> PretrainConfig:
        if self.start is not None and (self.vocabulary, self.model) != (VocabularySpec(), ModelConfig()):
            raise ValueError("start: the checkpoint brings its vocabulary and shape; leave out vocabulary and model")
        if (self.language is None) == (not self.languages):
            raise ValueError("give either language: a language derived from the source, or languages: a list of them")
        for entry in self.all_languages:
            if not entry.source:
                raise ValueError(f"language {entry.name} has no source: set source, for it or for the run")
        names = Counter(entry.name for entry in self.all_languages)
        if twice := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"two languages have the name {twice[0]!r}; give each a name")
        shares = self.sampling.shares
        if shares is not None and shares.keys() != names.keys():
            raise ValueError(f"sampling.shares: give each language a number, and no other: {', '.join(names)}")
        unknown = {n for pair in self.parallel for n in pair.languages} - names.keys()
        if unknown:
            raise ValueError(f"parallel: no language {min(unknown)!r}; there is {', '.join(names)}")
        return self

    @model_validator(mode="after")
    def _sharing_fits(self) -> PretrainConfig:
        sharing = self.sharing
        if self.start is None and sharing.layers and max(sharing.layers) > self.model.layers:
            raise ValueError(
                f"sharing.layers: there is no layer {max(sharing.layers)}, the model has {self.model.layers}"
            )
        if sharing.separates and len(self.all_languages) == 1:
            raise ValueError("sharing: one language has nothing to separate")
        if sharing.softmax == "language" and (others := [t.name for t in self.objective.on if t.other_languages]):
            raise ValueError(
                f"sharing.softmax language cannot predict translations (the term {others[0]}): use softmax: shared"
            )
        if sharing.softmax == "language" and sharing.embeddings == "shared" and self.vocabulary.kind == "joint":
            raise ValueError("sharing.softmax language changes nothing with a joint vocabulary: all have the same ids")
        return self

    @model_validator(mode="after")
    def _objective_fits(self) -> PretrainConfig:
        if term := self.objective.needing("pairs"):
            if not self.parallel and not self.derived_pairs:
                raise ValueError(
                    f"objective: {term} needs sentence pairs: a language derived from the source, or parallel:"
                )
            if self.batch.length % 2:
                raise ValueError(
                    f"batch.length ({self.batch.length}) must be even for {term}: half a row for each language"
                )
        term = self.objective.needing("dictionary")
        if term and self.dictionary.path is None:
            scripts = self.sharing.embeddings == "separate" or any(e.language.script for e in self.all_languages)
            if self.vocabulary.kind != "copied" or not scripts or self.start is not None:
                raise ValueError(
                    f"objective: {term} needs a dictionary: a transliterated language with vocabulary.kind copied, "
                    "or dictionary.path, a file of translations"
                )
        if term and not self.dictionary.coverage:
            raise ValueError("dictionary.coverage 0 is an empty dictionary; the objective needs one")
        return self

    @model_validator(mode="after")
    def _shards(self) -> PretrainConfig:
        unfit = {
            "parts of a language (sharing)": self.sharing.separates,
            "precision float16; take bfloat16": self.precision == "float16",
            "compile: on": self.compile == "on",
        }
        if self.shard and (what := next((what for what, is_on in unfit.items() if is_on), None)):
            raise ValueError(f"shard does not go with {what}")
        return self

    @model_validator(mode="after")
    def _sizes_fit(self) -> PretrainConfig:
        if self.model.positions is not None and self.batch.length > self.model.positions:
            raise ValueError(f"batch.length ({self.batch.length}) is over model.positions ({self.model.positions})")
        archive, every = self.checkpoints.archive, self.checkpoints.every
        if archive is not None and archive % every:
            raise ValueError(f"checkpoints.archive ({archive}) must be a multiple of checkpoints.every ({every})")
        if self.checkpoints.select == "best" and not self.validation.every:
            raise ValueError("checkpoints.select best needs validation.every: the perplexity decides")
        return self

    @property
    def all_languages(self) -> tuple[LanguageConfig, ...]:
        """The languages of the run, each with its source; the first is the parent."""
        if self.language is None:
            return tuple(m if m.source else m.model_copy(update={"source": self.source}) for m in self.languages)
        parent = LanguageConfig(source=self.source)
        derived = LanguageConfig(source=self.source, language=self.language)
        return (parent,) if not self.language.transforms else (parent, derived)

    @property
    def derived_pairs(self) -> tuple[tuple[int, int], ...]:
        """Languages that are parallel by construction: the first one of each source with each other one from it."""
        pairs = []
        for number, entry in enumerate(self.all_languages):
            first = next(i for i, other in enumerate(self.all_languages) if other.source == entry.source)
            if first != number:
                pairs.append((first, number))
        return tuple(pairs)

    def micro_batches(self, processes: int) -> int:
        """Into how many micro-batches a step is cut; InputError if a launch of ``processes`` does not fit."""
        if self.processes is not None and processes != self.processes:
            hint = f"start with accelerate launch --num_processes {self.processes}, or set processes: {processes}"
            reason = f"processes is {self.processes}, the launch has {processes}"
            raise InputError(reason, keys="processes", hint=hint, code="conflict")
        try:
            return micro_batches(self.batch.rows, self.batch.accumulation, processes)
        except InputError as error:
            raise error.inside("batch") from error

    @property
    def label(self) -> str:
        """What a person calls the run: its objective and its languages but the parent."""
        kind = self.objective.kind if self.objective.kind != "sum" else "+".join(self.objective.terms)
        return f"{kind} {' '.join(m.name for m in self.all_languages[1:]) or self.all_languages[0].name}"

    def fingerprint(self, parents: dict[str, str]) -> str:
        """Of all that affects what a run holds: ``parents`` are the data artifacts trained on.

        That is the weights, and names that languages were given, which the exported models are found by.
        """
        named = resolved(self, lambda named: named.name)
        settings = {name: named[name] for name in OF_WEIGHTS} | {"objective": self.objective.identity()}
        if given := {str(i): m.name for i, m in enumerate(self.all_languages) if m.name != m.language.name}:
            settings["names"] = given
        if self.sharing.softmax == "language":  # then a random word is always one of the same language
            settings["objective"]["random_words"] = "same-language"
        if self.start is not None and self.start.extend is not None:
            settings["initialise"] = self.start.extend.initialise
        if self.checkpoints.select == "best":
            settings["selected"] = [named["checkpoints"], named["validation"]]
        return fingerprint("pretrain", format=FORMAT, settings=settings, parents=parents)
