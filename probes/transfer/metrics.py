"""Scores of token labelling, in percent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def token_scores(gold: NDArray[np.int64], predicted: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy and macro and micro F1 over words; a label is a class, −1 predicts nothing.

    gold, predicted   [words] class numbers. F1 of a class = 2·tp / (2·tp + fp + fn); macro F1 is
    the mean over the classes that occur in ``gold``, micro F1 pools tp, fp and fn.
    """
    if not len(gold):
        return {"accuracy": 0.0, "macro_f1": 0.0, "micro_f1": 0.0}
    classes = int(max(gold.max(), predicted.max())) + 1
    hit = gold == predicted
    tp = np.bincount(gold[hit], minlength=classes)
    in_gold = np.bincount(gold, minlength=classes)
    in_predicted = np.bincount(predicted[predicted >= 0], minlength=classes)
    f1 = 2 * tp / np.maximum(in_gold + in_predicted, 1)
    micro = 2 * tp.sum() / (in_gold.sum() + in_predicted.sum())
    return {"accuracy": _percent(hit.mean()), "macro_f1": _percent(f1[in_gold > 0].mean()), "micro_f1": _percent(micro)}


def _percent(value: Any) -> float:
    return round(100 * float(value), 4)
