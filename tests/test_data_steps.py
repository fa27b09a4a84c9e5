"""The steps after a download: parsing, words separated by spaces and alignment, with engines of a few lines."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import probes
from probes.stages.inputs import Inputs
from synthlang.data import check, fetch, list_sets
from synthlang.data.entries import entry
from synthlang.data.fetching import CACHE
from synthlang.data.plans import plan_fetch
from synthlang.data.record import read_record
from synthlang.data.steps import Align, Parse, Segment, align, parse, segment
from synthlang.data.steps.segment import FAILED, relabelled
from synthlang.parallel.aligners import READY
from synthlang.parallel.pairs import TextPair, read_pair
from synthlang.parsing.segmenters import Segmenter, open_segmenter
from synthlang.sources import open_source
from synthlang.store import Store
from synthlang.tasks import open_task
from tests.aligner_programs import install
from tests.data_server import DataServer
from tests.refusals import refusal, refused
from tests.test_data_fetch import get, parquet, publish, server, zipped
from tests.test_parsing import Chain

__all__ = ["server"]
DOCS = Path(__file__).parents[1] / "docs"
ARTICLES = [f"One is {n} . Two is a word\nboth" for n in range(1000)]


@dataclass(frozen=True)
class Halves(Segmenter):
    """Words are two characters long. Writes a line into ``log`` at each call."""

    name: str = "halves"
    version: str = "halves 1"
    fingerprint: str = "halves"
    log: str = ""

    def parse_text(self, lines: Sequence[str]) -> list[list[dict[str, list[Any]]]]:
        with Path(self.log).open("a") as handle:
            handle.write(f"{os.getpid()} {len(lines)}\n")
        if any("坏" in line for line in lines):
            raise RuntimeError("no words")
        found = [[part[i : i + 2] for part in line.split() for i in range(0, len(part), 2)] for line in lines]
        return [[{"form": words}] if words else [] for words in found]


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Put small engines in the place of those of the catalogue, and return the file that they write to."""
    path = tmp_path / "log"
    monkeypatch.setattr("synthlang.data.steps.parse.open_engine", lambda _, morphology: Chain(log=str(path)))
    monkeypatch.setattr("synthlang.data.steps.segment.open_segmenter", lambda _: Halves(log=str(path)))
    return path


def publish_english(server: DataServer) -> None:
    wiki: Any = entry("text/en").source
    server.repos[wiki.repo, wiki.revision] = {"20231101.en/train-00000-of-00041.parquet": parquet(text=ARTICLES)}


def publish_tatoeba(server: DataServer, *texts: str) -> None:
    source: Any = entry("tatoeba/zh-en").source
    for file, text in zip(source.remote, texts, strict=True):
        server.files[file.url.removeprefix("https://")] = text.encode()


def calls(log: Path) -> int:
    return len(log.read_text().splitlines())


# --- parsing


def test_a_parsed_text_is_made_after_its_base_and_recorded(server, tmp_path, log, capfd):
    publish_english(server)
    root = tmp_path / "data"
    assert get(server, root, "text/en-parsed", size="lab", workers=2) == ["text/en", "text/en-parsed"]
    told = capfd.readouterr().err
    assert "text/en-parsed: CC-BY-SA-3.0, GFDL, made of text/en" in told
    assert "then parse with spacy:en_core_web_sm: 15 million words, 22 min on 2 cores (estimate)" in told
    assert re.search(r"in all: .* to download, ≈ .* on the disk, 22 min of steps \(estimate\)", told)
    text, parsed = (
        open_source(f"{kind}:{root}/text/{name}") for kind, name in (("text", "en"), ("conllu", "en-parsed"))
    )
    for split in ("train", "dev"):
        words = [[s.words for batch in source.batches(split) for s in batch] for source in (text, parsed)]
        assert words[0] == words[1] and len(words[0]) >= 10
    one = read_record(root).sets["text/en-parsed"]
    [step] = one.steps
    assert (step.kind, step.version, step.fingerprint) == ("parse", "1", "chain") and one.variant == "lab"
    assert step.settings == {"kind": "parse", "parser": "spacy:en_core_web_sm", "tokens": "source"}
    assert step.counts["sentences of train"] == len(words[0]) or step.counts["sentences of train"] > 2000
    assert set(one.written) == {f"text/en-parsed/{name}" for name in ("train.conllu", "dev.conllu", "manifest.json")}
    assert all(not found.fault and found.is_recorded for found in check(to=root)) and not (root / CACHE).exists()
    assert get(server, root, "text/en-parsed", size="lab") == []
    assert [item.state for item in list_sets(["text/en-parsed"], root, size="lab")] == ["here"]
    (root / "text/en-parsed/dev.conllu").unlink()
    assert [item.state for item in list_sets(["text/en-parsed"], root, size="lab")] == ["here", "incomplete"]
    assert get(server, root, "text/en-parsed", size="lab") == ["text/en-parsed"]
    assert not any(found.fault for found in check(to=root))


