"""The command ``parse``: parse a source into a folder of CoNLL-U files, which ``conllu:FOLDER`` reads.

train.conllu dev.conllu test.conllu    ten columns with the comments ``# sent_id`` and ``# text``, features and lemmas
                                       of the source or the parser, and tags in MISC (``NER=B-PER|Slot=O``)
manifest.json                          fingerprints of the inputs, counts, omitted sentences, checksums
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from synthlang.corpus import FORM, Sentence
from synthlang.errors import InputError
from synthlang.files import claimed_folder, read_json, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.parsing.engines import TREE_COLUMNS, open_engine
from synthlang.parsing.source import ParsedSource, Tokens
from synthlang.progress import Display
from synthlang.sources import open_source
from synthlang.sources.base import MORPHOLOGY, listed, remarks_of, size_of
from synthlang.sources.tags import KEYS, write_misc
from synthlang.sources.text import UNCUT, FileSource
from synthlang.wording import first_few

FORMAT = 2  # 2: features and slots as well


def parsed_fingerprint(source: ParsedSource) -> str:
    """Return the fingerprint of the folder of a parsed source, which covers the source, the parser and the format."""
    return fingerprint("parsed-folder", format=FORMAT, parents={"source": source.fingerprint})


def write_parsed(source: ParsedSource, folder: Path, source_name: str = "") -> dict[str, Any]:
    """Write every split and the manifest, and return the manifest. After a failure, ``folder`` does not exist.

    ``source_name`` is the source as the user wrote it, for the manifest.

    Raises:
        InputError: The folder exists or is being written by another process, a split has no parsed sentence, or the
            source or the parser fails.
        DiskError: The folder or the cache cannot be written.
    """
    with claimed_folder(folder) as temporary:
        counts = {
            split: _write_split(source, split, temporary / f"{split}.conllu", source_name) for split in source.splits
        }
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


def _write_split(source: ParsedSource, split: str, path: Path, source_name: str) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as handle:
        for batch in source.batches(split):
            handle.writelines(conllu(sentence, split) for sentence in batch)
            count += len(batch)
    if not count:
        reasons = first_few(list(source.skipped[split]), 3, "; ") or "the source has no sentence"
        hint = "use a source with sentences, or another parser"
        reason = f"the split has no parsed sentence ({reasons})"
        raise InputError(reason, source_name or None, keys=split, hint=hint, code="empty")
    return count


def conllu(sentence: Sentence, split: str) -> str:
    """Return a sentence in CoNLL-U, with the blank line that ends the sentence.

    ``split`` is the first part of the ``sent_id``, as in ``dev-7``.
    """
    lines = [f"# sent_id = {split}-{sentence.id}", f"# text = {sentence.text}"]
    columns = sentence.columns
    tags = {name: columns[name] for name in KEYS if name in columns}
    feats, lemmas = (columns.get(name) or ["_"] * len(columns[FORM]) for name in MORPHOLOGY)
    rows = zip(feats, lemmas, *(columns[name] for name in (FORM, *TREE_COLUMNS)), strict=True)
    for number, (features, lemma, form, upos, head, deprel) in enumerate(rows, start=1):
        misc = write_misc({name: values[number - 1] for name, values in tags.items()})
        lines.append(f"{number}\t{form}\t{lemma}\t{upos}\t_\t{features}\t{head}\t{deprel}\t_\t{misc}")
    return "\n".join([*lines, "", ""])


def parse_command(
    source_spec: str,
    engine: str,
    out: Path,
    tokens: Tokens = "source",
    workers: int = 1,
    cache: Path | None = None,
    morphology: bool = False,
    devices: Sequence[str] = (),
) -> dict[str, int]:
    """Parse every split of a source into ``out`` (see ``synthlang.parse``). A killed run resumes from the cache.

    ``engine`` is the parser with its model, such as ``spacy:NAME``.
    """
    opened = open_source(source_spec)
    parser = open_engine(engine, morphology=morphology)
    source = ParsedSource(opened, parser, cache, tokens, workers, devices=devices)
    with Display() as shown:
        if isinstance(opened, FileSource):
            shown.message(f"parse {source_spec}: {opened.read_as}")
        if out.exists():
            path = out / "manifest.json"
            manifest = read_json(path) if path.is_file() else {}
            if not isinstance(manifest, dict) or manifest.get("fingerprint") != parsed_fingerprint(source):
                hint = "name a new folder"
                reason = "exists already, but is not the parse of this source by this parser"
                raise InputError(reason, out, hint=hint, code="exists")
            shown.message(f"{out}: already complete")
        else:
            source.report = shown.counter("parsing", partial(size_of, source.source))
            manifest = write_parsed(source, out, source_name=source_spec)
            shown.message(_summary(manifest, source, out))
    return dict(manifest["sentences"])


def _summary(manifest: dict[str, Any], source: ParsedSource, out: Path) -> str:
    sizes = ", ".join(f"{split} {count}" for split, count in manifest["sentences"].items())
    chunks = source.hits[True] + source.hits[False]
    left_out = sum(sum(reasons.values()) for reasons in manifest["skipped"].values())
    remarks = Counter[str]()
    for split in source.splits:
        remarks.update(remarks_of(source, split))
    if source.tokens == "engine":
        del remarks[UNCUT]  # the engine cuts these words
    note = f"; {listed(remarks)}" if remarks else ""
    note += f"; {left_out} sentences left out (reasons in manifest.json)" if left_out else ""
    return f"{out}: {sizes}; {source.hits[True]} of {chunks} chunks from the cache{note}"
