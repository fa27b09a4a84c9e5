"""Requirements of the studies of the catalogue: models, tokens, time, disk and data, computed from their settings.

Each study is computed as if its store were empty, so no stage is shared with another study. The result does not depend
on the working folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from probes.stages.base import StageKeys
from probes.study.cells import load_study
from probes.study.checks import inputs_of
from probes.study.cost import NOUNS, StageCost, stage_costs
from probes.study.devices import KNOWN_GPU, Device, gpu, processor
from probes.study.graph import graph
from synthlang.catalogue import SIZES, TINY, names
from synthlang.data.entries import ROOT, entry, names_of, places
from synthlang.data.entries import names as data_sets
from synthlang.data.state import Item, items

HOUR = 3600.0
CORES = 2
"""Number of cores for which the time of a study at ``tiny`` is estimated."""


@dataclass(frozen=True)
class Measured:
    """The measured time of a whole study.

    Attributes:
        hours: Hours from start to end.
        on: The device.
    """

    hours: float
    on: str


EPYC = "two cores of an AMD EPYC with AVX-512"
MEASURED = {
    "align_mlm-trans+inv/lab": Measured(16 / 60, "one NVIDIA H200 with 16 CPU cores, --workers 4"),
    "align_mlm-grid-treebank/tiny": Measured(230 / 60, EPYC),
    "dose-dictionary/tiny": Measured(32 / 60, EPYC),
    "dose-inv/tiny": Measured(34 / 60, EPYC),
    "emerging-figure5/tiny": Measured(190 / 60, EPYC),
    "fine-tuning/tiny": Measured(13 / 60, EPYC),
    "impact-table3/tiny": Measured(46 / 60, EPYC),
    "impact-table6/tiny": Measured(40 / 60, EPYC),
}
"""Measured times of studies, each run as a whole with all of its seeds."""


@dataclass(frozen=True)
class Requirements:
    """The requirements of a study at a size.

    Attributes:
        name: Name of the study in the catalogue, ``STUDY/SIZE``.
        stages: Kind of a stage → number of stages. A ``fit`` is a fine-tuning.
        costs: The costs of the stages that read tokens or keep weights.
        data: The data sets, each with its source at the size.
    """

    name: str
    stages: Counter[str]
    costs: tuple[StageCost, ...]
    data: tuple[Item, ...]

    @property
    def size(self) -> str:
        """The size of the study."""
        return self.name.rpartition("/")[2]

    @property
    def device(self) -> Device:
        """The device of the estimate: two cores at ``tiny``, else one GPU whose rate was measured."""
        return processor(CORES) if self.size == TINY else gpu(KNOWN_GPU)

    @property
    def hours(self) -> float:
        """Estimated hours of pretraining, adjustment and fine-tuning on the device.

        Stages whose operations are not known are left out.
        """
        return sum(self.device.seconds(one.flops, one.precision, one.width) for one in self.costs) / HOUR

    @property
    def is_complete(self) -> bool:
        """True if the operations of all stages that read tokens are known, so that ``hours`` covers all of them."""
        return not any(one.kind in NOUNS and not one.flops for one in self.costs)

    @property
    def tokens(self) -> int:
        """Number of tokens that models read, as far as it is known."""
        return sum(one.tokens or 0 for one in self.costs)

    @property
    def disk(self) -> int:
        """Bytes of the kept checkpoints and exported models, as far as they are known."""
        return sum(one.disk or 0 for one in self.costs)

    @property
    def measured(self) -> Measured | None:
        """The measured time, or None if the whole study was not measured."""
        return MEASURED.get(self.name)


def requirements(size: str) -> Iterator[Requirements]:
    """Yield the requirements of all studies of the catalogue that have a size, in the order of the catalogue.

    The working folder is a temporary folder until the generator ends.

    Args:
        size: ``paper``, ``lab`` or ``tiny``.
    """
    assert size in SIZES, size
    with _placeholders():
        for name in names("studies"):
            if name.endswith(f"/{size}"):
                yield _of_study(name)


def requirements_of(name: str) -> Requirements:
    """Return the requirements of a study of the catalogue, ``STUDY/SIZE``.

    Raises:
        InputError: The catalogue has no such study.
    """
    with _placeholders():
        return _of_study(name)


def _of_study(name: str) -> Requirements:
    study, cells = load_study(Path(name), [])
    size = name.rpartition("/")[2]
    keys = StageKeys()
    stages = graph(cells, study.seeds, keys).stages.values()
    costs = tuple(stage_costs(list(stages), keys, size))
    counts = Counter(stage.kind for stage in stages) | Counter(fit=sum(cost.kind == "fit" for cost in costs))
    return Requirements(name, counts, costs, tuple(items(names_of(inputs_of(cells)), Path(ROOT), size)))


@contextmanager
def _placeholders() -> Iterator[None]:
    """Work in an empty folder with a placeholder file for each dictionary of the catalogue.

    A dictionary is part of a language, so the language cannot be built without the file.
    """
    with TemporaryDirectory() as folder, chdir(folder):
        for name in data_sets():
            if entry(name).layout == "dictionary":
                for place in places(name):
                    path = Path(ROOT, place)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text("word mot\n", encoding="utf-8")
        yield
