"""A stage of a study: one piece of work, its key, its check, and its form in JSON.

A stage is a folder ``<kind>-<key>`` of the store. Its key is the fingerprint of everything that its content depends on:
the settings, with the content hash of each reference in the place of its name, the keys of the stages that it reads,
and the formats of the code. Equal work has one key, whichever cell needs it, and changed work has another key.

    pretrain, adjust       the folder of a run
    tune                   done.json and export/, as in a run: a fine-tuned body without its head
    alignment, transfer    result.json, and for a transfer also predictions.parquet
    probe                  probes.json, figures/, probes.html
    parse                  result.json
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import pydantic

from probes.stages.content_hashes import ContentHash, ContentHashes, FileStats
from probes.transfer.config import TransferConfig
from synthlang import language as languages
from synthlang import shards, vocabulary
from synthlang.config import StrictModel
from synthlang.dictionary import ids, word_dictionary
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.language import Language
from synthlang.parallel import aligners
from synthlang.references import ModelName, Named, references, resolved
from synthlang.store import Store
from synthlang.vocabularies import extension, space

if TYPE_CHECKING:  # with torch, which a finished study does without
    from probes.models.pretrained import Role

FORMAT = 2  # increase if equal settings give other content and no format of the kind changes
DATA_FORMATS = tuple(
    module.FORMAT for module in (languages, shards, vocabulary, space, extension, ids, word_dictionary, aligners)
)
"""Formats of the code that makes the training data of models."""
DONE, RESULT, PREDICTIONS, PROBES = "done.json", "result.json", "predictions.parquet", "probes.json"
"""Names of files in the folders of stages."""


class Stage(StrictModel):
    """One piece of work. A stage contains the stages that it reads, so its content depends on nothing else.

    A subclass has the settings that its key depends on (``settings``), a check that needs no earlier stage (``check``)
    and the work itself (``run``). Only ``check`` and ``run`` may load torch.

    Attributes:
        kind: Kind of the stage, with which the name of its folder begins.
        key: Key of the stage, or "" before ``StageKeys.keyed`` has set it.
    """

    format: ClassVar[int]
    """Format of the code that makes the stage."""
    content: ClassVar[tuple[str, ...]]
    """Files of a finished stage. The first one is written last."""
    kind: str
    key: str = ""

    @property
    def parents(self) -> tuple[Stage, ...]:
        """The stages that must be finished first."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return tuple(value for value in values if isinstance(value, Stage))

    @property
    def label(self) -> str:
        """Name of the stage in progress and logs."""
        raise NotImplementedError

    @property
    def short(self) -> str:
        """Name of the model that the stage makes, in labels and results."""
        return self.label.removeprefix("pretrain ")

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        """Configs whose references are input of the stage, without the configs of its parents."""
        raise NotImplementedError

    def settings(self, keys: StageKeys) -> Any:
        """Return everything that the content depends on except the parents, as JSON values."""
        raise NotImplementedError

    def check(self, inputs: Any) -> None:
        """Raise InputError, with keys relative to the config of the stage, if the stage cannot run.

        The parents need not be done, because the settings of a model that the study will make are known. ``inputs``
        are the ``Inputs`` of the study.
        """
        raise NotImplementedError

    def run(self, making: Any) -> None:
        """Make the stage, or continue it. Its parents must be finished. ``making`` is a ``Making``."""
        raise NotImplementedError

    def finetune_keys(self, keys: StageKeys) -> dict[Role, str]:  # noqa: ARG002
        """Return the keys of the fine-tunings of the stage: language of training (``source`` or ``target``) → key.

        The result is empty for a kind of stage without fine-tuning.
        """
        return {}

    def reread(self, store: Store) -> Stage:
        """Return the same stage, with the languages in its config read from their files again.

        Raises:
            InputError: The content of a reference has changed since the key of the stage was computed, or the table of
                content hashes in the store cannot be read.
        """
        reread = type(self).model_validate(self.to_json())
        if not _is_as_keyed(reread, StageKeys(ContentHashes(store))):
            reason = f"a file that {self.label} reads has changed since the command was started"
            raise InputError(reason, hint="run the same command again", code="changed")
        return reread

    def contents(self, hashes: ContentHashes) -> Iterator[ContentHash]:
        """Yield the content hash of everything that the stage and its ancestors refer to."""
        for config in self.configs:
            for named in references(config):
                yield hashes.of(named, task_of_items(config))
        for parent in self.parents:
            yield from parent.contents(hashes)

    def files(self, hashes: ContentHashes) -> FileStats:
        """Return sizes and times of change of the user's files that the stage and its ancestors read."""
        return {path: state for content in self.contents(hashes) for path, state in content.files.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the stage as JSON values, from which ``kinds.stage_from_json`` makes the same stage."""
        return self.model_dump(mode="json", round_trip=True)


class NamedModel(StrictModel):
    """The name of a model that is not a stage of the study."""

    model: ModelName


class ModelStage(Stage):
    """A stage that works on a model: a stage of the study, or any model by its name.

    Attributes:
        config: Settings of the work. Each kind of stage has its own class of settings.
        model: The stage that makes the model, or the name of the model.
    """

    config: Any
    model: Any

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        return self.config, *((NamedModel(model=self.model),) if isinstance(self.model, str) else ())


S = TypeVar("S", bound=Stage)


def short(model: Stage | str) -> str:
    """Return the name of a model in labels and results."""
    return Path(model).name if isinstance(model, str) else model.short


def task_of_items(config: pydantic.BaseModel) -> str | None:
    """Return the task whose items a config refers to, or None for a config without items."""
    return config.task if isinstance(config, TransferConfig) else None


# --- keys ---


class StageKeys:
    """Computation of the keys of stages. Each config is hashed once, however many stages share it.

    With ``hashes``, a key covers the content of references. Without ``hashes``, no file is opened and a key covers the
    names of references, so two spellings of one file give two keys.
    """

    def __init__(self, hashes: ContentHashes | None = None) -> None:
        self.hashes = hashes
        # The object itself is kept, so that no other object gets its id.
        self._known: dict[int, tuple[pydantic.BaseModel, str]] = {}
        self._keyed: dict[tuple[Any, ...], tuple[Stage, Stage]] = {}
        self._fits: dict[tuple[int, Role], tuple[TransferConfig, TransferConfig]] = {}

    def settings_of(self, config: pydantic.BaseModel) -> dict[str, Any]:
        """Return the settings of a config as JSON values, with content hashes in place of references."""
        task = task_of_items(config)

        def content(named: Named) -> str:
            if self.hashes is not None:
                return self.hashes.of(named, task).hash
            return named.name.fingerprint if isinstance(named.name, Language) else str(named.name)

        return resolved(config, content)

    def hash_of(self, config: pydantic.BaseModel) -> str:
        """Return the fingerprint of the settings of a config."""
        if id(config) not in self._known:
            self._known[id(config)] = config, fingerprint("settings", settings=self.settings_of(config))
        return self._known[id(config)][1]

    def of_fit(self, config: TransferConfig, trained: Role) -> TransferConfig:
        """Return ``config.of_fit(trained)``, the same object each time, so that it is hashed once."""
        if (id(config), trained) not in self._fits:
            self._fits[id(config), trained] = config, config.of_fit(trained)
        return self._fits[id(config), trained][1]

    def model_hash(self, model: Stage | str) -> str | None:
        """Return the hash of a named model, or None for a stage, whose key is covered as that of a parent."""
        return None if isinstance(model, Stage) else self.hash_of(NamedModel(model=model))

    def key(self, stage: Stage) -> str:
        """Return the key of a stage whose parents have their keys."""
        formats = [FORMAT, stage.format, *DATA_FORMATS]
        parents = [parent.key for parent in stage.parents]
        return fingerprint(stage.kind, formats=formats, settings=stage.settings(self), parents=parents)

    def keyed(self, stage: S) -> S:
        """Return a copy of a stage with its key set. Its parents must already have their keys.

        Stages that are made of the same objects share one copy.
        """
        made_of = type(stage), *(id(v) if isinstance(v, pydantic.BaseModel) else v for _, v in stage)
        if made_of not in self._keyed:
            self._keyed[made_of] = stage, stage.model_copy(update={"key": self.key(stage)})
        return cast(S, self._keyed[made_of][1])


def _is_as_keyed(stage: Stage, keys: StageKeys) -> bool:
    """Return whether a stage and its ancestors would get the same keys again."""
    return keys.key(stage) == stage.key and all(_is_as_keyed(parent, keys) for parent in stage.parents)
