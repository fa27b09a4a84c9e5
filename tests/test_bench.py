"""The measurements run anywhere, and the plain loops do the same work as what they are compared to."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from bench import loops
from bench.synthlang import compared, main, speed_of, write_text, write_treebank
from synthlang.export import export_language
from synthlang.language import parse_language
from synthlang.sources.conllu import ConlluSource
from synthlang.sources.text import TextSource


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "t.txt"
    write_text(path, 3000)
    return path


def test_a_quick_run_prints_json(tmp_path):
    command = [sys.executable, "-m", "synthlang.bench", "--quick", "--workers", "1", "2", "--out", tmp_path / "b.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result == json.loads((tmp_path / "b.json").read_text())
    assert set(result["speeds"]) == {
        "columns: inversion and transliteration",
        "reading text",
        "reading CoNLL-U",
        "reorder",
    }
    for name, found in result["speeds"].items():
        if "skipped" not in found:
            assert found["words_per_second"] > 0 and found["ratio"] > 0 and found["baseline"]["what"], name
    one, two = (result["export"][f"workers {n}"] for n in (1, 2))
    assert one["words"] == two["words"] > 15_000
    assert 50 < one["peak_rss_mb"] < 1000 and 50 < two["peak_rss_mb"] < 1000
    assert result["export"]["speed-up of two workers"] > 0


def test_the_loops_do_the_same_work(text, tmp_path):
    language, sentences = parse_language("trans+inv"), []
    for batch in TextSource(text).batches("train"):
        for before, after in zip(batch, language.derive(batch), strict=True):
            sentences.append(before.words)
            assert loops.derive(before.words)[0] == after.words
    loops.export(sentences, tmp_path / "loop")
    export_language(TextSource(text), language, tmp_path / "d", source_name="x")
    for config in ("parent", "derived", "parallel"):
        ours = pq.read_table(tmp_path / "d" / "data" / config / "train-00000.parquet")
        assert ours.to_pylist() == pq.read_table(tmp_path / f"loop.{config}").to_pylist()
    assert loops.read_text(text) < sum(map(len, sentences))  # final marks are words of their own


def test_the_treebank_of_our_own(tmp_path):
    write_treebank(tmp_path, 50)
    batch = next(ConlluSource(tmp_path).batches("train"))
    assert len(batch) == 50
    words = int(batch.offsets[-1])
    assert loops.read_conllu(tmp_path / "mini-train.conllu") == words == loops.shuffle_trees(batch)


def test_speeds_by_hand(monkeypatch):
    clock = iter([0.0, 1.0, 0.0, 4.0, 0.0, 2.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    assert speed_of(lambda: None, 100, 3) == {"words": 100, "words_per_second": 50, "repeats": [100, 25, 50]}
    clock = iter([0.0, 1.0, 0.0, 4.0])
    assert compared(lambda: None, lambda: None, 100, 1, "x")["ratio"] == 4.0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--text", "none.txt"], 2, "error: none.txt: no such file or folder\n"),
        (["--repeats", "0"], 2, "must be at least 1"),
        (["--workers", "0"], 2, "must be at least 1"),
    ],
)
def test_wrong_options(arguments, code, message, capsys):
    found: int | str | None
    try:
        found = main(arguments)
    except SystemExit as error:
        found = error.code
    captured = capsys.readouterr()
    assert (found, captured.out) == (code, "")
    assert message in captured.err
