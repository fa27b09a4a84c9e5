"""Probe ``alignment``: the word-embedding alignment of a run (see alignment.py)."""

from __future__ import annotations

from typing import Any

from pretrain.config import PretrainConfig
from pretrain.encoder import MaskedLM
from pretrain.prepare import Artifacts
from pretrain.word_pairs import alignment_of, word_pairs
from synthlang.dictionary import DictionarySpec, IdDictionary, build_id_dictionary
from synthlang.fingerprint import fingerprint
from synthlang.store import Store

FORMAT = 2


def probe_fingerprint(run: str, dictionary: DictionarySpec) -> str:
    """Of the scores; ``run`` is the fingerprint of the run."""
    spec = dictionary.model_dump(mode="json")
    return fingerprint("probe", format=FORMAT, probe="alignment", dictionary=spec, parents={"pretrain": run})


def probe_alignment(model: MaskedLM, config: PretrainConfig, artifacts: Artifacts, store: Store) -> dict[str, Any]:
    """Alignment over all types, those in the dictionary and those held out, in percent, for each language.

    Types are the ids that occur in the training text of both languages, specials left out.
    ``in dictionary`` means the config's dictionary, also for a run that did not use it, so
    that objectives are compared on the same types. Without pairs of rows (a language in the parent's own
    vocabulary, no dictionary) ``scores`` is null. ``types`` and ``scores`` are those of the first derived language.
    """
    dictionary = _dictionary(config, artifacts, store)
    languages: dict[str, Any] = {}
    for number, member in enumerate(artifacts.members[1:], 1):
        pairs = word_pairs(artifacts, number, dictionary)
        scores = None if pairs is None else alignment_of(model, pairs, number).to_json()
        languages[member.name] = {"types": 0 if pairs is None else len(pairs.pairs), "scores": scores}
    first: dict[str, Any] = next(iter(languages.values()), {"types": 0, "scores": None})
    result: dict[str, Any] = {"probe": "alignment", **first, "languages": languages}
    if first["scores"] is None:
        result["reason"] = "no pairs of words: the languages share one vocabulary, and there is no dictionary"
    return result


def _dictionary(config: PretrainConfig, artifacts: Artifacts, store: Store) -> IdDictionary | None:
    """The config's dictionary, also where no term of the objective reads it; None where no pairs are known."""
    if artifacts.dictionary is not None or not any(len(c.pairs) for c in artifacts.candidates):
        return artifacts.dictionary
    train = [member.train for member in artifacts.members]
    return build_id_dictionary(config.dictionary, artifacts.id_space, train, store, artifacts.own_rows)
