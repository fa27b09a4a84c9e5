"""What CKA between two languages is held against: encoders with random weights, and another model of the source."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.adjust.text import encode
from pretrain.model.encoder import MaskedLM
from pretrain.run import open_run
from probes.measure.cka_pairs import Pairing
from probes.measure.subject import Side, Subject
from probes.transfer.model import Pretrained, open_pretrained
from probes.transfer.model_names import is_run
from probes.transfer.word_vectors import AROUND, SideReader
from synthlang.alignments import Links
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.language import PARENT
from synthlang.rng import key_of


def random_encoder(body: MaskedLM, key: int) -> MaskedLM:
    """A model of the same shape whose weights are drawn as before training: matrices normal(0, init_std), biases 0.

    A function of the shape and ``key``; on the device of ``body``, without dropout.
    """
    tables = body.embeddings
    drawn = MaskedLM(
        body.shape,
        body.sharing,
        ids=[tables.ids(member).cpu().numpy() for member in range(body.members)],
        size=tables.size,
        positions=tables.length,
        pad=body.pad,
        language_ids=tables.languages is not None,
        seed=key,
        architecture=body.architecture,
        epsilon=body.epsilon,
    )
    return drawn.to(body.norm.weight.device).eval()


def random_pairing(subject: Subject, pairing: Pairing, both: bool) -> Pairing:
    """With random encoders on the left, or on both sides: one for both if one model reads both, else two."""
    seed = subject.config.seed
    # not the seed of a training, so that the model never started from these weights
    left = random_encoder(pairing.left.reader.body, key_of("cka-random", seed, "target"))
    drawn = replace(pairing, left=_read_by(pairing.left, left))
    if not both:
        return drawn
    source = pairing.right.reader.body
    right = left if subject.same_model else random_encoder(source, key_of("cka-random", seed, "source"))
    return replace(drawn, right=_read_by(pairing.right, right))


def _read_by(side: Side, body: MaskedLM) -> Side:
    return replace(side, name=f"{side.name}, random", reader=replace(side.reader, body=body))


def paraphrase_pairing(subject: Subject, pairing: Pairing, model: str) -> tuple[Pairing, Pretrained, dict[str, int]]:
    """The source sentences of ``pairing`` read by its right model and by ``model``; the latter, and what was dropped.

    InputError for a model that cannot be opened, and for links of subwords that it does not have.
    """
    opened = open_pretrained(model, _first_language(model))
    side, rows = pairing.right, pairing.rows
    held, unit = subject.pretrained.source, subject.aligned.text.unit
    if unit == "subword" and opened.source.tokenizer.fingerprint != held.tokenizer.fingerprint:
        raise InputError(f"cka.paraphrase: the links are of subwords, and {model} has others; use links of words")
    corpus = side.corpus.take(rows)  # its sentences and words have new numbers
    body = opened.model.to(side.reader.body.norm.weight.device).eval()
    layers = subject.config.numbers(body.shape.layers)
    sentences = [encode(reader.tokenizer.tokenizer, corpus, unit, reader.member) for reader in (held, opened.source)]
    reader = SideReader(body, opened.source.specials, layers, side.reader.subword)
    own = replace(side, corpus=corpus, sentences=sentences[0])
    other = replace(own, name=f"{own.name} ({opened.name})", sentences=sentences[1], reader=reader)
    lengths = np.diff(other.sentences.bounds)
    limit = body.embeddings.length
    fits, empty = lengths + AROUND <= limit, lengths == 0
    counts = {
        f"source sentences over the {limit} tokens of {opened.name}": int((~fits).sum()),
        f"source sentences that {opened.name} has no token of": int(empty.sum()),
    }
    kept = np.flatnonzero(fits & ~empty)
    links = _same_words(pairing.links.take(rows), own, other)
    return Pairing(own, other, kept, links), opened, {reason: count for reason, count in counts.items() if count}


def _first_language(model: str) -> str:
    """The name of the language that others are derived from, in a run of ours."""
    path = user_path(model)
    return open_run(path)[0].members[0].name if path.exists() and is_run(path) else PARENT.name


def _same_words(links: Links, own: Side, other: Side) -> Links:
    """Each right word of ``links`` with itself, where both tokenizers leave something of it."""
    right = links.right.astype(np.int64)
    same = Links.build(links.sentence, right, right, np.ones(len(right), bool), len(links))
    word = own.corpus.offsets[same.sentence] + same.right
    there = [np.diff(side.sentences.word_offsets)[word] > 0 for side in (own, other)]
    return same.select(there[0] & there[1])
