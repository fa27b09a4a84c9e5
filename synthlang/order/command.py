"""What the commands about order models do: fit, import, show, evaluate, compare."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import abspath
from pathlib import Path
from typing import Any

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import atomic_file
from synthlang.order.card import card, card_path, stem
from synthlang.order.closeness import ENOUGH, closeness
from synthlang.order.evaluate import evaluate
from synthlang.order.fit import L2, MOST_ITEMS_TO_FIT, fit
from synthlang.order.labels import Scheme
from synthlang.order.model import OrderModel, import_orm, load_model
from synthlang.order.training import read_treebank
from synthlang.progress import Report, silent
from synthlang.sources import open_source
from synthlang.sources.base import Source
from synthlang.transforms.reorder import Reorder


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
    """Scores of a model on splits of a treebank; with ``train`` also those of the direction baseline."""
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
    batches: list[list[Corpus]] = []
    for name, split in ((parent, parent_split), (target, target_split)):
        batches.append([read_treebank(open_source(name), (split,), name)])
    return closeness(batches[0], batches[1], Reorder(model=model, **more), key, enough)
