"""Three natural languages in one space, from real text files."""

from itertools import combinations

import numpy as np
import pytest

from synthlang.language import PARENT
from synthlang.sources.text import TextSource
from synthlang.store import Store
from synthlang.vocabularies import VocabularySpec, build_id_space
from tests.real_data import DATA

FILES = {name: DATA / "multi30k" / f"test_2016_flickr.{name}" for name in ("en", "de", "fr")}
pytestmark = pytest.mark.skipif(not all(f.exists() for f in FILES.values()), reason="no multi30k captions here")


def test_default_anchors_and_none(tmp_path):
    members = []
    for name, file in FILES.items():
        (tmp_path / f"{name}.txt").symlink_to(file)
        members.append((name, TextSource(tmp_path / f"{name}.txt"), PARENT))
    store = Store(tmp_path / "store")
    joined, _ = build_id_space(VocabularySpec(kind="joined", size=1500), members, store)
    prefixed, _ = build_id_space(VocabularySpec(kind="prefixed", size=1500), members, store)
    for i, j in combinations(range(3), 2):
        shared = np.intersect1d(joined.languages[i].ids, joined.languages[j].ids)
        assert 5 + 256 < len(shared) < 900  # the bytes, and what the languages have in common
        assert len(np.intersect1d(prefixed.languages[i].ids, prefixed.languages[j].ids)) == 5
    assert 1500 < joined.size < 4500
    for number, (_, source, _) in enumerate(members):
        batch = next(source.batches("train"))
        a, b = joined.languages[number].encode(batch), prefixed.languages[number].encode(batch)
        assert (a.word_offsets == b.word_offsets).all()  # cut alike, under other ids
        assert len(a.ids) < 2 * len(batch.form.codes)
        assert (
            joined.languages[number].tokenizer.decode(a.ids[: a.word_offsets[batch.offsets[1]]].tolist())
            == batch.texts()[0]
        )
