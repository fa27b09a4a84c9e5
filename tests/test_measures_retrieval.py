"""Word retrieval against a slow version: one word at a time, all similarities in float64."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from probes.measures.probe_input import ProbeInput
from probes.measures.retrieval.probe import retrieval_probe
from probes.measures.retrieval.scores import Tags
from probes.measures.table import ProbeConfig
from probes.models.opening import open_pretrained
from synthlang.config import parse
from tests.adjust_models import save_model
from tests.aligned_runs import plain_ids, plain_states, random_run

PLAIN = {"start": "first", "end": "last", "mean": "mean"}
SHARED = ["1984", ".", "chat"]


def drawn_text(folder, pairs=60, seed=3):
    """Sentence pairs of like words with some links more, many to many; some words are the same in both languages."""
    draw = np.random.default_rng(seed)
    words = [[f"{start}{i}" for i in range(30)] + SHARED for start in ("le", "the")]
    lines: tuple[list[str], list[str]] = ([], [])
    links: list[str] = []
    for _ in range(pairs):
        size = int(draw.integers(2, 7))
        numbers = draw.integers(len(words[0]), size=size)
        for side in (0, 1):
            lines[side].append(" ".join(words[side][i] for i in numbers))
        found = {(i, i) for i in range(size)} | {(int(draw.integers(size)), int(draw.integers(size)))}
        links.append(" ".join(f"{a}-{b}" for a, b in sorted(found)))
    for name, text in (("left", lines[0]), ("right", lines[1]), ("links", links)):
        (folder / name).write_text("\n".join(text) + "\n")
    names = {name: str(folder / name) for name in ("left", "right")}
    path = {"kind": "file", "path": str(folder / "links")}
    return {"language": "other", "natural": True, "pairs": {"pair": {"kind": "text", **names, "links": path}}}


def copied(pretrained, noise=0.0):
    """With the parent's embeddings, disturbed, in the rows of the derived language."""
    words = pretrained.model.embeddings.words.data
    half = len(words) // 2
    drawn = torch.randn(half, words.shape[1], generator=torch.Generator().manual_seed(0))
    words[half:] = words[:half] + noise * drawn
    return pretrained


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return copied(random_run(tmp_path_factory.mktemp("run")), 0.03)


@pytest.fixture(scope="module")
def natural(tmp_path_factory):
    folder = tmp_path_factory.mktemp("natural")
    return open_pretrained(str(save_model(folder / "model", "roberta")), "other", True), drawn_text(folder)


