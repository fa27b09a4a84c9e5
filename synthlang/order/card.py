"""A model's card: where it comes from, what it was fitted on, how well it does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.order.evaluate import table
from synthlang.order.model import OrderModel

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
    """Whether a file begins as a card does."""
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
