"""The whole distribution of one node of one sentence, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import read_lines
from synthlang.order.distribution import distribution
from synthlang.order.items import CLASS_OF_HEAD, MOST_ITEMS, views
from synthlang.order.labels import Scheme
from synthlang.order.model import load_model
from synthlang.order.nodes import Nodes, find_nodes
from synthlang.order.permutations import all_orders
from synthlang.sources.conllu import Block, read_blocks
from synthlang.trees import Forest


def show(
    model: str,
    conllu: Path,
    sentence: str,
    node: int,
    labels: str = "faithful",
    substrate: str | None = None,
    substrate_weight: float = 0.05,
    temperature: float = 1.0,
    corpus_labels: Scheme = "ud2",
) -> dict[str, Any]:
    """The probability of every order of the items of the head ``node`` (1-based word id).

    ``sentence`` is a ``sent_id`` of the file or a number from 1. Items are in source order; ``orders``
    have their indices, most probable first. InputError for whatever is not there.
    """
    if not temperature > 0.0 or not np.isfinite(temperature):
        raise InputError(f"the temperature must be a number above 0, not {temperature}")
    if not 0.0 <= substrate_weight <= 1.0:
        raise InputError(f"the weight of the substrate must be from 0 to 1, not {substrate_weight}")
    block = _find(conllu, sentence)
    loaded = load_model(model)
    classes = distribution(
        loaded, load_model(substrate) if substrate else None, substrate_weight, labels, corpus_labels
    )
    upos = _check_node(block, node, classes.keys(), f"{conllu}, sentence {sentence}")
    group = _one_node(block, node)
    of_class = classes[CLASS_OF_HEAD[upos]]
    p = of_class.probabilities(group, temperature)[0]
    source = group.source[0]
    orders = sorted(zip(p.tolist(), source[all_orders(len(source)).orders].tolist(), strict=True), key=_first)
    looked_up = of_class.looked_up(group.names, loaded.labels if labels == "mapped" else None)
    items = []
    for index, (row, kind) in enumerate(sorted(zip(group.rows[0].tolist(), group.types[0].tolist(), strict=True))):
        full, tag, arc = views(looked_up[kind])
        items.append({"index": index, "word": row + 1, "form": block.form[row], "full": full, "tag": tag, "arc": arc})
    listed = [{"order": order, "p": value} for value, order in orders]
    return {"node": node, "class": CLASS_OF_HEAD[upos], "items": items, "orders": listed}


def _first(entry: tuple[float, list[int]]) -> tuple[float, list[int]]:
    return -entry[0], entry[1]


def _one_node(block: Block, node: int) -> Nodes:
    columns: dict[str, list[Any]] = {"form": block.form, "upos": block.upos, "head": block.head, "deprel": block.deprel}
    corpus = Corpus.of([columns])
    wanted = np.zeros(len(block.form), bool)
    wanted[node - 1] = True
    (group,) = find_nodes(corpus, Forest.of(corpus), wanted).values()
    return group


def _check_node(block: Block, node: int, classes: Any, where: str) -> str:
    """The tag of the head; InputError if there is nothing to show."""
    if not 1 <= node <= len(block.form):
        raise InputError(f"{where}: has the words 1 to {len(block.form)}, not {node}")
    upos = block.upos[node - 1]
    if CLASS_OF_HEAD.get(upos) not in classes:
        known = ", ".join(tag for tag, c in CLASS_OF_HEAD.items() if c in classes)
        raise InputError(f"{where}: word {node} is {upos}; the model orders the dependents of {known} only")
    items = 1 + block.head.count(node)
    if items == 1:
        raise InputError(f"{where}: word {node} has no dependents, so there is nothing to order")
    if items > MOST_ITEMS:
        raise InputError(f"{where}: word {node} has {items - 1} dependents; at most {MOST_ITEMS - 1} can be shown")
    return upos


def _find(path: Path, sentence: str) -> Block:
    ids = list(_sentence_ids(path))
    if sentence in ids:
        row = ids.index(sentence)
    elif sentence.isascii() and sentence.isdigit() and 1 <= int(sentence[:9]) <= len(ids):
        row = int(sentence[:9]) - 1
    else:
        raise InputError(f"has no sentence {sentence!r}; name a sent_id or a number from 1 to {len(ids)}", path)
    return next(islice(read_blocks(path), row, None))


def _sentence_ids(path: Path) -> Iterator[str | None]:
    """The ``sent_id`` of each sentence, None where there is none; sentences as ``read_blocks`` finds them."""
    name, words = None, False
    for _, line in read_lines(path):
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            name = value.strip() if key.strip() == "sent_id" else name
        elif line.strip(" "):
            words = True
        elif words:
            yield name
            name, words = None, False
    if words:
        yield name
