"""Settings of a cell before they are checked: sections to which the changes of axes are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from probes.study.axes import RENAMED, Setting
from probes.study.cell import PARTS
from probes.study.config import StudyConfig, check_part_name
from synthlang.catalogue import BASE, merged
from synthlang.config import assigned
from synthlang.config_errors import show_value
from synthlang.errors import InputError

SECTIONS = (*PARTS, "transfer")
"""Keys of a study that each hold one section."""
NAMED = ("tasks", "probes")
"""Keys of a study that each hold named sections."""
Place = tuple[str, ...]
"""Keys of a section of a study: ``("pretrain",)`` or ``("tasks", NAME)``."""
Keys = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A mapping of settings that is built in layers.

    Attributes:
        base: Names of the base files.
        own: Settings of the study, which take precedence over the base files.
        changes: Changes by axes (keys, value), which take precedence over ``own``. A later change takes precedence over
            an earlier one.
    """

    base: Any
    own: Mapping[str, Any]
    changes: tuple[tuple[Sequence[str], Any], ...] = ()

    @classmethod
    def of(cls, value: Any) -> Section | None:
        """Return the section of a mapping in the YAML, or None for null.

        Raises:
            InputError: The value is neither a mapping nor null.
        """
        if value is None:
            return None
        if not isinstance(value, dict):
            hint = "write keys with values, or null"
            raise InputError(f"must be a mapping or null, not {show_value(value)}", hint=hint, code="type")
        return cls(value.get(BASE, []), {key: inner for key, inner in value.items() if key != BASE})

    def changed(self, keys: Sequence[str], value: Any) -> Section:
        """Return the section with another value at ``keys``.

        A change of ``base``, or of one of its entries by index, replaces base files. All other settings still take
        precedence over the new files.

        Raises:
            InputError: A change of ``base`` has an index outside the list, or keys inside a single value.
        """
        if keys[0] == BASE:
            return replace(self, base=assigned(self.base, keys[1:], value))
        return replace(self, changes=(*self.changes, (keys, value)))

    def data(self, read: Callable[[Any], Mapping[str, Any]]) -> dict[str, Any]:
        """Return the merged settings. ``read`` is a function from the names of base files to their settings.

        Raises:
            InputError: A base file cannot be read, or a change sets a key inside a single value or an index outside its
                list.
        """
        whole: dict[str, Any] = merged(read(self.base), self.own)
        for keys, value in self.changes:
            with inside(*keys):
                whole = assigned(whole, keys, value)
        return whole

    def sets(self, *keys: str) -> bool:
        """Return whether the study or the grid itself, and not only a base file, sets the value at nested ``keys``."""
        changes = (assigned({}, place, value) for place, value in self.changes)
        return any(_has(data, keys) for data in (self.own, *changes))


def _has(value: Any, keys: Sequence[str]) -> bool:
    return not keys or (isinstance(value, Mapping) and keys[0] in value and _has(value[keys[0]], keys[1:]))


class Draft:
    """The settings of a cell while the changes of its axes are applied, one after another.

    Attributes:
        values: The settings ``source`` and ``model``, or None for each that is not set.
        sections: Keys of a section → the section, or None if it is not set.
        default_task: True if neither the study nor an axis sets ``tasks``, so that ``transfer`` has the only task.
    """

    def __init__(self, study: StudyConfig) -> None:
        self.values: dict[str, str | None] = {"source": study.source or None, "model": study.model}
        values: dict[Place, Any] = {(root,): getattr(study, root) for root in SECTIONS}
        values |= {(root, name): value for root in NAMED for name, value in (getattr(study, root) or {}).items()}
        self.sections: dict[Place, Section | None] = {}
        for place, value in values.items():
            with inside(*place):
                self.sections[place] = Section.of(value)
        self.default_task = study.tasks is None

    def apply(self, setting: Setting) -> None:
        """Apply a change of an axis to the settings of the cell.

        Raises:
            InputError: The study lacks the section of the key, the value has a wrong type, a task or probe cannot have
                its name, or a key of ``base`` is outside the list of base files or inside a single name.
        """
        try:
            self._apply(setting_keys(setting), setting.value)
        except InputError as error:
            raise of_axis(error.inside(*setting_keys(setting)), setting) from error

    def _apply(self, keys: Keys, value: Any) -> None:
        root = keys[0]
        if len(keys) == 1 and root in (*NAMED, "transfer") and not isinstance(value, dict):
            hint = "write keys with values, as in {KEY: VALUE}"
            raise InputError(f"must be a mapping, not {show_value(value)}", hint=hint, code="type")
        if root in self.values:
            if value is not None and not isinstance(value, str):
                hint = f"write the name of a {root} as a text"
                raise InputError(f"must be a text, not {show_value(value)}", hint=hint, code="type")
            self.values[root] = value
        elif root in NAMED and len(keys) == 1:
            self.sections = {place: section for place, section in self.sections.items() if place[0] != root}
            for name, part in value.items():
                self._replace((root, str(name)), part, str(name))
            self.default_task = self.default_task and root != "tasks"
        else:
            length = 2 if root in NAMED else 1
            self._change(keys[:length], keys[length:], value)

    def _change(self, place: Place, keys: Keys, value: Any) -> None:
        if not keys:
            self._replace(place, value)
            return
        section = self.sections.get(place)
        if section is None:
            known = ", ".join(name for root, *rest in self.sections for name in rest if root == place[0])
            names = f" name one of {known}," if known else ""
            hint = f"add this section to the study,{names} or exclude this cell"
            raise InputError(f"this cell has no section {'.'.join(place)}", hint=hint, code="missing")
        self.sections[place] = section.changed(keys, value)

    def _replace(self, place: Place, value: Any, *keys: str) -> None:
        """Replace a section. ``keys`` lead to the value in the value of the axis."""
        if place[0] in NAMED:
            check_part_name(*place)
        with inside(*keys):
            self.sections[place] = Section.of(value)
        self.default_task = self.default_task and place[0] != "tasks"

    def names(self, root: str) -> list[str]:
        """Return the names of the tasks or probes of the cell. ``root`` is ``tasks`` or ``probes``."""
        return [place[1] for place, section in self.sections.items() if place[0] == root and section is not None]


@contextmanager
def inside(*keys: str) -> Iterator[None]:
    """Put ``keys`` before the keys of an InputError that is raised in the block."""
    try:
        yield
    except InputError as error:
        raise error.inside(*keys) from error


def setting_keys(setting: Setting) -> Keys:
    """Return the parts of the dotted key of a change. A former name of a section is replaced by its present name."""
    root, *rest = setting.key.split(".")
    return RENAMED.get(root, root), *rest


def of_axis(error: InputError, setting: Setting) -> InputError:
    """Return an error whose hint names the axis of the wrong value, unless the axis is the key itself."""
    if setting.axis == setting.key:
        return error
    return error.with_hint(f"correct the axis {setting.axis!r}, which sets {setting.key}")
