"""What the commands about order models do: fit (and write the model's card), import, show, evaluate, compare."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from os.path import abspath
from pathlib import Path
from typing import Any

import numpy as np

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import atomic_file, read_lines
from synthlang.order.distribution import distribution
from synthlang.order.evaluate import ENOUGH, closeness, evaluate, table
from synthlang.order.fit import L2, MOST_ITEMS_TO_FIT, fit
from synthlang.order.items import CLASS_OF_HEAD, MOST_ITEMS, Scheme, views
from synthlang.order.model import OrderModel, import_orm, load_model
from synthlang.order.nodes import Nodes, find_nodes
from synthlang.order.permutations import all_orders
from synthlang.order.training import read_treebank
from synthlang.progress import Report, silent
from synthlang.sources import open_source
from synthlang.sources.base import Source
from synthlang.sources.conllu import Block, read_blocks
from synthlang.transforms.reorder import Reorder
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


CLASSES = {"N": "noun nodes (NOUN, PROPN, PRON heads)", "V": "verb nodes (VERB heads)"}
FIRST_LINE = "# Order model "
ENDINGS = (".json.gz", ".json", ".gz")  # what a model's name loses to become its card's
SHARE_ALIKE = (
    "The weights are adapted from the treebank and carry its licence: whoever passes them on, changed or not, "
    "names the treebank and its authors and keeps the licence."
)


def stem(out: Path) -> str:
    """The name of a model's file without its ending.

    >>> stem(Path("my.model.json.gz")), stem(Path("x.orders"))
    ('my.model', 'x.orders')
    """
    ending = next((ending for ending in ENDINGS if out.name.endswith(ending)), "")
    return out.name.removesuffix(ending)


def card_path(out: Path) -> Path:
    """Where the card of the model file ``out`` stands; InputError, before any work, if they cannot be written."""
    name = stem(out)
    if not name.strip(".") or out.is_dir():
        raise InputError("a model needs the name of a file, such as french.json.gz", out)
    if name.lower().endswith(".md"):
        raise InputError("is the name of a card; name the model such as french.json.gz", out)
    path = out.with_name(f"{name}.md")
    if path.is_dir() or (path.exists() and not _is_card(path)):
        raise InputError(f"would be the card of {out.name}, but is no card of an order model; name another file", path)
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("cannot write: this is no folder that can be written to", folder)
    return path


def _is_card(path: Path) -> bool:
    try:
        with path.open("rb") as handle:
            return handle.read(len(FIRST_LINE)) == FIRST_LINE.encode()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path) from error


def card(model: OrderModel, command: str) -> str:
    """The card in Markdown; ``command`` fits the model again."""
    fit = model.fit
    splits = fit.get("splits", {})
    lines = [
        f"{FIRST_LINE}{model.name}",
        "",
        f"Adapted from: {model.treebank}",
        "",
        f"Licence: {model.licence or 'that of the treebank; look there'}. {SHARE_ALIKE}",
        "",
        f"Attribution: {model.attribution or 'the authors of the treebank'}",
        "",
        f"Labels: {model.labels}. Fingerprint: `{model.content}`.",
        "",
        f"Fitted on {', '.join(splits.get('train', []))}: nodes of 2 to {fit['most_items']} items in projective "
        f"sentences, conditional likelihood with an L2 prior, λ = {fit['l2']:g}; the most frequent 10 % of the "
        f"n-grams; weights rounded to {fit['decimals']} decimals, those below {fit['smallest']} left out.",
        "",
        "| | nodes | features | weights kept | iterations |",
        "|---|---|---|---|---|",
        *(_fitted(name, fit[key]) for key, name in CLASSES.items() if key in fit),
    ]
    if "held_out" in fit:
        about = f"Scores on {', '.join(splits['held_out'])}, nodes of 2 to 7 items, natural logarithms:"
        lines += ["", about, "", table(fit["held_out"])]
    return "\n".join([*lines, "", "Fit it again:", "", f"    {command}", ""])


def _fitted(name: str, counts: dict[str, Any]) -> str:
    return f"| {name} | {counts['nodes']} | {counts['features']} | {counts['kept']} | {counts['iterations']} |"


def order_fit(
    treebank: str,
    out: Path,
    train: Sequence[str] = (),
    held_out: Sequence[str] = (),
    choose_on: Sequence[str] = (),
    l2: Sequence[float] = (L2,),
    name: str = "",
    labels: Scheme = "ud2",
    most_items: int = MOST_ITEMS_TO_FIT,
    title: str = "",
    licence: str = "",
    attribution: str = "",
    report: Report = silent,
) -> OrderModel:
    """Fit a model to splits of a treebank (a source such as ``conllu:DIR``) and write it and its card.

    ``out`` is gzipped if it ends in ``.gz``; the card in Markdown stands beside it. ``train`` is the
    training split, or the first there is; ``held_out``, whose scores go into the file, the test split,
    or the last one that is not learnt from. Of several ``l2`` the best on ``choose_on`` is taken.
    """
    card_file = card_path(out)
    source = open_source(treebank)
    train = tuple(train) or _first_of(source, ("train", "dev", "test"))
    held_out = tuple(held_out) or _first_of(source, ("test", "dev"), but=(*train, *choose_on))
    splits = {"train": list(train), "held_out": list(held_out), "choose_on": list(choose_on)}
    _check_splits(splits)
    read = {use: read_treebank(source, names, treebank) if names else None for use, names in splits.items()}
    training = read["train"]
    assert training is not None
    about = {"treebank": title or _named(treebank)[1], "licence": licence, "attribution": attribution}
    name = name or stem(out)
    model = fit(training, name, l2, read["choose_on"], most_items, labels, report=report, about=about)
    notes: dict[str, Any] = {**model.fit, "splits": splits, "source": source.fingerprint}
    held = read["held_out"]
    if held is not None:
        notes["held_out"] = evaluate(model, held, training, labels="faithful")
    model = model.model_copy(update={"fit": notes})
    model.save(out)
    command = _command(treebank, out, splits, model.fit["l2"])
    with atomic_file(card_file, "w") as handle:
        handle.write(card(model, command))
    return model


def _check_splits(splits: dict[str, list[str]]) -> None:
    """InputError for a split that is named twice, or learnt from and looked at again."""
    for use, names in splits.items():
        if again := next((name for name in names if names.count(name) > 1), None):
            raise InputError(f"--{use.replace('_', '-')} names the split {again} twice")
    both = set(splits["train"]) & {*splits["held_out"], *splits["choose_on"]}
    if both:
        raise InputError(f"the split {min(both)} cannot both be learnt from and be held out")


def _named(treebank: str) -> tuple[str, str]:
    """The scheme of a source and its name: that of its folder or file, however the path is written."""
    scheme, _, rest = treebank.partition(":")
    return scheme, rest if scheme in ("builtin", "hf") else Path(abspath(rest)).name


def _first_of(source: Source, names: Sequence[str], but: Sequence[str] = ()) -> tuple[str, ...]:
    """The first of some splits that the source has, as a tuple of one or none."""
    return tuple([name for name in names if name in source.splits and name not in but][:1])


def _command(treebank: str, out: Path, splits: dict[str, list[str]], l2: float) -> str:
    """What fits the model again; the treebank by the name of its folder."""
    scheme, name = _named(treebank)
    options = [f"--{use.replace('_', '-')} {split}" for use in ("train", "held_out") for split in splits[use]]
    return " ".join(["synthlang order fit", f"{scheme}:{name}", "--out", out.name, *options, f"--l2 {l2:g}"])


def order_import(
    noun: Path, verb: Path, out: Path, name: str, labels: Scheme = "ud1", licence: str = "", attribution: str = ""
) -> OrderModel:
    """Write the model of a released pair of files (``fr@N.orm``, ``fr@V.orm``) to ``out``."""
    model = import_orm(noun, verb, name, labels, licence=licence, attribution=attribution)
    model.save(out)
    return model


def order_evaluate(
    model: str, treebank: str, held_out: Sequence[str] = ("test",), train: Sequence[str] = (), labels: str = "mapped"
) -> dict[str, Any]:
    source = open_source(treebank)
    training = read_treebank(source, train, treebank) if train else None
    return evaluate(load_model(model), read_treebank(source, held_out, treebank), training, labels=labels)


def order_compare(
    parent: str,
    target: str,
    model: str,
    parent_split: str = "test",
    target_split: str = "test",
    key: int = 0,
    enough: int = ENOUGH,
    **more: Any,
) -> dict[str, Any]:
    """Whether the ``parent`` treebank reordered by a model is closer to the ``target`` one: see ``closeness``."""
    ours = read_treebank(open_source(parent), (parent_split,), parent)
    theirs = read_treebank(open_source(target), (target_split,), target)
    moved = Reorder(model=model, **more).rewrite(ours, key).apply(ours)
    return closeness([ours], [moved], [theirs], enough)
