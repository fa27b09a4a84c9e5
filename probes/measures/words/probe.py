"""The probe ``words``: word-embedding alignment, by bands of frequency and over the checkpoints of a run.

In a run of synthlang, the embeddings of a word and of its translation are known (``pretrain/word_pairs.py``), also
after an adjustment or fine-tuning. For other models, a dictionary file gives the translations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.alignment import pair_credits
from pretrain.artifacts import Artifacts
from pretrain.build import new_model
from pretrain.checkpoints import is_sound, load_weights
from pretrain.config import PretrainConfig
from pretrain.folder import present_steps
from pretrain.model.language_model import LanguageModel
from pretrain.run import open_run, store_of
from pretrain.word_pairs import distinct, places_in, rows_of
from probes.figures.drawing import Drawing
from probes.figures.lines import Series, emergence
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult
from probes.measures.words import WordsConfig, no_dictionary, no_rows
from probes.measures.words.alignment import (
    band_table,
    candidate_numbers,
    notes_of,
    probe_alignment,
    subset_table,
    words_sentence,
    zero_rows,
)
from probes.models.names import is_run, model_path
from probes.models.pretrained import Reader, Role
from probes.states import single_tokens, special_tokens
from synthlang.dictionary.word_dictionary import read_muse, told_use, trained_types
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.progress import Report, silent
from synthlang.store import Store
from synthlang.wording import plural

SUBSETS = ("all", "in_dictionary", "held_out")


def words_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """Measure the alignment of the embeddings of words and of their translations, in percent (0 to 100).

    Raises:
        InputError: The language is the source language or not a language of the run, the alignment cannot be measured
            (see `probe_alignment`), or the state of the last checkpoint of a run cannot be read. The error is also
            raised if a dictionary cannot be used (see `words_of_dictionary`). Without a dictionary in the settings,
            the error is raised for a model that is not from a run, and for a second model.
        DiskError: A dictionary cannot be stored.
    """
    # also set for an adjusted or fine-tuned model of the run
    opened = given.pretrained.run if given.same_model else None
    names = [] if opened is None else [language.name for language in opened[1].languages]
    number = names.index(given.pretrained.target.tokenizer.name) if names else 0
    dictionary = given.config.of(WordsConfig).dictionary
    if names and not number and (given.run is not None or dictionary is None):
        raise no_rows(given.config.language or given.name("target"), names)
    if dictionary is not None:
        return words_of_dictionary(given, dictionary, report)
    if opened is None:
        raise no_dictionary()
    store = given.store if given.run is None else store_of(given.run)
    assert store is not None, "the dictionary of a run needs a store"
    return _of_run(given, *opened, number, store, report)


def _of_run(
    given: ProbeInput, config: PretrainConfig, artifacts: Artifacts, number: int, store: Store, report: Report
) -> ProbeResult:
    """Measure one language of a run. If the model is the run itself, also measure its checkpoints."""
    language, run = artifacts.languages[number].name, given.run

    def measured(model: LanguageModel, at: str, report: Report = silent) -> dict[str, Any]:
        """Return the alignment of all languages. An error names the model and the checkpoint ``at``."""
        try:
            own = given.config.of(WordsConfig)
            return probe_alignment(model, config, artifacts, store, own.bands, report, language, own.language_ids)
        except InputError as error:
            raise error.inside("words", path=f"{given.pretrained.name}{at}") from error

    values = {**measured(given.pretrained.model, "", report), "language": language}
    notes = notes_of(values)
    if values["scores"] is None:
        return ProbeResult(values, (), (), notes)
    names = given.name("source"), given.name("target")
    tables = [subset_table(values, names), band_table(values["bands"], names[1])]
    if run is None or not given.config.of(WordsConfig).checkpoints or given.config.checkpoints == "all":
        return ProbeResult(values, tables, (), notes, words_sentence(values))
    over, more = _over_checkpoints(run, config, artifacts, measured, report)
    drawings = _emergence(over, language)
    if not drawings and not more:
        more.append(
            "words: the emergence of alignment is not shown, because the run keeps one checkpoint (checkpoints.keep)"
        )
    elif not drawings:
        more.append("words: the emergence of alignment is not shown, because only one checkpoint is left")
    return ProbeResult({**values, "checkpoints": over}, tables, drawings, notes + more, words_sentence(values))


def _over_checkpoints(
    run: Path, config: PretrainConfig, artifacts: Artifacts, measured: Callable[..., dict[str, Any]], report: Report
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the scores of each checkpoint, and notes on damaged checkpoints.

    An entry is ``{"step": step, "languages": {language: scores}}``. Only checkpoints that the config of the run keeps
    are read.
    """
    folder, model = run / "checkpoints", new_model(config, artifacts)
    over, notes = [], []
    steps = present_steps(folder, config.checkpoints, config.steps)
    for done, step in enumerate(steps, 1):
        if is_sound(folder / f"step-{step}"):
            load_weights(folder / f"step-{step}" / "model.safetensors", model)
            over.append({"step": step, "languages": measured(model, f", checkpoint step-{step}")["languages"]})
        else:
            notes.append(f"words: checkpoint step-{step} is damaged and was skipped")
        report("alignment over checkpoints", done, len(steps), "")
    return over, notes


