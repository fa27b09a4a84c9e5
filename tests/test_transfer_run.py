"""Transfers from end to end: every task, the controls of zero-shot transfer, results on disk, and what is refused."""

import copy
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from probes.transfer import fit, result
from probes.transfer.config import TransferConfig
from probes.transfer.model import check_keep, open_pretrained
from probes.transfer.result import ResultFile, drops, facts, predictions_path, read_predictions, rows_of
from probes.transfer.run import Predictions, Transfer
from probes.transfer.splits import load_data
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.language import PARENT, parse_language
from tests.adjust_models import save_model
from tests.aligned_runs import SEPARATE, random_run
from tests.test_transfer_metrics import NLI

MINI = "builtin:mini-english?types=500&sentences=150&dev=30&test=40"
SETTINGS: dict[str, Any] = {"train": MINI, "length": 48, "stride": 8, "fine_tune": {"epochs": 1, "learning_rate": 3e-3}}
TASKS = ("nli", "ner", "pos", "parsing", "slots", "qa")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("run"))


def config(**settings: Any) -> TransferConfig:
    return parse(TransferConfig, {**SETTINGS, **settings})


def transfer_of(pretrained, settings):
    return Transfer(pretrained, load_data(settings, pretrained), settings)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_gives_sup_zs_and_delta(run, task, tmp_path):
    settings = config(task=task, mixed=task in ("nli", "qa"), head={"arc": 16, "relation": 8})
    transfer = transfer_of(run, settings)
    transfer.check()
    file = ResultFile(tmp_path / "t.json", transfer.fingerprint)
    file.add(transfer, transfer.run(0))
    held = json.loads((tmp_path / "t.json").read_text())
    (record,) = held["seeds"]
    assert record["delta"] == pytest.approx(record["sup"] - record["zs"], abs=1e-3)
    assert held["all"]["zs"]["mean"] == pytest.approx(record["zs"], abs=1e-3)
    assert held["counts"]["source test"]["items"] == 40 and held["majority"].keys() == set(transfer.tests)
    kept = read_predictions(predictions_path(tmp_path / "t.json"))
    assert [part.test for part in kept] == list(transfer.tests)
    for part in kept:  # the scores can be made again from what is kept
        for metric in transfer.metrics.values():
            score = metric(part.gold, part.predicted)
            assert score == pytest.approx(record["scores"][part.test][metric.name], abs=1e-3)
    assert len(rows_of(held)) == len(transfer.tests) + 1


def test_under_identity_zero_shot_equals_the_parent_exactly(run):
    same = replace(run, target=replace(run.source, role="target", language=PARENT))
    transfer = transfer_of(same, config(task="pos", fine_tune={"epochs": 8, "learning_rate": 1e-2}))
    found = transfer.run(3)
    assert found.scores["zs"] == found.scores["parent"] == found.scores["sup"]
    assert found.scores["parent"]["accuracy"] > transfer.majority["parent"] + 10


def with_copies(run, shuffle: bool):
    """The run with the parent's rows for the derived ids too, each its own or (``shuffle``) that of another word."""
    model = copy.deepcopy(run.model)
    words = model.embeddings.words.data
    half = len(words) // 2
    order = np.random.default_rng(0).permutation(half) if shuffle else np.arange(half)
    words[half:] = words[torch.from_numpy(order)]
    return replace(run, model=model, target_model=model)


def test_copied_embeddings_transfer_and_shuffled_ones_fall_to_the_baseline(run):
    # frozen: fine-tuning would move the rows of the parent's ids and not those of their copies
    features = {"tune": "none", "layers": [0], "top_layers": 1}
    settings = config(task="pos", features=features, fine_tune={"epochs": 20, "learning_rate": 1e-2})
    trans = replace(run, target=replace(run.target, language=parse_language("trans")))
    found = {}
    for shuffle in (False, True):
        transfer = transfer_of(with_copies(trans, shuffle), settings)
        found[shuffle], majority = transfer.run(0).scores, transfer.majority
    assert found[False]["zs"] == found[False]["parent"], "a language of copies is the parent"
    assert found[False]["parent"]["accuracy"] > majority["parent"] + 20
    assert found[True]["parent"] == found[False]["parent"]
    assert found[True]["zs"]["accuracy"] < majority["zs"] + 10


def test_seeds_are_added_and_another_transfer_is_refused(run, tmp_path):
    settings = config(task="pos")
    transfer = transfer_of(run, settings)
    path, name = tmp_path / "t.json", transfer.fingerprint
    ResultFile(path, name).add(transfer, transfer.run(0))
    first = json.loads(path.read_text())
    again = ResultFile(path, name)
    assert list(again.seeds) == [0]
    again.add(transfer, transfer.run(1))
    second = json.loads(path.read_text())
    assert second["seeds"][0] == first["seeds"][0] and len(second["seeds"]) == 2
    assert second["all"]["parent"]["runs"] == 2
    with pytest.raises(InputError, match="holds something else than this transfer"):
        ResultFile(path, "another")


