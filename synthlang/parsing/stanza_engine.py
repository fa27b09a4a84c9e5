"""Stanza: any language whose models are on this machine, or models of one's own.

``stanza:LANG`` takes the default package from Stanza's resources folder ($STANZA_RESOURCES_DIR).
``stanza:FOLDER`` takes a resources folder with one language, or own models named in pipeline.json:

    {"lang": "en", "pos": "tagger.pt", "depparse": "parser.pt", "tokenize": "tokenizer.pt"}

(``mwt``, ``lemma``, ``pretrain``, ``forward_charlm`` and ``backward_charlm`` too; only ``lang``,
``pos`` and ``depparse`` are needed; paths are relative to the folder). Stanza loads weights only,
no pickled code. It takes a GPU if there is one.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.files import read_json, user_path
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.parsing.engine import TREE_COLUMNS, Parsed, one_root
from synthlang.parsing.spacy_engine import INSTALL
from synthlang.sources.conllu import one_word

FORMAT = 1  # raise when the same models give other sentences here
MODELS = ("tokenize", "mwt", "pos", "lemma", "depparse")
SHARED = ("pretrain", "forward_charlm", "backward_charlm")
OWN = "pipeline.json"


@dataclass(frozen=True)
class StanzaEngine:
    """Stanza's models of one language; ``path`` is a resources folder or one with a pipeline.json."""

    name: str
    version: str
    fingerprint: str
    path: str
    lang: str
    columns: tuple[str, ...] = ("form", *TREE_COLUMNS)

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parsed]:
        """A tree for each sentence of words."""
        if not sentences:
            return []
        document = _load(self.path, self.lang, True)([list(words) for words in sentences])
        return [_parsed(sentence) for sentence in document.sentences]

    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        """For each line its sentences, in Stanza's syntactic words."""
        if not lines:
            return []
        documents = _load(self.path, self.lang, False).bulk_process(list(lines))
        return [[_parsed(sentence) for sentence in document.sentences] for document in documents]


def _parsed(sentence: Any) -> Parsed:
    words = sentence.words
    head, label = one_root([int(w.head) for w in words], [w.deprel or "" for w in words])
    return {"form": [one_word(w.text) for w in words], "upos": [w.upos or "X" for w in words], "head": head,
            "deprel": label}  # fmt: skip


@lru_cache(maxsize=2)
def _load(path: str, lang: str, pretokenized: bool) -> Any:
    """The pipeline, once in each process for given words and once for raw text."""
    import stanza

    folder = Path(path)
    options: dict[str, Any] = {"download_method": None, "verbose": False, "tokenize_pretokenized": pretokenized}
    if not (folder / OWN).is_file():
        return stanza.Pipeline(lang, dir=path, processors="tokenize,pos,lemma,depparse", **options)
    own = read_json(folder / OWN)
    if "tokenize" not in own and not pretokenized:
        raise InputError("names no tokenizer, so it cannot split raw text; give it words", folder / OWN)
    models = [m for m in MODELS if m in own and not (pretokenized and m in ("tokenize", "mwt"))]
    options |= {f"{model}_model_path": str(folder / own[model]) for model in models}
    options |= {f"{m}_{part}_path": str(folder / own[part]) for m in models for part in SHARED if part in own}
    options |= {} if "lemma" in own else {"lemma_use_identity": True}
    processors = ",".join(sorted({*models, "tokenize", "lemma"}, key=MODELS.index))
    # Stanza wants a list of known languages; a file without one makes ours a new language.
    return stanza.Pipeline(
        lang, dir=path, package=None, processors=processors, allow_unknown_language=True,
        resources_filepath=str(folder / OWN), **options,
    )  # fmt: skip


def open_stanza(name: str) -> StanzaEngine:
    """The models of the language ``name``, or those in the folder ``name``."""
    if importlib.util.find_spec("stanza") is None:
        raise InputError(f"stanza:{name} needs the library Stanza: {INSTALL}")
    from importlib.metadata import version

    folder = user_path(name)
    library = version("stanza")
    if (folder / OWN).is_file():
        lang, files = _own_models(folder)
        models: Any = {key: sha256_file(path) for key, path in files.items()}
    elif folder.is_dir() or "/" in name:
        lang = _only_language(folder)
        models = _packages(folder, lang)
    else:
        folder, lang = _resources(), name.strip().lower()
        models = _packages(folder, lang)
    mark = fingerprint("stanza", format=FORMAT, library=library, lang=lang, models=models)
    return StanzaEngine(f"stanza:{lang}", f"Stanza {library}, models {mark[:8]}", mark, str(folder.resolve()), lang)


def _own_models(folder: Path) -> tuple[str, dict[str, Path]]:
    own = read_json(folder / OWN)
    known = ("lang", *MODELS, *SHARED)
    if not isinstance(own, dict) or not all(isinstance(value, str) for value in own.values()):
        raise InputError("must map names of models to file names", folder / OWN)
    unknown = [key for key in own if key not in known]
    missing = [key for key in ("lang", "pos", "depparse") if key not in own]
    if unknown or missing:
        what = f"unknown key {unknown[0]!r}" if unknown else f"needs the key {missing[0]!r}"
        raise InputError(f"{what}; the keys are {', '.join(known)}", folder / OWN)
    files = {key: folder / value for key, value in own.items() if key != "lang"}
    for file in files.values():
        if not file.is_file():
            raise InputError(f"names the model {file.name}, which is not there", folder / OWN)
    return own["lang"], files


def _resources() -> Path:
    """Where Stanza keeps its models, by its own rule; asked of Stanza only if the environment does not say."""
    if os.environ.get("STANZA_RESOURCES_DIR"):
        return Path(os.environ["STANZA_RESOURCES_DIR"])
    from stanza.resources.common import DEFAULT_MODEL_DIR

    return Path(DEFAULT_MODEL_DIR)


def _only_language(folder: Path) -> str:
    languages = sorted(p.name for p in folder.glob("*") if (p / "depparse").is_dir()) if folder.is_dir() else []
    if not (folder / "resources.json").is_file() or len(languages) != 1:
        found = f" (it has {', '.join(languages)})" if languages else ""
        raise InputError(f"must hold {OWN}, or Stanza's resources.json and the models of one language{found}", folder)
    return languages[0]


def _packages(folder: Path, lang: str) -> dict[str, str]:
    """Model → its MD5 as Stanza lists it, for the default package of a language, all of it on disk."""
    get = f"python -c \"import stanza; stanza.download('{lang}')\""
    if not (folder / "resources.json").is_file():
        raise InputError(f"no Stanza models are here; get those of {lang} with: {get}", folder)
    entry = read_json(folder / "resources.json").get(lang, {})
    if "alias" in entry:
        raise InputError(f"the language {lang!r} is called {entry['alias']!r}: stanza:{entry['alias']}")
    chosen = entry.get("packages", {}).get("default", {})
    if not {"pos", "depparse"} <= set(chosen):
        raise InputError(f"Stanza has no default parser for the language {lang!r}", folder / "resources.json")
    pairs = [(model, chosen[model]) for model in MODELS if model in chosen]
    for model, package in list(pairs):
        needed = entry.get(model, {}).get(package, {}).get("dependencies", ())
        pairs += [(d["model"], d["package"]) for d in needed]
    for model, package in pairs:
        if package != "identity" and not (folder / lang / model / f"{package}.pt").is_file():
            raise InputError(f"the model {model}/{package} of {lang} is missing; get it with: {get}", folder)
    return {f"{m}/{p}": str(entry.get(m, {}).get(p, {}).get("md5", "")) for m, p in sorted(set(pairs))}
