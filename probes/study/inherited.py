"""Reading of study files, which inherit settings from the studies in their key ``base``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from probes.study.config import StudyConfig
from probes.study.grid import PARTS, SHOWN, GridConfig, keys_at, with_assignments
from synthlang.catalogue import BASE, load_bases, load_yaml
from synthlang.config import assigned, parse
from synthlang.errors import InputError, did_you_mean
from synthlang.files import user_path
from synthlang.strict_yaml import read_yaml
from synthlang.wording import first_few

OF_ITS_OWN = ("title", "pool", "paper", "claims", "planned", "compare")
"""Keys that are not inherited, because they describe only the study in which they are set."""
Place = tuple[str, ...]


def read_study(path: Path, assignments: Sequence[str] = ()) -> StudyConfig:
    """Read a study from a file or from the catalogue, and apply ``KEY=VALUE`` assignments.

    A file inherits all keys of its base except ``OF_ITS_OWN``. The value null removes a key of the study or of its
    grid. In a file with a base, null also removes an axis, a label, a task or a probe of the base.

    Raises:
        InputError: The study or its base cannot be read, a setting is wrong, an assignment is malformed, or null stands
            for a name that the base does not have.
    """
    data = with_assignments(_inherited(path), assignments)
    if isinstance(data.get("grid"), Mapping):
        data["grid"] = _without_null(data["grid"], GridConfig.model_fields)
    return parse(StudyConfig, _without_null(data, StudyConfig.model_fields), path)


def _without_null(data: Mapping[str, Any], known: Any) -> dict[str, Any]:
    """Return a mapping without the ``known`` keys whose value is null, so that they have their defaults."""
    return {key: value for key, value in data.items() if value is not None or key not in known}


def _inherited(path: Path) -> dict[str, Any]:
    """Return the settings of a study file, including the inherited ones."""
    data, file = load_yaml(path, "studies"), user_path(path)
    own = read_yaml(file) if file.is_file() else {}
    if BASE not in own:
        return data
    try:
        base = load_bases(own[BASE], file.parent)
        data = {key: value for key, value in data.items() if key in own or key not in OF_ITS_OWN}
        for place in _dropped(own):
            data = _without(place, data, base)
    except InputError as error:
        raise error.inside(path=path) from error
    return data


def _dropped(own: Mapping[str, Any]) -> Iterator[Place]:
    """Yield the places where a file has null for an axis, a label, a task, a probe or the whole grid."""
    if "grid" in own and own["grid"] is None:
        yield ("grid",)
    sections: list[Place] = [("tasks",), ("probes",), *(("grid", part) for part in PARTS)]
    sections += [(*axes, axis) for axes in sections[2:] for axis in keys_at(axes, own)]
    for section in sections:
        yield from ((*section, str(name)) for name, value in keys_at(section, own).items() if value is None)


def _without(place: Place, data: dict[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``data`` without the value at ``place``, which the base must have."""
    *section, gone = place
    known = [str(name) for name in keys_at(section, base)]
    if gone not in known:
        names = f"use a name of the base ({first_few(known, SHOWN)}), or " if known and section else ""
        reason = "is null, but the base has nothing of this name to leave out"
        hint = f"{did_you_mean(gone, known)}{names}remove this key"
        raise InputError(reason, keys=place, hint=hint, code="unknown")
    left = {name: value for name, value in keys_at(section, data).items() if str(name) != gone}
    whole: dict[str, Any] = assigned(data, section, left)
    return whole
