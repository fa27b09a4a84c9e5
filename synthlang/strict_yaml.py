"""YAML 1.2 as plain data.

``no`` and dates are texts, and ``1e-4`` is a number. A key may occur only once, and tags cannot build objects.
"""

from __future__ import annotations

import io
import json
import re
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import ComposerError
from ruamel.yaml.constructor import ConstructorError, DuplicateKeyError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from synthlang.errors import InputError
from synthlang.files import reading
from synthlang.packed import START, check_is_text

TAG = "tag:yaml.org,2002:"
PLAIN = ("null", "bool", "int", "float", "str", "seq", "map")
YAML_1_1 = re.compile(r"(?i)y|n|yes|no|on|off|=|<<|[-+]?[0-9][0-9_:.]*")  # strings only in version 1.2
OTHER_VERSION = re.compile(r"\ufeff?(?:[ \t]*(?:[#%].*)?\n)*?%YAML\s+(?!1\.2\s)\S+")
SYNTAX = "correct the quotes, brackets or indentation there"
ABOUT_VALUES: dict[type[MarkedYAMLError], str] = {
    DuplicateKeyError: "write the key once",
    ConstructorError: "write a plain value there",
}
"""Hints of errors about keys and values of a text that is YAML."""
AT = {
    "\t": "indent with spaces, not with tabs",
    ":": "put quotes around a text with a colon, or correct the indentation",
    "-": "correct the indentation, or delete all further documents, which begin with ---",
    **{mark: f"put quotes around a text that begins with {mark}" for mark in "*&!@`%"},
}
"""Hints of errors of syntax, by the character at their place."""
RARE_BREAKS = re.compile("[\x85\u2028\u2029]")  # the writer would fold them


class _Constructor(SafeConstructor):
    """Constructor of plain values. It refuses all other tags, and duplicate keys."""

    def refuse(self, node: Any) -> Any:
        """Refuse a tag that is not the tag of a plain value."""
        raise ConstructorError(None, None, f"the tag {node.tag} is not allowed", node.start_mark)

    yaml_constructors = {  # noqa: RUF012
        **{TAG + name: SafeConstructor.yaml_constructors[TAG + name] for name in PLAIN},
        f"{TAG}timestamp": SafeConstructor.construct_yaml_str,
        None: refuse,
    }

    def check_mapping_key(self, node: Any, key_node: Any, mapping: Any, key: Any, value: Any) -> bool:
        """Return True for a new key, and refuse a key that occurs twice."""
        del node, value
        if key in mapping:
            raise DuplicateKeyError(None, None, f"the key {key} occurs twice", key_node.start_mark)
        return True


class _Representer(SafeRepresenter):
    """Representer without aliases, whose values mean the same in YAML 1.1 and 1.2."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def represent_str(self, data: str) -> ScalarNode:
        style = '"' if RARE_BREAKS.search(data) else "'" if YAML_1_1.fullmatch(data) else None
        return self.represent_scalar(f"{TAG}str", data, style=style)

    def represent_float(self, data: float) -> ScalarNode:
        node = super().represent_float(data)
        node.value = node.value if "." in node.value else node.value.replace("e", ".0e")
        return node


_Representer.add_representer(str, _Representer.represent_str)
_Representer.add_representer(float, _Representer.represent_float)


def read_yaml(path: str | PathLike[str]) -> Any:
    """Read the value of a YAML file as plain data.

    Raises:
        InputError: The file is missing, cannot be read or is not UTF-8 text, or ``parse_yaml`` refuses its text. An
            error of syntax names the line.
    """
    with reading(Path(path)):
        raw = Path(path).read_bytes()
        check_is_text(raw[:START], Path(path))
        text = raw.decode("utf-8-sig")
    return parse_yaml(text, path)


def parse_yaml(text: str, path: str | PathLike[str]) -> Any:
    """Return the value of one YAML document, with integer keys as texts.

    Raises:
        InputError: The text is not YAML, declares another version than 1.2, or is nested too deeply. A key occurs
            twice, or is neither a text nor an integer. A value has the tag of an object or does not fit its tag. The
            error names ``path``.
    """
    if OTHER_VERSION.match(text):
        hint = "delete the %YAML line"
        raise InputError("declares a YAML version other than 1.2", path, hint=hint, code="unsupported")
    try:
        return _with_text_keys(_loaded(text))  # a copy, since the loaded value is cached
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        parts = (error.context if isinstance(error, ComposerError) else None, error.problem)
        reason = ", ".join(filter(None, parts)).replace(TAG, "!!").replace("'<stream end>'", "the end of the text")
        reason += f" (column {mark.column + 1})" if mark else ""
        line = mark.line + 1 if mark else None
        hint = next((hint for kind, hint in ABOUT_VALUES.items() if isinstance(error, kind)), "")
        if not hint:
            reason, hint = f"is not YAML: {reason}", AT.get(_character(text, mark), SYNTAX)
        raise InputError(reason, path, line, hint=hint, code="format") from error
    except InputError as error:
        raise error.inside(path=path) from error
    except (ValueError, KeyError) as error:  # thousands of digits, !!int x, !!bool x
        reason = "a number has thousands of digits, or a value does not fit its tag, such as !!int"
        raise InputError(reason, path, hint="correct this value", code="format") from error
    except YAMLError as error:
        raise InputError(f"is not YAML: {error}", path, hint="correct this value", code="format") from error
    except RecursionError as error:
        reason = "is not YAML: a value is nested too deeply or contains itself"
        raise InputError(reason, path, hint="delete the alias (*NAME) of the value inside it", code="format") from error


def _character(text: str, mark: Any) -> str:
    """Return the character of a text at a mark, or "" if there is none."""
    lines = text.splitlines()
    return "" if mark is None or mark.line >= len(lines) else lines[mark.line][mark.column : mark.column + 1]


@lru_cache(maxsize=64)
def _loaded(text: str) -> Any:
    """Parse a text. The cache helps because a study reads the same files many times."""
    reader = YAML(typ="safe", pure=True)
    reader.Constructor = _Constructor
    return reader.load(text)


def _with_text_keys(value: Any) -> Any:
    """Convert integer keys to texts. Any other key that is not a text is an error."""
    if isinstance(value, list):
        return [_with_text_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str | int) or isinstance(key, bool):
            shown = json.dumps(key, ensure_ascii=False)
            raise InputError(f"a key must be a text, not {shown}", hint="put quotes around this key", code="format")
        if str(key) in found:
            reason = f"the key {key} occurs twice, once as a text and once as a number"
            raise InputError(reason, hint="write the key once", code="format")
        found[str(key)] = _with_text_keys(item)
    return found


def write_yaml(data: Any) -> str:
    """Return data as YAML with keys in their order. ``parse_yaml`` reads equal data back."""
    writer, out = YAML(typ="safe", pure=True), io.StringIO()
    writer.Representer = _Representer
    writer.default_flow_style = False
    writer.width = 1 << 20  # a folded line would end in a space
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.dump(data, out)
    return out.getvalue()
