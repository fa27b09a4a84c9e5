"""A sentence of each language of a study, as study.json and the report have it."""

from __future__ import annotations

import json
from pathlib import Path

from probes.study.gc import collect
from synthlang.catalogue import load_yaml
from synthlang.sources import open_source
from tests.study_cases import TINY, opened, run_here
from tests.tiny import changed


def test_each_language_has_the_same_sentence_once_and_keeps_it(tmp_path: Path) -> None:
    grid = {"product": {"pretrain.language": ["trans", "trans+inv"], "pretrain.seed": [0, 1]}}
    study = changed(TINY, name="examples", tasks={}, pretrain__steps=2, grid=grid)
    run_here(tmp_path / "out", study)
    found = json.loads((tmp_path / "out" / "study.json").read_text())["examples"]
    assert [one["language"] for one in found] == ["parent", "trans", "trans+inv"]
    texts = {one["language"]: one["text"] for one in found}
    config = load_yaml(next((tmp_path / "out").glob("stages/pretrain-*/config.yaml")))
    corpora = open_source(config["source"]).batches("train")
    assert texts["parent"] in {text for corpus in corpora for text in corpus.texts()}
    words = {name: text.split() for name, text in texts.items()}
    assert len(words["parent"]) == len(words["trans"]) == len(words["trans+inv"])
    assert not set(words["parent"]) & set(words["trans"])
    assert sorted(words["trans"][:-1]) == sorted(words["trans+inv"][:-1]) and words["trans"] != words["trans+inv"]
    assert texts["trans+inv"] in (tmp_path / "out" / "report.md").read_text()
    collect([tmp_path / "out"], "results")  # takes the tokenizers
    run = opened(tmp_path / "out", study)
    assert run._record()["examples"] == found
