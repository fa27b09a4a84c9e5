"""Transfers from end to end: every task, a new one, the controls of zero-shot transfer, results on disk, refusals."""

import copy
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from pretrain.config import PretrainConfig
from probes.models.names import requested_language
from probes.models.opening import open_pretrained
from probes.transfer import fit, result
from probes.transfer.compare import compare
from probes.transfer.config import TransferConfig
from probes.transfer.result import ResultFile, drops, facts, predictions_path, read_predictions, rows_of
from probes.transfer.run import Predictions, Transfer
from probes.transfer.saved import check_one_model
from probes.transfer.splits import load_data
from probes.transfer.tasks.entry import TaskEntry
from probes.transfer.tasks.table import TASKS
from probes.transfer.transfer_command import result_table, transfer_command
from synthlang.config import parse
from synthlang.language import PARENT, parse_language
from tests.adjust_models import save_model
from tests.aligned_runs import SEPARATE, random_run
from tests.refusals import place_and_code, refusal, refused
from tests.test_transfer_metrics import NLI
from tests.tiny import PRETRAIN, changed

MINI = "builtin:mini-english?types=500&sentences=150&dev=30&test=40"
FAST = {"epochs": 1, "learning_rate": 3e-3}
SETTINGS: dict[str, Any] = {
    "task": "pos",
    "train": MINI,
    "train_items": 60,
    "length": 48,
    "stride": 8,
    "fine_tune": FAST,
}
FROZEN = {"tune": "none", "layers": [-1]}


def config(**settings: Any) -> TransferConfig:
    return parse(TransferConfig, {**SETTINGS, **settings})


def transfer_of(pretrained, **settings):
    chosen = config(**settings)
    return Transfer(pretrained, load_data(chosen, pretrained), chosen)


@pytest.fixture(scope="module")
def plain(run, tmp_path_factory):
    """A transfer of POS tags, one seed of it, and the folder with its fine-tuned body."""
    transfer, folder = transfer_of(run), tmp_path_factory.mktemp("kept")
    return transfer, transfer.run(0, keep=folder), folder


@pytest.mark.parametrize("task", TASKS)
def test_every_task_gives_sup_zs_and_delta(run, task, tmp_path):
    transfer = transfer_of(run, task=task, mixed=task in ("nli", "qa"), head={"arc": 16, "relation": 8})
    transfer.check()
    file = ResultFile(tmp_path / "t.json", transfer.fingerprint)
    file.add(transfer, transfer.run(0))
    saved = json.loads(file.path.read_text())
    (record,) = saved["seeds"]
    assert record["delta"] == pytest.approx(record["sup"] - record["zs"], abs=1e-3)
    assert saved["all"]["zs"]["mean"] == pytest.approx(record["zs"], abs=1e-3)
    assert saved["counts"]["source test"]["items"] == 40 and saved["majority"].keys() == set(transfer.tests)
    kept = read_predictions(predictions_path(file.path))
    assert [part.test for part in kept] == list(transfer.tests)
    for part in kept:  # the scores can be made again from what is kept
        for metric in transfer.metrics.values():
            score = metric(part.gold, part.predicted)
            assert score == pytest.approx(record["scores"][part.test][metric.name], abs=1e-3)
    assert len(rows_of(saved)) == len(transfer.tests) + 1


def test_a_file_and_a_line_add_a_task(run, tmp_path, monkeypatch):
    assert refused(config, task="length") == ("task", "unknown")
    monkeypatch.setitem(TASKS, "length", TaskEntry("tests.length_task:Length"))
    files = []
    for tuned in ("all", "none"):
        fine_tune = {"epochs": 4 if tuned == "all" else 1, "learning_rate": 5e-3, "rows": 8}
        transfer = transfer_of(run, task="length", features={"tune": tuned}, fine_tune=fine_tune, train_items=None)
        transfer.check()
        files.append(ResultFile(tmp_path / f"{tuned}.json", transfer.fingerprint))
        files[-1].add(transfer, transfer.run(0))
    saved = json.loads(files[0].path.read_text())
    assert (saved["task"], saved["metric"]) == ("length", "length_accuracy") and saved["labels"]["label"][0] == "long"
    assert saved["all"]["parent"]["mean"] > saved["majority"]["parent"] + 10, "the length of a row is easy to see"
    assert result_table(saved).row_count == 4
    found = compare([file.path for file in files])
    assert [row["by"] for row in found.rows] == ["paired t-test"] * 3 and found.rows[0]["difference"] <= 0
    assert config(task="length", head={"kind": "crf"}).idle == ["head.kind", "stride"]
    assert refused(config, task="length", mixed=True) == ("mixed", "conflict")