class Slow:
    """Everything again from the pairs and the links, with loops."""

    def __init__(self, given, variant, layer):
        self.given, self.settings = given, given.config.retrieval
        left, right = (self.words(i, role) for i, role in enumerate(("target", "source")))
        self.sides = [left, right]
        rows = sorted(given.measured.tolist())
        links = [((row, a), (row, b)) for row in rows for a, b in given.data.links.of_pair(row)]
        if self.settings.candidates == "aligned":
            self.sides = [[w for w in side if any(link[i] == w for link in links)] for i, side in enumerate(self.sides)]
        if variant == "types":
            self.sides = [self.first(i, side) for i, side in enumerate(self.sides)]
        self.links = [link for link in links if link[0] in self.sides[0] and link[1] in self.sides[1]]
        self.sides = [[word for word in side if self.known(i, word)] for i, side in enumerate(self.sides)]
        self.cosines = self.similarities(layer)
        k = self.settings.k
        of_left = np.sort(self.cosines, 1)[:, -k:].mean(1)
        of_right = np.sort(self.cosines, 0)[-k:].mean(0)
        self.csls = 2 * self.cosines - of_left[:, None] - of_right[None]

    def corpus(self, i):
        return (self.given.aligned.text.left, self.given.aligned.text.right)[i]

    @cache  # noqa: B019
    def sentence(self, i, row):
        return self.corpus(i)[row]

    def form(self, i, word):
        return self.sentence(i, word[0]).words[word[1]]

    def words(self, i, role):
        reader = self.given.pretrained.target if role == "target" else self.given.pretrained.source
        found = []
        for row in sorted(self.given.measured.tolist()):
            columns = plain_ids(reader, self.sentence(i, row).words)[1]
            found += [(row, place) for place, span in enumerate(columns) if len(span)]
        return found

    def first(self, i, words):
        seen, kept = set(), []
        for word in words:
            if self.form(i, word) not in seen:
                seen.add(self.form(i, word))
                kept.append(word)
        return kept

    def similarities(self, layer):
        matrices = [self.vectors(i, layer) for i in (0, 1)]
        units = [matrix / np.linalg.norm(matrix, axis=1, keepdims=True) for matrix in matrices]
        return units[0] @ units[1].T

    def vectors(self, i, layer):
        """Return the vectors of the candidates of a side."""
        role = ("target", "source")[i]
        reader = self.given.pretrained.target if role == "target" else self.given.pretrained.source
        states, rows = {}, {word[0] for word in self.sides[i]}
        for row in rows:
            words = self.sentence(i, row).words
            subword = PLAIN[self.given.config.subword]
            states[row] = plain_states(self.given.body(role), reader, words, layer, subword)
        return torch.stack([states[row][place] for row, place in self.sides[i]]).double().numpy()

    def known(self, i, word):
        """Return whether a word has a vector."""
        return True

    def kept(self, name):
        """The links of a set."""
        fitted = {
            (self.form(0, (row, a)), self.form(1, (row, b)))
            for row in self.given.fitted.tolist()
            for a, b in self.given.data.links.of_pair(row)
        }
        forms = [(self.form(0, a), self.form(1, b)) for a, b in self.links]
        drop_alike = self.settings.exact_matches == "drop" and name != "linked"
        drop_seen = self.settings.seen == "drop" and name == "counted"
        return [
            link
            for link, form in zip(self.links, forms, strict=True)
            if not (drop_alike and form[0] == form[1]) and not (drop_seen and form in fitted)
        ]

    def credit(self, table, side, word):
        """Return the credit of a word: the share of the words with the best score that are aligned with it."""
        if word not in self.sides[side]:
            return 0.0
        scores = table[self.sides[0].index(word)] if side == 0 else table[:, self.sides[1].index(word)]
        best = {self.sides[1 - side][i] for i in np.flatnonzero(scores >= scores.max() - 1e-6)}
        gold = {link[1 - side] for link in self.links if link[side] == word}
        return len(best & gold) / len(best)

    def accuracy(self, links, table):
        """(forward, backward, mean) in percent; None if there is no link."""
        if not links:
            return None
        ways = []
        for side in (1, 0):
            asking = {link[side] for link in links}
            ways.append(100 * np.mean([self.credit(table, side, word) for word in asking]))
        return (*ways, sum(ways) / 2)


def check(found, expected):
    if expected is None:
        assert found is None
    else:
        assert [found[key] for key in ("forward", "backward", "mean")] == pytest.approx(expected, abs=1e-6)
        assert found["low"] <= found["mean"] <= found["high"]


CASES: dict[str, dict[str, Any]] = {
    "paper": {},
    "code": {"retrieval": {"candidates": "aligned", "exact_matches": "keep", "seen": "keep", "k": 3}},
    "seen": {"subword": "mean", "retrieval": {"exact_matches": "drop", "seen": "keep", "rank_pairs": "counted"}},
    "alike": {"subword": "start", "retrieval": {"exact_matches": "keep", "tag_pairs": "counted", "rank_bins": 3}},
}


def subject_of(request, kind, case, **settings):
    if kind == "run":
        config = {"data": {"dev": 15, "sentences": 60}}
        pretrained = request.getfixturevalue("run")
    else:
        pretrained, config = request.getfixturevalue("natural")
        config = {**config, "data": {"dev": 20, "one_to_one": False}}
    return ProbeInput(pretrained, parse(ProbeConfig, {**config, **CASES[case], **settings}))


