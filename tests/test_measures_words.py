"""The probe ``words``: bands and checkpoints of a run, languages, dictionaries, and what cannot be compared."""

from __future__ import annotations

import copy
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from pretrain.config import PretrainConfig
from pretrain.run import open_run, pretrain
from probes.measures.probe_command import probe_command, read_probe_config
from probes.measures.probe_input import ProbeInput
from probes.measures.table import ProbeConfig
from probes.measures.words import WordsConfig
from probes.measures.words.alignment import band_scores, frequency_ranks
from probes.measures.words.probe import words_probe
from probes.models.opening import open_pretrained
from probes.states import single_tokens
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import write_json
from synthlang.fingerprint import sha256_file
from synthlang.store import Store
from tests.adjust_models import save_model
from tests.refusals import refused
from tests.test_alignment import credits as credits_of_rows
from tests.test_alignment import scores_of
from tests.test_natural import config_of, folder  # noqa: F401  a fixture
from tests.tiny import PRETRAIN, changed


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("words") / "run"
    pretrain(parse(PretrainConfig, changed(PRETRAIN, checkpoints__keep=3)), place)
    return place


def subject_of(run, **settings):
    config = parse(ProbeConfig, settings)
    return ProbeInput(open_pretrained(str(run), None), config, run)


def test_bands_and_checkpoints_of_a_run(run):
    found = words_probe(subject_of(run, words={"bands": [10, 50]}))
    values = found.values
    assert [band["from"] for band in values["bands"]] == [1, 11, 51]
    assert sum(band["types"] for band in values["bands"]) == values["types"]
    assert [checkpoint["step"] for checkpoint in values["checkpoints"]] == [2, 4, 6]
    last = values["checkpoints"][-1]["languages"]["trans+inv"]
    for key in ("scores", "bands", "candidates", "types"):
        assert last[key] == values[key]
    first = values["checkpoints"][0]["languages"]["trans+inv"]
    assert {*first["scores"]["all"]["csls"]} == {"forward", "backward", "mean"} and first["scores"] != last["scores"]
    assert values["language"] == "trans+inv" and values["candidates"]["shared"] == 0
    assert values["candidates"]["other"] >= values["types"]
    points = [step["languages"]["trans+inv"]["scores"]["all"]["cosine"]["mean"] for step in values["checkpoints"]]
    assert len(points) == 3 and found.figures[0].alt.startswith("Curve")
    assert [figure.name for figure in found.figures] == ["words-emergence"]
    assert len(found.tables) == 2 and not found.notes


def test_a_damaged_checkpoint_is_left_out_aloud(run, tmp_path):
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    (copied / "checkpoints" / "step-2" / "model.safetensors").write_bytes(b"x")
    found = words_probe(subject_of(copied))
    assert [checkpoint["step"] for checkpoint in found.values["checkpoints"]] == [4, 6]
    assert "words: checkpoint step-2 is damaged and was skipped" in found.notes and len(found.figures) == 1
    (copied / "checkpoints" / "step-4" / "model.safetensors").write_bytes(b"x")
    found = words_probe(subject_of(copied))
    assert not found.figures and not any("keeps one checkpoint" in note for note in found.notes)
    assert any("only one checkpoint is left" in note for note in found.notes)
    for step in (2, 4):
        shutil.rmtree(copied / "checkpoints" / f"step-{step}")
    assert any("keeps one checkpoint" in note for note in words_probe(subject_of(copied)).notes)


def dictionary(given, path):
    """A MUSE file of all words that are linked in the sentence pairs."""
    text = given.aligned.text
    left, right = text.left.form.values(), text.right.form.values()
    links = text.links
    pairs = zip(
        text.left.offsets[links.sentence] + links.left, text.right.offsets[links.sentence] + links.right, strict=True
    )
    found = dict.fromkeys((right[b], left[a]) for a, b in pairs)
    path.write_text("".join(f"{a} {b}\n" for a, b in found if len(a.split()) == len(b.split()) == 1))


