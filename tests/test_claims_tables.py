"""Tables of papers beside results: verdicts of cells, and how a report shows them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from probes.claims.observed import Results
from probes.claims.papers import PaperTable, read_tables
from probes.claims.spec import Quantity
from probes.claims.tables import TURNED, compare_table
from tests.claims import echo, interval, measured, observed, result
from tests.report_study import (
    make_grid,
    report,
)


def table(measure="delta", average=None, against=None, **values) -> PaperTable:
    rows = [{"where": {"objective": name}, "values": [value]} for name, value in values.items()]
    columns = [{"measure": measure, "average": average or {}}]
    blocks = [{"columns": columns, "rows": rows, "against": against and dict(against.where)}]
    return PaperTable.model_validate({"title": "T", "printed": "here", "blocks": blocks})


def results(measure="delta", labels=None, **values) -> Results:
    return observed(
        result({"objective": name, **(labels or {})}, model, **{measure: value})
        for name, of_models in values.items()
        for model, value in enumerate(of_models)
    )


def verdicts(*args) -> list[str]:
    return [row.verdict for row in compare_table(*args)]


FAR = {"A": [30.0, 31.0, 32.0], "B": [10.0, 11.5, 12.0]}
NEAR = {"A": [9.0, 5.0, 8.0], "B": [8.0, 6.0, 9.0]}
ORDER, SIGN, SMALL = "replicates", "replicates", "inconclusive"


@pytest.mark.parametrize(
    ("measure", "printed", "ours", "expected"),
    [
        ("delta", {"A": 40, "B": 5}, FAR, [ORDER] * 2),
        ("delta", {"A": 5, "B": 40}, FAR, ["does not replicate"] * 2),
        ("delta", {"A": 5, "B": 5.3}, FAR, [SIGN] * 2),  # no order in print
        ("delta", {"A": 5, "B": 0.2}, FAR, [ORDER] * 2),
        ("delta", {"A": 0.3, "B": 0.2}, FAR, [SMALL] * 2),  # neither order nor sign in print
        ("delta", {"A": -5, "B": -5.3}, FAR, ["does not replicate"] * 2),
        ("delta", {"A": 40, "B": 5}, NEAR, [SIGN] * 2),
        ("zs", {"A": 40, "B": 5}, NEAR, [SMALL] * 2),
        ("delta", {"A": 40, "B": 5, "C": 9}, FAR, [ORDER, ORDER, "not run"]),
        ("delta", {"A": 40}, {"A": [30.0]}, [SMALL]),
        ("delta", {"A": 40}, {}, ["not run"]),
        # the sign is the other way round, whatever the orders
        ("delta", {"A": -1.0, "B": -4.0}, {"A": [9.0, 9.5, 9.2], "B": [3.0, 3.6, 3.1]}, ["does not replicate"] * 2),
        ("delta", {"A": -1.0, "B": -4.0}, {"A": [9.0, 9.5, 9.2], "B": [-1.0, 2.0, 0.5]}, ["does not replicate", ORDER]),
        ("delta", {"A": -0.4, "B": -4.0}, {"A": [9.0, 9.5, 9.2], "B": [-1.0, 2.0, 0.5]}, [ORDER] * 2),
        ("zs", {"A": -1.0, "B": -4.0}, {"A": [9.0, 9.5], "B": [3.0, 3.6]}, [ORDER] * 2),
        # a column of Δ is in percent, however small
        ("delta", {"A": 0.9, "B": 0.45}, {"A": [1.0, 1.1, 1.2], "B": [0.5, 0.61, 0.69]}, [SIGN, SMALL]),
    ],
)
def test_order_and_sign(measure, printed, ours, expected):
    assert verdicts(table(measure, **printed), results(measure, **ours)) == expected


def test_one_order_the_other_way_round_differs():
    found = compare_table(table(A=1, B=10, C=20), results(A=[1.0, 1.2], B=[30.0, 30.1], C=[20.0, 20.2]))
    assert [row.verdict for row in found] == ["replicates", "does not replicate", "does not replicate"]
    assert found[1].text.startswith("1 of 2 decided orders")


def test_a_reversed_order_must_stand_after_holm():
    """One of many orders is reversed by chance (p = .02): alone it differs, among 15 it does not."""
    a, b = [10.0, 12.0, 11.0, 13.5], [12.0, 13.2, 13.6, 14.0]
    p = stats.ttest_rel(a, b).pvalue
    assert 0.01 < p < 0.05 < 15 * p
    assert verdicts(table("zs", A=20, B=10), results("zs", A=a, B=b)) == ["does not replicate"] * 2
    noise = np.random.default_rng(0).normal(11, 3, (4, 4))
    many = results("zs", A=a, B=b, **{f"C{i}": list(row) for i, row in enumerate(noise)})
    found = compare_table(table("zs", A=20, B=10, C0=1, C1=2, C2=3, C3=4), many)
    assert [row.verdict for row in found[:2]] == ["inconclusive"] * 2
    apart = results("zs", A=a, B=[40.0, 41.1, 42.0, 40.5], **{f"C{i}": list(row) for i, row in enumerate(noise)})
    assert compare_table(table("zs", A=20, B=10, C0=1, C1=2, C2=3, C3=4), apart)[0].verdict == "does not replicate"


def test_means_over_labels_that_are_there_are_compared_over_those_of_both():
    """B has French only: its order against A is that of French, and a gain, too."""
    rows = [result({"objective": o, "pair": p}, m, zs=v + m * (1 + v / 50)) for m in range(3)
            for o, p, v in (("A", "fr", 10.0), ("A", "ru", 90.0), ("B", "fr", 30.0))]  # fmt: skip
    found = compare_table(table("zs", {"pair": ()}, A=1, B=5), observed(rows))
    assert [row.verdict for row in found] == ["replicates"] * 2
    assert interval(found[0]).mean > 50 and "over fr, ru" in found[0].text
    [gain] = compare_table(
        table("zs", {"pair": ()}, Quantity({"objective": "A"}, "zs", {"pair": ()}), B=5), observed(rows)
    )
    assert interval(gain).mean == pytest.approx(20 + 0.4) and "left out, not measured on all sides: ru" in gain.text


def test_a_sign_that_is_the_other_way_round_differs_whatever_the_orders():
    """Printed losses of 3 and 6 that are gains of 20 and 15 with us, in the same order."""
    a, b, c = [60.0, 61.0, 59.5], [80.0, 80.5, 80.2], [75.0, 76.5, 74.0]
    losses = table("zs", against=Quantity({"objective": "A"}, "zs"), B=-3.0, C=-6.0)
    found = compare_table(losses, results("zs", A=a, B=b, C=c))
    for row, ours in zip(found, (b, c), strict=True):
        low = stats.ttest_rel(ours, a).confidence_interval(0.95).low
        assert low > 0 and interval(row).low == pytest.approx(low)
        assert row.verdict == "does not replicate" and row.notes == (TURNED,)
        assert row.text == f"1 of 1 decided orders in the column are as in the paper; 1 were tested; {TURNED}"


def shares(**values) -> Results:
    rows = [measured({"objective": name}, m, "cka", v + m * v / 99) for name, v in values.items() for m in range(3)]
    return observed([], rows)


def test_ties_in_print_are_of_the_unit_of_the_column():
    """Half a point of percent; of what a probe measures between −1 and 1 half a hundredth."""
    cka = shares(A=0.9, B=0.45, C=0.1)
    assert verdicts(table("probe:cka", A=0.90, B=0.45, C=0.10), cka) == ["replicates"] * 3
    assert verdicts(table("probe:cka", A=0.10, B=0.45, C=0.90), cka)[::2] == ["does not replicate"] * 2
    tied = compare_table(table("probe:cka", A=0.705, B=0.70), cka)
    assert [row.verdict for row in tied] == ["inconclusive"] * 2
    assert (
        tied[0].text
        == "0 of 0 decided orders in the column are as in the paper; 1 were tested, 1 of them ties in print"
    )
    assert verdicts(table("probe:cka", A=0.706, B=0.70), cka) == ["replicates"] * 2
    percent = table("probe:cka", A=0.9, B=0.45, D=20.0)  # D, not run, says what the others are
    assert verdicts(percent, cka) == ["inconclusive", "inconclusive", "not run"]
    gains = table("probe:cka", against=Quantity({"objective": "C"}, "probe:cka"), A=0.8, B=0.004)
    assert verdicts(gains, cka) == ["replicates"] * 2
    assert (
        verdicts(table("probe:cka", against=gains.numbers[0].against, A=-0.8, B=-0.9), cka)
        == ["does not replicate"] * 2
    )


def test_our_numbers_and_gains():
    values = [3.0, 5.0, 4.5]
    [row] = compare_table(table(A=40), results(A=values))
    expected = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert (interval(row).low, interval(row).high) == pytest.approx(expected) and row.printed.value == 40
    gains = table("zs", against=Quantity({"objective": "A"}, "zs"), B=2.5, C=-3.0)
    ours = {"A": [50.0, 60.0, 55.0], "B": [52.0, 63.0, 57.5], "C": [51.0, 61.5, 56.0]}
    found = compare_table(gains, results("zs", **ours))
    gain = stats.ttest_rel(ours["B"], ours["A"]).confidence_interval(0.95)
    assert (interval(found[0]).low, interval(found[0]).high) == pytest.approx((gain.low, gain.high))
    assert [row.verdict for row in found] == ["replicates", "does not replicate"], "C gains, and does not in print"
    assert verdicts(gains, results("zs", B=[1.0, 2.0], C=[1.0, 2.0])) == ["not run"] * 2


def test_mean_over_an_axis():
    pairs = {"fr": 10.0, "ru": 30.0}
    rows = [
        result({"objective": "A", "pair": pair}, model, zs=pairs[pair] + model) for pair in pairs for model in (0, 1)
    ]

    def mean(*labels, more=()):
        [row] = compare_table(table("zs", {"pair": labels}, A=1.0), observed([*rows, *more]))
        return row.ours and interval(row).mean

    assert mean("fr", "ru") == mean() == 20.5
    assert mean("fr") == 10.5
    assert mean("fr", "zh") is None  # not all of them were run
    more = [result({"objective": "A", "pair": "zh"}, 0, zs=50.0)]
    assert mean("fr", "ru", "zh", more=more) == 30.0  # of the one model that has all three


def test_an_axis_that_the_table_does_not_name():
    one = results(labels={"size": "1"}, A=[1.0, 2.0])
    [row] = compare_table(table(A=3.0), one)
    assert interval(row).mean == 1.5
    rows = [result({"objective": "A", "size": size}, 0, delta=1.0) for size in ("1", "2")]
    [row] = compare_table(table(A=3.0), observed(rows))
    assert row.verdict == "not run" and row.text == "the table does not say which size: 1, 2"
    [row] = compare_table(table(A=3.0), observed([*rows, result({"objective": "A"}, 0, delta=7.0)]))
    assert interval(row).mean == 7.0  # a study without the axis is the table's


@pytest.mark.parametrize("name", ["align_mlm/table3", "align_mlm/table1", "emerging/table1", "cao2020/table4",
                                  "kulshreshtha2020/table3", "impact/table4", "impact/table5"])  # fmt: skip
def test_the_papers_numbers_agree_with_themselves(name):
    [printed] = read_tables(name)
    found = compare_table(printed, echo(name.split("/")[0]))
    assert [row.printed for row in found] == list(printed.numbers)
    assert {row.verdict for row in found} <= {"replicates", "inconclusive"}
    assert sum(row.verdict == "replicates" for row in found) > 0.75 * len(found)  # the rest are ties in print
    assert all(interval(row).mean == pytest.approx(row.printed.value, abs=0.21) for row in found)


AXES = {"objective": ["ALIGN-MLM", "MLM"], "pretrain.seed": ["0", "1", "2"]}
EVERY_TASK = """claims:
- {id: better, claim: Better in every task., source: here, compare: [{for_each: {task: [TASKS]}, measure: delta,
   left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}}, relation: less}]}
