"""Inputs of stages, for the checks before any stage runs.

Each text is opened once and nothing is trained. A model that the study will make is checked by its settings.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache, partial
from typing import Any

import pydantic

from probes.models.names import CellModel, limits_of_model, model_path
from probes.stages.base import Stage, StageKeys
from synthlang.errors import InputError
from synthlang.files import no_such, user_path
from synthlang.language import Language, checked_source
from synthlang.parallel.aligners import find_aligner
from synthlang.parallel.pairs import AlignerLinks, DerivedPair, TextPair, count_text, has_ready_alignment
from synthlang.parallel.prepare import DataConfig, check_left
from synthlang.parsing import open_engine
from synthlang.references import references
from synthlang.sources import open_source

Pairs = Mapping[str, TextPair | DerivedPair | None]


class Inputs:
    """The texts, models and sentence pairs that stages read, each opened once, and the results of earlier checks.

    Attributes:
        source: Function that opens a source by its spec. It opens each source once.
        limits: Function that returns the limits of a model by its name, or None if they are not known.
        keys: Keys of stages that cover the names of references, not their content.
    """

    def __init__(self) -> None:
        self.source = cache(open_source)
        self.limits = cache(limits_of_model)
        self.keys = StageKeys()
        self._checked: dict[Hashable, InputError | None] = {}
        self._counts: dict[str, int | None] = {}

    def once(self, key: Hashable, check: Callable[[], None]) -> None:
        """Run a check once for each key. If it raised an InputError, later calls with the key raise the error again."""
        if key not in self._checked:
            try:
                check()
                self._checked[key] = None
            except InputError as error:
                self._checked[key] = error
        if (known := self._checked[key]) is not None:
            raise known

    def identity(self, part: Any) -> Hashable:
        """Return a key of a stage that covers its settings without its name and seed, or the key of a part of a stage.

        A check has the same result for all stages with the same key.
        """
        if isinstance(part, Stage):
            fields = (name for name in type(part).model_fields if name not in ("key", "name", "seed"))
            return (part.kind, *(self.identity(getattr(part, name)) for name in fields))
        return self.keys.hash_of(part) if isinstance(part, pydantic.BaseModel) else part

    # --- checks of the references in a config; keys of errors are relative to the config ---

    def check_references(self, config: pydantic.BaseModel, has_target_model: bool = False) -> None:
        """Check the files and the models that a config names. A name on Hugging Face is not looked up.

        Args:
            config: The config.
            has_target_model: True if the cell has a second model.

        Raises:
            InputError: A file or model is missing, the config names the second model of a cell without one, or a config
                other than that of the pretraining names the initial model.
        """
        for named in references(config):
            if named.kind == "file" and not user_path(str(named.name)).exists():
                raise no_such(user_path(str(named.name)), keys=named.place)
            if named.kind != "model":
                continue
            model = CellModel.of(named.name)
            if model is CellModel.TARGET and not has_target_model:
                reason = f"{model} is the model of target_model, which the cell does not have"
                hint = "name another model, or set target_model"
                raise InputError(reason, keys=named.place, hint=hint, code="missing")
            if model is CellModel.INIT and named.place[0] != "start":
                reason = f"{model} is the model of init_from, which only the pretraining reads"
                hint = f"use {CellModel.ORIGINAL} or {CellModel.ADJUSTED}"
                raise InputError(reason, keys=named.place, hint=hint, code="conflict")
            if model is None:
                with_keys(partial(model_path, str(named.name)), *named.place)

    def check_source(self, language: Language, source: str, *keys: str) -> None:
        """Raise InputError for a source that cannot be opened or lacks a column that the language reads.

        ``keys`` precede the key ``source`` in the place of the error.
        """
        with_keys(lambda: checked_source(language, self.source(source), source), *keys, "source")

    def check_parser(self, parser: str | None, *keys: str) -> None:
        """Raise InputError for a parser that cannot be opened. None is no parser.

        ``keys`` precede the key ``parser`` in the place of the error.
        """
        if parser is not None:
            with_keys(lambda: open_engine(parser), *keys, "parser")

    def check_pairs(self, pairs: Pairs, data: DataConfig | None) -> None:
        """Raise InputError if a text, source or aligner of sentence pairs is missing or wrong, or no pairs are left.

        Args:
            pairs: Sentence pairs by name, from the section ``pairs``.
            data: Choice of the sentence pairs to fit on, or None if nothing is fitted on them.
        """
        for name, pair in pairs.items():
            if pair is not None:
                with_keys(partial(self._open_pair, pair), "pairs", name)
            if isinstance(pair, TextPair) and data is not None:
                count = self._counts[pair.model_dump_json()]
                if count is not None:
                    with_keys(partial(check_left, data.before_gap(count), count, data), "pairs", name)

    def _open_pair(self, pair: TextPair | DerivedPair) -> None:
        if isinstance(pair, DerivedPair):
            for language in (pair.left, pair.right):
                checked_source(language, self.source(pair.source), pair.source)
            return
        if isinstance(pair.links, AlignerLinks):
            try:
                find_aligner(pair.links.program)
            except InputError:
                if not has_ready_alignment(pair):
                    raise
        key = pair.model_dump_json()
        if key not in self._counts:
            self._counts[key] = count_text(pair)


def with_keys(call: Callable[[], Any], *keys: str) -> None:
    """Call a function, and put ``keys`` before the keys of an InputError that it raises."""
    try:
        call()
    except InputError as error:
        raise error.inside(*keys) from error
