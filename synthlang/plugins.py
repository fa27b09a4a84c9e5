"""Plugins: transforms, terms of the objective, probes and downstream tasks from other installed packages.

A package names its plugins in its metadata, as in this part of a ``pyproject.toml``::

    [project.entry-points."synthlang.transforms"]
    repeat = "my_package.repeat:Repeat"

Plugins are imported when a table is first needed, in workers as well. Fingerprints include the name and version of the
package of each plugin that was used (``parts``), so results of another version are not reused.
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
    """Return the part of a fingerprint for the plugins among ``names``.

    The part is ``{"plugins": {name: "package version"}}``, or {} if no name is a plugin. ``group`` is the table that
    the plugins extend.
    """
    found = {entry.name: _package(entry) for entry in _entries(group) if entry.name in names}
    return {"plugins": found} if found else {}


def installed() -> list[str]:
    """Return one line for each plugin, with its table, its name, and its package and version."""
    return [f"{group}: {entry.name} of {_package(entry)}" for group in GROUPS for entry in _entries(group)]


def added(
    group: Group,
    kind: type[Any],
    taken: Collection[str],
    name_of: Callable[[Any], str] | None = None,
    instances: bool = False,
) -> dict[str, Any]:
    """Import the plugins of a table, and return them by name.

    Args:
        group: The table that the plugins extend.
        kind: The base class of the plugins.
        taken: The names that the table already has.
        name_of: Function that returns the name that a plugin declares.
        instances: True if plugins are instances of ``kind``, not subclasses.

    Raises:
        InputError: A name is taken or differs from the declared name, or an object cannot be imported or is not a
            ``kind``.
    """
    found: dict[str, Any] = {}
    for entry in _entries(group):
        plugin = f"plugin {entry.name} ({entry.group}, {entry.value}) of {_package(entry)}"
        if entry.name in (*taken, *found):
            reason = f"the name is taken by {'another package' if entry.name in found else 'synthlang'}"
            raise InputError(reason, plugin, hint="rename the plugin, or uninstall its package", code="duplicate")
        try:
            value = entry.load()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}".replace("\n", " ")
            hint = "correct the package as 'A package of your own' in CONTRIBUTING.md describes, or uninstall it"
            raise InputError(f"cannot be imported: {problem}", plugin, hint=hint, code="failed") from error
        fits = isinstance(value, kind) if instances else isinstance(value, type) and issubclass(value, kind)
        if not fits:
            reason = f"must be {'an instance' if instances else 'a subclass'} of {kind.__name__}"
            hint = "name such an object in the entry point, or uninstall the package"
            raise InputError(reason, plugin, hint=hint, code="type")
        if name_of is not None and name_of(value) != entry.name:
            reason = f"the class declares the name {name_of(value)!r}"
            raise InputError(reason, plugin, hint="use the same name for the entry point", code="conflict")
        found[entry.name] = value
    return found


def optional_field(name: str, field: FieldInfo) -> tuple[Any, Any]:
    """Return the field ``name`` that a plugin adds to a config, in the form that ``create_model`` takes.

    A field at its default is neither written nor part of a fingerprint, so the config can be read where the plugin
    is not installed.

    Raises:
        InputError: The field has no default.
    """
    if field.is_required():
        reason = "is a setting of a plugin and has no default"
        raise InputError(reason, keys=name, hint="add a default to its field, or uninstall the package", code="missing")
    default = field.get_default(call_default_factory=True)
    kind = Annotated[field.annotation, *field.metadata, OmitDefaultFromHash()]  # type: ignore[name-defined]
    return kind, Field(default=default, exclude_if=partial(operator.eq, default))
