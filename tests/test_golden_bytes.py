"""Exact bytes for a spec: sentences, items, data sets, shards, dictionaries, batches, and their fingerprints.

Parquet files are read back and hashed as JSON lines, since their bytes depend on pyarrow's version.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from pretrain.artifacts import Artifacts
from pretrain.build import train_batches
from pretrain.config import PretrainConfig
from pretrain.prepare import prepare
from probes.cli import app
from synthlang.catalogue import find, names
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.dictionary.word_dictionary import DictionarySpec
from synthlang.language import Language, bind_language, parse_language
from synthlang.sources import open_source
from synthlang.store import Store
from synthlang.tasks import open_task
from synthlang.tasks.batch import TaskBatch
from tests.golden import check_golden
from tests.golden import digest as whole_digest


def digest(value: Any) -> str:
    """Enough of SHA-256 of plain data to tell two values apart."""
    return whole_digest(value)[:24]


def bytes_of(array: Any) -> str:
    """Shape and SHA-256 of an array of whole numbers, whatever their type."""
    if array is None:
        return "none"
    whole = np.asarray(array)
    return f"{list(whole.shape)} {hashlib.sha256(whole.astype('<i8').tobytes()).hexdigest()[:24]}"


# --- the built-in grammar


def sentences_of(corpus: Corpus) -> dict[str, Any]:
    """Column → its values, sentence by sentence."""
    return {"id": [s.id for s in corpus]} | {
        name: [list(s.columns[name]) for s in corpus] for name in sorted(corpus.columns)
    }


@pytest.mark.parametrize("types", [500, 1000, 2000])
def test_mini_english(types):
    found: dict[str, Any] = {}
    for seed in (0, 7):
        source = open_source(f"builtin:mini-english?types={types}&sentences=150&dev=20&test=20&seed={seed}")
        found[f"seed {seed}"] = {"fingerprint": source.fingerprint, "columns": list(source.columns)} | {
            split: [{k: digest(v) for k, v in sentences_of(batch).items()} for batch in source.batches(split)]
            for split in source.splits
        }
        first = next(iter(source.batches("train")))
        found[f"seed {seed}"]["first"] = first.texts()[:3]
    check_golden(f"mini_english_{types}", found)


def items_of(batch: TaskBatch) -> dict[str, Any]:
    """All that a batch of items holds, as plain data."""
    answers = [batch.answers.item, batch.answers.start, batch.answers.stop]
    return sentences_of(batch.corpus) | {
        "text_of_sentence": batch.text_of_sentence.tolist(),
        "field_of_text": batch.field_of_text.tolist(),
        "texts": batch.texts.tolist(),
        "ids": list(batch.ids),
        "label": None if batch.label is None else batch.label.values(),
        "answers": [part.tolist() for part in answers],
        "extra": {name: list(values) for name, values in batch.extra.items()},
        "counts": dict(batch.counts),
    }


@pytest.mark.parametrize("task", ["nli", "ner", "slots", "qa", "pos", "parsing"])
def test_items_of_mini_english(task):
    found: dict[str, Any] = {}
    for seed in (0, 7):
        opened = open_task(f"{task}:builtin:mini-english?types=500&sentences=60&dev=10&test=10&seed={seed}")
        found[f"seed {seed}"] = {"fingerprint": opened.fingerprint, "labels": list(opened.labels)} | {
            split: [{k: digest(v) for k, v in items_of(batch).items()} for batch in opened.batches(split)]
            for split in opened.splits
        }
    check_golden(f"items_{task}", found)


# --- data sets

TEXT = """The small dog sees a black cat. It runs away, and nobody knows why!
"Is it 10 o'clock?" asked Mr. Smith in Zürich. Prices rose 3.5 % — naïve 東京 people left.

