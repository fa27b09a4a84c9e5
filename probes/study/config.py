"""The YAML of a study: settings of a cell, and a grid of changes to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from probes.claims.papers import read_claims, read_tables
from probes.study.grid import RENAMED, GridConfig
from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.files import safe_name, user_path
from synthlang.fingerprint import fingerprint

FORMAT = 3  # raise when the same study has other cells
Keep = Literal["checkpoints", "final", "results"]
LARGEST = 2**63 - 1  # a seed is a column of 64 bits in the tables
OF_RUNS = {"alignment": "the alignment of every run", "pretrain": "the perplexity of every run"}
"""What measures call what is known of every run, among the probes of its cell: names of no probe."""
Changes = dict[str, Any]


class LearnedConfig(StrictModel):
    """When a model counts as trained; one beyond a limit is called failed training, and is no evidence.

    perplexity   at most this masked perplexity on the parent's dev set
    sup          at least this SUP, and this score in the parent's language, in percent: of every task, or task → score
    """

    perplexity: float | None = Field(default=None, ge=1)
    sup: float | dict[str, float] | None = None

    def least(self, task: str) -> float | None:
        """The limit of the scores of a task; None where there is none."""
        return self.sup.get(task) if isinstance(self.sup, dict) else self.sup


class StudyConfig(StrictModel):
    """The YAML of ``synthlang study``. Its mappings are other configs, which ``cells.expand`` checks.

    paper      the table, or tables, of a paper that the study is set beside: PAPER/TABLE, or files
    claims     claims that its results are judged by: by name, or files
    source     what ``init_from``, ``pretrain`` and ``target_model`` read where they name no source of their own
    pretrain   a pretraining config; ``base:`` here and below: KIND/NAME of the catalogue, or files from its folder
    init_from  another pretraining. ``pretrain`` is initialised from the export of its first language (``start.model``)
    target_model  another pretraining, the model that reads the target language (two monolingual models)
    model      instead of ``pretrain``: a Hugging Face name or folder, or a finished run
    adjust     an adjustment, without its model: it adjusts the cell's, and what follows reads the result
    finetuned  changes to ``transfer``, and a ``seed`` (default: the first of ``seeds``): the probes, and nothing else,
               read the model after its body was fine-tuned on the source language of that task
    transfer   what all tasks have in common
    tasks      name → changes to ``transfer``; null takes one of a base away. Default: one task, named as transfer.task
    probes     name → config of ``synthlang probe``
    seeds      of the transfer step; a pretraining seed is an axis: pretrain.seed
    scale      how large its models and data are, in a word
    pool       studies of one scale and one pool are judged together, and their seeds are replicates of each other
               (default: the study's name, so that it is judged alone)
    learned    which models count as trained; default: all
    keep       what stays of a finished run: its ``checkpoints``, the ``final`` weights, or ``results`` only
    """

    renamed_keys: ClassVar[Mapping[str, str]] = RENAMED

    name: str
    title: str = ""
    scale: str = ""
    pool: str = ""
    paper: str | tuple[str, ...] | None = None
    claims: tuple[str, ...] = ()
    source: str = ""
    init_from: Changes | None = None
    pretrain: Changes | None = None
    target_model: Changes | None = None
    model: str | None = Field(default=None, min_length=1)
    adjust: Changes | None = None
    finetuned: Changes | None = None
    transfer: Changes = Field(default_factory=dict)
    tasks: dict[str, Changes | None] | None = None
    probes: dict[str, Changes | None] = Field(default_factory=dict)
    seeds: list[int] = Field(default=[0], min_length=1)
    learned: LearnedConfig | None = None
    keep: Keep = "checkpoints"
    grid: GridConfig = GridConfig()
    _content: str | None = PrivateAttr(default=None)

    @field_validator("grid", mode="before")
    @classmethod
    def _left_empty(cls, value: Any) -> Any:
        return {} if value is None else value

    @model_validator(mode="after")
    def _has_cells(self) -> StudyConfig:
        """A grid that is written down has something in it; without one the study is one cell."""
        if "grid" in self.model_fields_set and not (self.grid.product or self.grid.zip or self.grid.include):
            raise ValueError("grid.product is empty: give it an axis, or leave grid out for a study of one cell")
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

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, value: list[int]) -> list[int]:
        if len(set(value)) < len(value) or min(value) < 0 or max(value) > LARGEST:
            raise ValueError(f"must be distinct numbers from 0 to {LARGEST}")
        return value

    def contains(self, content: str) -> None:
        """Note what the cells are made of, the content of ``base`` files with it: ``content`` names all of it."""
        self._content = content

    def beside(self, folder: Path) -> StudyConfig:
        """The same with the files of papers and claims as absolute paths, so that the report finds them later.

        ``folder`` is that of the study's file. InputError for one that cannot be read.
        """
        for name in self.papers:
            read_tables(name, folder)
        for name in self.claims:
            read_claims(name, folder)
        named = {"paper": tuple(_absolute(name, folder) for name in self.papers) or None}
        return self.model_copy(update={**named, "claims": tuple(_absolute(name, folder) for name in self.claims)})

    @property
    def papers(self) -> tuple[str, ...]:
        return (self.paper,) if isinstance(self.paper, str) else self.paper or ()

    @property
    def fingerprint(self) -> str:
        """Of the name, the seeds and every setting of every cell; a study has one once its cells are known."""
        assert self._content is not None, "the cells are expanded first"
        return fingerprint("study", format=FORMAT, name=self.name, seeds=self.seeds, cells=self._content)


def check_part_name(root: str, name: str) -> None:
    """Raise InputError for what cannot be the name of a task or probe; ``root``: tasks or probes."""
    safe_name(name, "name of a task or probe")
    if "." in name:
        raise InputError(f"{name!r}: a name of a task or probe has no dot, so that an axis can name its keys")
    if root == "probes" and name in OF_RUNS:
        raise InputError(f"{name!r}: that is what measures call {OF_RUNS[name]}; give the probe another name")


def _absolute(name: str, folder: Path) -> str:
    """A name of the house, PAPER/TABLE say, or a YAML file (/TABLE), from ``folder``."""
    return str((folder / user_path(name)).resolve()) if ".yaml" in name or ".yml" in name else name
