"""Fine-tuned bodies on disk: a folder that probes read as they read an adjusted run."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save_file

from pretrain.checkpoint import disk_errors
from pretrain.encoder import MaskedLM
from pretrain.weights import to_hf
from probes.transfer.batch import Role
from probes.transfer.config import TransferConfig
from probes.transfer.model import Pretrained
from synthlang.errors import InputError
from synthlang.files import atomic_folder, write_json


def check_keep(config: TransferConfig, pretrained: Pretrained) -> None:
    """Raise InputError where no body is fine-tuned, or one model cannot hold it for both languages."""
    if config.features.tune == "none":
        raise InputError("--keep: with features.tune none no body is fine-tuned, so there is nothing to keep")
    if config.rotation is not None:
        raise InputError("--keep: a rotation is no part of a model, so the folder would not be what was tested")
    if pretrained.model.language_specific():
        raise InputError("--keep: the model has parts of its own for each language, which one folder cannot hold")


def keep_body(body: MaskedLM, pretrained: Pretrained, folder: Path) -> None:
    """Write ``folder/export/<language>`` for both languages of a transfer, and ``folder/done.json``.

    Each is a plain model with its tokenizer; the task's head is left out.
    """
    roles: tuple[Role, Role] = ("source", "target")
    for role, reader in zip(roles, (pretrained.source, pretrained.target), strict=True):
        settings, weights = to_hf(body, reader.member)
        with atomic_folder(folder / "export" / pretrained.language_name(role), replace=True) as new:
            settings.save_pretrained(new)
            with disk_errors():
                save_file(weights, new / "model.safetensors", metadata={"format": "pt"})
            reader.tokenizer.save(new)
    write_json(folder / "done.json", {"model": pretrained.name})