"""
LOSSES = """paper: mine
title: T
citation: C
labels: {objective: [ALIGN-MLM, MLM], task: [pos]}
tables:
  first:
    title: Δ
    printed: here
    blocks:
      - {where: {task: pos}, measure: delta, columns: [{}],
         rows: [{where: {objective: ALIGN-MLM}, values: [VALUE]}, {where: {objective: MLM}, values: [38.5]}]}
"""


@pytest.mark.parametrize(
    ("tasks", "tally"),
    [("pos, ner", "1 of 1 holds, 1 of 2 not run"), ("pos, ner, nli", "1 of 1 holds, 2 of 3 not run"), ("pos", "")],
)
def test_a_claim_of_which_only_a_part_was_run_says_so(tasks, tally, tmp_path):
    (tmp_path / "claims.yaml").write_text(EVERY_TASK.replace("TASKS", tasks))
    config = {"claims": [str(tmp_path / "claims.yaml")]}
    made = report(make_grid(tmp_path / "s", AXES, jitter=0.1, config=config))
    [line], [row] = made.table("Claim", "Verdict", "Ours"), made.file("claims")
    said = f"{tally}; ours is pos delta, ALIGN-MLM − MLM" if tally else ""
    assert [*line["Verdict"].split("|"), ""][:2] == ["replicates", said] and said in row["Verdict"]
    assert tally in made.text and tally in (made.paths.tables / "claims.tex").read_text()


@pytest.mark.parametrize(("value", "verdict"), [("-3.0", "does not replicate"), ("3.0", "replicates")])
def test_a_sign_that_is_not_the_papers_and_a_tie_are_told(value, verdict, tmp_path):
    """Our Δ of ALIGN-MLM is above 0 and less than that of MLM, as in both papers."""
    (tmp_path / "paper.yaml").write_text(LOSSES.replace("VALUE", value))
    made = report(make_grid(tmp_path / "s", AXES, jitter=0.1, config={"paper": str(tmp_path / "paper.yaml")}))
    table = made.table("objective", "Paper", "Ours", "Verdict")
    assert [line["Verdict"] for line in table] == [verdict, "replicates"]
    assert ("the sign is opposite |" in made.text) == (verdict == "does not replicate")
    assert (
        "Does not replicate: the order with another number" in made.text
        and "Printed numbers within half a point" in made.text
    )
