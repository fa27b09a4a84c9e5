"""The stage that parses one part of a text into a cache, for ``synthlang parse`` on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pydantic
from pydantic import Field

from probes.stages.base import RESULT, Stage, StageKeys
from synthlang.config import StrictModel
from synthlang.references import ParserSpec, UserFile

if TYPE_CHECKING:
    from probes.stages.inputs import Inputs
    from probes.stages.making import Making


class PartConfig(StrictModel):
    """The part of a text that is parsed, and its parser."""

    parser: ParserSpec
    """The parser, such as spacy:en_core_web_sm."""
    part: UserFile
    """File of the part (``synthlang.parsing.parts``)."""
    mode: Literal["words", "text"]
    """Form of the sentences: given words, or lines of text that the parser splits."""
    morphology: bool = False
    """True to annotate morphological features and lemmas."""


class ParseStage(Stage):
    """Parsing of one part of a text. The parses are in the cache, and the folder of the stage holds only counts.

    Attributes:
        config: The part of the text, and its parser.
        cache: Folder of the cache, which all nodes share. The key of the stage does not cover the folder.
        workers: Number of processes. The key of the stage does not cover this number.
    """

    format = 1
    content = (RESULT,)
    kind: Literal["parse"] = "parse"
    config: PartConfig
    cache: str
    workers: int = Field(default=1, ge=1)

    @property
    def label(self) -> str:
        return f"parse {Path(self.config.part).name.partition('.')[0]}"

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        return (self.config,)

    def settings(self, keys: StageKeys) -> Any:
        return keys.hash_of(self.config)

    def check(self, inputs: Inputs) -> None:
        """Check nothing, because the command has opened the source and the parser."""

    def run(self, making: Making) -> None:
        from synthlang.files import atomic_folder, write_json
        from synthlang.parsing import open_engine
        from synthlang.parsing.chunks import ParseCache
        from synthlang.parsing.parts import parse_part, read_part

        path, engine = Path(self.config.part), open_engine(self.config.parser, morphology=self.config.morphology)
        total, done = sum(len(chunk) for chunk in read_part(path)), 0

        def count(sentences: int) -> None:
            nonlocal done
            done += sentences
            making.report(self.label, done, total, "")

        def build(folder: Path) -> None:
            found = parse_part(path, engine, self.config.mode, ParseCache(Path(self.cache)), self.workers, count)
            with atomic_folder(folder) as temporary:
                write_json(temporary / RESULT, found)

        making.obtain(build)
