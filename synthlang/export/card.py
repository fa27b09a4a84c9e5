"""Data set cards: a YAML header that the hub and ``datasets`` read, and sections of text.

The header is described at https://huggingface.co/docs/hub/datasets-cards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from synthlang.errors import InputError
from synthlang.strict_yaml import write_yaml

UNKNOWN_LICENCE = "unknown"
LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")
# Licences that the hub lists by their SPDX id in lower case. A card gives any other licence as "other" with a name.
HUB_LICENCES = frozenset(
    f"{family}-{version}" for family in ("cc-by", "cc-by-sa", "cc-by-nc", "cc-by-nd", "cc-by-nc-sa", "cc-by-nc-nd")
    for version in ("2.0", "2.5", "3.0", "4.0")
) | {
    "apache-2.0", "mit", "bsd", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc", "odc-by", "odbl", "pddl", "unlicense",
    "gpl-2.0", "gpl-3.0", "lgpl-2.1", "lgpl-3.0", "agpl-3.0", "mpl-2.0", "gfdl", "afl-3.0", "artistic-2.0", "isc",
    "wtfpl", "zlib", "c-uda", "cdla-permissive-1.0", "cdla-permissive-2.0", "cdla-sharing-1.0", "ecl-2.0", "ms-pl",
    "osl-3.0", "postgresql", "bsl-1.0", "epl-2.0", "eupl-1.1", UNKNOWN_LICENCE,
}  # fmt: skip
SIZES = ((0, "n<1K"), (10**3, "1K<n<10K"), (10**4, "10K<n<100K"), (10**5, "100K<n<1M"), (10**6, "1M<n<10M"),
         (10**7, "10M<n<100M"), (10**8, "100M<n<1B"), (10**9, "1B<n<10B"), (10**10, "10B<n<100B"),
         (10**11, "100B<n<1T"), (10**12, "n>1T"))  # fmt: skip


def card_config(name: str, files: Mapping[str, str], default: bool = False) -> dict[str, Any]:
    """Return the entry of one configuration in the header of a card.

    Args:
        name: Name of the configuration.
        files: Path or pattern in the folder for each split.
        default: True for the configuration that ``datasets`` loads if none is named.
    """
    listed = [{"split": split, "path": path} for split, path in files.items()]
    return {"config_name": name, "data_files": listed} | ({"default": True} if default else {})


def check_licence(licence: str) -> str:
    """Return the id of a licence unchanged if it can be an SPDX id.

    >>> check_licence("CC-BY-SA-4.0")
    'CC-BY-SA-4.0'

    Raises:
        InputError: The text cannot be an SPDX id.
    """
    if not LICENCE.fullmatch(licence):
        reason = f"{licence!r} is not an SPDX id"
        hint = f"give an id such as cc-by-sa-4.0, or {UNKNOWN_LICENCE}"
        raise InputError(reason, keys="licence", hint=hint, code="format")
    return licence


def size_category(rows: int) -> str:
    """Return the hub's size category of a number of rows, 0 or more.

    >>> size_category(1500)
    '1K<n<10K'
    """
    return [name for least, name in SIZES if rows >= least][-1]


def card_header(
    configs: Sequence[Mapping[str, Any]],
    *,
    pretty_name: str,
    licence: str = UNKNOWN_LICENCE,
    language: Sequence[str] = (),
    rows: int = 0,
    tags: Sequence[str] = (),
    task_categories: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """Return the YAML header of a card as plain data.

    Args:
        configs: The configurations, from ``card_config``.
        pretty_name: The title on the hub.
        licence: SPDX id in upper or lower case.
        language: Codes of the languages.
        rows: Rows of the default configuration over all splits.
        tags: Tags on the hub.
        task_categories: Categories of tasks on the hub.
        more: Further keys of the header.

    Raises:
        InputError: The licence cannot be an SPDX id.
    """
    spdx = check_licence(licence).lower()
    header: dict[str, Any] = {"pretty_name": pretty_name}
    if language:
        header["language"] = list(language)
    header |= {"license": spdx} if spdx in HUB_LICENCES else {"license": "other", "license_name": spdx}
    if task_categories:
        header["task_categories"] = list(task_categories)
    if tags:
        header["tags"] = list(tags)
    header["size_categories"] = [size_category(rows)]
    header["configs"] = list(configs)
    return header | more


def write_card(title: str, header: Mapping[str, Any], sections: Iterable[tuple[str, str]]) -> str:
    """Return the text of a card with the header from ``card_header``.

    ``sections`` are pairs (heading, Markdown text). A heading may be empty.
    """
    parts = [f"---\n{write_yaml(dict(header))}---", f"# {title}"]
    parts += [f"## {heading}\n\n{text.strip()}" if heading else text.strip() for heading, text in sections]
    return "\n\n".join(parts) + "\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with numbers aligned right and cells escaped.

    >>> print(markdown_table(("split", "rows"), [("train", 1200)]))
    | split | rows |
    |---|---:|
    | train | 1,200 |
    """
    body = [list(row) for row in rows]
    right = [bool(body) and all(isinstance(row[i], int | float) for row in body) for i in range(len(head))]
    lines = []
    for row in (head, *body):
        texts = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        lines.append("| " + " | ".join(" ".join(text.split()).replace("|", "\\|") for text in texts) + " |")
    rule = "|" + "|".join("---:" if is_number else "---" for is_number in right) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def code_block(text: str, language: str = "") -> str:
    """Return text as a Markdown code block. The fence is longer than any run of backticks in the text.

    ``language`` is the language of the code for highlighting, or "" for none.
    """
    ticks = [i for i, c in enumerate(f" {text} ") if c != "`"]
    fence = "`" * max(3, *(b - a for a, b in pairwise([*ticks, ticks[-1] + 1])))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
