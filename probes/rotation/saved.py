"""Folders with the maps of all layers, which a transfer can read.

A folder has two files: ``maps.json`` with a description and a checksum, and ``maps.safetensors`` with the tensors of
each layer, such as ``3.matrix``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from safetensors.torch import load_file, save_file
from torch import Tensor

from pretrain.checkpoints import disk_errors
from probes.rotation.fitted import NormalisedMap
from probes.rotation.normalise import Normaliser
from probes.rotation.procrustes import Fit, LinearMap
from probes.rotation.settings import Method
from synthlang.config import StrictModel, parse
from synthlang.errors import InputError
from synthlang.files import atomic_folder, no_such, read_json, write_json
from synthlang.fingerprint import fingerprint, sha256_file

FORMAT = 2
ABOUT, TENSORS = "maps.json", "maps.safetensors"
MATRICES = ("matrix", "before", "after")


class About(StrictModel):
    """The models, layers and settings that saved maps belong to.

    Attributes:
        moves: The language whose states are mapped.
        source: The layers in the model of the source language, in the order of the maps.
        target: The layers in the model of the other language.
        subword: The subword whose vector represents a word.
        supervision: Vectors that the maps were fitted on, such as ``parallel`` (see ``RotationConfig``).
        model: The fingerprint of the models.
        language: The name of the other language.
    """

    moves: Literal["target", "source"]
    source: tuple[int, ...]
    target: tuple[int, ...]
    subword: Literal["start", "end", "mean"]
    supervision: str
    model: str
    language: str


class _Fit(StrictModel):
    pairs: int
    rank: int
    residual: float
    identity: float
    orthogonality: float


class _Normaliser(StrictModel):
    method: Method
    rounds: int
    rows: int
    zeros: int


class _Layer(StrictModel):
    fit: _Fit
    zeros: int
    left: _Normaliser
    right: _Normaliser


class _Folder(StrictModel):
    format: int
    about: About
    layers: tuple[_Layer, ...]
    sha256: str


def check_place(folder: Path) -> None:
    """Check that a folder is new or has maps, since saving replaces it.

    Raises:
        InputError: The folder exists but has no maps.
    """
    if folder.exists() and not (folder / ABOUT).is_file():
        hint = "choose another folder for the maps (maps.save)"
        raise InputError("exists but is not a folder of maps", folder, hint=hint, code="exists")


def save_maps(folder: Path, maps: Sequence[NormalisedMap], about: About) -> None:
    """Write maps to a folder, and replace earlier maps there atomically.

    Args:
        folder: The folder. If it exists, it must have maps.
        maps: The map of each layer in ``about.source``, in the same order.
        about: The models, layers and settings that the maps belong to.

    Raises:
        InputError: The folder exists but has no maps.
        DiskError: The maps cannot be written, for example because the disk is full.
    """
    check_place(folder)
    tensors: dict[str, Tensor] = {}
    layers = []
    for number, fitted in zip(about.source, maps, strict=True):
        sides = {"left": fitted.left, "right": fitted.right}
        tensors |= {f"{number}.{name}": getattr(fitted.fit.map, name) for name in MATRICES}
        tensors |= {f"{number}.{name}": side.means for name, side in sides.items()}
        facts = {name: {key: getattr(side, key) for key in _Normaliser.model_fields} for name, side in sides.items()}
        fit = {key: getattr(fitted.fit, key) for key in _Fit.model_fields}
        layers.append({"fit": fit, "zeros": fitted.zeros, **facts})
    with atomic_folder(folder, replace=True) as new:
        with disk_errors():
            # copy each tensor, because safetensors refuses two names for one tensor
            save_file({name: t.detach().cpu().clone().contiguous() for name, t in tensors.items()}, new / TENSORS)
        of_folder = {"format": FORMAT, "about": about.model_dump(mode="json"), "layers": layers}
        write_json(new / ABOUT, {**of_folder, "sha256": sha256_file(new / TENSORS)})


@dataclass(frozen=True, eq=False)
class SavedMaps:
    """Maps that were read from a folder.

    Attributes:
        maps: The map of each layer, by its number in the model of the source language.
        about: The models, layers and settings that the maps belong to.
        name: The fingerprint of the maps.
    """

    maps: Mapping[int, NormalisedMap]
    about: About
    name: str


def load_maps(folder: Path) -> SavedMaps:
    """Read the maps in a folder.

    Raises:
        InputError: The folder has no maps, has maps of another format, or is damaged.
    """
    found, path = _read(folder), folder / TENSORS
    if not path.is_file():
        raise no_such(path, hint="run the probe maps again")
    if sha256_file(path) != found.sha256:
        reason = f"differs from its checksum in {ABOUT}, so it is damaged or was edited"
        raise InputError(reason, path, hint="run the probe maps again", code="damaged")
    tensors: dict[str, Tensor] = load_file(path)
    maps = {}
    for number, layer in zip(found.about.source, found.layers, strict=True):
        left, right = (
            Normaliser(side.method, side.rounds, tensors[f"{number}.{name}"], side.rows, side.zeros)
            for name, side in (("left", layer.left), ("right", layer.right))
        )
        linear = LinearMap(*(tensors[f"{number}.{name}"] for name in MATRICES))
        maps[number] = NormalisedMap(left, right, Fit(linear, **layer.fit.model_dump()), layer.zeros)
    return SavedMaps(maps, found.about, maps_fingerprint(folder))


def _read(folder: Path) -> _Folder:
    if not (folder / ABOUT).is_file():
        hint = "give a folder that the probe maps wrote, such as SAVE/parallel for maps.save: SAVE"
        raise InputError(f"has no {ABOUT}", folder, hint=hint, code="missing")
    found = read_json(folder / ABOUT)
    if isinstance(found, dict) and found.get("format") != FORMAT:
        reason = f"has maps of format {found.get('format', 'unknown')}, but this version reads format {FORMAT}"
        raise InputError(reason, folder, hint="run the probe maps again", code="unsupported")
    return parse(_Folder, found, folder / ABOUT)


def maps_fingerprint(folder: Path) -> str:
    """Return the fingerprint of the maps in a folder, from ``maps.json`` with its checksum of the tensors.

    Raises:
        InputError: The folder has no ``maps.json``, or the file is invalid or has another format.
    """
    return fingerprint("maps", maps=_read(folder).model_dump(mode="json"))
