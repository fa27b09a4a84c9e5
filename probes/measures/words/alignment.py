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
from pretrain.model.language_model import LanguageModel
from pretrain.run import open_run
from pretrain.word_pairs import WordPairs, credits_of, word_pairs
from probes.report.page import Table
from synthlang.dictionary.ids import build_id_dictionary
from synthlang.progress import Report, silent
from synthlang.store import Store

NOTHING: Mapping[str, Any] = {"types": 0, "candidates": None, "scores": None, "bands": [], "counts": {}}
BANDS = (100, 1000, 5000)
"""The last frequency rank of each band of words. Words of higher rank numbers form one more band."""


def alignment_of_run(run: Path, config: PretrainConfig, store: Store, report: Report = silent) -> dict[str, Any]:
    """Return `probe_alignment` for the checkpoint that the config of a finished run selects.

    Args:
        run: The folder of the run.
        config: The settings of the run.
        store: The store of the run.
        report: Receives the progress of reading the data.

    Raises:
        InputError: The run or its data cannot be read, the checkpoint is damaged or gone, or the alignment cannot be
            measured (see `probe_alignment`).
        DiskError: A dictionary cannot be stored.
    """
    _, artifacts = open_run(run, config, report)
    return probe_alignment(trained_model(run, config, artifacts), config, artifacts, store)


def probe_alignment(
    model: LanguageModel,
    config: PretrainConfig,
    artifacts: Artifacts,
    store: Store,
    bands: Sequence[int] = BANDS,
    report: Report = silent,
    headline: str | None = None,
    language_ids: bool = False,
) -> dict[str, Any]:
    """Return the alignment of each language in percent, over all types, dictionary types and held-out types.

    Alignment is the percentage of types whose nearest embedding in the other language is their translation (Tang et al.
    2022, see ``pretrain/alignment.py``). Types are the ids, except special ids, that occur in the training text of both
    languages. ``in_dictionary`` refers to the dictionary of the config, even if no objective used it, so that
    objectives are compared on the same types. If a language has the vocabulary of the source language and there is no
    dictionary, there are no word pairs. Then ``scores`` and ``candidates`` are null, and ``bands`` is empty.

    ``candidates`` has the numbers of embedding rows among which translations are searched, for the source language
    (``parent``) and the ``other`` language. A row of both languages is also counted as ``shared``. It is a candidate
    for every word except its own (``pretrain/word_pairs.py``). ``counts`` has the number of items left out, by reason,
    and the number of zero rows, which have no nearest row.

    ``bands`` has the same scores by frequency rank of the source type in the training text, with an entry for each
    band, such as ``{"from": 101, "to": 1000, "types": …, "scores": …}``. "to" is included in the band, and null in the
    last band. Ties in frequency go to the smaller id. A band may have fewer ``types`` than ranks, because not every
    type has a translation. Types of other bands remain candidates.

    Args:
        model: The model.
        config: The settings of the run.
        artifacts: The data of the run.
        store: The store of the run, for a dictionary that no term of the objective reads.
        bands: The last rank of each band, ascending.
        report: Receives the progress.
        headline: The language whose values are also at the top level (default: the first derived language).
        language_ids: True to add the embedding of the language to each row, if the model has such embeddings.

    Raises:
        InputError: Embeddings contain NaN or infinity, or a dictionary that no term reads cannot be built (see
            `build_id_dictionary`).
        DiskError: Such a dictionary cannot be stored.
    """
    dictionary = artifacts.dictionary
    if dictionary is None and any(len(c.pairs) for c in artifacts.candidates):
        # no term of the objective needs the dictionary, so it was not built yet
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
        result["reason"] = "no word pairs, because the languages share one vocabulary and there is no dictionary"
    return result


def _language(
    model: LanguageModel,
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
        "types": len(np.unique(pairs.pairs[:, 0])),
        "candidates": candidate_numbers(pairs.candidates, len(pairs.shared)),
        "scores": credits.scores(inside).to_json(),
        "bands": band_scores(credits, inside, ranks, bands),
        "counts": {reason: n for reason, n in counts.items() if n},
    }


def candidate_numbers(candidates: tuple[NDArray[np.int64], NDArray[np.int64]], shared: int) -> dict[str, int]:
    """Return the numbers of candidates of the source language (``parent``) and of the ``other`` language.

    The result also has the number ``shared``. ``candidates`` has the ids [n] and [m] of the candidates, the source
    language first. ``shared`` is the number of embedding rows that are candidates of both languages.
    """
    return {"parent": len(candidates[0]), "other": len(candidates[1]), "shared": shared}


def zero_rows(credits: WordCredits, names: tuple[str, str]) -> dict[str, int]:
    """Return the number of zero rows among the candidates of each language, without languages that have none.

    ``names`` are the names of the source and the other language.
    """
    return {f"rows of zeros, {name}": n for name, n in zip(names, credits.zeros, strict=True) if n}


