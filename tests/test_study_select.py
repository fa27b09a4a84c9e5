"""--only with an axis as the names of cells show it."""

import pytest

from probes.study.cells import expand, selected
from probes.study.config import StudyConfig
from synthlang.config import parse
from tests.tiny import STUDY, changed


@pytest.mark.parametrize("axis", ["pretrain seed", "pretrain.seed", "seed"])
def test_a_seed_is_exact_by_every_name_of_its_axis(axis):
    product = {"pretrain.language": ["trans"], "pretrain.seed": list(range(12))}
    cells = expand(parse(StudyConfig, changed(STUDY, grid={"product": product})))
    assert selected(cells, (f"{axis}=1",)) == {"trans, pretrain seed=1"}
