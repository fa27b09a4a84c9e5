"""The loss of an adjustment against a plain one, a sentence at a time; where its gradients go; vectors of words."""

import copy
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from pretrain.adjust.batches import word_pairs
from pretrain.adjust.config import LossConfig
from pretrain.adjust.loss import AlignmentLoss
from pretrain.adjust.vectors import encoder_of, word_vectors
from pretrain.hub import load_model, open_base
from synthlang.corpus import Corpus
from synthlang.parallel.links import Links
from synthlang.parallel.pairs import LinkedText
from synthlang.parallel.prepare import DataConfig, prepare_pair
from tests.adjust_models import KINDS, save_model

LEFT = ["le petit chatnoir noir .", "unbelievablest chien !", "un chienchat voit"]
RIGHT = ["the small blackest cat .", "thingsdog dog happened !", "a sees black"]
LINKS: list[list[tuple[int, int]]] = [[(0, 0), (1, 1), (2, 3), (3, 2)], [(0, 0), (0, 2), (1, 1)], [(0, 0)]]

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "frozen": {"target": "frozen"},
    "right moves": {"moves": "right"},
    "right moves, frozen": {"moves": "right", "target": "frozen"},
    "hold the moving": {"held": "moving", "hold": 0.3},
    "hold both": {"held": "both"},
    "hold none": {"held": "none"},
    "hold none, frozen": {"held": "none", "target": "frozen"},
    "aligned only": {"held_words": "aligned"},
    "start": {"subword": "start"},
    "mean": {"subword": "mean"},
    "all": {"pulled": "all"},
    "all, aligned": {"pulled": "all", "held_words": "aligned", "held": "both"},
    "CLS": {"pulled": "cls"},
    "CLS, aligned, frozen": {"pulled": "cls", "held_words": "aligned", "target": "frozen", "layers": (1, 2)},
    "CLS and SEP": {"pulled": "cls_sep", "moves": "right"},
    "CLS and SEP, aligned": {"pulled": "cls_sep", "held_words": "aligned", "reduction": "mean"},
    "layers": {"layers": (1, 3)},
    "all layers, mean": {"layers": (0, 1, 2, -1), "layers_as": "mean", "subword": "mean"},
    "first layer": {"layers": (0,)},
    "norm": {"distance": "norm", "layers": (-2, -1)},
    "mean of terms": {"reduction": "mean", "hold": 2.0},
}

