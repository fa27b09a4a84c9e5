"""Batches: the same rows however they are split, fixed shapes, groups that tell the truth; those of a config."""

from dataclasses import fields
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pretrain.build import dev_batches, sampling_weights, train_batches
from pretrain.config import PretrainConfig
from pretrain.data.batch import Batch, RowSource, Span
from pretrain.data.batches import Batches, Epochs
from pretrain.data.quotas import Draws, Quotas, Stages
from pretrain.data.sources import CopiesRows, ParallelRows, SentenceRows, StreamRows
from pretrain.objectives.table import NAMES
from pretrain.prepare import prepare
from synthlang.config import parse
from synthlang.rng import key_of
from synthlang.store import Store
from synthlang.vocabularies import OURS
from tests.data_cases import SHOWING, parallel_of, random_sentences, shards_of
from tests.refusals import refused
from tests.tiny import PRETRAIN, changed

LENGTH = 16
FIELDS = ("input_ids", "languages", "masked", "labels", "terms", "positions", "valid", "sentences", "samples")
TEXTS = [random_sentences(n, 6, seed=n, low=low, shortest=1) for n, low in ((300, 10), (90, 100), (200, 200))]


def sources_of(kind):
    packing = partial(SentenceRows, alone="alone" in kind) if "sentences" in kind else StreamRows
    sources: list[RowSource] = [packing(shards_of(t), i, LENGTH, OURS, str(i)) for i, t in enumerate(TEXTS)]
    if "tlm" in kind:
        pairs = parallel_of(TEXTS[0][:90], TEXTS[1])
        sources.append(ParallelRows(pairs, 0.8, LENGTH, OURS, 0, "0+1", alone="alone" in kind))
    return sources


def batches(kind="stream", seed=0, rows=12, exponent=0.7, masker=None):
    sources = sources_of(kind)
    weights = sampling_weights(sources[:3], [len(t) for t in TEXTS], exponent, sources[3:])
    key = key_of("source", seed) if "one" in kind else None
    quotas: Quotas | Draws | Stages = Quotas(weights, rows) if key is None else Draws(weights, rows, key)
    if "stages" in kind:
        quotas = Stages([0, 5, 9], [[1, 0, 0], [0, 3, 1], weights], 20, rows, key)
    return Batches(sources, quotas, masker or SHOWING, seed)


KINDS = ["stream", "sentences", "sentences alone", "stream tlm", "sentences tlm", "sentences alone tlm"]
KINDS += ["stream, one language", "sentences alone tlm, one language"]
KINDS += ["stream, stages", "stream, stages, one language"]


