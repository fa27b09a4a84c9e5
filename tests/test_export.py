"""Exported data sets: every row as the corpus has it, loadable elsewhere, the same for any workers; their cards."""

import hashlib
import json
import shutil
from collections import Counter
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from huggingface_hub import DatasetCard
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

import probes
from synthlang.corpus import Column, Corpus
from synthlang.derive_command import derive_command
from synthlang.export import derived_fingerprint, export_language, push_to_hub, run, verify_manifest
from synthlang.export.card import card_config, card_header, code_block, markdown_table, size_category, write_card
from synthlang.export.rows import (
    CONFIGS,
    LanguageBatch,
    Overlap,
    Strings,
    Types,
    hash_strings,
    merged,
    overlap_of,
    tables_of,
)
from synthlang.language import PARENT, parse_language
from synthlang.rewrite import Rewrite
from synthlang.sources import open_source
from tests.hub_server import hub_server
from tests.refusals import refusal, refused

SOURCE = "builtin:mini-english?types=500&sentences=2100&dev=0&test=50"
DROPPING = {"name": "torn", "split_entities": "drop", "transforms": [{"kind": "permute"}]}


class Listed:
    """A source of plain sentences, as lists of batches by split."""

    columns, fingerprint = ("form",), "0123456789abcdef"

    def __init__(self, **splits):
        self.by_split = splits
        self.splits = tuple(splits)

    def batches(self, split):
        return iter(self.by_split[split])


def digest(folder):
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def rows(folder, config, split="train"):
    paths = sorted((folder / "data" / config).glob(f"{split}-*.parquet"))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "d"
    result = export_language(open_source(SOURCE), parse_language(DROPPING), folder, source_name=SOURCE)
    return folder, result


def test_every_row_is_what_the_corpus_says(exported):
    """Against Corpus and Sentence, one by one."""
    folder, result = exported
    language, kept = parse_language(DROPPING), []
    parent, derived, parallel = (iter(rows(folder, config)) for config in CONFIGS)
    for batch in open_source(SOURCE).batches("train"):
        rewrite = language.rewrite(batch)
        for sentence in batch:
            assert next(parent) == {"id": sentence.id, "text": sentence.text, "words": sentence.words} | {
                n: v for n, v in sentence.columns.items() if n != "form"
            }
        before = rewrite.source(batch)
        for row, sentence in enumerate(rewrite.apply(batch)):
            origin = rewrite.source_index[rewrite.offsets[row] : rewrite.offsets[row + 1]].tolist()
            kept.append(sentence.id)
            labels = {n: v for n, v in sentence.columns.items() if n != "form"}
            one = {"id": sentence.id, "text": sentence.text, "words": sentence.words, "origin": origin}
            assert next(derived) == one | {"parent_text": before[row].text} | labels
            pairs = [{"parent": a, "derived": b} for b, a in enumerate(origin) if a >= 0]
            texts = {"parent_text": before[row].text, "derived_text": sentence.text}
            words = {"parent_words": before[row].words, "derived_words": sentence.words}
            assert next(parallel) == {"id": sentence.id} | texts | words | {"alignment": pairs}
    assert not any(True for it in (parent, derived, parallel) for _ in it)
    assert 0 < len(kept) < 2100
    assert result["splits"]["train"]["kept"] == len(kept)
    assert sum(n for reason, n in result["counts"]["train"].items() if "torn" in reason) >= 2100 - len(kept)


def test_the_manifest_counts_what_is_there(exported):
    folder, result = exported
    manifest = verify_manifest(folder)
    assert manifest == result == json.loads((folder / "manifest.json").read_text())
    assert manifest["fingerprint"] == derived_fingerprint(open_source(SOURCE), parse_language(DROPPING))
    parent, derived = rows(folder, "parent"), rows(folder, "derived")
    expected = {"sentences": len(parent), "kept": len(derived), "words": sum(len(r["words"]) for r in parent)}
    assert manifest["splits"]["train"] == expected | {"derived_words": sum(len(r["words"]) for r in derived)}
    assert manifest["splits"]["validation"] == {"sentences": 0, "kept": 0, "words": 0, "derived_words": 0}
    counts = [
        Counter(w for split in ("train", "test") for r in rows(folder, config, split) for w in r["words"])
        for config in ("parent", "derived")
    ]
    shared, words = (counts[0] & counts[1]).total(), counts[0].total()
    assert (manifest["overlap"]["types"], manifest["overlap"]["tokens_shared"]) == (len(counts[0]), shared)
    assert 0.5 < shared / words < 1


