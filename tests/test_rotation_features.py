"""Rotations of features: planted ones are found, and real ones are those of a plain fit word by word."""

import copy
import shutil
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from pretrain.config import ModelConfig, SharingConfig
from pretrain.model.roberta import MaskedLM
from pretrain.model.text import Text
from probes import states as sentence_vectors
from probes.models.aligned import Aligned, read_aligned
from probes.models.pretrained import Role
from probes.rotation.dictionary import translations
from probes.rotation.features import fit_rotation
from probes.rotation.settings import RotationConfig
from probes.states import LanguageSide, StateReader, anchors
from probes.transfer.config import FeaturesConfig
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.parallel.links import Links
from synthlang.parallel.pairs import LinkedText
from synthlang.parallel.prepare import DataConfig, prepare_pair
from tests.aligned_runs import plain_states
from tests.maps_cases import SAME as SAME_PAIRS
from tests.maps_cases import plain_map, write_pairs
from tests.refusals import place_and_code, refusal

SAME = SAME_PAIRS["x"]


def config(**settings: Any) -> RotationConfig:
    return parse(RotationConfig, settings)


def features(*layers: int, subword: str = "mean") -> FeaturesConfig:
    return parse(FeaturesConfig, {"tune": "none", "layers": list(layers or (-1,)), "subword": subword})


class Planted(MaskedLM):
    """The state of a token is a row of a table, the one of the parent's token for its copy; turned and moved."""

    def plant(self, offset: int, turns: list[torch.Tensor], shift: float) -> "Planted":
        generator = torch.Generator().manual_seed(0)
        self.table = torch.randn(2000, self.shape.hidden, generator=generator)
        self.offset, self.turns, self.shift = offset, turns, shift
        return self

    def read(self, text: Text, slots=None, layers=None):
        rows = self.table[torch.where(text.input_ids >= self.offset, text.input_ids - self.offset, text.input_ids)]
        return [rows @ self.turns[layer].T + self.shift * (layer + 1) for layer in layers]


def planted(pretrained, moved: bool) -> Planted:
    ids = [np.arange(700)]
    body = Planted(
        ModelConfig(layers=2, heads=2, hidden=16, feed_forward=32), SharingConfig(), ids, 700, 48, 1, False, 0
    )
    tokens = pretrained.source.tokenizer.tokenizer.get_vocab_size()
    turns = [torch.eye(16)] * 3
    if moved:
        turns = [torch.from_numpy(ortho_group.rvs(16, random_state=i)).float() for i in range(3)]
    return body.plant(tokens, turns, 3.0 if moved else 0.0)


@pytest.mark.parametrize("supervision", ["parallel", "dictionary", "sentences"])
@pytest.mark.parametrize("moves", ["source", "target"])
def test_a_planted_rotation_is_found(runs, moves, supervision):
    """Two models whose states differ by a turn and a shift of each layer; also the states of words not seen."""
    source, target = planted(runs["shared"], False), planted(runs["shared"], True)
    pretrained = replace(runs["shared"], model=source, target_model=target)
    rotation = fit_rotation(config(moves=moves, supervision=supervision), features(0, -1, 1), pretrained)
    assert (rotation.moves, rotation.layers) == (moves, (0, -1, 1))
    ids = torch.arange(5, 300)[None]
    before, after = (source, target) if moves == "source" else (target, source)
    for index, layer in enumerate((0, 2, 1)):
        turn = target.turns[layer].double()
        expected = turn if moves == "source" else turn.T
        torch.testing.assert_close(rotation.maps[index].fit.map.matrix, expected, atol=1e-5, rtol=0)
        text = Text.of(ids, 0)
        (states,), (goal,) = before.read(text, layers=[layer]), after.read(text, layers=[layer])
        torch.testing.assert_close(rotation.apply(states, index), goal, atol=1e-4, rtol=0)
        summary = rotation.to_json()["layers"][index]
        assert summary["residual"] < 1e-8 < 100 < summary["identity"]
        assert summary["rank"] == 16 and summary["orthogonality"] < 1e-10
    assert rotation.apply(states.half(), 2).dtype == torch.float16
    uncentred = fit_rotation(config(moves=moves, centre=False), features(0), pretrained)
    assert uncentred.maps[0].fit.residual > 1.0  # the control: a turn alone does not undo a shift


