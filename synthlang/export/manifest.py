"""Card, language file and manifest of a data set folder, and the upload of the folder to the hub."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from synthlang.corpus import FORM
from synthlang.errors import InputError
from synthlang.export.card import UNKNOWN_LICENCE, card_config, card_header, code_block, markdown_table, write_card
from synthlang.export.rows import AFFECTED, CONFIGS, Overlap, Types, merged, overlap_of
from synthlang.export.shard import SPLIT_NAMES, ExportPlan, overlap_of_ids, types_of, write_tokenizers
from synthlang.files import atomic_file, no_such, read_json, write_json
from synthlang.fingerprint import sha256_file
from synthlang.hub_upload import Repository, check_repository, folder_files, upload
from synthlang.language import Language, portable, write_spec
from synthlang.sources.base import Source, remarks_of

ROWS = {
    "parent": "every sentence in the source language: `id`, `text`, `words` and its labels",
    "derived": "one row per sentence of the derived language: `words`; `text`, the words separated by single spaces; "
    "`origin`, for each word the index of its word in the source sentence (from 0; -1 for an inserted word); "
    "`parent_text`, the source sentence; and the labels, moved with their words",
    "parallel": "both sentences of each pair and `alignment`, the pairs of word indices {parent, derived} (from 0); "
    "inserted and deleted words are in no pair",
}
HEAD = ("split", "source sentences", "kept", "dropped", "source words", "derived words")
MAIN = "derived"
SHARDS = "data/*.parquet"
"""Paths of the rows in the repository of a data set. The slashes of folders count as ``*``."""
SHOWN = 1200  # characters of an example


def write_language_card(
    manifest: Mapping[str, Any], language: Language, columns: tuple[str, ...], codes: tuple[str, ...], examples: Any
) -> str:
    """Return the text of README.md, the card of a data set in a derived language.

    Args:
        manifest: Content of the manifest, with or without checksums.
        language: The derived language.
        columns: Word columns of the source.
        codes: Codes of the languages of the source.
        examples: An example row of each configuration, by name.

    Raises:
        InputError: The licence in the manifest cannot be an SPDX id.
    """
    sizes = manifest["splits"]
    files = {
        c: {n: f"data/{c}/{n}-*.parquet" for n, s in sizes.items() if s["sentences" if c == "parent" else "kept"]}
        for c in CONFIGS
    }
    header = card_header(
        [card_config(c, files[c], default=c == MAIN) for c in CONFIGS],
        pretty_name=f"{language.name}, derived from {manifest['source']}",
        licence=manifest["licence"],
        language=[*codes, "art"],  # ISO 639-2: artificial languages
        rows=sum(size["kept"] for size in sizes.values()),
        tags=["synthlang", "synthetic-language"],
    )
    about = (
        f"A synthetic language that synthlang derived from the sentences of `{manifest['source']}`. The rules that "
        "changed its word order or words are given below, and every word and label can be traced to the source."
    )
    licence = f"`{manifest['licence']}`, the licence of the source, since this data set is derived from its text."
    if manifest["licence"] == UNKNOWN_LICENCE:
        licence = "Unknown. The licence of the source applies to this data set too; check it there."
    parents = ", ".join(f"{name} `{value}`" for name, value in manifest["parents"].items())
    again = f"Data set fingerprint `{manifest['fingerprint']}`, from {parents}."
    sections = [
        ("", about),
        ("Transforms", _transforms(language) + _counted(manifest)),
        ("Configurations", _configs(columns, language)),
        ("Sizes", markdown_table(HEAD, [(n, *_row_of(size)) for n, size in sizes.items()])),
        ("What was left out or changed", _counts(manifest["counts"])),
        ("Overlap with the source", _overlap(manifest["overlap"], manifest.get("overlap_of_ids"))),
        *([("Token ids", _tokens(manifest, language))] if "vocabulary" in manifest else []),
        ("Examples", "\n\n".join(f"`{c}`:\n\n{_example(examples[c])}" for c in CONFIGS)),
        ("Licence", licence),
        ("How to reproduce it", f"{code_block(manifest['command'])}\n\n{again}"),
    ]
    return write_card(header["pretty_name"], header, sections)


def _row_of(size: Mapping[str, int]) -> tuple[int, ...]:
    """Return the cells of a table row under HEAD."""
    dropped = size["sentences"] - size["kept"]
    return size["sentences"], size["kept"], dropped, size["words"], size["derived_words"]


def _transforms(language: Language) -> str:
    if not language.transforms:
        return "None: this is the source language itself."
    lines = []
    steps = zip(language.transforms, portable(language)[0]["transforms"], strict=True)
    for number, (transform, step) in enumerate(steps, start=1):
        about = inspect.cleandoc(type(transform).__doc__ or transform.kind).split("\n\n")[0]
        shown = ", ".join(f"{k} {json.dumps(v, ensure_ascii=False)}" for k, v in step.items() if k != "kind")
        lines.append(f"{number}. **{transform.kind}**: {' '.join(about.split()).replace('``', '`')} Settings: {shown}.")
    return "\n".join(lines) + f"\n\nSeed: {language.seed}. All settings are in `language.yaml`."


def _counted(manifest: Mapping[str, Any]) -> str:
    split = manifest.get("counted_in")
    return "" if split is None else f"\n\nWords were counted in the split `{SPLIT_NAMES[split]}`, as requested."


def _configs(columns: tuple[str, ...], language: Language) -> str:
    labels = ", ".join(f"`{c}`" for c in columns if c != FORM) or "none"
    lines = [f"- `{c}`{' (default)' if c == MAIN else ''}: {ROWS[c]}" for c in CONFIGS]
    more = " `head` counts words of the sentence from 1; 0 is the root." if "head" in columns else ""
    if language.flags_sentences:
        more += f" `{AFFECTED}` in `{MAIN}` is true for the sentences that the transforms count as affected."
    return "\n".join(lines) + (
        f"\n\nLabels: {labels}.{more} `id` is the number of the sentence in its split of the source, the same in every "
        "configuration. A sentence that the language drops is in `parent` only. A split without a row is left out."
    )


def _counts(counts: Mapping[str, Mapping[str, int]]) -> str:
    reasons = sorted({reason for of_split in counts.values() for reason in of_split})
    if not reasons:
        return "Nothing: every sentence was derived."
    rows = [(reason, *(of_split.get(reason, 0) for of_split in counts.values())) for reason in reasons]
    return markdown_table(("reason", *counts), rows)


def _overlap(words: Mapping[str, int], ids: Mapping[str, int] | None) -> str:
    rows: list[tuple[str, int, int, str]] = []
    for counts, names in ((words, ("word types", "running words")), (ids, ("token ids", "running tokens"))):
        if counts is not None:
            found = Overlap(**counts)
            rows.append((names[0], found.types, found.types_shared, f"{100 * found.by_type:.2f} %"))
            rows.append((names[1], found.tokens, found.tokens_shared, f"{100 * found.by_token:.2f} %"))
    return (
        "Words of the source that also occur in the derived text, in exactly the same form. A running word counts as "
        "often as it occurs in both.\n\n" + markdown_table(("", "source", "shared", "share"), rows)
    )


def _tokens(manifest: Mapping[str, Any], language: Language) -> str:
    size, ids = manifest["vocabulary"]["size"], manifest["vocabulary"]["ids"]
    moved = f" The id of a transliterated token is the source id + {size}." if ids > size else ""
    more = (
        " The words of `derived` are already tokens, and `input_ids` has one id for each of them."
        if language.on_tokens
        else ""
    )
    return (
        f"`input_ids` has the ids of the words in `parent` and `derived`, without `<s>` and `</s>`. There are {ids} "
        f"ids.{moved} `AutoTokenizer` loads the tokenizers `tokenizer/parent` and `tokenizer/derived`.{more}"
    )


def _example(row: Mapping[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False)
    return code_block(text if len(text) <= SHOWN else text[:SHOWN] + " …", "json" if len(text) <= SHOWN else "")


SIZES = ("sentences", "kept", "words", "derived_words")
READABLE = range(4, 21)  # numbers of words that make a readable example
Record = Mapping[str, Any]


def write_manifest(
    plan: ExportPlan, source: Source, records: Sequence[Record], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the card, the language, the tokenizers and the manifest of a data set, and return the manifest.

    Tokenizers are written only if ``plan`` has a vocabulary. The file manifest.json is written last.

    Args:
        plan: The settings of the export.
        source: Source of the sentences.
        records: Records of all shards (see ``write_shard``).
        about: Entries of the manifest that do not depend on the shards, such as fingerprint and licence.

    Raises:
        InputError: The licence cannot be an SPDX id.
        DiskError: A file cannot be written.
    """
    out = plan.folder / "out"
    splits = {split: [r for r in records if r["split"] == split] for split in source.splits}
    types = [types_of(plan, r["split"], r["number"]) for r in records]
    parent, derived = (merged(Types(h[f"{s}_hashes"], h[f"{s}_counts"]) for h in types) for s in ("parent", "derived"))
    manifest: dict[str, Any] = {
        **about,
        "language": portable(plan.language)[0],
        "parents": {"source": source.fingerprint, "language": plan.language.fingerprint},
        "configs": list(CONFIGS),
        "splits": {
            SPLIT_NAMES[s]: {size: sum(r[size] for r in of_split) for size in SIZES} for s, of_split in splits.items()
        },
        "counts": {
            SPLIT_NAMES[s]: dict(sum((Counter(r["counts"]) for r in of_split), Counter(remarks_of(source, s))))
            for s, of_split in splits.items()
        },
        "overlap": asdict(overlap_of(parent, derived)),
    }
    tokenizers = _tokenizers(plan, types, manifest) if plan.vocabulary is not None else []
    codes = tuple(getattr(source, "language_codes", ()))
    card = write_language_card(manifest, plan.language, source.columns, codes, _examples(plan, records))
    with atomic_file(out / "README.md", "w") as handle:
        handle.write(card)
    shards = {name.removeprefix("out/"): value for r in records for name, value in r["sha256"].items()}
    files = {name: value for name, value in shards.items() if name.startswith("data/")}
    beside = [out / "README.md", *write_spec(plan.language, out), *tokenizers]
    manifest["sha256"] = files | {path.relative_to(out).as_posix(): sha256_file(path) for path in beside}
    write_json(out / "manifest.json", manifest)
    return manifest


