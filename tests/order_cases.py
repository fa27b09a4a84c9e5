"""Random order models and sentences, and order models by brute force.

The brute force is strings and loops over permutations, written from the description of the features; it uses nothing
of synthlang.order.
"""

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np

from synthlang.corpus import Corpus
from synthlang.order.model import OrderModel

TAGS = ("NOUN", "VERB", "ADP", "PUNCT")
ARCS = ("nsubj", "obj", "case", "punct", "nmod:poss")
HEADS = {"N": ("NOUN", "PROPN", "PRON"), "V": ("VERB",)}


def random_weights(node, rng, share=0.6, ngrams=150):
    """{feature: weight}: a share of all features of two items and some n-grams, often with padding."""
    weights = {}
    full = [f"{t}&{a}" for t in TAGS for a in ARCS] + [f"@{t}&@" for t in HEADS[node]]
    tags, arcs = [*TAGS, *(f"@{t}" for t in HEADS[node])], [*ARCS, "@"]
    for names in (full, tags, arcs):
        pairs = [(f, a, b) for f in ("BI", "PRE", "BFR", "AFT", "BTW") for a, b in itertools.product(names, names)]
        pairs += [("BI", "BOS", a) for a in names] + [("BI", a, "EOS") for a in names]
        weights.update({"_".join(p): float(rng.normal()) for p in pairs if rng.random() < share})
    for _ in range(ngrams):
        length = int(rng.integers(3, 6))
        left, right = int(rng.integers(0, 3)), int(rng.integers(0, 3))
        names = ["BOS"] * left + [str(rng.choice(full)) for _ in range(length - left - right)] + ["EOS"] * right
        if left + right < length and 0 in (left, right):
            weights["HI_" + "_".join(names)] = float(rng.normal())
    return weights


def random_model(seed, **values):
    """A model with random weights for both classes."""
    rng = np.random.default_rng(seed)
    weights: Any = {node: random_weights(node, rng) for node in ("N", "V")}
    return OrderModel(name=f"random-{seed}", weights=weights, **values)


def node_sentence(rng, node, n, tags=TAGS, arcs=ARCS):
    """A sentence that is one node of n items, its head anywhere."""
    at = int(rng.integers(n))
    upos = [str(rng.choice(tags)) for _ in range(n)]
    deprel = [str(rng.choice(arcs)) for _ in range(n)]
    upos[at], deprel[at] = str(rng.choice(HEADS[node])), "root"
    return {
        "form": [f"w{i}" for i in range(n)],
        "upos": upos,
        "head": [0 if i == at else at + 1 for i in range(n)],
        "deprel": deprel,
    }


def random_tree_sentence(rng, words, arcs=ARCS):
    """A projective sentence with a random tree: each span has a head, its dependents head the rest."""
    head = [0] * words

    def build(first, last, above):
        root = int(rng.integers(first, last + 1))
        head[root] = above
        for low, high in ((first, root - 1), (root + 1, last)):
            at = low
            while at <= high:
                cut = int(rng.integers(at, high + 1))
                build(at, cut, root + 1)
                at = cut + 1

    build(0, words - 1, 0)
    return {
        "form": [f"w{i}" for i in range(words)],
        "upos": [str(rng.choice((*TAGS, "PRON"))) for _ in range(words)],
        "head": head,
        "deprel": ["root" if h == 0 else str(rng.choice(arcs)) for h in head],
    }


def random_corpus(seed, sentences, longest=14, first=0, arcs=ARCS):
    """Random projective sentences."""
    rng = np.random.default_rng(seed)
    return Corpus.of([random_tree_sentence(rng, int(rng.integers(1, longest)), arcs) for _ in range(sentences)], first)


def reference_items(sentence):
    """The items of a one-node sentence for the reference: (tag, arc, is_head)."""
    return [(t, a, h == 0) for t, a, h in zip(sentence["upos"], sentence["deprel"], sentence["head"], strict=True)]


def names(item):
    """An item (tag, arc, is_head) in the views full, tag, arc."""
    tag, arc, is_head = item
    return (f"@{tag}&@", f"@{tag}", "@") if is_head else (f"{tag}&{arc}", tag, arc)


def features(items):
    """{feature: count} of items in this order."""
    count: Counter[str] = Counter()
    head = next(i for i, item in enumerate(items) if item[2])
    n = len(items)
    for view in range(3):
        x = [names(item)[view] for item in items]
        for a, b in itertools.pairwise(["BOS", *x, "EOS"]):
            count[f"BI_{a}_{b}"] += 1
        for i, j in itertools.combinations(range(n), 2):
            count[f"PRE_{x[i]}_{x[j]}"] += 1
            if head not in (i, j):
                family = "BFR" if j < head else "AFT" if i > head else "BTW"
                count[f"{family}_{x[i]}_{x[j]}"] += 1
    m = min(5, n)
    padded = ["BOS"] * (m - 1) + [names(item)[0] for item in items] + ["EOS"] * (m - 1)
    for length in range(3, m + 1):
        for end in range(m - 1, len(padded)):  # the first real item is at m - 1
            if end - length + 1 >= 0:
                count["HI_" + "_".join(padded[end - length + 1 : end + 1])] += 1
    return count


def probabilities(items, weights, temperature=1.0):
    """Return {order (indices into items): p} of all orders. ``weights`` is {feature: weight}."""
    scores = {}
    for order in itertools.permutations(range(len(items))):
        found = features([items[i] for i in order])
        scores[order] = sum(weights.get(f, 0.0) * c for f, c in found.items()) / temperature
    most = max(scores.values())
    total = math.fsum(math.exp(s - most) for s in scores.values())
    return {order: math.exp(s - most) / total for order, s in scores.items()}


def mixed(weights, other, share):
    """(1 − share) · weights + share · other."""
    return {f: (1 - share) * weights.get(f, 0.0) + share * other.get(f, 0.0) for f in {*weights, *other}}


# of the same pieces, so that a feature's name has several readings that occur together
UNDERSCORES = ("NOUN", "_", "N_a", "a"), ("a", "b", "a_b", "b_a", "_", "nmod:because_of", "of", "x_EOS")


def weights_of(sentences, seed, share=0.7):
    """Random weights for most features that some order of the sentences has."""
    rng = np.random.default_rng(seed)
    found: dict[str, None] = {}
    for sentence in sentences:
        for order in itertools.permutations(reference_items(sentence)):
            found.update(dict.fromkeys(features(order)))
    kept = [name for name in found if set(name.split("_")[1:]) != {"EOS"} and rng.random() < share]
    return {name: float(rng.normal()) for name in kept}
