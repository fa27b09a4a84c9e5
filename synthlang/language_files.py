"""The files that a language names: order models, dictionaries, word lists.

A path in a language file is looked up beside that file first, then in the working folder. Where a
language is written down for others, its files go with it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthlang.files import atomic_file
from synthlang.strict_yaml import write_yaml
from synthlang.transforms import KINDS

if TYPE_CHECKING:
    from synthlang.language import Language

FOLDER = "language"  # beside language.yaml


def beside(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The data of a language file with the paths of files that are in ``folder``, its own."""
    transforms = data.get("transforms")
    if not isinstance(transforms, list):
        return data
    return {**data, "transforms": [_with_paths(step, folder) for step in transforms]}


def _with_paths(step: Any, folder: Path) -> Any:
    if not isinstance(step, dict) or step.get("kind") not in KINDS:
        return step
    found = {}
    for field in KINDS[step["kind"]].file_fields:
        value = step.get(field)
        # a bare name is that of something we have: fr, parent
        if isinstance(value, str) and Path(value).suffix and (folder / value).is_file():
            found[field] = str(folder / value)
    return {**step, **found}


def portable(language: Language) -> tuple[dict[str, Any], dict[str, Path]]:
    """The spec with its files named as ``write_spec`` names them, and which file each name is."""
    data = language.model_dump(mode="json", round_trip=True)
    files: dict[str, Path] = {}
    for step, transform in zip(data["transforms"], language.transforms, strict=True):
        for field, path in transform.files().items():
            same = [name for name, known in files.items() if known == path]
            taken = {Path(name).name for name in files}
            name = path.name if path.name not in taken else f"{len(files)}-{path.name}"
            step[field] = same[0] if same else f"{FOLDER}/{name}"
            files[step[field]] = path
    return data, files


def spec_yaml(language: Language) -> str:
    """The text of language.yaml."""
    return write_yaml(portable(language)[0])


def write_spec(language: Language, out: Path) -> list[Path]:
    """Write language.yaml and the files it names into a folder; returns them all."""
    _, files = portable(language)
    with atomic_file(out / "language.yaml", "w") as handle:
        handle.write(spec_yaml(language))
    for name, path in files.items():
        (out / name).parent.mkdir(exist_ok=True)
        with path.open("rb") as source, atomic_file(out / name) as target:
            shutil.copyfileobj(source, target)
    return [out / "language.yaml", *(out / name for name in files)]
