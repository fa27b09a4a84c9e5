"""Sizes of models by name, and of vocabularies of built-in text, without reading weights or downloading anything."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pretrain.config import PretrainConfig
from pretrain.cost import PLAIN_OUTPUT, ModelSize, size_of_run
from probes.models.names import adjusted_from, run_config
from synthlang.files import read_json, user_path
from synthlang.model_files import size_in
from synthlang.sources import open_source
from synthlang.sources.limited import without_limit
from synthlang.sources.mini_english.source import MiniEnglish
from synthlang.vocabularies.space import SMALLEST
from synthlang.vocabularies.xlm_tokenizer import XLM

TYPE_TOKENS = 2
"""Number of BPE tokens for each word type of the built-in source, besides bytes and special tokens.

With this estimate, a vocabulary for 500 types has about 1,200 tokens.
"""
SIZES = ("num_hidden_layers", "hidden_size", "vocab_size", "max_position_embeddings")
BUILTIN = "builtin:"
KNOWN = {
    "bert-base-multilingual-cased": ModelSize(12, 768, 3072, words=119_547, outputs=119_547, others=512),
    "xlm-mlm-tlm-xnli15-1024": ModelSize(12, 1024, 4096, words=95_000, outputs=95_000, others=527, dense=False),
}
"""Sizes of checkpoints that the catalogue names, for use before they are downloaded."""


@cache
def size_of_model(model: str) -> ModelSize | None:
    """Return the size of a model by its run, its folder or its name on Hugging Face, or None if the size is unknown.

    Nothing is downloaded, and no error is raised. If the settings are missing or cannot be read, the result is the
    entry of ``KNOWN`` for the last part of the name, or None.
    """
    try:
        model = adjusted_from(model) or model
        if (config := run_config(model)) is not None:
            return size_of_run(config) if config.start is None else size_of_model(config.start.model)
        settings = _settings_of(model)
        layers, hidden, words, positions = (size_in(settings, key) for key in SIZES)
        wide = size_in(settings, "intermediate_size") or 4 * (hidden or 0)  # the default of GPT-2 and the width of XLM
    except (ValueError, TypeError):  # there is no such model, or its settings are of another type
        return KNOWN.get(Path(model).name)
    if layers is None or hidden is None or words is None or positions is None:
        return KNOWN.get(Path(model).name)
    kind = settings.get("model_type")
    plain = kind in PLAIN_OUTPUT
    return ModelSize(layers, hidden, wide, words, words, positions, dense=not plain and kind != XLM, biased=not plain)


def _settings_of(model: str) -> Any:
    """Return the config.json of a folder, or of a model in the cache of the hub, or {}."""
    folder = user_path(model)
    if folder.is_dir():
        return read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(model, "config.json")
    return read_json(Path(path)) if isinstance(path, str) else {}


@cache
def whole_grammar(spec: str) -> MiniEnglish:
    """Open the built-in source of a ``builtin:`` spec, without the limit on sentences that the spec may have.

    Raises:
        InputError: The spec is wrong.
    """
    source = open_source(without_limit(spec)[0])
    assert isinstance(source, MiniEnglish), "there is one built-in source"
    return source


def bounded(config: PretrainConfig) -> PretrainConfig:
    """Return the settings of a run with the vocabulary reduced to the size that built-in text can fill.

    Settings with other text are returned unchanged.

    Raises:
        InputError: The spec of a built-in source is wrong.
    """
    sources = {member.source for member in config.all_languages}
    if not all(source.startswith(BUILTIN) for source in sources):
        return config
    spec = config.vocabulary
    most = SMALLEST + TYPE_TOKENS * sum(whole_grammar(source).types for source in sources)
    return config.model_copy(update={"vocabulary": spec.model_copy(update={"size": min(spec.size, most)})})
