"""Keys of a run that only some kinds of models read.

A key without effect must keep its default, so that no config describes a setting that the run does not have. The
config.yaml of a run has all keys, so a key counts as given only if its value is not the default. Keys of a term of the
objective may have any value in a run without the term, because the objectives of a grid have one base. Fingerprints
leave these keys out. The keys are checked only before training, so that the folder of an earlier run can be opened.
"""

from __future__ import annotations

from collections.abc import Callable

from pretrain.config import PretrainConfig
from pretrain.cost import PLAIN_OUTPUT
from synthlang.errors import InputError

UNMASKED = "has no effect on a decoder without the term mlm, since no word is masked"
RULES: dict[tuple[str, str], tuple[Callable[[PretrainConfig], bool], str]] = {
    ("model", "output"): (
        lambda run: run.model.kind not in PLAIN_OUTPUT,
        "has no effect on a decoder, whose output reads the last layer directly",
    ),
    ("objective", "mask_rate"): (lambda run: run.objective.masks_words, UNMASKED),
    ("objective", "random_words"): (lambda run: run.objective.masks_words, UNMASKED),
    ("validation", "mask_rate"): (
        lambda run: not run.objective.is_causal,
        "has no effect on a decoder, which predicts all tokens of the dev split",
    ),
}
"""The keys that not every run reads: a function that returns True if a run reads the key, and the reason otherwise."""


def check_read(run: PretrainConfig) -> None:
    """Check that every key with a value other than its default has an effect on the run.

    Raises:
        InputError: A key has no effect. The error names the first such key.
    """
    for (section, name), (is_read, reason) in RULES.items():
        part = getattr(run, section)
        default = type(part).model_fields[name].get_default()
        if not is_read(run) and getattr(part, name) != default:
            hint = f"leave this key out, or set its default, {'null' if default is None else default}"
            raise InputError(reason, keys=(section, name), hint=hint, code="no_effect")
