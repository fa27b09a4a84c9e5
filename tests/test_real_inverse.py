"""Real English there and back: every invertible composition restores every sentence."""

import itertools
from typing import Any

import pytest

from synthlang.language import parse_language
from synthlang.sources import open_source
from tests.real_data import DATA

SOURCES = [f"conllu:{DATA}/ud2/en_ewt/en_ewt-ud-train.conllu", f"text:{DATA}/enwiki_slice/valid.txt"]
NAMES = ["+".join(n) for size in (1, 2, 3) for n in itertools.permutations(["trans", "inv", "perm"], size)]
SPECS: list[Any] = [
    *NAMES,
    "perm:0.3+inv:0.7",
    {
        "name": "chunks",
        "transforms": [
            {"kind": "permute", "window": 3},
            {"kind": "transliterate", "script": "syllabics", "strength": 0.5},
            {"kind": "invert", "chunk": 4, "keep_final_punctuation": False},
        ],
    },
    {
        "name": "marked",
        "transforms": [
            {"kind": "mark", "case": {"nsubj": "ka"}, "after_verb": {"word": "zu", "distance": 2}},
            {"kind": "permute"},
            {"kind": "transliterate"},
        ],
    },
]


@pytest.mark.skipif(not DATA.exists(), reason=f"real data is not at {DATA}")
@pytest.mark.parametrize("source", SOURCES, ids=["ewt", "enwiki"])
def test_the_inverse_restores_real_text(source):
    opened = open_source(source)
    words = 0
    for batch in itertools.islice(opened.batches(opened.splits[0]), 2):
        words += len(batch.form.codes)
        for spec in SPECS:
            language = parse_language(spec)
            if not set(language.requires) <= set(batch.columns):
                continue
            derived = language.derive(batch)
            assert derived.texts() != batch.texts()
            back = language.invert(derived)
            assert back.texts() == batch.texts()
            for name in batch.columns:
                assert back.columns[name].values() == batch.columns[name].values()
    assert words > 50_000