def test_a_result_depends_on_what_aligned_files_hold_and_not_on_where_they_are(run, tmp_path):
    def fingerprint(folder, links):
        folder.mkdir()
        (folder / "text").write_text("a b ||| c d\nthe cat ||| the cat\n")
        (folder / "links").write_text(links)
        pair = {"kind": "text", "joint": str(folder / "text"), "links": {"kind": "file", "path": str(folder / "links")}}
        aligned = {"pairs": {"x": pair}, "data": {"dev": 0}}
        frozen = {"tune": "none", "layers": [-1]}
        for settings in ({"continual": aligned}, {"rotation": aligned, "features": frozen}):
            yield transfer_of(run, config(**settings)).fingerprint

    first = list(fingerprint(tmp_path / "one", "0-0\n0-0 1-1\n"))
    assert list(fingerprint(tmp_path / "two", "0-0\n0-0 1-1\n")) == first
    other = list(fingerprint(tmp_path / "three", "0-1\n0-0 1-1\n"))
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_a_killed_transfer_goes_on_to_the_same_result(run, tmp_path, monkeypatch):
    settings = config(task="pos", fine_tune={"epochs": 3, "learning_rate": 3e-3})
    whole = transfer_of(run, settings).run(0)
    epochs = []
    real = fit._Fit.epoch

    def dies(self, epoch, history):
        epochs.append(epoch)
        if len(epochs) == 3:
            raise KeyboardInterrupt
        return real(self, epoch, history)

    monkeypatch.setattr(fit._Fit, "epoch", dies)
    with pytest.raises(KeyboardInterrupt):
        transfer_of(run, settings).run(0, tmp_path / "work")
    assert transfer_of(run, settings).run(0, tmp_path / "work") == whole
    assert epochs == [0, 1, 2, 2, 0, 1, 2]  # two epochs were not trained again


def test_a_search_keeps_the_best_settings_by_the_source_dev_set(run):
    search = {"fine_tune.learning_rate": [1e-6, 3e-3, 5e-3]}
    found = transfer_of(run, config(task="pos", search=search, best=2)).run(0)
    kept = found.fits["source"]
    assert len(kept) == 2 and all("1e-06" not in record["setting"] for record in kept)
    assert {part.setting for part in found.predictions} == {0, 1}
    parts = [p for p in found.predictions if p.test == "zs"]
    scores = []
    for part in parts:
        pairs = [pair for words in zip(part.gold, part.predicted, strict=True) for pair in zip(*words, strict=True)]
        scores.append(float(np.mean([right == said for right, said in pairs])))
    assert found.scores["zs"]["accuracy"] == pytest.approx(100 * np.mean(scores), abs=1e-3)


def test_separate_parts_and_mixed_pairs(tmp_path):
    separate = random_run(tmp_path, **SEPARATE)
    found = transfer_of(separate, config(task="nli", mixed=True)).run(0)
    assert set(found.scores) == {"parent", "zs", "sup", "mixed premise", "mixed hypothesis"}
    assert all(0 <= scores["accuracy"] <= 100 for scores in found.scores.values())


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_model_of_hugging_face(tmp_path, kind):
    folder = save_model(tmp_path / kind, kind)
    settings = config(task="nli", length=16, language="inv", train_items=40)
    pretrained = open_pretrained(str(folder), "inv")
    found = transfer_of(pretrained, settings).run(0)
    assert {"parent", "zs", "sup"} == set(found.scores)
    assert pretrained.source.bert == (kind == "bert")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": 64}, "length 64 is longer than the 48 tokens"),
        ({"score": {"metric": "f2"}}, "score.metric: the task pos has no 'f2'; it has accuracy"),
        ({"test": f"{MINI}#train"}, "the train and the test set of the task pos are the same items"),
        ({"dev": f"{MINI}#test"}, "the dev and the test set of the task pos are the same items"),
        ({"train": "builtin:mini-english?types=500&sentences=20&dev=5&test=0"}, "no (split|item)|has no"),
        ({"task": "slots", "train": "conllu:nowhere"}, "nowhere: no such file"),
    ],
)
def test_what_cannot_be_transferred_is_one_line(run, settings, message):
    with pytest.raises(InputError, match=message) as error:
        transfer_of(run, config(**settings)).check()
    assert "\n" not in str(error.value)


