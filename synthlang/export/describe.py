"""What the card of an exported language says, section by section."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from synthlang.corpus import FORM
from synthlang.export.card import UNKNOWN_LICENCE, CardConfig, card_header, code_block, markdown_table, write_card
from synthlang.language import Language, portable
from synthlang.overlap import Overlap

ROWS = {
    "parent": "every sentence of the source: `id`, `text`, `words` and its labels",
    "derived": "a row for each sentence of the derived language: `words`; `text`, the same with a space between each "
    "two words; `origin`, for each word the index of its word in the parent's sentence (from 0; -1 for an inserted "
    "word); `parent_text`, the sentence it comes from; and the labels, moved with their words",
    "parallel": "both sentences of each pair and `alignment`, the pairs of word indices {parent, derived} (from 0); "
    "an inserted word is in no pair, nor is a deleted one",
}
SHOWN = 1200  # characters of an example


def write_language_card(
    manifest: Mapping[str, Any], language: Language, columns: tuple[str, ...], codes: tuple[str, ...], examples: Any
) -> str:
    """README.md from the manifest; ``codes`` are the languages of the source, ``examples`` a row of each config."""
    configs, sizes = manifest["configs"], manifest["splits"]
    main = "derived" if "derived" in configs else configs[0]
    rows = sum(size["sentences" if main == "parent" else "kept"] for size in sizes.values())
    files = {
        c: {n: f"data/{c}/{n}-*.parquet" for n, s in sizes.items() if s["sentences" if c == "parent" else "kept"]}
        for c in configs
    }
    header = card_header(
        [CardConfig(c, files[c], default=c == main) for c in configs],
        pretty_name=f"{language.name}, derived from {manifest['source']}",
        licence=manifest["licence"],
        language=[*codes, "art"],  # ISO 639-2: artificial languages
        rows=rows,
        tags=["synthlang", "synthetic-language"],
    )
    sections = [
        ("", _about(manifest)),
        ("What was done", _transforms(language)),
        ("Configurations", _configs(configs, columns, main)),
        ("Sizes", _sizes(sizes)),
        ("What happened", _counts(manifest["counts"])),
        ("Overlap with the parent", _overlap(manifest["overlap"], manifest.get("overlap_of_ids"))),
        *([("Token ids", _tokens(manifest, language))] if "vocabulary" in manifest else []),
        ("Examples", "\n\n".join(f"`{c}`:\n\n{_example(examples[c])}" for c in configs)),
        ("Licence", _licence(manifest["licence"])),
        ("How to make it again", _again(manifest)),
    ]
    return write_card(header["pretty_name"], header, sections)


def _about(manifest: Mapping[str, Any]) -> str:
    return (
        f"A synthetic language made by synthlang from the sentences of `{manifest['source']}`: another word order or "
        "other words, by rules that are given below, so that every word and label can be traced to its parent."
    )


def _transforms(language: Language) -> str:
    if not language.transforms:
        return "Nothing: this is the parent itself."
    lines = []
    steps = zip(language.transforms, portable(language)[0]["transforms"], strict=True)
    for number, (transform, step) in enumerate(steps, start=1):
        about = inspect.cleandoc(type(transform).__doc__ or transform.kind).split("\n\n")[0]
        shown = ", ".join(f"{k} {json.dumps(v, ensure_ascii=False)}" for k, v in step.items() if k != "kind")
        lines.append(f"{number}. **{transform.kind}**: {' '.join(about.split()).replace('``', '`')} Settings: {shown}.")
    return "\n".join(lines) + f"\n\nSeed: {language.seed}. All settings are in `language.yaml`."


def _configs(configs: tuple[str, ...], columns: tuple[str, ...], main: str) -> str:
    labels = ", ".join(f"`{c}`" for c in columns if c != FORM) or "none"
    lines = [f"- `{c}`{' (default)' if c == main else ''}: {ROWS[c]}" for c in configs]
    more = " `head` counts from 1 within the sentence, 0 is the root." if "head" in columns else ""
    return "\n".join(lines) + (
        f"\n\nLabels: {labels}.{more} `id` is the number of the sentence in its split of the source, the same in every "
        "configuration. A sentence that the language drops is in `parent` only; a split without a row is left out."
    )


def _sizes(sizes: Mapping[str, Mapping[str, int]]) -> str:
    head = ("split", "sentences of the parent", "kept", "dropped", "words of the parent", "words of the derived")
    rows = [
        (n, s["sentences"], s["kept"], s["sentences"] - s["kept"], s["words"], s["derived_words"])
        for n, s in sizes.items()
    ]
    return markdown_table(head, rows)


def _counts(counts: Mapping[str, Mapping[str, int]]) -> str:
    reasons = sorted({reason for of_split in counts.values() for reason in of_split})
    if not reasons:
        return "Every sentence was derived; none was dropped or left as it was for a reason to report."
    rows = [(reason, *(of_split.get(reason, 0) for of_split in counts.values())) for reason in reasons]
    return markdown_table(("reason", *counts), rows)


def _overlap(counts: Mapping[str, int], of_ids: Mapping[str, int] | None) -> str:
    rows = []
    for held, type_name, token_name in (
        (counts, "word types", "running words"),
        (of_ids, "token ids", "running tokens"),
    ):
        if held is not None:
            found = Overlap(**held)
            rows += [
                (type_name, found.types, found.types_shared, f"{100 * found.by_type:.2f} %"),
                (token_name, found.tokens, found.tokens_shared, f"{100 * found.by_token:.2f} %"),
            ]
    return (
        "Words of the parent that occur in the derived text too, written exactly alike; a running word counts as often "
        "as it stands in both.\n\n" + markdown_table(("", "parent", "shared", "share"), rows)
    )


def _tokens(manifest: Mapping[str, Any], language: Language) -> str:
    size, ids = manifest["vocabulary"]["size"], manifest["vocabulary"]["ids"]
    moved = f"; a transliterated token is the parent's id + {size}" if ids > size else ""
    more = (
        " The words of `derived` are tokens already: `input_ids` has one id for each of them."
        if language.on_tokens
        else ""
    )
    return (
        f"`input_ids` has the ids of the words, without `<s>` and `</s>`, in `parent` and `derived`: {ids} ids{moved}. "
        f"`tokenizer/parent` and `tokenizer/derived` are the tokenizers, for `AutoTokenizer`.{more}"
    )


def _example(row: Mapping[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False)
    return code_block(text if len(text) <= SHOWN else text[:SHOWN] + " …", "json" if len(text) <= SHOWN else "")


def _licence(licence: str) -> str:
    if licence == UNKNOWN_LICENCE:
        return "Not known here: the licence of the source applies to this data set too; look at the source."
    return f"`{licence}`, as the source: this data set is derived from its text."


def _again(manifest: Mapping[str, Any]) -> str:
    configs = "" if len(manifest["configs"]) == len(ROWS) else f" (configurations: {', '.join(manifest['configs'])})"
    parents = ", ".join(f"{name} `{value}`" for name, value in manifest["parents"].items())
    made = f"Data set fingerprint `{manifest['fingerprint']}`{configs}, from {parents}."
    return f"{code_block(manifest['command'])}\n\n{made}"
