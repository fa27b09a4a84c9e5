"""What of a probe is refused before anything runs."""

from __future__ import annotations

from importlib.util import find_spec

from probes.measure.config import ProbeConfig
from probes.measure.static_config import TrainedVectors
from probes.static.training import INSTALL
from probes.study.cell import Cell
from probes.study.opened import Opened, check_constructed, check_files, check_models
from synthlang.errors import InputError
from synthlang.parsing import open_engine


def check_probe(opened: Opened, config: ProbeConfig, cell: Cell, known: bool) -> None:
    """Its files, models, sentence pairs and extras; ``known``: whether the model is a run."""
    check_files(config)
    check_models(config, cell)
    opened.check_pairs(config.pairs.values())
    if config.maps.save is not None:
        raise InputError("maps.save: the cells of a study would write one folder; use synthlang probe for that")
    needs_words = not known or any(held is not None for held in (cell.adjust, cell.tuned, cell.second))
    if "words" in config.probes and needs_words and config.words.dictionary is None:
        raise InputError("words: which words are translations is known of runs alone; name words.dictionary")
    if config.reads_sentences and not any(config.pairs.values()):
        check_constructed("pairs", config.language, config.natural, cell, known)
    for name, static in (("maps", config.maps.static), ("retrieval", config.retrieval.static)):
        trained = name in config.probes and isinstance(static, TrainedVectors) and static.vectors.needs_gensim
        if trained and find_spec("gensim") is None:
            raise InputError(f"{name}.static: training word vectors needs gensim: {INSTALL}, or vectors.kind: ppmi")
    if "distances" in config.probes and config.distances.picture == "tsne" and find_spec("sklearn") is None:
        raise InputError("distances.picture: tsne needs scikit-learn: pip install 'synthlang[probe]', or take pca")
    if "retrieval" in config.probes and config.retrieval.parser is not None:
        open_engine(config.retrieval.parser)
