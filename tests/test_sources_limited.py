"""The option ``?limit=N`` of every source."""

from __future__ import annotations

import pytest

from synthlang.sources import open_source
from synthlang.sources.base import size_of
from tests.refusals import refused


@pytest.fixture
def text(tmp_path):
    (tmp_path / "train.txt").write_text("".join(f"number {i} .\n" for i in range(4500)))
    (tmp_path / "test.txt").write_text("one .\n" * 3)
    return f"lines:{tmp_path}"


@pytest.mark.parametrize("limit", [1, 2000, 2001, 9000])
def test_the_first_sentences_are_those_without_a_limit(text, limit):
    whole, some = open_source(text), open_source(f"{text}?limit={limit}")
    for split in ("train", "test"):
        expected = [line for batch in whole.batches(split) for line in batch.texts()][:limit]
        batches = list(some.batches(split))
        assert [line for batch in batches for line in batch.texts()] == expected
        assert all(len(batch) for batch in batches) and size_of(some, split) <= limit
    assert (some.splits, some.columns) == (whole.splits, whole.columns)


def test_a_limit_is_a_part_of_the_fingerprint(text):
    specs = (text, f"{text}?limit=2", f"{text}?limit=3", f"{text}?normalise=NFC&limit=2")
    assert len({open_source(spec).fingerprint for spec in specs}) == len(specs)
    assert size_of(open_source("builtin:mini-english?sentences=40&limit=7"), "train") == 7


@pytest.mark.parametrize(("query", "code"), [("0", "range"), ("x", "range"), ("", "range"), ("2&limit=3", "duplicate")])
def test_a_wrong_limit_is_refused(text, query, code):
    assert refused(open_source, f"{text}?limit={query}")[1] == code


def test_a_file_may_have_the_name_of_the_option(tmp_path):
    (tmp_path / "a.txt?limit=2").write_text("one\ntwo\nthree\n")
    assert [len(batch) for batch in open_source(f"lines:{tmp_path}/a.txt?limit=2").batches("train")] == [3]