@pytest.mark.parametrize("case", sorted(CASES))
@pytest.mark.parametrize("kind", ["run", "natural"])
def test_every_number_is_that_of_the_slow_version(request, kind, case):
    layers = [-1, 0]
    given = subject_of(request, kind, case, layers=layers)
    with given.reading():
        found = retrieval_probe(given)
        values = found.values
        json.dumps(values, allow_nan=False)
        count = given.body("source").shape.layers
        tables = {}
        for variant in ("context", "types"):
            of_variant = values["variants"][variant]
            for layer in of_variant["layers"]:
                slow = tables[variant, layer["layer"]] = Slow(given, variant, layer["layer"])
                assert of_variant["candidates"] == {"left": len(slow.sides[0]), "right": len(slow.sides[1])}
                for name in ("linked", "unlike", "counted"):
                    links = slow.kept(name)
                    assert of_variant["links"][name] == len(links)
                    check(layer["pairs"][name]["csls"], slow.accuracy(links, slow.csls))
                    check(layer["pairs"][name]["cosine"], slow.accuracy(links, slow.cosines))
    slow = tables["context", count]
    assert values["headline"]["layer"] == count
    check(values["headline"]["csls"], slow.accuracy(slow.kept("counted"), slow.csls))
    assert 0 < slow.accuracy(slow.kept("linked"), slow.csls)[2] < 100, "else this shows little"
    check_ranks(values["ranks"], slow)
    if kind == "run":
        for variant in ("context", "types"):
            check_tags(values["tags"]["variants"][variant], tables[variant, count])
    else:
        assert values["tags"] is None and any("part of speech" in note for note in found.notes)
    figures = {figure.name: figure for figure in found.figures}
    assert "retrieval-by-layer" in figures
    bins = values["ranks"]["bins"]
    apart = len(bins) > slow.settings.rank_bins / 2  # else most ranks differ equally, and the last is no tenth
    assert values["ranks"]["drop"] == (bins[0]["accuracy"] - bins[-1]["accuracy"] if apart else None)
    assert apart or (kind, case) != ("natural", "alike")
    assert ("retrieval-by-rank" in figures) == (len(bins) > 1) and (kind == "run" or len(bins) > 1)
    if len(bins) == 1:
        return
    pairs, note = f"about {values['ranks']['links'] / len(bins):.0f} aligned pairs", figures["retrieval-by-rank"].note
    assert note.startswith(f"Layer {count}, words in context") and pairs in note and "equally many" not in note


def check_tags(found, slow):
    groups = {
        "lexical overlap": ["NUM", "PUNCT", "PROPN"],
        "closed class": ["DET", "ADP", "CONJ", "PRON", "AUX"],
        "open class": ["NOUN", "ADV", "ADJ", "VERB"],
    }
    links = slow.kept(slow.settings.tag_pairs)
    tags = []
    for _, (row, place) in links:
        tag = slow.sentence(1, row).columns["upos"][place]
        tags.append({"CCONJ": "CONJ", "SCONJ": "CONJ"}.get(tag, tag))
    assert list(found["groups"]) == list(groups)
    known = 0
    for group, names in groups.items():
        means = []
        for name in names:
            some = [link for link, tag in zip(links, tags, strict=True) if tag == name]
            known += len(some)
            expected = slow.accuracy(some, slow.csls)
            check(found["groups"][group]["tags"][name], expected)
            means += [] if expected is None else [expected[2]]
        pooled = [link for link, tag in zip(links, tags, strict=True) if tag in names]
        check(found["groups"][group]["pooled"], slow.accuracy(pooled, slow.csls))
        assert found["groups"][group]["average"] == (pytest.approx(np.mean(means)) if means else None)
    assert sum(found["left_out"].values()) == len(links) - known