def _tokenizers(plan: ExportPlan, types: Sequence[Mapping[str, Any]], manifest: dict[str, Any]) -> list[Path]:
    """Write the tokenizers, describe the ids in ``manifest``, and return the files."""
    assert plan.vocabulary is not None
    parent, derived = (sum(h[f"{side}_ids"] for h in types) for side in ("parent", "derived"))
    manifest["parents"]["vocabulary"] = plan.vocabulary.fingerprint
    manifest["vocabulary"] = {"size": plan.vocabulary.size, "ids": plan.vocabulary.size_with(plan.language.script)}
    manifest["overlap_of_ids"] = asdict(overlap_of_ids(parent, derived))
    return write_tokenizers(plan.vocabulary, plan.language, plan.folder / "out")


AGAIN = "restore this file, or delete the folder and derive the data set again"


def verify_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a data set after checking every file against it.

    Raises:
        InputError: The manifest is missing or has no checksums, or a file is missing, was changed, or is not in the
            manifest.
    """
    if not (folder / "manifest.json").is_file():
        raise no_such(folder / "manifest.json", hint="name the folder of a data set that synthlang derived")
    manifest = read_json(folder / "manifest.json")
    if not isinstance(manifest, dict) or not isinstance(manifest.get("sha256"), dict):
        raise InputError("has no checksums (key sha256)", folder / "manifest.json", hint=AGAIN, code="format")
    check_files(folder, manifest["sha256"])
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    if extra := sorted(found - manifest["sha256"].keys() - {"manifest.json"}):
        hint = "move this file out of the folder"
        raise InputError("is not in the manifest", folder / extra[0], hint=hint, code="unknown")
    return manifest


def check_files(folder: Path, checksums: Mapping[str, str]) -> None:
    """Check that a folder has the files of a manifest, by the SHA-256 of each name.

    Raises:
        InputError: A file is missing or was changed.
    """
    for name, expected in checksums.items():
        if not (folder / name).is_file():
            raise InputError("is missing, although the manifest names it", folder / name, hint=AGAIN, code="missing")
        if sha256_file(folder / name) != expected:
            raise InputError("differs from its checksum in the manifest", folder / name, hint=AGAIN, code="damaged")


def _examples(plan: ExportPlan, records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Return the row of one example sentence from each configuration."""
    record = next(r for r in records if r["kept"])
    paths = {c: plan.data(c, record["split"], record["number"]) for c in CONFIGS}
    table = pq.ParquetFile(paths[MAIN]).read_row_group(0)
    lengths = pc.list_value_length(table["words"]).to_pylist()
    best = min(
        range(len(lengths)),
        key=lambda row: (lengths[row] not in READABLE, 0 if lengths[row] in READABLE else lengths[row]),
    )
    wanted = table["id"][best].as_py()
    return {c: _row(path, wanted) for c, path in paths.items()}


