"""The table of probes: the settings of each probe are a field of `ProbeConfig`, and plugins add theirs.

A probe is a class of settings (`ProbeSettings`) with a title, the function that runs it and the measures that it
declares. The function takes a `ProbeInput` and returns a `ProbeResult`. The option ``--probe``, the values of
``probes``, the keys of a config, the page, and the columns and figures of a study follow from the line here.
"""

from __future__ import annotations

from typing import Any

from pydantic import create_model
from pydantic.fields import FieldInfo

from probes.measures.base import ProbeSettings
from probes.measures.cka import CkaConfig
from probes.measures.distances import DistancesConfig
from probes.measures.maps import MapsConfig
from probes.measures.retrieval import RetrievalConfig
from probes.measures.settings import InputConfig
from probes.measures.words import WordsConfig
from synthlang.plugins import added, optional_field

FORMAT = 3  # raised when the same settings give other numbers


def _with_plugins(ours: type[ProbeConfig]) -> type[ProbeConfig]:
    found: dict[str, Any] = {
        name: optional_field(FieldInfo(annotation=kind, default=kind()))
        for name, kind in added("probes", ProbeSettings, ours.model_fields).items()
    }
    return create_model(ours.__name__, __base__=ours, __doc__=ours.__doc__, __module__=__name__, **found)


@_with_plugins
class ProbeConfig(InputConfig):
    """Probes, the languages and the text they are measured on (``InputConfig``), and the settings of each probe."""

    words: WordsConfig = WordsConfig()
    """The settings of the probe ``words``."""
    retrieval: RetrievalConfig = RetrievalConfig()
    """The settings of the probe ``retrieval``."""
    maps: MapsConfig = MapsConfig()
    """The settings of the probe ``maps``."""
    cka: CkaConfig = CkaConfig()
    """The settings of the probe ``cka``."""
    distances: DistancesConfig = DistancesConfig()
    """The settings of the probe ``distances``."""


PROBES: dict[str, type[ProbeSettings]] = ProbeConfig.table()
