"""The word-embedding alignment of a run, over all words and by bands of frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.alignment import WordCredits
from pretrain.artifacts import Artifacts
from pretrain.build import trained_model
from pretrain.config import PretrainConfig
from pretrain.model.encoder import MaskedLM
from pretrain.run import open_run
from pretrain.word_pairs import WordPairs, credits_of, word_pairs
from probes.report.page import Table
from synthlang.dictionary.ids import build_id_dictionary
from synthlang.progress import Report, silent
from synthlang.store import Store

NOTHING: Mapping[str, Any] = {"types": 0, "candidates": None, "scores": None, "bands": [], "counts": {}}
BANDS = (100, 1000, 5000)
"""The last rank of each band of frequency; one more band has all the rest."""


def alignment_of_run(run: Path, config: PretrainConfig, store: Store, report: Report = silent) -> dict[str, Any]:
    """Open a finished run and return ``probe_alignment`` of its final weights."""
    _, artifacts = open_run(run, config, report)
    return probe_alignment(trained_model(run, config, artifacts), config, artifacts, store)


def probe_alignment(
    model: MaskedLM,
    config: PretrainConfig,
    artifacts: Artifacts,
    store: Store,
    bands: Sequence[int] = BANDS,
    report: Report = silent,
    headline: str | None = None,
    language_ids: bool = False,
) -> dict[str, Any]:
    """Return the alignment of each language, in percent, over all types, those in the dictionary and those held out.

    Types are the ids that occur in the training text of both languages, without the special ones. ``in_dictionary``
    means the dictionary of the config, also for a run that did not use it, so that objectives are compared on the same
    types. Without pairs of rows (a language with the vocabulary of the source, and no dictionary) ``scores`` and
    ``candidates`` are null and ``bands`` is empty.

    ``candidates`` counts the rows of the ``parent`` and of the ``other`` language among which a translation is sought.
    Rows that both have are counted under ``shared``; each of them competes for all words but its own
    (pretrain/word_pairs.py). ``counts`` has what was left out, and rows of zeros, which are near no other row.

    ``bands`` are the same scores by the frequency of the source type in the training text, most frequent first:
    ``{"from": 101, "to": 1000, "types": …, "scores": …}``. Ranks include the last one, which is null for the rest.
    Ranks count every type that occurs, and of equally frequent ones the smaller id first. A band may have fewer
    ``types`` than ranks, since not every type has a translation. The types of other bands still compete as neighbours.

    Args:
        model: The model.
        config: The settings of the run.
        artifacts: The data of the run.
        store: The store of the run, for a dictionary that no term of the objective reads.
        bands: The last rank of each band.
        report: Receives the progress.
        headline: The language whose values stand beside ``languages`` (default: the first after the source language).
        language_ids: Whether the embedding of its language is added to each row, in a model that has such embeddings.
    """
    dictionary = artifacts.dictionary
    if dictionary is None and any(len(c.pairs) for c in artifacts.candidates):
        # also where no term of the objective reads it
        train = [language.train for language in artifacts.languages]
        dictionary = build_id_dictionary(config.dictionary, artifacts.id_space, train, store, artifacts.own_rows)
    languages: dict[str, Any] = {}
    for number, language in enumerate(artifacts.languages[1:], 1):
        pairs = word_pairs(artifacts, number, dictionary)
        languages[language.name] = _language(model, artifacts, pairs, number, bands, report, language_ids)
    chosen = next(iter(languages), None) if headline is None else headline
    first: Mapping[str, Any] = NOTHING if chosen is None else languages[chosen]
    result: dict[str, Any] = {"probe": "alignment", **first, "languages": languages}
    if first["scores"] is None:
        result["reason"] = "no pairs of words: the languages share one vocabulary, and there is no dictionary"
    return result


def _language(
    model: MaskedLM,
    artifacts: Artifacts,
    pairs: WordPairs | None,
    number: int,
    bands: Sequence[int],
    report: Report,
    language_ids: bool,
) -> dict[str, Any]:
    known = next((one.left_out for one in artifacts.candidates if one.language == number), {})
    if pairs is None:
        return {**NOTHING, "counts": dict(known)}
    credits = credits_of(model, pairs, number, report, language_ids)
    inside = torch.from_numpy(pairs.in_dictionary)
    ranks = frequency_ranks(artifacts.languages[0].train.counts, pairs.candidates[0])[pairs.pairs[:, 0]]
    counts = {**known, "pairs of words that are one row": pairs.same, **zero_rows(credits, pairs.names)}
    return {
        "types": len(pairs.pairs),
        "candidates": candidate_numbers(pairs.candidates, len(pairs.shared)),
        "scores": credits.scores(inside).to_json(),
        "bands": band_scores(credits, inside, ranks, bands),
        "counts": {reason: n for reason, n in counts.items() if n},
    }


def candidate_numbers(candidates: tuple[NDArray[np.int64], NDArray[np.int64]], shared: int) -> dict[str, int]:
    """Return how many rows compete in each language, and how many of them are rows of both."""
    return {"parent": len(candidates[0]), "other": len(candidates[1]), "shared": shared}


def zero_rows(credits: WordCredits, names: tuple[str, str]) -> dict[str, int]:
    """Return how many candidates of each language are rows of zeros, without the languages that have none."""
    return {f"rows of zeros, {name}": n for name, n in zip(names, credits.zeros, strict=True) if n}


def frequency_ranks(counts: NDArray[np.int64], types: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rank by count, from 1, of each of the ``types`` (ids, ascending), 0 for other ids: [ids]."""
    ranks = np.zeros(len(counts), np.int64)
    ranks[types[np.argsort(-counts[types], kind="stable")]] = np.arange(1, len(types) + 1)
    return ranks