A farmer gives the old horses water. They drink it. Two men wait at the river (the Thames).
"""
CONLLU = """# sent_id = a
1\tThe\tthe\tDET\tDT\tDefinite=Def\t2\tdet\t_\t_
2\tmen\tman\tNOUN\tNNS\tNumber=Plur\t3\tnsubj\t_\t_
3\tgave\tgive\tVERB\tVBD\tTense=Past\t0\troot\t_\t_
4\tAnna\tAnna\tPROPN\tNNP\tNumber=Sing\t3\tiobj\t_\t_
5\ttwo\ttwo\tNUM\tCD\t_\t7\tnummod\t_\t_
6\tbig\tbig\tADJ\tJJ\t_\t7\tamod\t_\t_
7\thouses\thouse\tNOUN\tNNS\tNumber=Plur\t3\tobj\t_\t_
8\tin\tin\tADP\tIN\t_\t9\tcase\t_\t_
9\tParis\tParis\tPROPN\tNNP\tNumber=Sing\t7\tnmod\t_\t_
10\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

# sent_id = b
1\tShe\tshe\tPRON\tPRP\tNumber=Sing\t2\tnsubj\t_\t_
2\tsaw\tsee\tVERB\tVBD\t_\t0\troot\t_\t_
3\tthe\tthe\tDET\tDT\t_\t5\tdet\t_\t_
4\told\told\tADJ\tJJ\t_\t5\tamod\t_\t_
5\thorse\thorse\tNOUN\tNN\tNumber=Sing\t2\tobj\t_\t_
6\tthat\tthat\tPRON\tWDT\t_\t7\tnsubj\t_\t_
7\tran\trun\tVERB\tVBD\t_\t5\tacl:relcl\t_\t_
8\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

