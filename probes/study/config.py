"""Config of a study: the settings of a cell, and a grid of changes to these settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator

from probes.claims.papers import read_claims, read_tables
from probes.results.curves import Threshold
from probes.study.axes import RENAMED
from probes.study.compare import comparisons
from probes.study.grid import GridConfig
from synthlang.config import StrictModel
from synthlang.errors import InputError, did_you_mean
from synthlang.files import safe_name, user_path
from synthlang.fingerprint import fingerprint
from synthlang.wording import first_few

FORMAT = 3  # increment when the same file gives other cells
Keep = Literal["checkpoints", "final", "results"]  # ordered from the policy that keeps most
LARGEST = 2**63 - 1  # a seed is a column of 64 bits in the tables
OF_RUNS = {"alignment": "the alignment of every run", "pretrain": "the perplexity of every run"}
"""Reserved name of a probe → the measures whose names begin with this name."""
Changes = dict[str, Any]
T = TypeVar("T")


class LearnedConfig(StrictModel):
    """Convergence criterion of models. A model that fails it is an excluded run: shown, but not averaged."""

    perplexity: float | None = Field(default=None, ge=1)
    """Maximum masked perplexity on the dev set of the source language (default: no limit)."""
    sup: float | dict[str, float] | None = None
    """Minimum of SUP and of the source-language score in percent: a number for all tasks, or task → number.

    The default is a tenth of the way from the majority baseline to 100.
    """

    def least(self, task: str) -> float | None:
        """Return the minimum score of a task in percent, or None if the config has none."""
        return self.sup.get(task) if isinstance(self.sup, dict) else self.sup


class StudyConfig(StrictModel):
    """Config of ``synthlang study``. Sections such as ``pretrain`` are mappings, which ``cells.expand`` checks."""

    renamed_keys: ClassVar[Mapping[str, str]] = RENAMED

    name: str
    """Name of the study. A study folder accepts only the study with this name."""
    title: str = ""
    """Title of the report (default: the name)."""
    scale: str = ""
    """Word for the size of the models and data, such as lab."""
    pool: str = ""
    """Name shared by studies of one scale that are tested together, with their seeds as replicates (default: name)."""
    paper: str | tuple[str, ...] | None = None
    """Tables of papers to compare with: PAPER/TABLE, or files."""
    claims: tuple[str, ...] = ()
    """Claims to test on the results: names, or files."""
    planned: int | dict[str, int] | None = None
    """Number of pretraining seeds that claims are judged on: one number for all claims, or claim id → number."""
    compare: list[dict[str, Any] | list[dict[str, Any]]] = Field(default_factory=list)
    """Comparisons of the report (default: each label of an axis with the first one).

    ``{marking: [case, none], order: free}`` is the difference case − none under the order free.
    ``{marking: [case, none], order: [free, fixed]}`` is an interaction: the difference case − none under free, minus
    the same difference under fixed. ``[{order: free, marking: case}, {order: fixed, marking: none}]`` is the difference
    of two conditions.
    """
    source: str = ""
    """Source of all pretrainings: init_from, pretrain and target_model (default: their own key source)."""
    init_from: Changes | None = None
    """Config of an earlier pretraining. pretrain starts from its export of the first language."""
    pretrain: Changes | None = None
    """Pretraining config. In each section, the key base names entries of the catalogue (KIND/NAME) or files."""
    target_model: Changes | None = None
    """Config of another pretraining, whose model reads the target language (two monolingual models)."""
    model: str | None = Field(default=None, min_length=1)
    """Model in place of pretrain: a name on Hugging Face, a folder, or a finished run."""
    adjust: Changes | None = None
    """Config of an adjustment of the model. Tasks and probes use the adjusted model."""
    finetuned: Changes | None = None
    """Fine-tuning before the probes, without effect on tasks: changes to transfer, and a seed (default: first seed)."""
    transfer: Changes = Field(default_factory=dict)
    """Transfer settings that all tasks share."""
    tasks: dict[str, Changes | None] | None = None
    """Tasks: name → changes to transfer. null removes a task (default: one task, transfer.task)."""
    probes: dict[str, Changes | None] = Field(default_factory=dict)
    """Probes: name → config of synthlang probe. null removes a probe."""
    seeds: list[int] = Field(default=[0], min_length=1)
    """Seeds of fine-tuning. The seed of pretraining is an axis: pretrain.seed."""
    learned: LearnedConfig | None = None
    """Convergence criterion of models (default: the defaults of its keys)."""
    thresholds: dict[str, Threshold] = Field(default_factory=dict)
    """Thresholds for the report: measure of a probe → ``{at_least: X}`` or ``{at_most: X}``.

    The table of curves has the steps to each threshold.
    """
    keep: Keep = "checkpoints"
    """Files of finished runs that gc keeps: all checkpoints, the final weights, or only the results."""
    grid: GridConfig = GridConfig()
    """Axes and cells (default: one cell)."""
    _content: str | None = PrivateAttr(default=None)

    @field_validator("name")
    @classmethod
    def _safe(cls, value: str) -> str:
        return safe_name(value, "study name")

    @field_validator("tasks", "probes")
    @classmethod
    def _plain_names(
        cls, value: dict[str, Changes | None] | None, info: ValidationInfo
    ) -> dict[str, Changes | None] | None:
        for name in value or ():
            check_part_name(str(info.field_name), name)
        return value

    @field_validator("compare")
    @classmethod
    def _compared(cls, value: list[Any]) -> list[Any]:
        comparisons(value)
        return value

    @field_validator("planned")
    @classmethod
    def _several_models(cls, value: int | dict[str, int] | None) -> int | dict[str, int] | None:
        for claim, models in value.items() if isinstance(value, dict) else [(None, value)]:
            if models is not None and models < 2:
                reason = f"must be at least 2, not {models}, because a claim is tested on several models"
                raise InputError(reason, keys=[claim] if claim else [], hint="plan more seeds", code="range")
        return value

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, value: list[int]) -> list[int]:
        for number, seed in enumerate(value):
            if not 0 <= seed <= LARGEST:
                raise InputError(f"must be from 0 to {LARGEST}, not {seed}", keys=[str(number)], code="range")
            if seed in value[:number]:
                hint = "write each seed once"
                raise InputError(f"repeats the seed {seed}", keys=[str(number)], hint=hint, code="duplicate")
        return value

    def contains(self, content: str) -> None:
        """Store ``content``, the hash of the names and settings of all cells, which covers ``base`` files."""
        self._content = content

    def beside(self, folder: Path) -> StudyConfig:
        """Return the study with absolute paths of papers and claims, so that the report finds the files later.

        Args:
            folder: Folder of the study file, where relative paths start.

        Raises:
            InputError: A paper, a table or a file of claims is missing or wrong, or ``planned`` names a claim that no
                file has.
        """
        _read("paper", self.papers, lambda name: read_tables(name, folder))
        known = [claim.id for claim in _read("claims", self.claims, lambda name: read_claims(name, folder))]
        for claim in self.planned if isinstance(self.planned, dict) else ():
            if claim not in known:
                choice = f"choose one of {first_few(known, 5)}" if known else "add the file of the claim to claims"
                hint = f"{did_you_mean(claim, known)}{choice}"
                raise InputError("is not a claim of this study", keys=["planned", claim], hint=hint, code="unknown")
        named = {"paper": tuple(_absolute(name, folder) for name in self.papers) or None}
        return self.model_copy(update={**named, "claims": tuple(_absolute(name, folder) for name in self.claims)})

    @property
    def papers(self) -> tuple[str, ...]:
        """The key ``paper`` as a tuple: the tables of papers to compare with."""
        return (self.paper,) if isinstance(self.paper, str) else self.paper or ()

    @property
    def fingerprint(self) -> str:
        """Hash of the name, the seeds, and the names and settings of all cells. It is known after ``contains``."""
        assert self._content is not None, "the cells are expanded first"
        return fingerprint("study", format=FORMAT, name=self.name, seeds=self.seeds, cells=self._content)


def check_part_name(root: str, name: str) -> None:
    """Raise InputError if a task or probe cannot have the name ``name``. ``root`` is ``tasks`` or ``probes``.

    The name must be a safe file name without a dot. Some names of probes are reserved (OF_RUNS).
    """
    safe_name(name, f"{root.removesuffix('s')} name")
    if "." in name:
        reason = f"the name {name!r} has a dot, which separates keys"
        raise InputError(reason, hint="choose a name without a dot", code="format")
    if root == "probes" and name in OF_RUNS:
        reason = f"the name {name!r} is reserved for {OF_RUNS[name]}"
        raise InputError(reason, hint="choose another name for the probe", code="conflict")


def _read(key: str, names: Iterable[str], read: Callable[[str], Iterable[T]]) -> list[T]:
    """Read the files that ``key`` names. An error without a place gets this key as its place."""
    try:
        return [one for name in names for one in read(name)]
    except InputError as error:
        if error.path is None and not error.keys:
            raise error.inside(key) from error
        raise


def _absolute(name: str, folder: Path) -> str:
    """Resolve the path of a YAML file (/TABLE) from ``folder``. Keep a built-in name (PAPER/TABLE)."""
    return str((folder / user_path(name)).resolve()) if ".yaml" in name or ".yml" in name else name
