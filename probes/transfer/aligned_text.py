"""Sentence pairs with links between the two languages of a transfer: left is the target, right the source."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from probes.transfer.model import Pretrained
from synthlang.errors import InputError
from synthlang.files import safe_name
from synthlang.parallel.pairs import AlignerLinks, DerivedPair, LinkedText, PairConfig, TextPair, read_pair
from synthlang.parallel.prepare import DataConfig, PairData, prepare_pair
from synthlang.progress import Report, Say, silent
from synthlang.store import Store

CONSTRUCTED = "pretraining"  # name of the pair that is aligned by construction


@dataclass(frozen=True, eq=False)
class Aligned:
    """A pair of languages: its words with links, and the same as ids, ready for batches."""

    text: LinkedText
    data: PairData


def read_aligned(
    pairs: Mapping[str, PairConfig | None],
    config: DataConfig,
    pretrained: Pretrained,
    seed: int = 0,
    store: Store | None = None,
    report: Report = silent,
    fits: bool = True,
) -> tuple[Aligned, ...]:
    """The pairs of languages in order of their names, read as the model reads target (left) and source (right).

    Without ``pairs`` they are the pretraining text in both languages, aligned by construction. ``store`` keeps what an
    aligner finds. Raises InputError for a pair that cannot be read, where nothing is aligned by construction, and, if
    something ``fits``, where no sentence pair is left for that.
    """
    chosen = {name: pair for name, pair in sorted(pairs.items()) if pair is not None}
    length = config.longest(pretrained.length)
    readers = pretrained.target, pretrained.source
    for reader in readers:
        if reader.language.on_tokens or reader.tokenizer.subwords is not None:
            raise InputError(
                f"language {reader.language.name}: its transforms with unit: token leave no words to align"
            )
    left, right = readers
    found = []
    for name, pair in (chosen or {CONSTRUCTED: _constructed(pretrained)}).items():
        title = f"aligned text {safe_name(name, 'name of a pair')}"
        say: Say = lambda text, title=title: report(title, 0, 1, text)  # type: ignore[misc]  # noqa: E731
        say("")
        _check(name, pair, store)
        with tempfile.TemporaryDirectory() as nowhere:  # only an aligner, which has a store, writes anything
            text = read_pair(pair, (left.tokenizer, right.tokenizer), store or Store(Path(nowhere)), say)
        cutters, numbers = (left.tokenizer.tokenizer, right.tokenizer.tokenizer), (left.number, right.number)
        data = prepare_pair(name, text, cutters, config, length, seed, numbers, fits)
        report(title, 1, 1, f"{len(data.train):,} sentence pairs")
        found.append(Aligned(text, data))
    return tuple(found)


def _constructed(pretrained: Pretrained) -> DerivedPair:
    """The pretraining text in the target language and in the source's."""
    target, source = pretrained.target.language, pretrained.source.language
    if pretrained.text is None:
        raise InputError(f"{pretrained.name}: its pretraining text is not known, so name sentence pairs (pairs)")
    if pretrained.natural:
        raise InputError(f"{target.name} is not derived from the source language, so name sentence pairs (pairs)")
    if target.fingerprint == source.fingerprint:
        raise InputError(f"{target.name} is the source language itself: there is nothing to align; name pairs")
    return DerivedPair(source=pretrained.text, left=target, right=source)


def _check(name: str, pair: TextPair | DerivedPair, store: Store | None) -> None:
    if pair.tokenizers is not None:
        raise InputError(
            f"pairs.{name}.tokenizers: leave it out; left is read as the target language, right as the source"
        )
    if isinstance(pair, TextPair) and isinstance(pair.links, AlignerLinks) and store is None:
        raise InputError(
            f"pairs.{name}.links: an aligner finds other links each time and there is no place to keep them; "
            "give a file of links (kind: file)"
        )