def test_a_transfer_without_labelled_text_is_refused(tmp_path):
    pretrained = open_pretrained(str(save_model(tmp_path / "bert", "bert")), "inv")
    settings = parse(TransferConfig, {"task": "ner", "length": 16})
    with pytest.raises(InputError, match="needs labelled sentences: name them with --train"):
        load_data(settings, pretrained)
    with pytest.raises(InputError, match="its languages are not known: name one with --language"):
        open_pretrained(str(tmp_path / "bert"), None)


def test_the_summary_of_a_metric_by_hand():
    """Two seeds of four items: means, and no interval over one seed."""
    gold, accuracy = list("abab"), NLI["accuracy"]
    parts = [Predictions(t, s, 0, ("1", "2", "3", "4"), gold, list(p)) for t, s, p in
             (("parent", 0, "abab"), ("parent", 1, "abaa"), ("zs", 0, "aaaa"), ("zs", 1, "bbbb"),
              ("sup", 0, "abab"), ("sup", 1, "abab"))]  # fmt: skip
    found = result.summary(accuracy, parts, "name")
    assert (found["parent"]["mean"], found["zs"]["mean"], found["delta"]["mean"]) == (87.5, 50.0, 50.0)
    assert found["delta"]["runs"] == 2 and found["delta"]["seeds_low"] == 50.0
    one = result.summary(accuracy, [p for p in parts if p.seed == 0], "name")
    assert one["parent"]["seeds_low"] is None and one["zs"]["low"] is not None


def test_a_test_set_of_one_language_is_not_trained_on_or_chosen_by_in_the_other(run, tmp_path):
    names = {}
    for name in ("a", "b", "c"):
        names[name] = str(tmp_path / f"{name}.conllu")
        rows = [f"{i}\t{name}{i}\t_\tNOUN\t_\t_\t{i - 1}\tx\t_\t_" for i in (1, 2, 3)]
        (tmp_path / f"{name}.conllu").write_text("\n".join(rows) + "\n\n")
    natural = replace(run, natural=True)
    for case in (
        {"train": names["a"], "dev": names["b"], "test": names["c"], "target": {"test": names["b"]}},
        {"train": names["a"], "dev": names["b"], "test": names["c"], "target": {"test": names["a"]}},
        {
            "train": names["a"],
            "dev": names["b"],
            "test": names["c"],
            "target": {"test": names["b"], "train": names["c"]},
        },
    ):
        with pytest.raises(InputError, match="are the same items"):
            load_data(config(language="b", **case), natural)
    with pytest.raises(InputError, match=r"there is no test set beside .*a\.conllu, train: name one with --test"):
        load_data(config(train=names["a"]), run)


def test_a_set_without_gold_labels_is_refused(run, tmp_path):
    for name, tag in (("train", "NOUN"), ("dev", "NOUN"), ("test", "_")):
        rows = [f"{i}\t{name}{i}\t_\t{tag}\t_\t_\t{i - 1}\tx\t_\t_" for i in (1, 2, 3)]
        (tmp_path / f"x-{name}.conllu").write_text("\n".join(rows) + "\n\n")
    with pytest.raises(InputError, match="source test: no word has a gold label for the task pos"):
        transfer_of(run, config(task="pos", train=str(tmp_path))).check()


