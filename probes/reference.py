"""The reference of all commands, options, kinds and keys, generated from the code.

The site replaces a line such as ``<!-- reference: pretrain -->`` in a page of ``docs/`` by the part with this name
(``.ci/mkdocs_hooks.py``). ``python -m probes.reference pretrain`` prints one part. Without an argument, the command
lists the names of all parts.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import pydantic
import typer
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from probes.results.declared import ANY, Entries, Measure, Node, PerLayer, Range
from synthlang.language import Language

PLACE = re.compile(r"^<!-- reference: (\S+) -->$", re.MULTILINE)
BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
TYPES = {"integer": "integer", "number": "number", "string": "text", "boolean": "`true`, `false`", "null": "`null`"}
LARGE = 10**9
"""Smallest bound that is not shown, because such a bound only keeps a number within 64 bits."""
Schema = Mapping[str, Any]


def configs() -> dict[str, type[pydantic.BaseModel]]:
    """Return the config class of each part of the reference that lists config keys."""
    from pretrain.adjust.config import AdjustConfig
    from pretrain.config import PretrainConfig
    from probes.claims.papers import Paper
    from probes.claims.spec import Claim
    from probes.measures.table import ProbeConfig
    from probes.study.config import StudyConfig
    from probes.study.executors.slurm_options import SlurmOptions
    from probes.transfer.config import TransferConfig
    from synthlang.data.entries import DataSet

    return {
        "language": Language,
        "pretrain": PretrainConfig,
        "adjust": AdjustConfig,
        "probe": ProbeConfig,
        "transfer": TransferConfig,
        "study": StudyConfig,
        "slurm": SlurmOptions,
        "claim": Claim,
        "paper": Paper,
        "data": DataSet,
    }


def parts() -> dict[str, Callable[[], str]]:
    """Return a function for each part of the reference, by name. Each function returns its part as Markdown."""
    of_kinds: dict[str, Callable[[], str]] = {
        "commands": _commands,
        "sources": _sources,
        "transforms": _transforms,
        "terms": _terms,
        "probes": _probes,
        "measures": _measures,
        "tasks": _tasks,
        "datasets": _datasets,
        "requirements": _requirements,
    }
    return of_kinds | {name: lambda model=model: keys(model) for name, model in configs().items()}


def filled(markdown: str) -> str:
    """Replace each line ``<!-- reference: NAME -->`` of a page by the part NAME.

    Raises:
        KeyError: There is no such part.
    """
    known = parts()
    return PLACE.sub(lambda found: known[found[1]](), markdown)


def table(heading: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown. Cells are put on one line, and bars in them are escaped."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()).replace("``", "`"))


def first_sentence(documented: Any) -> str:
    """Return the first paragraph of a docstring, up to an indented line, or "" if there is no docstring."""
    return (inspect.getdoc(documented) or "").split("\n\n")[0].split("\n    ")[0]


# --- commands


def commands(command: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of each command. A group comes before its commands.

    Args:
        command: The command or group to start from (default: ``synthlang``).
        name: The name of ``command``. It is "" for ``synthlang``.
    """
    from probes.cli import app

    command = command or typer.main.get_command(app)
    yield name or "synthlang", command
    for part, one in getattr(command, "commands", {}).items():
        yield from commands(one, f"{name} {part}".strip())


def _commands() -> str:
    text = []
    for name, command in commands():
        rows = [_parameter(parameter) for parameter in command.params if not parameter.hidden]
        title = name if name == "synthlang" else f"synthlang {name}"
        text += [f"### `{title}`\n", f"{_plain(command.help)}\n"]
        text += [table(("argument or option", "default", "meaning"), rows)] if rows else []
    return "\n".join(text)


def _parameter(parameter: Any) -> tuple[str, str, str]:
    option = parameter.param_type_name == "option"
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    default = None if callable(parameter.default) else parameter.default
    if parameter.required:
        told = "required"
    else:
        told = "" if default is None or default is False or default in ("", [], ()) else f"`{default}`"
    return names if option else parameter.metavar or parameter.name.upper(), told, _plain(parameter.help)


def _plain(text: str | None) -> str:
    """Return a help text without the marks of rich, and with brackets that Markdown does not take for links."""
    return re.sub(r"\\?\[/?[a-z ]+\]", "", text or "").strip().replace("[", r"\[")


# --- kinds


def _sources() -> str:
    from synthlang.sources import BUILTIN_OPTIONS, READERS
    from synthlang.tasks import TASKS

    rows = [("`builtin:mini-english`", "source", "options after `?`: " + ", ".join(f"`{o}`" for o in BUILTIN_OPTIONS))]
    for scheme, (module, name) in READERS.items():
        reader = getattr(importlib.import_module(f"synthlang.sources.{module}"), name)
        rows.append((f"`{scheme}:`", "source", first_sentence(reader)))
    rows += [(f"`{scheme}:`", "labelled task", first_sentence(opens)) for scheme, opens in TASKS.items()]
    return table(("specification", "kind", "meaning"), rows)