def test_a_dictionary_names_the_words_of_other_models(run, tmp_path):
    given = subject_of(run, words={"dictionary": str(tmp_path / "d.txt")}, data={"dev": 10})
    other = replace(given, run=None)
    dictionary(other, tmp_path / "d.txt")
    model = copy.deepcopy(other.pretrained.model)
    with torch.no_grad():
        words = model.embeddings.words
        half = len(words) // 2
        words[half:] = words[:half]
    same = replace(other.pretrained, model=model, target_model=model)
    values = words_probe(replace(other, pretrained=same)).values
    assert values["types"] >= 5 and values["counts"]["pairs of words of several tokens"] >= 1
    assert values["candidates"]["other"] > 2 * values["types"]  # not only words of the dictionary
    assert values["scores"]["all"]["cosine"]["mean"] == pytest.approx(100.0)
    with torch.no_grad():
        words[half:] = words[:half][torch.from_numpy(np.random.default_rng(0).permutation(half))]
    assert words_probe(replace(other, pretrained=same)).values["scores"]["all"]["cosine"]["mean"] < 50
    bare = replace(subject_of(run), run=None)
    with pytest.raises(InputError, match=r"words\.dictionary: .* give a file of translations"):
        words_probe(replace(bare, pretrained=replace(bare.pretrained, run=None)))
    (tmp_path / "d.txt").write_text("no-such-long-word another-long-word\n")
    with pytest.raises(InputError, match=r"1 word pair, none can be compared \(pairs of words of several tokens: 1\)"):
        words_probe(other)


def test_ranks_count_from_the_most_frequent_type_and_leave_others_out():
    counts = np.array([99, 0, 5, 7, 5, 1, 0, 7, 2])  # 0 is a special
    ranks = frequency_ranks(counts, np.array([2, 3, 4, 5, 7, 8]))
    assert ranks.tolist() == [0, 0, 3, 1, 4, 6, 0, 2, 5]


def _rows(n, well):
    """Rows of n words, of which ``well`` (bool) lie by their counterparts and the others anywhere."""
    generator = torch.Generator().manual_seed(4)
    parent = torch.randn(n, 24, generator=generator)
    derived = torch.where(well[:, None], parent + 0.1 * torch.randn(n, 24, generator=generator), 0)
    return parent, derived + (~well[:, None]) * torch.randn(n, 24, generator=generator)


def test_bands_have_the_scores_of_their_words():
    n = 300
    ranks = np.random.default_rng(0).permutation(2 * n)[:n] + 1  # half of the ranks have no counterpart
    well = torch.from_numpy(ranks <= 100)
    parent, derived = _rows(n, well)
    inside = torch.rand(n, generator=torch.Generator().manual_seed(1)) < 0.5
    found = band_scores(credits_of_rows(parent, derived), inside, ranks, (100, 250))
    assert [(band["from"], band["to"]) for band in found] == [(1, 100), (101, 250), (251, None)]
    assert sum(band["types"] for band in found) == n
    for band, members in zip(found, (ranks <= 100, (ranks > 100) & (ranks <= 250), ranks > 250), strict=True):
        for key, subset in (
            ("all", members),
            ("in_dictionary", members & inside.numpy()),
            ("held_out", members & ~inside.numpy()),
        ):
            expected = scores_of(parent, derived, torch.from_numpy(subset)).in_dictionary
            assert json.loads(json.dumps(band["scores"][key])) == json.loads(
                json.dumps(expected.__dict__, default=vars)
            )
    assert found[0]["scores"]["all"]["csls"]["mean"] == 100
    assert found[1]["scores"]["all"]["csls"]["mean"] < 10


def test_a_band_without_words_has_no_scores_and_wrong_bands_are_named():
    parent, derived = _rows(6, torch.ones(6, dtype=torch.bool))
    credits = credits_of_rows(parent, derived)
    first, rest = band_scores(credits, torch.zeros(6, dtype=torch.bool), np.arange(5, 11), (4,))
    assert (first["types"], rest["types"]) == (0, 6)
    assert first["scores"] == {"all": None, "in_dictionary": None, "held_out": None}
    (whole,) = band_scores(credits, torch.zeros(6, dtype=torch.bool), np.arange(5, 11), ())
    assert whole["scores"] == rest["scores"]
    for wrong in ([0, 5], [5, 5], [10, 3], [-1]):
        with pytest.raises(InputError, match="must be increasing ranks of at least 1"):
            parse(WordsConfig, {"bands": wrong})


