"""Order models by brute force: strings and loops over permutations, written from the description of the features.

Nothing here uses synthlang.order, so that it is an independent reference.
"""

import itertools
import math
from collections import Counter


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
    """{order (indices into items): p} of all orders; ``weights`` is {feature: weight}."""
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
