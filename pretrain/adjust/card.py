"""Cards of adjusted models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pretrain.adjust.config import AdjustConfig


def adjusted_card(
    config: AdjustConfig, language: str, name: str, weights: str, sections: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the card of an adjusted model as Markdown with a YAML header.

    Args:
        config: The settings.
        language: The language of the tokenizer beside the card, or "" for a card that names no tokenizer.
        name: The fingerprint of the adjustment.
        weights: The fingerprint of the weights before the adjustment.
        sections: Further sections as (heading, Markdown text).
    """
    loss = config.loss
    is_place = Path(config.model).is_absolute() or config.model.startswith((".", "~"))
    model = Path(config.model).name if is_place else config.model
    pulled = {"words": "linked words", "cls": "CLS", "cls_sep": "CLS and SEP", "all": "linked words, CLS and SEP"}
    held = {"other": "the other side is", "moving": "the same side is", "both": "both sides are", "none": "no side is"}
    tokenizer = f"The tokenizer in this folder is that of **{language}**.\n" if language else ""
    more = "".join(f"\n## {heading}\n\n{text.strip()}\n" for heading, text in sections)
    return f"""---
library_name: transformers
pipeline_tag: fill-mask
---

# {model}, adjusted

`{model}`, adjusted by synthlang: vectors of {pulled[loss.pulled]} in parallel sentences ({", ".join(config.pairs)})
were pulled together. The {loss.moves} side moves, {held[loss.held]} held (λ = {loss.hold:g}); target:
{loss.target}; layers: {", ".join(map(str, loss.layers))}; vector of a word: {loss.subword} of its subwords;
{config.epochs} epoch(s), learning rate {config.optimizer.learning_rate:g}, seed {config.seed}. The masked-LM head was
not trained, but weights that it shares with the word embedding moved with it.
{tokenizer}
Fingerprints: of this adjustment `{name}`, of the weights before `{weights}`.
{more}"""
