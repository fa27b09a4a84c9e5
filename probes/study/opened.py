"""What the checks of cells look up, each once: texts, models and their sizes, files, aligners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pretrain.config import PretrainConfig
from probes.measures import ProbeConfig
from probes.study.cell import MODEL, SECOND, Cell, Reach, reach_of
from probes.study.inputs import named_in
from probes.study.models import reach_of_model
from probes.transfer.config import TransferConfig
from probes.transfer.model_names import derived_numbers, model_path
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.language import check_source
from synthlang.parallel.aligners import find_aligner
from synthlang.parallel.pairs import AlignerLinks, DerivedPair, TextPair, count_text
from synthlang.parallel.prepare import DataConfig, check_left
from synthlang.sources import open_source
from synthlang.sources.base import Source


class Opened:
    """Texts and models that cells name."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._models: dict[str, Reach | None] = {}
        self._pairs: dict[str, int | None] = {}

    def source(self, spec: str) -> Source:
        """The text of a spec; InputError for what cannot be read."""
        if spec not in self._sources:
            self._sources[spec] = open_source(spec)
        return self._sources[spec]

    def reach(self, model: str | None, cell: Cell | None = None) -> Reach | None:
        """What is known of a model by its name, or of one of the ``cell``'s own; None where nothing is."""
        if cell is not None and model == MODEL:
            return self.reach(cell.model) if cell.pretrain is None else self._of_run(cell.pretrain, cell.start)
        if cell is not None and model == SECOND:
            return None if cell.second is None else self._of_run(cell.second, None)
        if model is not None and model not in self._models:
            self._models[model] = reach_of_model(model)
        return None if model is None else self._models[model]

    def _of_run(self, run: PretrainConfig, start: PretrainConfig | None) -> Reach | None:
        known = reach_of(run, start)
        return self.reach(run.start.model) if known is None and run.start and start is None else known

    def length(self, cell: Cell) -> int | None:
        """How many tokens the cell's model reads, as far as that is known."""
        reach = self.reach(MODEL, cell)
        return None if reach is None else reach.positions

    def check_pairs(self, pairs: Iterable[TextPair | DerivedPair | None]) -> None:
        """Raise InputError for sentence pairs whose text or aligner is not there."""
        for pair in pairs:
            if isinstance(pair, DerivedPair):
                for language in (pair.left, pair.right):
                    check_source(language, self.source(pair.source), pair.source)
            elif pair is not None and isinstance(pair.links, AlignerLinks):
                find_aligner(pair.links.program)

    def check_texts(
        self, where: str, pairs: Mapping[str, TextPair | DerivedPair | None], data: DataConfig | None = None
    ) -> None:
        """Raise InputError for files of pairs that do not fit; with ``data``, if it leaves no pair to train on."""
        for name, pair in pairs.items():
            if not isinstance(pair, TextPair):
                continue
            key = pair.model_dump_json()
            if key not in self._pairs:
                try:
                    self._pairs[key] = count_text(pair)
                except InputError as error:
                    raise InputError(f"{where}.{name}: {error}") from error
            if data is not None and (count := self._pairs[key]) is not None:
                check_left(f"{where}.{name}", data.held_out(count)[0], count, data)


def check_constructed(where: str, language: str | None, natural: bool, cell: Cell, known: bool) -> None:
    """Raise InputError where sentence pairs have to be named, since none are aligned by construction.

    natural   whether the target has sentences of its own
    """
    if not known:
        raise InputError(f"{where}: the text of a model of Hugging Face is not known: name sentence pairs")
    if cell.pretrain is not None and cell.second is not None:
        first, other = cell.pretrain.all_languages[0], cell.second.all_languages[0]
        natural |= other.name == language and other.source != first.source
    elif cell.pretrain is not None and not natural:
        names = [member.name for member in cell.pretrain.all_languages]
        if language == names[0]:
            raise InputError(f"{where}: {language} is the source language itself: there is nothing to align")
        natural = language in names and language not in derived_numbers(cell.pretrain)
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