def _transforms() -> str:
    from synthlang.transforms.table import KINDS

    rows = []
    for name, kind in KINDS.items():
        short, option = kind.short_name or ("", "")
        of_name = f"`{short}`" + (f", `{short}@` {option}" if option else "") if short else ""
        rows.append((f"`{name}`", of_name, first_sentence(kind)))
    return table(("kind", "short name", "meaning"), rows)


def _terms() -> str:
    from pretrain.objectives.table import TERMS

    rows = [
        (
            f"`{term.name}`",
            f"`{term.kind}`" if term.kind else "",
            ", ".join(f"`{key}`" for key in term.settings.model_fields),
            first_sentence(type(term)),
        )
        for term in TERMS
    ]
    return table(("term", "objective", "keys", "meaning"), rows)


def _probes() -> str:
    from probes.measures.table import PROBES

    return table(("probe", "title", "meaning"), [(f"`{n}`", kind.title, kind.about) for n, kind in PROBES.items()])


def _measures() -> str:
    from probes.measures.table import PROBES

    rows = [
        (
            f"`{probe}`",
            f"`{name}`",
            measure.unit,
            "" if measure.within is None else _range(measure.within),
            measure.over,
        )
        for probe, kind in PROBES.items()
        for name, measure in declared(kind.measures)
    ]
    return table(("probe", "measure", "unit", "range", "over"), rows)


def declared(node: Node) -> Iterator[tuple[str, Measure]]:
    """Yield the names and measures in a tree of declarations. ``*`` in a name matches any part."""
    if isinstance(node, Measure):
        yield "", node
    elif isinstance(node, PerLayer):
        yield from declared(node.measure)
    elif isinstance(node, Entries):
        below = declared(node.tree)
        yield from below if node.part is None else ((f"{ANY}.{name}", measure) for name, measure in below)
    else:
        for key, inner in node.items():
            yield from ((f"{key}.{name}".strip("."), measure) for name, measure in declared(inner))


def _range(within: Range) -> str:
    return " … ".join("∞" if math.isinf(limit) else f"{limit:g}" for limit in within)


def _tasks() -> str:
    from probes.transfer.tasks.table import TASKS

    rows = []
    for name, entry in TASKS.items():
        module, _, kind = entry.place.partition(":")
        task = getattr(importlib.import_module(module), kind)
        rows.append((f"`{name}`", ", ".join(f"`{key}`" for key in entry.settings), first_sentence(task)))
    return table(("task", "keys of its own", "meaning"), rows)


def _datasets() -> str:
    from synthlang.data.entries import entry, names
    from synthlang.data.sizes import size_text

    rows = []
    for name in names():
        data = entry(name)
        for origin in (data, *([data.lab] if data.lab is not None else [])):
            first = f"`{name}`" if origin is data else f"`{name}` at `lab`"
            where = origin.source.address
            link = f"[{where.split('//')[-1].split('/')[0]}]({where})" if where.startswith("https://") else where
            version = (origin.source.version or "newest")[:12] if where.startswith("https://") else ""
            about = data.title if origin is data else origin.note
            restricted = " (restricted)" if origin.restricted else ""
            sizes = [size_text(size) if size is not None else "" for size in (origin.download, origin.disk)]
            steps = ", ".join(dict.fromkeys(step.kind for step in origin.steps))
            rows.append((first, about, link, version, f"{origin.licence}{restricted}", *sizes, steps, origin.evidence))
    heading = ("data set", "content", "source", "version", "licence", "download", "on disk", "steps", "verified by")
    return table(heading, rows)


def _requirements() -> str:
    from probes.requirements_page import requirements_page

    return requirements_page()


# --- keys of a config


def keys(model: type[pydantic.BaseModel]) -> str:
    """Return a table of the keys of a config class, and a table for each inner class under its dotted key.

    In dotted keys, ``*`` means any name and ``[]`` means an entry of a list. Only the part ``language`` has the keys
    of a language. Other configs refer to it.
    """
    schema = model.model_json_schema(schema_generator=_WithDocstrings)
    return "\n".join(_Keys(schema.get("$defs", {}), model is Language).section(schema, "", {}))


