"""Fine-tuned bodies on disk: a folder that probes read as they read an adjusted run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from pretrain.checkpoints import disk_errors
from pretrain.folder import EXPORT, export_sizes
from pretrain.model.encoder import MaskedLM
from pretrain.model.to_hf import to_hf
from probes.transfer.batch import Role
from probes.transfer.config import TransferConfig
from probes.transfer.model import Pretrained
from synthlang.errors import InputError
from synthlang.files import atomic_folder, write_json
from synthlang.vocabularies import MemberTokenizer

Languages = Mapping[str, tuple[MemberTokenizer, int]]
"""Language → its tokenizer, and its number in the body."""


def check_keep(config: TransferConfig, pretrained: Pretrained, asked: str = "--keep") -> None:
    """Raise InputError where no body is fine-tuned, or one model cannot hold it for both languages.

    ``asked`` is what asked for it, the start of the line.
    """
    if config.features.tune == "none":
        raise InputError(f"{asked}: with features.tune none no body is fine-tuned, so there is nothing to keep")
    if config.rotation is not None:
        raise InputError(f"{asked}: a rotation is no part of a model, so the folder would not be what was tested")
    if pretrained.model.language_specific() or pretrained.model.embeddings.languages is not None:
        raise InputError(f"{asked}: the model has parts of its own for each language, which one folder cannot hold")


def keep_body(body: MaskedLM, pretrained: Pretrained, folder: Path) -> None:
    """Write ``folder/export/<language>`` for both languages of a transfer, and ``folder/done.json``.

    Each is a plain model with its tokenizer; the task's head is left out.
    """
    roles: tuple[Role, Role] = ("source", "target")
    readers = zip(roles, (pretrained.source, pretrained.target), strict=True)
    languages = {pretrained.language_name(role): (reader.tokenizer, reader.member) for role, reader in readers}
    keep_languages(body, languages, folder, {"model": pretrained.name})


def keep_languages(body: MaskedLM, languages: Languages, folder: Path, record: Mapping[str, Any]) -> None:
    """Write ``folder/export/<language>``, or ``folder/export`` for "", and then the record as ``folder/done.json``."""
    for name, (tokenizer, member) in languages.items():
        settings, weights = to_hf(body, member)
        with atomic_folder(folder / "export" / name, replace=True) as new:
            settings.save_pretrained(new)
            with disk_errors():
                save_file(weights, new / "model.safetensors", metadata={"format": "pt"})
            tokenizer.save(new)
    write_json(folder / "done.json", {**record, EXPORT: export_sizes(folder)})
