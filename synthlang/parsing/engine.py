"""What a parser offers, and how it is named: ``spacy:NAME``, ``spacy:FOLDER``, ``stanza:LANG``, ``stanza:FOLDER``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from synthlang.errors import InputError
from synthlang.sources.conllu import tree_problem

FORMS = "spacy:NAME-OR-FOLDER or stanza:LANG-OR-FOLDER (as in spacy:en_core_web_sm, stanza:en)"
TREE_COLUMNS = ("upos", "head", "deprel")

Parsed = dict[str, list[Any]]


class Engine(Protocol):
    """A parser: plain data that can be pickled; each process loads the model at the first sentence."""

    @property
    def name(self) -> str:
        """The engine and its model, as in ``spacy:en_core_web_sm``."""
        ...

    @property
    def version(self) -> str:
        """Versions of the library and of the model."""
        ...

    @property
    def fingerprint(self) -> str:
        """Of the library's version, the model's bytes and every change we make to its trees."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """``form upos head deprel``, and ``ner`` if the model finds names; the same for every sentence."""
        ...

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parsed]:
        """A tree for each sentence of words; the words stay as they are."""
        ...

    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        """For each line its sentences, in the engine's own words."""
        ...


def open_engine(spec: str, convert: bool = True) -> Engine:
    """Open the parser that ``spec`` names; nothing is ever downloaded and no model loaded yet.

    ``convert=False`` leaves ClearNLP trees as they are (to measure what the conversion does).
    Raises InputError with the command that installs what is missing.
    """
    kind, _, rest = spec.partition(":")
    if not rest.strip():
        raise InputError(f"parser {spec!r} must be {FORMS}")
    if kind == "spacy":
        from synthlang.parsing.spacy_engine import open_spacy

        return open_spacy(rest, convert)
    if kind == "stanza":
        from synthlang.parsing.stanza_engine import open_stanza

        return open_stanza(rest)
    raise InputError(f"parser {spec!r} must be {FORMS}")


def one_root(head: Sequence[int], deprel: Sequence[str]) -> tuple[list[int], list[str]]:
    """Heads (1-based, 0 = root) and labels with one root: the first; later ones hang on it as ``parataxis``.

    spaCy may see several sentences in one of ours. The root alone has the label ``root``.

    >>> one_root([0, 1, 0], ["ROOT", "obj", "ROOT"])
    ([0, 1, 1], ['root', 'obj', 'parataxis'])
    """
    heads, labels = list(head), [label or "dep" for label in deprel]
    first = heads.index(0) if 0 in heads else -1
    for word, h in enumerate(heads):
        if word == first:
            labels[word] = "root"
        elif h == 0:
            heads[word], labels[word] = first + 1, "parataxis"
        elif labels[word].lower() == "root":
            labels[word] = "dep"
    return heads, labels


def problem_of(parsed: Mapping[str, Sequence[Any]], columns: Sequence[str], words: Sequence[str] | None) -> str | None:
    """Why an engine's answer cannot be used, None if it can: columns, words and tree are as promised."""
    if set(parsed) != set(columns):
        return f"columns {', '.join(parsed)} instead of {', '.join(columns)}"
    form = parsed["form"]
    if not form:
        return "no word"
    if words is not None and list(form) != list(words):
        return "other words than it was given"
    if any(len(parsed[name]) != len(form) for name in columns):
        return "columns of unequal length"
    problem = tree_problem(parsed["head"])
    return problem[1] if problem else None