def test_without_alpha_nothing_is_aligned(run):
    unknown = replace(run, text=None)
    transfer = transfer_of(unknown, config(task="pos", continual={"alpha": 0.0}))
    assert transfer.run(0).scores == transfer_of(unknown, config(task="pos")).run(0).scores


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"best": 3, "search": {"fine_tune.rows": [8, 16]}}, "best 3: the search has 2 combinations"),
        ({"search": {"features.layers": [[0], [99]]}}, "features.layers: the model has no layer 99"),
        ({"task": "qa", "score": {"metric": "no_answer"}, "train": "ANSWERED"}, "no item counts for no_answer"),
    ],
)
def test_what_no_fit_is_needed_to_know_is_said_before(run, tmp_path, settings, message):
    if settings.get("train") == "ANSWERED":
        context = "the big cat sat on the mat"
        asked = [{"id": "1", "question": "who ?", "answers": [{"text": "cat", "answer_start": 8}]}]
        squad = {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": asked}]}]}
        for split in ("train", "dev", "test"):
            asked[0]["question"] = f"who {split} ?"
            (tmp_path / f"{split}.json").write_text(json.dumps(squad))
        settings = {**settings, "train": str(tmp_path)}
    with pytest.raises(InputError, match=message):
        transfer_of(run, config(**settings)).check()


def test_a_score_without_items_is_null_and_drops_of_a_cut_set_are_told_once(run, tmp_path):
    context = "the well-known cat sat on the mat"
    asked = [
        {"id": str(n), "question": f"who {n} ?", "answers": [{"text": "known cat", "answer_start": 9}]}
        for n in range(20)
    ]
    squad = {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": asked}]}]}
    (tmp_path / "train.json").write_text(json.dumps(squad))
    asked[0]["question"] = "another ?"
    (tmp_path / "test.json").write_text(json.dumps(squad))
    transfer = transfer_of(run, config(task="qa", train=str(tmp_path), length=48))
    assert transfer.run(0).scores["zs"]["no_answer"] is None
    found = drops(transfer)
    (widened,) = (reason for reason in found["source train"] if "widened" in reason)
    assert found["source train"][widened] == 20 and widened not in found.get("source dev", {})


def test_a_result_tells_what_was_aligned(run):
    frozen = {"tune": "none", "layers": [-1]}
    continual = transfer_of(run, config(task="pos", continual={"alpha": 0.1, "rows": 4}))
    continual.run(0)
    rotated = transfer_of(run, config(task="pos", rotation={}, features=frozen))
    rotated.run(0)
    held = facts(continual)["aligned"]["pretraining"]
    assert held["counts"]["sentence pairs to train on"] > 0 and held["fingerprint"]
    assert facts(rotated)["rotations"][0]["layers"][0]["pairs"] > 0
    assert facts(rotated)["aligned"].keys() == {"pretraining"}


def test_a_dictionary_of_a_rotation_is_part_of_the_result_and_checked_before(run, tmp_path):
    frozen = {"tune": "none", "layers": [-1]}
    path = tmp_path / "en-xx.txt"

    def rotated(**settings):
        return transfer_of(run, config(task="pos", rotation={"supervision": "dictionary", **settings}, features=frozen))

    with pytest.raises(InputError, match=r"en-xx\.txt"):
        rotated(dictionary=str(path))
    path.write_text("one two three\n")
    with pytest.raises(InputError, match="here are 3 words"):
        rotated(dictionary=str(path))
    path.write_text("the тхе\n")
    first = rotated(dictionary=str(path)).fingerprint
    (tmp_path / "other.txt").write_text("the тхе\n")
    assert rotated(dictionary=str(tmp_path / "other.txt")).fingerprint == first != rotated().fingerprint
    path.write_text("the тхе\na а\n")
    assert rotated(dictionary=str(path)).fingerprint != first


def test_a_fine_tuned_model_with_a_rotation(run):
    """Its rotation of the target changes nothing of the source; that of the source is trained through."""
    plain = transfer_of(run, config(task="nli")).run(0)
    target = transfer_of(run, config(task="nli", rotation={"moves": "target", "supervision": "sentences"}))
    found = target.run(0)
    assert found.fits["source"] == plain.fits["source"] and found.scores["parent"] == plain.scores["parent"]
    model, _ = target._fit(target.config, "source", 0, "", None)
    batch = target.examples("target test").batch(np.arange(8))
    (fitted,) = (rotation for held in target._rotations.values() for rotation in held.values())
    bare = copy.copy(model.features)
    bare.rotations = {}
    torch.testing.assert_close(model.features(batch), fitted.apply(bare(batch), 0))
    assert not torch.allclose(model.features(batch), bare(batch), atol=1e-3)
    source = transfer_of(run, config(task="nli", rotation={"moves": "source"})).run(0)
    assert source.fits["source"] != plain.fits["source"]
    with pytest.raises(InputError, match="mixed rows have both languages"):
        config(task="nli", mixed=True, rotation={})
    with pytest.raises(InputError, match="a rotation is no part of a model"):
        check_keep(config(task="nli", rotation={}), run)


def test_a_fine_tuned_body_is_kept_as_probes_read_it(run, tmp_path):
    transfer = transfer_of(run, config(task="pos"))
    found = transfer.run(0, keep=tmp_path / "kept")
    opened = open_pretrained(str(tmp_path / "kept" / "seed-0"), run.target.language.name)
    frozen = {"task": "pos", "features": {"tune": "none"}, "fine_tune": {"epochs": 1, "learning_rate": 1e-9}}
    before = run.model.state_dict()
    after = opened.model.state_dict()
    moved = [name for name in before if name.startswith("layers.") and not torch.equal(before[name], after[name])]
    assert moved and opened.source.tokenizer.fingerprint == run.source.tokenizer.fingerprint
    assert found.scores["zs"] == transfer_of(run, config(task="pos")).run(0).scores["zs"]
    with pytest.raises(InputError, match="no body is fine-tuned, so there is nothing to keep"):
        check_keep(config(**frozen), run)
