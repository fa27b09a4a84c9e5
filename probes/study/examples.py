"""Example sentences of the languages of a study, decoded from the token ids of the training text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from pretrain.config import PretrainConfig
from pretrain.folder import EXPORT
from probes.stages.base import DONE
from probes.study.cell import Cell
from synthlang.checksums import damaged_files
from synthlang.files import read_json
from synthlang.store import Store

Example = dict[str, str]
"""An example: the name of the ``language``, the first ``cell`` that has it, and the ``text``."""
LANGUAGES = 12
"""Maximum number of languages with an example."""
LOOKED_AT = 500
"""Number of sentences at the start of a text that are considered."""
TOKENS = range(9, 22)
"""Preferred length of an example in the first language, in tokens."""


def examples(
    cells: Sequence[Cell], of_cell: Mapping[str, Mapping[str, str]], done: Collection[str], store: Store
) -> list[Example]:
    """Return one sentence of each language of the finished pretrainings, at most LANGUAGES sentences.

    Runs with the same training texts count once. The languages of a run show the same sentence if they share one. A
    language has no example if its data or its tokenizer is missing from the store, or if the data is damaged.

    Args:
        cells: The cells of the study.
        of_cell: Name of a cell → name of a stage → key.
        done: Keys of the finished stages.
        store: The store of the study.

    Raises:
        InputError: The done.json of a run, or a record of the data, is missing or is not JSON.
    """
    found: dict[tuple[str, str], Example] = {}
    seen = set[tuple[str, ...]]()
    for cell in cells:
        key = of_cell[cell.name].get("pretrain")
        if cell.pretrain is None or key is None or key not in done or len(found) >= LANGUAGES:
            continue
        texts = _texts(store.path("pretrain", key), cell.pretrain)
        if texts not in seen:
            seen.add(texts)
            for name, text in _sentences(store, store.path("pretrain", key), cell.pretrain, texts):
                found.setdefault((name, text), {"language": name, "cell": cell.name, "text": text})
    return list(found.values())[:LANGUAGES]


def _texts(run: Path, config: PretrainConfig) -> tuple[str, ...]:
    """Return the fingerprint of the training text of each language, or "" if it is not recorded."""
    parents: Mapping[str, str] = read_json(run / DONE).get("parents", {})
    return tuple(parents.get(f"language {number}", "") for number in range(len(config.all_languages)))


def _sentences(store: Store, run: Path, config: PretrainConfig, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (language, example sentence) for each language with data. All have the same sentence if possible."""
    known = {
        language.name: (tokenizer, shards)
        for language, text in zip(config.all_languages, texts, strict=True)
        if (tokenizer := run / EXPORT / language.name / "tokenizer.json").is_file()
        and (shards := store.path("shards", text)).is_dir()
        and not damaged_files(shards)
    }
    numbers = {
        name: np.load(shards / "sentence_ids.npy", mmap_mode="r")[:LOOKED_AT] for name, (_, shards) in known.items()
    }
    shared = reduce(np.intersect1d, numbers.values()) if numbers else np.empty(0)
    chosen: int | None = None
    for name, (tokenizer, shards) in known.items():
        places = [int(place) for place in np.flatnonzero(np.isin(numbers[name], shared))] or [0]
        tokens = _tokens(shards, places)
        if chosen is None:
            place = next((place for place, ids in tokens.items() if len(ids) in TOKENS), places[0])
            chosen = int(numbers[name][place])
        at = next((place for place in places if numbers[name][place] == chosen), places[0])
        text = Tokenizer.from_file(str(tokenizer)).decode(tokens[at].tolist())
        yield name, " ".join(text.split())


def _tokens(shards: Path, places: Sequence[int]) -> dict[int, NDArray[Any]]:
    """Return the token ids of some sentences: index of the sentence → ids. Other sentences are not read."""
    offsets = np.load(shards / "offsets.npy", mmap_mode="r")
    ids = np.memmap(shards / "tokens.bin", np.dtype(read_json(shards / "manifest.json")["dtype"]), "r")
    return {place: np.asarray(ids[offsets[place] : offsets[place + 1]]) for place in places}