def test_the_bytes_do_not_depend_on_workers(tmp_path, monkeypatch):
    monkeypatch.setattr("synthlang.export.run.cores", lambda: 8)
    monkeypatch.setattr("synthlang.export.run.SHARD_BATCHES", 1)  # 2,100 sentences are two shards
    source, language, seen = open_source(SOURCE), parse_language("trans:0.5+perm:0.7"), []
    for workers in (1, 2, 5):
        folder = tmp_path / str(workers)
        progress = lambda split, n: seen.append((split, n))  # noqa: E731
        export_language(source, language, folder, source_name=SOURCE, workers=workers, progress=progress)
    assert len(list((tmp_path / "1" / "data" / "derived").iterdir())) == 3
    assert digest(tmp_path / "1") == digest(tmp_path / "2") == digest(tmp_path / "5")
    assert Counter(split for split, n in seen for _ in range(n)) == {"train": 3 * 2100, "test": 3 * 50}
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_the_card_rebuilds_the_data_set(exported, tmp_path):
    folder, _ = exported
    again = parse_language(str(folder / "language.yaml"))
    export_language(open_source(SOURCE), again, tmp_path / "again", source_name=SOURCE)
    assert digest(tmp_path / "again") == digest(folder)
    card = (folder / "README.md").read_text()
    assert "synthlang derive 'builtin:mini-english?types=500&sentences=2100&dev=0&test=50' --language" in card


TRICKY = [["é", "日本", "🙂‍↔️", "ا"], [], ["w"] * 50_000, ["a|b", "`c`", "---", '"', "\\", "\x85"]]


def test_unicode_and_empty_and_long_sentences_come_back(tmp_path):
    source = Listed(train=[Corpus.of_words(TRICKY)])
    export_language(source, parse_language("inv"), tmp_path / "d", source_name="text:a b.txt")
    assert [r["words"] for r in rows(tmp_path / "d", "parent")] == TRICKY
    assert [r["words"] for r in rows(tmp_path / "d", "derived")] == [s[::-1] for s in TRICKY]
    assert [r["parent_text"] for r in rows(tmp_path / "d", "parallel")] == [" ".join(s) for s in TRICKY]
    assert "derive 'text:a b.txt'" in (tmp_path / "d" / "README.md").read_text()


ONE = Corpus.of([{"form": ["Ann", "Lee", "x", "y"], "ner": ["B-PER", "I-PER", "O", "O"]}])


@pytest.mark.parametrize(
    ("source", "language", "options", "place", "code"),
    [
        (Listed(train=[]), PARENT, {}, "x", "empty"),
        (Listed(train=[Corpus.of_words([])], dev=[]), PARENT, {}, "x", "empty"),
        (Listed(train=[ONE] * 3), parse_language({**DROPPING, "seed": 1}), {}, "x", "empty"),
        (Listed(train=[ONE]), PARENT, {"licence": "all rights\nmine"}, "licence", "format"),
    ],
)
def test_what_cannot_be_exported_leaves_nothing(source, language, options, place, code, tmp_path):
    about = refused(export_language, source, language, tmp_path / "d", source_name="x", **options)
    assert about == (place, code)
    assert list(tmp_path.iterdir()) == []


def test_equal_names_of_a_column_stay_apart_by_code():
    """Parquet counts codes by distinct names: without care the third word would become a wrong one."""
    words = Column(np.asarray([0, 1, 2, 1, 3], np.int32), ("a", "b", "a", "c"))
    corpus = Corpus(np.asarray([0, 3, 5]), {"form": words, "upos": words}, np.arange(2))
    side = LanguageBatch.of(corpus)
    table = tables_of(side, side, Rewrite.identity(corpus))["parent"]
    assert table.to_pydict()["words"] == table.to_pydict()["upos"] == [["a", "b", "a"], ["b", "c"]]
    assert table["words"].chunk(0).values.dictionary.to_pylist() == ["a", "b", "c"]


WORDS = st.lists(st.text("abc é日", min_size=0, max_size=3), max_size=30)


@given(WORDS, WORDS)
def test_overlap_of_hashed_types_is_that_of_multisets(parent, derived):
    found = []
    for words in (parent, derived):
        parts = [Column.of(words[i : i + 7]) for i in range(0, len(words), 7)]
        found.append(merged(Types.of(part, Strings.of(part.names or ())) for part in parts))
    types, rest = set(parent), list(derived)
    for word in parent:
        if word in rest:
            rest.remove(word)
    shared = len(derived) - len(rest)
    assert overlap_of(*found) == Overlap(len(types & set(derived)), len(types), shared, len(parent))