def test_the_words_of_a_text_that_is_there_are_counted(server, tmp_path, log):
    publish_english(server)
    get(server, tmp_path, "text/en", size="lab")
    plan = plan_fetch(["text/en-parsed"], tmp_path, "lab", workers=1)
    size = sum(path.stat().st_size for path in (tmp_path / "text" / "en").iterdir())
    [job] = plan.jobs
    assert plan.amount(job, job.steps[0]) == size // 6 and "on one core (estimate)" in "".join(plan.lines())


KILLED = """
import sys, time
from pathlib import Path
from tests.test_data_steps import Chain, Halves
import synthlang.data.steps.parse, synthlang.data.steps.segment
from synthlang.data import fetch

log, after = sys.argv[1], int(sys.argv[2])

def waiting(kind):
    class Waiting(kind):
        def parse(self, sentences):
            return self._last() or super().parse(sentences)
        def parse_text(self, lines):
            return self._last() or super().parse_text(lines)
        def _last(self):
            if Path(log).exists() and len(Path(log).read_text().splitlines()) == after:
                Path(log + ".waits").touch()
                time.sleep(600)
    return Waiting

synthlang.data.steps.parse.open_engine = lambda _, morphology: waiting(Chain)(log=log)
synthlang.data.steps.segment.open_segmenter = lambda _: waiting(Halves)(log=log)
fetch([sys.argv[3]], sys.argv[4], size="lab", source=sys.argv[5])
"""


@pytest.mark.parametrize(("name", "before", "chunks"), [("text/en-parsed", 4, 15 + 1), ("text/zh", 3, 10 + 1)])
def test_a_killed_step_continues(name, before, chunks, server, tmp_path, log):
    publish_english(server)
    wiki: Any = entry("text/zh").source
    server.repos[wiki.repo, wiki.revision] |= {"20231101.zh/train-00000-of-00006.parquet": parquet(text=ARTICLES)}
    root = tmp_path / "data"
    environment = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    words = [sys.executable, "-c", KILLED, str(log), str(before), name, str(root), server.address]
    with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as process:
        while not Path(f"{log}.waits").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    assert not (root / name).exists() and calls(log) == before
    requests = len(server.ranges(".parquet"))
    assert get(server, root, name, size="lab")[-1] == name
    assert calls(log) == chunks, "no chunk is parsed twice"
    assert len(server.ranges(".parquet")) == requests, "nothing is downloaded twice"
    assert not check([name], root)[0].fault and not (root / CACHE).exists()


def test_a_fetch_keeps_the_finished_parts_of_another_data_set(server, tmp_path, log):
    part = tmp_path / CACHE / "text_en-parsed" / "part"
    part.parent.mkdir(parents=True)
    part.touch()
    publish_tatoeba(server, "我们去了\n", "We went\n")
    assert get(server, tmp_path, "tatoeba/zh-en") == ["tatoeba/zh-en"]
    assert list((tmp_path / CACHE).rglob("*")) == [part.parent, part]


# --- words


