"""Fits that stages have in common are made once, with the results that each stage alone has, and are not kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from probes.models.pretrained import Role
from probes.stages.base import StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.stages.shared_finetunes import FITS, SharedFinetunes, shared_places
from probes.stages.transfer import TransferStage
from probes.study.gc import delete_unused
from probes.transfer.fit import _Fit
from probes.transfer.shared import SharedPlace
from synthlang.store import Store
from tests.study_cases import made_here, opened
from tests.study_finished import finish_all
from tests.study_graphs import FIRST, FULL, TUNED, contents, graph_of, run_all
from tests.tiny import changed

LANGUAGES = [{"name": "en"}, {"name": "hi", "language": "trans"}, {"name": "xx", "language": "trans+inv"}]
OTHER = "builtin:mini-english?types=500&sentences=150&dev=30&test=40&seed=5"
TUNING = changed(TUNED, fine_tune__epochs=1)
STUDY: dict[str, Any] = {
    **{key: value for key, value in FULL.items() if key != "probes"},
    "seeds": [0],
    "pretrain": {**FIRST, "languages": LANGUAGES},
    "transfer": TUNING,
    "tasks": {"one": {}, "other": {"test": f"{OTHER}#test"}},
    "grid": {"product": {"transfer.language": ["hi", "xx"]}},
}


@pytest.fixture
def trained(monkeypatch):
    """The epochs that were trained."""
    epochs, epoch = [], _Fit.epoch

    def counted(self, number, history):
        epochs.append(number)
        return epoch(self, number, history)

    monkeypatch.setattr(_Fit, "epoch", counted)
    return epochs


def results(store: Store) -> dict[str, bytes]:
    """The bytes of every transfer, without the note of its time."""
    return {name: of for name, of in contents(store, ["transfer"]).items() if not name.endswith("stage.json")}


def one_by_one(data: dict[str, Any], folder: Path) -> dict[str, bytes]:
    """The results of stages that have nothing in common."""
    store = Store(folder)
    run_all(graph_of(data)[0].stages, store)
    return results(store)


def test_a_fit_is_made_once(tmp_path, trained):
    """Four transfers of one model to two languages, two test sets each, have one fit on the source language, and one on
    each of the others: three and not eight. Their results are those of stages that are made one by one."""
    run = made_here(tmp_path / "study", STUDY)
    assert len(trained) == 3
    assert not list((run.store.root / FITS).iterdir()) and not list(run.store.root.glob("*.work"))
    trained.clear()
    assert results(run.store) == one_by_one(STUDY, tmp_path / "alone")
    assert len(trained) == 8


def stages_of(**changes: Any) -> dict[tuple[str, str], dict[Role, str]]:
    """(language, task) → the keys of the fits; nothing of the stages is made."""
    keys = StageKeys(ContentHashes())
    whole, _ = graph_of({**STUDY, **changes})
    stages = [stage for stage in whole.stages.values() if isinstance(stage, TransferStage)]
    return {(str(stage.config.language), stage.name): stage.finetune_keys(keys) for stage in stages}


def of_one(**transfer: Any) -> dict[Role, str]:
    return stages_of(transfer={**TUNING, "features": {"tune": "none"}, **transfer})["hi", "one"]


def test_what_fits_depend_on():
    plain = stages_of()
    assert len({keys["source"] for keys in plain.values()}) == 1
    assert len({keys["target"] for keys in plain.values()}) == 2
    assert plain["hi", "one"]["target"] == plain["hi", "other"]["target"] != plain["hi", "one"]["source"]
    alike = stages_of(transfer={**TUNING, "chosen_by": "target"})
    # the dev set that chooses is of the language
    assert len({keys["source"] for keys in alike.values()}) == 4
    assert alike["hi", "one"]["target"] == plain["hi", "one"]["target"]
    assert stages_of(transfer={**TUNING, "sup": False})["hi", "one"] == {"source": plain["hi", "one"]["source"]}
    others = (
        stages_of(seeds=[1]),
        stages_of(pretrain={**STUDY["pretrain"], "seed": 5}),
        stages_of(transfer={**TUNING, "train_items": 40}),
        stages_of(transfer={**TUNING, "search": {"fine_tune.learning_rate": [1e-2, 1e-3]}}),
        stages_of(transfer={**TUNING, "continual": {"alpha": 1.0, "rows": 4}}),
    )
    for other in others:
        assert not set(other["hi", "one"].values()) & set(plain["hi", "one"].values())


@pytest.mark.parametrize(
    ("rotation", "common"),
    [
        ({"moves": "source"}, {"target"}),
        ({"moves": "source", "centre": False, "supervision": "dictionary"}, {"target"}),
        ({"moves": "target"}, {"source"}),
        ({"moves": "target", "normalise": "unit"}, set()),
        ({"moves": "source", "map": "README.md"}, set()),
    ],
)
def test_a_rotation_leaves_the_other_language_as_it_is(rotation, common):
    plain, rotated = of_one(), of_one(rotation=rotation)
    assert {role for role in plain if plain[role] == rotated[role]} == common


def test_with_a_rotation_the_results_are_those_of_one_alone(tmp_path, trained):
    """On features that are frozen, with one that moves the source language, SUP is that of the model as it is."""
    methods = {"as it is": {}, "rotated": {"transfer.rotation": {"data": {"dev": 0, "sentences": 40}}}}
    data = {**STUDY, "tasks": {"pos": {}}, "transfer": {**TUNING, "language": "hi", "features": {"tune": "none"}}}
    data |= {"grid": {"product": {"method": methods}}}
    run = made_here(tmp_path / "study", data)
    assert len(trained) == 3
    assert results(run.store) == one_by_one(data, tmp_path / "alone")


def test_a_place_is_of_one_at_a_time(tmp_path):
    place = SharedPlace(tmp_path / "fit", FileLock(tmp_path / "lock"))
    with place.taken() as folder:
        assert folder is None  # nobody else needs the fit
    place.folder.mkdir()
    with place.taken() as folder:
        assert folder == place.folder
        other = replace(place, lock=FileLock(tmp_path / "lock"))
        with other.taken() as second:
            assert second is None
        other.delete()
        assert place.folder.is_dir()
    place.delete()
    assert not place.folder.exists()


def test_a_fit_is_kept_until_the_last_stage_that_needs_it_has_ended(tmp_path):
    whole, _ = graph_of(STUDY)
    stages = [stage for stage in whole.stages.values() if isinstance(stage, TransferStage)]
    store = Store(tmp_path)
    fits = SharedFinetunes(whole.stages.values(), store, StageKeys(ContentHashes()))
    assert len(list((tmp_path / FITS).iterdir())) == 3
    fits.started(stages[0].key)
    assert [fits.is_busy(stage.key) for stage in stages] == [True] * 4
    there = []
    for stage in stages:
        assert all(place.folder.is_dir() for place in shared_places(stage, store).values())
        fits.ended(stage.key)
        there.append(len(list((tmp_path / FITS).iterdir())))
    assert there == [3, 2, 2, 0]  # hi and its two test sets first
    assert not fits.is_busy(next(key for key, stage in whole.stages.items() if stage.kind == "pretrain"))


def test_what_a_killed_runner_left_goes_with_what_is_unused(tmp_path):
    run = opened(tmp_path / "study", {**STUDY, "tasks": {"one": {}}})
    finish_all(run.graph.stages.values(), run.store.root)
    run.run()
    left = run.store.root / FITS / "0123456789abcdef"
    left.mkdir(parents=True)
    assert [one.folder for one in delete_unused([tmp_path / "study"], dry_run=True)] == [left] and left.exists()
    assert [one.folder for one in delete_unused([tmp_path / "study"])] == [left] and not left.exists()