def test_hashes_tell_words_apart():
    words = sorted({f"{a}{b}" for a in ("", "a", "aa", "\0", "é") for b in range(4000)} | {"", "\0", "\0\0"})
    hashes = hash_strings(Strings.of(words))
    assert len(np.unique(hashes)) == len(words)
    assert hash_strings(Strings.of(["0"])) == hashes[words.index("0")]  # whatever stands beside it


SMALL = "builtin:mini-english?types=500&sentences=300&dev=40&test=0"


def counts_of(rows):
    return Counter(i for row in rows for i in row)


def test_ids_are_those_of_the_tokenizers(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    out = tmp_path / "d"
    derive_command(SMALL, "trans:0.5+inv", out, vocabulary="400")
    manifest = verify_manifest(out)
    size = manifest["vocabulary"]["size"]
    parent, derived, default, parallel = (
        load_dataset(str(out), config, cache_dir=str(tmp_path / "c"))
        for config in ("parent", "derived", None, "parallel")
    )
    assert default["train"][3] == derived["train"][3] and derived["train"][3]["origin"]
    assert parallel["validation"]["derived_text"] == derived["validation"]["text"]
    assert list(load_dataset(str(out), streaming=True)["train"]) == list(derived["train"])
    texts = {"parent": parent["train"]["text"][:50], "derived": derived["train"]["text"][:50]}
    encoded = {
        name: AutoTokenizer.from_pretrained(out / "tokenizer" / name)(list(lines), add_special_tokens=False).input_ids
        for name, lines in texts.items()
    }
    assert encoded["parent"] == list(parent["train"]["input_ids"][:50])
    assert encoded["derived"] == list(derived["train"]["input_ids"][:50])
    # what the manifest says of the overlap, counted again
    before, after = (
        counts_of(row["input_ids"] for split in data.values() for row in split) for data in (parent, derived)
    )
    both = before & after
    assert manifest["overlap_of_ids"] == {
        "types_shared": len(both),
        "types": len(before),
        "tokens_shared": sum(both.values()),
        "tokens": sum(before.values()),
    }
    moved = {i for i in after if i >= size}
    assert moved and both
    assert "input_ids" in (out / "README.md").read_text()


def test_a_language_of_tokens(tmp_path, monkeypatch):
    """It needs a vocabulary, which may be that of another export, and travels to workers."""
    monkeypatch.setattr(run, "cores", lambda: 2)
    language = tmp_path / "l.yaml"
    language.write_text(
        "name: t\ntransforms: [{kind: invert, unit: token}, {kind: transliterate, unit: token, strength: 0.5}]\n"
    )
    assert "vocabulary" in refusal(derive_command, SMALL, str(language), tmp_path / "x").text
    assert not (tmp_path / "x").exists()
    for name, vocabulary, workers in (("1", "400", 1), ("2", "400", 2), ("again", f"{tmp_path}/1/tokenizer/parent", 1)):
        derive_command(SMALL, str(language), tmp_path / name, vocabulary=vocabulary, workers=workers)
    one, two, again = (verify_manifest(tmp_path / name) for name in ("1", "2", "again"))
    assert one == two and "--vocabulary 400" in one["command"]
    assert 0.3 < one["overlap_of_ids"]["types_shared"] / one["overlap_of_ids"]["types"] < 0.7
    assert again["fingerprint"] == one["fingerprint"]
    data = [{k: v for k, v in manifest["sha256"].items() if k.startswith("data")} for manifest in (one, again)]
    assert data[0] == data[1]


@pytest.mark.parametrize("vocabulary", ["3", "nowhere"])
def test_wrong_vocabularies(tmp_path, vocabulary):
    refusal(derive_command, SMALL, "trans", tmp_path / "d", vocabulary=vocabulary)
    assert not list(tmp_path.iterdir())


CARD_SOURCE = "builtin:mini-english?types=500&sentences=20&dev=5&test=5"
CONFIG = card_config("default", {"train": "data/train-*.parquet", "test": "data/test-*.parquet"}, default=True)


@pytest.fixture(scope="module")
def card_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card") / "d"
    export_language(open_source(CARD_SOURCE), parse_language("trans+inv"), folder, source_name=CARD_SOURCE)
    return folder


def test_the_hub_reads_the_header_of_an_export(card_folder):
    data = DatasetCard.load(card_folder / "README.md").data.to_dict()
    assert data["license"] == "apache-2.0" and data["size_categories"] == ["n<1K"] and data["language"][-1] == "art"
    assert [(c["config_name"], c.get("default", False)) for c in data["configs"]] == [
        ("parent", False),
        ("derived", True),
        ("parallel", False),
    ]
    for config in data["configs"]:
        for files in config["data_files"]:
            assert list(card_folder.glob(files["path"])), files


@settings(max_examples=40)
@given(st.text(max_size=30), st.text(max_size=60))
def test_no_name_or_text_breaks_a_card(name, text):
    header = card_header([CONFIG], pretty_name=name, tags=[name], task_categories=["token-classification"])
    card = write_card("T", header, [("", "start"), ("A", code_block(text)), ("B", markdown_table(("a",), [(text,)]))])
    assert DatasetCard(card.replace("\r", " ")).data.to_dict()["pretty_name"] == name or "\r" in name
    fence = code_block(text).split("\n")[0]
    assert len(fence) > max((len(run) for run in text.replace("`", " ` ").split(" ") if set(run) == {"`"}), default=0)
    assert fence not in text
    assert markdown_table(("a",), [(text,)]).count("\n") == 2


def test_licences_and_sizes():
    for licence, expected in (
        ("CC-BY-SA-4.0", {"license": "cc-by-sa-4.0"}),
        ("unknown", {"license": "unknown"}),
        ("cc-by-nc-sa-3.0-us", {"license": "other", "license_name": "cc-by-nc-sa-3.0-us"}),
    ):
        header = card_header([CONFIG], pretty_name="x", licence=licence)
        assert {k: v for k, v in header.items() if k.startswith("license")} == expected
    for licence in ("", "a b", "-x", "x" * 65, "mit\n", "[mit]"):
        assert refused(card_header, [CONFIG], pretty_name="x", licence=licence) == ("licence", "format")
    sizes = [size_category(rows) for rows in (0, 999, 1000, 10**6, 10**13)]
    assert sizes == ["n<1K", "n<1K", "1K<n<10K", "1M<n<10M", "n>1T"]


def test_shards_of_an_earlier_version_are_deleted_in_the_same_commit(card_folder, monkeypatch, capsys):
    old = ["data/derived/train-00007.parquet", "data/parent/test-00009.parquet"]
    with hub_server(monkeypatch) as hub:
        push_to_hub(card_folder, "me/data")
        there = hub.content["dataset", "me/data"]
        there |= {**dict.fromkeys(old, b"old"), "notes.md": b"mine", "README.md": b"old"}
        assert probes.push(card_folder, "me/data", dry_run=True) == [] and not hub.deleted
        assert "other files on the hub that match data/*.parquet are deleted" in capsys.readouterr().out
        assert probes.push(card_folder, "me/data") == [f"{hub.address}/datasets/me/data"]
        assert [paths for _, paths in hub.commits[1:]] == [["README.md"]] and sorted(hub.deleted) == old
        assert not {*old} & {*there} and there["notes.md"] == b"mine", "files of people stay"
        assert f"deleted files of an earlier version: {', '.join(old)}" in capsys.readouterr().out
        there[old[0]] = b"old"
        push_to_hub(card_folder, "me/data")
        assert len(hub.commits) == 3 and hub.commits[2][1] == [], "a commit that only deletes"


def test_a_verified_folder_is_uploaded_and_no_other(card_folder, tmp_path, monkeypatch):
    with hub_server(monkeypatch) as hub:
        assert push_to_hub(card_folder, "me/data") == f"{hub.address}/datasets/me/data"
        assert hub.made == {("dataset", "me/data"): True}
        there = hub.content["dataset", "me/data"]
        mine = {path.relative_to(card_folder).as_posix(): path for path in card_folder.rglob("*") if path.is_file()}
        assert {name: there[name] for name in mine} == {name: path.read_bytes() for name, path in mine.items()}
        push_to_hub(card_folder, "me/data")
        assert len(hub.commits) == 1, "what is there is not uploaded again"
    for name in ("", "a/b/c", "../x", "a b", "x" * 97):
        refusal(push_to_hub, card_folder, name)
    other = shutil.copytree(card_folder, tmp_path / "d")
    for change, place, code in (
        (lambda: (other / "more.txt").write_text("x"), "more.txt", "unknown"),
        (lambda: (other / "README.md").write_text("x"), "README.md", "damaged"),
        ((other / "README.md").unlink, "README.md", "missing"),
        (lambda: (other / "manifest.json").write_text("[]"), "manifest.json", "format"),
    ):
        change()
        assert refused(push_to_hub, other, "me/data") == (place, code)
    (other / "manifest.json").unlink()
    assert refused(push_to_hub, other, "me/data")[0] == "manifest.json"
    for error in (ConnectionError("offline\nmore"), ValueError("")):
        api = SimpleNamespace(create_repo=Mock(side_effect=error))
        found = refusal(push_to_hub, card_folder, "me/data", api=api)
        assert "me/data: the upload failed: " in str(found) and not str(found).endswith(": ")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "me/data: the upload failed: " in str(refusal(push_to_hub, card_folder, "me/data"))
