"""The sentence pairs that several models read alike: the same links of the same sentences, in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from probes.measures.distances.pairs import BLOCK, Linked
from probes.measures.probe_input import ProbeInput
from probes.states import LanguageSide, link_batches
from probes.transfer.aligned_text import Aligned
from probes.transfer.batch import Reader
from probes.transfer.model import Pretrained, open_pretrained
from probes.transfer.model_names import is_run
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.parallel.pairs import LinkedText
from synthlang.parallel.prepare import SENTENCE_TOKENS, PairData, Sentences, encode
from synthlang.progress import Report, silent
from synthlang.rng import key_of, permutation


@dataclass(frozen=True)
class PairReaders:
    """How a model cuts both languages, and how many tokens it reads at once: a model without its weights."""

    target: Reader
    source: Reader
    length: int

    @staticmethod
    def of(pretrained: Pretrained) -> PairReaders:
        """Those of a model."""
        return PairReaders(pretrained.target, pretrained.source, pretrained.length)

    @property
    def cuts(self) -> tuple[str, str]:
        """What words are cut into is a function of it."""
        return self.target.tokenizer.fingerprint, self.source.tokenizer.fingerprint

    def encode(self, text: LinkedText, name: str) -> tuple[Sentences, Sentences]:
        """Both sides of a text as ids; InputError, which names the model, for tokens as words."""
        for reader in (self.target, self.source):
            if reader.tokenizer.subwords is not None:
                raise InputError(
                    f"{name}: its language {reader.language.name} has tokens as words, which leave none to link"
                )
        left, right = (
            encode(reader.tokenizer.tokenizer, corpus, text.unit, reader.number)
            for reader, corpus in ((self.target, text.left), (self.source, text.right))
        )
        return left, right


@dataclass(frozen=True, eq=False)
class SharedText:
    """Words and links that every model reads, and the ids of each model.

    rows     [n] the sentence pairs that are measured on
    data     by model
    counts   what not every model reads
    """

    text: LinkedText
    rows: NDArray[np.int64]
    data: Mapping[str, PairData]
    counts: Mapping[str, int]

    def aligned(self, name: str) -> Aligned:
        """The text as a model reads it."""
        return Aligned(self.text, self.data[name])


def open_other(model: str, given: ProbeInput, name: str) -> Pretrained:
    """Another model that reads the languages of ``given``; InputError if its language is another one.

    The words are those of ``given``, so of a model that is no run of ours only the tokenizers have to fit.
    """
    main, config = given.pretrained, given.config
    language = main.target.language
    try:
        if is_run(user_path(model)):
            opened = open_pretrained(model, config.language or language.name, config.natural)
        else:
            opened = open_pretrained(model, language.name, natural=True)
    except InputError as error:
        raise InputError(f"distances.before.{name}: {error}") from error
    derived = opened.text is not None and main.text is not None and not config.natural
    if derived and opened.target.language.fingerprint != language.fingerprint:
        raise InputError(f"distances.before.{name}: its language {language.name} is another one than {main.name}'s")
    return opened


def shared_text(given: ProbeInput, models: Mapping[str, PairReaders]) -> SharedText:
    """The measured sentence pairs of ``given`` as all of ``models`` can read them.

    Links stay whose words every tokenizer leaves something of, sentence pairs that are short enough for all. InputError
    if none is left, and for links of subwords where the models cut words differently.
    """
    rows, whole = given.measured, given.aligned.text
    links = given.data.links.take(rows)
    text = replace(whole, left=whole.left.take(rows), right=whole.right.take(rows), links=links)
    if text.unit == "subword" and len({readers.cuts for readers in models.values()}) > 1:
        raise InputError("distances.before: subwords are linked, and the models cut words into others; link words")
    there, fits = np.ones(len(links.left), bool), np.ones(len(rows), bool)
    encoded = {name: readers.encode(text, name) for name, readers in models.items()}
    for name, readers in models.items():
        longest = min(given.config.data.length or readers.length, readers.length)
        for side, words in zip(encoded[name], (links.left, links.right), strict=True):
            there &= np.diff(side.word_offsets)[side.offsets[links.sentence] + words] > 0
            fits &= np.diff(side.bounds) + SENTENCE_TOKENS <= longest
    kept = links.select(there)
    usable = fits & (np.diff(kept.offsets) > 0)
    if not usable.any():
        raise InputError(
            "distances.before: there is no linked word that all of the models read in one of the sentences"
        )
    found = np.flatnonzero(usable).astype(np.int64)
    counts = {"links to words without a subword in some model": int((~there).sum())}
    counts["sentence pairs that some model cannot read or that have no link left"] = int((~usable).sum())
    data = {label: PairData(given.data.name, *sides, kept, found, found, {}) for label, sides in encoded.items()}
    return SharedText(replace(text, links=kept), found, data, {reason: n for reason, n in counts.items() if n})


def linked_states(
    given: ProbeInput,
    left: LanguageSide,
    right: LanguageSide,
    rows: NDArray[np.int64],
) -> Iterator[Linked]:
    """Vectors of both words of every link of the pairs at ``rows``, their sentence and the type of the right word."""
    data, codes = given.data, right.corpus.form.codes
    for at, of_left, of_right in link_batches(data, rows, left.reader, right.reader, silent, ""):
        links = data.links.take(at)
        sentence = at[links.sentence]
        word = codes[right.corpus.offsets[sentence] + links.right].astype(np.int64)
        yield Linked(of_left, of_right, torch.from_numpy(sentence), torch.from_numpy(word))


def linked_in_order(
    given: ProbeInput,
    left: LanguageSide,
    right: LanguageSide,
    report: Report = silent,
    task: str = "",
    block: int = BLOCK,
) -> Iterator[Linked]:
    """Linked words of the measured sentence pairs in an order drawn by the seed, the same for every tokenizer.

    Sentences are read by length, some ``block`` links at a time, and put back into that order; so unrelated words,
    which are drawn among neighbours in the stream, are not of sentences of like length.
    """
    data, rows = given.data, given.measured
    rows = rows[permutation(key_of("distances-order", given.config.seed), len(rows))]
    counts = np.diff(data.links.offsets)[rows]
    part = (np.cumsum(counts) - counts) // block
    cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(rows)]
    place = np.zeros(len(data.links), np.int64)
    place[rows] = np.arange(len(rows))
    for start, stop in pairwise(cuts):
        links = Linked.joined(list(linked_states(given, left, right, rows[start:stop])))
        yield links.take(torch.from_numpy(np.argsort(place[links.sentence.numpy()], kind="stable")))
        report(task, stop, len(rows), "")
