"""Build the parts of a run from a config and its artifacts: the batches, the model, the objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import torch

from pretrain.artifacts import Artifacts
from pretrain.checkpoints import checkpoint_at, load_weights, selected_checkpoint
from pretrain.config import PretrainConfig
from pretrain.config.training import Packing
from pretrain.data.batch import RowSource
from pretrain.data.batches import Batches
from pretrain.data.causal import CausalMasker
from pretrain.data.masking import Masker, random_word_tables
from pretrain.data.quotas import Draws, Quotas, Stages
from pretrain.data.sources import CopiesRows, ParallelRows, SentenceRows, StreamRows
from pretrain.model.from_hf import from_hf
from pretrain.model.kinds import KINDS
from pretrain.model.language_model import LanguageModel
from pretrain.objectives.objective import Corpus, Objective
from pretrain.objectives.table import NAMES
from synthlang.dictionary.word_dictionary import trained_types
from synthlang.progress import Report, silent
from synthlang.rng import key_of
from synthlang.shards import Shards

VALIDATION_SEED = key_of("validation")  # seed of rows and masks: the same in every run, different from training


def new_model(config: PretrainConfig, artifacts: Artifacts) -> LanguageModel:
    """Return the model of a run before the first step, as a function of the config and the vocabulary.

    The weights are random, or those of the checkpoint ``config.start``.

    Raises:
        InputError: The checkpoint cannot be used (see ``from_hf``).
    """
    space = artifacts.id_space
    ids = tuple(language.ids for language in space.languages)
    if config.start is not None:
        return from_hf(
            config.start.model,
            config.sharing,
            ids=ids,
            size=space.size,
            language_ids=config.objective.uses_language_ids,
            seed=config.seed,
            extension=artifacts.extension,
            initialise=config.start.extend.initialise if config.start.extend else "pieces",
            length=config.batch.length,
        )
    return KINDS[config.model.kind].model(
        config.model,
        config.sharing,
        ids=ids,
        size=space.size,
        positions=config.model.positions or config.batch.length,
        pad=space.specials.pad,
        language_ids=config.objective.uses_language_ids,
        seed=config.seed,
    )


def trained_model(run: Path, config: PretrainConfig, artifacts: Artifacts, step: int | None = None) -> LanguageModel:
    """Return the model of a finished run at a step (default: at the checkpoint that its config selects).

    Raises:
        InputError: The checkpoint is damaged, gone, of another version, or does not fit the config. The checkpoint that
            the run started from cannot be used (see ``from_hf``).
    """
    folder = run / "checkpoints"
    path = selected_checkpoint(folder, config.steps) if step is None else checkpoint_at(folder, step)
    model = new_model(config, artifacts)
    load_weights(path / "model.safetensors", model)
    return model


def build_objective(config: PretrainConfig, artifacts: Artifacts, device: torch.device) -> Objective:
    """Return the objective of a run. The dictionary of the objective is on ``device``."""
    own = {term.name: term.own_loss(config.objective, artifacts, device) for term in config.objective.on}
    corpora = _corpora(config, artifacts) if config.objective.mean_over == "corpora" else None
    return Objective(
        config.objective.terms,
        {name: loss for name, loss in own.items() if loss is not None},
        corpora,
        config.objective.is_causal,
    )


def _corpora(config: PretrainConfig, artifacts: Artifacts) -> dict[str, Corpus]:
    """Map the name of each corpus of a run, a text or sentence pairs, to its languages."""
    names = [language.name for language in artifacts.languages]
    pairs = artifacts.parallel if config.objective.needing("pairs") else ()
    found = {name: frozenset({number}) for number, name in enumerate(names)}
    return found | {f"{names[p.left]}+{names[p.right]}": frozenset({p.left, p.right}) for p in pairs}


def train_batches(config: PretrainConfig, artifacts: Artifacts, report: Report = silent) -> Batches:
    """Return the training batches, with the rows of all terms. Monolingual rows come first.

    Raises:
        InputError: A training text does not fill one row or has no sentence that fits into a row, or a term needs
            sentence pairs and none is usable.
    """
    texts = _Texts(config, artifacts, report)
    found = dict.fromkeys(source for term in config.objective.on for source in term.rows(config.objective, texts))
    monolingual, parallel = ([s for s in found if (len(s.languages) == 1) == alone] for alone in (True, False))
    quotas = _quotas(config, artifacts, monolingual, parallel)
    return Batches([*monolingual, *parallel], quotas, build_masker(config, artifacts), config.seed)


def _quotas(
    config: PretrainConfig, artifacts: Artifacts, monolingual: Sequence[RowSource], parallel: Sequence[RowSource]
) -> Quotas | Draws | Stages:
    """Return the quotas of the sources by the settings of sampling."""
    sampling, rows = config.sampling, config.batch.rows
    languages = [artifacts.languages[source.languages[0]] for source in monolingual]

    def by_shares(shares: Mapping[str, float]) -> tuple[Fraction, ...]:
        return sampling_weights(monolingual, [shares[own.name] for own in languages], 1.0, parallel)

    key = key_of("source", config.seed) if sampling.batches == "one-language" else None
    if sampling.schedule:
        firsts = [stage.first_step(config.steps) for stage in sampling.schedule]
        return Stages(firsts, [by_shares(stage.shares) for stage in sampling.schedule], config.steps, rows, key)
    if sampling.shares is not None:
        weights = by_shares(sampling.shares)
    else:
        weights = sampling_weights(monolingual, [len(own.train) for own in languages], sampling.exponent, parallel)
    return Quotas(weights, rows) if key is None else Draws(weights, rows, key)


def dev_batches(config: PretrainConfig, artifacts: Artifacts, language: int) -> Batches:
    """Return the batches of the dev split of the language with the number ``language``, which must have this split.

    Rows and masks do not depend on the seed of the run, and are equal in runs with the same data, batch, packing and
    mask rate. The rows are labelled for plain MLM, or for CLM with a decoder.

    Raises:
        InputError: The dev split does not fill one row, or has no sentence that fits into a row.
    """
    own = artifacts.languages[language]
    assert own.dev is not None, f"{own.name} has no dev split"
    packing = config.validation.packing or config.batch.packing
    causal = config.objective.is_causal
    source = _monolingual(config, packing, artifacts, language, own.dev, f"{own.name} (dev)", causal=causal)
    masker = build_masker(config, artifacts, for_dev=True)
    also = ("positions", "valid") if config.objective.needing("pairs") else ()
    return Batches([source], Quotas([1], config.batch.rows), masker, VALIDATION_SEED, also)


def build_masker(config: PretrainConfig, artifacts: Artifacts, for_dev: bool = False) -> Masker:
    """Return the masker of a run. The dev split (``for_dev``) is masked for plain MLM, or labelled for CLM."""
    space, objective = artifacts.id_space, config.objective
    seed, relabels = VALIDATION_SEED if for_dev else config.seed, {}
    rate = (config.validation.mask_rate if for_dev else None) or objective.mask_rate
    for term in () if for_dev else objective.on:
        if relabel := term.relabel(objective, artifacts, objective.uses_language_ids):
            relabels[term.name] = relabel
    trained = [trained_types(language.train.counts, space.specials.all) for language in artifacts.languages]
    # A softmax over one language, as with separate embeddings, predicts and reads only words of that language.
    own = config.sharing.softmax == "language"
    tables = random_word_tables(trained, "same-language" if own else objective.random_words)
    length = config.batch.length
    masker = CausalMasker if objective.is_causal else Masker
    return masker(space.specials, space.size, rate, length, tables, seed, NAMES, relabels)


def sampling_weights(
    monolingual: Sequence[RowSource], sizes: Sequence[float], exponent: float, parallel: Sequence[RowSource] = ()
) -> tuple[Fraction, ...]:
    """Return the share of each source, monolingual sources first. The shares sum to 1.

    Among monolingual rows a language has q ∝ size ** exponent, where size is its number of sentences (Lample &
    Conneau 2019, section 3.1) or a given number. A source of sentence pairs has the share of its rows in all rows.

    Args:
        monolingual: Sources of rows of one language.
        sizes: Size of the language of each monolingual source.
        exponent: Exponent of the sizes, 0 for equal shares and 1 for shares in proportion to the sizes.
        parallel: Sources of rows of sentence pairs.
    """
    powers = [Fraction(float(size) ** exponent) for size in sizes]
    own = sum(source.rows for source in monolingual)
    rows = own + sum(source.rows for source in parallel)
    shares = [Fraction(own, rows) * power / sum(powers) for power in powers]
    return (*shares, *(Fraction(source.rows, rows) for source in parallel))


class _Texts:
    """Sources of rows for the training text."""

    def __init__(self, config: PretrainConfig, artifacts: Artifacts, report: Report) -> None:
        self.config, self.artifacts, self.report = config, artifacts, report

    @cached_property
    def monolingual(self) -> list[RowSource]:
        return self._monolingual(self.config.objective.is_causal)

    @cached_property
    def masked(self) -> list[RowSource]:
        return self._monolingual(False) if self.config.objective.is_causal else self.monolingual

    def _monolingual(self, causal: bool) -> list[RowSource]:
        packing, found = self.config.batch.packing, []
        for i, one in enumerate(self.artifacts.languages):
            texts: list[RowSource] = [
                _monolingual(self.config, packing, self.artifacts, i, shards, one.name, self.report, causal)
                for shards in (one.train, *one.copies)
            ]
            found.append(texts[0] if len(texts) == 1 else CopiesRows(texts))
        return found

    def pairs(self, share: float) -> list[RowSource]:
        assert self.artifacts.parallel, "a term that reads sentence pairs needs them"
        names = [language.name for language in self.artifacts.languages]
        batch, seed, specials = self.config.batch, self.config.seed, self.artifacts.id_space.specials
        causal, alone = self.config.objective.is_causal, batch.packing == "sentence"
        found: list[RowSource] = []
        for pairs in self.artifacts.parallel:
            both = names[pairs.left], names[pairs.right]
            for turned in (False, True) if causal else (False,):  # a decoder reads each pair in both orders
                name = "+".join(reversed(both) if turned else both)
                found.append(
                    ParallelRows(pairs, share, batch.length, specials, seed, name, self.report, alone, causal, turned)
                )
        return found


def _monolingual(
    config: PretrainConfig,
    packing: Packing,
    artifacts: Artifacts,
    language: int,
    shards: Shards,
    name: str,
    report: Report = silent,
    causal: bool = False,
) -> RowSource:
    length, specials = config.batch.length, artifacts.id_space.specials
    if packing == "stream":
        return StreamRows(shards, language, length, specials, name, causal)
    return SentenceRows(shards, language, length, specials, name, report, packing == "sentence", causal)
