"""The command ``synthlang configs``: what the catalogue has, and any of it in full."""

from __future__ import annotations

import textwrap
from typing import Annotated

from probes.cli_options import argument, one_of
from synthlang import catalogue
from synthlang.errors import InputError, did_you_mean
from synthlang.strict_yaml import write_yaml

KINDS = (*catalogue.FILES, *catalogue.WHOLE)
COLUMN, WIDTH = 46, 120


def configs(
    kind: Annotated[
        str | None,
        argument("List one kind (runs, studies, …), or print what has this name.", metavar="[KIND]", **one_of(*KINDS)),
    ] = None,
    name: Annotated[str | None, argument("Print the one of this kind and name.", metavar="[NAME]")] = None,
) -> None:
    """List the configs that come along, or print one as YAML to save, change and run."""
    if name is not None and kind not in KINDS:
        raise InputError(f"there is no kind {kind!r}; there are: {', '.join(KINDS)}")
    if kind is None or (name is None and kind in KINDS):
        for one in [known for known in KINDS if known != "parts"] if kind is None else [kind]:
            _list(one)
        return
    found = [(kind, name)] if name is not None else _called(str(kind))
    if len(found) > 1:
        raise InputError(f"there are several: {', '.join(f'synthlang configs {k} {n}' for k, n in found)}")
    print(_in_full(*found[0]), end="")


def _called(name: str) -> list[tuple[str, str]]:
    """Kind and name of all that is meant by NAME or KIND/NAME; InputError if nothing is."""
    known = {kind: catalogue.names(kind) for kind in KINDS}
    found = [(kind, name) for kind in KINDS if name in known[kind]]
    first, _, rest = name.partition("/")
    if not found and rest in known.get(first, ()):
        found = [(first, rest)]
    if not found:
        listed = [one for kind in KINDS if kind != "parts" for one in known[kind]]
        hint = did_you_mean(name, [one for one in listed if one.startswith(f"{name}/")] or listed)
        raise InputError(f"there is no {name!r}; {hint}synthlang configs lists all")
    return found


def _in_full(kind: str, name: str) -> str:
    """YAML with what is said of it as comments."""

    if kind in catalogue.WHOLE:
        return catalogue.whole_file(kind, name).read_text(encoding="utf-8")
    entry = catalogue.find(kind, name)
    lines = [line for text in entry.about for line in textwrap.wrap(text, WIDTH - 2)]
    return "".join(f"# {line}\n" for line in lines) + write_yaml(entry.data)


def _list(kind: str) -> None:
    """A line for each of a kind, one for all sizes of the same."""

    sizes: dict[str, list[str]] = {}
    for name in catalogue.names(kind):
        stem, _, size = name.rpartition("/")
        if stem and size in catalogue.SIZES:
            sizes.setdefault(stem, []).append(size)
        else:
            sizes[name] = []
    print(f"{kind}:")
    for stem, of_stem in sizes.items():
        shown = f"{stem}/{{{','.join(of_stem)}}}" if of_stem else stem
        first = f"{stem}/{of_stem[0]}" if of_stem else stem
        what = "" if kind in catalogue.WHOLE else catalogue.find(kind, first).summary
        print(f"  {shown:{COLUMN}} {textwrap.shorten(what, WIDTH - COLUMN - 3, placeholder=' …')}".rstrip())
