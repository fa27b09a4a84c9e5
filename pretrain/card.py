"""Model cards with a header for the hub, a description, perplexities, settings and fingerprints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from pretrain.folder import selected_row
from synthlang.config import dump_yaml
from synthlang.export.card import code_block, markdown_table, write_card

MASKED = "AutoModelForMaskedLM"
LOADING = """from transformers import {auto}, AutoTokenizer

model = {auto}.from_pretrained({repo!r}{folder})
tokenizer = AutoTokenizer.from_pretrained({repo!r}{folder})"""
FOLDERS = re.compile(r"(?<![\w./~-])/(?:[^/'\"\n]+/)+")
"""Pattern of the folders of an absolute path, which cards leave out."""
WORDS = "The text must be words that are separated by single spaces, with punctuation marks as separate words."


def language_card(language: str, config: PretrainConfig, run: Path, name: str, parents: Mapping[str, str]) -> str:
    """Return the card of one language's export in the folder ``run``.

    The card names the fingerprint of the run (``name``) and the fingerprints of its data (``parents``).
    """
    shared = "All languages of the run have these weights. Only the tokenizers differ."
    if config.sharing.separates or config.objective.uses_language_ids:
        shared = f"These are the weights that **{language}** uses. The separate parts of other languages are left out."
    about = f"{_what(config)} {shared}\n\nThis folder has the tokenizer of **{language}**. {WORDS}"
    return write_card(language, _header(config), [("", about), *_sections(config, run, name, parents)])


def run_card(
    repo: str,
    config: PretrainConfig,
    run: Path,
    name: str,
    parents: Mapping[str, str],
    sections: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the card of a repository ``repo`` with all exports of a run, one folder for each language.

    The card names the fingerprint of the run (``name``) and the fingerprints of its data (``parents``). ``sections``
    are further sections as (heading, Markdown text), which come before perplexities and settings.
    """
    languages = [language.name for language in config.all_languages]
    listed = ", ".join(f"`{language}`" for language in languages)
    about = f"{_what(config)} Each language has a folder with its tokenizer: {listed}. {WORDS}"
    auto = "AutoModelForCausalLM" if config.objective.is_causal else MASKED
    loads = loading(repo, languages[-1], auto)
    found = [("", about), ("", loads), *sections, *_sections(config, run, name, parents)]
    return write_card(repo.rpartition("/")[2], _header(config), found)


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


def loading(repo: str, language: str = "", auto: str = MASKED) -> str:
    """Return a Markdown block of Python that loads a model and its tokenizer with transformers.

    Args:
        repo: Name of the repository.
        language: Folder of the repository to load from (default: its top).
        auto: Name of the class of transformers that loads the model.
    """
    folder = f", subfolder={language!r}" if language else ""
    return code_block(LOADING.format(repo=repo, folder=folder, auto=auto), "python")


def without_folders(text: str) -> str:
    """Replace the folders of absolute paths by an ellipsis.

    >>> without_folders("source: text:/home/me/data/en")
    'source: text:…/en'
    """
    return FOLDERS.sub("…/", text)


def _header(config: PretrainConfig) -> dict[str, Any]:
    task = "text-generation" if config.objective.is_causal else "fill-mask"
    return {"library_name": "transformers", "pipeline_tag": task, "tags": ["synthlang"]}


def _what(config: PretrainConfig) -> str:
    languages = ", ".join(f"`{m.name}` from `{without_folders(m.source)}`" for m in config.all_languages)
    terms = ", ".join(f"{term} × {weight:g}" for term, weight in config.objective.terms.items())
    kind = "causal" if config.objective.is_causal else "masked"
    return (
        f"A {kind} language model pretrained by synthlang on {languages} with the objective "
        f"`{config.objective.kind}` ({terms}) for {config.steps} steps of {config.batch.rows} × {config.batch.length} "
        f"tokens (seed {config.seed})."
    )


def _sections(config: PretrainConfig, run: Path, name: str, parents: Mapping[str, str]) -> list[tuple[str, str]]:
    row, found = selected_row(run, config), []
    named = {language.name: row.get(f"validation/{language.name}") for language in config.all_languages}
    known = [(language, f"{value:.2f}") for language, value in named.items() if value is not None]
    if known:
        table = markdown_table(("language", f"perplexity at step {row['step']}"), known)
        of = "all tokens" if config.objective.is_causal else "masked words"
        found.append(("Perplexity", f"The perplexity of {of} in the dev split.\n\n{table}"))
    found.append(("Settings", code_block(without_folders(dump_yaml(config)), "yaml")))
    lines = [f"- run: `{name}`", *(f"- {what}: `{of}`" for what, of in parents.items())]
    return [*found, ("Fingerprints", "\n".join(lines))]