def test_under_identity_zero_shot_equals_the_parent_exactly(run):
    same = replace(run, target=replace(run.source, role="target", language=PARENT))
    transfer = transfer_of(same, fine_tune={"epochs": 5, "learning_rate": 1e-2, "rows": 16}, train_items=None)
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
    settings = {
        "features": {"tune": "none", "layers": [0], "top_layers": 1},
        "fine_tune": {"epochs": 8, "learning_rate": 1e-2, "rows": 16},
        "train_items": None,
    }
    trans = replace(run, target=replace(run.target, language=parse_language("trans")))
    found = {}
    for shuffle in (False, True):
        transfer = transfer_of(with_copies(trans, shuffle), sup=False, **settings)
        found[shuffle], majority = transfer.run(0).scores, transfer.majority
    assert found[False]["zs"] == found[False]["parent"], "a language of copies is the parent"
    assert found[False]["parent"]["accuracy"] > majority["parent"] + 20
    assert found[True]["parent"] == found[False]["parent"]
    assert found[True]["zs"]["accuracy"] < majority["zs"] + 10


SEVERAL = {"fine_tune": {"epochs": 3, "learning_rate": 1e-2, "rows": 16}}


def test_a_model_is_chosen_by_the_dev_sets_that_are_named(run):
    """Training is the same, so the mean over dev sets is the mean of the scores on each dev set alone."""

    def fitted(pretrained=run, **settings):
        transfer = transfer_of(pretrained, **SEVERAL, **settings)
        transfer.check()
        result = transfer.run(0)
        return [epoch["dev"] for epoch in result.fits["source"][0]["epochs"]], result, transfer

    (source, plain, _), (target, chosen, _) = fitted(), fitted(chosen_by="target")
    as_parent = replace(run.source, role="target", language=parse_language("trans"))  # the run never saw it
    trans = fitted(replace(run, target=as_parent), chosen_by="target", sup=False)[0]
    both, _, _ = fitted(chosen_by="mean", sup=False)
    all_three, _, transfer = fitted(chosen_by="mean", dev_also=[{"language": "trans"}], tested_on="both")
    assert both == pytest.approx(np.mean([source, target], axis=0)) and source != target
    assert all_three == pytest.approx(np.mean([source, target, trans], axis=0)) and trans != target
    assert chosen.fits["source"][0]["best_epoch"] == 1 + int(np.argmax(target))
    assert chosen.fits["target"] == plain.fits["target"]  # SUP is chosen by the dev set of its own language
    assert "dev trans" in transfer.data.sets and list(transfer.tests)[-3:] == ["parent dev", "zs dev", "sup dev"]


@pytest.mark.parametrize("own", [False, True], ids=["derived", "natural"])
def test_zero_shot_alone(run, own, tmp_path):
    """Without SUP nothing is trained on the target language, and all else is as with it."""
    pretrained = replace(run, natural=own)
    target = {"target": dict.fromkeys(("train", "test"), f"{MINI}&seed=1")} if own else {}
    whole, alone = (transfer_of(pretrained, **target, tested_on="both", sup=sup) for sup in (True, False))
    alone.check()
    found, zero_shot = whole.run(0), alone.run(0)
    assert zero_shot.scores == {test: scores for test, scores in found.scores.items() if "sup" not in test}
    assert zero_shot.fits == {"source": found.fits["source"], "target": []} and found.fits["target"]
    assert alone.fingerprint != whole.fingerprint and alone.config.of_source == whole.config.of_source
    file = ResultFile(tmp_path / "t.json", alone.fingerprint)
    file.add(alone, zero_shot)
    saved = json.loads(file.path.read_text())
    assert [line[0] for line in rows_of(saved)] == ["parent", "zs", "parent dev", "zs dev"]


