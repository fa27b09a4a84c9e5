"""Progress: rates from fresh work of late, time left where the size is known or can be guessed."""

import gzip
import io
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from synthlang.export import export_language
from synthlang.language import parse_language
from synthlang.progress import FEWEST, SHORTEST, WINDOW, Display, Pace, already
from synthlang.sources import size as sizes
from synthlang.sources.base import size_of
from synthlang.sources.conllu import ConlluSource
from synthlang.sources.text import TextSource
from synthlang.tasks import open_task
from synthlang.wording import duration, enumerated


class Clock:
    """Stands still but for ``tick``."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr("synthlang.progress.time.monotonic", lambda: self.now)

    def tick(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def shown(live=False):
    out = io.StringIO()
    return Display(Console(file=out, force_terminal=live, width=200)), out


def lines(out):
    return out.getvalue().splitlines()


def test_plain_lines_with_rate_and_time_left(clock):
    display, out = shown()
    count = display.counter("derive x", {"train": 10_000}.get)
    for _ in range(6):
        clock.tick(5)
        count("train", 1000)
    assert lines(out) == [
        "derive x train: 1000/10000 (10 %, 200/s, 45 s left)",
        "derive x train: 3000/10000 (30 %, 200/s, 35 s left)",
        "derive x train: 5000/10000 (50 %, 200/s, 25 s left)",
    ]


def test_a_resumed_run_tells_the_speed_of_this_run(clock):
    display, out = shown()
    count = display.counter("derive", {"train": 2_000_000}.get)
    for _ in range(50):
        clock.tick(0.2)  # checksums of what is there
        already(count, "train", 20_000)
    clock.tick(10)
    count("train", 1000)
    assert lines(out)[-1] == "derive train: 1001000/2000000 (50 %, 100/s, 2.8 h left)"
    assert not any("/s" in line for line in lines(out)[:-1])
    display.report("run", 5000, 6000)
    clock.tick(10)
    display.report("run", 5020, 6000)
    assert lines(out)[-1] == "run: 5020/6000 (84 %, 2.0/s, 8 min left)"


@pytest.mark.parametrize("live", [False, True])
def test_short_work_that_is_done_often_is_told_now_and_then(clock, live):
    display, out = shown(live)
    for _ in range(25):
        for done in (1, 2):
            clock.tick(0.5)
            display.report("search", done, 2)
    assert len(re.findall(r"search: (2/2|done)", out.getvalue())) == 3  # at 1, 11 and 21 seconds
    clock.tick(10)
    display.report("search", 2, 2, "the last")
    assert "the last" in lines(out)[-1]


def test_a_long_name_leaves_room_for_the_bar(clock):
    """At 80 columns, beside numbers, time and pace: the name keeps its beginning and its end, the task."""
    out = io.StringIO()
    display = Display(Console(file=out, force_terminal=True, width=80))
    name = "ALIGN-MLM, trans+reorder-fr, coverage 0.25, pretrain seed=3: pretrain align_mlm"
    with display:
        display.report(name, 0, 2000, "loss 1.234567")
        clock.tick(10)
        display.report(name, 700, 2000, "loss 1.234567")
        display._bars.refresh()
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue()).replace("\r", "\n").splitlines()
    line = next(one for one in reversed(last) if "700/2000" in one)
    assert len(line) <= 80 and line.count("━") + line.count("╸") + line.count("╺") >= 10
    assert "ALIGN-MLM" in line and "n align_mlm" in line and "70/s, 19 s left" in line


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 30), st.integers(0, 100)), min_size=1, max_size=60), st.integers(0, 10**12))
def test_the_rate_is_that_of_the_last_minute(steps, first):
    """However much was done before; of slow work it is that of a few units."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = Clock(monkeypatch)
        pace, began = Pace(first), clock.now
        reached = [(clock.now, first)]
        for seconds, amount in steps:
            clock.tick(seconds)
            pace.done += amount
            shown = pace.shown(pace.done, pace.done + 1)
            reached += [(clock.now, pace.done)] if amount else []
        before = [i for i, (at, _) in enumerate(reached) if clock.now - at >= WINDOW]
        (start, done), (end, last) = (
            reached[max(0, min(max(before, default=0), len(reached) - 1 - FEWEST))],
            reached[-1],
        )
        assert bool(shown) == (len(reached) > 1 and clock.now - began >= SHORTEST)
        assert not shown or shown.endswith(f", {duration((end - start) / (last - done))} left")
        assert "left" not in pace.shown(pace.done, pace.done)


