"""Checks of the files of a model folder before a library opens them.

No code of a model folder is ever run. A config with extreme sizes is refused, because a library would build a model of
any size. A damaged file of a tokenizer is refused, because it can crash the tokenizers library.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthlang.errors import InputError
from synthlang.files import read_json

CONFIG = "config.json"
Ints = NDArray[np.int64]
LARGEST_ID = 1 << 24
"""Largest token id that is accepted. The largest vocabularies in use have about a million tokens."""
LAYERS, WIDTH = 10_000, 1 << 24
AGAIN = "download or save the tokenizer again"
OTHER_NAMES = {
    "num_hidden_layers": ("n_layers", "n_layer"),
    "num_attention_heads": ("n_heads", "n_head"),
    "hidden_size": ("emb_dim", "n_embd"),
    "intermediate_size": ("n_inner",),
    "max_position_embeddings": ("n_positions",),
}
"""Names of a size in the configs of XLM and GPT-2, by its name in the configs of other models."""
DECODERS = frozenset({"gpt2"})
"""Architectures (``model_type``) of decoders. Their tokenizers may lack the special tokens that no text has."""
SIZES = {"vocab_size": WIDTH, "n_langs": LAYERS} | {
    name: LAYERS if size in ("num_hidden_layers", "num_attention_heads") else WIDTH
    for size, others in OTHER_NAMES.items()
    for name in (size, *others)
}
"""Largest accepted value of each size in a config."""
IGNORED = {
    "auto_map": "names code in the folder",
    **dict.fromkeys(("attn_implementation", "_attn_implementation", "_attn_implementation_internal"), "may name code"),
    "num_labels": "belongs to a classifier",
}
"""Keys of a config that are ignored, and the reason."""


def model_config(path: Path) -> Any:
    """Read a ``config.json`` into a configuration object of transformers.

    Raises:
        InputError: The file cannot be read or is not a config, a size is out of range, or transformers does not support
            the model type or refuses the config.
    """
    data = read_json(path)
    kind = data.get("model_type") if isinstance(data, dict) else None
    if not isinstance(kind, str):
        hint = "name a model folder that transformers wrote"
        reason = "is not the config of a model, because it has no text model_type"
        raise InputError(reason, path, hint=hint, code="format")
    for key, largest in SIZES.items():
        value = data.get(key)
        if value is not None and not (isinstance(value, int) and 1 <= value <= largest):
            reason = f"must be an integer from 1 to {largest:,}, not {value!r:.40}"
            raise InputError(
                reason, path, keys=key, hint="correct the config, or download the model again", code="range"
            )
    from transformers import CONFIG_MAPPING

    if kind not in CONFIG_MAPPING:
        code = ", and the code in the folder that defines the type is never run" if "auto_map" in data else ""
        reason = f"transformers does not support the type {kind!r}{code}"
        raise InputError(
            reason,
            path,
            keys="model_type",
            hint="install a newer version of transformers, or use another model",
            code="unsupported",
        )
    try:
        return CONFIG_MAPPING[kind].from_dict({key: value for key, value in data.items() if key not in IGNORED})
    except Exception as error:  # each class checks its own keys, with errors of many classes
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        hint = "correct the config, or download the model again"
        raise InputError(f"cannot be read: {reason}", path, hint=hint, code="format") from error


def check_tokenizer_file(path: Path) -> None:
    """Check one JSON file of a tokenizer before the tokenizers library opens it.

    Raises:
        InputError: The file is missing or is not JSON, an id is not an integer from 0 to LARGEST_ID, or the table of a
            normalizer is damaged.
    """
    data = read_json(path)
    for found in _ids(path.name, data):
        if not isinstance(found, int) or not 0 <= found <= LARGEST_ID:
            reason = f"has the token id {found!r:.40}, which is not an integer from 0 to {LARGEST_ID:,}"
            raise InputError(reason, path, hint=AGAIN, code="range")
    if path.name == "tokenizer.json" and isinstance(data, dict):
        for table in _precompiled(data.get("normalizer")):
            if not _is_sound(table):
                raise InputError(
                    "has a damaged precompiled_charsmap in its normalizer", path, hint=AGAIN, code="damaged"
                )


def _ids(name: str, data: Any) -> Iterator[Any]:
    """Yield the token ids in a tokenizer file. Entries of any other form are left to the tokenizers library."""
    if not isinstance(data, dict):
        return
    if name == "tokenizer_config.json":
        decoder = data.get("added_tokens_decoder")
        yield from (int(key) if str(key).isdecimal() else key for key in decoder or () if isinstance(decoder, dict))
        return
    vocabularies: list[Any] = [data]
    if name == "tokenizer.json":
        model, added = data.get("model"), data.get("added_tokens")
        vocabularies = [model.get("vocab") if isinstance(model, dict) else None]
        yield from (token.get("id") for token in added or () if isinstance(token, dict))
    yield from (found for one in vocabularies if isinstance(one, dict) for found in one.values())


def _precompiled(step: Any) -> Iterator[str]:
    """Yield the precompiled tables in a normalizer."""
    if isinstance(step, Mapping):
        if step.get("type") == "Precompiled":
            yield str(step.get("precompiled_charsmap"))
        for inner in step.get("normalizers") or ():
            yield from _precompiled(inner)


def _is_sound(table: str) -> bool:
    """Return whether lookups in a precompiled table of SentencePiece stay within the table.

    The table is a double-array trie over UTF-8 bytes, followed by the text to which its leaves point.
    """
    try:
        raw = base64.b64decode(table, validate=True)
        size = int.from_bytes(raw[:4], "little")
        raw[4 + size :].decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    if size % 4 or not 0 < size <= len(raw) - 4:
        return False
    units = np.frombuffer(raw[4 : 4 + size], "<u4").astype(np.int64)
    return _stays_within(units, np.frombuffer(raw[4 + size :], np.uint8))


def _stays_within(units: Ints, text: NDArray[np.uint8]) -> bool:
    """Walk a double-array trie level by level, and return whether no step leaves the table."""
    offsets = (units >> 10) << ((units & (1 << 9)) >> 6)
    labels, seen = units & (1 << 31 | 0xFF), np.zeros(len(units), bool)
    characters, bases = np.arange(1, 256), offsets[:1]
    while len(bases):
        reached = bases[:, None] ^ characters
        if reached.max() >= len(units):
            return False
        nodes = np.unique(reached[labels[reached] == characters])
        nodes = nodes[~seen[nodes]]
        seen[nodes] = True
        bases = nodes ^ offsets[nodes]
        leaves = bases[(units[nodes] >> 8) & 1 == 1]
        if leaves.max(initial=0) >= len(units):
            return False
        values = units[leaves] & ((1 << 31) - 1)
        if values.max(initial=-1) >= len(text) or np.any(text[values] >> 6 == 0b10):  # 0b10: inside a character
            return False
    return True


def size_in(settings: Mapping[str, Any], size: str) -> int | None:
    """Return a size in the content of a ``config.json``, or None if the config lacks it.

    ``size`` is the usual name of the size, such as ``hidden_size``. The config may have any of its OTHER_NAMES.

    Raises:
        ValueError: The value is a text that is not a number.
        TypeError: The value is neither a text nor a number.
    """
    found = (settings.get(name) for name in (size, *OTHER_NAMES.get(size, ())))
    return next((int(value) for value in found if value is not None), None)