def test_scores_of_dev_sets(run, tmp_path):
    """Beside those of the test sets, or in their place; they are those that the epoch was chosen by."""
    both = transfer_of(run, **SEVERAL, tested_on="both", chosen_by="target")
    file = ResultFile(tmp_path / "t.json", both.fingerprint)
    found = both.run(0)
    file.add(both, found)
    saved = json.loads(file.path.read_text())
    assert [line[0] for line in rows_of(saved)] == ["parent", "sup", "zs", "delta", "parent dev", "sup dev", "zs dev"]
    assert result_table(saved).row_count == 7
    for role, test in (("source", "zs dev"), ("target", "sup dev")):
        fit = found.fits[role][0]
        assert found.scores[test]["accuracy"] == pytest.approx(fit["epochs"][fit["best_epoch"] - 1]["dev"], abs=1e-3)
    alone = transfer_of(run, **SEVERAL, tested_on="dev", chosen_by="target").run(0)
    assert alone.scores == {test: found.scores[f"{test} dev"] for test in ("parent", "zs", "sup")}


def test_a_natural_dev_set_of_a_further_language(run, tmp_path):
    """Selection by written sentences equals selection by the same sentences derived on the way."""
    derived = transfer_of(run, **SEVERAL, chosen_by="mean", dev_also=[{"language": "trans+inv"}], sup=False)
    lines = []
    batch = derived.data.sets["dev trans+inv"].batch
    tags = batch.corpus.columns["upos"].values()
    for i in range(len(batch)):
        words, start = batch.corpus[i].words, int(batch.corpus.offsets[i])
        rows = ["\t".join((str(n + 1), w, "_", tags[start + n], *"______")) for n, w in enumerate(words)]
        lines += [*rows, ""]
    (tmp_path / "x.conllu").write_text("\n".join([*lines, ""]), encoding="utf-8")
    also = [{"language": "trans+inv", "dev": f"pos:conllu:{tmp_path / 'x.conllu'}"}]
    natural = transfer_of(run, **SEVERAL, chosen_by="mean", dev_also=also, sup=False)
    assert natural.run(0).fits["source"] == derived.run(0).fits["source"]
    assert natural.fingerprint != derived.fingerprint
    nowhere = {"chosen_by": "mean", "dev_also": [{"language": "nowhere"}]}
    assert refusal(transfer_of, run, **SEVERAL, **nowhere).keys == ("dev_also", "0", "language")


