"""The probes of ``synthlang probe``: the settings of each are a field of ``ProbeConfig``, a line each.

A probe is a class of settings (``ProbeSettings``) that says what the probe is called and which function runs it; that
function takes a ``ProbeInput`` and gives a ``ProbeResult``. The option ``--probe``, the default of ``probes``, the keys
of a config and the page follow from the line here.
"""

from __future__ import annotations

from probes.measures.cka import CkaConfig
from probes.measures.distances import DistancesConfig
from probes.measures.maps import MapsConfig
from probes.measures.retrieval import RetrievalConfig
from probes.measures.settings import InputConfig, ProbeSettings
from probes.measures.words import WordsConfig

FORMAT = 3  # raise when the same settings give other numbers


class ProbeConfig(InputConfig):
    """Probes, the languages and the text they are measured on (``InputConfig``), and the settings of each probe."""

    words: WordsConfig = WordsConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    maps: MapsConfig = MapsConfig()
    cka: CkaConfig = CkaConfig()
    distances: DistancesConfig = DistancesConfig()


PROBES: dict[str, type[ProbeSettings]] = ProbeConfig.table()