# sent_id = c: its tree is not projective
1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_
2\thearing\thearing\tNOUN\tNN\t_\t4\tnsubj\t_\t_
3\tis\tbe\tAUX\tVBZ\t_\t4\taux\t_\t_
4\tscheduled\tschedule\tVERB\tVBN\t_\t0\troot\t_\t_
5\ton\ton\tADP\tIN\t_\t7\tcase\t_\t_
6\tthe\tthe\tDET\tDT\t_\t7\tdet\t_\t_
7\tissue\tissue\tNOUN\tNN\t_\t2\tnmod\t_\t_
8\ttoday\ttoday\tADV\tNN\t_\t4\tadvmod\t_\t_
"""
MUSE = "houses Häuser\nhouses Gebäude\nthe die\nmen Männer\nthe der\ncat Katze\nunseen ungesehen\n"
TREES = {
    "case": {"kind": "mark", "case": {"nsubj": "ka", "obj": "o", "iobj": "ni", "nmod": "no"}},
    "agreement": {"kind": "mark", "agreement": {"PRON": "e", "NOUN": "en"}, "as_words": True, "place": "before"},
    "after verb, drop": {"kind": "mark", "after_verb": {"word": "¶", "distance": 2}, "drop": ["articles", "pronouns"]},
    "values": {"kind": "typology", "order": "VSO", "adjective": "after", "genitive": "before", "article": "after"},
    "final": {"kind": "typology", "head_direction": "final", "strength": 0.6},
    "faithful order": {"kind": "reorder", "model": "ga", "policy": "drop-sentence", "temperature": 0.5},
}
WORDS = {
    "frequent": {"kind": "transliterate", "strength": 0.5, "by": "token", "order": "frequent", "script": "hangul"},
    "chunks": {"kind": "invert", "chunk": 3, "keep_final_punctuation": False},
    "switch": {"kind": "code_switch", "dictionary": "muse.txt", "probability": 0.9, "cap": 0.5},
    "switch uniform": {"kind": "code_switch", "dictionary": "muse.txt", "probability": 1.0, "translations": "uniform"},
}
TOKENS = [{"kind": "transliterate", "strength": 0.5, "unit": "token"}, {"kind": "permute", "unit": "token"}]
NAMES = ("trans", "trans:0.5", "trans@hangul", "inv", "inv@4", "perm", "perm@3:0.5", "trans+inv", "trans+switch")
TREE_NAMES = ("reorder@fr", "typology@SOV", "trans+reorder@de:0.5")
MINI = "builtin:mini-english?types=500&sentences=60&dev=10&test=0"
MORPHOLOGY = f"{MINI}&feats&lemma"
UD = "conllu:ud.conllu"


def write_inputs(folder: Path) -> None:
    """The files that sources and languages of these tests name, by paths from ``folder``."""
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    (folder / "ud.conllu").write_text(CONLLU, encoding="utf-8")
    (folder / "muse.txt").write_text(MUSE, encoding="utf-8")
    (folder / "en.txt").write_text("the cat sat\na dog ran home\nshe saw the dog\n" * 12, encoding="utf-8")
    (folder / "de.txt").write_text("die katze saß\nein hund lief heim\nsie sah den hund\n" * 12, encoding="utf-8")
    steps: dict[str, Any] = {name: [step] for name, step in {**TREES, **WORDS}.items()}
    for name, transforms in {**steps, "tokens": TOKENS}.items():
        spec = {"name": name.replace(" ", "-").replace(",", ""), "seed": 3, "transforms": transforms}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    """The working directory, with the input files in it."""
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> None:
    """The command synthlang."""
    app([*arguments], standalone_mode=False)


def data_set(folder: Path) -> dict[str, Any]:
    """Return the content of a data set folder: files, tables, card, language, and manifest without checksums."""
    files = sorted((path for path in folder.rglob("*") if path.is_file()), key=Path.as_posix)
    manifest = json.loads((folder / "manifest.json").read_text())
    kept = {key: value for key, value in manifest.items() if key != "sha256"}
    tables = {}
    for path in files:
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            columns = {name: digest(table.column(name).to_pylist()) for name in table.column_names}
            types = {field.name: str(field.type).replace("element: ", "item: ") for field in table.schema}
            tables[path.relative_to(folder).as_posix()] = {
                name: f"{types[name]} × {table.num_rows}: {columns[name]}" for name in table.column_names
            }
    assert sorted(manifest["sha256"]) == [p.relative_to(folder).as_posix() for p in files if p.name != "manifest.json"]
    return {
        "files": [p.relative_to(folder).as_posix() for p in files],
        "tables": tables,
        "card": digest((folder / "README.md").read_text(encoding="utf-8")),
        "language": digest((folder / "language.yaml").read_text(encoding="utf-8")),
        "manifest": {key: value if isinstance(value, str | int) else digest(value) for key, value in kept.items()},
    }


EXPORTS = {
    "mini-english": (MINI, [*NAMES, *TREE_NAMES, *(f"{name}.yaml" for name in (*TREES, *WORDS))]),
    "text": ("text:text.txt", [*NAMES, *(f"{name}.yaml" for name in WORDS)]),
    "conllu": (UD, [*NAMES, *TREE_NAMES, *(f"{name}.yaml" for name in (*TREES, *WORDS))]),
    "conllu with features": (f"{UD}?feats", ["trans", "case.yaml", "typology@SOV"]),
    "impossible": (MORPHOLOGY, [name for name in names("derived") if re.fullmatch("impossible/[^/]+", name)]),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_exports(name, here):
    source, languages = EXPORTS[name]
    found = {}
    for number, language in enumerate(languages):
        call("derive", source, "--language", language, "--out", str(number))
        found[language] = data_set(here / str(number))
    check_golden(f"exports_{name.replace(' ', '_').replace('-', '_')}", found)


def test_exports_with_token_ids(here):
    found = {}
    for number, language in enumerate(("trans+inv", "trans:0.5", "perm", "tokens.yaml")):
        call("derive", MINI, "--language", language, "--vocabulary", "300", "--out", str(number), "--licence", "mit")
        found[language] = data_set(here / str(number))
    check_golden("exports_token_ids", found)


def test_exports_of_impossible_tokens(here):
    found = {}
    for number, name in enumerate(("nondeterministic-shuffle", "local-shuffle-w3", "partial-reverse", "token-hop")):
        call(
            "derive", MORPHOLOGY, "--language", f"impossible/{name}/paper", "--vocabulary", "300", "--out", str(number)
        )
        found[name] = data_set(here / str(number))
    check_golden("exports_impossible_tokens", found)


def test_exports_of_tasks(here):
    found = {}
    for task in ("nli", "ner", "slots", "qa", "pos", "parsing"):
        for language in ("trans+inv", "perm"):
            folder = f"{task}-{language}"
            field = {"nli": ["--field", "hypothesis"], "qa": ["--field", "question"]}.get(task, [])
            spec = f"{task}:builtin:mini-english?types=500&sentences=40&dev=10&test=10"
            call("derive", spec, "--language", language, "--out", folder, *field)
            found[f"{task} {language}"] = data_set(here / folder)
    check_golden("exports_tasks", found)


# --- dictionaries, vocabularies, shards

DRAWN = [
    ("type", "uniform", 0.5), ("type", "frequent", 0.5), ("token", "uniform", 0.4), ("token", "frequent", 0.4),
    ("type", "uniform", 1.0),
]  # fmt: skip


def test_dictionaries_of_words(here):
    found = {}
    for by, order, coverage in DRAWN:
        for spec in ("trans+inv", "trans:0.5", "muse.txt"):
            name = f"{spec} by {by}, {order}, {coverage}"
            options = ["--by", by, "--order", order, "--coverage", str(coverage), "--seed", "5"]
            source = "text:text.txt" if spec == "muse.txt" else MINI
            call("dictionary", spec, "--source", source, "--out", name, *options)
            manifest = json.loads((here / name / "manifest.json").read_text())
            pairs = digest((here / name / "dictionary.txt").read_text(encoding="utf-8"))
            found[name] = {"pairs": pairs, "manifest": digest(manifest), "fingerprint": manifest["fingerprint"]}
    check_golden("dictionaries_words", found)


RUN: dict[str, Any] = {
    "source": MINI,
    "language": "trans+inv",
    "steps": 5,
    "optimizer": {"warmup_steps": 0},
    "vocabulary": {"size": 300},
    "dictionary": {"coverage": 0.5},
    "model": {"layers": 1, "heads": 1, "hidden": 8, "feed_forward": 8},
    "batch": {"rows": 6, "length": 32},
}
NAMED = {"languages": ["parent", {"name": "trans-inv", "language": "trans+inv"}], "language": None}
THREE = {"languages": ["parent", "trans", "inv"], "language": None}
NATURAL = {
    "language": None, "source": "",
    "languages": [{"name": "en", "source": "lines:en.txt"}, {"name": "de", "source": "lines:de.txt"}],
}  # fmt: skip


def artifacts_of(folder: Path, settings: dict[str, Any]) -> tuple[PretrainConfig, Artifacts]:
    """A config and its artifacts; all configs of a test share one store."""
    config = parse(PretrainConfig, {key: value for key, value in settings.items() if value is not None})
    return config, prepare(config, Store(folder / "store"))


def test_shards_of_every_kind_of_vocabulary(here):
    found: dict[str, Any] = {}
    cases: dict[str, dict[str, Any]] = {
        kind: {**RUN, **NAMED, "vocabulary": {"kind": kind, "size": 300}}
        for kind in ("copied", "joint", "joined", "prefixed")
    }
    cases |= {f"{kind}, three languages": {**case, **THREE} for kind, case in cases.items()}
    cases |= {
        f"{kind}, natural": {**RUN, **NATURAL, "vocabulary": {"kind": kind, "size": 290}}
        for kind in ("joint", "joined", "prefixed")
    }
    cases["copied, tokens"] = {**RUN, "language": "tokens.yaml"}
    cases["copied, half"] = {**RUN, "language": "trans:0.5"}
    for name, settings in cases.items():
        _, artifacts = artifacts_of(here, settings)
        found[name] = {
            "size": artifacts.id_space.size,
            "vocabulary": artifacts.id_space.fingerprint,
            "parents": artifacts.parents,
            "members": {
                member.name: {
                    split: {
                        "fingerprint": shards.fingerprint,
                        "type": str(shards.tokens.dtype),
                        "tokens": bytes_of(shards.tokens),
                        "offsets": bytes_of(shards.offsets),
                        "sentences": bytes_of(shards.sentence_ids),
                        "counts": bytes_of(shards.counts),
                        "reasons": shards.reasons,
                    }
                    for split, shards in (("train", member.train), ("dev", member.dev))
                    if shards is not None
                }
                | {"tokenizer": member.tokenizer.fingerprint, "ids": bytes_of(member.tokenizer.ids)}
                for member in artifacts.languages
            },
        }
    check_golden("shards", found)


def test_dictionaries_of_ids(here):
    (here / "nat.txt").write_text("the die\ncat katze\ndog hund\na ein\nran lief\n", encoding="utf-8")
    found: dict[str, Any] = {}
    cases: dict[str, dict[str, Any]] = {
        f"by {by}, {order}, {coverage}": {"dictionary": {"by": by, "order": order, "coverage": coverage, "seed": 5}}
        for by, order, coverage in DRAWN
    }
    cases["separate embeddings"] = {"sharing": {"embeddings": "separate"}}
    cases["three languages"] = THREE
    cases["half"] = {"language": "trans:0.5"}
    cases["file"] = {
        **NATURAL, "dictionary": {"path": "nat.txt", "coverage": 1.0}, "vocabulary": {"kind": "joined", "size": 290},
    }  # fmt: skip
    for name, change in cases.items():
        settings = {**RUN, "objective": {"kind": "align_mlm"}, **change}
        _, artifacts = artifacts_of(here, settings)
        dictionary = artifacts.dictionary
        assert dictionary is not None
        found[name] = {
            "fingerprint": dictionary.fingerprint,
            "pairs": bytes_of(dictionary.pairs),
            "languages": bytes_of(dictionary.languages),
            "candidates": [[c.language, bytes_of(c.pairs), c.left_out] for c in artifacts.candidates],
        }
    check_golden("dictionaries_ids", found)


# --- batches

BATCHES: dict[str, dict[str, Any]] = {
    "mlm": {},
    "mlm, a language alone": {"language": "parent"},
    "mlm, three languages": THREE,
    "mlm, mask_rate 0.3": {"objective": {"mask_rate": 0.3}},
    "mlm, random words of the same language": {"objective": {"random_words": "same-language"}},
    "mlm, random words of the source": {"objective": {"random_words": "source-only"}},
    "mlm, separate softmax": {"sharing": {"softmax": "language"}},
    "mlm, seed": {"seed": 11},
    "mlm, sentences": {"batch": {"rows": 6, "length": 32, "packing": "sentences"}},
    "mlm, exponent": {**THREE, "sampling": {"exponent": 0.7}},
    "mlm, long rows": {"batch": {"rows": 4, "length": 64}},
    "mlm, joint": {"vocabulary": {"size": 300, "kind": "joint"}},
    "mlm, joined": {"vocabulary": {"size": 300, "kind": "joined"}},
    "mlm, prefixed": {**NAMED, "vocabulary": {"size": 300, "kind": "prefixed"}},
    "mlm, tokens": {"language": "tokens.yaml"},
    "xlm": {"objective": {"kind": "xlm"}},
    "xlm, all pairs": {"objective": {"kind": "xlm", "tlm_rate": 1.0}},
    "xlm, sentences": {"objective": {"kind": "xlm"}, "batch": {"rows": 6, "length": 32, "packing": "sentences"}},
    "xlm, three languages": {**THREE, "objective": {"kind": "xlm"}},
    "xlm, natural": {
        **NATURAL, "objective": {"kind": "xlm", "tlm_rate": 1.0}, "vocabulary": {"kind": "joint", "size": 290},
        "parallel": [{"languages": ["en", "de"], "sources": ["lines:en.txt", "lines:de.txt"]}],
    },
    "tlm alone": {"objective": {"kind": "sum", "weights": {"tlm": 1.0}}},
    "dict_mlm": {"objective": {"kind": "dict_mlm"}},
    "dict_mlm label-or-copy": {"objective": {"kind": "dict_mlm", "dict_target": "label-or-copy"}},
    "dict_mlm switched": {"objective": {"kind": "dict_mlm", "dict_target": "switched"}},
    "dict_mlm, every slot": {"objective": {"kind": "dict_mlm", "dict_rate": 1.0}},
    "dict_mlm, no language ids": {"objective": {"kind": "dict_mlm", "language_ids": False}},
    "dict_mlm, three languages": {**THREE, "objective": {"kind": "dict_mlm"}},
    "dict_mlm, sentences": {
        "objective": {"kind": "dict_mlm"}, "batch": {"rows": 6, "length": 32, "packing": "sentences"},
    },
    "align_mlm": {"objective": {"kind": "align_mlm"}},
    "sum": {"objective": {"kind": "sum", "weights": {"mlm": 1.0, "tlm": 1.0, "dict": 1.0, "align": 1.0}}},
}  # fmt: skip
STEPS = (0, 1, 200)
"""Which batches of a run are pinned; the last one is some epochs on."""


def test_batches(here):
    found: dict[str, Any] = {}
    for name, change in BATCHES.items():
        config, artifacts = artifacts_of(here, {**RUN, **change})
        batches = train_batches(config, artifacts)
        found[name] = {}
        for step in STEPS:
            batch = batches.batch(step)
            arrays = {
                "ids": batch.input_ids, "languages": batch.languages, "masked positions": batch.masked,
                "labels": batch.labels, "terms": batch.terms, "positions": batch.positions, "valid": batch.valid,
                "samples": batch.samples,
            }  # fmt: skip
            groups = [[g.start, g.stop, [list(span) for span in g.spans]] for g in batch.groups]
            found[name][f"step {step}"] = {key: bytes_of(array) for key, array in arrays.items()} | {"groups": groups}
    check_golden("batches", found)


# --- the same spec has the same fingerprint

SPECS: dict[str, Callable[[], str]] = {
    **{
        f"language {name}": (lambda name=name: parse_language(name).fingerprint)  # type: ignore[misc]
        for name in ("parent", *NAMES, *TREE_NAMES, *(f"{name}.yaml" for name in (*TREES, *WORDS, "tokens")))
    },
    **{
        f"language {name} of configs": (lambda name=name: parse(Language, find("derived", name).data).fingerprint)  # type: ignore[misc]
        for name in names("derived")
        if not name.endswith("-like")
    },
    "language bound to counts": lambda: (
        bind_language(parse_language("frequent.yaml"), open_source("text:text.txt")).fingerprint
    ),
    **{
        f"source {spec}": (lambda spec=spec: open_source(spec).fingerprint)  # type: ignore[misc]
        for spec in ("builtin:mini-english", MINI, "text:text.txt", "lines:en.txt", UD, f"{UD}?feats", MORPHOLOGY)
    },
    **{
        f"dictionary {spec}": (lambda spec=spec: digest(DictionarySpec(**spec).drawing))  # type: ignore[misc]
        for spec in (*({}, {"coverage": 1.0}, {"by": "token"}, {"order": "frequent"}, {"seed": 3}),)
    },
}


def test_fingerprints(here):
    found = {name: make() for name, make in SPECS.items()}
    changes: dict[str, dict[str, Any]] = {
        **BATCHES,
        "bfloat16": {"precision": "bfloat16"},
        "named": {"languages": [{"name": "a"}, {"name": "b", "language": "inv"}], "language": None},
        "best checkpoint": {"checkpoints": {"select": "best"}, "validation": {"every": 1}},
    }
    for name, change in changes.items():
        config, artifacts = artifacts_of(here, {**RUN, **change})
        found[f"run {name}"] = config.fingerprint(artifacts.parents)
    check_golden("fingerprints", found)
