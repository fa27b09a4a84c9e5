"""Models to start from: a model of Hugging Face by its name or folder, or a finished pretraining run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.filesize import decimal
from safetensors import SafetensorError, safe_open

from pretrain.memory import FLOAT, memory_of_machine
from pretrain.model.kinds import kind_of
from synthlang.errors import SHOWN, InputError
from synthlang.files import FULL, WRITE_FAULTS, no_such, read_json, unwritable, user_path
from synthlang.fingerprint import digest_files
from synthlang.model_files import CONFIG, model_config
from synthlang.vocabularies.checkpoint import Checkpoint, read_checkpoint
from synthlang.vocabularies.space import Specials
from synthlang.vocabularies.xlm_tokenizer import XLM
from synthlang.wording import first_few, plural

if TYPE_CHECKING:  # importing transformers takes seconds, and most runs start from random weights
    from transformers import PreTrainedModel

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
SAVE = "name a folder to which save_pretrained of transformers has written the model with its weights"
ADAPTER, SUFFIX = "adapter_config.json", ".safetensors"
AGAIN = "download or save the model again"
FILES = ("*.safetensors", "*.json", "*.txt", "*.model")  # files of a model on the hub: weights, settings, tokenizer


@dataclass(frozen=True)
class Base:
    """A model to start from.

    ``folders`` maps each language to a folder with its tokenizer and the weights, which are equal in all folders. A
    model without named languages has the key "".
    """

    folders: Mapping[str, Path]

    @property
    def folder(self) -> Path:
        """The first folder, whose weights and config are those of all folders."""
        return next(iter(self.folders.values()))

    @property
    def is_run(self) -> bool:
        """True for a pretraining run or its adjustment, which have a tokenizer for each language."""
        return "" not in self.folders

    @cached_property
    def checkpoints(self) -> dict[str, Checkpoint]:
        """The tokenizer of each language with its special ids and fingerprint.

        Raises:
            InputError: A tokenizer is missing or cannot be used.
        """
        return {name: read_checkpoint(str(folder)) for name, folder in self.folders.items()}

    @property
    def is_xlm(self) -> bool:
        """True for the architecture of XLM (Lample and Conneau 2019).

        Raises:
            InputError: The config cannot be read (see ``config``).
        """
        return bool(self.config.model_type == XLM)

    @cached_property
    def language_numbers(self) -> dict[str, int]:
        """The number of each language in an XLM with language embeddings, or {} for other models.

        Raises:
            InputError: The config cannot be read, or the config of an XLM does not number all of its languages.
        """
        config = self.config
        if not (self.is_xlm and config.use_lang_emb and config.n_langs > 1):
            return {}
        known: dict[str, int] = config.lang2id if isinstance(config.lang2id, dict) else {}
        if sorted(known.values(), key=str) != sorted(range(config.n_langs), key=str):
            reason = f"must number the languages from 0 to {config.n_langs - 1} (n_langs − 1)"
            path, hint = self.folder / CONFIG, "correct lang2id or n_langs"
            raise InputError(reason, path, keys="lang2id", hint=hint, code="conflict")
        return known

    @cached_property
    def config(self) -> Any:
        """The config of transformers, which is read as data.

        Raises:
            InputError: The config does not describe a model that can be read, or the weights are quantized.
        """
        path = self.folder / CONFIG
        config = model_config(path)
        if getattr(config, "quantization_config", None) is not None:
            reason, hint = "the weights are quantized, which is not supported", "save the model in float32"
            raise InputError(reason, path, keys="quantization_config", hint=hint, code="unsupported")
        return config

    @property
    def specials(self) -> Specials:
        """The special ids, which are the same for all languages.

        Raises:
            InputError: A tokenizer is missing or cannot be used.
        """
        return next(iter(self.checkpoints.values())).specials

    def parents(self) -> dict[str, Any]:
        """Return the fingerprints of the inputs of training.

        ``model`` is the fingerprint of the weights and the config. ``tokenizers`` has the fingerprint of the tokenizer
        of each language.

        Raises:
            InputError: A tokenizer is missing or cannot be used.
        """
        weights = digest_files([*self.folder.glob(f"*{SUFFIX}"), self.folder / CONFIG])
        return {"model": weights, "tokenizers": {name: one.fingerprint for name, one in self.checkpoints.items()}}


def open_base(name: str) -> Base:
    """Find a model by its folder or its name on the hub. A model that is not in the cache is downloaded.

    A folder is a model folder, or a finished run or adjustment.

    Raises:
        InputError: The model does not exist or cannot be downloaded. It has no safetensors, only an adapter, or a
            damaged index of its weights. It is a run that is not finished, or whose languages have different weights.
    """
    place = user_path(name)
    if place.is_dir():
        return Base(_in_folder(place))
    if place.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise no_such(place, "folder", hint="name a folder instead of a file" if place.exists() else "")
    return Base({"": _checked(_from_hub(name), name)})


def _in_folder(place: Path) -> dict[str, Path]:
    for folder in (place, place / "export"):
        if (folder / CONFIG).is_file():
            return {"": _checked(folder)}
    exports = sorted(path.parent for path in place.glob(f"export/*/{CONFIG}"))
    if (exports or (place / "run.json").exists()) and not (place / "done.json").exists():
        hint = "run the command of the run again to finish it"
        raise InputError("the run is not finished", place, hint=hint, code="missing")
    if not exports:
        reason = f"holds no model: neither {CONFIG} nor export/LANGUAGE/{CONFIG} exists"
        hint = "name a model folder, or a finished run with its folder export"
        raise InputError(reason, place, hint=hint, code="missing")
    if len({digest_files(weight_files(_checked(folder))) for folder in exports}) > 1:
        names = first_few([folder.name for folder in exports], SHOWN)
        reason = (
            f"the languages of the run ({names}) have different weights (separate embeddings or layers, or language "
            "ids), so the run is not a single model"
        )
        hint = f"name the export of one language, such as {exports[0]}"
        raise InputError(reason, place, hint=hint, code="unsupported")
    return {folder.name: folder for folder in exports}


def _checked(folder: Path, name: str | None = None) -> Path:
    """Return the folder of a model whose weights can be read safely. Errors use the ``name`` of a model on the hub.

    Raises:
        InputError: The folder has an adapter, only pickled weights, no weights, or a damaged index of its weights.
    """
    if (folder / ADAPTER).exists():
        reason = f"has an adapter ({ADAPTER}), which is not supported"
        hint = "merge the adapter into its model, and name the folder of the result"
        raise InputError(reason, name or folder, hint=hint, code="unsupported")
    if any((folder / name).is_file() for name in WEIGHTS):
        weight_files(folder)
        return folder
    if any((folder / name).is_file() for name in PICKLED):
        reason = "has only pickled weights, which are not safe to load"
        raise InputError(reason, name or folder, hint=SAVE, code="unsupported")
    raise InputError(f"has no weights in {WEIGHTS[0]}", name or folder, hint=SAVE, code="missing")


def weight_files(folder: Path) -> list[Path]:
    """Return the files with the weights of a model.

    Raises:
        InputError: The index of the weights is missing or damaged, or names a file that is not a safetensors file of
            the folder.
    """
    whole, index = (folder / name for name in WEIGHTS)
    if whole.is_file():
        return [whole]
    data = read_json(index)
    placed = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(placed, dict) or not placed:
        raise InputError("names no file for any weight", index, keys="weight_map", hint=AGAIN, code="format")
    for name in (found := set(map(str, placed.values()))):
        if Path(name).name != name or not name.endswith(SUFFIX) or not (folder / name).is_file():
            reason = f"names {name!r}, which is not a safetensors file of the folder"
            raise InputError(reason, index, keys="weight_map", hint=AGAIN, code="conflict")
    return [folder / name for name in sorted(found)]


def check_weights(base: Base) -> None:
    """Check by the headers of the weights that the model in the config can be built, and fits into memory.

    Raises:
        InputError: The config does not describe a model that can be read, or has more layers than the weights have
            tensors. The weights do not fit into memory. A file is missing or damaged.
    """
    tensors, numbers = 0, 0
    for path in weight_files(base.folder):
        try:
            with safe_open(path, framework="pt") as weights:
                shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118  no dict
        except (OSError, SafetensorError) as error:
            raise _unreadable(path, error) from error
        tensors, numbers = tensors + len(shapes), numbers + sum(map(prod, shapes))
    layers = base.config.num_hidden_layers
    if layers > tensors:
        reason = f"has {plural(layers, 'layer')}, but the weights have only {plural(tensors, 'tensor')}"
        raise InputError(reason, base.folder / CONFIG, hint="use the config of these weights", code="conflict")
    if numbers * FLOAT > (memory := memory_of_machine()):
        reason = f"the weights need {decimal(numbers * FLOAT)} of memory, but the machine has {decimal(memory)}"
        hint = "use a smaller model, or a machine with more memory"
        raise InputError(reason, base.folder, hint=hint, code="resources")


def _from_hub(name: str) -> Path:
    """Return the cached folder of a model on the hub, and download the model if needed.

    Raises:
        InputError: The name is not valid, the hub has no such public model, or the download fails.
    """
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    offline = constants.HF_HUB_OFFLINE
    try:
        return Path(snapshot_download(name, allow_patterns=list(FILES), local_files_only=offline))
    except HFValidationError as error:
        hint = "name a folder, or a model as USER/NAME"
        raise InputError("is neither a folder nor a valid name on the hub", name, hint=hint, code="format") from error
    except (GatedRepoError, RepositoryNotFoundError) as error:
        how, hint = "the hub has no public model of this name", "check the name, or run: hf auth login"
        if isinstance(error, GatedRepoError):
            how, hint = "access to it is restricted", "request access on its page of the hub, and run: hf auth login"
        raise InputError(f"is neither a folder nor in the cache, and {how}", name, hint=hint, code="missing") from error
    except Exception as error:  # the network and the hub raise errors of many classes
        if isinstance(error, OSError) and error.errno in (*FULL, *WRITE_FAULTS):
            raise unwritable(error, Path(constants.HF_HUB_CACHE)) from error
        cause = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
        how, hint = f"the download failed{cause}", "check the name, and run with a network connection"
        if offline:
            how, hint = (
                "HF_HUB_OFFLINE is set",
                "check the name, or unset HF_HUB_OFFLINE and run with a network connection",
            )
        hint += f": hf download {name}"
        raise InputError(f"is neither a folder nor in the cache, and {how}", name, hint=hint, code="missing") from error


def load_model(base: Base) -> PreTrainedModel:
    """Return the model with its output to the vocabulary, in float32.

    Raises:
        InputError: The model cannot be read or does not fit into memory, or a weight is missing.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()  # a run has a progress bar of its own
    check_weights(base)
    try:
        model, info = kind_of(base.config.model_type).auto_class.from_pretrained(
            base.folder,
            config=base.config,
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except Exception as error:  # each architecture checks its own sizes, with errors of many classes
        raise _unreadable(base.folder, error) from error
    missing = sorted(info["missing_keys"])
    if missing:
        reason = f"lacks weights of a language model, which would be random: {first_few(missing, 3)}"
        hint = "use the checkpoint of a language model with all of its weights and its own config.json"
        raise InputError(reason, base.folder, hint=hint, code="missing")
    loaded: PreTrainedModel = model
    return loaded


def pooler_of(base: Base) -> dict[str, torch.Tensor] | None:
    """Return ``weight`` [d, d] and ``bias`` [d] of BERT's pooler, or None if the weights have no pooler.

    ``load_model`` does not load the pooler, since a language model does not use this layer.
    """
    found: dict[str, torch.Tensor] = {}
    for path in sorted(base.folder.glob(f"*{SUFFIX}")):
        with safe_open(path, framework="pt") as weights:
            names = [name for name in weights.keys() if ".pooler.dense." in f".{name}"]  # noqa: SIM118  no dict
            found |= {name.rpartition(".")[2]: weights.get_tensor(name) for name in names}
    return found or None


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    reason = f"cannot be read as a language model: {reason}"
    return InputError(reason, path, hint=f"{AGAIN}, or use another model", code="damaged")


def longest_input(model: PreTrainedModel) -> int:
    """Return the largest number of tokens of an input, including the sentence tokens."""
    embeddings = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    if isinstance(embeddings, torch.nn.Embedding):
        # RoBERTa counts positions from padding_idx + 1.
        before = 0 if embeddings.padding_idx is None else embeddings.padding_idx + 1
        return int(embeddings.num_embeddings) - before
    return int(model.config.max_position_embeddings)
