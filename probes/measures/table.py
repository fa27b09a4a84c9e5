"""The table of probes.

Each probe is one field of `ProbeConfig`. The class of the field (a `ProbeSettings`) names the function that measures,
and the measures that this function returns. Plugins add fields. The option ``--probe``, the keys of a config, the page,
and the columns and figures of a study follow from this table.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import create_model
from pydantic.fields import FieldInfo

from probes.measures.base import ProbeSettings
from probes.measures.cka import CkaConfig
from probes.measures.distances import DistancesConfig
from probes.measures.maps import MapsConfig
from probes.measures.minimal_pairs import MinimalPairsConfig
from probes.measures.retrieval import RetrievalConfig
from probes.measures.sentences import SentencesConfig
from probes.measures.settings import InputConfig
from probes.measures.words import WordsConfig
from synthlang.plugins import added, optional_field
from synthlang.references import OmitDefaultFromHash

FORMAT = 4  # raised when the same settings give other numbers


def _with_plugins(ours: type[ProbeConfig]) -> type[ProbeConfig]:
    found: dict[str, Any] = {
        name: optional_field(name, FieldInfo(annotation=kind, default=kind()))
        for name, kind in added("probes", ProbeSettings, ours.model_fields).items()
    }
    return create_model(ours.__name__, __base__=ours, __doc__=ours.__doc__, __module__=__name__, **found)


@_with_plugins
class ProbeConfig(InputConfig):
    """Settings of a probe run: model, languages and text, and the settings of each probe."""

    words: WordsConfig = WordsConfig()
    """Settings of the probe ``words``."""
    retrieval: RetrievalConfig = RetrievalConfig()
    """Settings of the probe ``retrieval``."""
    maps: MapsConfig = MapsConfig()
    """Settings of the probe ``maps``."""
    cka: CkaConfig = CkaConfig()
    """Settings of the probe ``cka``."""
    distances: DistancesConfig = DistancesConfig()
    """Settings of the probe ``distances``."""
    sentences: Annotated[SentencesConfig, OmitDefaultFromHash()] = SentencesConfig()
    """Settings of the probe ``sentences``."""
    minimal_pairs: Annotated[MinimalPairsConfig, OmitDefaultFromHash()] = MinimalPairsConfig()
    """Settings of the probe ``minimal_pairs``."""

    @property
    def of_one_checkpoint(self) -> ProbeConfig:
        """The settings to probe one checkpoint with.

        If ``checkpoints`` is ``all``, they are this config with ``selected``, and the probe ``words`` measures no other
        checkpoints. Otherwise they are this config.
        """
        if self.checkpoints == "selected":
            return self
        words = self.words.model_copy(update={"checkpoints": False}) if "words" in self.probes else self.words
        return self.model_copy(update={"checkpoints": "selected", "words": words})


PROBES: dict[str, type[ProbeSettings]] = ProbeConfig.table()
