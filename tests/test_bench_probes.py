from __future__ import annotations

import json

import pytest

from bench.measured import medians
from bench.probes import main
from bench.probing import PROBES


@pytest.mark.parametrize("probe", ["alignment", "retrieval"])
def test_a_probe_is_measured_beside_the_products_in_it(probe, capfd, tmp_path):
    out = tmp_path / "bench.json"
    small = ["--n", "300", "--d", "16", "--threads", "1", "--repeats", "1", "--out", str(out)]
    assert main(["--probe", probe, *small]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found == json.loads(out.read_text())
    assert found["settings"]["n"] == 300
    assert found["ratio"] == pytest.approx(found["ours"]["seconds"] / found["bare"]["seconds"])
    assert found["ratio_to_one_product"] > found["ratio"] > 0
    assert 50 < found["peak_memory_mb"] < 3000
    assert 0 < found["ours"]["cosine"] < 100


def test_medians_are_taken_within_figures_too():
    runs = [{"a": 1, "of": {"b": value}} for value in (3, 1, 2)]
    assert medians(runs) == {"a": 1, "of": {"b": 2}}


def test_full_sizes_are_the_defaults_and_sizes_are_checked(capsys):
    assert (PROBES["alignment"].n, PROBES["retrieval"].n) == (40_000, 200_000)
    with pytest.raises(SystemExit):
        main(["--probe", "alignment", "--n", "-1"])
    assert "at least 1" in capsys.readouterr().err
