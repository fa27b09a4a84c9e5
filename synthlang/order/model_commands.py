"""The commands about order models: fit (with the model's card), show, evaluate and compare."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice
from os.path import abspath
from pathlib import Path
from typing import Any

import numpy as np

from synthlang.config import parse
from synthlang.corpus import Corpus, concatenate
from synthlang.errors import InputError
from synthlang.files import atomic_file, only_writer, read_lines
from synthlang.order.distribution import distribution
from synthlang.order.evaluate import ENOUGH, closeness, evaluate, table
from synthlang.order.fit import L2, MOST_ITEMS_TO_FIT, fit
from synthlang.order.items import CLASS_OF_HEAD, MOST_ITEMS, Scheme, views
from synthlang.order.model import OrderModel, load_model
from synthlang.order.nodes import find_nodes
from synthlang.order.permutations import all_orders
from synthlang.progress import Report, silent
from synthlang.sources import open_source
from synthlang.sources.base import Source, check_split, nothing_in, require_columns
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
    """Return the probability of every order of the items of the head ``node`` (see ``synthlang.show_order_model``)."""
    if not temperature > 0.0 or not np.isfinite(temperature):
        raise InputError(f"must be a number above 0, not {temperature}", keys="temperature", code="range")
    if not 0.0 <= substrate_weight <= 1.0:
        raise InputError(f"must be from 0 to 1, not {substrate_weight}", keys="substrate_weight", code="range")
    block = _find(conllu, sentence)
    loaded = load_model(model)
    mixed = load_model(substrate) if substrate else None
    classes = distribution(loaded, mixed, substrate_weight, labels, corpus_labels)
    _check_node(block, node, classes, conllu)
    corpus = Corpus.of([{name: getattr(block, name) for name in ("form", "upos", "head", "deprel")}])
    wanted = np.arange(len(block.form)) == node - 1
    (group,) = find_nodes(corpus, Forest.of(corpus), wanted).values()
    of_class = classes[CLASS_OF_HEAD[block.upos[node - 1]]]
    source = group.source[0]
    orders = source[all_orders(len(source)).orders].tolist()
    p = of_class.probabilities(group, temperature)[0].tolist()
    listed = sorted(({"order": o, "p": v} for o, v in zip(orders, p, strict=True)), key=lambda e: (-e["p"], e["order"]))
    known = of_class.looked_up(group.names, loaded.labels if labels == "mapped" else None)
    items = []
    for index, (row, kind) in enumerate(sorted(zip(group.rows[0].tolist(), group.types[0].tolist(), strict=True))):
        names = dict(zip(("full", "tag", "arc"), views(known[kind]), strict=True))
        items.append({"index": index, "word": row + 1, "form": block.form[row], **names})
    return {"node": node, "class": of_class.node, "items": items, "orders": listed}


def _check_node(block: Block, node: int, classes: Collection[str], path: Path) -> None:
    """Refuse a word whose dependents the model does not order."""
    if not 1 <= node <= len(block.form):
        hint = f"choose a word from 1 to {len(block.form)}"
        raise InputError(f"the sentence has no word {node}", path, block.lines[0], hint=hint, code="range")
    line = block.lines[node - 1]
    upos, items = block.upos[node - 1], 1 + block.head.count(node)
    if CLASS_OF_HEAD.get(upos) not in classes:
        known = ", ".join(tag for tag, c in CLASS_OF_HEAD.items() if c in classes)
        reason = f"word {node} is {upos}, but the model orders only the dependents of {known or 'no tag'}"
        raise InputError(reason, path, line, hint="choose another word or model", code="unsupported")
    if items == 1:
        raise InputError(
            f"word {node} has no dependents to order", path, line, hint="choose another word", code="empty"
        )
    if items > MOST_ITEMS:
        reason = f"word {node} has {items - 1} dependents, but at most {MOST_ITEMS - 1} can be shown"
        raise InputError(reason, path, line, hint="choose another word", code="range")


def _find(path: Path, sentence: str) -> Block:
    """Return the sentence whose ``sent_id`` is ``sentence``, or else the sentence of this number, from 1."""
    paragraphs = re.split(r"\n *\n", "\n".join(line for _, line in read_lines(path)))
    with_words = [part for part in paragraphs if re.search(r"^[^#\n]*[^#\s]", part, re.MULTILINE)]
    names = [re.findall(r"^# *sent_id *= *(.*?) *$", part, re.MULTILINE)[-1:] for part in with_words]
    if [sentence] in names:
        row = names.index([sentence])
    elif re.fullmatch("[0-9]{1,9}", sentence) and 1 <= int(sentence) <= len(names):
        row = int(sentence) - 1
    else:
        if not names:
            raise nothing_in("sentence", path)
        hint = f"name a sent_id, or a number from 1 to {len(names)}"
        raise InputError(f"has no sentence {sentence!r}", path, hint=hint, code="missing")
    return next(islice(read_blocks(path), row, None))


CLASSES = {"N": "noun nodes (NOUN, PROPN, PRON heads)", "V": "verb nodes (VERB heads)"}
FIRST_LINE = "# Order model "
SHARE_ALIKE = (
    "The weights are adapted from the treebank and have its licence. If you share them, changed or unchanged, "
    "name the treebank and its authors and keep the licence."
)


def stem(out: Path) -> str:
    """Return the name of a model file without its ending.

    >>> stem(Path("my.model.json.gz")), stem(Path("x.orders"))
    ('my.model', 'x.orders')
    """
    return re.sub(r"\.json\.gz$|\.json$|\.gz$", "", out.name)


def card_path(out: Path) -> Path:
    """Return the path of the card of the model file ``out``.

    Raises:
        InputError: ``out`` cannot be a model file, or the card would replace a file that is not a card.
    """
    name = stem(out)
    faults = {
        "it is a folder": out.is_dir(),
        "its name is empty": not name.strip("."),
        "its name has more than 200 characters": len(name) > 200,
        "its name ends in .md, as that of a card": name.lower().endswith(".md"),
        "a file has the name of one of its folders": any(parent.is_file() for parent in out.parents),
    }
    if why := next((fault for fault, is_there in faults.items() if is_there), None):
        reason = f"cannot be a model file, because {why}"
        raise InputError(reason, out, hint="name a file such as fr.json.gz in a folder", code="unsupported")
    path = out.with_name(f"{name}.md")
    if path.exists() and not (path.is_file() and path.read_bytes().startswith(FIRST_LINE.encode())):
        reason = f"the card of {out.name} would replace this file, which is not a card of an order model"
        raise InputError(reason, path, hint="choose another name for the model", code="exists")
    return path


def card(model: OrderModel, command: str) -> str:
    """Return the card of a model in Markdown. ``command`` is shown as the command that fits the model again."""
    fit = model.fit
    splits = fit.get("splits", {})
    lines = [
        f"{FIRST_LINE}{model.name}",
        "",
        f"Adapted from: {model.treebank}",
        "",
        f"Licence: {model.licence or 'the licence of the treebank (check it there)'}. {SHARE_ALIKE}",
        "",
        f"Attribution: {model.attribution or 'the authors of the treebank'}",
        "",
        f"Labels: {model.labels}. Fingerprint: `{model.content}`.",
        "",
        f"Fitted on {', '.join(splits.get('train', []))}: nodes of 2 to {fit['most_items']} items in projective "
        f"sentences, by conditional likelihood with an L2 prior, λ = {fit['l2']:g}. The n-grams are the most frequent "
        f"10 %. Weights are rounded to {fit['decimals']} decimals, and those below {fit['smallest']} are left out.",
        "",
        "| | nodes | features | weights kept | iterations |",
        "|---|---|---|---|---|",
        *("| {0} | {nodes} | {features} | {kept} | {iterations} |".format(CLASSES[c], **fit[c]) for c in model.classes),
    ]
    if "held_out" in fit:
        about = f"Scores on {', '.join(splits['held_out'])}, nodes of 2 to 7 items, natural logarithms:"
        lines += ["", about, "", table(fit["held_out"])]
    return "\n".join([*lines, "", "How to fit it again:", "", f"    {command}", ""])


def order_fit(
    treebank: str,
    out: Path,
    train: Sequence[str] = (),
    held_out: Sequence[str] = (),
    choose_on: Sequence[str] = (),
    l2: Sequence[float] = (L2,),
    labels: Scheme = "ud2",
    most_items: int = MOST_ITEMS_TO_FIT,
    title: str = "",
    licence: str = "",
    attribution: str = "",
    report: Report = silent,
) -> OrderModel:
    """Fit a model to splits of a treebank, and write the model and its card (see ``synthlang.fit_order_model``).

    ``most_items`` is the largest number of items of a training node. ``report`` shows progress.
    """
    card_file_path, source = card_path(out), open_source(treebank)
    train = tuple(train) or _first_of(source, ("train", "dev", "test"))
    held_out = tuple(held_out) or _first_of(source, ("test", "dev"), but=(*train, *choose_on))
    splits = {"train": list(train), "held_out": list(held_out), "choose_on": list(choose_on)}
    _check_splits(splits)
    read = {use: _read(treebank, names) for use, names in splits.items() if names}
    scheme, _, rest = treebank.partition(":")
    folder = rest if scheme in ("builtin", "hf") else Path(abspath(rest)).name  # independent of the path's notation
    about = {"treebank": title or folder, "licence": licence, "attribution": attribution}
    chosen = read.get("choose_on")
    # the card is opened first, so that it fails before the work
    with only_writer(out), only_writer(card_file_path), atomic_file(card_file_path, "w") as card_file:
        model = fit(read["train"], stem(out), l2, chosen, most_items, labels, report=report, about=about)
        notes: dict[str, Any] = {**model.fit, "splits": splits, "source": source.fingerprint}
        if held_out:
            notes["held_out"] = evaluate(model, read["held_out"], read["train"], labels="faithful")
        model = model.model_copy(update={"fit": notes})
        model.save(out)
        card_file.write(card(model, _command(f"{scheme}:{folder}", out, splits, notes["l2"])))
    return model


def _command(treebank: str, out: Path, splits: dict[str, list[str]], l2: float) -> str:
    options = [f"--{use.replace('_', '-')} {split}" for use in ("train", "held_out") for split in splits[use]]
    return " ".join(["synthlang order fit", treebank, "--out", out.name, *options, f"--l2 {l2:g}"])


def _read(treebank: str, splits: Sequence[str]) -> Corpus:
    """Read all sentences of some splits of a source, which must have trees."""
    source = open_source(treebank)
    require_columns(source, ("upos", "head", "deprel"), treebank, "an order model")
    for split in splits:
        check_split(source, split, treebank)
    return concatenate([batch for split in splits for batch in source.batches(split)])


def _check_splits(splits: dict[str, list[str]]) -> None:
    """Refuse a split that is named twice, or both learned from and held out."""
    for use, names in splits.items():
        if again := next((name for name in names if names.count(name) > 1), None):
            option = f"--{use.replace('_', '-')}"
            raise InputError(f"the split {again} is named twice", option, hint="name each split once", code="duplicate")
    both = set(splits["train"]) & {*splits["held_out"], *splits["choose_on"]}
    if both:
        raise InputError(
            f"the split {min(both)} cannot be both learned from and held out",
            "--train",
            hint="name other splits in --train, --held-out or --choose-on",
            code="conflict",
        )


def _first_of(source: Source, names: Sequence[str], but: Sequence[str] = ()) -> tuple[str, ...]:
    """Return a tuple with the first of the named splits that the source has and ``but`` lacks, or an empty tuple."""
    return tuple([name for name in names if name in source.splits and name not in but][:1])


def order_evaluate(
    model: str, treebank: str, held_out: Sequence[str] = ("test",), train: Sequence[str] = (), labels: str = "mapped"
) -> dict[str, Any]:
    """Score an order model on splits of a treebank (see ``synthlang.evaluate_order_model``)."""
    if not held_out:
        raise InputError("has no split", keys="held_out", hint="name a split such as test", code="empty")
    training = _read(treebank, train) if train else None
    return evaluate(load_model(model), _read(treebank, held_out), training, labels=labels)


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
    """Compare a reordered treebank with a ``target`` treebank (see ``synthlang.compare_order_model``).

    ``key`` is the random key of the orders. ``enough`` is the smallest number of dependents of a relation that counts.
    ``more`` are further options of the transform ``reorder``.
    """
    ours, theirs = _read(parent, (parent_split,)), _read(target, (target_split,))
    moved = parse(Reorder, {"model": model, **more}).rewrite(ours, key).apply(ours)
    return closeness(ours, moved, theirs, enough)
