"""Everything that stages read, for the checks before any stage runs.

Each text is opened once and nothing is trained. A model that the study will make is known by its settings.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache, cached_property, partial
from typing import Any

import pydantic

from pretrain.config import PretrainConfig
from probes.models.names import (
    CellModel,
    ModelLimits,
    derived_numbers,
    is_run,
    limits_of_model,
    model_path,
    run_config,
)
from probes.stages.base import ModelStage, Stage, StageKeys
from probes.stages.pretrain import PretrainStage, root_of
from probes.transfer.config import TransferConfig
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.language import Language, check_source
from synthlang.parallel.aligners import find_aligner
from synthlang.parallel.pairs import AlignerLinks, DerivedPair, TextPair, count_text
from synthlang.parallel.prepare import DataConfig, check_left
from synthlang.parsing import open_engine
from synthlang.references import references
from synthlang.sources import open_source

Pairs = Mapping[str, TextPair | DerivedPair | None]


class Inputs:
    """The texts, models and sentence pairs that stages read, each opened once, and the errors that were found."""

    def __init__(self) -> None:
        self.source = cache(open_source)
        self.limits = cache(limits_of_model)
        self.keys = StageKeys()
        self._checked: dict[Hashable, InputError | None] = {}
        self._counts: dict[str, int | None] = {}

    def once(self, key: Hashable, check: Callable[[], None]) -> None:
        """Run a check, or raise the error again that it raised for the same key."""
        if key not in self._checked:
            try:
                check()
                self._checked[key] = None
            except InputError as error:
                self._checked[key] = error
        if (known := self._checked[key]) is not None:
            raise known

    def models(self, stage: ModelStage) -> KnownModels:
        """Return the known facts about the models of a stage."""
        return KnownModels(stage, self)

    def identity(self, part: Any) -> Hashable:
        """Return what distinguishes a stage, or a part of it, for a check: all settings, without seeds and names."""
        if isinstance(part, Stage):
            fields = (name for name in type(part).model_fields if name not in ("key", "name", "seed"))
            return (part.kind, *(self.identity(getattr(part, name)) for name in fields))
        return self.keys.hash_of(part) if isinstance(part, pydantic.BaseModel) else part

    # --- what a config refers to; keys are relative to the config ---

    def check_references(self, config: pydantic.BaseModel, has_target_model: bool = False) -> None:
        """Raise InputError for a file or a model that is not there, and for a model that the cell does not have."""
        for named in references(config):
            if named.kind == "file" and not user_path(str(named.name)).exists():
                raise InputError(f"no such file: {named.name}", keys=named.place, code="missing")
            if named.kind != "model":
                continue
            model = CellModel.of(named.name)
            if model is CellModel.TARGET and not has_target_model:
                raise InputError("the cell has no second model", keys=named.place, code="missing")
            if model is CellModel.INIT and named.place[0] != "start":
                reason = "the model that a run is initialised from is read by that run only"
                hint = f"name {CellModel.ORIGINAL} or {CellModel.ADJUSTED}"
                raise InputError(reason, keys=named.place, hint=hint, code="conflict")
            if model is None:
                with_keys(partial(model_path, str(named.name)), *named.place)

    def check_source(self, language: Language, source: str, *keys: str) -> None:
        """Raise InputError for a source that cannot be opened or lacks a column that the language reads."""
        with_keys(lambda: check_source(language, self.source(source), source), *keys, "source")

    def check_parser(self, parser: str | None, *keys: str) -> None:
        """Raise InputError for a parser that cannot be opened."""
        if parser is not None:
            with_keys(lambda: open_engine(parser), *keys, "parser")

    def check_pairs(self, pairs: Pairs, data: DataConfig | None) -> None:
        """Raise InputError for sentence pairs whose text or aligner is not there.

        Args:
            pairs: Sentence pairs by name, of the section ``pairs``.
            data: Choice of the sentence pairs. None if nothing is fitted on them, so that none has to be left.
        """
        for name, pair in pairs.items():
            if pair is not None:
                with_keys(partial(self._open_pair, pair), "pairs", name)
            if isinstance(pair, TextPair) and data is not None:
                count = self._counts[pair.model_dump_json()]
                if count is not None:
                    check_left(name, data.held_out(count)[0], count, data)

    def _open_pair(self, pair: TextPair | DerivedPair) -> None:
        if isinstance(pair, DerivedPair):
            for language in (pair.left, pair.right):
                check_source(language, self.source(pair.source), pair.source)
            return
        if isinstance(pair.links, AlignerLinks):
            find_aligner(pair.links.program)
        key = pair.model_dump_json()
        if key not in self._counts:
            self._counts[key] = count_text(pair)


class KnownModels:
    """Models of a stage before they are made.

    Attributes:
        root: The model before adjustment and fine-tuning: a run of the study, or the name of a model.
        target: The second model of the cell, if there is one.
    """

    def __init__(self, stage: ModelStage, inputs: Inputs) -> None:
        self._inputs = inputs
        self.root = root_of(stage.model)
        self.target: PretrainStage | None = getattr(stage, "target_model", None)
        self.identity = inputs.identity(stage.model), inputs.identity(self.target)

    @cached_property
    def run(self) -> PretrainConfig | None:
        """Settings of the pretraining run, or None for another model."""
        return self.root.config if isinstance(self.root, PretrainStage) else run_config(self.root)

    @property
    def is_run(self) -> bool:
        """True if the model is, or is made of, a pretraining run."""
        return isinstance(self.root, PretrainStage) or is_run(model_path(self.root))

    @property
    def text(self) -> str | None:
        """Spec of the pretraining text, or None if it is not known."""
        return None if self.run is None else self.run.all_languages[0].source

    def limits(self, model: str | None = CellModel.ORIGINAL) -> ModelLimits | None:
        """Return the size of a model by its name, or None if it is not known."""
        found: PretrainStage | str | None = model
        if model == CellModel.TARGET:
            found = self.target
        elif model in (CellModel.ORIGINAL, CellModel.ADJUSTED):
            found = self.root
        if isinstance(found, PretrainStage):
            return found.limits(self._inputs.limits)
        return None if found is None else self._inputs.limits(found)

    def all_limits(self, *models: str | None) -> list[ModelLimits]:
        """Return the sizes of those models whose size is known."""
        return [limits for limits in map(self.limits, models) if limits is not None]

    def length(self, config: TransferConfig) -> int:
        """Return how many tokens the models of a transfer read at once, as far as that is known."""
        from probes.transfer.tasks.base import READS  # with torch

        known = self.all_limits(CellModel.ORIGINAL, config.target_model)
        return min((limits.positions for limits in known), default=config.length or READS)

    def check_constructed(self, language: str | None, natural: bool) -> None:
        """Raise InputError where sentence pairs have to be named, since none are aligned by construction.

        Args:
            language: Name or spec of the target language.
            natural: True if the target language has sentences of its own.
        """
        from probes.models.aligned import check_constructed  # with torch

        same = False
        if isinstance(self.root, PretrainStage):
            run = self.root.config
            names = [member.name for member in run.all_languages]
            if self.target is not None:
                other = self.target.config.all_languages[0]
                natural |= other.name == language and other.source != run.all_languages[0].source
            elif not natural:
                same = language == names[0]
                natural = not same and language in names and language not in derived_numbers(run)
        check_constructed(language, self.is_run, natural, same)


def with_keys(call: Callable[[], Any], *keys: str) -> None:
    """Call a function, and place an error of it at ``keys``."""
    try:
        call()
    except InputError as error:
        raise error.inside(*keys) from error
