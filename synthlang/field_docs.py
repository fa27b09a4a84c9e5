"""The explanations of settings: the docstring below each field of a config.

Pydantic can read them as a class is made (``use_attribute_docstrings``), but then every start of a program parses each
file of settings once for each class. Only the documentation needs them, so they are read here on demand.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from types import ModuleType

import pydantic


def field_docs(model: type[pydantic.BaseModel]) -> dict[str, str]:
    """Return the explanation of each field of a config that has one, with those of its base classes.

    >>> from synthlang.transforms.word_order import Invert
    >>> field_docs(Invert)["unit"]
    'Which units move: words, or the tokens of a vocabulary (Deshpande et al. 2021).'
    """
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        module = inspect.getmodule(base)
        if issubclass(base, pydantic.BaseModel) and module is not None:
            found |= _docs(module).get(base.__qualname__, {})
    return {name: found[name] for name in model.model_fields if name in found}


@cache
def _docs(module: ModuleType) -> dict[str, dict[str, str]]:
    """Return for each class of a module the docstring below each of its fields."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError):  # a module without a file, such as __main__ of a console
        return {}
    found: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {}
            for field, text in zip(node.body, node.body[1:], strict=False):
                if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                    continue
                if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                    found[node.name][field.target.id] = inspect.cleandoc(str(text.value.value))
    return found
