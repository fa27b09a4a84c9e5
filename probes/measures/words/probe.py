"""The probe ``words``: word-embedding alignment, by bands of frequency and over the checkpoints of a run.

In a run of synthlang, the embeddings of a word and of its translation are known (``pretrain/word_pairs.py``), also
after an adjustment or fine-tuning. For other models, a dictionary file gives the translations (``named.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pretrain.artifacts import Artifacts
from pretrain.build import new_model
from pretrain.checkpoints import is_sound, load_weights
from pretrain.config import PretrainConfig
from pretrain.folder import present_steps
from pretrain.model.language_model import LanguageModel
from pretrain.run import store_of
from probes.figures.drawing import Drawing
from probes.figures.lines import Series, emergence
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult
from probes.measures.summary import words_sentence
from probes.measures.words import WordsConfig, no_dictionary, no_rows
from probes.measures.words.alignment import band_table, notes_of, probe_alignment, subset_table
from probes.measures.words.named import words_of_dictionary
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.store import Store

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
    opened = (
        given.pretrained.run if given.same_model else None
    )  # also set for an adjusted or fine-tuned model of the run
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
    if store is None:
        raise InputError(
            "the probe words needs a store for its dictionary", hint="give ProbeInput a store", code="missing"
        )
    return _of_run(given, *opened, number, store, report)


def _of_run(
    given: ProbeInput, config: PretrainConfig, artifacts: Artifacts, number: int, store: Store, report: Report
) -> ProbeResult:
    """Measure one language of a run. If the model is the run itself, also measure its checkpoints.

    Raises:
        InputError: The alignment cannot be measured (see `probe_alignment`), or the state of the last checkpoint cannot
            be read.
    """
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
