"""Tiny batches, and plain versions of every loss: logits of transformers, loops over positions and pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from transformers import RobertaForMaskedLM

from pretrain.config import ModelConfig, SharingConfig
from pretrain.data.batch import IGNORE, Batch, RowGroup, Rows
from pretrain.model.kinds import to_hf
from pretrain.model.roberta import MaskedLM
from pretrain.objectives.table import NAMES
from synthlang.vocabularies import OURS
from tests.masking_cases import LENGTH, SIZE, WORDS, copies, masker_of, monolingual, source_of, translated

SHAPE = ModelConfig(layers=2, heads=2, hidden=16, feed_forward=32, dropout=0.0, init_std=0.3)
SPECIALS = np.asarray(OURS.all)
IDS = tuple(np.union1d(SPECIALS, words) for words in WORDS)


def model_of(language_ids=True, seed=0, **sharing) -> MaskedLM:
    """Return a small model of two languages with copied ids. ``init_std`` is large, so that losses differ."""
    return MaskedLM(SHAPE, SharingConfig(**sharing), IDS, SIZE, LENGTH, OURS.pad, language_ids, seed)


def batch_of(pieces: list[tuple[Rows, str]], masker, first=0, halves=True) -> Batch:
    """Return masked rows of several sources. ``halves`` adds positions and padding, as in a run with pairs."""
    parts, groups, start = [], [], 0
    for rows, term in pieces:
        count = len(rows.ids)
        numbers = np.arange(first + start, first + start + count)
        masked = masker.mask(rows, source_of(term), numbers)
        positions, valid = rows.positions, rows.valid
        if halves and positions is None:
            positions = np.tile(np.arange(LENGTH), (count, 1))
        if halves and valid is None:
            valid = np.ones(rows.ids.shape, bool)
        member = int(rows.languages[0, 0])
        half = LENGTH // 2
        spans = ((0, half, 0), (half, LENGTH, 1)) if term == "tlm" else ((0, LENGTH, member),)
        groups.append(RowGroup(start, start + count, spans))
        fields = (masked.input_ids, masked.languages, masked.masked, masked.labels, masked.terms)
        parts.append((*fields, positions, valid, rows.sentences, numbers))
        start += count
    joined: list[Any] = [None if p[0] is None else np.concatenate(p) for p in zip(*parts, strict=True)]
    names = ("input_ids", "languages", "masked", "labels", "terms", "positions", "valid", "sentences", "samples")
    return Batch(**dict(zip(names, joined, strict=True)), groups=tuple(groups))


def mixed_batch(target="label", share=0.5, first=0, terms=("mlm", "tlm", "dict")) -> Batch:
    """Return rows of both languages, with pairs if ``tlm`` and with positions of the dictionary term if ``dict``."""
    masker = masker_of(copies(share) if "dict" in terms else None, target)
    pieces = [(monolingual(3, 0, seed=first), "mlm"), (monolingual(3, 1, seed=first + 1), "mlm")]
    if "tlm" in terms:
        pieces.append((translated(4, seed=first + 2), "tlm"))
    return batch_of(pieces, masker, first, halves="tlm" in terms)


def plain_losses(model: MaskedLM, batch: Batch, dictionary=None) -> dict[str, tuple[float, int]]:
    """Return (sum, count) of each term by loops. Token types of a RoBERTa stand for languages."""
    exports = [to_hf(model, member) for member in range(model.language_count)]
    config, state = exports[0]
    name = "roberta.embeddings.token_type_embeddings.weight"
    config.type_vocab_size = model.language_count
    state[name] = torch.stack([other[name][0] for _, other in exports])
    reference = RobertaForMaskedLM(config).eval()
    missing, unexpected = reference.load_state_dict(state, strict=False)
    assert not unexpected and all("decoder" in key or "position_ids" in key for key in missing)
    positions = np.tile(np.arange(LENGTH), (len(batch.input_ids), 1)) if batch.positions is None else batch.positions
    with torch.no_grad():
        logits = reference(
            input_ids=torch.from_numpy(batch.input_ids),
            token_type_ids=torch.from_numpy(batch.languages),
            position_ids=torch.from_numpy(positions) + OURS.pad + 1,
            attention_mask=None if batch.valid is None else torch.from_numpy(batch.valid).long(),
        ).logits.double()
    sums = {term: [0.0, 0] for term in NAMES}
    for row, slots in enumerate(batch.masked.tolist()):
        for place, column in enumerate(slots):
            label = int(batch.labels[row, place])
            if label != IGNORE:
                entry = sums[NAMES[batch.terms[row, place]]]
                entry[0] += -math.log(torch.softmax(logits[row, column], 0)[label].item())
                entry[1] += 1
    if dictionary is not None:
        words = reference.roberta.embeddings.word_embeddings.weight.detach().double().numpy()
        cosines = [np.dot(*words[pair]) / np.prod(np.linalg.norm(words[pair], axis=1)) for pair in dictionary.pairs]
        sums["align"] = [-sum(cosines), len(cosines)]
    return {term: (float(total), int(count)) for term, (total, count) in sums.items()}
