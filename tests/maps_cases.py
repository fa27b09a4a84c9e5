"""Inputs of the probe ``maps``, and a plain computation of its measures, word by word with dense matrices."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import torch
from scipy.linalg import orthogonal_procrustes

from pretrain.model.text import Text
from probes.measures.maps.probe import maps_probe
from probes.measures.probe_input import ProbeInput
from probes.measures.table import ProbeConfig
from probes.models.pretrained import Pretrained
from synthlang.config import parse
from tests.aligned_runs import plain_ids, plain_states

SOURCE = "builtin:mini-english?types=500&sentences=60&dev=0&test=0"
SAME = {"x": {"kind": "derived", "source": SOURCE, "left": "parent", "right": "parent"}}
SUBWORDS = {"start": "first", "end": "last", "mean": "mean"}


def subject_of(pretrained: Pretrained, maps: dict[str, Any] | None = None, **settings: Any) -> ProbeInput:
    data = {"dev": 12, "sentences": 40}
    return ProbeInput(pretrained, parse(ProbeConfig, {"data": data, "maps": maps or {}, **settings}))


def values_of(given: ProbeInput) -> dict[str, Any]:
    with given.reading():
        return maps_probe(given).values


def write_pairs(path, pairs) -> str:
    path.write_text("".join(f"{a} {b}\n" for a, b in pairs))
    return str(path)


class Plain:
    """All vectors of one layer, numbered 0 … N in both models. Every sentence is read alone."""

    def __init__(self, given: ProbeInput, layer: int) -> None:
        pre, text, self.data = given.pretrained, given.aligned.text, given.data
        subword = SUBWORDS[given.config.subword]
        sides = ((pre.target_model, pre.target, text.left), (pre.model, pre.source, text.right))
        self.states: list[dict[int, np.ndarray]] = [{}, {}]
        self.means: list[dict[int, np.ndarray]] = [{}, {}]
        self.words = [{row: corpus[row].words for row in range(len(corpus))} for _, _, corpus in sides]
        with torch.no_grad():
            for side, (body, reader, _) in enumerate(sides):
                body.eval()
                for row in [*self.data.train.tolist(), *self.data.dev.tolist()]:
                    words = self.words[side][row]
                    vectors = plain_states(body, reader, words, layer, subword)[: len(words)]
                    self.states[side][row] = np.array([v.numpy() for v in vectors], np.float64)
                    self.means[side][row] = self._mean_of_tokens(body, reader, words, layer)

    @staticmethod
    def _mean_of_tokens(body, reader, words, layer):
        ids, _ = plain_ids(reader, words)
        (states,) = body.read(Text.of(torch.tensor([ids]), reader.number), layers=[layer])
        return states[0][1:-1].numpy().astype(np.float64).mean(0)

    def types(self, side: int) -> tuple[list[str], np.ndarray]:
        """Every type of the fitted sentences with its mean."""
        found = defaultdict(list)
        for row in self.data.train.tolist():
            for word, vector in zip(self.words[side][row], self.states[side][row], strict=True):
                found[word].append(vector)
        return list(found), np.array([np.mean(vectors, axis=0) for vectors in found.values()])

    def linked(self, rows) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors of both words of every alignment in the pairs at ``rows``: other language, source."""
        pairs = [(row, a, b) for row in rows.tolist() for a, b in self.data.links.of_pair(row)]
        left = np.array([self.states[0][row][a] for row, a, _ in pairs])
        return left, np.array([self.states[1][row][b] for row, _, b in pairs])

    def context(self) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
        """All measured words, parent first, and the rows that are linked."""
        rows = self.data.dev.tolist()
        starts = [
            dict(zip(rows, np.cumsum([0] + [len(s[r]) for r in rows]).tolist(), strict=False)) for s in self.words
        ]
        pairs = [(starts[1][r] + b, starts[0][r] + a) for r in rows for a, b in self.data.links.of_pair(r)]
        left, right = (np.concatenate([states[r] for r in rows]) for states in self.states)
        return right, left, pairs

    def sentences(self, rows) -> tuple[np.ndarray, np.ndarray]:
        """Means of both sides: other language, parent."""
        left, right = (np.array([self.means[side][row] for row in rows.tolist()]) for side in (0, 1))
        return left, right


def unit(x: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = x / np.linalg.norm(x, axis=1, keepdims=True)
    return scaled


def plain_map(x: np.ndarray, y: np.ndarray, rounds: int | None):
    """(function for x's language, function for y's): iterative normalisation, or none; then Procrustes."""
    steps = []
    for side in (x, y):
        rows, means = side, []
        for _ in range(rounds or 0):
            rows = unit(rows)
            means.append(rows.mean(0))
            rows = rows - means[-1]
        steps.append(means)

    def normal(side, rows):
        if rounds is None:
            return rows
        for mean in steps[side]:
            rows = unit(rows) - mean
        return unit(rows)

    turn, _ = orthogonal_procrustes(normal(0, x), normal(1, y))
    return lambda rows: normal(0, rows) @ turn, lambda rows: normal(1, rows)


def similarities(x: np.ndarray, y: np.ndarray, k: int = 10) -> dict[str, np.ndarray]:
    """Cosine and CSLS of every row of x to every row of y."""
    cosine = unit(x) @ unit(y).T
    of_x = np.sort(cosine, axis=1)[:, -k:].mean(1)
    of_y = np.sort(cosine, axis=0)[-k:].mean(0)
    return {"cosine": cosine, "csls": 2 * cosine - of_x[:, None] - of_y[None]}


def plain_accuracy(x: np.ndarray, y: np.ndarray, pairs) -> dict[str, dict[str, float]]:
    """Compute the values of ``context`` and ``sentences`` plainly."""
    result = {}
    for name, table in similarities(x, y).items():
        ways = {}
        for way, matrix, asked in (("forward", table, pairs), ("backward", table.T, [(b, a) for a, b in pairs])):
            credits = []
            for query, answer in asked:
                near = matrix[query] >= matrix[query].max() - 1e-6
                credits.append(near[answer] / near.sum())
            ways[way] = 100 * float(np.mean(credits))
        result[name] = {**ways, "mean": (ways["forward"] + ways["backward"]) / 2}
    return result


def plain_precision(x: np.ndarray, y: np.ndarray, names, test) -> dict[str, dict[str, dict[str, float]]]:
    """Compute the values of ``words`` plainly, from ``names`` of the rows of x and y and ``test`` pairs of them."""
    result = {}
    for name, table in similarities(x, y).items():
        ways = {}
        for way, matrix, side in (("forward", table, 0), ("backward", table.T, 1)):
            right = defaultdict(set)
            for pair in test:
                if pair[0] in names[0] and pair[1] in names[1]:
                    right[pair[side]].add(pair[1 - side])
            found = []
            for word, answers in right.items():
                order = np.argsort(-matrix[names[side].index(word)], kind="stable")
                nearest = [names[1 - side][i] for i in order[:10]]
                found.append([bool(answers & set(nearest[:k])) for k in (1, 5, 10)])
            ways[way] = dict(zip(("p@1", "p@5", "p@10"), 100 * np.mean(found, axis=0), strict=True))
        result[name] = ways
    return result