def linked_words(pretrained, layer: int, subword: str) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    """Vectors of all linked words of target and source, and their types; every sentence is read alone."""
    (aligned,) = read_aligned({}, config().data, pretrained)
    left, right, types = [], [], []
    with torch.no_grad():
        for row in aligned.data.train.tolist():
            words = aligned.text.left[row].words, aligned.text.right[row].words
            of_left = plain_states(pretrained.target_model, pretrained.target, words[0], layer, subword)
            of_right = plain_states(pretrained.model, pretrained.source, words[1], layer, subword)
            for a, b in aligned.data.links.of_pair(row):
                left.append(of_left[a].numpy())
                right.append(of_right[b].numpy())
                types.append((words[0][a], words[1][b]))
    return np.array(left, np.float64), np.array(right, np.float64), types


@pytest.mark.parametrize(
    ("kind", "subword", "layer", "centre"),
    [("shared", "mean", 2, True), ("shared", "first", 0, False), ("separate", "last", 1, True)],
)
def test_it_is_a_plain_fit(runs, kind, subword, layer, centre):
    pretrained = copy.deepcopy(runs[kind])
    pretrained.model.eval()
    rotation = fit_rotation(config(centre=centre), features(layer, subword=subword), pretrained)
    y, x, _ = linked_words(pretrained, layer, subword)
    before, after = (x.mean(0), y.mean(0)) if centre else (np.zeros(16), np.zeros(16))
    expected, _ = orthogonal_procrustes(x - before, y - after)
    fit = rotation.maps[0].fit
    assert fit.pairs == len(x)
    mapped = fit.map.apply(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(mapped, (x - before) @ expected + after, atol=1e-3)
    assert fit.residual == pytest.approx(np.square((x - before) @ expected + after - y).sum(1).mean(), rel=1e-4)
    assert fit.residual <= fit.identity == pytest.approx(np.square(x - y).sum(1).mean(), rel=1e-4)


@pytest.mark.parametrize("moves", ["source", "target"])
def test_normalised_states_are_those_of_a_plain_loop(runs, moves):
    """Emerging Cross-lingual Structure, section 5.1, word by word; new states by the means of the words of the fit."""
    pretrained = copy.deepcopy(runs["separate"])
    pretrained.model.eval()
    rotation = fit_rotation(config(moves=moves, normalise="iterative"), features(2), pretrained)
    target, source, _ = linked_words(pretrained, 2, "mean")
    x, y = (source, target) if moves == "source" else (target, source)
    other: Role = "target" if moves == "source" else "source"
    of_x, of_y = plain_map(x, y, 5)
    assert rotation.reads == (moves, other) and rotation.maps[0].fit.pairs == len(x)
    # of no word of the fit, but in the space of its words: the output of a LayerNorm has mean 0, and how the direction
    # that it lacks is turned differs between processors
    new = np.random.default_rng(0).normal(1.0, 3.0, (4, 7, len(x))) @ x / len(x)
    states = torch.from_numpy(new).float()
    roles: list[tuple[Role | None, Any]] = [(moves, of_x), (other, of_y), (None, of_x)]
    for role, plain in roles:
        found = rotation.apply(states, 0, role)
        assert found.dtype == torch.float32
        np.testing.assert_allclose(found.reshape(-1, 16).numpy(), plain(new.reshape(-1, 16)), atol=2e-3)
        np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1.0, atol=1e-5)
    assert not np.allclose(of_x(x), plain_map(x, y, None)[0](x), atol=0.1)  # the control: without normalisation
    sides = rotation.to_json()["layers"][0]["normalise"]
    assert {side["rows"] for side in sides.values()} == {len(x)} and len(sides["left"]["means"]) == 5
    linear = fit_rotation(config(moves=moves), features(2), pretrained)
    assert (
        linear.reads == (moves,) and linear.name != rotation.name and "normalise" not in linear.to_json()["layers"][0]
    )


