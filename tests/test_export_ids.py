"""Token ids in an export: those of the tokenizers beside them, moved by V where a word is transliterated."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from datasets import load_dataset

from synthlang.derive import derive_command
from synthlang.errors import InputError
from synthlang.export import verify_manifest

SOURCE = "builtin:mini-english?types=500&sentences=300&dev=40&test=0"


def counts_of(rows):
    return Counter(i for row in rows for i in row)


@pytest.mark.parametrize("strength", ["1", "0.5"])
def test_ids_are_those_of_the_tokenizers(tmp_path, strength, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    out = tmp_path / "d"
    derive_command(SOURCE, f"trans:{strength}+inv", out, vocabulary="400")
    manifest = verify_manifest(out)
    size = manifest["vocabulary"]["size"]
    parent = load_dataset(str(out), "parent", cache_dir=str(tmp_path / "c"))
    derived = load_dataset(str(out), "derived", cache_dir=str(tmp_path / "c"))
    texts = {"parent": parent["train"]["text"][:50], "derived": derived["train"]["text"][:50]}
    # the tokenizers by themselves, in a process without this project
    code = (
        "import json, sys\nfrom transformers import AutoTokenizer\ntexts = json.load(sys.stdin)\n"
        "encode = lambda n: AutoTokenizer.from_pretrained(f'{sys.argv[1]}/tokenizer/{n}')(texts[n], "
        "add_special_tokens=False)['input_ids']\n"
        "ids = {n: encode(n) for n in texts}\nassert 'synthlang' not in sys.modules\nprint(json.dumps(ids))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(out)],
        input=json.dumps({k: list(v) for k, v in texts.items()}),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    encoded = json.loads(done.stdout)
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
    assert moved and (not both if strength == "1" else both)
    assert "input_ids" in (out / "README.md").read_text()


def test_a_language_of_tokens(tmp_path):
    language = tmp_path / "l.yaml"
    language.write_text(
        "name: t\ntransforms: [{kind: invert, unit: token}, {kind: transliterate, unit: token, strength: 0.5}]\n"
    )
    with pytest.raises(InputError, match="needs a vocabulary"):
        derive_command(SOURCE, str(language), tmp_path / "no")
    assert not (tmp_path / "no").exists()
    derive_command(SOURCE, str(language), tmp_path / "d", vocabulary="400")
    manifest = verify_manifest(tmp_path / "d")
    shared = manifest["overlap_of_ids"]
    assert 0.3 < shared["types_shared"] / shared["types"] < 0.7
    # the vocabulary may be that of another export
    derive_command(SOURCE, str(language), tmp_path / "e", vocabulary=str(tmp_path / "d" / "tokenizer" / "parent"))
    again = verify_manifest(tmp_path / "e")
    assert again["fingerprint"] == manifest["fingerprint"]
    assert {k: v for k, v in again["sha256"].items() if k.startswith("data")} == {
        k: v for k, v in manifest["sha256"].items() if k.startswith("data")
    }


def test_workers_give_the_same_ids(tmp_path):
    for workers in (1, 2):
        derive_command(SOURCE, "trans", tmp_path / str(workers), vocabulary="400", workers=workers)
    one, two = (verify_manifest(tmp_path / str(w)) for w in (1, 2))
    assert one == two


@pytest.mark.parametrize(("vocabulary", "reason"), [("3", "too small"), ("nowhere", "no such file")])
def test_wrong_vocabularies(tmp_path, vocabulary, reason):
    with pytest.raises(InputError, match=reason):
        derive_command(SOURCE, "trans", tmp_path / "d", vocabulary=vocabulary)
    assert not list(tmp_path.iterdir())
