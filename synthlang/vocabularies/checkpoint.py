"""The fast tokenizer of a Hugging Face checkpoint, adapted so that a single word is encoded as it is in a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tokenizers import Tokenizer

from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import fingerprint
from synthlang.model_files import CONFIG, DECODERS, check_tokenizer_file, model_config
from synthlang.vocabularies.space import Specials, digest
from synthlang.vocabularies.xlm_tokenizer import XLM, xlm_tokenizer

# Our name of each special token, and the names that tokenizers have for it. The first one that exists is used.
ROLES = {
    "bos": ("cls_token", "bos_token"),
    "pad": ("pad_token",),
    "eos": ("sep_token", "eos_token"),
    "unk": ("unk_token",),
    "mask": ("mask_token",),
}
UNUSED = ("bos", "pad", "unk", "mask")
"""Special tokens that the tokenizer of a decoder may lack. They then have the id of the end of a text."""
NAMES = ("bos_token", "eos_token", "cls_token", "sep_token", "pad_token", "unk_token", "mask_token")
TOKENIZER_FILES = ("tokenizer.json", "vocab.*", "*.model")
"""Files of which a tokenizer has at least one. SentencePiece writes *.model."""
FILES = ("tokenizer.json", "tokenizer_config.json", "added_tokens.json", "vocab.json")
PROBES = ("a", "the", "1", ".")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The tokenizer of a checkpoint.

    Attributes:
        name: Folder or name of the model.
        tokenizer: The tokenizer, which encodes a single word as it does in a text.
        specials: Ids of the special tokens.
        settings: Content of tokenizer_config.json.
        rows: Rows of the model's embedding, at least as many as the tokenizer has ids.
    """

    name: str
    tokenizer: Tokenizer
    specials: Specials
    settings: Mapping[str, Any]
    rows: int

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the tokenizer and the number of rows."""
        return fingerprint("checkpoint-tokenizer", tokenizer=digest(self.tokenizer), rows=self.rows)


def read_checkpoint(name: str) -> Checkpoint:
    """Read the tokenizer of a model, given by its folder or name. No code of the model is executed.

    Raises:
        InputError: The tokenizer is missing or damaged, has no fast version, lacks a special token or has tokens that
            cross words. The config is wrong, there are more ids than rows of the model, or the files contradict each
            other.
    """
    place = str(user_path(name)) if user_path(name).exists() else name
    paths = {file: path for file in FILES if (path := _file(place, file)) is not None}
    for path in paths.values():
        check_tokenizer_file(path)
    config = _config(place)
    # Models of the shape of an XLM that were trained here have a tokenizer.json alone.
    is_xlm = getattr(config, "model_type", None) == XLM and "vocab.json" in paths
    loaded: Any = _read(place, lambda: xlm_tokenizer(place) if is_xlm else _auto_tokenizer(place, config))
    backend = getattr(loaded, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        reason = f"the tokenizer ({type(loaded).__name__}) has no fast version"
        raise InputError(reason, name, hint="convert the tokenizer to a tokenizer.json first", code="unsupported")
    _check_files(Path(place), name)
    specials = _specials(loaded, name, causal=getattr(config, "model_type", None) in DECODERS)
    if (path := paths.get(FILES[0])) is not None and not is_xlm:
        _read(place, lambda: _check_same(backend, Tokenizer.from_file(str(path)), name))
    tokenizer = _read(place, lambda: words_apart(backend, name))
    used = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
    size = getattr(config, "vocab_size", None)
    rows = None if size is None else int(size)  # None: the folder holds only a tokenizer
    if rows is not None and used > rows:
        reason = f"the tokenizer has ids up to {used - 1:,}, but the embedding of the model has only {rows:,} rows"
        raise InputError(reason, name, hint="use a folder with the model and its own tokenizer", code="conflict")
    return Checkpoint(name, tokenizer, specials, _settings(loaded, tokenizer), max(used, rows or 0))


def _check_files(folder: Path, name: str) -> None:
    """Refuse a folder without a tokenizer, because the library would make one of special tokens alone."""
    if folder.is_dir() and not any(next(folder.glob(pattern), None) for pattern in TOKENIZER_FILES):
        hint = "save the tokenizer of the model in the same folder"
        raise InputError("the folder has no tokenizer", name, hint=hint, code="missing")


def _read(place: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except (InputError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # files and the hub raise errors of many classes, and a panic is no Exception
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        local, remote = "download or save the tokenizer again", "check the name of the model and the connection"
        hint = local if Path(place).is_dir() else remote
        raise InputError(f"the tokenizer cannot be read: {reason}", place, hint=hint, code="failed") from error


def _specials(loaded: Any, name: str, causal: bool) -> Specials:
    ids = {}
    for role, names in ROLES.items():
        found = next((getattr(loaded, f"{n}_id") for n in names if getattr(loaded, n, None) is not None), None)
        if found is None and causal and role in UNUSED:
            found = loaded.eos_token_id
        if found is None:
            reason = f"the tokenizer has no {names[0]}, which a language model needs"
            raise InputError(reason, name, hint="use a model with such a token", code="missing")
        ids[role] = int(found)
    return Specials(**ids)


def _settings(loaded: Any, tokenizer: Tokenizer) -> dict[str, Any]:
    named = {n: str(getattr(loaded, n)) for n in NAMES if getattr(loaded, n, None) is not None}
    settings = {
        **named,
        "clean_up_tokenization_spaces": False,
        "model_input_names": list(loaded.model_input_names),
    }
    if '"add_prefix_space":true' in tokenizer.to_str(pretty=False):
        settings["add_prefix_space"] = True  # otherwise older versions of transformers switch it off again
    return settings


def _check_same(backend: Tokenizer, in_file: Tokenizer, name: str) -> None:
    """Refuse a loaded tokenizer that differs from tokenizer.json, as it can with transformers 5."""
    ours, theirs = (_model(tokenizer) for tokenizer in (backend, in_file))
    different = [what for what in ours if what in theirs and ours[what] != theirs[what]]
    if backend.get_vocab() != in_file.get_vocab():
        different.append("added tokens")
    for text in ("Ein Wort's ÉTÉ, x_y 3.14", "नमस्ते 漢字 – “a”"):
        if not different and _ids(backend, text) != _ids(in_file, text):
            different.append("way to cut words")
    if different:
        reason = (
            "the class in tokenizer_config.json (or config.json) makes a tokenizer that differs from tokenizer.json "
            f"({different[0]})"
        )
        hint = "if tokenizer.json is correct, set the class to PreTrainedTokenizerFast in a local copy of the model"
        raise InputError(reason, name, hint=hint, code="conflict")


def _model(tokenizer: Tokenizer) -> dict[str, Any]:
    model = json.loads(tokenizer.to_str())["model"]
    if model["type"] == "Unigram":  # the library sometimes reads the last digit of a number differently
        model["vocab"] = [(piece, round(score, 6)) for piece, score in model["vocab"]]
    wanted = ("type", "vocab", "merges", "unk_id", "unk_token")  # BPE of bytes may have no unk_token
    return {what: model[what] for what in wanted if model.get(what) is not None}


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


def words_apart(tokenizer: Tokenizer, name: str) -> Tokenizer:
    """Return the tokenizer, changed so that a single word is encoded as it is after a space (``add_prefix_space``).

    Padding, truncation and dropout of merges are switched off. ``name`` is the model, for the error.

    Raises:
        InputError: The tokens of a word depend on its neighbours.
    """
    spec = json.loads(tokenizer.to_str())
    spec |= {"padding": None, "truncation": None}
    if spec["model"].get("dropout"):
        spec["model"]["dropout"] = None
    for add_space in (False, True):
        if add_space:
            _add_prefix_space(spec["pre_tokenizer"])
            _add_prefix_space(spec["post_processor"])
        made = Tokenizer.from_str(json.dumps(spec))
        if all(_ids(made, f"{word} {word}") == _ids(made, word) * 2 for word in PROBES):
            return made
    reason = "the tokenizer splits a word differently after another one, but words must be encoded alone"
    raise InputError(reason, name, hint="use a model with another tokenizer", code="unsupported")


def _add_prefix_space(step: Any) -> None:
    """Switch ``add_prefix_space`` on in a step of a tokenizer and in its parts."""
    if isinstance(step, dict):
        if "add_prefix_space" in step:
            step["add_prefix_space"] = True
        for value in step.values():
            for inner in value if isinstance(value, list) else ():
                _add_prefix_space(inner)


def _auto_tokenizer(place: str, config: Any) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(place, config=config, trust_remote_code=False)


def _file(place: str, name: str) -> Path | None:
    """Return the path of a file in a folder or of a model on the hub, or None if the file does not exist."""
    from transformers.utils import cached_file

    found = _read(place, lambda: cached_file(place, name, _raise_exceptions_for_missing_entries=False))
    return None if found is None else Path(str(found))


def _config(place: str) -> Any:
    """Return the config of the model, or None for a folder that holds only a tokenizer."""
    path = _file(place, CONFIG)
    return None if path is None else model_config(path)
