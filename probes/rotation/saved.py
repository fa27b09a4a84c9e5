"""Maps of all layers in a folder, which a transfer can read: safetensors and JSON, checked by checksum when read.

FOLDER/   maps.json, and of each layer layer-N/tensors.safetensors  facts.json  manifest.json
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from pretrain.checkpoints import disk_errors
from probes.rotation.fitted import LINEAR, NormalisedMap
from probes.rotation.normalise import Normaliser, plan
from probes.rotation.procrustes import Fit, LinearMap
from probes.rotation.settings import Method
from synthlang.config import StrictModel, parse
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint, sha256_file

TENSORS, FACTS, MANIFEST = "tensors.safetensors", "facts.json", "manifest.json"


def save_tensors(folder: Path, kind: str, version: int, tensors: Mapping[str, Tensor], facts: Any) -> None:
    """Write ``tensors`` and the JSON value ``facts``: all of them or nothing, the same bytes for the same content.

    InputError if the folder is there already.
    """
    with atomic_folder(folder) as temporary:
        with disk_errors():
            # a copy of each: two names may stand for one tensor, which safetensors refuses
            save_file({name: t.detach().cpu().clone().contiguous() for name, t in tensors.items()}, temporary / TENSORS)
        write_json(temporary / FACTS, facts)
        sums = {name: sha256_file(temporary / name) for name in (FACTS, TENSORS)}
        write_json(temporary / MANIFEST, {"kind": kind, "format": version, "sha256": sums})


def load_tensors(folder: Path, kind: str, version: int) -> tuple[dict[str, Tensor], Any]:
    """What ``save_tensors`` wrote: tensors on the CPU, and the facts.

    InputError for a folder of another kind or format, and for a file that is gone or differs from its checksum.
    """
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("kind") != kind:
        raise InputError(f"holds no {kind}", folder)
    if manifest.get("format") != version:
        raise InputError(f"is of format {manifest.get('format')!r}; this version reads format {version}", folder)
    sums = manifest.get("sha256")
    for name in (TENSORS, FACTS):
        path = folder / name
        if not path.is_file():
            raise InputError("no such file; make the folder again", path)
        if not isinstance(sums, dict) or sha256_file(path) != sums.get(name):
            raise InputError("differs from its checksum, so it is damaged or was edited; make the folder again", path)
    try:
        tensors: dict[str, Tensor] = load_file(folder / TENSORS)
    except SafetensorError as error:
        raise InputError(f"is no safetensors file: {error}", folder / TENSORS) from error
    return tensors, read_json(folder / FACTS)


FORMAT = 1
MAP = "map"  # kind of folder
ABOUT = "maps.json"


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


class _Facts(StrictModel):
    fit: _Fit
    zeros: int
    left: _Normaliser
    right: _Normaliser


def save_map(fitted: NormalisedMap, folder: Path) -> None:
    """Write a map as safetensors and JSON; InputError if the folder is there."""
    tensors = {f"map.{name}": getattr(fitted.fit.map, name) for name in ("matrix", "before", "after")}
    tensors |= {"left.means": fitted.left.means, "right.means": fitted.right.means}
    facts: dict[str, Any] = {"fit": {name: getattr(fitted.fit, name) for name in _Fit.model_fields}}
    facts["zeros"] = fitted.zeros
    for name, side in (("left", fitted.left), ("right", fitted.right)):
        facts[name] = {key: getattr(side, key) for key in _Normaliser.model_fields}
    save_tensors(folder, MAP, FORMAT, tensors, facts)


def load_map(folder: Path) -> NormalisedMap:
    """Read what ``save_map`` wrote; InputError for anything that is damaged or something else."""
    tensors, raw = load_tensors(folder, MAP, FORMAT)
    facts = parse(_Facts, raw, folder / FACTS)
    width = len(tensors["map.before"]) if "map.before" in tensors else 0
    sides = {"left": facts.left, "right": facts.right}
    centres = {name: plan(side.method, side.rounds).count("centre") for name, side in sides.items()}
    shapes = {"map.matrix": (width, width), "map.before": (width,), "map.after": (width,)}
    shapes |= {f"{name}.means": (count, width) for name, count in centres.items()}
    if {name: tuple(t.shape) for name, t in tensors.items()} != shapes:
        raise InputError("the tensors do not fit the facts beside them; make the folder again", folder)
    if not all(bool(t.isfinite().all()) for t in tensors.values()):
        raise InputError("the map holds NaN or infinity; make the folder again", folder)
    left, right = (
        Normaliser(side.method, side.rounds, tensors[f"{name}.means"], side.rows, side.zeros)
        for name, side in sides.items()
    )
    linear = LinearMap(tensors["map.matrix"], tensors["map.before"], tensors["map.after"])
    return NormalisedMap(left, right, Fit(linear, **facts.fit.model_dump()), facts.zeros)


class About(StrictModel):
    """What the maps are for.

    moves    whose states they map
    source   the layers of the parent's model that they belong to, in their order; ``target``: of the other one's
    subword  how words are read; the maps of sentences too name it, for what they will be used with
    model    fingerprint of the models; ``language``: the name of the other language
    """

    format: int
    moves: Literal["target", "source"]
    source: tuple[int, ...]
    target: tuple[int, ...]
    subword: Literal["start", "end", "mean"]
    supervision: str
    model: str
    language: str


def check_place(folder: Path) -> None:
    """InputError if something else than maps is there."""
    if folder.exists() and not (folder / ABOUT).is_file():
        raise InputError("is there and holds no maps; name another folder (maps.save)", folder)


def save_maps(folder: Path, maps: Sequence[NormalisedMap], about: About) -> None:
    """Write them, all or nothing; maps that were there are replaced."""
    check_place(folder)
    with atomic_folder(folder, replace=True) as temporary:
        for layer, fitted in zip(about.source, maps, strict=True):
            save_map(fitted, temporary / f"layer-{layer}")
        write_json(temporary / ABOUT, about.model_dump(mode="json"))


@dataclass(frozen=True, eq=False)
class SavedMaps:
    """What ``save_maps`` wrote: number of the parent's layer → map; ``name`` is the fingerprint of the content."""

    maps: Mapping[int, NormalisedMap]
    about: About
    name: str


