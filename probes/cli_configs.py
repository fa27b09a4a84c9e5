"""The command ``synthlang configs``: list the catalogue, or print an entry in full."""

from __future__ import annotations

import textwrap
from typing import Annotated

from probes.cli_options import argument, one_of, option
from synthlang import catalogue
from synthlang.errors import InputError, did_you_mean
from synthlang.strict_yaml import write_yaml

CATALOGUE = (*catalogue.FILES, *catalogue.WHOLE)
COLUMN, WIDTH = 46, 120


def configs(
    kind: Annotated[
        str | None,
        argument(
            "Kind to list (runs, studies, …), or entry to print (default: all kinds).",
            **one_of(*CATALOGUE) | {"metavar": "KIND"},
        ),
    ] = None,
    name: Annotated[str | None, argument("Entry of this kind to print (default: none).", metavar="NAME")] = None,
    search: Annotated[
        str | None,
        option("Text to find in names (without sizes) and one-line descriptions (default: none).", metavar="TEXT"),
    ] = None,
) -> None:
    """List the configs of the catalogue, or print one as YAML."""
    if name is not None and kind not in CATALOGUE:
        hint = f"choose from {', '.join(CATALOGUE)}"
        raise InputError(f"unknown kind {kind!r}", "synthlang configs", hint=hint, code="unknown")
    if kind is None or (name is None and kind in CATALOGUE):
        kinds = [known for known in CATALOGUE if known != "parts"] if kind is None else [kind]
        if not [one for one in kinds if _list(one, search or "")]:
            print(f"no name or description contains {search!r}")
        return
    found = [(kind, name)] if name is not None else _called(str(kind))
    if search is not None:
        reason = f"the option searches a list, but {name or kind!r} is one entry"
        raise InputError(reason, "--search", hint="remove one of the two", code="conflict")
    if len(found) > 1:
        hint = f"choose {' or '.join(f'synthlang configs {k} {n}' for k, n in found)}"
        raise InputError(
            f"entries of several kinds have the name {kind!r}", "synthlang configs", hint=hint, code="conflict"
        )
    print(_in_full(*found[0]), end="")


def _called(name: str) -> list[tuple[str, str]]:
    """Return the kind and name of every entry that matches NAME or KIND/NAME.

    Raises:
        InputError: No entry matches.
    """
    known = {kind: catalogue.names(kind) for kind in CATALOGUE}
    found = [(kind, name) for kind in CATALOGUE if name in known[kind]]
    first, _, rest = name.partition("/")
    if not found and rest in known.get(first, ()):
        found = [(first, rest)]
    if not found:
        listed = [one for kind in CATALOGUE if kind != "parts" for one in known[kind]]
        hint = did_you_mean(name, [one for one in listed if one.startswith(f"{name}/")] or [*CATALOGUE, *listed])
        hint += "run synthlang configs for all kinds and names"
        raise InputError(f"unknown kind or name {name!r}", "synthlang configs", hint=hint, code="unknown")
    return found


def _in_full(kind: str, name: str) -> str:
    """Return an entry as YAML, with its description as comments."""
    if kind in catalogue.WHOLE:
        return catalogue.whole_file(kind, name).read_text(encoding="utf-8")
    entry = catalogue.find(kind, name)
    lines = [line for text in entry.about for line in textwrap.wrap(text, WIDTH - 2)]
    return "".join(f"# {line}\n" for line in lines) + write_yaml(entry.data)


def _list(kind: str, search: str) -> bool:
    """Print the entries of a kind that contain the text ``search``, and return True if there are any.

    All sizes of an entry share one line. The sizes of an entry that also exists without a size are in square brackets.
    """
    sizes: dict[str, list[str]] = {}
    known = catalogue.names(kind)
    for name in known:
        stem, _, size = name.rpartition("/")
        if stem and size in catalogue.SIZES:
            sizes.setdefault(stem, []).append(size)
        else:
            sizes[name] = []
    lines = []
    for stem, of_stem in sizes.items():
        listed, alone = ",".join(of_stem), stem in known
        shown = stem if not of_stem else f"{stem}[/{listed}]" if alone else f"{stem}/{{{listed}}}"
        first = stem if alone else f"{stem}/{of_stem[0]}"
        what = "" if kind in catalogue.WHOLE else catalogue.find(kind, first).summary
        if search.lower() in f"{stem} {what}".lower():
            lines.append(f"  {shown:{COLUMN}} {textwrap.shorten(what, WIDTH - COLUMN - 3, placeholder=' …')}".rstrip())
    if lines:
        print(f"{kind}:", *lines, sep="\n")
    return bool(lines)