def test_words_of_each_layout_are_separated(server, tmp_path, log):
    root, wiki = tmp_path / "data", entry("ner/zh").lab
    assert wiki is not None and wiki.source.kind == "hub" and wiki.source.revision
    tags = parquet(tokens=[["在", "北", "京", "大"], ["on", "it"]] * 3, ner_tags=[[0, 5, 6, 0], [0, 0]] * 3)
    server.repos[wiki.source.repo, wiki.source.revision] = dict.fromkeys(wiki.source.files, tags)
    pairs: dict[str, list[Any]] = {"premise": ["我们去了"] * 5, "hypothesis": ["很坏"] * 5, "label": [0] * 5}
    publish(server, "nli/zh", {f"zh/{part}-0.parquet": parquet(**pairs) for part in ("train", "validation", "test")})
    publish_tatoeba(server, "我们去了。\n好\n", "We went.\nWell\n")
    chinese: Any = entry("text/zh").source
    articles = parquet(text=["我们去了"] * 400)
    server.repos[chinese.repo, chinese.revision] = {"20231101.zh/train-00000-of-00006.parquet": articles}
    names = ["ner/zh", "nli/zh", "tatoeba/zh-en", "text/zh"]
    assert get(server, root, *names, size="lab") == names
    assert (root / "ner/zh/train.tsv").read_text().startswith("在\tO\n北\tB-LOC\n京\tI-LOC\n大\tO\n\non\tO\nit\tO\n\n")
    assert next(open_task(f"ner:{root}/ner/zh").batches("test")).corpus.columns["ner"].values() == [
        *(["O", "B-LOC", "I-LOC", "O", "O", "O"] * 3)
    ]
    rows = (root / "nli/zh/train.tsv").read_text().splitlines()
    assert rows == ["premise\thypothesis\tlabel", *(["我们 去了\t很坏\tentailment"] * 5)]
    assert (root / "tatoeba/zh-en.zh").read_text() == "我们 去了 。\n好\n"
    assert (root / "tatoeba/zh-en.en").read_text() == "We went .\nWell\n"
    assert set((root / "text/zh/train.txt").read_text().splitlines()) == {"我们 去了"}
    sets = read_record(root).sets
    assert {sets[name].steps[0].version for name in names} == {"halves 1"}
    assert sets["nli/zh"].steps[0].counts == {"texts": 3 * 11, FAILED: 15}
    assert sets["text/zh"].steps[0].settings == {"kind": "segment", "segmenter": "spacy:zh"}
    assert not [found.fault for found in check(names, root) if found.fault]


def test_slots_move_with_the_words(server, tmp_path, log):
    rows = "alarm\t1:4:time,6:9:place\tabcd efghi\tth_TH\t{}\nnone\t\tabc\tth_TH\t{}\n"
    files = {f"th/{part}-th_TH.tsv": rows.encode() for part in ("train", "eval", "test")}
    server.files["download.pytorch.org/data/multilingual_task_oriented_dialog_slotfilling.zip"] = zipped(*files.items())
    assert get(server, tmp_path, "slots/fb/th") == ["slots/fb/th"]
    text = (tmp_path / "slots/fb/th/dev.tsv").read_text()
    assert text == "alarm\t1:5:time,7:11:place\tab cd ef gh i\tth_TH\t{}\nnone\t\tab c\tth_TH\t{}\n"
    batch = next(open_task(f"slots:{tmp_path}/slots/fb/th").batches("dev"))
    tags = batch.corpus.columns["slot"].values()
    assert tags == ["B-time", "I-time", "B-place", "I-place", "O", "O", "O"], "a span that cuts a word is widened"


def test_without_steps_files_come_as_they_are_and_say_so(server, tmp_path, log, capfd):
    publish_tatoeba(server, "我们去了\n", "We went\n")
    options: Any = {"source": server.address, "steps": False, "workers": 2}
    assert probes.fetch_data(["tatoeba/zh-en"], to=tmp_path, **options) == ["tatoeba/zh-en"]
    assert (tmp_path / "tatoeba/zh-en.zh").read_text() == "我们去了\n" and not log.exists()
    assert read_record(tmp_path).sets["tatoeba/zh-en"].steps == ()
    capfd.readouterr()
    assert (
        get(server, tmp_path, "tatoeba/zh-en") == []
        and "without the step segment; delete this data set" in capfd.readouterr().err
    )
    publish_english(server)
    assert fetch(["text/en-parsed"], tmp_path, size="lab", steps=False, confirm=lambda _: False) == []
    command = (
        "make it with: synthlang parse text:data/text/en --engine spacy --model en_core_web_sm --out data/text/en-p"
    )
    assert command in capfd.readouterr().err


@given(st.lists(st.tuples(st.text("北京大学", min_size=1, max_size=3), st.integers(0, 3)), min_size=1), st.data())
def test_entities_keep_their_characters_and_borders(tokens, data):
    rows, open_entity = list[tuple[str, str]](), False
    for token, kind in tokens:
        tag = "O" if kind == 0 else "I-LOC" if kind == 1 and open_entity else "B-LOC"
        rows.append((token, tag))
        open_entity = tag != "O"
    text = "".join(token for token, _ in rows)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(text) - 1)))) & set(range(1, len(text))))
    words = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    found = relabelled(rows, words)
    assert entities(found) == entities(rows) and "".join(word for word, _ in found) == text
    edges = {0}
    for word, _ in found:
        edges.add(max(edges) + len(word))
    assert {0, *cuts, len(text)} <= edges, "no border of a word is lost"