WORDS_ONLY = {"probes": ["words"]}


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A run with a language whose types are half of them the parent's own, and one that shares none."""
    place = tmp_path_factory.mktemp("several") / "run"
    data = changed(PRETRAIN, languages=["parent", "trans:0.5", "trans+inv", "inv"], checkpoints__keep=3, steps=4)
    del data["language"]
    pretrain(parse(PretrainConfig, data), place)
    return place


@pytest.fixture(scope="module")
def natural(tmp_path_factory, folder):  # noqa: F811
    place = tmp_path_factory.mktemp("natural-run")
    pretrain(config_of(folder, dictionary={"path": "HERE", "coverage": 1.0}), place / "run", Store(place / "store"))
    return place / "run"


def found_of(run, language=None, **settings):
    config = parse(ProbeConfig, {"language": language, **WORDS_ONLY, **settings})
    return words_probe(ProbeInput(open_pretrained(str(run), language, config.natural), config, run))


def test_the_language_asked_for_is_the_one_that_is_shown(several):
    both = {name: found_of(several, name) for name in ("trans=0.5", "trans+inv")}
    for name, found in both.items():
        values = found.values
        assert values["language"] == name and list(values["languages"]) == ["trans=0.5", "trans+inv", "inv"]
        for key, value in values["languages"][name].items():
            assert values[key] == value
        assert len(found.tables) == 2 and all(name in table.caption for table in found.tables)
        assert name in found.figures[0].alt
        assert not any(other in found.figures[0].alt for other in both if other != name)
    assert both["trans=0.5"].values["scores"] != both["trans+inv"].values["scores"]
    assert found_of(several).values["language"] == "trans=0.5"
    assert both["trans=0.5"].values["candidates"]["shared"] > 10
    assert any("embeddings are shared by both languages" in note for note in both["trans=0.5"].notes)
    nothing = found_of(several, "inv")
    assert nothing.values["scores"] is None and any("share one vocabulary" in note for note in nothing.notes)


@pytest.mark.parametrize("language", ["perm", "parent"])
def test_a_language_without_rows_is_refused(several, language):
    assert refused(found_of, several, language) == ("language", "unknown")


def test_a_natural_run_is_probed_without_more_words(natural, tmp_path):
    whole = probe_command(str(natural), read_probe_config(None, WORDS_ONLY, []), tmp_path / "one")
    named = probe_command(str(natural), read_probe_config(None, {**WORDS_ONLY, "language": "fr"}, []), tmp_path / "two")
    one, two = (json.loads((place / "probes.json").read_text()) for place in (whole, named))
    assert one == two and one["language"] == "fr" and one["parent"] == "en"
    words = one["probes"]["words"]
    _, artifacts = open_run(natural)
    specials = set(artifacts.id_space.specials.all)
    for key, member in zip(("parent", "other"), artifacts.languages, strict=True):
        assert words["candidates"][key] == len(set(member.train.counts.nonzero()[0].tolist()) - specials)
    assert words["types"] < words["candidates"]["parent"] and words["candidates"]["shared"] > 0
    page = (whole / "probes.html").read_text()
    assert "en ↔ fr" in page and "parent ↔ fr" not in page
    for options in ({"probes": ["words", "cka"]}, {"language": "fr", "probes": ["cka"]}):
        config = read_probe_config(None, options, [])
        assert refused(probe_command, str(natural), config, tmp_path / "no") == ("pairs", "missing")


def test_a_dictionary_that_is_named_stands_for_the_runs_own(natural, several):
    own = found_of(natural, "fr", natural=True).values
    path = open_run(natural)[0].dictionary.path
    assert isinstance(path, str)
    named = found_of(natural, "fr", natural=True, words={"dictionary": path}).values
    assert named["scores"]["all"] == own["scores"]["all"] and named["types"] == own["types"] > 0
    assert refused(lambda: found_of(several, "perm", words={"dictionary": path})) == ("language", "unknown")