def test_saved_models_are_those_of_finished_seeds(plain, tmp_path):
    """As an interrupted call: the first seed is finished, and its model is neither made nor written again."""
    model, settings = str(plain[2] / "seed-0"), config(language="trans+inv")
    whole = transfer_command(model, settings, 2, tmp_path / "whole.json", tmp_path / "whole")
    out, kept = transfer_command(model, settings, 1, tmp_path / "t.json", tmp_path / "kept"), tmp_path / "kept"
    before = {path: path.stat().st_mtime_ns for path in (kept / "seed-0").rglob("*")}
    assert refused(transfer_command, model, settings, 2, out, tmp_path / "elsewhere") == ("t.json", "exists")
    transfer_command(model, settings, 2, out, kept)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert out.read_bytes() == whole.read_bytes().replace(b"whole.predictions", b"t.predictions")
    for path in (tmp_path / "whole").rglob("*.*"):
        assert (kept / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes()
    (kept / "seed-1" / "done.json").unlink()
    assert refused(transfer_command, model, settings, 2, out, kept) == ("t.json", "exists")


def test_seeds_are_added_and_another_transfer_is_refused(plain, tmp_path):
    transfer, first, _ = plain
    path, name = tmp_path / "t.json", transfer.fingerprint
    ResultFile(path, name).add(transfer, first)
    before = json.loads(path.read_text())
    again = ResultFile(path, name)
    assert list(again.seeds) == [0]
    again.add(transfer, transfer.run(1))
    after = json.loads(path.read_text())
    assert after["seeds"][0] == before["seeds"][0] and len(after["seeds"]) == 2
    assert after["all"]["parent"]["runs"] == 2
    assert refused(ResultFile, path, "another") == ("t.json", "exists")


def test_a_result_depends_on_what_named_files_hold_and_not_on_where_they_are(run, tmp_path):
    def fingerprints(name, links, words):
        folder = tmp_path / name
        folder.mkdir()
        for file, text in (("text", "a b ||| c d\nthe cat ||| the cat\n"), ("links", links), ("words", words)):
            (folder / file).write_text(text)
        links = {"kind": "file", "path": str(folder / "links")}
        aligned = {"pairs": {"x": {"kind": "text", "joint": str(folder / "text"), "links": links}}, "data": {"dev": 0}}
        words = {"supervision": "dictionary", "dictionary": str(folder / "words")}
        rotations = ({"rotation": aligned, "features": FROZEN}, {"rotation": words, "features": FROZEN})
        return [transfer_of(run, **settings).fingerprint for settings in ({"continual": aligned}, *rotations)]

    first = fingerprints("one", "0-0\n0-0 1-1\n", "the тхе\n")
    assert fingerprints("two", "0-0\n0-0 1-1\n", "the тхе\n") == first
    other = fingerprints("three", "0-1\n0-0 1-1\n", "the тхе\na а\n")
    assert all(a != b for a, b in zip(first, other, strict=True)) and len(set(first)) == 3


def test_a_killed_transfer_goes_on_to_the_same_result(run, tmp_path, monkeypatch):
    settings = {"fine_tune": {**FAST, "epochs": 3}, "train_items": 30}
    whole = transfer_of(run, **settings).run(0)
    epochs = []
    real = fit._Fit.epoch

    def dies(self, epoch, history):
        epochs.append(epoch)
        if len(epochs) == 3:
            raise KeyboardInterrupt
        return real(self, epoch, history)

    monkeypatch.setattr(fit._Fit, "epoch", dies)
    with pytest.raises(KeyboardInterrupt):
        transfer_of(run, **settings).run(0, tmp_path / "work")
    assert transfer_of(run, **settings).run(0, tmp_path / "work") == whole
    assert epochs == [0, 1, 2, 2, 0, 1, 2]  # two epochs were not trained again


def test_a_search_keeps_the_best_settings_by_the_source_dev_set(run):
    search = {"fine_tune.learning_rate": [1e-6, 3e-3, 5e-3]}
    found = transfer_of(run, sup=False, search=search, best=2).run(0)
    kept = found.fits["source"]
    assert len(kept) == 2 and all("1e-06" not in record["setting"] for record in kept)
    assert {part.setting for part in found.predictions} == {0, 1}
    scores = []
    for part in found.predictions:
        if part.test == "zs":
            pairs = [pair for words in zip(part.gold, part.predicted, strict=True) for pair in zip(*words, strict=True)]
            scores.append(np.mean([right == said for right, said in pairs]))
    assert found.scores["zs"]["accuracy"] == pytest.approx(100 * np.mean(scores), abs=1e-3)


def test_separate_parts_and_mixed_pairs(tmp_path):
    found = transfer_of(random_run(tmp_path, **SEPARATE), task="nli", mixed=True).run(0)
    assert set(found.scores) == {"parent", "zs", "sup", "mixed premise", "mixed hypothesis"}
    assert all(0 <= scores["accuracy"] <= 100 for scores in found.scores.values())


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_model_of_hugging_face(tmp_path, kind):
    folder = str(save_model(tmp_path / kind, kind))
    pretrained = open_pretrained(folder, "inv")
    assert pretrained.source.bert == (kind == "bert")
    found = transfer_of(pretrained, task="nli", length=16, language="inv", train_items=20).run(0)
    assert {"parent", "zs", "sup"} == set(found.scores)
    assert refused(transfer_of, pretrained, train=None, length=16) == ("train", "missing")
    assert refused(transfer_of, pretrained, length=128) == ("length", "range")
    assert refused(open_pretrained, folder, None) == ("language", "missing")
    assert "--target-test SOURCE" in refusal(open_pretrained, folder, "fr").hint
    assert refused(open_pretrained, folder, "d e", natural=True) == ("language", "format")


@pytest.mark.parametrize(
    ("language", "code", "is_there"), [("fr", "unknown", False), ("enn", "unknown", True), ("en", "conflict", True)]
)
def test_a_natural_language_of_the_run_without_items_of_its_own_has_a_hint(language, code, is_there):
    own = [{"source": MINI, "language": "parent"}, {"name": "en", "source": f"{MINI}&seed=1", "language": "parent"}]
    config = parse(PretrainConfig, changed(PRETRAIN, language=None, languages=own, objective={"kind": "mlm"}))
    error = refusal(requested_language, config, language, natural=False)
    assert (place_and_code(error), "--target-test SOURCE" in error.hint) == (("language", code), is_there)
    hint = refusal(requested_language, config, language, natural=False, remedy="its own remedy").hint
    assert ("its own remedy" in hint, "--target-test" in hint) == (is_there, False)


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        ("name: x\ntransforms: [\n", "x.yaml:3 language", "format"),
        ("name: x\ntransforms: [{kind: scrip}]\n", "x.yaml language.transforms.0.kind", "unknown"),
    ],
)
def test_a_wrong_file_of_a_language_is_named(tmp_path, text, place, code):
    (tmp_path / "x.yaml").write_text(text)
    own = parse(PretrainConfig, PRETRAIN)
    assert refused(requested_language, own, str(tmp_path / "x.yaml"), natural=False) == (place, code)


