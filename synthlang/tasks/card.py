"""The data set card of an exported task set."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from synthlang.export.card import UNKNOWN_LICENCE, CardConfig, card_header, code_block, markdown_table, write_card
from synthlang.strict_yaml import write_yaml
from synthlang.tasks.base import TaskSet

CATEGORIES = {"words": "token-classification", "classes": "text-classification", "spans": "question-answering"}
ABOUT = {
    "parent": "every item that was read, as it was read: words and marks with one space between each two",
    "derived": "the items in the derived language, all fields",
    "mixed": "the items with some fields in the derived language",
}
LABELS = {
    "words": "The tags are IOB2 and moved with their words: each word keeps what it is a part of.",
    "upos": "The tags moved with their words; a word that the language inserted has the tag `_`.",
    "deprel": (
        "Heads count words from 1, 0 is the root, and point to the same words as in the parent; tags and relations "
        "moved with their words. A word that the language inserted has the head -1 and the relation `_`."
    ),
    "classes": "The label of an item is that of its parent.",
    "spans": (
        "An answer is the same words as in the parent, in the order they have now; `answer_start` counts characters "
        "of `context`. An answer is left out if another word stands among its words, a question if no answer is left. "
        "A question without answers cannot be answered."
    ),
}


def task_card(task: TaskSet, manifest: dict[str, Any], licence: str | None, command: str | None) -> str:
    """The whole card, from the manifest of the folder."""
    items = manifest["items"]
    # where the files lay is nobody's business, what they are called is
    title = f"{task.name if ':builtin:' in task.name else PurePath(task.name).name} in {manifest['language']['name']}"
    configs = [
        CardConfig(config, {s: f"data/{config}/{s}.parquet" for s, n in splits.items() if n}, config == "derived")
        for config, splits in items.items()
    ]
    header = card_header(
        configs,
        pretty_name=title,
        licence=licence or UNKNOWN_LICENCE,
        rows=sum(items["derived"].values()),
        tags=["synthlang", "synthetic-language"],
        task_categories=[CATEGORIES[task.kind]],
    )
    return write_card(title, header, _sections(task, manifest, licence, command))


def _sections(
    task: TaskSet, manifest: dict[str, Any], licence: str | None, command: str | None
) -> list[tuple[str, str]]:
    items, changes = manifest["items"], manifest["changes"]
    mixed = manifest["fields"]["mixed"]
    which = [(c, ABOUT[c] + (f": {', '.join(mixed)}" if c == "mixed" else "")) for c in items]
    sizes = [(config, split, n) for config, splits in items.items() for split, n in splits.items()]
    read = [("read", s, reason, n) for s, counts in manifest["read"].items() for reason, n in counts.items()]
    happened = read + [
        (c, s, reason, n)
        for c, splits in changes.items()
        for s, counts in splits.items()
        for reason, n in counts.items()
    ]
    rebuilt = [("Make it again", code_block(command, "sh"))] if command else []
    return [
        (
            "",
            "A labelled task set in a synthetic language, made by synthlang. An id names the same item everywhere.",
        ),
        ("Configurations", markdown_table(("config", "what it holds"), which)),
        ("Labels", LABELS.get(task.tags or "", LABELS[task.kind])),
        ("Items", markdown_table(("config", "split", "items"), sizes)),
        ("What was left out or changed", _or_none(("config", "split", "reason", "times"), happened)),
        ("Licence", _licence(licence)),
        ("Language", code_block(write_yaml(manifest["language"]), "yaml")),
        *rebuilt,
        ("Fingerprints", markdown_table(("of", "fingerprint"), _fingerprints(manifest))),
    ]


def _or_none(head: tuple[str, ...], rows: list[tuple[str, str, str, int]]) -> str:
    return markdown_table(head, rows) if rows else "Nothing."


def _fingerprints(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    return [("this data set", manifest["fingerprint"]), *manifest["parents"].items()]


def _licence(licence: str | None) -> str:
    if licence is None:
        return "That of the task set it comes from; look there before you pass it on."
    return f"{licence}, as that of the task set it comes from allows."