class _WithDocstrings(GenerateJsonSchema):
    """Generator of JSON schemas that have the docstrings of fields as descriptions.

    Pydantic's ``use_attribute_docstrings`` would read the source of every config at import.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        told = field_docstrings(schema["cls"])
        for name, value in found.get("properties", {}).items():
            if told.get(name):
                value.setdefault("description", told[name])
        return found


def field_docstrings(model: type[pydantic.BaseModel]) -> dict[str, str]:
    """Return the docstrings of the fields of a config class and its bases, by the name of the field."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        node = _classes(one.__module__).get(one.__name__) if issubclass(one, pydantic.BaseModel) else None
        for field, after in pairwise(node.body if node else ()):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
                text = after.value.value if isinstance(after.value, ast.Constant) else None
                found |= {field.target.id: inspect.cleandoc(text)} if isinstance(text, str) else {}
    return {name: text for name, text in found.items() if name in model.model_fields}


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the syntax trees of the top-level classes of a module by name."""
    body = ast.parse(inspect.getsource(sys.modules[module])).body
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}


class _Keys:
    """The sections of one JSON schema. ``known`` maps the names of its definitions to their schemas."""

    def __init__(self, known: Mapping[str, Schema], is_language: bool) -> None:
        self.known = known
        self.languages = is_language

    def section(self, node: Schema, path: str, default: Any) -> Iterator[str]:
        """Yield the heading, description and table of a model, then the sections of the models inside it."""
        kind = node["properties"].get("kind", {}).get("const")
        if isinstance(default, Mapping) and default.get("kind", kind) != kind:
            default = {}  # the default belongs to another member of the union
        if path:
            yield f"### `{path}`" + (f" of kind `{kind}`" if kind else "") + "\n"
        about = first_line(node.get("description", ""))
        if about and path:
            yield about.replace("``", "`") + "\n"
        rows, inner = [], []
        for key, value in node["properties"].items():
            of_key = default[key] if isinstance(default, Mapping) and key in default else value.get("default", ...)
            told = "required" if key in node.get("required", ()) and of_key is ... else _default(of_key)
            rows.append((f"`{key}`", self.values(value), told, value.get("description", "")))
            inner += [(model, f"{path}.{key}" if path else key, of_key, more) for model, more in self.models(value)]
        yield table(("key", "values", "default", "meaning"), rows)
        for model, place, of_key, more in inner:
            yield from self.section(model, place + more, of_key)

    def models(self, node: Schema, more: str = "") -> Iterator[tuple[Schema, str]]:
        """Yield the models that a value may hold, each with the suffix of its key: "", ``[]`` or ``.*``."""
        if "$ref" in node:
            target = self.known[self._name(node)]
            if "properties" in target and (self._name(node) != Language.__name__ or self.languages):
                yield target, more
            return
        for choice in node.get("anyOf") or node.get("oneOf") or ():
            yield from self.models(choice, more)
        if isinstance(node.get("additionalProperties"), Mapping):
            yield from self.models(node["additionalProperties"], f"{more}.*")
        for entry in _entries(node):
            yield from self.models(entry, f"{more}[]")

    def values(self, node: Schema) -> str:
        if "$ref" in node:
            target = self.known[self._name(node)]
            if self._name(node) == Language.__name__:
                return "a language"
            return "mapping, see below" if "properties" in target else self.values(target)
        if choices := node.get("anyOf") or node.get("oneOf"):
            return self.each(choices)
        if "const" in node or "enum" in node:
            return ", ".join(f"`{_yaml(value)}`" for value in node.get("enum", [node.get("const")]))
        if node.get("type") in ("array", "object"):
            return self.container(node)
        limits = ((sign, node[word]) for word, sign in BOUNDS.items() if abs(node.get(word, LARGE)) < LARGE)
        bounds = " and ".join(f"{sign} {limit:g}" for sign, limit in limits)
        return f"{TYPES.get(node.get('type', ''), 'any value')} {bounds}".strip()

    def each(self, nodes: Sequence[Schema]) -> str:
        return ", ".join(dict.fromkeys(map(self.values, nodes)))

    def container(self, node: Schema) -> str:
        if node["type"] == "array":
            return f"list of {self.each(_entries(node))}" if _entries(node) else "list"
        inner = node.get("additionalProperties")
        return f"name → {self.values(inner)}" if isinstance(inner, Mapping) else "mapping"

    @staticmethod
    def _name(node: Schema) -> str:
        return str(node["$ref"].rpartition("/")[2])


def _entries(node: Schema) -> list[Schema]:
    entries = [node["items"]] if isinstance(node.get("items"), Mapping) else []
    return [*entries, *node.get("prefixItems", ())]


def first_line(text: str) -> str:
    """Return the first paragraph of a description on one line."""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def _default(value: Any) -> str:
    if value is ... or (isinstance(value, Mapping) and value):
        return ""
    return f"`{_yaml(value)}`"


def _yaml(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def main(arguments: Sequence[str]) -> int:
    """Print the parts of the reference that ``arguments`` name, or by default the names of all parts.

    Returns:
        The exit status: 2 if a name is not a part of the reference, else 0.
    """
    known = parts()
    unknown = [name for name in arguments if name not in known]
    if unknown:
        sys.stderr.write(f"error: {unknown[0]}: not a part of the reference; choose from {', '.join(known)}\n")
        return 2
    for name in arguments:
        sys.stdout.write(known[name]() + "\n")
    if not arguments:
        sys.stdout.write("\n".join(known) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