@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_sentences_are_means_of_their_tokens(runs, kind, monkeypatch):
    monkeypatch.setattr(sentence_vectors, "PAIRS_AT_ONCE", 7)  # several parts, of which the last one is smaller
    pretrained = copy.deepcopy(runs[kind])
    pretrained.model.eval()
    (aligned,) = read_aligned({}, config().data, pretrained)
    x: Any = []
    y: Any = []
    readers = (
        (aligned.data.right, pretrained.model, pretrained.source),
        (aligned.data.left, pretrained.target_model, pretrained.target),
    )
    with torch.no_grad():
        for row in aligned.data.train.tolist():
            for means, (sentences, body, reader) in zip((x, y), readers, strict=True):
                ids = sentences.ids[sentences.bounds[row] : sentences.bounds[row + 1]].tolist()
                ids = torch.tensor([[reader.specials.bos, *ids, reader.specials.eos]])
                (states,) = body.read(Text.of(ids, reader.number), layers=[1])
                means.append(states[0, 1:-1].mean(0).double().numpy())
    x, y = np.array(x), np.array(y)
    rotation = fit_rotation(config(supervision="sentences", centre=False), features(1), pretrained)
    expected, _ = orthogonal_procrustes(x, y)
    assert rotation.maps[0].fit.pairs == len(x) > 2 * 7
    np.testing.assert_allclose(rotation.maps[0].fit.map.apply(torch.from_numpy(x)).numpy(), x @ expected, atol=1e-3)
    few = [fit_rotation(config(supervision="sentences", words=9), features(1), pretrained, seed) for seed in (0, 1)]
    assert few[0].maps[0].fit.pairs == 9 and few[0].name != rotation.name
    assert not torch.allclose(few[0].maps[0].fit.map.matrix, few[1].maps[0].fit.map.matrix)


def test_a_dictionary_from_ambiguous_links(runs):
    """Words with several partners in any order, against counting them; anchors in the order of the dictionary."""
    generator = np.random.default_rng(0)
    own = read_aligned({}, config().data, runs["shared"])[0].text
    names = [[name for name in side.form.names or () if len(name) < 9][:12] for side in (own.left, own.right)]
    words = [[[str(w) for w in generator.choice(side, 6)] for _ in range(40)] for side in names]
    links = [{(int(a), int(b)) for a, b in generator.integers(0, 6, (5, 2))} for _ in range(40)]
    text = LinkedText(Corpus.of_words(words[0]), Corpus.of_words(words[1]), Links.of(links), "", {})
    readers = runs["shared"].target, runs["shared"].source
    cutters = tuple(reader.tokenizer.tokenizer for reader in readers)
    data = prepare_pair("x", text, cutters, DataConfig(dev=0, test=3, one_to_one=False), 48, 0)
    assert len(data.train) == 37
    counts = Counter((words[0][r][a], words[1][r][b]) for r in range(37) for a, b in links[r])
    types = translations(Aligned(text, data), 1000)
    left, right = text.left.form.names or (), text.right.form.names or ()
    found = [(left[a], right[b]) for a, b in types.tolist()]
    assert sorted(right for _, right in found) == sorted({right for _, right in counts})
    for pair in found:
        assert counts[pair] == max(count for (_, right), count in counts.items() if right == pair[1])
    assert [counts[pair] for pair in found] == sorted((counts[pair] for pair in found), reverse=True)
    assert len({left for left, _ in found}) < len(found)  # some are the partner of several words
    assert translations(Aligned(text, data), 5).tolist() == types[:5].tolist()
    body = planted(runs["shared"], True)
    for side, (corpus, sentences) in enumerate(((text.left, data.left), (text.right, data.right))):
        reader = StateReader(body, readers[side].specials, (1, 2), "mean")
        vectors = anchors(LanguageSide("", corpus, sentences, reader), data.train, types[:, side])
        for index, pair in enumerate(found):  # a word has the same state wherever it stands
            ids = cutters[side].encode(pair[side], add_special_tokens=False).ids
            alone = body.read(Text.of(torch.tensor([ids]), 0), layers=[1, 2])
            for layer in (0, 1):
                torch.testing.assert_close(vectors[layer, index].float(), alone[layer][0].mean(0))


def test_it_is_a_function_of_its_settings(runs):
    pretrained = runs["shared"]
    pretrained.model.train()
    before = copy.deepcopy(pretrained.model.state_dict())
    full = fit_rotation(config(), features(-1), pretrained)
    few = {seed: fit_rotation(config(words=50), features(-1), pretrained, seed) for seed in (0, 1)}
    again = fit_rotation(config(words=50), features(-1), pretrained, 0)
    assert full.maps[0].fit.pairs > 50 == few[0].maps[0].fit.pairs == few[1].maps[0].fit.pairs
    assert torch.equal(few[0].maps[0].fit.map.matrix, again.maps[0].fit.map.matrix) and few[0].name == again.name
    assert not torch.allclose(few[0].maps[0].fit.map.matrix, few[1].maps[0].fit.map.matrix)
    others = [fit_rotation(config(**s), f, pretrained).name for s, f in (
        ({"centre": False}, features(-1)), ({"moves": "target"}, features(-1)), ({}, features(1)),
        ({"supervision": "dictionary"}, features(-1)), ({}, features(-1, subword="first")),
    )]  # fmt: skip
    assert len({full.name, few[0].name, few[1].name, *others}) == 8
    assert pretrained.model.training  # and it is as it was, without a gradient
    assert all(torch.equal(before[key], value) for key, value in pretrained.model.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in pretrained.model.parameters())


