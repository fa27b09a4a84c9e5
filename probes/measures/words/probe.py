"""Probe ``words``: word-embedding alignment, by bands of frequency and over the checkpoints of a run.

Of our runs the rows of a word and its counterpart are known (pretrain/word_pairs.py). Of other models a dictionary
names words; those that are one token on both sides are compared (words_dictionary.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pretrain.artifacts import Artifacts
from pretrain.build import new_model
from pretrain.checkpoints import is_sound, load_weights
from pretrain.config import PretrainConfig
from pretrain.folder import own_steps
from pretrain.model.encoder import MaskedLM
from pretrain.run import store_of
from probes.figures.drawing import Drawing
from probes.figures.lines import Series, emergence
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult
from probes.measures.words import WordsConfig, no_rows
from probes.measures.words.alignment import probe_alignment
from probes.measures.words.named import words_of_dictionary
from probes.measures.words.show import band_table, notes_of, subset_table
from synthlang.errors import InputError
from synthlang.progress import Report, silent

SUBSETS = ("all", "in_dictionary", "held_out")


def words_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """Alignment of the rows of words with their counterparts, in percent (0 to 100).

    InputError for a language that the run has not, or its parent (it has no rows of its own), and for NaN.
    """
    run = given.run if given.same_model else None
    opened = None if run is None else given.pretrained.run
    language = "" if opened is None else _chosen(given, opened[1])  # also where a dictionary says what is compared
    dictionary = given.config.of(WordsConfig).dictionary
    if dictionary is not None:
        return words_of_dictionary(given, dictionary, report)
    if run is None or opened is None:
        raise InputError(
            "words: which words are translations is known of one run with both languages; else name words.dictionary"
        )
    return _of_run(given, run, *opened, language, report)


def _of_run(
    given: ProbeInput, run: Path, config: PretrainConfig, artifacts: Artifacts, language: str, report: Report
) -> ProbeResult:
    values = _measured(given, given.pretrained.model, config, artifacts, run, "", report)
    values["language"] = language
    notes = notes_of(values)
    if values["scores"] is None:
        return ProbeResult(values, (), (), notes)
    names = given.name("source"), given.name("target")
    tables = [subset_table(values, names), band_table(values["bands"], names[1])]
    if not given.config.of(WordsConfig).checkpoints:
        return ProbeResult(values, tables, (), notes)
    over, damaged = _over_checkpoints(given, config, artifacts, run, report)
    notes += [f"words: checkpoint step-{step} is damaged and left out" for step in damaged]
    drawings = _emergence(over, language)
    if not drawings and not damaged:
        notes.append(
            "words: the run keeps one checkpoint only, so when alignment emerges is not shown (checkpoints.keep)"
        )
    elif not drawings:
        notes.append("words: one checkpoint is left, so when alignment emerges is not shown")
    return ProbeResult({**values, "checkpoints": over}, tables, drawings, notes)


def _chosen(given: ProbeInput, artifacts: Artifacts) -> str:
    """The name of the language that is compared with the parent."""
    number, names = given.pretrained.target.number, [language.name for language in artifacts.languages]
    if number:
        return names[number]
    raise no_rows(given.config.language or given.name("target"), names)


def _measured(
    given: ProbeInput,
    model: MaskedLM,
    config: PretrainConfig,
    artifacts: Artifacts,
    run: Path,
    at: str,
    report: Report = silent,
) -> dict[str, Any]:
    """The alignment of all languages; errors name the model, and ``at`` which of its checkpoints."""
    chosen = artifacts.languages[given.pretrained.target.number].name
    try:
        bands = given.config.of(WordsConfig).bands
        return probe_alignment(model, config, artifacts, store_of(run), bands, report, chosen)
    except InputError as error:
        raise InputError(f"words: {given.pretrained.name}{at}: {error}") from error


def _over_checkpoints(
    given: ProbeInput, config: PretrainConfig, artifacts: Artifacts, run: Path, report: Report
) -> tuple[list[dict[str, Any]], list[int]]:
    """For each checkpoint {"step", "languages": language → all scores, as of the last one}; and the damaged ones.

    Those that the run keeps by its config, whatever else is in its folder: a run is shared with others.
    """
    folder, model = run / "checkpoints", new_model(config, artifacts)
    found, damaged = [], []
    steps = own_steps(folder, config.checkpoints, config.steps)
    steps = [step for step in steps if (folder / f"step-{step}").exists()]
    for done, step in enumerate(steps, 1):
        path = folder / f"step-{step}"
        if is_sound(path):
            load_weights(path / "model.safetensors", model)
            values = _measured(given, model, config, artifacts, run, f", checkpoint step-{step}")
            found.append({"step": step, "languages": values["languages"]})
        else:
            damaged.append(step)
        report("alignment over checkpoints", done, len(steps), "")
    return found, damaged


def _emergence(over: Sequence[Mapping[str, Any]], language: str) -> tuple[Drawing, ...]:
    """A line for each subset of the language, mean of both directions, where there are at least two checkpoints."""
    lines = []
    for subset in SUBSETS:
        points = [(one["step"], (one["languages"][language]["scores"] or {}).get(subset)) for one in over]
        known = [(step, score["cosine"]["mean"]) for step, score in points if score is not None]
        if len(known) > 1:
            steps, scores = zip(*known, strict=True)
            lines.append(Series(f"{language}, {subset.replace('_', ' ')}", steps, scores))
    title = "Word-embedding alignment over pretraining"
    return (emergence("words-emergence", title, lines, "alignment, cosine (%)"),) if lines else ()