def check_ranks(found, slow):
    """The differences of rank are those of counted words; the mean over all bins is that over all links."""
    links = slow.kept(slow.settings.rank_pairs)
    rows = sorted({*slow.given.measured.tolist(), *slow.given.fitted.tolist()})
    ranks = []
    for i in (0, 1):
        forms = [form for row in rows for form in slow.sentence(i, row).words]
        types = sorted(set(forms))
        order = stats.rankdata([-forms.count(name) for name in types], "average")
        ranks.append(dict(zip(types, order, strict=True)))
    sizes = [abs(ranks[0][slow.form(0, a)] - ranks[1][slow.form(1, b)]) for a, b in links]
    credits = [(slow.credit(slow.csls, 0, a) + slow.credit(slow.csls, 1, b)) / 2 for a, b in links]
    assert found["links"] == len(links)
    edges = sorted(set(np.quantile(sizes, np.arange(1, slow.settings.rank_bins) / slow.settings.rank_bins)))
    bins: dict[int, list[tuple[float, float]]] = {}
    for size, credit in zip(sizes, credits, strict=True):
        bins.setdefault(sum(edge < size for edge in edges), []).append((size, credit))
    expected = [bins[key] for key in sorted(bins)]
    assert len(found["bins"]) == len(expected)
    for one, members in zip(found["bins"], expected, strict=True):
        assert one["difference"] == pytest.approx(max(1.0, np.median([size for size, _ in members])))
        assert one["accuracy"] == pytest.approx(100 * np.mean([credit for _, credit in members]), abs=1e-6)


def test_examples_are_the_nearest_words_in_context(natural):
    """Each requested word has its first occurrences, with the word that the slow version finds."""
    pretrained, config = natural
    settings = {"layers": [-1], "data": {"dev": 20}, "retrieval": {"examples": ["THE3", "the7", "nowhere"]}}
    given = ProbeInput(pretrained, parse(ProbeConfig, {**config, **settings}))
    with given.reading():
        found = retrieval_probe(given)
        slow = Slow(given, "context", given.body("source").shape.layers)
    asked = [w for name in ("the3", "the7") for w in slow.sides[1] if slow.form(1, w) == name]
    assert len(found.values["examples"]) == len(asked) > 1
    for one, word in zip(found.values["examples"], asked, strict=True):
        best = slow.sides[0][int(slow.csls[:, slow.sides[1].index(word)].argmax())]
        for side, at, keys in ((1, word, ("word", "sentence")), (0, best, ("nearest", "in"))):
            words = list(slow.sentence(side, at[0]).words)
            words[at[1]] = f"«{words[at[1]]}»"
            assert [one[key] for key in keys] == [slow.form(side, at), " ".join(words)]
        assert one["linked"] == ((best, word) in slow.links)
        assert one["csls"] == pytest.approx(slow.csls[:, slow.sides[1].index(word)].max(), abs=1e-5)
    assert "nearest words, parent → other" in found.tables[-1].caption and len(found.tables[-1].rows) == len(asked)
    assert "retrieval.examples: nowhere does not occur in the measured sentences" in found.notes


def test_parts_of_speech_of_the_other_languages_words_by_a_tagger_of_their_own(natural, monkeypatch):
    """Each link has the tag of its left word, that of the tagger that reads the left sentences."""
    pretrained, config = natural
    settings = {"layers": [-1], "data": {"dev": 20}, "retrieval": {"parser": "spacy:any", "tag_words": "other"}}
    given = ProbeInput(pretrained, parse(ProbeConfig, {**config, **settings}))
    read = []

    def tags_of(corpus, rows, parser, report):
        read.append(parser)
        even = [code % 2 for code in corpus.form.codes.tolist()]
        assert corpus is given.aligned.text.left
        return Tags(np.asarray(even, np.int64), ("NOUN", "VERB"), "a tagger")

    monkeypatch.setattr("probes.measures.retrieval.probe.tags_of", tags_of)
    with given.reading():
        result = retrieval_probe(given)
        found = result.values["tags"]["variants"]["context"]["groups"]["open class"]["tags"]
        slow = Slow(given, "context", given.body("source").shape.layers)
    left = given.aligned.text.left
    code = {name: number for number, name in enumerate(left.form.names or ())}
    links = slow.kept("linked")
    for number, tag in enumerate(("NOUN", "VERB")):
        some = [(a, b) for a, b in links if code[slow.form(0, a)] % 2 == number]
        check(found[tag], slow.accuracy(some, slow.csls))
    assert read == ["spacy:any"] and any("part of speech of the words of other" in one.caption for one in result.tables)
