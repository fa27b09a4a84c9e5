"""Test sets that are translations, with one text in each language; parsed sets; what is no set to train or test on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probes.transfer.config import TransferConfig
from probes.transfer.run import Transfer
from probes.transfer.splits import (
    ONE_ONLY,
    OTHER_LABEL,
    Split,
    check_columns,
    load_data,
    mixed_batches,
    open_splits,
    with_morphology,
)
from synthlang.config import parse
from synthlang.corpus import Column
from synthlang.language import parse_language
from synthlang.tasks import open_task
from synthlang.tasks.batch import TaskBatch, join_batches
from synthlang.tasks.derive import derive_task
from tests.refusals import refusal, refused
from tests.task_cases import CONTEXT, QUESTION, random_batch
from tests.test_tasks_derive import Parser as Trees

SEEDS = range(4)
MINI = "builtin:mini-english?types=500&sentences=150&dev=30&test=40"


def answers(batch: TaskBatch) -> dict[str, list[str]]:
    """Item → its answers as texts."""
    words, spans = batch.corpus.form.values(), batch.answers
    found: dict[str, list[str]] = {name: [] for name in batch.ids}
    for item, start, stop in zip(spans.item.tolist(), spans.start.tolist(), spans.stop.tolist(), strict=True):
        found[batch.ids[item]].append(" ".join(words[start:stop]))
    return found


def in_other_words(batch: TaskBatch, order: Any) -> TaskBatch:
    """Return the same items in another order, with other words and no shared text."""
    again = join_batches([batch.take(np.array([i])) for i in order])
    form = again.corpus.form
    assert form.names is not None
    moved = form.map_names([f"other-{name}" for name in form.names])
    return replace(again, corpus=replace(again.corpus, columns={**again.corpus.columns, "form": moved}))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("field", [QUESTION, CONTEXT])
def test_one_text_is_of_the_other_language_and_answers_are_where_the_context_is(seed, field):
    rng = np.random.default_rng(seed)
    source = random_batch(rng, 12)
    target = in_other_words(source, rng.permutation(12))
    mixed = mixed_batches(source, target)[field]
    assert mixed.ids == source.ids and mixed.counts == {} and mixed.label is not None and source.label is not None
    assert mixed.label.values() == source.label.values() and mixed.extra == source.extra
    assert mixed.strings(1 - field) == source.strings(1 - field)
    assert mixed.strings(field) == [" ".join(f"other-{w}" for w in text.split()) for text in source.strings(field)]
    of_context = answers(target if field == CONTEXT else source)
    assert answers(mixed) == of_context and any(of_context.values())
    assert (np.diff(mixed.answers.item) >= 0).all()
    some = mixed.take(np.array([1, 4, 5]))  # a batch like any other
    assert answers(some) == {name: of_context[name] for name in some.ids}


def test_only_what_both_have_with_one_label_is_taken_up_to_a_limit():
    source = random_batch(np.random.default_rng(7), 40)
    target = in_other_words(source, range(39, -1, -1)).take(np.arange(2, 40))  # without the last two of the source
    assert source.label is not None and target.label is not None
    labels = target.label.values()
    labels[0] = "no" if labels[0] == "yes" else "yes"
    mixed = mixed_batches(source, replace(target, label=Column.of(labels)))[QUESTION]
    wanted = [name for name in source.ids if name in target.ids and name != target.ids[0]]
    assert mixed.ids == tuple(wanted) and len(wanted) == 37
    assert mixed.counts == {ONE_ONLY: 2, OTHER_LABEL: 1}
    assert mixed_batches(source, target, 5)[CONTEXT].ids == source.ids[:5]
    few = target.take(np.arange(8, 20))  # as MLQA: a language has a part of the questions
    assert sorted(mixed_batches(source, few)[QUESTION].ids) == sorted(few.ids)


def test_sets_that_are_no_translations_are_refused():
    rng = np.random.default_rng(1)
    source = random_batch(rng, 40)
    others = replace(random_batch(rng, 12), ids=tuple(f"x{i}" for i in range(12)))
    assert refused(mixed_batches, source, others) == ("mixed", "conflict")
    assert source.label is not None
    labels = source.label.values()
    labels[:5] = ["no" if label == "yes" else "yes" for label in labels[:5]]
    assert refused(mixed_batches, source, replace(source, label=Column.of(labels))) == ("mixed", "conflict")


# --- in a transfer ---


def config(**settings: Any) -> TransferConfig:
    fine_tune = {"epochs": 1, "learning_rate": 3e-3}
    return parse(
        TransferConfig, {"task": "nli", "train": MINI, "length": 48, "mixed": True, "fine_tune": fine_tune, **settings}
    )


def write_pairs(path: Path, batch: TaskBatch, rows: Any) -> None:
    assert batch.label is not None
    texts = zip(batch.strings(0), batch.strings(1), batch.label.values(), strict=True)
    lines = ["\t".join(pair) for pair in texts]
    path.write_text("\n".join(["premise\thypothesis\tlabel", *(lines[row] for row in rows)]) + "\n")


@pytest.fixture(scope="module")
def files(run, tmp_path_factory):
    """The built-in pairs, and the test set derived, as files of two natural languages."""
    folder = tmp_path_factory.mktemp("files")
    derived = load_data(config(), run)
    (folder / "en").mkdir()
    for split in ("train", "dev", "test"):
        batch = derived.sets[f"source {split}"].batch
        write_pairs(folder / "en" / f"{split}.tsv", batch, range(len(batch)))
    batch = derived.sets["target test"].batch
    write_pairs(folder / "xx.tsv", batch, range(len(batch)))
    return folder, derived


def test_it_is_what_a_derived_language_has(run, files):
    """The natural language here is a derived one that was written to files."""
    folder, derived = files
    natural = replace(run, natural=True)
    settings = config(train=f"nli:{folder / 'en'}", target={"test": f"nli:{folder / 'xx.tsv'}"})
    found = load_data(settings, natural)
    assert {name for name in found.sets if name.startswith("mixed")} == {"mixed premise", "mixed hypothesis"}
    for name, items in found.sets.items():
        wanted = derived.sets[name]
        assert [items.batch.strings(field) for field in (0, 1)] == [wanted.batch.strings(field) for field in (0, 1)]
        assert [reader.role for reader in items.readers] == [reader.role for reader in wanted.readers]
    one, other = (Transfer(*parts).run(0).scores for parts in ((run, derived, config()), (natural, found, settings)))
    assert {name: other[name] for name in ("parent", "zs", "mixed premise", "mixed hypothesis")} == {
        name: scores for name, scores in one.items() if name != "sup"
    }
    few = load_data(config(**{**settings.model_dump(exclude_unset=True), "test_items": 6}), natural)
    assert len(few.sets["mixed premise"].batch) == len(few.sets["target test"].batch) == 6


@pytest.mark.parametrize("natural", [False, True], ids=["derived", "natural"])
def test_each_item_once_with_a_text_that_is_drawn(run, files, natural):
    """As if of the items with each text in turn one were drawn: the same rows, and what the same model says of them."""
    folder, _ = files
    settings = {"train": f"nli:{folder / 'en'}", "target": {"test": f"nli:{folder / 'xx.tsv'}"}} if natural else {}
    model = replace(run, natural=natural)
    found, said = {}, {}
    for how in (True, "random"):
        data = load_data(config(mixed=how, **settings), model)
        found[how] = {name: items.batch for name, items in data.sets.items() if name.startswith("mixed ")}
        result = Transfer(model, data, config(mixed=how, **settings)).run(0)
        said[how] = {part.test: dict(zip(part.ids, part.predicted, strict=True)) for part in result.predictions}
        scores = result.scores
    assert {name for name in said["random"] if name.startswith("mixed")} == {"mixed random"}
    ids = [one for batch in found["random"].values() for one in batch.ids]
    assert sorted(ids) == sorted(found[True]["mixed premise"].ids) and len(ids) == 40
    for name, batch in found["random"].items():
        assert 10 < len(batch) < 30
        texts = dict(zip(found[True][name].ids, zip(*map(found[True][name].strings, (0, 1)), strict=True), strict=True))
        assert [texts[one] for one in batch.ids] == list(zip(*map(batch.strings, (0, 1)), strict=True))
        assert [said["random"]["mixed random"][one] for one in batch.ids] == [
            said[True][name][one] for one in batch.ids
        ]
    gold: dict[str, str] = {}
    for batch in found["random"].values():
        assert batch.label is not None
        gold |= dict(zip(batch.ids, batch.label.values(), strict=True))
    right = [said["random"]["mixed random"][one] == label for one, label in gold.items()]
    assert scores["mixed random"]["accuracy"] == pytest.approx(100 * np.mean(right), abs=1e-3)


def test_trees_of_one_set_alone_are_no_matter(run, files, monkeypatch):
    """A parser reads the source's sets, the target's stay as they are."""
    folder, _ = files
    monkeypatch.setattr("synthlang.parsing.open_engine", lambda spec, **_: None)
    monkeypatch.setattr("synthlang.parsing.ParsedSource", lambda source, engine, report: Trees(source))
    settings = {"train": f"nli:{folder / 'en'}", "target": {"test": f"nli:{folder / 'xx.tsv'}"}}
    natural = replace(run, natural=True)
    plain, with_trees = (load_data(config(**settings, **more), natural) for more in ({}, {"parser": "spacy:en"}))
    assert "upos" in with_trees.sets["source test"].batch.corpus.columns
    for field in ("premise", "hypothesis"):
        one, other = (data.sets[f"mixed {field}"].batch for data in (plain, with_trees))
        assert [other.strings(number) for number in (0, 1)] == [one.strings(number) for number in (0, 1)]
        assert (other.ids, other.counts) == (one.ids, one.counts)


# --- real data ---


def test_a_language_that_reads_lemmas_gets_them_without_another_fingerprint_of_the_items():
    splits = {"train": Split(open_task(f"pos:{MINI}"), "train")}
    [plain, more] = [splits["train"], with_morphology(splits, [parse_language("impossible/word-hop")])["train"]]
    assert "lemma" not in plain.task.columns and {"feats", "lemma"} <= {*more.task.columns}
    assert more.fingerprint == plain.fingerprint and more.items().strings(0) == plain.items().strings(0)
    assert with_morphology(splits, [parse_language("sov")])["train"] is plain
    check_columns(parse_language("impossible/word-hop"), splits)  # the items can get the column


@pytest.mark.parametrize(
    ("language", "hint"), [("impossible/word-hop", "a pipeline with a lemmatizer"), ("sov", "a pipeline with a parser")]
)
def test_items_without_a_column_of_the_language_are_refused(tmp_path, language, hint):
    (tmp_path / "train.txt").write_text("Anna B-PER\nruns O\n\n")
    splits = {"train": Split(open_task(f"ner:iob:{tmp_path}"), "train")}
    error = refusal(check_columns, parse_language(language), splits)
    assert (error.keys, error.code) == (("language",), "missing") and hint in error.hint


@pytest.mark.parametrize(
    ("keys", "place", "hint"),
    [
        ({}, "test", "set this key to test items, as in SOURCE#test"),
        ({"test": "#test"}, "test", "set this key to test items, as in SOURCE#test"),
        ({"dev": "#test", "test": "#dev"}, "dev", "choose one of its splits, as in {0}#train"),
        ({"train": "#test"}, "train", "choose one of its splits, as in {0}#train"),
        ({"language": "de", "target": {"test": "/#test"}, "test": "#dev"}, "target.test", "as in {0}/#dev"),
    ],
)
def test_a_source_without_the_split_names_the_key(tmp_path, keys, place, hint):
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conllu").write_text("1\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n")
    source = f"pos:{tmp_path}"
    named = {k: {"test": source + v["test"]} if isinstance(v, dict) else v for k, v in keys.items()}
    named = {k: source + v if isinstance(v, str) and "#" in v else v for k, v in named.items()}
    error = refusal(open_splits, parse(TransferConfig, {"task": "pos", "train": source, **named}), None, 64)
    assert (".".join(error.keys), error.code) == (place, "missing") and hint.format(source) in error.hint


def test_training_items_in_another_order_leave_the_test_items(run, tmp_path):
    """SQuAD with the verb last (Impact, section 5.3): the same words with the object before the verb."""
    plain, moved = (load_data(config(mixed=False, sup=False, **own), run) for own in ({}, {"train_language": "sov"}))
    for name in ("source test", "target test"):
        assert moved.sets[name].batch.strings(0) == plain.sets[name].batch.strings(0)
    changed = 0
    for name in ("source train", "source dev"):
        before, after = (data.sets[name].batch for data in (plain, moved))
        derived, _ = derive_task(before, parse_language("sov"))
        assert after.ids == derived.ids and after.strings(0) == derived.strings(0)
        assert [sorted(text.split()) for text in after.strings(0)] == [
            sorted(text.split()) for text in before.strings(0)
        ]
        changed += sum(a != b for a, b in zip(after.strings(0), before.strings(0), strict=True))
    assert changed > 50
    assert plain.fingerprints["source"] != moved.fingerprints["source"]
    settings = config(mixed=False, sup=False, train_language="sov", train_items=32)
    found = Transfer(run, load_data(settings, run), settings).run(0, tmp_path / "fits")
    assert {one.test for one in found.predictions} == {"parent", "zs"}


@pytest.mark.parametrize("change", [{"sup": True}, {"sup": False, "chosen_by": "mean"}])
def test_what_needs_training_items_in_their_own_order_is_refused(change):
    assert refused(config, mixed=False, train_language="sov", **change) == ("train_language", "conflict")