def test_what_a_dictionary_of_another_model_leaves_out(tmp_path):
    """A word that the tokenizer does not know is its [UNK]; two words may be one token."""
    text = ["the small dog sees a black cat", "le petit chien voit un chat noir"] * 3
    model = str(save_model(tmp_path / "model", "bert", text))
    lines = ["dog chien", "cat chat", "cat noir", "black noir", "dog dog", "small ♞♜", "♞♜ ♞♜", "dogcat chat"]
    (tmp_path / "d.txt").write_text("\n".join(lines) + "\n")
    config = parse(ProbeConfig, {
        "language": "fr", "natural": True, "words": {"dictionary": str(tmp_path / "d.txt")}, **WORDS_ONLY,
    })  # fmt: skip
    pretrained = open_pretrained(model, "fr", True)
    given = ProbeInput(pretrained, config)
    found = words_probe(given)
    values, reader = found.values, pretrained.source
    assert (
        values["types"] == 3
        and values["scores"]["all"]["n"] == 3
        and values["counts"]
        == {
            "pairs of words of several tokens": 1,
            "pairs of words that are unknown to the tokenizer": 2,
            "pairs of words that are one token": 1,
        }
    )
    vocabulary = len(reader.tokenizer.ids) - len(reader.specials.all)
    assert values["candidates"] == {"parent": vocabulary, "other": vocabulary, "shared": vocabulary}
    assert any("so all tokens of the tokenizer are candidates" in note for note in found.notes)
    with torch.no_grad():  # each word next to its translation: no other token is nearer, its own row aside
        words = pretrained.model.embeddings.words
        ids = [[single_tokens(reader, [w])[0] for w in line.split()]
               for line in ("dog chien", "cat chat", "black noir")]  # fmt: skip
        for a, b in ids:
            words[b] = words[a] + 1e-3
    assert words_probe(given).values["scores"]["all"]["cosine"]["mean"] == pytest.approx(100)
    (tmp_path / "d.txt").write_text("dog chat\ndog noir\ndog chien\ncat chat\n")  # the nearest one is the third
    values = words_probe(given).values
    assert values["types"] == 2 and values["scores"]["all"]["cosine"]["forward"] == pytest.approx(100)
    assert values["scores"]["all"]["cosine"]["backward"] == pytest.approx(200 / 3)  # noir belongs to black
    other = open_pretrained(str(save_model(tmp_path / "other", "bert", text, seed=1)), "fr", True)
    two = replace(pretrained, target_model=other.model, target=replace(other.target, role="target"))
    values = words_probe(replace(given, pretrained=two)).values
    assert values["candidates"]["shared"] == 0 and "pairs of words that are one token" not in values["counts"]
    (tmp_path / "d.txt").write_text("♞♜ chat\n")
    with pytest.raises(InputError, match="pairs of words that are unknown to the tokenizer: 1"):
        words_probe(given)


@pytest.mark.parametrize(("value", "step", "said"), [
    (torch.nan, 4, r".*: words: row \d+ of the trans=0.5 vectors has NaN"),
    (torch.nan, 2, r", checkpoint step-2: words: row \d+ of the trans"),
    (0.0, 4, "5 embeddings are zero"),
])  # fmt: skip
def test_weights_that_are_no_numbers_are_refused_by_name_and_zeros_are_counted(several, tmp_path, value, step, said):
    run, parent = tmp_path / "run", open_run(several)[1].languages[0]
    shutil.copytree(several, run)
    checkpoint = run / "checkpoints" / f"step-{step}"
    weights = load_file(checkpoint / "model.safetensors")
    rows = slice(300, None) if value else torch.from_numpy(parent.train.counts.nonzero()[0][-5:])
    weights["embeddings.words"][rows] = value
    save_file(weights, checkpoint / "model.safetensors")
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    manifest["sha256"]["model.safetensors"] = sha256_file(checkpoint / "model.safetensors")
    write_json(checkpoint / "manifest.json", manifest)
    if value:
        with pytest.raises(InputError, match=said):
            found_of(run)
        return
    found = found_of(run, "trans+inv")
    assert found.values["counts"][f"rows of zeros, {parent.name}"] == 5 and any(said in note for note in found.notes)
    assert not any("zero" in note for note in found_of(several, "trans+inv").notes)
