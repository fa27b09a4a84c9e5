"""The mappings of a cell: a study's, over the files they are based on, with the changes of the grid in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probes.study.axes import Setting
from probes.study.config import StudyConfig, check_part_name
from synthlang.catalogue import BASE, load_bases, merged
from synthlang.config import assigned
from synthlang.errors import InputError

NAMED = ("tasks", "probes")  # mappings of a name to a section
Place = tuple[str, ...]  # ("pretrain",) or ("tasks", NAME)


class Bases:
    """What ``base:`` names, each read once: files, with paths from the study's folder, and entries of the catalogue."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, dict[str, Any]] = {}

    def data(self, names: Any) -> dict[str, Any]:
        """What the base, or the bases one over another, say; InputError if one is not there."""
        key = repr(names)
        if key not in self._read:
            self._read[key] = load_bases(names, self.folder)
        return self._read[key]


@dataclass
class Section:
    """A mapping: ``own`` keys over those of ``base``, then ``changes`` at keys, in order, each of which replaces."""

    base: Any
    own: dict[str, Any]
    changes: list[tuple[list[str], Any]] = field(default_factory=list)

    @classmethod
    def of(cls, value: Any) -> Section | None:
        """The section of a mapping as the YAML has it; None for null."""
        if value is None:
            return None
        if not isinstance(value, dict):
            raise InputError(f"must be a mapping or null, not {value!r}")
        return cls(value.get(BASE, []), {key: held for key, held in value.items() if key != BASE})

    def change(self, keys: list[str], value: Any) -> None:
        """Another value at ``keys``; of ``base``, or of one of its files by number, it changes what is read first."""
        if keys[0] == BASE:
            self.base = assigned(self.base, keys[1:], value)
        else:
            self.changes.append((keys, value))

    def data(self, bases: Bases) -> dict[str, Any]:
        """The whole mapping."""
        result = merged(bases.data(self.base), self.own)
        for keys, value in self.changes:
            result = assigned(result, keys, value)
        return result

    def says(self, *key: str) -> bool:
        """Whether the study or the grid, and not just a base, has the key; of several, one within the other."""
        return _has(self.own, key) or any(
            tuple(keys[: len(key)]) == key or (key[: len(keys)] == tuple(keys) and _has(value, key[len(keys) :]))
            for keys, value in self.changes
        )


class Draft:
    """What a cell is made of while the changes of its axes are applied, one after another."""

    def __init__(self, study: StudyConfig) -> None:
        self.values: dict[str, str | None] = {"source": study.source or None, "model": study.model}
        self.sections: dict[Place, Section | None] = {}
        self.default_task = study.tasks is None
        for root in ("start", "pretrain", "second", "adjust", "transfer", "tuned"):
            self.sections[(root,)] = _section(root, getattr(study, root))
        for root in NAMED:
            for name, value in (getattr(study, root) or {}).items():
                self.sections[root, name] = _section(f"{root}.{name}", value)

    def apply(self, setting: Setting) -> None:
        """Change one value; InputError for a key of something that the study does not have."""
        try:
            self._apply(setting.key.split("."), setting.value)
        except InputError as error:
            axis = "" if setting.axis == setting.key else f", axis {setting.axis!r}"
            raise InputError(f"{setting.key}: {error}{axis}") from error

    def _apply(self, keys: list[str], value: Any) -> None:
        root = keys[0]
        if root in self.values:
            if value is not None and not isinstance(value, str):
                raise InputError(f"must be a text, not {value!r}")
            self.values[root] = value
        elif root in NAMED and len(keys) == 1:
            self._replace(root, value)
        else:
            self._change(tuple(keys[: 1 + (root in NAMED)]), keys[1 + (root in NAMED) :], value)

    def _replace(self, root: str, value: Any) -> None:
        """All tasks or probes at once."""
        if not isinstance(value, dict):
            raise InputError(f"must be a mapping of names, not {value!r}")
        self.sections = {place: held for place, held in self.sections.items() if place[0] != root}
        for name, held in value.items():
            check_part_name(root, str(name))
            self.sections[root, str(name)] = Section.of(held)
        self.default_task = self.default_task and root != "tasks"

    def _change(self, place: Place, keys: list[str], value: Any) -> None:
        if not keys:
            if value is None and place == ("transfer",):
                raise InputError("must be a mapping, not null; tasks: {} takes all tasks away")
            if place[0] in NAMED:
                check_part_name(*place)
            self.sections[place] = Section.of(value)
            self.default_task = self.default_task and place[0] != "tasks"
            return
        section = self.sections.get(place)
        if section is None:
            known = ", ".join(name for root, *rest in self.sections for name in rest if root == place[0])
            hint = f"; there is {known}" if known else f": the study has no {'.'.join(place)}"
            raise InputError(f"there is nothing to change{hint}")
        # a cell changes sections of its own
        self.sections[place] = section = Section(section.base, section.own, [*section.changes])
        section.change(keys, value)

    def names(self, root: str) -> list[str]:
        """The tasks or probes that are not null, in order."""
        return [place[1] for place, held in self.sections.items() if place[0] == root and held is not None]


def _has(value: Any, keys: Sequence[str]) -> bool:
    """Whether a mapping of mappings has a key within a key … ."""
    if not keys:
        return True
    return isinstance(value, dict) and keys[0] in value and _has(value[keys[0]], keys[1:])


def _section(where: str, value: Any) -> Section | None:
    try:
        return Section.of(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