def band_scores(
    credits: WordCredits, in_dictionary: torch.Tensor, ranks: NDArray[np.int64], bands: Sequence[int]
) -> list[dict[str, Any]]:
    """Return the scores of the words in each band; ``ranks`` [n] are those of the words (see `probe_alignment`)."""
    result = []
    for before, last in pairwise((0, *bands, None)):
        assert before is not None, "only the last band is open"
        inside = (ranks > before) & (ranks <= (last or ranks.max(initial=0)))
        scores = credits.scores(in_dictionary, torch.from_numpy(inside)).to_json()
        result.append({"from": before + 1, "to": last, "types": int(inside.sum()), "scores": scores})
    return result


Names = tuple[str, str]
SCORES = ("n", "cosine →", "cosine ←", "cosine mean", "CSLS mean")


def subset_table(values: Mapping[str, Any], names: Names) -> Table:
    """Return a table of all words, those in the dictionary and the others.

    ``names`` are those of the source and of the other language.
    """
    sizes = f"{values['candidates']['other']:,} and {values['candidates']['parent']:,}"
    title = f"Word-embedding alignment, {names[0]} ↔ {names[1]}, among {sizes} words (%)"
    rows = [[key.replace("_", " "), *_cells(scores)] for key, scores in values["scores"].items()]
    return Table(title, ("types", *SCORES), rows)


def band_table(bands: Sequence[Mapping[str, Any]], language: str) -> Table:
    """Return a table of all words by their frequency in the text of the source language."""
    rows = [[f"{band['from']:,} – {band['to'] or '…'}", *_cells(band["scores"]["all"])] for band in bands]
    return Table(f"The same by frequency rank in the parent's text, {language} (%)", ("ranks", *SCORES), rows)


def _cells(scores: Mapping[str, Any] | None) -> list[str]:
    if scores is None:
        return ["0", "–", "–", "–", "–"]
    cosine = scores["cosine"]
    values = (cosine["forward"], cosine["backward"], cosine["mean"], scores["csls"]["mean"])
    return [f"{scores['n']:,}", *(f"{value:.1f}" for value in values)]


def notes_of(values: Mapping[str, Any]) -> list[str]:
    """Return the notes that a reader of the numbers needs."""
    notes = [f"words: {values['reason']}"] if "reason" in values else []
    shared = (values["candidates"] or {}).get("shared", 0)
    if shared:
        notes.append(
            f"words: {shared:,} embeddings belong to both languages; each competes for every word but its own, "
            "and pairs that share one are left out"
        )
    zeros = sum(n for reason, n in values["counts"].items() if reason.startswith("rows of zeros"))
    if zeros:
        notes.append(f"words: {zeros:,} embeddings are zero, and their words count as not found")
    return notes
