"""The YAML of a study: settings of a cell, and a grid of changes to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from probes.claims.papers import read_claims, read_tables
from probes.study.axes import RENAMED
from probes.study.compare import comparisons
from probes.study.grid import GridConfig
from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.files import safe_name, user_path
from synthlang.fingerprint import fingerprint

FORMAT = 3  # raise when the same study has other cells
Keep = Literal["checkpoints", "final", "results"]  # from the policy that keeps most
LARGEST = 2**63 - 1  # a seed is a column of 64 bits in the tables
OF_RUNS = {"alignment": "the alignment of every run", "pretrain": "the perplexity of every run"}
"""Reserved names of probes, which begin the names of the measures that every run has."""
Changes = dict[str, Any]


class LearnedConfig(StrictModel):
    """Convergence criterion of a model. A model beyond a limit is an excluded run, which is shown but not averaged."""

    perplexity: float | None = Field(default=None, ge=1)
    """Maximum masked perplexity on the dev set of the source language."""
    sup: float | dict[str, float] | None = None
    """Minimum SUP and minimum score in the source language, in percent: of every task, or by task."""

    def least(self, task: str) -> float | None:
        """Return the minimum score of a task, or None without a limit."""
        return self.sup.get(task) if isinstance(self.sup, dict) else self.sup


class StudyConfig(StrictModel):
    """The YAML of ``synthlang study``. Its mappings are other configs, which ``cells.expand`` checks."""

    renamed_keys: ClassVar[Mapping[str, str]] = RENAMED

    name: str
    """Name of the study. A folder continues the study with its name."""
    title: str = ""
    """Title of the report (default: the name)."""
    scale: str = ""
    """Size of the models and data, in a word."""
    pool: str = ""
    """Pool of studies of one scale that are judged together, with their seeds as replicates (default: the name)."""
    paper: str | tuple[str, ...] | None = None
    """Tables of a paper for comparison: PAPER/TABLE, or files."""
    claims: tuple[str, ...] = ()
    """Claims to test on the results: names, or files."""
    compare: list[dict[str, Any] | list[dict[str, Any]]] = Field(default_factory=list)
    """Comparisons of the report (default: each label of an axis with the first one).

    ``{marking: [case, none], order: free}`` is the first label minus the second, under the other labels.
    ``{marking: [case, none], order: [free, fixed]}`` is the interaction: this difference under the first label of the
    other axis, minus that under the second. ``[{order: free, marking: case}, {order: fixed, marking: none}]`` are two
    conditions.
    """
    source: str = ""
    """Source of init_from, pretrain and target_model where they name none of their own."""
    init_from: Changes | None = None
    """Another pretraining. pretrain starts from its export of the first language, as with start.model."""
    pretrain: Changes | None = None
    """Pretraining config. Here and below, base names entries of the catalogue (KIND/NAME) or files."""
    target_model: Changes | None = None
    """Another pretraining, whose model reads the target language (two monolingual models)."""
    model: str | None = Field(default=None, min_length=1)
    """Model in place of pretrain: a name on Hugging Face, a folder, or a finished run."""
    adjust: Changes | None = None
    """Adjustment of the model of the cell. Tasks and probes read the adjusted model."""
    finetuned: Changes | None = None
    """Changes to transfer, and a seed (default: the first seed). Only probes read this fine-tuned model."""
    transfer: Changes = Field(default_factory=dict)
    """Settings that all tasks share."""
    tasks: dict[str, Changes | None] | None = None
    """Changes to transfer by the name of a task. null removes a task (default: one task, transfer.task)."""
    probes: dict[str, Changes | None] = Field(default_factory=dict)
    """Configs of synthlang probe by the name of a probe. null removes a probe."""
    seeds: list[int] = Field(default=[0], min_length=1)
    """Seeds of fine-tuning. The seed of pretraining is an axis: pretrain.seed."""
    learned: LearnedConfig | None = None
    """Convergence criterion (default: every model counts)."""
    keep: Keep = "checkpoints"
    """Files of finished runs that gc keeps: checkpoints, final weights, or results only."""
    grid: GridConfig = GridConfig()
    """Axes and cells (default: one cell)."""
    _content: str | None = PrivateAttr(default=None)

    @field_validator("grid", mode="before")
    @classmethod
    def _left_empty(cls, value: Any) -> Any:
        return {} if value is None else value

    @model_validator(mode="after")
    def _has_cells(self) -> StudyConfig:
        """Check that a grid has an axis. A study without a grid is one cell."""
        if "grid" in self.model_fields_set and not (self.grid.product or self.grid.zip or self.grid.include):
            hint = "give it an axis, or leave out grid for a study of one cell"
            raise InputError("the grid has no axis", keys="grid.product", hint=hint, code="empty")
        return self

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

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, value: list[int]) -> list[int]:
        if len(set(value)) < len(value) or min(value) < 0 or max(value) > LARGEST:
            hint = f"write distinct numbers from 0 to {LARGEST}"
            raise InputError(f"{value} are not distinct seeds in range", hint=hint, code="range")
        return value

    def contains(self, content: str) -> None:
        """Store the hash of all cell settings, which covers the content of ``base`` files."""
        self._content = content

    def beside(self, folder: Path) -> StudyConfig:
        """Return the study with absolute paths of papers and claims, so that the report finds the files later.

        Raises:
            InputError: If a file cannot be read.
        """
        for name in self.papers:
            read_tables(name, folder)
        for name in self.claims:
            read_claims(name, folder)
        named = {"paper": tuple(_absolute(name, folder) for name in self.papers) or None}
        return self.model_copy(update={**named, "claims": tuple(_absolute(name, folder) for name in self.claims)})

    @property
    def papers(self) -> tuple[str, ...]:
        """The tables of papers for comparison."""
        return (self.paper,) if isinstance(self.paper, str) else self.paper or ()

    @property
    def fingerprint(self) -> str:
        """Hash of the name, the seeds and all cell settings. Set after the grid is expanded."""
        assert self._content is not None, "the cells are expanded first"
        return fingerprint("study", format=FORMAT, name=self.name, seeds=self.seeds, cells=self._content)


def check_part_name(root: str, name: str) -> None:
    """Raise InputError for a name that no task or probe can have. ``root`` is tasks or probes."""
    safe_name(name, "name of a task or probe")
    if "." in name:
        reason = f"the name {name!r} has a dot, so an axis cannot name its keys"
        raise InputError(reason, hint="choose a name without a dot", code="format")
    if root == "probes" and name in OF_RUNS:
        reason = f"the name {name!r} belongs to {OF_RUNS[name]} in the measures"
        raise InputError(reason, hint="choose another name for the probe", code="conflict")


def _absolute(name: str, folder: Path) -> str:
    """Resolve the path of a YAML file (/TABLE) from ``folder``. Keep a built-in name (PAPER/TABLE)."""
    return str((folder / user_path(name)).resolve()) if ".yaml" in name or ".yml" in name else name
