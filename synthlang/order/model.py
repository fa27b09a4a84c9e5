"""An order model as a file, and how one is named: a shipped model's name or a path.

The file is JSON (or JSON in gzip, ``.json.gz``): format, name, label scheme, the weights of the
two classes of nodes by feature name, and where they come from. See docs/order-models.md.
"""

from __future__ import annotations

import gzip
import json
import zlib
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from synthlang.config import StrictModel, parse
from synthlang.errors import InputError
from synthlang.files import GZIP, atomic_file, json_of, read_lines, user_path
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.order.items import CLASSES, NodeClass, Scheme, check_feature

FORMAT = 1
SHIPPED = Path(__file__).parent / "models"
ENDING = ".json.gz"
LARGEST = 500  # the grid of ``tables`` is then so fine that probabilities are right to 1e-9

Feature = Annotated[str, AfterValidator(check_feature)]
Weight = Annotated[float, Field(gt=-LARGEST, lt=LARGEST)]


class OrderModel(StrictModel):
    """Weights of a language's orders; a feature that is not there weighs 0.

    name          what people call it
    labels        the label scheme of its features: ``ud1`` or ``ud2``
    weights       {N or V: {feature: weight}}; a class that is not there keeps its order
    treebank licence attribution    where the weights come from
    fit           how they were fitted and how well they do: JSON, for people
    fingerprint   of labels and weights, all that an order depends on; checked if it is there
    """

    kind: Literal["order-model"] = "order-model"
    format: Literal[1] = 1
    name: str = Field(default="", max_length=200)
    labels: Scheme = "ud2"
    treebank: str = ""
    licence: str = ""
    attribution: str = ""
    fit: dict[str, Any] = Field(default={})
    fingerprint: str | None = None
    weights: dict[NodeClass, dict[Feature, Weight]]

    @cached_property
    def content(self) -> str:
        """The fingerprint of what orders depend on: the labels and the weights that are not zero."""
        weights = {c: {f: w for f, w in self.weights[c].items() if w} for c in self.classes}
        return fingerprint("order-model", format=FORMAT, labels=self.labels, weights=weights)

    @property
    def classes(self) -> tuple[NodeClass, ...]:
        return tuple(c for c in CLASSES if c in self.weights)

    def save(self, path: Path) -> None:
        """Write the file, gzipped if the name says so: the same bytes for the same model."""
        data = {**self.model_dump(mode="json"), "fingerprint": self.content}
        raw = (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()
        with atomic_file(path) as handle:
            handle.write(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def read_model(path: Path) -> OrderModel:
    """Read a model file; anything wrong with it is one InputError."""
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if raw.startswith(GZIP) else raw
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError("is an incomplete gzip file; download it again", path) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path) from error
    data = json_of(raw, path, "utf-8-sig")
    if not isinstance(data, dict) or data.get("kind") != "order-model":
        raise InputError('is no order model: it must be a JSON object with "kind": "order-model"', path)
    if data.get("format") != FORMAT:
        raise InputError(f"is of format {data.get('format')!r}; this version reads format {FORMAT}", path)
    model = parse(OrderModel, data, path)
    if model.fingerprint not in (None, model.content):
        raise InputError(
            "the weights do not agree with the fingerprint in the file, so it is damaged or was edited; get it again, "
            "or delete its line fingerprint if the change is meant",
            path,
        )
    return model


def shipped_models() -> tuple[str, ...]:
    return tuple(sorted(path.name.removesuffix(ENDING) for path in SHIPPED.glob(f"*{ENDING}")))


def find_model(name: str) -> Path:
    """The file of a shipped model or of a path; InputError names the shipped ones."""
    if name in shipped_models():
        return SHIPPED / f"{name}{ENDING}"
    path = user_path(name)
    if not path.is_file():
        raise InputError(f"order model {name!r} is none of {', '.join(shipped_models())}, nor a file")
    return path


def load_model(name: str) -> OrderModel:
    """The model of that name or path; read once a process as long as the file is the same."""
    path = find_model(name)
    try:
        return _load(path, sha256_file(path))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path) from error


@lru_cache(maxsize=8)
def _load(path: Path, digest: str) -> OrderModel:
    del digest  # part of the key of the cache
    return read_model(path)


def import_orm(noun: Path, verb: Path, name: str, labels: Scheme = "ud1", **about: str) -> OrderModel:
    """A model from the two files of a released one (``fr@N.orm``, ``fr@V.orm``): a feature and its weight a line.

    ``about``: treebank, licence, attribution. InputError has the line of whatever is not as it should be.
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
            weight = float(value.replace("_", "?"))  # Python would read 1_0
            if not abs(weight) < LARGEST:  # nan too
                raise ValueError(f"the weight must be a number between -{LARGEST} and {LARGEST}")
            if check_feature(feature) in weights:
                raise ValueError("is given twice")
        except ValueError as error:
            wrong = f"the feature {feature[:60]!r}: {str(error)[:250]}; a line is a feature, a space and its weight"
            raise InputError(wrong, path, number) from error
        weights[feature] = weight
    if not weights:
        raise InputError("holds no weight", path)
    return weights