TEXT = [
    f"Line {i * 2654435761 % 2**32:x} has words . And {'more ' * (i % 7)}words ." for i in range(10_000)
]  # of two sentences


def write(path, text):
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as handle:
        handle.write(text)
    return path


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz"])
def test_the_size_of_text_is_guessed_from_the_bytes_read(name, tmp_path):
    source = TextSource(write(tmp_path / name, "\n".join(TEXT) + "\n"))
    assert source.size("train") is None and source.size("dev") is None
    guesses = [source.size("train") for _ in source.batches("train")]
    assert len(guesses) == 10
    settled = guesses[1:-1] if name == "t.txt" else guesses[5:-1]  # the buffers are ahead: half of a small packed file
    assert settled == pytest.approx([20_000] * len(settled), rel=0.05 if name == "t.txt" else 0.3)
    assert guesses[-1] == source.size("train") == 20_000
    next(source.batches("train"))
    assert source.size("train") == 20_000  # known for good


SENTENCE = "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n"


@pytest.mark.parametrize(("gap", "end"), [("\n", "\n"), ("\n", ""), ("\r\n", "\r\n"), ("\n\n", "\n")])
def test_the_size_of_a_treebank_is_known_before_it_is_read(gap, end, tmp_path):
    text = gap.join([SENTENCE if gap != "\r\n" else SENTENCE.replace("\n", "\r\n")] * 11) + end
    (tmp_path / "a.conllu").write_bytes(text.encode())
    source = ConlluSource(tmp_path / "a.conllu")
    assert source.size("train") == 11 == sum(len(b) for b in source.batches("train"))
    assert source.size("dev") is None


def test_the_size_of_a_long_treebank_is_guessed_from_its_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "SAMPLE", 1000)
    monkeypatch.setattr(sizes, "PIECE", 500)
    (tmp_path / "a.conllu").write_text((SENTENCE + "\n") * 3000)
    source = ConlluSource(tmp_path / "a.conllu")
    assert source.size("train") == pytest.approx(3000, rel=0.05)
    assert source.size("train") != 3000
    assert sum(len(b) for b in source.batches("train")) == source.size("train") == 3000


def test_tasks_know_their_size_where_items_are_sentences(tmp_path):
    words = "".join(f"word{i} B-PER\n. O\n\n" for i in range(5))
    (tmp_path / "train.txt").write_text(words)
    task = open_task(f"ner:{tmp_path}")
    assert size_of(task, "train") is None and size_of(task.as_source(), "train") is None
    pairs = open_task("nli:builtin:mini-english?sentences=7")
    assert size_of(pairs, "train") == 7 and size_of(pairs.as_source(), "train") is None


@pytest.mark.parametrize("workers", [1, 2])
def test_an_export_tells_what_was_there_and_what_is_new(workers, tmp_path, monkeypatch):
    monkeypatch.setattr("synthlang.export.run.SHARD_BATCHES", 1)
    monkeypatch.setattr("synthlang.export.run.cores", lambda: 2)
    path = write(tmp_path / "t.txt", "\n".join(TEXT) + "\n")

    class Count:
        def __init__(self, stop=math.inf):
            self.new, self.old, self.stop = 0, 0, stop

        def __call__(self, part, amount):
            self.new += amount
            if self.new >= self.stop:
                raise KeyboardInterrupt

        def already(self, part, amount):
            self.old += amount

    run = {"source_name": "x", "workers": workers}
    with pytest.raises(KeyboardInterrupt):
        export_language(TextSource(path), parse_language("inv"), tmp_path / "d", progress=Count(stop=6000), **run)
    second = Count()
    export_language(TextSource(path), parse_language("inv"), tmp_path / "d", progress=second, **run)
    assert second.new + second.old == 20_000
    assert second.old >= 4000 and second.new >= 2000


def test_enumerations():
    assert [enumerated(list(parts)) for parts in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
