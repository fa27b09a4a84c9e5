"""Probe ``words``: word-embedding alignment, by bands of frequency and over the checkpoints of a run.

Of our runs the rows of a word and its counterpart are known (pretrain/word_pairs.py). Of other models a dictionary
names words; those that are one token on both sides are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.table import Table
from torch import Tensor

from pretrain.alignment import alignment
from pretrain.checkpoint import is_sound, load_weights, steps_in
from pretrain.config import PretrainConfig
from pretrain.encoder import MaskedLM
from pretrain.model import new_model
from pretrain.prepare import Artifacts
from pretrain.run import open_run, store_of
from probes.figures.drawing import Drawing
from probes.figures.lines import Series, emergence
from probes.measure.found import Found
from probes.measure.subject import Subject
from probes.transfer.batch import Reader
from probes.words import probe_alignment
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.muse import read_muse
from synthlang.progress import Report, silent

SUBSETS = ("all", "in_dictionary", "held_out")


def words_probe(subject: Subject, report: Report = silent) -> Found:
    """Alignment of the rows of words with their counterparts, in percent (0 to 100)."""
    if subject.run is not None and subject.same_model:
        return _of_run(subject, subject.run, report)
    if subject.config.words.dictionary is None:
        raise InputError("words: which words are translations is known of runs of ours; else name words.dictionary")
    return _of_dictionary(subject, subject.config.words.dictionary, report)


def _of_run(subject: Subject, run: Path, report: Report) -> Found:
    settings, (config, artifacts) = subject.config.words, open_run(run)
    store, model = store_of(run), subject.pretrained.model
    values = probe_alignment(model, config, artifacts, store, settings.bands, report)
    notes = [values["reason"]] if "reason" in values else []
    tables = [
        table
        for language, found in values["languages"].items()
        if found["scores"]
        for table in (subset_table(found["scores"], language), _band_table(found["bands"], language))
    ]
    if not settings.checkpoints or values["scores"] is None:
        return Found(values, tables, (), notes)
    over, damaged = _over_checkpoints(run, config, artifacts, report)
    notes += [f"checkpoint step-{step} is damaged and left out" for step in damaged]
    drawings = _emergence(over)
    if not drawings:
        notes.append("the run keeps one checkpoint only, so when alignment emerges is not shown (checkpoints.keep)")
    return Found({**values, "checkpoints": over}, tables, drawings, notes)


def _over_checkpoints(
    run: Path, config: PretrainConfig, artifacts: Artifacts, report: Report
) -> tuple[list[dict[str, Any]], list[int]]:
    """For each checkpoint {"step", "languages": language → subset → mean cosine score}; and the damaged ones."""
    folder, model = run / "checkpoints", new_model(config, artifacts)
    store, found, damaged = store_of(run), [], []
    steps = steps_in(folder)
    for done, step in enumerate(steps, 1):
        path = folder / f"step-{step}"
        if not is_sound(path):
            damaged.append(step)
            continue
        load_weights(path / "model.safetensors", model)
        scores = probe_alignment(model, config, artifacts, store)["languages"]
        found.append({"step": step, "languages": {name: _means(held["scores"]) for name, held in scores.items()}})
        report("alignment over checkpoints", done, len(steps), "")
    return found, damaged


def _means(scores: Mapping[str, Any] | None) -> dict[str, float | None]:
    return {key: held["cosine"]["mean"] if held else None for key, held in (scores or {}).items()}


def _emergence(over: Sequence[Mapping[str, Any]]) -> tuple[Drawing, ...]:
    """Lines of each language and subset, where there are at least two checkpoints."""
    if len(over) < 2:
        return ()
    lines = []
    for language in over[0]["languages"]:
        for subset in SUBSETS:
            points = [(held["step"], held["languages"][language].get(subset)) for held in over]
            known = [(step, score) for step, score in points if score is not None]
            if len(known) > 1:
                steps, scores = zip(*known, strict=True)
                lines.append(Series(f"{language}, {subset.replace('_', ' ')}", steps, scores))
    title = "Word-embedding alignment over pretraining"
    return (emergence("words-emergence", title, lines, "alignment, cosine (%)"),) if lines else ()


def _of_dictionary(subject: Subject, name: str, report: Report) -> Found:
    pairs = list(dict.fromkeys(read_muse(user_path(name))))
    source, target = subject.pretrained.source, subject.pretrained.target
    ids = np.stack([_single(source, [a for a, _ in pairs]), _single(target, [b for _, b in pairs])], axis=1)
    several = int((ids < 0).any(axis=1).sum())
    ids = ids[(ids >= 0).all(axis=1)]
    kept = _one_to_one(ids)
    if not len(kept):
        raise InputError(f"no pair of the {len(pairs)} in the dictionary is one token on both sides", user_path(name))
    rows = [_rows_of(subject.body(reader.role), kept[:, i], reader) for i, reader in enumerate((source, target))]
    if rows[0].shape[1] != rows[1].shape[1]:
        raise InputError("words: the embeddings of both models must have the same size")
    nothing = torch.zeros(len(kept), dtype=torch.bool)
    scores = alignment(rows[0].float(), rows[1].float(), nothing, report=report).all
    assert scores is not None, "there are pairs"
    held = {"all": scores.__dict__ | {"cosine": vars(scores.cosine), "csls": vars(scores.csls)}}
    counts = {"pairs of words of several tokens": several, "pairs of a word that had one": len(ids) - len(kept)}
    values = {"probe": "alignment", "types": len(kept), "scores": held, "counts": counts}
    return Found(values, [subset_table(held, subject.name("target"))])


def _rows_of(body: MaskedLM, ids: NDArray[np.int64], reader: Reader) -> Tensor:
    return body.word_rows(torch.from_numpy(ids.copy()).to(body.norm.weight.device), reader.member)


def _single(reader: Reader, words: list[str]) -> NDArray[np.int64]:
    """[words] the id of each word that is one token, −1 for others."""
    encoded = reader.encode(Corpus.of([{"form": words}]))
    first, pieces = encoded.word_offsets[:-1], np.diff(encoded.word_offsets)
    padded = np.append(encoded.ids, -1).astype(np.int64)
    single: NDArray[np.int64] = np.where(pieces == 1, padded[np.minimum(first, len(encoded.ids))], -1)
    return single


def _one_to_one(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pairs in order, each id once a side, and no id with itself."""
    seen: tuple[set[int], set[int]] = (set(), set())
    kept = []
    for a, b in pairs.tolist():
        if a != b and a not in seen[0] and b not in seen[1]:
            seen[0].add(a)
            seen[1].add(b)
            kept.append((a, b))
    return np.asarray(kept, np.int64).reshape(-1, 2)


def subset_table(scores: Mapping[str, Any], language: str) -> Table:
    """All words, those in the dictionary and the others."""
    table = Table(title=f"Word-embedding alignment, parent ↔ {language} (%)")
    for column in ("types", "n", "cosine →", "cosine ←", "cosine mean", "CSLS mean"):
        table.add_column(column, justify="right")
    for key, held in scores.items():
        table.add_row(key.replace("_", " "), *_cells(held))
    return table


def _band_table(bands: Sequence[Mapping[str, Any]], language: str) -> Table:
    table = Table(title=f"The same by frequency rank in the parent's text, {language} (%)")
    for column in ("ranks", "n", "cosine →", "cosine ←", "cosine mean", "CSLS mean"):
        table.add_column(column, justify="right")
    for band in bands:
        table.add_row(f"{band['from']:,} – {band['to'] or '…'}", *_cells(band["scores"]["all"]))
    return table


def _cells(held: Mapping[str, Any] | None) -> list[str]:
    if held is None:
        return ["0", "–", "–", "–", "–"]
    cosine = held["cosine"]
    values = (cosine["forward"], cosine["backward"], cosine["mean"], held["csls"]["mean"])
    return [f"{held['n']:,}", *(f"{value:.1f}" for value in values)]