def load_maps(folder: Path) -> SavedMaps:
    """Read them; InputError for a folder that is none or damaged."""
    about = read_about(folder)
    maps = {layer: load_map(folder / f"layer-{layer}") for layer in about.source}
    return SavedMaps(maps, about, maps_fingerprint(folder))


def read_about(folder: Path) -> About:
    """What the maps of a folder are for."""
    if not (folder / ABOUT).is_file():
        raise InputError(f"holds no {ABOUT}; name a folder that the probe maps wrote (SAVE/SUPERVISION)", folder)
    about = parse(About, read_json(folder / ABOUT), folder / ABOUT)
    if about.format != FORMAT:
        raise InputError(f"is of format {about.format}; this version reads format {FORMAT}", folder)
    return about


def check_linear(folder: Path) -> None:
    """InputError if the maps are no linear ones (``NormalisedMap.linear``), which alone can move features."""
    for layer in read_about(folder).source:
        method = read_json(folder / f"layer-{layer}" / FACTS)["left"]["method"]
        if method not in LINEAR:
            raise InputError(
                f"holds maps with the normalisation {method}, which cannot move features of a transfer; make them "
                "again with maps.normalise: none or centre",
                folder,
            )


def maps_fingerprint(folder: Path) -> str:
    """Of the content, by the checksums beside it."""
    about = read_about(folder)
    sums = [read_json(folder / f"layer-{layer}" / MANIFEST) for layer in about.source]
    return fingerprint("maps", about=about.model_dump(mode="json"), layers=sums)
