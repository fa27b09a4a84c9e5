"""The stages of a study: what each is, its key, and how it travels as JSON.

A stage is a folder ``<kind>-<key>`` of the store. Its key is the fingerprint of all that its content depends on: the
settings, with the digest of what they name in the place of each name, the keys of the stages that it is made of, and
the formats of the code. So the same key is the same work, whoever wants it, and what has changed has another key.

    pretrain, adjust       the folder of a run
    tune                   done.json and export/, as those of a run: a fine-tuned body without its head
    alignment, transfer    result.json, of a transfer also predictions.parquet
    probe                  probes.json, figures/, probes.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

import pydantic
from pydantic import Field

from pretrain.adjust.config import FORMAT as ADJUST_FORMAT
from pretrain.adjust.config import OF_WEIGHTS as OF_ADJUSTMENT
from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from pretrain.config.run import FORMAT as PRETRAIN_FORMAT
from pretrain.config.run import OF_WEIGHTS
from pretrain.folder import kept_steps
from probes.measures.table import FORMAT as PROBE_FORMAT
from probes.measures.table import ProbeConfig
from probes.model_names import adjusted_from
from probes.study.cell import MODEL
from probes.study.digests import Digests, Stats
from probes.transfer.config import FORMAT as TRANSFER_FORMAT
from probes.transfer.config import TransferConfig
from synthlang import language as languages
from synthlang import plugins, shards, vocabulary
from synthlang.config import StrictModel
from synthlang.dictionary import ids, word_dictionary
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.language import Language
from synthlang.parallel import aligners
from synthlang.references import ModelName, Named, references, resolved
from synthlang.store import Store
from synthlang.vocabularies import extension, space

FORMAT = 2  # raise when a stage of the same settings has another content, and no format of its kind says so
OF_DATA = tuple(
    module.FORMAT for module in (languages, shards, vocabulary, space, extension, ids, word_dictionary, aligners)
)
"""The formats of the code that makes what models are trained on."""
DONE, RESULT, PREDICTIONS, PROBES = "done.json", "result.json", "predictions.parquet", "probes.json"  # files of stages
DATA = frozenset({"source", "language", "languages", "vocabulary", "dictionary", "start"})
"""Of a pretraining, what says which data it reads, and what of it counts as translations."""


class _NamedModel(StrictModel):
    model: ModelName


class Stage(StrictModel):
    """One piece of work. It holds the stages that it is made of, so it alone says all that the work depends on."""

    format: ClassVar[int]  # of the code that makes it
    content: ClassVar[tuple[str, ...]]  # the files without which it is none; the first is written last
    kind: str
    key: str = ""

    @property
    def parents(self) -> tuple[Stage, ...]:
        """The stages that have to be done first."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return tuple(value for value in values if isinstance(value, Stage))

    @property
    def label(self) -> str:
        """What people read in progress and logs."""
        raise NotImplementedError

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        """Those that name what it reads, besides its parents'."""
        raise NotImplementedError

    def settings(self, stage_keys: StageKeys) -> Any:
        """What the content depends on besides the parents."""
        raise NotImplementedError

    def reread(self, store: Store) -> Stage:
        """The same with the files that languages name, which a config holds, read now.

        InputError if what is named has another content than when the stage got its key.
        """
        reread = stage_from_json(self.to_json())
        if not _is_as_keyed(reread, StageKeys(Digests(store))):
            raise InputError(f"{self.label}: a file has changed since the study was started; start again")
        return reread

    def unreadable(self, digests: Digests) -> str:
        """What is wrong with the first thing that it, or a stage it is made of, names and that cannot be opened; ""
        if nothing is."""
        named = ((name, _items_of(config)) for config in self.configs for name in references(config))
        here = next((problem for name, task in named if (problem := digests.of(name, task).problem)), "")
        return here or next((problem for parent in self.parents if (problem := parent.unreadable(digests))), "")

    def files(self, digests: Digests) -> Stats:
        """The user's files that it reads, those of its parents with them, as they are now."""
        found: Stats = {}
        for config in self.configs:
            for named in references(config):
                found |= digests.of(named, _items_of(config)).files
        for parent in self.parents:
            found |= parent.files(digests)
        return found

    def to_json(self) -> dict[str, Any]:
        """As JSON values; ``stage_from_json`` makes the same stage again."""
        return self.model_dump(mode="json", round_trip=True)


