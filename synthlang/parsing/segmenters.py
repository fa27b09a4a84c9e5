"""Segmenters: libraries that separate the words of a text, for ``synthlang data fetch``.

``spacy:LANG`` takes spaCy's tokenizer of a language without spaces, which calls jieba (zh), PyThaiNLP (th) or SudachiPy
(ja). ``moses:LANG`` takes the rules of Moses (Koehn et al. 2007) in sacremoses. A segmenter is plain data, as parsers
are (``engines``), so ``parse_chunks`` runs it, with workers and a cache.
"""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from synthlang.corpus import FORM
from synthlang.distribution import install_command
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.parsing.chunks import default_cache
from synthlang.parsing.engines import Engine, Parsed
from synthlang.sources.words import one_word

FORMAT = 1  # raise when the same library gives other words
FORMS = "spacy:LANG (zh, th, ja) or moses:LANG (as in moses:de)"
OF_SPACY = {"zh": ("jieba",), "th": ("pythainlp",), "ja": ("sudachipy", "sudachidict_core")}
"""Libraries that spaCy's tokenizer of a language calls."""
MOSES = "sacremoses"
LANGUAGE = re.compile("[a-z]{2}")


@dataclass(frozen=True)
class Segmenter(Engine):
    """A segmenter, as an engine whose only column is ``form``. Its name is the kind and the language (``spacy:zh``)."""

    columns: tuple[str, ...] = (FORM,)

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parsed]:
        """Return the words of each sentence, unchanged, as the column ``form``."""
        return [{FORM: list(words)} for words in sentences]

    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        """Return one sentence, the words of the line, for each line. A line without a word has no sentence."""
        split = _load(self.name)
        found = [[one_word(word) for word in split(line) if word.strip()] for line in lines]
        return [[{FORM: words}] if words else [] for words in found]


def open_segmenter(spec: str) -> Segmenter:
    """Open a segmenter by its name. Its libraries are not imported yet.

    Raises:
        InputError: The name is unknown, or a library is not installed. The hint has the command that installs it.
    """
    kind, _, language = spec.partition(":")
    known = language in OF_SPACY if kind == "spacy" else kind == "moses" and LANGUAGE.fullmatch(language)
    if not known:
        raise InputError(f"{spec!r} is not a segmenter", hint=f"use {FORMS}", code="unknown")
    libraries = ("spacy", *OF_SPACY[language]) if kind == "spacy" else (MOSES,)
    if missing := [library for library in libraries if importlib.util.find_spec(library) is None]:
        reason = f"{spec} needs the library {missing[0]}, which is not installed"
        raise InputError(reason, hint=f"run: {install_command('segment')}", code="extra")
    versions = {library: version(library) for library in libraries}
    shown = ", ".join(f"{library} {number}" for library, number in versions.items())
    return Segmenter(spec, shown, fingerprint("segmenter", format=FORMAT, name=spec, libraries=versions))


@lru_cache(maxsize=2)
def _load(spec: str) -> Any:
    """Return the function from a line to its words, once in each process."""
    kind, _, language = spec.partition(":")
    if kind == "moses":
        from sacremoses import MosesTokenizer

        moses = MosesTokenizer(language)
        return lambda line: moses.tokenize(line, escape=False)
    import spacy

    options: dict[str, Any] = {}
    if language == "zh":
        import jieba

        jieba.setLogLevel(logging.WARNING)
        folder = default_cache()  # by default, jieba keeps its dictionary in a folder that all users share
        folder.mkdir(parents=True, exist_ok=True)
        jieba.dt.tmp_dir = str(folder)
        options = {"nlp": {"tokenizer": {"segmenter": "jieba"}}}
    tokenizer = spacy.blank(language, config=options).tokenizer
    return lambda line: [token.text for token in tokenizer(line)]
