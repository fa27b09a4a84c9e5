"""Names of stage folders, and the stages to which a path, a config or a record refers.

A study may name a stage of another study by a path into its folder, such as a model, a checkpoint or a data set. The
name of the folder in the path (``pretrain-0123456789abcdef``) identifies the stage, wherever the store is now.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from string import hexdigits
from typing import Any

from probes.stages.base import Stage
from probes.stages.kinds import RUN_STAGES, STAGE_KINDS
from probes.study.cell import Cell
from synthlang.files import user_path
from synthlang.fingerprint import LENGTH
from synthlang.references import references

SEPARATORS = str.maketrans(dict.fromkeys(":?#,", "/"))
"""Translation to slashes of the characters around a path in a specification, such as ``ner:FOLDER#dev``."""


def folder_name(stage: Stage) -> str:
    """Return the name of a stage's folder in its store."""
    return f"{stage.kind}-{stage.key}"


def is_folder_name(name: str) -> bool:
    """Return whether a folder of this name holds a stage.

    >>> is_folder_name("pretrain-0123456789abcdef"), is_folder_name("shards-0123456789abcdef")
    (True, False)
    """
    kind, _, key = name.partition("-")
    return kind in STAGE_KINDS and len(key) == LENGTH and not set(key) - set(hexdigits.lower())


def stages_on(path: str) -> set[str]:
    """Return the stage folders that occur in a path, or in a specification that contains a path."""
    return {part for part in path.translate(SEPARATORS).split("/") if is_folder_name(part)}


def stages_in(settings: Any) -> set[str]:
    """Return the stage folders that occur in the texts of a JSON value."""
    if isinstance(settings, str):
        return stages_on(settings)
    inner = settings.values() if isinstance(settings, Mapping) else settings if isinstance(settings, list) else ()
    return {stage for value in inner for stage in stages_in(value)}


def stages_read(cells: Iterable[Cell]) -> list[str]:
    """Return the folder names of the stages, in any store, that cells refer to by a path or a link.

    Relative paths start in the working folder, so a study must record these stages when it runs.

    Raises:
        InputError: A path begins with ``~USER``, and the user does not exist.
    """
    every_cell = list(cells)
    names = {cell.model for cell in every_cell if cell.model is not None}
    for config in {id(config): config for cell in every_cell for config in cell.configs.values()}.values():
        names |= {named.name for named in references(config) if isinstance(named.name, str)}
    paths = [os.path.abspath(user_path(name)) for name in names]
    return sorted({stage for path in paths for stage in stages_on(path) | stages_on(os.path.realpath(path))})


def cell_stage(name: str, key: str) -> str:
    """Return the folder name of a stage, given its key and its name in a cell, such as ``transfer pos seed 0``."""
    return f"{RUN_STAGES.get(name, name.partition(' ')[0])}-{key}"