def frequency_ranks(counts: NDArray[np.int64], types: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the frequency rank [ids] of each id in ``types``, from 1 for the most frequent, and 0 for other ids.

    ``counts`` [ids] has the frequency of each id, and ``types`` [n] are ascending ids. Ties go to the smaller id.
    """
    ranks = np.zeros(len(counts), np.int64)
    ranks[types[np.argsort(-counts[types], kind="stable")]] = np.arange(1, len(types) + 1)
    return ranks


def band_scores(
    credits: WordCredits, in_dictionary: torch.Tensor, ranks: NDArray[np.int64], bands: Sequence[int]
) -> list[dict[str, Any]]:
    """Return the scores of each band of frequency ranks (see `probe_alignment`).

    Args:
        credits: The credits of n word pairs.
        in_dictionary: [n] the mask of the pairs of dictionary words.
        ranks: [n] the frequency rank of the source word of each pair, from 1.
        bands: The last rank of each band, ascending. One more band has all higher ranks.
    """
    result = []
    for before, last in pairwise((0, *bands, None)):
        assert before is not None, "only the last band is open"
        inside = (ranks > before) & (ranks <= (last or ranks.max(initial=0)))
        scores = credits.scores(in_dictionary, torch.from_numpy(inside)).to_json()
        types = scores["all"]["n"] if scores["all"] else 0
        result.append({"from": before + 1, "to": last, "types": types, "scores": scores})
    return result


Names = tuple[str, str]
SCORES = ("n", "cosine →", "cosine ←", "cosine mean", "CSLS mean")


def subset_table(values: Mapping[str, Any], names: Names) -> Table:
    """Return a table of the alignment of all words, dictionary words and held-out words, in percent.

    ``values`` is the part of probes.json for the probe ``words``. ``names`` are the names of the source and the other
    language.
    """
    sizes = f"{values['candidates']['other']:,} and {values['candidates']['parent']:,}"
    title = f"Word-embedding alignment, {names[0]} ↔ {names[1]}, among {sizes} words (%)"
    rows = [[key.replace("_", " "), *_cells(scores)] for key, scores in values["scores"].items()]
    return Table(title, ("types", *SCORES), rows)


def band_table(bands: Sequence[Mapping[str, Any]], language: str) -> Table:
    """Return a table of the alignment by frequency rank in the text of the source language, in percent.

    ``bands`` is the result of `band_scores`, and ``language`` is the name of the other language.
    """
    rows = [[f"{band['from']:,} – {band['to'] or '…'}", *_cells(band["scores"]["all"])] for band in bands]
    title = f"Word-embedding alignment by frequency rank in the text of the source language, {language} (%)"
    return Table(title, ("ranks", *SCORES), rows)


def _cells(scores: Mapping[str, Any] | None) -> list[str]:
    if scores is None:
        return ["0", "–", "–", "–", "–"]
    cosine = scores["cosine"]
    values = (cosine["forward"], cosine["backward"], cosine["mean"], scores["csls"]["mean"])
    return [f"{scores['n']:,}", *(f"{value:.1f}" for value in values)]


def notes_of(values: Mapping[str, Any]) -> list[str]:
    """Return notes on missing word pairs, on embeddings that both languages share, and on zero embeddings.

    ``values`` is the part of probes.json for the probe ``words``.
    """
    notes = [f"words: {values['reason']}"] if "reason" in values else []
    shared = (values["candidates"] or {}).get("shared", 0)
    if shared:
        notes.append(
            f"words: {shared:,} embeddings are shared by both languages; word pairs that share one are left out, "
            "and a shared embedding is a candidate for every word except its own"
        )
    zeros = sum(n for reason, n in values["counts"].items() if reason.startswith("rows of zeros"))
    if zeros:
        notes.append(f"words: {zeros:,} embeddings are zero, and their words count as not found")
    return notes


def words_sentence(values: Mapping[str, Any]) -> str:
    """Describe in a sentence the alignment of all measured word types, and of types outside the training dictionary.

    Without scores, the result is "". ``values`` is the part of probes.json for the probe ``words``.
    """
    scores = values["scores"] or {}
    if not scores.get("all"):
        return ""
    trained, held_out = scores.get("in_dictionary"), scores.get("held_out")
    told = (
        f"{scores['all']['cosine']['mean']:.1f} % of {values['types']:,} measured word types "
        f"(the source language has {values['candidates']['parent']:,})"
    )
    if held_out:
        told += f" and for {held_out['cosine']['mean']:.1f} % of the {held_out['n']:,} outside the dictionary"
    elif trained:
        told += ", all of them words of the training dictionary"
    return f"The nearest word embedding of the other language is the translation for {told}."
