"""The stage that measures the word alignment of every pretrained model of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pydantic

from probes.stages.base import RESULT, Stage, StageKeys, short
from probes.stages.pretrain import PretrainStage

if TYPE_CHECKING:
    from pathlib import Path

    from probes.stages.inputs import Inputs
    from probes.stages.making import Making

ANY_TRANSLATION = 1
"""Version of the rule for words with several translations, which occur only in dictionary files."""


class AlignmentStage(Stage):
    """Measurement of the alignment of the word embeddings of a run, with the defaults of the probe ``words``.

    Attributes:
        pretrained: The pretraining of the run.
    """

    format = 4  # of probes/measures/words/alignment.py
    content = (RESULT,)
    kind: Literal["alignment"] = "alignment"
    pretrained: PretrainStage

    @property
    def label(self) -> str:
        return f"alignment of {short(self.pretrained)}"

    @property
    def configs(self) -> tuple[pydantic.BaseModel, ...]:
        return (self.pretrained.config.dictionary,)

    def settings(self, keys: StageKeys) -> Any:
        """Return the hash of the settings of the dictionary, and ANY_TRANSLATION if the dictionary is a file.

        The key of the run covers these settings only if the objective reads the dictionary.
        """
        dictionary = self.pretrained.config.dictionary
        found = keys.hash_of(dictionary)
        return found if dictionary.path is None else [found, ANY_TRANSLATION]

    def check(self, inputs: Inputs) -> None:
        """Check nothing, because every pretrained model has word embeddings."""

    def run(self, making: Making) -> None:
        from probes.measures.words.alignment import alignment_of_run
        from synthlang.files import atomic_folder, write_json

        run, config = making.done_folder(self.pretrained), self.pretrained.config_in(making)

        def build(path: Path) -> None:
            with atomic_folder(path) as folder:
                write_json(folder / RESULT, alignment_of_run(run, config, making.store, making.report))

        making.obtain(build)