def test_a_dictionary_of_a_file(runs, tmp_path):
    """Its pairs by hand: words in small letters, in its order, those that are not there left out and counted."""
    pretrained = copy.deepcopy(runs["shared"])
    pretrained.model.eval()
    y, x, types = linked_words(pretrained, 2, "mean")
    links = Counter((left.lower(), right.lower()) for left, right in types)
    pairs = sorted((right, left) for left, right in links if left.isalpha() and right.isalpha())
    assert any(right != right.lower() for _, right in types)
    wrong = (pairs[0][0], pairs[3][1])  # what a file says counts, linked or not
    path = write_pairs(tmp_path / "fr.txt", [("Nowhere", pairs[0][1]), *pairs, wrong, (pairs[1][0], "nirgends")])
    places: list[dict[str, list[int]]] = [{}, {}]
    for row, pair in enumerate(types):
        for side in (0, 1):
            places[side].setdefault(pair[side].lower(), []).append(row)
    means = [{word: v[rows].mean(0) for word, rows in places[i].items()} for i, v in enumerate((y, x))]
    known = list(dict.fromkeys([*pairs, wrong]))
    # the translations of a word stand together, where the word first stands
    first = {word: place for place, word in reversed([*enumerate(a for a, _ in known)])}
    known.sort(key=lambda pair: first[pair[0]])

    def fitted(**changed):
        settings = {"supervision": "dictionary", "dictionary": path, "centre": False, **changed}
        return fit_rotation(config(**settings), features(2, subword="mean"), pretrained)

    missing = "pairs of the dictionary with a word that is not in the sentences"
    names = set()
    for words, kept in ((10_000, known), (9, known[:9])):
        few = fitted(words=words)
        a, b = np.array([means[1][word] for word, _ in kept]), np.array([means[0][word] for _, word in kept])
        assert few.maps[0].fit.pairs == len(kept) and few.counts[missing] == 2
        turn = orthogonal_procrustes(a, b)[0]
        np.testing.assert_allclose(few.maps[0].fit.map.apply(torch.from_numpy(a)).numpy(), a @ turn, atol=2e-3)
        names.add(few.name)
    assert fitted(lower=False).counts[missing] > 2  # names, say
    # named by what the file holds, not by where it is
    (tmp_path / "there").mkdir()
    moved = shutil.copy(path, tmp_path / "there" / "copy.txt")
    assert fitted(dictionary=str(moved), words=9).name in names
    write_pairs(tmp_path / "fr.txt", pairs)
    assert {fitted().name, fitted(dictionary=None).name}.isdisjoint(names)


CANNOT_BE_FITTED = [
    ({}, 5, {}, None),
    ({}, -1, {"target_model": "narrow"}, ("rotation", "conflict")),
    ({"pairs": {"x": SAME, "y": SAME}}, -1, {}, ("rotation.pairs", "conflict")),
    ({}, -1, {"text": None}, None),
    ({"supervision": "dictionary", "dictionary": "HERE"}, -1, {}, ("nowhere.txt rotation.dictionary", "empty")),
    ({"dictionary": "HERE"}, -1, {}, None),
]
"""Settings, layer, changes of the model; the place and code where this package refuses itself."""


@pytest.mark.parametrize(("settings", "layer", "changed", "expected"), CANNOT_BE_FITTED)
def test_what_cannot_be_fitted_is_refused(runs, tmp_path, settings, layer, changed, expected):
    if "dictionary" in settings:
        settings = {**settings, "dictionary": write_pairs(tmp_path / "nowhere.txt", [("nowhere", "nirgends")])}
    if "target_model" in changed:
        shape = ModelConfig(layers=1, heads=2, hidden=8)
        changed = {"target_model": MaskedLM(shape, SharingConfig(), [np.arange(9)], 9, 48, 1, False, 0)}
    error = refusal(lambda: fit_rotation(config(**settings), features(layer), replace(runs["shared"], **changed)))
    assert expected in (None, place_and_code(error))