def _row(path: Path, wanted: int) -> dict[str, Any]:
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        ids = file.read_row_group(group, columns=["id"])["id"].to_pylist()
        if wanted in ids:
            return dict(file.read_row_group(group).slice(ids.index(wanted), 1).to_pylist()[0])
    raise AssertionError(f"every configuration has the sentence {wanted}")


def data_set_repository(folder: Path, repo_id: str) -> Repository:
    """Verify a data set folder, and return the repository that it becomes.

    Raises:
        InputError: The name is not valid, or the folder does not pass ``verify_manifest``.
    """
    check_repository(repo_id)
    manifest = verify_manifest(folder)
    note = f"synthlang data set {manifest['fingerprint']}" if "fingerprint" in manifest else "synthlang data set"
    return Repository(repo_id, "dataset", note, folder_files(folder), complete=(SHARDS,))


def push_to_hub(folder: Path, repo_id: str, private: bool = True, api: Any | None = None) -> str:
    """Verify a data set folder, upload it to the repository ``repo_id`` and return its address.

    See ``synthlang.hub_upload.upload`` for ``private`` and ``api``.

    Raises:
        InputError: The folder does not pass ``verify_manifest``, the name is not valid, or the upload fails.
    """
    return upload(data_set_repository(folder, repo_id), private, api).address
