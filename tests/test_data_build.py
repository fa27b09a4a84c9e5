"""From a config to batches: which rows a run has, and dev batches that are the same in every run."""

import numpy as np
import pytest

from pretrain.build import dev_batches, train_batches
from pretrain.config import PretrainConfig
from pretrain.data.batch import IGNORE
from pretrain.data.sources import ParallelRows, SentenceRows, StreamRows
from pretrain.objectives import NAMES
from pretrain.prepare import prepare
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.store import Store
from tests.real_data import DATA

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
        ({"kind": "sum", "weights": {"tlm": 1}}, "stream", [ParallelRows]),
        ({"kind": "sum", "weights": {"tlm": 1, "dict": 1}}, "stream", [StreamRows, StreamRows, ParallelRows]),
    ],
)
def test_objective_and_packing_decide_the_rows(objective, packing, kinds, store):
    data = train(store, objective, {"packing": packing})
    assert [type(source) for source in data.sources] == kinds
    batch = data.batch(0)
    assert batch.input_ids.shape == (8, 64)
    assert (batch.valid is not None) == (packing == "sentences" or ParallelRows in kinds)
    assert (batch.positions is not None) == (ParallelRows in kinds)
    terms = {NAMES[t] for step in range(10) for t in np.unique(data.batch(step).terms)}
    assert ("tlm" in terms) == (ParallelRows in kinds)
    assert ("mlm" in terms) == (kinds != [ParallelRows])


def test_a_monolingual_run_and_one_of_three_languages(store):
    single = train(store, language="parent").batch(0)
    assert (single.languages == 0).all()
    assert single.groups[0].spans == ((0, 64, 0),) and len(single.groups) == 1
    three = train(store, languages=["parent", "inv", {"name": "perm", "language": "perm"}], batch={"rows": 9}).batch(0)
    assert np.bincount(three.languages[:, 0]).tolist() == [3, 3, 3]


def test_all_rows_are_masked_and_the_text_is_behind_the_masks(store):
    data = train(store)
    for step in range(5):
        batch = data.batch(step)
        labelled = batch.labels != IGNORE
        assert batch.targets == labelled.sum() == batch.labels.size
        shown = np.take_along_axis(batch.input_ids, batch.masked, axis=1)
        assert 0.05 < (shown == batch.labels).mean() < 0.5


def test_batches_do_not_depend_on_the_parts_with_the_real_masker(store):
    data = train(store, "xlm", {"packing": "sentences"})
    whole = data.batch(3)
    for parts in (2, 4, 8):
        pieces = [data.batch(3, part, parts) for part in range(parts)]
        order = np.argsort(np.concatenate([p.samples for p in pieces]))
        for name in ("input_ids", "languages", "masked", "labels", "terms", "positions", "valid"):
            assert np.array_equal(np.concatenate([getattr(p, name) for p in pieces])[order], getattr(whole, name))


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


@pytest.mark.parametrize("packing", ["stream", "sentences"])
@pytest.mark.parametrize("objective", ["mlm", "xlm"])
def test_dev_batches_have_the_form_of_those_of_training(objective, packing, store):
    config = config_of(objective, {"packing": packing})
    artifacts = prepare(config, store)
    one, two = train_batches(config, artifacts).batch(0), dev_batches(config, artifacts, 1).batch(0)
    for name in ("input_ids", "languages", "masked", "labels", "terms", "positions", "valid"):
        a, b = getattr(one, name), getattr(two, name)
        assert (a is None) == (b is None)
        assert a is None or (a.shape, a.dtype) == (b.shape, b.dtype)


def test_a_dev_split_too_small_for_a_row_says_which(store):
    small = "builtin:mini-english?types=500&sentences=300&dev=1&test=40"
    config = config_of(batch={"length": 512}, source=small)
    artifacts = prepare(config, store)
    with pytest.raises(InputError, match=r"^parent \(dev\): \d+ tokens do not fill one row of length 512"):
        dev_batches(config, artifacts, 0)


def test_tlm_without_a_usable_pair(store):
    config = config_of({"kind": "xlm", "tlm_rate": 0.001})
    artifacts = prepare(config, store)
    with pytest.raises(InputError, match=r"^parent\+trans\+inv: TLM has no usable pair: 0 of 300 drawn"):
        train_batches(config, artifacts)


@pytest.mark.skipif(not (DATA / "wmt_ende_10k").exists(), reason="the real data is not here")
def test_real_pairs_are_translations(store):
    """The sentences of each half, decoded, are lines of the two files at the same place, but for spaces."""
    folder = DATA / "wmt_ende_10k"
    english, german = folder / "train.en", folder / "train.de"
    specs = [f"lines:{english}", f"lines:{german}"]
    config = config_of(
        "xlm",
        {"length": 128},
        source="",
        vocabulary={"kind": "joint", "size": 1000},
        languages=[{"name": "en", "source": specs[0]}, {"name": "de", "source": specs[1]}],
        parallel=[{"languages": ["en", "de"], "sources": specs}],
    )
    artifacts = prepare(config, store)
    source = train_batches(config, artifacts).sources[-1]
    lines = [path.read_text(encoding="utf-8").split("\n") for path in (english, german)]
    where: dict[str, set[str]] = {}
    for left, right in zip(*lines, strict=True):
        where.setdefault("".join(left.split()), set()).add("".join(right.split()))
    tokenizers = [member.tokenizer for member in artifacts.id_space.languages]
    eos = artifacts.id_space.specials.eos
    seen = 0
    for row in source.read(np.arange(0, source.rows, 50)).ids:
        texts = []
        for half, tokenizer in zip((row[:64], row[64:]), tokenizers, strict=True):
            parts = np.split(half[1:], np.flatnonzero(half[1:] == eos) + 1)[:-1]
            texts.append([tokenizer.decode(part[:-1].tolist()) for part in parts])
        assert len(texts[0]) == len(texts[1]) > 0
        for left, right in zip(*texts, strict=True):
            seen += 1
            assert "".join(right.split()) in where["".join(left.split())]
    assert seen > 20