class PretrainStage(Stage):
    """Pretrain a config. ``start``: the run whose export of its first language is ``cell:start`` there."""

    format = PRETRAIN_FORMAT
    content = (DONE,)
    kind: Literal["pretrain"] = "pretrain"
    config: PretrainConfig
    start: PretrainStage | None = None

    @property
    def label(self) -> str:
        return f"pretrain {self.config.label}" + (f" seed {self.config.seed}" if self.config.seed else "")

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        return (self.config,)

    def settings(self, stage_keys: StageKeys) -> Any:
        """The weights' settings, the data, and the names that exports are found by; not how often it logs, say."""
        config = self.config
        names = OF_WEIGHTS | DATA - {"source", "language", "languages", "dictionary"}
        names |= {"parallel"} if config.objective.needing("pairs") else set()
        names |= {"dictionary"} if config.objective.needing("dictionary") else set()
        names |= {"checkpoints", "validation"} if config.checkpoints.select == "best" else set()
        found = {name: value for name, value in stage_keys.settings_of(config).items() if name in names}
        languages = [stage_keys.settings_of(language) for language in config.all_languages]
        return {**found, "objective": config.objective.identity(), "members": languages}


class AlignmentStage(Stage):
    """The alignment of the word embeddings of a run, which every pretrained cell has."""

    format = 4  # of probes/measures/words/alignment.py
    content = (RESULT,)
    kind: Literal["alignment"] = "alignment"
    pretrained: PretrainStage

    @property
    def label(self) -> str:
        return f"alignment of {short(self.pretrained)}"

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        return (self.pretrained.config.dictionary,)

    def settings(self, stage_keys: StageKeys) -> Any:
        """What counts as translations, which a run whose objective reads no dictionary need not depend on."""
        return stage_keys.digest(self.pretrained.config.dictionary)


class ModelStage(Stage):
    """Work with a model: one of the study, or one of a name."""

    config: Any
    model: Any

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        return self.config, *((_NamedModel(model=self.model),) if isinstance(self.model, str) else ())


class AdjustStage(ModelStage):
    """Adjust a model.

    What an aligner finds differs from run to run, so of the links it makes the key has the text that it reads.
    """

    format = ADJUST_FORMAT
    content = (DONE,)
    kind: Literal["adjust"] = "adjust"
    config: AdjustConfig
    model: PretrainStage | str

    @property
    def label(self) -> str:
        return f"adjust {short(self.model)} by {'+'.join(self.config.texts)}"

    def settings(self, stage_keys: StageKeys) -> Any:
        names = OF_ADJUSTMENT | {"pairs"}
        found = {name: value for name, value in stage_keys.settings_of(self.config).items() if name in names}
        # the names of derived languages choose the tokenizers
        spoken = [[pair.left.name, pair.right.name] for pair in self.config.texts.values() if pair.kind == "derived"]
        return {**found, "model": stage_keys.model_digest(self.model), "names": spoken}


Untuned = Annotated[PretrainStage | AdjustStage, Field(discriminator="kind")] | str


def holds_original(config: TransferConfig, model: Untuned) -> bool:
    """Whether continual learning holds the words of an adjusted model where they were before the adjustment."""
    if config.aligning is None or config.aligning.before not in (None, MODEL):
        return False
    return adjusted_from(model) is not None if isinstance(model, str) else isinstance(model, AdjustStage)


def transferred(config: TransferConfig, model: Untuned, seed: int, stage_keys: StageKeys) -> list[Any]:
    """What a fit of a model and its tests depend on besides the parents."""
    found: list[Any] = [stage_keys.digest(config), seed, stage_keys.model_digest(model)]
    found += ["original"] if holds_original(config, model) else []
    return [*found, *plugins.parts("tasks", [config.task]).values()]


class TuneStage(ModelStage):
    """Fine-tune the body of a model on the source language of a task, for probes to read.

    config   only what that depends on (``TransferConfig.of_source``), so that cells of other target languages share it
    """

    format = TRANSFER_FORMAT
    content = (DONE,)
    kind: Literal["tune"] = "tune"
    config: TransferConfig
    model: Untuned
    seed: int

    @property
    def label(self) -> str:
        return f"tune {short(self.model)} on {_task(self.config)} seed {self.seed}"

    def settings(self, stage_keys: StageKeys) -> Any:
        return transferred(self.config, self.model, self.seed, stage_keys)


class ProbeStage(ModelStage):
    """Probe a model, or two."""

    format = PROBE_FORMAT
    content = (PROBES,)
    kind: Literal["probe"] = "probe"
    config: ProbeConfig
    model: Annotated[PretrainStage | AdjustStage | TuneStage, Field(discriminator="kind")] | str
    second: PretrainStage | None = None
    name: str

    @property
    def label(self) -> str:
        return f"probe {self.name} of {short(self.model)}"

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        return *super().configs, *(run.config.dictionary for run in self._words_of)

    @property
    def _words_of(self) -> tuple[PretrainStage, ...]:
        """The run that a probe takes from which words are translations, and if it is of the run itself its
        checkpoints."""
        config, run = self.config, origin(self.model)
        reads = "words" in config.probes and config.words.dictionary is None and config.model2 is None
        return (run,) if reads and isinstance(run, PretrainStage) else ()

    def settings(self, stage_keys: StageKeys) -> Any:
        found: list[Any] = [stage_keys.digest(self.config), stage_keys.model_digest(self.model)]
        for run in self._words_of:  # what runs with one key need not have in common
            of_steps = self.config.words.checkpoints and run is self.model
            steps = kept_steps(run.config.checkpoints, run.config.steps) if of_steps else None
            found += [stage_keys.digest(run.config.dictionary), None if steps is None else list(steps)]
        return [*found, *plugins.parts("probes", self.config.probes).values()]


