"""A parsed source as CoNLL-U files, which ``conllu:FOLDER`` reads.

train.conllu dev.conllu test.conllu    ten columns; ``# sent_id`` and ``# text``; features if the source has them;
                                       tags in MISC (``NER=B-PER|Slot=O``)
manifest.json                          parents by fingerprint, counts, what was left out, checksums
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from synthlang.claim import claimed_folder
from synthlang.corpus import FORM, Sentence
from synthlang.errors import InputError
from synthlang.files import write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.parsing.engine import TREE_COLUMNS
from synthlang.parsing.source import ParsedSource
from synthlang.sources.conllu import FEATS
from synthlang.sources.tags import KEYS, write_misc

FORMAT = 2  # 2: features and slots, too


def parsed_fingerprint(source: ParsedSource) -> str:
    """Of the folder: of its source and of how it is written."""
    return fingerprint("parsed-folder", format=FORMAT, parents={"source": source.fingerprint})


def write_parsed(
    source: ParsedSource, folder: Path, progress: Callable[[str, int], None] | None = None, source_name: str = ""
) -> dict[str, Any]:
    """Write every split and the manifest; returns the manifest. Nothing stays in ``folder`` if this fails.

    ``progress(split, sentences)`` is called after each batch is written.
    """
    counts: dict[str, int] = {}
    with claimed_folder(folder) as temporary:
        for split in source.splits:
            counts[split] = _write_split(source, split, temporary / f"{split}.conllu", progress)
        manifest = {
            "fingerprint": parsed_fingerprint(source),
            "format": FORMAT,
            "source": source_name,
            "engine": {"name": source.engine.name, "version": source.engine.version},
            "tokens": source.tokens,
            "parents": {"source": source.source.fingerprint, "engine": source.engine.fingerprint},
            "sentences": counts,
            "skipped": {split: dict(sorted(reasons.items())) for split, reasons in source.skipped.items()},
            "sha256": {p.name: sha256_file(p) for p in sorted(temporary.iterdir())},
        }
        write_json(temporary / "manifest.json", manifest)
    return manifest


def _write_split(source: ParsedSource, split: str, path: Path, progress: Callable[[str, int], None] | None) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as handle:
        for batch in source.batches(split):
            handle.writelines(conllu(sentence, split) for sentence in batch)
            count += len(batch)
            if progress:
                progress(split, len(batch))
    if not count:
        reasons = ", ".join(source.skipped[split]) or "the source has none"
        raise InputError(f"the split {split} has no parsed sentence ({reasons})")
    return count


def conllu(sentence: Sentence, split: str) -> str:
    """A sentence in CoNLL-U, with the blank line after it."""
    lines = [f"# sent_id = {split}-{sentence.id}", f"# text = {sentence.text}"]
    columns = sentence.columns
    tags = {name: columns[name] for name in KEYS if name in columns}
    feats = columns.get(FEATS) or ["_"] * len(columns[FORM])
    rows = zip(feats, *(columns[name] for name in (FORM, *TREE_COLUMNS)), strict=True)
    for number, (features, form, upos, head, deprel) in enumerate(rows, start=1):
        misc = write_misc({name: values[number - 1] for name, values in tags.items()})
        lines.append(f"{number}\t{form}\t_\t{upos}\t_\t{features}\t{head}\t{deprel}\t_\t{misc}")
    return "\n".join([*lines, "", ""])