def _emergence(over: Sequence[Mapping[str, Any]], language: str) -> tuple[Drawing, ...]:
    """Draw the alignment over checkpoints, if there are several, with a line for each subset of words."""
    lines = []
    for subset in SUBSETS:
        points = [(one["step"], (one["languages"][language]["scores"] or {}).get(subset)) for one in over]
        known = [(step, score["cosine"]["mean"]) for step, score in points if score is not None]
        if len(known) > 1:
            steps, scores = zip(*known, strict=True)
            lines.append(Series(f"{language}, {subset.replace('_', ' ')}", steps, scores))
    title = "Word-embedding alignment over pretraining"
    return (emergence("words-emergence", title, lines, "alignment, cosine (%)"),) if lines else ()


Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The candidate words of one language.

    Attributes:
        name: The name of the language.
        model: The model that reads the language.
        reader: The reader of the language.
        ids: [n] the ids of the candidates, ascending.
        seen: True if the ids are known to occur in the training text.
        language_ids: True to add the embedding of the language to each row.
    """

    name: str
    model: LanguageModel
    reader: Reader
    ids: Ids
    seen: bool
    language_ids: bool

    def tensor(self, ids: Ids) -> Tensor:
        return torch.from_numpy(ids.copy()).to(self.model.norm.weight.device)

    def rows(self, ids: Ids) -> Ids:
        """Return the number [n] of the embedding row of each id in ``ids`` [n]."""
        with torch.no_grad():
            rows: Ids = self.model.embeddings.rows(self.tensor(ids), self.reader.number).cpu().numpy()
        return rows

    def vectors(self) -> Tensor:
        """Return the vectors of all candidates, [n, d]."""
        with torch.no_grad():
            return rows_of(self.model, self.tensor(self.ids), self.reader.number, self.language_ids)


def words_of_dictionary(given: ProbeInput, name: str, report: Report) -> ProbeResult:
    """Measure the alignment of the words in a MUSE file that are one token in both languages.

    The candidates for a run of synthlang are the ids in its training text, and for other models all ids of the
    tokenizer. Special tokens are never candidates.

    Args:
        given: The input of the probe.
        name: The path of the MUSE file, with source words first.
        report: Receives the progress.

    Raises:
        InputError: The file cannot be read or has a line without two words, no pair is left, or the embeddings have
            different sizes or contain NaN. The error is also raised if the data of a run cannot be read, or if the
            transforms of a language work on tokens of another tokenizer.
    """
    sides = _candidates(given, "source"), _candidates(given, "target")
    given.check_sizes()
    pairs, counts, use = _pairs(user_path(name), sides, given.same_model)
    shared = _shared(sides) if given.same_model else np.zeros((0, 2), np.int64)
    names = given.name("source"), given.name("target")
    try:
        ids = sides[0].ids, sides[1].ids
        places = places_in(ids, pairs), places_in(ids, shared)
        credits = pair_credits(sides[0].vectors(), sides[1].vectors(), *places, report=report, names=names)
    except InputError as error:
        raise error.inside("words", path=given.pretrained.name) from error
    scores = credits.scores(torch.zeros(len(pairs), dtype=torch.bool)).to_json()
    counts |= zero_rows(credits, names)
    values = {
        "probe": "alignment",
        "language": names[1],
        "types": len(np.unique(pairs[:, 0])),
        "candidates": candidate_numbers((sides[0].ids, sides[1].ids), len(shared)),
        "scores": {"all": scores["all"]},
        "counts": {reason: n for reason, n in counts.items() if n},
    }
    unknown = [side.name for side in sides if not side.seen]
    notes = [f"words: {use}", *notes_of(values)]
    if unknown:
        notes.append(
            f"words: the training text of {' and '.join(dict.fromkeys(unknown))} is not known, so all tokens of the "
            "tokenizer are candidates, including untrained ones and tokens of other languages"
        )
    return ProbeResult(values, [subset_table(values, names)], (), notes, words_sentence(values))


def _candidates(given: ProbeInput, role: Role) -> _Candidates:
    """Select the candidates: the ids in a run's training text, or all ids of another model."""
    reader, second = given.reader(role), given.config.model2 if role == "target" else None
    folder = given.run if second is None else model_path(second)
    known = folder is not None and is_run(folder)
    if folder is not None and known:
        ids = trained_types(open_run(folder)[1].languages[reader.number].train.counts, reader.specials.all)
    else:
        ids = np.setdiff1d(reader.tokenizer.ids, special_tokens(reader))
    return _Candidates(
        given.name(role), given.body(role), reader, ids, known, given.config.of(WordsConfig).language_ids
    )


