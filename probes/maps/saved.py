"""Maps of all layers in a folder, which a transfer can read: FOLDER/layer-N and FOLDER/maps.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from probes.maps.fitted import LINEAR, NormalisedMap, load_map
from probes.maps.folder import FACTS, MANIFEST
from synthlang.config import StrictModel, parse
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint

FORMAT = 1
ABOUT = "maps.json"


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
        for layer, held in zip(about.source, maps, strict=True):
            held.save(temporary / f"layer-{layer}")
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
