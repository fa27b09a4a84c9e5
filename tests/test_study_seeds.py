"""Seeds and levels of the studies: how many models a condition has, and how to have more."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.study.cells import load_study
from probes.study.labels import is_seed
from probes.study.stage import graph
from tests.test_study_configs import OF_PAPERS, OURS, SIZES, catalogued, header, labels, study


@pytest.mark.parametrize("size", SIZES)
def test_the_main_adjustment_of_impact_is_one_stage_of_all_its_tables(size):
    """30K, avg and all: the adjusted models of table 2."""

    def adjustments(table: str) -> set[str]:
        config, cells = study(f"{size}/impact-{table}")
        return {key for key, task in graph(cells, config.seeds).stages.items() if task.kind == "adjust"}

    main, seeds = adjustments("table2"), {"paper": 5, "lab": 3, "tiny": 3}[size]
    assert len(main) == 4 * seeds
    assert adjustments("table3") == adjustments("table4") == adjustments("table8") == main
    for table in ("table5", "table6", "table7", "figure1"):
        assert len(adjustments(table) & main) == seeds, table


SINGLE = {"emerging-table1", "emerging-figure3", "emerging-table1-treebank", "dose-sharing", "typology"}
"""At the size tiny: one model a condition, since more would take hours; their files say how to add some."""


@pytest.mark.parametrize("name", [f"tiny/{name}" for name in (*OF_PAPERS, *OURS)])
def test_tiny_conditions_have_several_models(name):
    """Not so many fine-tunings of one model: what differs between pretrainings decides."""
    _, cells = study(name)
    models: dict[frozenset[tuple[str, str]], set[tuple[int, int | None, int | None]]] = {}
    for cell in cells:
        assert cell.pretrain is not None
        second, adjust = (None if part is None else part.seed for part in (cell.second, cell.adjust))
        condition = frozenset(item for item in cell.labels.items() if not is_seed(item[0]))
        models.setdefault(condition, set()).add((cell.pretrain.seed, second, adjust))
    least = min(map(len, models.values()))
    assert least >= 2 or Path(name).name in SINGLE, name
    assert len({len(held) for held in models.values()}) == 1, "conditions are compared model by model"
    for held in models.values():
        for first, second, _ in held:
            assert second is None or first != second, "two models of one language and one seed are one model"
        assert len({first for first, *_ in held}) == len(held), "each has a pretraining of its own"


@pytest.mark.parametrize("size", SIZES)
def test_sharing_has_every_number_of_layers(size):
    for cell in study(f"{size}/dose-sharing")[1]:
        assert cell.pretrain is not None
        shared = cell.pretrain.model.layers - len(cell.pretrain.sharing.layers)
        assert cell.labels["layers"] == str(shared) and len(set(cell.pretrain.sharing.layers)) == 8 - shared
    assert labels(study(f"{size}/dose-sharing")[1])["layers"] == {str(number) for number in range(9)}


def test_one_model_of_the_paper_can_become_several():
    """As the comments of the sizes say."""
    for name in ("paper/emerging-figure7", "lab/emerging-figure4", "paper/align_mlm-figure1", "tiny/dose-sharing"):
        says = "--set grid.product.pretrain.seed='[0, 1, 2]'"
        assert says in header(name), name
        _, cells = load_study(Path(catalogued(name)), [says.removeprefix("--set ").replace("'", "")])
        assert {"0", "1", "2"} == {cell.labels.get("pretrain.seed", "0") for cell in cells}