def by_sample(parts):
    """All fields of all rows, in the order of their numbers."""
    samples = np.concatenate([p.samples for p in parts])
    order = np.argsort(samples)
    joined = {n: [getattr(p, n) for p in parts] for n in FIELDS}
    return {n: None if values[0] is None else np.concatenate(values)[order] for n, values in joined.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_processes_and_micro_batches_split_the_same_rows(kind):
    data = batches(kind)
    for step in (0, 7, 1000):
        whole = by_sample([data.batch(step)])
        assert whole["samples"].tolist() == list(range(step * 12, step * 12 + 12))
        for parts in (1, 2, 3, 4, 6, 12):
            split = by_sample([data.batch(step, part, parts) for part in range(parts)])
            for name in FIELDS:
                assert np.array_equal(split[name], whole[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_groups_cover_the_rows_and_their_spans_are_right(kind):
    data = batches(kind)
    orders = [source.spans for source in data.sources]
    for step in range(20):
        for part in range(2):
            batch = data.batch(step, part, 2)
            assert [g.start for g in batch.groups] == [0, *(g.stop for g in batch.groups[:-1])]
            assert batch.groups[-1].stop == 6
            assert [orders.index(g.spans) for g in batch.groups] == sorted(orders.index(g.spans) for g in batch.groups)
            for group in batch.groups:
                for start, stop, member in group.spans:
                    rows = slice(group.start, group.stop)
                    real = batch.input_ids[rows, start:stop] != OURS.pad
                    assert (batch.languages[rows, start:stop][real] == member).all()
                    # words of member m of the texts above stand in a range of their own
                    words = batch.input_ids[rows, start:stop]
                    words = words[words >= 5]
                    assert ((10, 100, 200)[member] <= words).all() and (words < (100, 200, 300)[member]).all()
                term = NAMES.index("tlm" if len(group.spans) == 2 else "mlm")
                assert (batch.terms[group.start : group.stop] == term).all()


def test_parts_have_their_share_of_every_source():
    data = batches("stream tlm")
    for step in range(20):
        sizes = []
        for part in range(3):
            groups = {g.spans: g.stop - g.start for g in data.batch(step, part, 3).groups}
            sizes.append([groups.get(source.spans, 0) for source in data.sources])
        assert (np.ptp(sizes, axis=0) <= 1).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", [1, 3])
def test_every_row_of_an_epoch_is_seen_once(kind, parts):
    """Counted from the batches alone, over two epochs of every source."""
    data = batches(kind)
    seen: dict[tuple[Span, ...], list[bytes]] = {source.spans: [] for source in data.sources}
    step = 0
    while any(len(seen[s.spans]) < 2 * s.rows for s in data.sources):
        pieces = [data.batch(step, part, parts) for part in range(parts)]
        found = [
            (number, group.spans, row.tobytes())
            for b in pieces
            for group in b.groups
            for number, row in zip(
                b.samples[group.start : group.stop], b.input_ids[group.start : group.stop], strict=True
            )
        ]
        for _, spans, row in sorted(found):
            seen[spans].append(row)
        step += 1
    for source in data.sources:
        expected = sorted(row.tobytes() for row in source.read(np.arange(source.rows)).ids)
        first, second = (seen[source.spans][e * source.rows : (e + 1) * source.rows] for e in range(2))
        assert sorted(first) == sorted(second) == expected
        assert first != second


@pytest.mark.parametrize("kind", ["stream, one language", "stream tlm, one language"])
def test_a_batch_of_one_language(kind):
    """All rows of a step, and of its parts, are of one source; each is drawn about as often as its weight says."""
    data, orders = batches(kind), [source.spans for source in batches(kind).sources]
    drawn = []
    for step in range(150):
        parts = [data.batch(step, part, 3) for part in range(3)]
        (spans,) = {group.spans for part in parts for group in part.groups}
        assert [part.groups[0].stop for part in parts] == [4, 4, 4]
        drawn.append(orders.index(spans))
    weights = sampling_weights(data.sources[:3], [len(t) for t in TEXTS], 0.7, data.sources[3:])
    assert np.bincount(drawn) / 150 == pytest.approx(np.asarray(weights, float), abs=0.12)
    other = batches(kind, seed=1)
    assert drawn[:30] != [orders.index(other.batch(step).groups[0].spans) for step in range(30)]


@pytest.mark.parametrize("parts", [1, 3])
def test_stages_continue_the_rows_of_a_language(parts):
    """Samples of each source are those of its epochs in order, whatever stage they are in."""
    data = batches("stream, stages")
    seen: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    for step in range(12):
        pieces = [data.batch(step, part, parts) for part in range(parts)]
        step_rows = sorted(
            (number, int(batch.languages[row, 0]), batch.input_ids[row].tobytes())
            for batch in pieces
            for row, number in enumerate(batch.samples)
        )
        languages = {language for _, language, _ in step_rows}
        assert languages == ({0} if step < 5 else {1, 2} if step < 9 else {0, 1, 2})
        for _, language, row in step_rows:
            seen[language].append(row)
    assert len(seen[0]) > 60 and len(seen[1]) > 36 and len(seen[2]) > 12
    for language, found in seen.items():
        source = data.sources[language]
        expected = source.read(Epochs(0, language, source.rows).rows_of(np.arange(len(found)))).ids
        assert [row.tobytes() for row in expected] == found


def test_samples_of_any_numbers():
    data = batches("stream tlm")
    assert not np.array_equal(batches("stream tlm", seed=1).batch(3).input_ids, data.batch(3).input_ids)
    numbers = np.asarray([40, 3, 11, 12, 500])
    read = data.samples(numbers)
    assert sorted(read.samples) == sorted(numbers)
    for row, number in enumerate(read.samples):
        step = data.batch(int(number) // 12)
        assert np.array_equal(step.input_ids[step.samples == number][0], read.input_ids[row])
    assert all(a.stop == b.start for a, b in pairwise(read.groups))


SOURCE = "builtin:mini-english?types=500&sentences=300&dev=60&test=40"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


def config_of(objective="mlm", batch=None, **more):
    data = {
        "source": SOURCE,
        "steps": 20,
        "vocabulary": {"size": 300},
        "objective": objective if isinstance(objective, dict) else {"kind": objective},
        "batch": {"rows": 8, "length": 64} | (batch or {}),
        "optimizer": {"warmup_steps": 2},
    } | more
    if "languages" not in more:
        data.setdefault("language", "trans+inv")
    return parse(PretrainConfig, data)


def train(store, *args, **more):
    config = config_of(*args, **more)
    return train_batches(config, prepare(config, store))


@pytest.mark.parametrize(
    ("objective", "packing", "kinds"),
    [
        ("mlm", "stream", [StreamRows, StreamRows]),
        ("align_mlm", "stream", [StreamRows, StreamRows]),
        ("mlm", "sentences", [SentenceRows, SentenceRows]),
        ("dict_mlm", "sentences", [SentenceRows, SentenceRows]),
        ("xlm", "stream", [StreamRows, StreamRows, ParallelRows]),
        ("xlm", "sentences", [SentenceRows, SentenceRows, ParallelRows]),
        ("mlm", "sentence", [SentenceRows, SentenceRows]),
        ("xlm", "sentence", [SentenceRows, SentenceRows, ParallelRows]),
        ({"kind": "sum", "weights": {"tlm": 1}}, "stream", [ParallelRows]),
        ({"kind": "sum", "weights": {"tlm": 1, "dict": 1}}, "stream", [StreamRows, StreamRows, ParallelRows]),
    ],
)
def test_objective_and_packing_decide_the_rows(objective, packing, kinds, store):
    data = train(store, objective, {"packing": packing})
    assert [type(source) for source in data.sources] == kinds
    batch = data.batch(0)
    assert batch.input_ids.shape == (8, 64)
    assert (batch.valid is not None) == (packing != "stream" or ParallelRows in kinds)
    assert (batch.positions is not None) == (packing == "sentence" or ParallelRows in kinds)
    assert (batch.sentences is not None) == (packing == "sentence")
    terms = {NAMES[t] for step in range(10) for t in np.unique(data.batch(step).terms)}
    assert ("tlm" in terms) == (ParallelRows in kinds)
    assert ("mlm" in terms) == (kinds != [ParallelRows])


def test_a_monolingual_run_and_one_of_three_languages(store):
    single = train(store, language="parent").batch(0)
    assert (single.languages == 0).all()
    assert single.groups[0].spans == ((0, 64, 0),) and len(single.groups) == 1
    three = train(store, languages=["parent", "inv", {"name": "perm", "language": "perm"}], batch={"rows": 9}).batch(0)
    assert np.bincount(three.languages[:, 0]).tolist() == [3, 3, 3]


def test_dev_batches_are_the_same_in_every_run(store):
    runs = [config_of(), config_of(seed=7), config_of("align_mlm"), config_of("dict_mlm", steps=50)]
    artifacts = [prepare(config, store) for config in runs]
    for member in (0, 1):
        made = [dev_batches(c, a, member).batch(2) for c, a in zip(runs, artifacts, strict=True)]
        for other in made[1:]:
            for name in ("input_ids", "languages", "masked", "labels", "terms", "samples"):
                assert np.array_equal(getattr(other, name), getattr(made[0], name))
        assert (made[0].languages == member).all()
        assert (made[0].terms == NAMES.index("mlm")).all()
    assert not np.array_equal(train_batches(runs[0], artifacts[0]).batch(0).masked, made[0].masked)


def test_too_little_text_says_where(store):
    small = "builtin:mini-english?types=500&sentences=300&dev=1&test=40"
    config = config_of(batch={"length": 512}, source=small)
    artifacts = prepare(config, store)
    assert refused(dev_batches, config, artifacts, 0) == ("language parent (dev)", "range")
    config = config_of({"kind": "xlm", "tlm_rate": 0.001})
    artifacts = prepare(config, store)
    assert refused(train_batches, config, artifacts) == ("languages parent+trans+inv", "empty")


STEPS = (0, 1, 2, 3, 50, 51, 52, 1_000_003)
CASES: dict[str, dict[str, Any]] = {
    "mlm": {},
    "xlm": {"objective__tlm_rate": 1.0},
    "dict_mlm": {},
    "dict_mlm label-or-copy": {"objective__dict_target": "label-or-copy"},
    "dict_mlm switched": {"objective__dict_target": "switched"},
    "align_mlm": {},
    "sum": {"objective__weights": {"mlm": 1.0, "tlm": 1.0, "dict": 1.0, "align": 10.0}},
    "mlm separate": {"sharing": {"embeddings": "separate", "layers": [1]}},
}


def test_dev_rows_may_be_masked_and_packed_as_those_of_other_runs(store):
    def dev(trained, rate, **validation):
        config = config_of({"kind": "mlm", "mask_rate": rate}, {"packing": trained}, validation=validation)
        return dev_batches(config, prepare(config, store), 1).batch(0)

    fixed = {"every": 10, "mask_rate": 0.15, "packing": "sentence"}
    one, other, plain = dev("stream", 0.4, **fixed), dev("sentence", 0.15, every=10), dev("stream", 0.4, every=10)
    assert one.sentences is not None and plain.sentences is None and plain.masked.shape[1] > one.masked.shape[1]
    for name in FIELDS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def shapes(batch: Batch) -> dict[str, tuple[tuple[int, ...], str] | None]:
    """Shape and dtype of each field; None where there is none."""
    values = {f.name: getattr(batch, f.name) for f in fields(batch) if f.name != "groups"}
    return {name: None if value is None else (value.shape, str(value.dtype)) for name, value in values.items()}


@pytest.mark.parametrize("packing", ["stream", "sentences", "sentence"])
@pytest.mark.parametrize("name", CASES)
def test_every_batch_of_a_run_has_the_same_shapes(name, packing, store):
    kind = name.split()[0]
    data = changed(PRETRAIN, objective__kind=kind, batch__packing=packing, **CASES[name])
    config = PretrainConfig.model_validate(data)
    artifacts = prepare(config, store)
    batches = train_batches(config, artifacts)
    rows, length = config.batch.rows, config.batch.length
    wanted = shapes(batches.batch(0))
    assert wanted["input_ids"] == wanted["languages"] == ((rows, length), "int64")
    assert wanted["masked"] == wanted["labels"] == wanted["terms"]
    assert wanted["samples"] == ((rows,), "int64")
    assert (wanted["valid"] is None) == (packing == "stream" and kind in ("mlm", "dict_mlm", "align_mlm"))
    drawn = [batches.batch(step) for step in STEPS]
    assert [shapes(batch) for batch in drawn] == [wanted] * len(STEPS)
    assert not any(np.array_equal(drawn[0].input_ids, batch.input_ids) for batch in drawn[1:])
    for parts in (2, 4):
        parted = [shapes(batches.batch(step, part, parts)) for step in STEPS[:4] for part in range(parts)]
        assert all(shape == parted[0] for shape in parted)
        assert parted[0]["input_ids"] == ((rows // parts, length), "int64")
    for member in range(len(artifacts.languages)):
        seen = shapes(dev_batches(config, artifacts, member).batch(0))
        assert seen == wanted, "validation would be another graph of another kind"


@pytest.mark.parametrize("packing", ["stream", "sentences", "sentence"])
def test_copies_of_a_text_are_switched_anew(store, packing):
    """An epoch has each row of every copy once, in the order asked; only what is switched differs between copies."""
    switched = {"name": "x", "transforms": [{"kind": "transliterate"}, {"kind": "code_switch"}]}
    languages = ["parent", {"language": switched, "copies": 3}]
    config = config_of(languages=languages, batch={"packing": packing})
    artifacts = prepare(config, store)
    batches = train_batches(config, artifacts)
    alone = config_of(languages=["parent", {"language": switched}], batch={"packing": packing})
    assert config.fingerprint(artifacts.parents) != alone.fingerprint(prepare(alone, store).parents)
    source, single = (
        batches.sources[1],
        train(store, languages=["parent", {"language": switched}], batch={"packing": packing}).sources[1],
    )
    texts = [artifacts.languages[1].train, *artifacts.languages[1].copies]
    assert len({text.fingerprint for text in texts}) == len(texts) == 3
    assert all(np.array_equal(text.sentence_ids, texts[0].sentence_ids) for text in texts)
    assert isinstance(source, CopiesRows) and source.rows == sum(copy.rows for copy in source.copies)
    firsts = np.cumsum([0, *(copy.rows for copy in source.copies)])
    numbers = np.random.default_rng(0).permutation(source.rows)
    rows = source.read(numbers)
    for place, number in enumerate(numbers.tolist()):
        which = int(np.searchsorted(firsts, number, side="right")) - 1
        plain = source.copies[which].read(np.asarray([number - firsts[which]]))
        for field in fields(plain):
            of_row = getattr(plain, field.name)
            assert of_row is None or np.array_equal(getattr(rows, field.name)[place], of_row[0]), field.name
    assert np.array_equal(single.read(np.arange(single.rows)).ids, source.read(np.arange(single.rows)).ids)
    assert (batches.batch(3).languages == train_batches(config, artifacts).batch(3).languages).all()


@pytest.mark.parametrize("objective", ["mlm", "xlm"])
def test_a_schedule_of_a_run(store, objective):
    """Pairs keep their share of the rows in every stage, and languages share the others by the schedule."""
    stages = [
        {"start": 0, "shares": {"parent": 1, "trans+inv": 0}},
        {"start": 0.25, "shares": {"parent": 0.1, "trans+inv": 0.9}},
        {"start": 15, "shares": {"parent": 0, "trans+inv": 2}},
    ]
    data = train(store, objective, sampling={"schedule": stages})
    own, rows = data.sources[0].rows + data.sources[1].rows, sum(source.rows for source in data.sources)
    assert (own == rows) == (objective == "mlm")
    drawn = np.asarray([data.quotas.before(step) for step in (0, 5, 15, 20)])
    for counts, steps, share in zip(np.diff(drawn, axis=0), (5, 10, 5), (1.0, 0.1, 0.0), strict=True):
        wanted = [steps * 8 * own / rows * part for part in (share, 1 - share)]
        assert counts[:2] == pytest.approx(wanted, abs=1) and counts.sum() == steps * 8
        assert [n == 0 for n in counts[:2]] == [share == 0, share == 1]


def test_copies_that_would_be_the_same_are_refused():
    assert refused(config_of, languages=["parent", {"language": "trans", "copies": 2}]) == (
        "languages.1.copies",
        "no_effect",
    )
