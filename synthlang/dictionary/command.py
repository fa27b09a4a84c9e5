"""What ``synthlang dictionary`` does: a word dictionary of a derived language, or of a MUSE file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from synthlang.config import parse
from synthlang.dictionary.build import Candidates, derived_words, natural_words, write_drawn
from synthlang.dictionary.spec import DictionarySpec
from synthlang.dictionary.words import FILE
from synthlang.errors import InputError
from synthlang.language import bind_language, parse_language
from synthlang.progress import Display
from synthlang.sources import open_source


def dictionary_command(
    spec: str,
    source: str | None,
    out: Path,
    *,
    target_source: str | None = None,
    coverage: float = 0.25,
    by: str = "type",
    order: str = "uniform",
    seed: int = 0,
) -> dict[str, Any]:
    """Draw a dictionary and write its folder; returns the manifest.

    ``spec`` is a language (``trans+inv``, a YAML file) or a MUSE file. A language needs a
    source; a MUSE file is restricted to the words of ``source`` and ``target_source`` where
    they are given.
    """
    settings = parse(DictionarySpec, {"coverage": coverage, "by": by, "order": order, "seed": seed}, "dictionary")
    if out.exists():
        raise InputError("exists already; name a new folder", out)
    is_muse = _is_muse(spec)
    with Display() as display:
        candidates = (
            _natural(spec, source, target_source) if is_muse else _derived(spec, source, target_source, display)
        )
        manifest = write_drawn(candidates, settings, out)
        for text, shares in manifest["coverage"].items():
            display.message(f"{text}: {shares['types']:.1%} of the types, {shares['tokens']:.1%} of the running words")
        for reason, count in manifest["left_out"].items():
            display.message(f"{reason}: {count}")
        display.message(f"written: {out} ({manifest['pairs']} pairs)")
    return manifest


def _is_muse(spec: str) -> bool:
    """Whether ``spec`` is a MUSE file; InputError if it looks like one but is none. Else it should be a language."""
    path = Path(spec)
    if spec.endswith((".yaml", ".yml")):
        return False
    if path.is_file():
        return True
    try:
        parse_language(spec)
    except InputError as error:
        if path.is_dir():
            inside = f", as {path / FILE}" if (path / FILE).is_file() else ""
            raise InputError(f"is a folder; name a file in the MUSE format{inside}, or a language", path) from error
        if "@" not in spec and re.search(r"/|\.[A-Za-z]\w*$", spec):
            raise InputError("no such file; name a file in the MUSE format, or a language", path) from error
        raise
    return False


def _natural(muse: str, source: str | None, target: str | None) -> Candidates:
    return natural_words(Path(muse), open_source(source) if source else None, open_source(target) if target else None)


def _derived(spec: str, source: str | None, target: str | None, display: Display) -> Candidates:
    if source is None:
        raise InputError(f"the dictionary of the language {spec!r} is drawn from a text; name one with --source")
    if target is not None:
        raise InputError("--target-source is for a MUSE file; the words of a language follow from --source")
    text = open_source(source)
    language = bind_language(parse_language(spec), text)
    count = display.counter("dictionary")
    return derived_words(text, language, lambda sentences: count("sentences", sentences))
