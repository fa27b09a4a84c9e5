"""What of a study a problem of a config is about: its section, and the axis that changed it."""

from __future__ import annotations

import re

import pydantic

from probes.study.axes import Setting
from probes.study.grid import Point
from probes.study.sections import Place


def in_study(problem: str, where: str, model: type[pydantic.BaseModel]) -> str:
    """A problem of a config with its keys as they are written in a study; ``where`` is the section it stands in.

    Options of the command that reads such a config are keys of it, too.
    """
    if re.match(r"[\w.]+: unknown key", problem):
        return f"{where}.{problem}"
    name = rf"(?:{'|'.join(model.model_fields)})"
    key = rf"(?:(?:^|(?<=; )){name}(?=:)|(?<![\w./-]){name}(?=\.\w| \())"
    found = re.sub(key, lambda match: f"{where}.{match[0]}", problem)
    found = re.sub(rf"--({name})(?:-(\w+))?\b", lambda match: ".".join([where, *filter(None, match.groups())]), found)
    found = re.sub(rf"--set ({name})(?==)", rf"--set {where}.\1", found)
    return found if found.startswith(f"{where}.") else f"{where}: {found}"


def blame(problem: str, place: Place, point: Point) -> str:
    """The axis whose change a problem is about, as far as the key at its start tells."""
    key = problem.split(":", maxsplit=1)[0].split(".")
    for setting in reversed(point.settings):
        if (keys := _inside(setting, place)) is not None and all(a == b for a, b in zip(keys, key, strict=False)):
            return f" (axis {setting.axis!r}" + (")" if setting.axis == setting.key else f" sets {setting.key})")
    return ""


def _inside(setting: Setting, place: Place) -> list[str] | None:
    """The key of a change inside a section, of a task also in what all tasks have in common."""
    keys = setting.key.split(".")
    if place[0] in ("tasks", "tuned") and keys[0] == "transfer":
        return keys[1:]
    return keys[len(place) :] if tuple(keys[: len(place)]) == place else None
