"""YAML 1.2 as plain data.

``no`` and dates are texts, and ``1e-4`` is a number. A key may occur only once, and tags cannot build objects.
"""

from __future__ import annotations

import io
import re
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, DuplicateKeyError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.representer import SafeRepresenter

from synthlang.errors import Code, InputError
from synthlang.files import reading
from synthlang.packed import START, check_is_text

TAG = "tag:yaml.org,2002:"
PLAIN = tuple(TAG + name for name in ("null", "bool", "int", "float", "str", "seq", "map"))
NODES: dict[str, type[Any]] = {"seq": SequenceNode, "map": MappingNode}
"""Kind of node of each tag. All other tags belong to a ScalarNode."""
YAML_1_1 = re.compile(r"(?i)y|n|yes|no|on|off|=|<<|[-+]?[0-9][0-9_:.]*")  # strings only in version 1.2
OTHER_VERSION = re.compile(r"\ufeff?(?:[ \t]*(?:[#%].*)?\n)*?%YAML\s+(?!1\.2\s)\S+")
SYNTAX = "correct the quotes, brackets or indentation there or above"
ONCE = "write the key once"
NO_TAG = "write the value without a tag, or put quotes around it"
LONG_NUMBER = 1000  # characters
ANOTHER_DOCUMENT = "but found another document"
AT = {
    "\t": "indent with spaces, not with tabs",
    ":": "put quotes around a text with a colon, or correct the indentation",
    "-": "begin each value of a list on a line of its own, or correct the indentation",
    "*": "put quotes around a text that begins with *, or define the anchor before it",
    **{mark: f"put quotes around a text that begins with {mark}" for mark in "&!@`%"},
}
"""Hints of errors of syntax, by the character at their place."""
CLEARER = {
    TAG: "!!",
    r"expected <block end>, but found .*": "found unexpected text",
    r"found character (.*) that cannot start any token": r"the character \1 cannot begin a value",
    r"mapping values are": "a colon is",
    r"sequence entries are": "a list is",
    r"expected the node content": "expected a value",
    r"found unexpected end of stream": "the text ends inside quotes",
    r"'<(stream|document) end>'|'\\x00'": "the end of the text",
    ANOTHER_DOCUMENT: "a second document begins",
}
"""Clearer words, by a regular expression of what the parser writes."""
NO_CHARACTER = re.compile(r"\\U(?!000|0010)[0-9A-Fa-f]{8}")  # above U+10FFFF
RARE_BREAKS = re.compile("[\x85\u2028\u2029]")  # the writer would fold them


class _Constructor(SafeConstructor):
    """Constructor of plain values with texts as keys. It refuses all other tags and keys, and duplicate keys."""

    def refuse(self, node: Any) -> Any:
        """Refuse a tag that is not the tag of a plain value."""
        raise _fault(node, f"the tag {node.tag.replace(TAG, '!!')} is not allowed", NO_TAG)

    def plain(self, node: Any) -> Any:
        """Construct the value of a node with the tag of a plain value."""
        name = node.tag.removeprefix(TAG)
        try:
            if isinstance(node, NODES.get(name, ScalarNode)):
                return SafeConstructor.yaml_constructors[node.tag](self, node)
        except (ValueError, LookupError) as error:
            if len(node.value) > LONG_NUMBER:
                raise _fault(node, "a number has thousands of digits", "shorten this number") from error
        raise _fault(node, f"the value does not fit its tag !!{name}", NO_TAG)

    yaml_constructors = {  # noqa: RUF012
        **dict.fromkeys(PLAIN, plain),
        f"{TAG}timestamp": SafeConstructor.construct_yaml_str,
        None: refuse,
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Construct a mapping. Integer keys become texts."""
        self.flatten_mapping(node)
        merged = len(getattr(node, "merge", None) or ())  # these pairs stand first, and may be replaced
        found, own = dict[str, Any](), set[str]()
        for number, (key_node, value_node) in enumerate(node.value):
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int) or isinstance(key, bool):
                shown = "a mapping" if isinstance(key, dict) else "a list" if isinstance(key, list) else key_node.value
                hint = "put quotes around this key" if key_node.value else "write a key before the colon"
                if isinstance(key, dict | list):
                    hint = "put quotes around a text that begins with { or ["
                raise _fault(key_node, f"a key must be a text, not {shown or 'null'}", hint)
            if str(key) in own:
                raise _fault(key_node, f"the key {key} occurs twice", ONCE, "duplicate")
            if number >= merged:
                own.add(str(key))
            found[str(key)] = self.construct_object(value_node, deep=deep)
        return found


def _fault(node: Any, reason: str, hint: str, code: Code = "format") -> InputError:
    """Return the error for a node that is YAML, but is not allowed."""
    mark = node.start_mark
    return InputError(f"{reason} (column {mark.column + 1})", line=mark.line + 1, hint=hint, code=code)


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
        InputError: The text is not YAML, or declares a version other than 1.2. A key occurs twice, or is neither a
            text nor an integer. A value is nested too deeply, contains itself, has the tag of an object or does not
            fit its tag. The error names ``path``.
    """
    if OTHER_VERSION.match(text):
        hint = "delete the %YAML line"
        raise InputError("declares a YAML version other than 1.2", path, hint=hint, code="unsupported")
    try:
        return _copy(_loaded(text))  # since the loaded value is cached
    except InputError as error:
        raise error.inside(path=path, line=error.line) from error
    except MarkedYAMLError as error:
        mark, problem = error.problem_mark or error.context_mark, str(error.problem)
        line, column = (mark.line + 1, f" (column {mark.column + 1})") if mark else (None, "")
        hint = AT.get(_character(text, mark), SYNTAX)
        if problem == ANOTHER_DOCUMENT:
            hint = "delete all documents but one"
        elif isinstance(error, DuplicateKeyError | ConstructorError):  # of the key <<
            hint = ONCE if isinstance(error, DuplicateKeyError) else "write a mapping there"
        for words, clearer in CLEARER.items():
            problem = re.sub(words, clearer, problem)
        raise InputError(f"is not YAML: {problem}{column}", path, line, hint=hint, code="format") from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        reason = f"is not YAML: the character U+{error.character:04X} is not allowed"
        raise InputError(reason, path, line, hint="delete this character", code="format") from error
    except (ValueError, OverflowError) as error:
        found = NO_CHARACTER.search(text)
        number = text.count("\n", 0, found.start()) + 1 if found else None
        reason = f"is not YAML: {f'the escape {found[0]}' if found else 'an escape'} is not a character"
        raise InputError(reason, path, number, hint="correct this escape", code="format") from error
    except RecursionError as error:
        reason = "a value is nested too deeply or contains itself"
        hint = "reduce the nesting, or delete the alias (*NAME) of the value inside it"
        raise InputError(reason, path, hint=hint, code="format") from error


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


def _copy(value: Any) -> Any:
    """Return a copy of plain data."""
    if isinstance(value, list):
        return [_copy(one) for one in value]
    return {key: _copy(one) for key, one in value.items()} if isinstance(value, dict) else value


def write_yaml(data: Any) -> str:
    """Return data as YAML with keys in their order. ``parse_yaml`` reads equal data back."""
    writer, out = YAML(typ="safe", pure=True), io.StringIO()
    writer.Representer = _Representer
    writer.default_flow_style = False
    writer.width = 1 << 20  # a folded line would end in a space
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.dump(data, out)
    return out.getvalue()