def test_the_summary_of_a_metric_by_hand():
    """Two seeds of four items: means, and no interval over one seed."""
    said = {"parent": ("abab", "abaa"), "zs": ("aaaa", "bbbb"), "sup": ("abab", "abab")}
    parts = [
        Predictions(test, seed, 0, tuple("1234"), list("abab"), list(p))
        for test, seeds in said.items()
        for seed, p in enumerate(seeds)
    ]
    found = result.summary(NLI["accuracy"], parts, "name")
    assert (found["parent"]["mean"], found["zs"]["mean"], found["delta"]["mean"]) == (87.5, 50.0, 50.0)
    assert found["delta"]["runs"] == 2 and found["delta"]["seeds_low"] == 50.0
    one = result.summary(NLI["accuracy"], [p for p in parts if p.seed == 0], "name")
    assert one["parent"]["seeds_low"] is None and one["zs"]["low"] is not None


def treebank(path, *words, tag="NOUN"):
    rows = [f"{i}\t{word}\t_\t{tag}\t_\t_\t{i - 1}\tx\t_\t_" for i, word in enumerate(words, start=1)]
    path.write_text("\n".join(rows) + "\n\n")
    return str(path)


def questions(folder, context, answer, count):
    """Splits of questions (train and test) with one answer each."""
    start = context.index(answer)
    for split in ("train", "test"):
        asked = [
            {"id": str(n), "question": f"{split} {n} ?", "answers": [{"text": answer, "answer_start": start}]}
            for n in range(count)
        ]
        squad = {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": asked}]}]}
        (folder / f"{split}.json").write_text(json.dumps(squad))
    return str(folder)


CANNOT_BE_TRANSFERRED: list[tuple[dict[str, Any], str | None, str]] = [
    ({"length": 64}, "length", "range"),
    ({"test": f"{MINI}#train"}, "test", "conflict"),
    ({"train": "builtin:mini-english?types=500&sentences=20&dev=5&test=0"}, None, ""),
    ({"best": 3, "search": {"fine_tune.rows": [8, 16]}}, "best", "range"),
    ({"search": {"features.layers": [[0], [99]]}}, None, ""),
    ({"rotation": {"supervision": "dictionary", "dictionary": "/none/en-xx.txt"}}, None, ""),
]
"""Settings, place and code. No place: the owner of the source, the layers or the dictionary tests its refusal."""


@pytest.mark.parametrize(("settings", "place", "code"), CANNOT_BE_TRANSFERRED)
def test_what_cannot_be_transferred_is_refused_before_any_fit(run, settings, place, code):
    error = refusal(lambda: transfer_of(run, **settings).check())
    assert place is None or place_and_code(error) == (place, code)


def test_sets_of_files_that_cannot_be_transferred(run, tmp_path):
    names = {name: treebank(tmp_path / f"{name}.conllu", f"{name}1", f"{name}2") for name in "abc"}
    (tmp_path / "bank").mkdir()
    for split, tag in (("train", "NOUN"), ("dev", "NOUN"), ("test", "_")):
        treebank(tmp_path / "bank" / f"x-{split}.conllu", split, tag=tag)
    (tmp_path / "renamed").mkdir()
    for split, tag in (("train", "NOUN"), ("dev", "NOUN"), ("test", "Noun")):
        treebank(tmp_path / "renamed" / f"x-{split}.conllu", split, tag=tag)
    answered = questions(tmp_path, "the big old cat sat on the mat", "old", 20)
    own = {"train": names["a"], "dev": names["b"], "test": names["c"], "language": "b"}
    natural = replace(run, natural=True)
    for pretrained, settings, place, code in (
        (run, {"train": names["a"]}, "test", "missing"),
        (run, {"train": str(tmp_path / "bank")}, "source test", "empty"),
        (run, {"train": str(tmp_path / "renamed")}, "source test", "conflict"),
        (run, {"task": "qa", "train": answered, "score": {"metric": "no_answer"}}, "source test", "empty"),
        (run, {"dev": f"{MINI}#test"}, "dev", "conflict"),
        # a test set of one language is not trained on or chosen by in the other
        (natural, {**own, "target": {"test": names["b"]}}, "target.test", "conflict"),
        (natural, {**own, "target": {"test": names["a"]}}, "target.test", "conflict"),
        (natural, {**own, "target": {"test": f"{MINI}#test", "train": names["c"]}}, "test", "conflict"),
    ):
        error = refusal(lambda: transfer_of(pretrained, **settings).check())  # noqa: B023  called at once
        assert place_and_code(error) == (place, code)


def test_without_alpha_nothing_is_aligned(run, plain):
    unknown = replace(run, text=None)
    assert transfer_of(unknown, sup=False, continual={"alpha": 0.0}).run(0).fits["source"] == plain[1].fits["source"]


def test_a_score_without_items_is_null_and_drops_of_a_cut_set_are_told_once(run, tmp_path):
    transfer = transfer_of(run, task="qa", train=questions(tmp_path, "the well-known cat sat", "known cat", 20))
    assert transfer.run(0).scores["zs"]["no_answer"] is None
    found = drops(transfer)
    (widened,) = (reason for reason in found["source train"] if "widened" in reason)
    assert found["source train"][widened] == 20 and widened not in found.get("source dev", {})


def test_a_result_tells_what_was_aligned(run):
    continual = transfer_of(run, sup=False, train_items=20, continual={"alpha": 0.1, "rows": 4})
    continual.run(0)
    pretraining = facts(continual)["aligned"]["pretraining"]
    assert pretraining["counts"]["sentence pairs to train on"] > 0 and pretraining["fingerprint"]
    rotated = transfer_of(run, sup=False, train_items=20, rotation={}, features=FROZEN)
    rotated.run(0)
    assert facts(rotated)["rotations"][0]["layers"][0]["pairs"] > 0
    assert facts(rotated)["aligned"].keys() == {"pretraining"}


def test_a_fine_tuned_model_with_a_rotation(run):
    """A rotation of the target does not change the source. A rotation of the source is part of the training."""

    def rotated(**settings):
        transfer = transfer_of(run, sup=False, task="nli", train_items=40, **settings)
        return transfer, transfer.run(0)

    _, plain = rotated()
    target, found = rotated(rotation={"moves": "target", "supervision": "sentences"})
    assert found.fits["source"] == plain.fits["source"] and found.scores["parent"] == plain.scores["parent"]
    model, _ = target._fit(target.config, "source", 0, "", None)
    batch = target.examples("target test").batch(np.arange(8))
    (fitted,) = target._rotations.values()
    bare = copy.copy(model.features)
    bare.rotations = {}
    with torch.no_grad():
        torch.testing.assert_close(model.features(batch), fitted.apply(bare(batch), 0))
        assert not torch.allclose(model.features(batch), bare(batch), atol=1e-3)
    assert rotated(rotation={"moves": "source"})[1].fits["source"] != plain.fits["source"]
    assert refused(config, task="nli", mixed=True, rotation={}) == ("mixed", "conflict")


@pytest.mark.parametrize(
    ("settings", "own_parts", "architecture", "place", "code"),
    [
        ({"features": {"tune": "none"}}, False, "", "features.tune", "conflict"),
        ({"search": {"features.tune": ["all", "none"]}}, False, "", "search.features.tune", "conflict"),
        ({"rotation": {}}, False, "", "rotation", "conflict"),
        ({}, False, "xlm", "", "unsupported"),
        ({}, True, "", "", "unsupported"),
    ],
)
def test_a_body_that_is_not_one_model(settings, own_parts, architecture, place, code):
    assert refused(check_one_model, config(**settings), own_parts, architecture) == (place, code)