class TransferStage(ModelStage):
    """Transfer of a model, or of two, for one seed."""

    format = TRANSFER_FORMAT
    content = (RESULT, PREDICTIONS)
    kind: Literal["transfer"] = "transfer"
    config: TransferConfig
    model: Untuned
    second: PretrainStage | None = None
    name: str
    seed: int

    @property
    def label(self) -> str:
        return f"{self.name} seed {self.seed} of {short(self.model)}"

    def settings(self, stage_keys: StageKeys) -> Any:
        return transferred(self.config, self.model, self.seed, stage_keys)


KINDS: dict[str, type[Stage]] = {
    kind.model_fields["kind"].default: kind
    for kind in (PretrainStage, AdjustStage, TuneStage, AlignmentStage, ProbeStage, TransferStage)
}
RUNS = {"start": "pretrain", "pretrain": "pretrain", "second": "pretrain", "adjust": "adjust", "tuned": "tune"}
"""Stages of a cell that hold weights, parents first, and the kind of their folders; a fine-tuned model, too, is a run
here."""
S = TypeVar("S", bound=Stage)


def stage_from_json(data: Any) -> Stage:
    return KINDS[data["kind"]].model_validate(data)


def origin(model: Stage | str) -> PretrainStage | str:
    """What a model is an adjustment, or was fine-tuned, of; itself if it is neither."""
    if isinstance(model, AdjustStage | TuneStage):
        return origin(model.model)
    assert isinstance(model, PretrainStage | str), "nothing else is a model"
    return model


def short(model: Stage | str) -> str:
    if isinstance(model, TuneStage):
        return f"{short(model.model)} tuned on {_task(model.config)}"
    if isinstance(model, AdjustStage):
        return f"{short(model.model)} adjusted"
    return Path(model).name if isinstance(model, str) else model.label.removeprefix("pretrain ")


def _items_of(config: pydantic.BaseModel) -> str | None:
    """The task that items which a config names are of."""
    return config.task if isinstance(config, TransferConfig) else None


def _task(config: TransferConfig) -> str:
    return config.task if config.continual is None else f"{config.task}+continual"


# --- keys ---


class StageKeys:
    """The keys of stages, and what stands in them for settings; each config is looked at once, whoever shares it.

    With ``digests`` what is named counts by its content. Without, nothing is looked at, and another spelling of a
    source or a file counts as another one.
    """

    def __init__(self, digests: Digests | None = None) -> None:
        self.digests = digests
        # with the object itself, so that no other one gets its place in memory
        self._known: dict[int, tuple[pydantic.BaseModel, str]] = {}
        self._keyed: dict[tuple[Any, ...], tuple[Stage, Stage]] = {}

    def settings_of(self, config: pydantic.BaseModel) -> dict[str, Any]:
        """The settings as JSON, what is named by its digest."""
        task = _items_of(config)

        def said(named: Named) -> str:
            if self.digests is not None:
                return self.digests.of(named, task).digest
            return named.name.fingerprint if isinstance(named.name, Language) else str(named.name)

        return resolved(config, said)

    def digest(self, config: pydantic.BaseModel) -> str:
        """The fingerprint of the settings of a config."""
        if id(config) not in self._known:
            self._known[id(config)] = config, fingerprint("settings", settings=self.settings_of(config))
        return self._known[id(config)][1]

    def model_digest(self, model: Stage | str) -> str | None:
        """The digest of a model that is named; None for a stage, which is a parent."""
        return None if isinstance(model, Stage) else self.digest(_NamedModel(model=model))

    def key(self, stage: Stage) -> str:
        """The key of a stage whose parents have theirs."""
        formats = [FORMAT, stage.format, *OF_DATA]
        parents = [parent.key for parent in stage.parents]
        return fingerprint(stage.kind, formats=formats, settings=stage.settings(self), parents=parents)

    def keyed(self, stage: S) -> S:
        """A stage whose parents have their keys, with its own; the same object for stages of the same objects."""
        made_of = type(stage), *(id(v) if isinstance(v, pydantic.BaseModel) else v for _, v in stage)
        if made_of not in self._keyed:
            self._keyed[made_of] = stage, stage.model_copy(update={"key": self.key(stage)})
        return cast(S, self._keyed[made_of][1])


def _is_as_keyed(stage: Stage, stage_keys: StageKeys) -> bool:
    """Whether what is named has the content that it had when the stage, and those it is made of, got their keys."""
    return stage_keys.key(stage) == stage.key and all(_is_as_keyed(parent, stage_keys) for parent in stage.parents)