CASES = dict.fromkeys([*product(KINDS, ["default", "all layers, mean"]), *zip(cycle(KINDS), SETTINGS)])
"""Two settings with each kind of model, and each setting with one kind."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tokenizers that cut some of the words and keep others whole."""
    return {kind: save_model(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


def batch_of(folder, rows=(0, 1, 2)):
    base = open_base(str(folder))
    words = [Corpus.of_words([line.split() for line in lines]) for lines in (LEFT, RIGHT)]
    text = LinkedText(words[0], words[1], Links.of(LINKS), "", {})
    tokenizer = base.checkpoints[""].tokenizer
    config = DataConfig(dev=0, one_to_one=False)
    data = prepare_pair("x", text, (tokenizer, tokenizer), config, 40, 0)
    return word_pairs([data], [np.asarray(rows, np.int64)], base.specials)


def moved(model):
    """The model after its weights were changed a little, so that it differs from the frozen one."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


class Plain:
    """A sentence at a time, a word at a time, with the tokenizer's own call."""

    def __init__(self, folder, settings):
        self.tokenizer, self.settings = AutoTokenizer.from_pretrained(folder), settings

    def vectors(self, model, line):
        """[layers] of lists: a vector for each word, then those of the two sentence tokens."""
        s, t = self.settings, self.tokenizer
        pieces = [t(" " + word, add_special_tokens=False).input_ids for word in line.split()]
        ids = [t.cls_token_id, *[i for piece in pieces for i in piece], t.sep_token_id]
        out = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
        result = []
        for layer in s.layers:
            states = out.hidden_states[layer if layer >= 0 else len(out.hidden_states) + layer][0]
            words, at = [], 1
            for piece in pieces:
                mine = states[at : at + len(piece)]
                words.append({"start": mine[0], "end": mine[-1], "mean": mine.mean(0)}[s.subword])
                at += len(piece)
            result.append([*words, states[0], states[-1]])
        if s.layers_as == "mean":
            result = [[torch.stack(column).mean(0) for column in zip(*result, strict=True)]]
        return result

    def distance(self, a, b):
        squared = ((a - b) ** 2).sum()
        return squared if self.settings.distance == "squared" else squared.sqrt()

    def loss(self, model, frozen, rows=(0, 1, 2)):
        s = self.settings
        pull, hold, pairs, held_words = torch.zeros(()), torch.zeros(()), 0, 0
        for row in rows:
            lines = {"left": LEFT[row], "right": RIGHT[row]}
            now = {side: self.vectors(model, line) for side, line in lines.items()}
            with torch.no_grad():
                before = {side: self.vectors(frozen, line) for side, line in lines.items()}
            words = {side: len(line.split()) for side, line in lines.items()}
            around = {"words": [], "cls": [0], "cls_sep": [0, 1], "all": [0, 1]}[s.pulled]
            links = [*LINKS[row]] if s.pulled in ("words", "all") else []
            links += [(words["left"] + i, words["right"] + i) for i in around]
            other = {"left": "right", "right": "left"}[s.moves]
            target = now[other] if s.target == "current" else before[other]
            for layer in range(len(target)):
                for a, b in links:
                    of = {"left": a, "right": b}
                    pull = pull + self.distance(now[s.moves][layer][of[s.moves]], target[layer][of[other]])
            pairs += len(links)
            sides = {"other": [other], "moving": [s.moves], "both": ["left", "right"], "none": []}[s.held]
            for side in sides:
                pulled = {link[0 if side == "left" else 1] for link in links}
                held = sorted(pulled) if s.held_words == "aligned" else list(range(words[side]))
                held += [words[side] + i for i in around if words[side] + i not in held]
                held_words += len(held)
                for layer in range(len(target)):
                    for word in held:
                        hold = hold + self.distance(now[side][layer][word], before[side][layer][word])
        if s.reduction == "mean":
            return pull / pairs + s.hold * hold / max(held_words, 1), pairs, held_words
        return pull + s.hold * hold, pairs, held_words


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_loss_and_its_gradients_are_those_of_a_plain_one(folders, kind, name):
    settings = LossConfig(**SETTINGS[name])
    frozen = AutoModelForMaskedLM.from_pretrained(folders[kind]).eval()
    model = moved(copy.deepcopy(frozen))
    batch = batch_of(folders[kind])
    loss = AlignmentLoss(model, copy.deepcopy(frozen), settings).eval()
    total = loss.total(batch)
    plain_model = copy.deepcopy(model)
    expected, pairs, held = Plain(folders[kind], settings).loss(encoder_of(plain_model), encoder_of(frozen))
    torch.testing.assert_close(total, expected, rtol=1e-5, atol=1e-5)
    assert loss.counts(batch) == {"pull": pairs, "hold": held}
    total.backward()
    expected.backward()
    for (key, mine), other in zip(model.named_parameters(), plain_model.parameters(), strict=True):
        assert (mine.grad is None) == (other.grad is None), key
        if mine.grad is not None:
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("distance", ["squared", "norm"])
def test_at_the_start_nothing_is_held_back(folders, distance):
    """f = f0: R is 0, and so is its gradient (that of a norm at 0 is no NaN)."""
    model = load_model(open_base(str(folders["bert"])))
    loss = AlignmentLoss(model, None, LossConfig(hold=3.0, distance=distance)).eval()
    sums = loss(batch_of(folders["bert"]))
    assert sums["hold"].item() == pytest.approx(0.0, abs=1e-6)
    assert sums["pull"].item() > 1
    sums["hold"].backward()
    assert all(p.grad is None or float(p.grad.abs().max()) < 1e-4 for p in model.parameters())


def test_the_frozen_target_is_frozen(folders):
    """Only the moving side gets a gradient, the copy keeps its weights, and none of them is a parameter."""
    model = load_model(open_base(str(folders["bert"])))
    batch = batch_of(folders["bert"], rows=[0])
    rows = {}
    for target in ("current", "frozen"):
        loss = AlignmentLoss(model, None, LossConfig(target=target, held="none")).eval()
        before = copy.deepcopy(loss._frozen[0].state_dict())
        assert set(loss.parameters()) == set(encoder_of(model).parameters())
        optimizer = torch.optim.SGD(loss.parameters(), lr=0.1)
        loss.total(batch).backward()
        table = model.get_input_embeddings().weight.grad
        rows[target] = set(torch.nonzero(table.abs().sum(1))[:, 0].tolist())
        optimizer.step()
        optimizer.zero_grad()
        assert all(torch.equal(before[key], value) for key, value in loss._frozen[0].state_dict().items())
        assert all(p.grad is None for p in loss._frozen[0].parameters())
    left, right = (set(words.input_ids[words.mask.bool()].tolist()) for words in (batch.left, batch.right))
    assert rows["frozen"] == left
    assert rows["current"] == left | right
    assert right - left  # so the two differ


def test_words_without_a_subword_are_not_held(folders):
    """A zero-width joiner is nothing to BERT; the words after it keep their places."""
    base = open_base(str(folders["bert"]))
    words = Corpus.of_words([["the", "\u200d", "cat"]])
    text = LinkedText(words, words, Links.of([[(0, 0), (1, 1), (2, 2)]]), "", {})
    tokenizer = base.checkpoints[""].tokenizer
    data = prepare_pair("x", text, (tokenizer, tokenizer), DataConfig(dev=0), 40, 0)
    assert data.counts["links to words without a subword"] == 1
    batch = word_pairs([data], [np.asarray([0])], base.specials)
    assert batch.links.tolist() == [[0, 0], [2, 2]]
    assert batch.held("left", LossConfig()).tolist() == [0, 2]
    vectors = word_vectors(encoder_of(load_model(base)), batch.left, (3,), "mean")
    assert bool(torch.isfinite(vectors).all())
