"""One-sentence summaries of the probes, made from their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]
FITTED = {"dictionary": "a dictionary", "parallel": "aligned words", "sentences": "sentences"}
REFERENCES = {"random_target": "random weights in one language", "random_both": "random weights in both"}


def cka_sentence(values: Values) -> str:
    """Describe the mean CKA over layers and its references in a sentence.

    If the CKA of the languages is undefined, the result is "". ``values`` is the part of probes.json for the probe
    ``cka``.
    """
    found = {key: one["mean"]["biased"] for key, one in values["comparisons"].items() if one.get("mean")}
    found = {key: value for key, value in found.items() if value is not None}
    if "languages" not in found:
        return ""
    references = [f"{found[key]:.2f} with {told}" for key, told in REFERENCES.items() if key in found]
    beside = f" ({', '.join(references)})" if references else ""
    return f"The layers of the two languages have a mean CKA of {found['languages']:.2f}{beside}."


def retrieval_sentence(values: Values, kind: str, told: str) -> str:
    """Describe word retrieval at the last layer in a sentence.

    Args:
        values: The part of probes.json for the probe ``retrieval``.
        kind: The set of word pairs: linked, unlike or counted.
        told: The name of this set in the sentence.
    """
    variant = values["headline"]["variant"]
    layer = values["variants"][variant]["layers"][-1]
    accuracy = (layer["pairs"][kind]["csls"] or {}).get("mean")
    if accuracy is None:
        return "No word could be retrieved, because there are too few aligned words."
    where = "in context" if variant == "context" else "without context"
    return (
        f"At layer {layer['layer']} the nearest word of the other language is the translation for "
        f"{accuracy:.1f} % of the words {where} ({told}; CSLS)."
    )


def distances_sentence(values: Values) -> str:
    """Describe the AUC of translations against unrelated words in a sentence.

    The sentence has the AUC of the probed model under the L2 distance, at the layer of the figures. ``values`` is the
    part of probes.json for the probe ``distances``.
    """
    model = values["models"][values["model"]]
    auc = next(one["auc"]["mean"] for one in model["layers"] if one["layer"] == model["layer"])
    return (
        f"At layer {model['layer']} a translation is closer than an unrelated word in {100 * auc:.1f} % of comparisons."
    )


def maps_sentence(values: Values) -> str:
    """Describe the share of words translated correctly at the last layer, without a map and with each map.

    Without scores of words, the result is "". ``values`` is the part of probes.json for the probe ``maps``.
    """
    before = _translated(values["before"])
    after = {name: _translated(one["layers"]) for name, one in values["maps"].items()}
    known = {name: share for name, share in after.items() if share is not None}
    if before is None or not known:
        return ""
    maps = ", ".join(f"{share:.1f} % with a map fitted on {FITTED[name]}" for name, share in known.items())
    layer = values["before"][-1]["layer"]
    return f"Words translated correctly at layer {layer} (P@1, CSLS): {before:.1f} % without a map, {maps}."


def _translated(layers: Any) -> float | None:
    csls = (layers[-1]["words"] or {}).get("csls") or {}
    share = (csls.get("mean") or {}).get("p@1")
    return None if share is None else float(share)


def words_sentence(values: Values) -> str:
    """Describe in a sentence the alignment of all measured word types, and of types outside the training dictionary.

    Without scores, the result is "". ``values`` is the part of probes.json for the probe ``words``.
    """
    scores = values["scores"] or {}
    if not scores.get("all"):
        return ""
    trained, held_out = scores.get("in_dictionary"), scores.get("held_out")
    told = (
        f"{scores['all']['cosine']['mean']:.1f} % of {values['types']:,} measured word types "
        f"(the source language has {values['candidates']['parent']:,})"
    )
    if held_out:
        told += f" and for {held_out['cosine']['mean']:.1f} % of the {held_out['n']:,} outside the dictionary"
    elif trained:
        told += ", all of them words of the training dictionary"
    return f"The nearest word embedding of the other language is the translation for {told}."
