"""What the checks of cells look up, each once: texts, models and their sizes, files, aligners."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pretrain.adjust.pairs import AlignerLinks, DerivedPair, TextPair
from probes.measure.config import ProbeConfig
from probes.study.cell import MODEL, SECOND, Cell, positions_of
from probes.study.inputs import named_in
from probes.study.models import positions_of_model
from probes.transfer.config import TransferConfig
from probes.transfer.model_names import derived_members, model_path
from synthlang.alignments.aligner import find_aligner
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.language import check_source
from synthlang.sources import open_source
from synthlang.sources.base import Source


class Opened:
    """Texts and models that cells name."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._models: dict[str, int | None] = {}

    def source(self, spec: str) -> Source:
        """The text of a spec; InputError for what cannot be read."""
        if spec not in self._sources:
            self._sources[spec] = open_source(spec)
        return self._sources[spec]

    def positions(self, model: str | None) -> int | None:
        """How many tokens a checkpoint reads, by its name; None where that is not known."""
        if model is not None and model not in self._models:
            self._models[model] = positions_of_model(model)
        return None if model is None else self._models[model]

    def length(self, cell: Cell) -> int | None:
        """How many tokens the cell's models read, as far as that is known."""
        run = cell.pretrain
        if run is None:
            return self.positions(cell.model)
        known = positions_of(run, cell.start)
        return self.positions(run.start.model) if known is None and run.start and cell.start is None else known

    def check_pairs(self, pairs: Iterable[TextPair | DerivedPair | None]) -> None:
        """Raise InputError for sentence pairs whose text or aligner is not there."""
        for pair in pairs:
            if isinstance(pair, DerivedPair):
                for language in (pair.left, pair.right):
                    check_source(language, self.source(pair.source), pair.source)
            elif pair is not None and isinstance(pair.links, AlignerLinks):
                find_aligner(pair.links.program)


def check_constructed(where: str, language: str | None, natural: bool, cell: Cell, known: bool) -> None:
    """Raise InputError where sentence pairs have to be named, since none are aligned by construction.

    natural   whether the target has sentences of its own
    """
    if not known:
        raise InputError(f"{where}: the text of a model of Hugging Face is not known: name sentence pairs")
    if cell.pretrain is not None and cell.second is not None:
        first, other = cell.pretrain.members[0], cell.second.members[0]
        natural |= other.name == language and other.source != first.source
    elif cell.pretrain is not None and not natural:
        names = [member.name for member in cell.pretrain.members]
        if language == names[0]:
            raise InputError(f"{where}: {language} is the source language itself: there is nothing to align")
        natural = language in names and language not in derived_members(cell.pretrain)
    if natural:
        raise InputError(f"{where}: {language} is not derived from the source language: name sentence pairs")


def check_files(config: Any) -> None:
    """Raise InputError for a file that a config names and that is not there."""
    for named in named_in(config):
        if named.kind == "file" and not user_path(str(named.name)).exists():
            raise InputError(f"{'.'.join(named.place)}: no such file {named.name}")


def check_models(config: TransferConfig | ProbeConfig, cell: Cell) -> None:
    """Raise InputError for a second model that the cell does not have, and for a folder that is not there."""
    for named in named_in(config):
        if named.kind == "model" and named.name == SECOND and cell.second is None:
            raise InputError(f"{'.'.join(named.place)}: the cell has no second model")
        if named.kind == "model" and named.name not in (MODEL, SECOND):
            model_path(str(named.name))
