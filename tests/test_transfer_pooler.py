"""BERT's pooler below the head of NLI: from the checkpoint's weights, also those of what a model was adjusted from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining

from probes.models.opening import open_pretrained
from probes.models.pretrained import Pretrained
from probes.transfer.config import TransferConfig
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from probes.transfer.tasks.heads import ClassifyHead
from synthlang.config import parse
from tests.adjust_models import save_model


def with_pooler(folder: Path, seed: int) -> BertForPreTraining:
    """A BERT as it is released, with the pooler of its second task."""
    save_model(folder, "bert")
    torch.manual_seed(seed)
    whole = BertForPreTraining(BertConfig.from_pretrained(folder))
    whole.save_pretrained(folder)
    return whole


def transfer_of(opened: Pretrained, folder: Path, pooler: bool = True) -> Transfer:
    lines = [f"the cat\t{'chat' if i % 2 else 'dog'}\t{('entailment', 'neutral')[i % 2]}\n" for i in range(12)]
    for name in ("train", "dev", "test"):
        (folder / f"{name}.tsv").write_text("premise\thypothesis\tlabel\n" + "".join(lines[: 12 - len(name)]))
    data = {name: str(folder / f"{name}.tsv") for name in ("train", "dev", "test")}
    target = {"test": data["test"]}
    config = parse(TransferConfig, {"task": "nli", **data, "target": target, "length": 20, "head": {"pooler": pooler}})
    return Transfer(opened, load_data(config, opened), config)


def scores(transfer: Transfer) -> ClassifyHead:
    head = transfer.build(transfer.config, "source", 0).head
    assert isinstance(head, ClassifyHead)
    return head


@pytest.fixture
def places(tmp_path):
    for name in ("whole", "other", "adjusted"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_it_starts_from_the_checkpoints_and_an_adjusted_models_from_that_of_the_model_before(places):
    whole = with_pooler(places / "whole", 1)
    with_pooler(places / "other", 2)
    save_model(places / "adjusted", "bert")  # as an adjustment writes it: without a pooler
    BertForMaskedLM.from_pretrained(places / "whole").save_pretrained(places / "adjusted")
    states = torch.randn(3, 5, whole.config.hidden_size)
    expected = whole.bert.pooler(states)
    opened = open_pretrained(str(places / "whole"), "x", natural=True)
    adjusted = open_pretrained(str(places / "adjusted"), "x", natural=True)
    before = [replace(adjusted, original=str(places / name)) for name in ("whole", "other")]
    for one, same in ((opened, True), (before[0], True), (before[1], False), (adjusted, False)):
        head = scores(transfer_of(one, places)).to("cpu")
        assert torch.equal(head.pooler(states[:, 0]), expected) is same
    prints = [transfer_of(one, places).fingerprint for one in (adjusted, *before)]
    assert len(set(prints)) == 3
    plain = scores(transfer_of(opened, places, pooler=False))
    assert isinstance(plain.pooler, torch.nn.Identity)
