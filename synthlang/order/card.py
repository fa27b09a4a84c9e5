"""A model's card: where it comes from, what it was fitted on, how well it does."""

from __future__ import annotations

from typing import Any

from synthlang.order.evaluate import table
from synthlang.order.model import OrderModel

CLASSES = {"N": "noun nodes (NOUN, PROPN, PRON heads)", "V": "verb nodes (VERB heads)"}
SHARE_ALIKE = (
    "The weights are adapted from the treebank and carry its licence: whoever passes them on, changed or not, "
    "names the treebank and its authors and keeps the licence."
)


def card(model: OrderModel, command: str) -> str:
    """The card in Markdown; ``command`` fits the model again."""
    fit = model.fit
    splits = fit.get("splits", {})
    lines = [
        f"# Order model {model.name}",
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
        *(_fitted(name, fit[key]) for key, name in CLASSES.items()),
    ]
    if "held_out" in fit:
        about = f"Scores on {', '.join(splits['held_out'])}, nodes of 2 to 7 items, natural logarithms:"
        lines += ["", about, "", table(fit["held_out"])]
    return "\n".join([*lines, "", "Fit it again:", "", f"    {command}", ""])


def _fitted(name: str, counts: dict[str, Any]) -> str:
    return f"| {name} | {counts['nodes']} | {counts['features']} | {counts['kept']} | {counts['iterations']} |"
