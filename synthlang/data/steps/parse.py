"""The step ``parse``: trees for a text, in a separate folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

from synthlang.data.steps.base import BaseStep, StepRecord, Tools
from synthlang.parsing import ParsedSource, open_engine
from synthlang.parsing.parse_command import write_parsed
from synthlang.parsing.source import Tokens
from synthlang.sources import open_source
from synthlang.sources.base import size_of

RATES = {"spacy": 5600.0, "stanza": 790.0}
"""Words per second of processor time by engine (docs/data.md has the basis of each rate)."""
BYTES_A_WORD = 6
"""Approximate bytes per word of English text, to estimate the number of words in a folder."""


class Parse(BaseStep):
    """Parse a text as ``synthlang parse`` does."""

    unit = "words"
    kind: Literal["parse"]
    """Trees of a parser."""
    parser: str
    """The parser, such as spacy:en_core_web_sm."""
    tokens: Tokens = "source"
    """Splitter of the text into words and sentences: its ``source``, or the ``engine``."""
    morphology: bool | None = None
    """True to write features and lemmas as well, which some languages need (default: False)."""

    @property
    def about(self) -> str:
        return f"parse with {self.parser}"

    @property
    def rate(self) -> float:
        return RATES[self.parser.partition(":")[0]]

    def check(self) -> str:
        return open_engine(self.parser, morphology=bool(self.morphology)).version

    def command(self, base: Path, out: Path) -> str:
        """Return the command ``synthlang parse`` that does the same work on the folder ``base``."""
        engine, _, model = self.parser.partition(":")
        tokens = "" if self.tokens == "source" else f" --tokens {self.tokens}"
        more = " --morphology" if self.morphology else ""
        return f"synthlang parse text:{base} --engine {engine} --model {model}{tokens}{more} --out {out}"

    def amount_of(self, base: Path) -> int:
        """Return the approximate number of words of the text in the folder ``base``."""
        return sum(path.stat().st_size for path in base.rglob("*") if path.is_file()) // BYTES_A_WORD

    def run(self, base: Path, out: Path, tools: Tools) -> StepRecord:
        """Parse the text in the folder ``base`` into the new folder ``out``. A killed run continues from the cache.

        Raises:
            InputError: The text or the parser cannot be opened or fails, ``out`` exists, or a split has no parsed
                sentence.
            DiskError: The folder or the cache cannot be written.
        """
        engine = open_engine(self.parser, morphology=bool(self.morphology))
        text, done = open_source(f"text:{base}"), Counter[str]()

        def count(split: str, sentences: int) -> None:
            done[split] += sentences
            total = max(done[split], size_of(text, split) or 0)
            tools.report(f"{self.about}: {split}", done[split], total, "")

        source = ParsedSource(text, engine, tools.cache, self.tokens, tools.workers, report=count)
        manifest = write_parsed(source, out, f"text:{base}")
        left_out = sum((Counter(reasons) for reasons in manifest["skipped"].values()), Counter[str]())
        counts = {f"sentences of {split}": count for split, count in manifest["sentences"].items()}
        return self.record(engine.version, engine.fingerprint, {**counts, **left_out})
