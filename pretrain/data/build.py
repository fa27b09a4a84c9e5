"""From a config and its artifacts to the batches of a run and of its validation."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pretrain.artifacts import Artifacts
from pretrain.config import PretrainConfig
from pretrain.data.batches import Batches
from pretrain.data.monolingual import SentenceRows, StreamRows
from pretrain.data.rows import RowSource
from pretrain.data.tlm import ParallelRows
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.rng import key_of
from synthlang.shards import Shards

VALIDATION_SEED = key_of("validation")  # of rows and masks: the same in every run, other than in training


def train_batches(config: PretrainConfig, artifacts: Artifacts, report: Report = silent) -> Batches:
    """The batches that a run trains on.

    Rows of one language for the terms mlm and dict, rows of sentence pairs for tlm. InputError if a split does not
    fill a row or if there is no usable pair.
    """
    from pretrain.data.masking import build_masker  # itself imports Batch from here

    terms = config.objective.terms.keys()
    monolingual, sentences = [], []
    if {"mlm", "dict"} & terms:
        for number, language in enumerate(artifacts.languages):
            monolingual.append(_monolingual(config, artifacts, number, language.train, "train", report))
            sentences.append(len(language.train))
    parallel = _parallel(config, artifacts, report) if "tlm" in terms else []
    weights = sampling_weights(monolingual, sentences, config.sampling.exponent, parallel)
    masker = build_masker(config, artifacts)
    return Batches([*monolingual, *parallel], weights, config.batch.rows, masker, config.seed)


def dev_batches(config: PretrainConfig, artifacts: Artifacts, language: int) -> Batches:
    """Rows of one language's dev split: rows and masks are the same in every run, and plain MLM.

    They have ``positions`` and ``valid`` where the batches of training have them.
    """
    from pretrain.data.masking import build_dev_masker

    dev = artifacts.languages[language].dev
    assert dev is not None, f"{artifacts.languages[language].name} has no dev split"
    source = _monolingual(config, artifacts, language, dev, "dev", silent)
    masker = build_dev_masker(config, artifacts, VALIDATION_SEED)
    tlm = "tlm" in config.objective.terms
    padded = tlm or source.padded
    return Batches([source], [1], config.batch.rows, masker, VALIDATION_SEED, positions=tlm, padded=padded)


def _monolingual(
    config: PretrainConfig, artifacts: Artifacts, which: int, shards: Shards, split: str, report: Report
) -> RowSource:
    whose, length, specials = artifacts.languages[which].name, config.batch.length, artifacts.id_space.specials
    name = whose if split == "train" else f"{whose} ({split})"
    if config.batch.packing == "sentences":
        return SentenceRows(shards, which, length, specials, name, report)
    return StreamRows(shards, which, length, specials, name)


def _parallel(config: PretrainConfig, artifacts: Artifacts, report: Report) -> list[ParallelRows]:
    if not artifacts.parallel:
        raise InputError("objective: tlm needs sentence pairs, and there are none")
    languages, specials = artifacts.languages, artifacts.id_space.specials
    return [
        ParallelRows(
            pairs,
            config.objective.tlm_rate,
            config.batch.length,
            specials,
            config.seed,
            f"{languages[pairs.left].name}+{languages[pairs.right].name}",
            report,
        )
        for pairs in artifacts.parallel
    ]


def sampling_weights(
    monolingual: Sequence[RowSource], sentences: Sequence[int], exponent: float, parallel: Sequence[RowSource] = ()
) -> tuple[Fraction, ...]:
    """The share of each source, monolingual ones first; they sum to 1.

    Among monolingual rows a language has q ∝ sentences ** exponent (Lample & Conneau 2019, section 3.1);
    rows of pairs are mixed in uniformly: each source of them has its share of all rows.
    """
    powers = [Fraction(float(size) ** exponent) for size in sentences]
    own = sum(source.rows for source in monolingual)
    rows = own + sum(source.rows for source in parallel)
    shares = [Fraction(own, rows) * power / sum(powers) for power in powers]
    return (*shares, *(Fraction(source.rows, rows) for source in parallel))