def entities(rows: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """The first and the last character of each entity."""
    found, at = list[tuple[int, int]](), 0
    for word, tag in rows:
        if tag.startswith("B-"):
            found.append((at, at + len(word)))
        elif tag != "O":
            found[-1] = (found[-1][0], at + len(word))
        at += len(word)
    return found


def test_a_segmenter_may_not_change_characters():
    assert refused(relabelled, [("北", "O")], ["南"]) == ("", "failed")


@pytest.mark.parametrize(
    ("spec", "library", "line", "words"),
    [
        ("moses:de", "sacremoses", "Er sagt: „Das sind 3,5 %.“", "Er sagt : „ Das sind 3,5 % . “"),
        ("moses:en", "sacremoses", "I don't know, Dr. Who.", "I don 't know , Dr. Who ."),
        ("spacy:th", "pythainlp", "ไม่มีใครรู้ว่าเขาไปไหน", "ไม่ มี ใคร รู้ ว่า เขา ไป ไหน"),
        ("spacy:zh", "jieba", "我们昨天去了北京大学。", "我们 昨天 去 了 北京大学 。"),
        ("spacy:ja", "sudachipy", "私は京都へ行きました。", "私 は 京都 へ 行き まし た 。"),
    ],
)
def test_real_segmenters(spec, library, line, words, tmp_path, monkeypatch):
    if importlib.util.find_spec(library) is None:
        error = refusal(open_segmenter, spec)
        assert error.code == "extra" and "segment]" in error.hint and library in error.reason
        pytest.skip(f"needs the extra segment: {library}")
    monkeypatch.setenv("SYNTHLANG_CACHE", str(tmp_path))
    segmenter = open_segmenter(spec)
    assert [[parsed["form"] for parsed in one] for one in segmenter.parse_text([line, " "])] == [[words.split()], []]
    assert library in segmenter.version and segmenter.fingerprint != open_segmenter("moses:fr").fingerprint


@pytest.mark.parametrize("spec", ["spacy:xx", "moses:german", "stanza:zh", "", "moses"])
def test_unknown_segmenters(spec):
    assert refused(open_segmenter, spec) == ("", "unknown")


# --- alignment

TABLE = b"en\tfr\n" + b"the cat sleeps\tle chat dort\n" * 30
ZIP, MEMBER = "dl.fbaipublicfiles.com/XNLI/XNLI-15way.zip", "XNLI-15way/xnli.15way.tok.tsv"


def pair_of(root: Path) -> TextPair:
    left, right = (str(root / f"pairs/xnli/fr-en.{language}") for language in ("fr", "en"))
    return TextPair.model_validate(
        {"left": left, "right": right, "links": {"kind": "aligner", "program": "fast_align"}}
    )


def test_an_alignment_is_made_recorded_and_used_without_the_aligner(server, tmp_path, monkeypatch):
    server.files[ZIP] = zipped((MEMBER, TABLE))
    root, inputs = tmp_path / "data", Inputs()
    assert get(server, root, "pairs/xnli/fr-en") == ["pairs/xnli/fr-en"], "no size, no alignment"
    assert not (root / "pairs/xnli" / READY).exists()
    requests = len(server.requests)
    with monkeypatch.context() as patch:
        install(patch, tmp_path / "bin")
        assert get(server, root, "pairs/xnli/fr-en", size="paper") == ["pairs/xnli/fr-en"]
        assert get(server, root, "pairs/xnli/fr-en", size="paper") == [] and len(server.requests) == requests
    one = read_record(root).sets["pairs/xnli/fr-en"]
    [step] = one.steps
    assert step.settings == {"kind": "align", "at": "paper", "program": "fast_align"}
    assert step.version.startswith("fast_align, SHA-256") and step.counts == {"sentence pairs": 30}
    made = [name for name in one.written if READY in name]
    assert len(made) == 3 and not check(["pairs/xnli/fr-en"], root)[0].fault
    next((root / "pairs/xnli" / READY).glob("*/forward.txt")).unlink()
    assert "forward.txt has changed" in check(["pairs/xnli/fr-en"], root)[0].fault
    [item] = list_sets(["pairs/xnli/fr-en"], root, size="paper")
    assert item.state == "here", "a study can align the text itself"
    with monkeypatch.context() as patch:
        install(patch, tmp_path / "bin")
        assert get(server, root, "pairs/xnli/fr-en", size="paper") == ["pairs/xnli/fr-en"]
    assert not check(["pairs/xnli/fr-en"], root)[0].fault
    inputs._open_pair(pair_of(root))
    linked = read_pair(pair_of(root), (None, None), Store(tmp_path / "store"))  # type: ignore[arg-type]
    assert linked.links.of_pair(0) == [(0, 0), (1, 1)] and not (tmp_path / "store").exists()
    with (root / "pairs/xnli/fr-en.fr").open("a") as handle:
        handle.write("une phrase\n")
    with (root / "pairs/xnli/fr-en.en").open("a") as handle:
        handle.write("a sentence\n")
    assert refused(inputs._open_pair, pair_of(root))[1] == "extra", "the alignment is of another text"


def test_data_by_hand_is_aligned_too(tmp_path, monkeypatch):
    folder = tmp_path / "pairs" / "yandex"
    folder.mkdir(parents=True)
    for language in ("ru", "en"):
        (folder / f"ru-en.{language}").write_text("a b c\n" * 4)
    install(monkeypatch, tmp_path / "bin")
    plan = plan_fetch(["pairs/yandex/ru-en"], tmp_path, "paper")
    assert any("then align words with fast_align: 4 sentence pairs, 0 s on one core" in line for line in plan.lines())
    assert fetch(["pairs/yandex/ru-en"], tmp_path, size="paper") == ["pairs/yandex/ru-en"]
    assert len(list((folder / READY).glob("alignment-*/forward.txt"))) == 1
    assert fetch(["pairs/yandex/ru-en"], tmp_path, size="paper") == []


# --- before anything is downloaded

MISSING = [
    ("text/en-parsed", "lab", "pip install|spacy download en_core_web_sm", "text/en-parsed.parse"),
    (
        "text/wikitext103/en-parsed",
        "paper",
        r"stanza\.download\('en'\)|pip install",
        "text/wikitext103/en-parsed.parse",
    ),
    ("pairs/xnli/fr-en", "paper", "build it", "pairs/xnli/fr-en.align"),
    ("pairs/xnli/fr-en", "lab", "pip install", "pairs/xnli/fr-en.align"),
]


@pytest.mark.parametrize(("name", "size", "how", "where"), MISSING)
def test_a_missing_tool_is_one_line_before_anything_is_downloaded(
    name, size, how, where, server, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    if size == "lab" and name.startswith("text") and importlib.util.find_spec("en_core_web_sm"):
        pytest.skip("the model is installed")
    server.requests.clear()
    error = refusal(get, server, tmp_path / "data", name, size=size)
    assert error.code == "extra" and "\n" not in str(error) and re.search(how, error.hint)
    assert f"{where}: " in str(error) and error.hint.endswith("--no-steps leaves out such steps")
    assert not server.requests and not (tmp_path / "data").exists()


def test_the_pages_have_the_rates_of_the_estimates():
    pages = {name: (DOCS / name).read_text("utf-8") for name in ("data.md", "scale.md")}
    for rate in (*parse.RATES.values(), *align.RATES.values(), *segment.RATES.values()):
        assert f" | {rate:,.0f} " in pages["data.md"]
    assert f"`parse`: spaCy, `en_core_web_sm` | {parse.RATES['spacy']:,.0f} |" in pages["scale.md"]


def test_estimates():
    stanza = Parse(kind="parse", parser="stanza:en", amount=7_900_000)
    assert stanza.estimate(stanza.amount, 1) == "7.9 million words, 2.8 h on one core (estimate)"
    assert stanza.estimate(stanza.amount, 4) == "7.9 million words, 42 min on 4 cores (estimate)"
    assert "--morphology" not in stanza.command(Path("a"), Path("b"))
    eflomal = Align(kind="align", program="eflomal", amount=1_000_000)
    assert eflomal.estimate(eflomal.amount, 4) == "1.0 million sentence pairs, 18 min on one core (estimate)"
    assert Segment(kind="segment", segmenter="spacy:th").estimate(None, 1) == "time unknown before the download"
