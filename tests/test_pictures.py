"""Places of word pairs and the figures of the probes: coordinates, labels, files."""

import functools
import struct
import warnings
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy import stats

from probes.figures import scatter
from probes.figures.bars import Bar, retrieval_by_tag
from probes.figures.drawing import WIDTH, _painted, writable
from probes.figures.lines import (
    Series,
    accuracy_by_rank,
    auc_by_layer,
    emergence,
    interval_series,
    rank_series,
    retrieval_by_layer,
)
from probes.figures.maps import Setting, cka_map, settings_map
from probes.figures.projection import label_pair, picture, principal, word_pairs
from probes.measures.distances.pairs import Linked
from probes.measures.distances.show import distance_histograms
from probes.statistics import Interval
from synthlang.scripts import SCRIPTS
from tests.refusals import refused
from tests.separations import separations

pytestmark = pytest.mark.usefixtures("rendered")


def rows(n=12, d=5, seed=0):
    return torch.randn(2, n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def words(n=12):
    return [f"word{i}" for i in range(n)]


def drawn(method="pca", n=12, right=None):
    left, right_rows = rows(n)
    return picture(left, right_rows, words(n), right or words(n), method)


def test_principal_components_against_numpy():
    points = rows(30, 7).reshape(-1, 7)
    places, shares = principal(points)
    x = points.numpy() - points.numpy().mean(0)
    values, axes = np.linalg.eigh(x.T @ x)
    for i in range(2):
        axis = axes[:, -1 - i]
        axis = axis * np.sign(axis[np.abs(axis).argmax()])
        np.testing.assert_allclose(places[:, i], x @ axis, atol=1e-10)
        assert shares[i] == pytest.approx(values[-1 - i] / values.sum())
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(places[order], principal(points[order])[0])  # the sign does not depend on the order


def test_points_on_a_line_have_no_second_axis():
    line = torch.arange(6, dtype=torch.float64)[:, None] * torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
    places, shares = principal(line)
    assert not places[:, 1].any() and shares == pytest.approx((1.0, 0.0))
    assert float((places[-1] - places[0]).norm()) == pytest.approx(float((line[-1] - line[0]).norm()))
    one = picture(line[:1], line[1:2], ["a"], ["b"])
    assert one.left.shape == (1, 2) and one.explained == pytest.approx((1.0, 0.0))


def test_equal_vectors_are_refused():
    assert refused(picture, torch.zeros(4, 3), torch.zeros(4, 3), words(4), words(4)) == ("", "empty")


def test_tsne_repeats_and_keeps_planted_groups_apart():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    random = torch.Generator().manual_seed(3)
    centres = 40 * torch.eye(3, 8).repeat_interleave(8, 0)
    left, right = (centres + torch.randn(24, 8, generator=random) for _ in range(2))
    first, again = (picture(left, right, words(24), words(24), "tsne", seed=5) for _ in range(2))
    assert torch.equal(first.left, again.left) and first.perplexity == pytest.approx(47 / 3)
    gaps = torch.cdist(first.left, first.right).reshape(3, 8, 24)
    assert all(set((gaps[g].argmin(1) // 8).tolist()) == {g} for g in range(3))
    assert picture(left[:2], right[:2], words(2), words(2), "tsne").perplexity == 1.0


def test_labels_fall_back_to_the_translation():
    hangul, cyrillic = (SCRIPTS[name].encode("cat") for name in ("hangul", "cyrillic"))
    assert label_pair("cat", cyrillic, 0) == ("cat", cyrillic)
    assert label_pair("cat", hangul, 0) == ("cat", "‹cat›")
    assert label_pair("猫", "gato", 0) == ("‹gato›", "gato")
    assert label_pair("猫", hangul, 4) == ("‹#5›", "‹#5›")
    assert label_pair("", "x", 0) == ("‹x›", "x")
    assert not writable("سلام") and not writable("שלום") and not writable("की") and writable("naïve-ß $x$")


def separated():
    random = torch.Generator().manual_seed(0)
    base = torch.randn(1, 200, 8, generator=random)
    left, right = (base + torch.randn(2, 200, 8, generator=random) for _ in range(2))
    return separations([Linked(left, right, torch.arange(200) // 4)], 0)


def interval(mean, half=3.0):
    return Interval(mean, mean - half, mean + half, 50, 0.95)


SETTINGS = Setting("steps", ["1000", "2000"]), Setting("rate", ["0.001", "0.01"])


@functools.cache
def cases():
    found = separated()
    line = interval_series("one", [0, 1], [interval(20), Interval(40, None, None, 1, 0.95)])
    plain = Series("two", [0, 1], [10, 60])
    bars = [Bar(g, t, m, interval(50), 12) for g, t in (("open", "NOUN"), ("closed", "DET")) for m in "ab"]
    other = [SCRIPTS["hangul"].encode(word) for word in words(11)] + ["a $b_c$ <&> word"]
    return [
        distance_histograms("hist", "Distances", [("before", found[0]), ("after", found[2])]),
        auc_by_layer("auc", "AUC", [interval_series("model", [0, 1], [found[0].auc, found[2].auc])]),
        retrieval_by_layer("retrieval", "Retrieval", [line, plain]),
        emergence("emergence", "Emergence", [Series("all", [0, 5000, 20000], [0, 3, 70])]),
        accuracy_by_rank("rank", "Rank", [rank_series("m", np.arange(100), np.arange(100) % 2, 10)], "A note."),
        cka_map("cka", "CKA", [[0.2, 0.9], [0.3, 1.0]], "A", "B"),
        cka_map("cka-tall", "CKA", np.full((25, 3), 0.5), "A", "B"),
        settings_map("map", "Map", [[1.0, 99.0], [float("nan"), 40.0]], *SETTINGS, "Δ", "A note.", (0.0, 100.0)),
        retrieval_by_tag("tags", "Parts of speech", bars),
        word_pairs("pairs", "Pairs " + "of a long title " * 8, drawn(right=other), "English", "Derived"),
        word_pairs("one-pair", "Pair", drawn(n=1), "English", "Derived"),
    ]


@pytest.mark.parametrize("number", range(11))
def test_files_are_written_whole_and_repeat_to_the_byte(tmp_path, number):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a missing glyph or a layout that did not fit would warn
        first = cases()[number].write(tmp_path / "a")
        again = cases()[number].write(tmp_path / "b") if number in (3, 9) else first  # with and without places found
    assert [path.suffix for path in first] == [".svg", ".png"]
    assert {path.name for path in (tmp_path / "a").iterdir()} == {path.name for path in first}
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert ElementTree.fromstring(first[0].read_bytes()).tag.endswith("svg")
    assert "nan" not in first[0].read_text().lower().replace("nance", "")
    head = first[1].read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">I", head[16:20])[0] == 1200


@pytest.mark.parametrize("spread", [0.0, 0.5, 30.0])
def test_labels_of_a_scatter_never_overprint(spread, monkeypatch):
    """Twelve conditions of three models: a label has room of its own or is left out, for the legend names it."""
    found, taken = list[Any](), list[Any]()

    def painted(width, height, paint):
        canvas = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(canvas)
        paint(canvas)
        canvas.draw_without_rendering()
        found.extend(text.get_window_extent() for text in canvas.axes[0].texts)
        taken.extend(canvas.axes[0].transData.transform(line.get_xydata()) for line in canvas.axes[0].lines[1:])
        return ""

    random = np.random.default_rng(1)
    names = {name: f"objective {name}" for name in "abcd"}
    points = [
        scatter.Point(50 + spread * random.normal(), interval(50 + spread * random.normal()), "x", names[name], group)
        for name in names
        for group in ("trans", "trans+inv", "trans+syn")
        for _ in range(3)
    ]
    monkeypatch.setattr(scatter, "draw", painted)
    palette = dict.fromkeys(names.values(), "#123456")
    scatter.delta_scatter("s", "pos", points, palette, "Δ", ("a", "a"))
    assert spread < 1 or len(found) >= 6, "the legend names the others"
    assert not any(one.overlaps(other) for one, other in combinations(found, 2))
    assert not any(box.contains(*place) for box in found for places in taken for place in places)


@pytest.mark.parametrize(("low", "high"), [(0.0, 10.0), (-10.0, 0.0)])
def test_labels_avoid_an_interval_that_ends_at_zero(low, high, monkeypatch):
    """The box around the line of the interval, which has the mean in its middle, ends above and below the marker."""
    boxes = list[Any]()

    def painted(width, height, paint):
        canvas = Figure(figsize=(width, height))
        FigureCanvasAgg(canvas)
        paint(canvas)
        return ""

    def placed(axes, labels, taken, *more, **style):
        boxes.extend(taken.tolist())
        return []

    monkeypatch.setattr(scatter, "draw", painted)
    monkeypatch.setattr(scatter, "place_labels", placed)
    point = scatter.Point(50.0, Interval((low + high) / 2, low, high, 3, 0.95), "x", "a", "")
    scatter.delta_scatter("s", "pos", [point], {"a": "#123456"}, "Δ", ("a", "a"))
    marker, line = boxes
    assert line[3] > marker[3] and line[1] < marker[1]
    assert line[3] - marker[3] == pytest.approx(marker[1] - line[1])


def test_bins_of_rank_difference_are_equally_full_and_wilson():
    random = np.random.default_rng(0)
    size = random.permutation(1000)
    correct = size < 300
    found = rank_series("x", -size, correct, bins=10)
    assert found.y == [100, 100, 100, 0, 0, 0, 0, 0, 0, 0]
    assert found.x[:2] == [49.5, 149.5]
    bound = stats.binomtest(100, 100).proportion_ci(method="wilson")
    assert (found.low[0], found.high[0]) == pytest.approx((100 * bound.low, 100 * bound.high))
    tied = rank_series("x", np.zeros(50), np.ones(50), 10)
    assert tied.x == [1.0] and tied.y == [100]


@pytest.mark.parametrize("rows", [2, 3, 6])
def test_the_label_of_the_colours_of_a_low_map_is_within_the_picture(rows):
    label = "Word-embedding alignment, all types (%)"
    up, across = Setting("steps", [str(i) for i in range(rows)]), Setting("rate", ["1", "2"])
    drawing = settings_map("map", "Map", np.full((rows, 2), 50.0), up, across, label, "A note.", (0.0, 100.0))
    with _painted(WIDTH, drawing.height, drawing.paint, FigureCanvasAgg) as (canvas, _):
        canvas.draw_without_rendering()
        box, bar = canvas.axes[1].yaxis.label.get_window_extent(), canvas.axes[1].yaxis.label.get_text()
    assert bar.replace("\n", " ") == label
    assert box.y0 >= 0 and box.y1 <= canvas.bbox.y1 and box.x1 <= canvas.bbox.x1
