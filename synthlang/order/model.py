"""Order models as files, given by the name of a shipped model or by a path.

The file is JSON (or JSON in gzip, ``.json.gz``): format, name, label scheme, the weights of the two classes of nodes by
feature name, and their origin. See docs/order-models.md.
"""

from __future__ import annotations

import gzip
import json
from functools import cached_property, lru_cache
from math import nan
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from synthlang.config import StrictModel, parse
from synthlang.errors import Code, InputError
from synthlang.files import atomic_file, json_of, read_lines, unreadable, user_path
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.order.items import CLASSES, NodeClass, Scheme, check_feature
from synthlang.packed import GZIP, open_packed
from synthlang.sources.base import nothing_in

FORMAT = 1
SHIPPED = Path(__file__).parent / "models"
ENDING = ".json.gz"
LARGEST = 500  # with this bound the grid of ``tables`` is so fine that probabilities are correct to 1e-9

Feature = Annotated[str, AfterValidator(check_feature)]
Weight = Annotated[float, Field(gt=-LARGEST, lt=LARGEST)]


class OrderModel(StrictModel):
    """Order model of a language: a weight for each feature. A feature that is not listed has the weight 0."""

    kind: Literal["order-model"] = "order-model"
    format: Literal[1] = 1
    name: str = Field(default="", max_length=200)
    """Name of the model, for display."""
    labels: Scheme = "ud2"
    """Label scheme of the features: ``ud1`` or ``ud2``."""
    treebank: str = ""
    """The treebank that the weights come from."""
    licence: str = ""
    """Licence of the treebank, which applies to the weights."""
    attribution: str = ""
    """Authors of the treebank."""
    fit: dict[str, Any] = Field(default={})
    """Settings and scores of the fit, for the card."""
    fingerprint: str | None = None
    """Hash of labels and weights. A hash in the file is checked."""
    weights: dict[NodeClass, dict[Feature, Weight]]
    """Weight of each feature, by class of nodes (N or V). Nodes of a class that is not listed keep their order."""

    @cached_property
    def content(self) -> str:
        """Fingerprint of everything that orders depend on: the labels and the non-zero weights."""
        weights = {c: {f: w for f, w in self.weights[c].items() if w} for c in self.classes}
        return fingerprint("order-model", format=FORMAT, labels=self.labels, weights=weights)

    @property
    def classes(self) -> tuple[NodeClass, ...]:
        return tuple(c for c in CLASSES if c in self.weights)

    def save(self, path: Path) -> None:
        """Write the model as JSON, gzipped if the name of the file ends in ``.gz``. Equal models give equal bytes.

        Raises:
            InputError: ``path`` has no name, such as ``.``.
            DiskError: The file cannot be written.
        """
        data = {**self.model_dump(mode="json"), "fingerprint": self.content}
        raw = (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()
        with atomic_file(path) as handle:
            handle.write(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def read_model(path: Path) -> OrderModel:
    """Read an order model from a file, and check its fingerprint if it has one.

    Raises:
        InputError: The file cannot be read, is not an order model, has a format of another version, or does not match
            its fingerprint.
    """
    try:
        with path.open("rb") as handle:
            packed = handle.read(len(GZIP)) == GZIP
        with open_packed(path) if packed else path.open("rb") as handle:
            raw = handle.read()
    except OSError as error:
        raise unreadable(error, path) from error
    data = json_of(raw, path)
    if not isinstance(data, dict) or data.get("kind") != "order-model":
        reason = 'is not an order model, which is a JSON object with "kind": "order-model"'
        hint = "name a file that synthlang order fit or synthlang order import wrote"
        raise InputError(reason, path, hint=hint, code="format")
    if data.get("format") != FORMAT:
        found = data.get("format")
        has = "has no key 'format'" if found is None else f"has format {found}"
        reason = f"{has}, but this version of synthlang reads format {FORMAT}"
        raise InputError(
            reason,
            path,
            hint="fit the model again, or install the version of synthlang that wrote it",
            code="unsupported",
        )
    model = parse(OrderModel, data, path)
    if model.fingerprint not in (None, model.content):
        raise InputError(
            "has weights that do not match its fingerprint, so it is damaged or was edited",
            path,
            hint="fit or download the model again; if the edit is intended, delete the key fingerprint",
            code="damaged",
        )
    return model


def shipped_models() -> tuple[str, ...]:
    """Return the names of the models that come with the package."""
    return tuple(sorted(path.name.removesuffix(ENDING) for path in SHIPPED.glob(f"*{ENDING}")))


def find_model(name: str) -> Path:
    """Return the file of a model, given by the name of a shipped model or by its path.

    Raises:
        InputError: The model does not exist.
    """
    if name in shipped_models():
        return SHIPPED / f"{name}{ENDING}"
    path = user_path(name)
    if not path.is_file():
        hint = f"use one of {', '.join(shipped_models())}, or the path of a file"
        reason = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise InputError(f"the order model {name!r} {reason}", hint=hint, code="missing")
    return path


def load_model(name: str) -> OrderModel:
    """Load a model by its name or path. A process keeps the last few models that it has read.

    Raises:
        InputError: The model does not exist, or the file cannot be read, is not an order model, has a format of another
            version, or does not match its fingerprint.
    """
    path = find_model(name)
    try:
        return _load(path, sha256_file(path))
    except OSError as error:
        raise unreadable(error, path) from error


@lru_cache(maxsize=8)
def _load(path: Path, digest: str) -> OrderModel:
    del digest  # part of the key of the cache
    return read_model(path)


def import_orm(noun: Path, verb: Path, name: str, labels: Scheme = "ud1", **about: str) -> OrderModel:
    """Build a model from its two released files, for noun and for verb nodes (``fr@N.orm``, ``fr@V.orm``).

    A line of such a file is a feature, a space and a weight.

    Args:
        noun: File of the noun nodes.
        verb: File of the verb nodes.
        name: Name of the model.
        labels: The label scheme of the files.
        **about: Values of ``treebank``, ``licence`` and ``attribution``.

    Raises:
        InputError: A file cannot be read or has no weight, a line is not a feature and a weight between −500 and 500,
            or a feature occurs twice. ``name`` has more than 200 characters, or another argument is not allowed.
    """
    weights = {"N": _read_orm(noun), "V": _read_orm(verb)}
    return parse(OrderModel, {"name": name, "labels": labels, "weights": weights, **about})


def _read_orm(path: Path) -> dict[str, float]:
    weights: dict[str, float] = {}
    for number, line in read_lines(path):
        feature, _, value = line.partition(" ")
        if not line.strip():
            continue
        try:
            weight = _weight_of(value)
            if check_feature(feature) in weights:
                raise ValueError("appears twice")
        except ValueError as error:
            reason = f"the feature {feature[:60]!r} {str(error)[:250]}"
            hint = "delete one of its lines" if feature in weights else "write a feature, a space and its weight"
            code: Code = "duplicate" if feature in weights else "format"
            raise InputError(reason, path, number, hint=hint, code=code) from error
        weights[feature] = weight
    if not weights:
        raise nothing_in("weight", path)
    return weights


def _weight_of(text: str) -> float:
    try:
        weight = float(text.replace("_", "?"))  # Python would accept 1_0
    except ValueError:
        weight = nan
    if not abs(weight) < LARGEST:  # also refuses nan
        raise ValueError(f"needs a weight above -{LARGEST} and below {LARGEST}, not {text[:30]!r}")
    return weight
