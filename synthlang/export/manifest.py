"""What stands beside the shards: card, spec, and the manifest that vouches for every file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from synthlang.errors import InputError
from synthlang.export.describe import write_language_card
from synthlang.export.overlap import merged, overlap_of
from synthlang.export.shard import SPLIT_NAMES, Plan, id_counts_of, types_of
from synthlang.files import atomic_file, read_json, write_json
from synthlang.fingerprint import sha256_file
from synthlang.language import portable, write_spec
from synthlang.sources.base import Source

SIZES = ("sentences", "kept", "words", "derived_words")
READABLE = range(4, 21)  # words of a good example
Record = Mapping[str, Any]


def write_manifest(plan: Plan, source: Source, records: Sequence[Record], about: Mapping[str, Any]) -> dict[str, Any]:
    """Write README.md, language.yaml and, last, manifest.json; returns the manifest.

    ``about`` has what is known before any work: fingerprint, format, source, licence.
    """
    out = plan.folder / "out"
    splits = {split: [r for r in records if r["split"] == split] for split in source.splits}
    types = [types_of(plan, r["split"], r["number"]) for r in records]
    manifest: dict[str, Any] = {
        **about,
        "language": portable(plan.language)[0],
        "parents": {"source": source.fingerprint, "language": plan.language.fingerprint},
        "configs": list(plan.configs),
        "splits": {SPLIT_NAMES[s]: {size: sum(r[size] for r in held) for size in SIZES} for s, held in splits.items()},
        "counts": {
            SPLIT_NAMES[s]: dict(sum((Counter(r["counts"]) for r in held), Counter())) for s, held in splits.items()
        },
        "overlap": asdict(overlap_of(*(merged(side) for side in zip(*types, strict=True)))),
    }
    tokenizers = _tokens(plan, records, manifest) if plan.vocabulary is not None else []
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


def _tokens(plan: Plan, records: Sequence[Record], manifest: dict[str, Any]) -> list[Path]:
    """Write the tokenizers and put what is known of the ids into the manifest; returns the files."""
    from synthlang.export.ids import overlap_of_ids, write_tokenizers

    assert plan.vocabulary is not None
    counts = [id_counts_of(plan, r["split"], r["number"]) for r in records]
    parent, derived = (sum(side[1:], start=side[0]) for side in zip(*counts, strict=True))
    manifest["parents"]["vocabulary"] = plan.vocabulary.fingerprint
    manifest["vocabulary"] = {"size": plan.vocabulary.size, "ids": plan.vocabulary.size_with(plan.language.script)}
    manifest["overlap_of_ids"] = asdict(overlap_of_ids(parent, derived))
    return write_tokenizers(plan.vocabulary, plan.language, plan.folder / "out")


def verify_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a data set, once every file is as it says and there is no other; else InputError."""
    manifest = read_json(folder / "manifest.json")
    if not isinstance(manifest, dict) or not isinstance(manifest.get("sha256"), dict):
        raise InputError("is no manifest of a data set: it has no checksums", folder / "manifest.json")
    for name, expected in manifest["sha256"].items():
        if not (folder / name).is_file():
            raise InputError("is missing, though the manifest names it; export the data set again", folder / name)
        if sha256_file(folder / name) != expected:
            raise InputError("differs from the manifest; export the data set again", folder / name)
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    if extra := sorted(found - manifest["sha256"].keys() - {"manifest.json"}):
        raise InputError("is not in the manifest; take it out of the data set", folder / extra[0])
    return manifest


def _examples(plan: Plan, records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """A row of each configuration, of the same sentence."""
    main = next(c for c in ("derived", "parallel", "parent") if c in plan.configs)
    size = "sentences" if main == "parent" else "kept"
    record = next(r for r in records if r[size])
    paths = {c: plan.data(c, record["split"], record["number"]) for c in plan.configs}
    table = pq.ParquetFile(paths[main]).read_row_group(0)
    lengths = pc.list_value_length(table["derived_words" if main == "parallel" else "words"]).to_pylist()
    best = min(
        range(len(lengths)),
        key=lambda row: (lengths[row] not in READABLE, 0 if lengths[row] in READABLE else lengths[row]),
    )
    wanted = table["id"][best].as_py()
    return {c: _row(path, wanted) for c, path in paths.items()}


def _row(path: Path, wanted: int) -> dict[str, Any]:
    """The row with the id ``wanted``."""
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        ids = file.read_row_group(group, columns=["id"])["id"].to_pylist()
        if wanted in ids:
            return dict(file.read_row_group(group).slice(ids.index(wanted), 1).to_pylist()[0])
    raise AssertionError(f"every configuration has the sentence {wanted}")
