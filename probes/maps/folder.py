"""A folder of tensors with the facts about them: safetensors and JSON, written as one, checked by checksum when read.

FOLDER/   tensors.safetensors  facts.json  manifest.json
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from pretrain.checkpoints import disk_errors
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import sha256_file

TENSORS, FACTS, MANIFEST = "tensors.safetensors", "facts.json", "manifest.json"


def save_tensors(
    folder: Path, kind: str, version: int, tensors: Mapping[str, Tensor], facts: Any, replace: bool = False
) -> None:
    """Write ``tensors`` and the JSON value ``facts``: all of them or nothing, the same bytes for the same content.

    InputError if the folder is there already; with ``replace`` the new one takes its place.
    """
    with atomic_folder(folder, replace=replace) as temporary:
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
