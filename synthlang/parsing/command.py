"""The command ``parse``: a source into a folder of CoNLL-U files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.files import read_json
from synthlang.parsing.engine import open_engine
from synthlang.parsing.source import ParsedSource, Tokens
from synthlang.parsing.write import parsed_fingerprint, write_parsed
from synthlang.progress import Display
from synthlang.sources import open_source
from synthlang.sources.base import size_of


def parse_command(
    source_spec: str,
    engine: str,
    out: Path,
    tokens: Tokens = "source",
    workers: int = 1,
    cache: Path | None = None,
    display: Display | None = None,
) -> dict[str, int]:
    """Parse every split of a source into ``out``; returns sentences of each split.

    ``engine`` is as for ``open_engine``. A folder that holds the same parse already is left as it
    is; one that holds anything else is an InputError. What a killed run parsed is not parsed again.
    """
    source = ParsedSource(open_source(source_spec), open_engine(engine), cache, tokens, workers)
    with display or Display() as shown:
        if out.exists():
            manifest = _existing(out, parsed_fingerprint(source))
            shown.message(f"{out}: is there already, nothing to do")
        else:
            source.report = shown.counter("parsing", partial(size_of, source.source))
            manifest = write_parsed(source, out, source_name=source_spec)
            shown.message(_summary(manifest, source, out))
    return dict(manifest["sentences"])


def _existing(out: Path, mark: str) -> dict[str, Any]:
    manifest: dict[str, Any] = read_json(out / "manifest.json") if (out / "manifest.json").is_file() else {}
    if manifest.get("fingerprint") != mark:
        raise InputError("exists already and is not this parse; name a new folder", out)
    return manifest


def _summary(manifest: dict[str, Any], source: ParsedSource, out: Path) -> str:
    sizes = ", ".join(f"{split} {count}" for split, count in manifest["sentences"].items())
    chunks = source.hits[True] + source.hits[False]
    left_out = sum(sum(reasons.values()) for reasons in manifest["skipped"].values())
    note = f"; {left_out} sentences left out, see its manifest.json" if left_out else ""
    return f"{out}: {sizes}; {source.hits[True]} of {chunks} chunks from the cache{note}"
