"""Probe ``alignment``: the word-embedding alignment of a run (see alignment.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers import RobertaForMaskedLM

from pretrain.config import PretrainConfig
from pretrain.model import word_embedding
from pretrain.prepare import Artifacts
from probes.alignment import alignment
from synthlang.dictionary import DictionarySpec, draw, trained_types
from synthlang.fingerprint import fingerprint

FORMAT = 1


def probe_fingerprint(run: str, dictionary: DictionarySpec) -> str:
    """Of the scores; ``run`` is the fingerprint of the run."""
    spec = dictionary.model_dump(mode="json")
    return fingerprint("probe", format=FORMAT, probe="alignment", dictionary=spec, parents={"pretrain": run})


def probe_alignment(model: RobertaForMaskedLM, config: PretrainConfig, artifacts: Artifacts) -> dict[str, Any]:
    """Alignment over all types, those in the dictionary and those held out, in percent.

    Types are the ids that occur in the training text of both languages, specials left out.
    ``in dictionary`` means the config's dictionary, also for a run that did not use it, so
    that objectives are compared on the same types. Without a transliteration there are no
    pairs of rows and ``scores`` is null.
    """
    V, script = artifacts.vocabulary.size, config.language.script
    if script is None:
        return {"probe": "alignment", "scores": None, "reason": "the languages share one vocabulary"}
    parent, derived = (trained_types(shards.counts) for shards in artifacts.train)
    types = np.intersect1d(parent, derived - V)
    spec_pairs = draw(config.dictionary, artifacts.train[0].counts[:V])
    rows = word_embedding(model).detach().float()
    scores = alignment(rows[types], rows[types + V], torch.from_numpy(np.isin(types, spec_pairs)))
    return {"probe": "alignment", "types": len(types), "scores": scores.to_json()}
