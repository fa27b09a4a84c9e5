"""YAML without surprises: the core schema of version 1.2, read into plain data only.

``no`` and ``on`` are strings, ``1e-4`` is a number, dates stay strings, a key may stand only
once, no tag can build an object. Anchors, aliases and merge keys (``<<``) work.
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from synthlang.errors import InputError

MAX_VALUES = 100_000  # after aliases are expanded: a few lines of YAML can stand for billions
TAG = "tag:yaml.org,2002:"
RARE_BREAKS = re.compile("[\x85\u2028\u2029]")
KEY_TAGS = (f"{TAG}str", f"{TAG}int", f"{TAG}merge")
CORE = {  # name → (pattern of the plain scalars, the characters they start with)
    "bool": (r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", [*"-+0123456789"]),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        [*"-+.0123456789"],
    ),
    "merge": (r"<<", ["<"]),
}


def read_yaml(path: str | PathLike[str]) -> Any:
    """The value of a YAML file; anything wrong is an InputError with its line."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", path, error.object[: error.start].count(b"\n") + 1) from error
    except FileNotFoundError as error:
        raise InputError("no such file", path) from error
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", path) from error
    return parse_yaml(text, path)


def parse_yaml(text: str, path: str | PathLike[str]) -> Any:
    """The value of one YAML document; ``path`` is for the messages."""
    try:
        value = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader that knows fewer tags
        _count(value, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(part for part in (error.context, error.problem) if part)
        raise InputError(message, path, mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {error}", path) from error
    except RecursionError as error:
        raise InputError("nested too deeply", path) from error
    return value


def write_yaml(data: Any) -> str:
    """YAML that ``parse_yaml`` reads back as equal data, keys in their order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def _count(value: Any, count: int) -> int:
    """Count the values as if aliases were copies, and stop at what would not end."""
    if count > MAX_VALUES:
        raise yaml.YAMLError(f"it holds more than {MAX_VALUES} values")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        count = _count(item, count + 1)
    return count


class _Loader(yaml.SafeLoader):
    """Starts without the tags and plain scalars of YAML 1.1; the core ones are added below."""

    yaml_implicit_resolvers = {}  # noqa: RUF012
    yaml_constructors = {}  # noqa: RUF012

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._flat: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check the keys as they were written, then put in what ``<<`` names."""
        if id(node) in self._flat:
            return
        self._flat.add(id(node))
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if key.tag not in KEY_TAGS:
                raise ConstructorError(None, None, "a key must be a string", key.start_mark)
            if key.value in lines:
                problem = f"duplicate key {key.value!r}, first in line {lines[key.value]}"
                raise ConstructorError(None, None, problem, key.start_mark)
            lines[key.value] = key.start_mark.line + 1
        super().flatten_mapping(node)


class _Dumper(yaml.SafeDumper):
    """Quotes a string that YAML 1.1 or 1.2 would read as something else."""

    yaml_implicit_resolvers = {k: [*v] for k, v in yaml.SafeDumper.yaml_implicit_resolvers.items()}  # noqa: RUF012

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write out a part each time it occurs."""
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Escape the rare line breaks, which PyYAML would otherwise fold into spaces."""
        return self.represent_scalar(f"{TAG}str", data, style='"' if RARE_BREAKS.search(data) else None)


_Dumper.add_representer(str, _Dumper.represent_str)


def _mapping(loader: _Loader, node: yaml.Node) -> dict[str, Any]:
    if not isinstance(node, yaml.MappingNode):
        raise ConstructorError(None, None, "a mapping is needed here", node.start_mark)
    loader.flatten_mapping(node)
    # deep: an alias to a value inside itself then is an error instead of an endless value
    return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


def _sequence(loader: _Loader, node: yaml.Node) -> list[Any]:
    if not isinstance(node, yaml.SequenceNode):
        raise ConstructorError(None, None, "a list is needed here", node.start_mark)
    return list(loader.construct_sequence(node, deep=True))


def _refused(_: _Loader, node: yaml.Node) -> None:
    raise ConstructorError(None, None, f"the tag {node.tag.replace(TAG, '!!')!r} is not allowed", node.start_mark)


def _scalar(loader: _Loader, node: yaml.ScalarNode) -> str | int | float | bool | None:
    text = str(loader.construct_scalar(node))
    kind = node.tag.removeprefix(TAG)
    try:
        if kind in CORE and not re.fullmatch(CORE[kind][0], text):  # after an explicit tag: !!int x
            raise ValueError
        match kind:
            case "bool":
                return text.lower() == "true"
            case "null":
                return None
            case "int":
                return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
            case "float":
                return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        return text
    except ValueError as error:  # int() refuses thousands of digits
        raise ConstructorError(None, None, f"not a usable {kind}: {text[:40]!r}", node.start_mark) from error


for _name, (_pattern, _first) in CORE.items():
    _Loader.add_implicit_resolver(TAG + _name, re.compile(rf"(?:{_pattern})\Z"), _first)
    _Dumper.add_implicit_resolver(TAG + _name, re.compile(rf"(?:{_pattern})\Z"), _first)
for _name in ("bool", "null", "int", "float", "str"):
    _Loader.add_constructor(TAG + _name, _scalar)
_Loader.add_constructor(f"{TAG}seq", _sequence)
_Loader.add_constructor(f"{TAG}map", _mapping)
_Loader.add_constructor(None, _refused)