def _pairs(path: Path, sides: tuple[_Candidates, _Candidates], same_model: bool) -> tuple[Ids, dict[str, int], str]:
    """Return the id pairs [n, 2] to compare, counts of dropped pairs by reason, and a note on the use of the file."""
    words = read_muse(path)
    ids = np.stack([single_tokens(side.reader, [pair[i] for pair in words]) for i, side in enumerate(sides)], axis=1)
    left, counts = np.ones(len(ids), bool), dict[str, int]()

    def drop(reason: str, wrong: NDArray[np.bool_]) -> None:
        counts[reason] = int((left & wrong).sum())
        left[:] &= ~wrong

    drop("pairs of words of several tokens", (ids[:, 0] < 0) | (ids[:, 1] < 0))
    special = [np.isin(ids[:, i], special_tokens(side.reader)) for i, side in enumerate(sides)]
    drop("pairs of words that are unknown to the tokenizer", special[0] | special[1])
    missing = [~np.isin(ids[:, i], side.ids) for i, side in enumerate(sides)]
    drop("pairs of words that do not occur in training", missing[0] | missing[1])
    kept = ids[left]
    if same_model:
        one = sides[0].rows(kept[:, 0]) == sides[1].rows(kept[:, 1])
        counts["pairs of words that are one token"] = int(one.sum())
        kept = kept[~one]
    found = distinct(kept)
    if not len(found):
        reasons = ", ".join(f"{reason}: {n}" for reason, n in counts.items() if n)
        told = f"of {plural(len(words), 'word pair')}, none can be compared ({reasons})"
        hint = "give a dictionary with source words first, whose words are single tokens of their language"
        raise InputError(told, path, keys="words.dictionary", hint=hint, code="empty")
    turned = [single_tokens(side.reader, [pair[1 - i] for pair in words]) for i, side in enumerate(sides)]
    swapped = np.isin(turned[0], sides[0].ids) & np.isin(turned[1], sides[1].ids)
    return found, counts, told_use(len(found), len(words), int(swapped.sum()))


def _shared(sides: tuple[_Candidates, _Candidates]) -> Ids:
    """Return the id pairs [s, 2] of the two languages that share an embedding row."""
    rows = [side.rows(side.ids) for side in sides]
    _, first, second = np.intersect1d(rows[0], rows[1], return_indices=True)
    return np.stack([sides[0].ids[first], sides[1].ids[second]], axis=1)
