"""States of words and sentences, and what is probed, against one sentence at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pretrain.model.text import Text
from probes.measures.probe_input import ProbeInput
from probes.measures.table import ProbeConfig
from probes.models.opening import open_pretrained
from probes.states import sentence_means, word_states
from synthlang.config import parse
from synthlang.errors import InputError
from tests.adjust_models import save_model
from tests.aligned_runs import SEPARATE, plain_ids, plain_states, random_run

PLAIN = {"start": "first", "end": "last", "mean": "mean"}
LEFT = ["le petit chien voit .", "un chat noir", "chat", "le chien noir voit un petit chat ."] * 3
RIGHT = ["the small dog sees .", "a black cat", "cat", "the black dog sees a small cat ."] * 3
LINKS = ["0-0 1-1 2-2 3-3", "0-0 1-2 2-1", "0-0", "1-2 0-0 2-1"] * 3


def settings(**changes) -> ProbeConfig:
    return parse(ProbeConfig, {"data": {"dev": 9, "sentences": 30}, **changes})


def text_pair(folder):
    for name, lines in (("left", LEFT), ("right", RIGHT), ("links", LINKS)):
        (folder / name).write_text("\n".join(lines) + "\n")
    names = {name: str(folder / name) for name in ("left", "right")}
    links = {"kind": "file", "path": str(folder / "links")}
    return {"language": "other", "natural": True, "pairs": {"pair": {"kind": "text", **names, "links": links}}}


@pytest.fixture(scope="module", params=["run", "separate", "bert", "roberta", "two"])
def probed(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param in ("run", "separate"):
        pretrained = random_run(folder, **(SEPARATE if request.param == "separate" else {}))
        return ProbeInput(pretrained, settings())
    kind = "roberta" if request.param == "roberta" else "bert"
    first = save_model(folder / "first", kind)
    other = save_model(folder / "other", "roberta", seed=1) if request.param == "two" else None
    pretrained = open_pretrained(str(first), "other", True, str(other) if other else None)
    config = settings(**text_pair(folder), data={"dev": 5})
    return ProbeInput(pretrained, config)


def reader_of(given, role):
    return given.pretrained.target if role == "target" else given.pretrained.source


def plainly(given, role, row, layer, subword="end"):
    """[words of a sentence and its two sentence tokens, d], read alone."""
    side = given.side(role)
    body, reader = given.body(role), reader_of(given, role)
    return torch.stack(plain_states(body, reader, side.corpus[row].words, layer, PLAIN[subword]))


def close(a, b):
    assert a.shape == b.shape
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("role", ["target", "source"])
@pytest.mark.parametrize("subword", ["start", "end", "mean"])
def test_word_states_are_those_of_each_word_of_each_sentence_alone(probed, role, subword):
    rows = probed.measured[::-1].copy()
    with probed.reading():
        side = probed.side(role, subword=subword)
        batches = list(word_states(side, rows))
        word = torch.cat([b.word for b in batches])
        vectors = torch.cat([b.vectors for b in batches], 1)
        expected = [w for row in rows for w in range(side.corpus.offsets[row], side.corpus.offsets[row + 1])]
        assert sorted(word.tolist()) == sorted(expected)
        at = {w: i for i, w in enumerate(word.tolist())}
        for row in rows.tolist():
            first, last = side.corpus.offsets[row : row + 2].tolist()
            here = [at[w] for w in range(first, last)]
            for i, layer in enumerate(probed.layers(role)):
                close(vectors[i, here], plainly(probed, role, row, layer, subword)[:-2])


@pytest.mark.parametrize("role", ["target", "source"])
def test_sentence_means_are_means_of_tokens_or_the_first_state(probed, role):
    body, reader = probed.body(role), reader_of(probed, role)
    with probed.reading():
        side = probed.side(role, layers=(1, 0))
        for first in (False, True):
            found = sentence_means(side.sentences, side.reader, probed.measured, first)
            for i, row in enumerate(probed.measured.tolist()):
                tokens = [t for span in plain_ids(reader, side.corpus[row].words)[1] for t in span]
                for place, layer in enumerate((1, 0)):
                    (plain,) = body.read(_text(reader, side.corpus[row].words), layers=[layer])
                    close(found[place, i], plain[0, 0] if first else plain[0, tokens].mean(0))


def _text(reader, words):
    return Text.of(torch.tensor([plain_ids(reader, words)[0]]), reader.number)


def test_a_word_without_a_token_has_no_state_and_others_keep_theirs(tmp_path):
    given = ProbeInput(random_run(tmp_path), settings())
    row = int(given.measured[0])
    with given.reading():
        side = given.side("source")
        first, count = int(side.corpus.offsets[row]), int(np.diff(side.corpus.offsets)[row])
        assert count > 2
        lost = first + 1  # its tokens go to no word any more: the sentence is as if it were not there
        lengths = np.diff(side.sentences.word_offsets).copy()
        start, stop = side.sentences.word_offsets[[lost, lost + 1]]
        lengths[lost] = 0
        sentences = replace(
            side.sentences,
            ids=np.delete(side.sentences.ids, slice(start, stop)),
            word_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        )
        (found,) = word_states(replace(side, sentences=sentences), np.array([row]))
        words = side.corpus[row].words
        reader = given.pretrained.source
        kept = [w for w in range(first, first + count) if w != lost]
        assert found.word.tolist() == kept
        plain = plain_states(given.body("source"), reader, [words[w - first] for w in kept], 2, "last")
        close(found.vectors[2], torch.stack(plain[:-2]))
        # a sentence without a token has the mean zero
        none = replace(sentences, ids=sentences.ids[:0], word_offsets=np.zeros_like(sentences.word_offsets))
        assert not sentence_means(none, side.reader, given.measured[:3]).any()


def test_measured_and_fitted_sentences_are_apart(probed):
    assert len(probed.measured) and len(probed.fitted)
    assert not set(probed.measured.tolist()) & set(probed.fitted.tolist())


def test_reading_is_without_gradients_and_dropout_and_leaves_models_as_they_were(probed):
    bodies = [probed.body(role) for role in ("target", "source")]
    bodies[0].train()
    with probed.reading():
        assert not any(body.training for body in bodies) and not torch.is_grad_enabled()
    assert bodies[0].training and torch.is_grad_enabled()
    bodies[0].eval()


def test_layers_are_counted_from_either_end_and_checked(probed):
    count = probed.body("source").shape.layers
    of = lambda *layers: replace(probed, config=settings(layers=layers)).layers("source")  # noqa: E731
    assert probed.layers("source") == tuple(range(count + 1)) and of(-1, 0) == (count, 0)
    with pytest.raises(InputError, match="layers: the model has no layer 9"):
        of(9)
    with pytest.raises(InputError, match="twice"):
        of(-1, count)
