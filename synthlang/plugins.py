"""What installed packages add to the tables of ours: transforms, terms of the objective, probes, downstream tasks.

A package names it in its metadata, as in this part of a ``pyproject.toml``, and nothing of ours is edited::

    [project.entry-points."synthlang.transforms"]
    repeat = "my_package.repeat:Repeat"

Names are read when a table is first needed, and what they stand for is imported then, in workers as well. Fingerprints
of what a plugin makes have the name and version of its package (``parts``): another version is other work.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Literal, get_args

from pydantic import Field
from pydantic.fields import FieldInfo

from synthlang.errors import InputError
from synthlang.references import OmitDefaultFromHash

Group = Literal["transforms", "terms", "probes", "tasks"]
GROUPS: tuple[Group, ...] = get_args(Group)


@cache
def _entries(group: Group) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=f"synthlang.{group}"), key=lambda entry: (entry.name, _package(entry))))


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.module


def parts(group: Group, names: Collection[str]) -> dict[str, dict[str, str]]:
    """A part of fingerprints: ``{"plugins": {name: "package version"}}``, of ``names`` that are plugins, or {}."""
    found = {entry.name: _package(entry) for entry in _entries(group) if entry.name in names}
    return {"plugins": found} if found else {}


def installed() -> list[str]:
    """A line on each plugin: what it adds, its name, its package and version."""
    return [f"{group}: {entry.name} of {_package(entry)}" for group in GROUPS for entry in _entries(group)]


def added(
    group: Group,
    kind: type[Any],
    taken: Collection[str],
    name_of: Callable[[Any], str] | None = None,
    instances: bool = False,
) -> dict[str, Any]:
    """Name → what plugins add to a table: subclasses of ``kind``, or with ``instances`` its instances.

    ``name_of`` says what such a class calls itself. InputError for a name that is taken, for what cannot be imported,
    is of another kind or calls itself otherwise.
    """
    found: dict[str, Any] = {}
    for entry in _entries(group):
        told = f"plugin {entry.name} ({entry.group}, {entry.value}) of {_package(entry)}"
        if entry.name in (*taken, *found):
            other = "by another package" if entry.name in found else "here"
            raise InputError(f"{told}: the name is taken {other}; rename it, or uninstall the package")
        try:
            value = entry.load()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}".replace("\n", " ")
            raise InputError(f"{told} cannot be imported: {problem}; CONTRIBUTING.md says how it is written") from error
        fits = isinstance(value, kind) if instances else isinstance(value, type) and issubclass(value, kind)
        if not fits:
            raise InputError(f"{told}: must be {'an instance' if instances else 'a subclass'} of {kind.__name__}")
        if name_of is not None and name_of(value) != entry.name:
            raise InputError(f"{told}: calls itself {name_of(value)!r}; both names must be the same")
        found[entry.name] = value
    return found


def optional_field(field: FieldInfo) -> tuple[Any, Any]:
    """A field that a plugin adds to a config, as ``create_model`` takes it: at its default it is not written, and is in
    no fingerprint, so that the config is read where the plugin is not."""
    if field.is_required():
        raise InputError(f"a setting of a plugin must have a default: {field.annotation}")
    default = field.get_default(call_default_factory=True)
    kind = Annotated[field.annotation, *field.metadata, OmitDefaultFromHash()]  # type: ignore[name-defined]
    return kind, Field(default=default, exclude_if=partial(operator.eq, default))
