"""What of a probe is refused before anything runs."""

from __future__ import annotations

from importlib.util import find_spec

from pretrain.config import PretrainConfig
from probes.measures import ProbeConfig
from probes.measures.words import no_rows
from probes.static.settings import TrainedVectors
from probes.static.training import INSTALL
from probes.study.cell import MODEL, Cell
from probes.study.opened import Opened, check_constructed, check_files, check_models
from probes.transfer.model_names import asked_for, derived_numbers, model_path
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.parsing import open_engine


def check_probe(opened: Opened, config: ProbeConfig, cell: Cell, known: bool) -> None:
    """Its files, models, sentence pairs and extras; ``known``: whether the model is a run."""
    check_files(config)
    check_models(config, cell)
    opened.check_pairs(config.pairs.values())
    opened.check_texts("pairs", config.pairs, config.data if config.fits else None)
    if config.maps.save is not None:
        raise InputError("maps.save: the cells of a study would write one folder; use synthlang probe for that")
    needs_words = not known or any(held is not None for held in (cell.adjust, cell.tuned, cell.second))
    if "words" in config.probes and needs_words and config.words.dictionary is None:
        raise InputError("words: which words are translations is known of runs alone; name words.dictionary")
    if config.reads_sentences and not any(config.pairs.values()):
        check_constructed("pairs", config.language, config.natural, cell, known)
    _check_language(config, cell, known)
    if config.reads_sentences:
        _check_reach(opened, config, cell)
    for name, static in (("maps", config.maps.static), ("retrieval", config.retrieval.static)):
        trained = name in config.probes and isinstance(static, TrainedVectors) and static.vectors.needs_gensim
        if trained and find_spec("gensim") is None:
            raise InputError(f"{name}.static: training word vectors needs gensim: {INSTALL}, or vectors.kind: ppmi")
    if "distances" in config.probes and config.distances.picture == "tsne" and find_spec("sklearn") is None:
        raise InputError("distances.picture: tsne needs scikit-learn: pip install 'synthlang[probe]', or take pca")
    if "retrieval" in config.probes and config.retrieval.parser is not None:
        open_engine(config.retrieval.parser)


def _check_language(config: ProbeConfig, cell: Cell, known: bool) -> None:
    """Raise InputError for a language that the model cannot have, and for one whose words it does not know."""
    if not known and config.language is None:
        raise InputError("the language to compare with needs a name: language")
    if not known or config.model2 is not None:
        return
    run = cell.pretrain or load(PretrainConfig, model_path(str(cell.model)) / "config.yaml")
    asked = asked_for(run, config.language, config.natural)
    if not isinstance(asked, int):
        members = [(number, run.all_languages[number].language) for number in derived_numbers(run).values()]
        asked = next((n for n, language in members if language.fingerprint == asked.fingerprint), 0)
    if "words" in config.probes and cell.adjust is None and cell.tuned is None and not asked:
        raise no_rows(str(config.language), [member.name for member in run.all_languages])


def _check_reach(opened: Opened, config: ProbeConfig, cell: Cell) -> None:
    """The layers that are read of the models, and the longest sentence, as far as is known what they have."""
    others = [config.model2, *([config.cka.paraphrase] if "cka" in config.probes else [])]
    others += list(config.distances.before.values()) if "distances" in config.probes else []
    own, *more = (opened.reach(name, cell) for name in (MODEL, *others))
    static = {"retrieval"} if config.retrieval.static is not None else set()  # which reads no layer
    for reach in (own, *more) if set(config.probes) - {"words"} - static else ():
        if reach is not None:
            config.numbers(reach.layers)
    if own is not None and "distances" in config.probes:
        config.distances.drawn(sorted(config.numbers(own.layers)), own.layers)
    known = [reach.positions for reach in (own, *more[:1]) if reach is not None]
    if known:
        config.data.longest(min(known))
