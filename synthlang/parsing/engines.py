"""Parsers: what one offers, and the two there are.

``spacy:NAME``, ``spacy:FOLDER``: any spaCy pipeline with a parser and parts of speech, installed or in a folder. UD
labels pass through; ClearNLP labels (the English pipelines) become UD trees and labels, see ``clearnlp``. What the
pipeline is stands in its meta.json, so it need not be loaded to be opened.

``stanza:LANG`` takes the default package from Stanza's resources folder ($STANZA_RESOURCES_DIR).
``stanza:FOLDER`` takes a resources folder with one language, or own models named in pipeline.json:

    {"lang": "en", "pos": "tagger.pt", "depparse": "parser.pt", "tokenize": "tokenizer.pt"}

(``mwt``, ``lemma``, ``pretrain``, ``forward_charlm`` and ``backward_charlm`` too; only ``lang``, ``pos`` and
``depparse`` are needed; paths are relative to the folder). Stanza loads weights only, no pickled code.
Both take a GPU if there is one.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from synthlang.config import StrictModel, parse
from synthlang.errors import InputError
from synthlang.files import read_json, user_path
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.parsing import clearnlp
from synthlang.parsing.draft import Draft
from synthlang.sources.conllu import one_word, tree_problem

FORMS = "spacy:NAME-OR-FOLDER or stanza:LANG-OR-FOLDER (as in spacy:en_core_web_sm, stanza:en)"
TREE_COLUMNS = ("upos", "head", "deprel")

Parsed = dict[str, list[Any]]


class Engine(Protocol):
    """A parser: plain data that can be pickled; each process loads the model at the first sentence.

    name          the engine and its model, as in ``spacy:en_core_web_sm``
    version       versions of the library and of the model
    fingerprint   of the library's version, the model's bytes and every change we make to its trees
    columns       ``form upos head deprel``, and ``ner`` if the model finds names; the same for every sentence
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parsed]:
        """A tree for each sentence of words; the words stay as they are."""
        ...

    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        """For each line its sentences, in the engine's own words."""
        ...


def open_engine(spec: str, convert: bool = True) -> Engine:
    """Open the parser that ``spec`` names; nothing is ever downloaded and no model loaded yet.

    ``convert=False`` leaves ClearNLP trees as they are (to measure what the conversion does).
    Raises InputError with the command that installs what is missing.
    """
    kind, _, rest = spec.partition(":")
    if kind not in ("spacy", "stanza") or not rest.strip():
        raise InputError(f"parser {spec!r} must be {FORMS}")
    if importlib.util.find_spec(kind) is None:
        raise InputError(f"{spec} needs a library: {INSTALL}")
    return open_spacy(rest, convert) if kind == "spacy" else open_stanza(rest)


def one_root(head: Sequence[int], deprel: Sequence[str]) -> tuple[list[int], list[str]]:
    """Heads (1-based, 0 = root) and labels with one root: the first; later ones hang on it as ``parataxis``.

    spaCy may see several sentences in one of ours. The root alone has the label ``root``.

    >>> one_root([0, 1, 0], ["ROOT", "obj", "ROOT"])
    ([0, 1, 1], ['root', 'obj', 'parataxis'])
    """
    heads, labels = list(head), [label or "dep" for label in deprel]
    first = heads.index(0) if 0 in heads else -1
    for word, h in enumerate(heads):
        if word == first:
            labels[word] = "root"
        elif h == 0:
            heads[word], labels[word] = first + 1, "parataxis"
        elif labels[word].lower() == "root":
            labels[word] = "dep"
    return heads, labels


def problem_of(parsed: Mapping[str, Sequence[Any]], columns: Sequence[str], words: Sequence[str] | None) -> str | None:
    """Why an engine's answer cannot be used, None if it can: columns, words and tree are as promised."""
    if set(parsed) != set(columns):
        return f"columns {', '.join(parsed)} instead of {', '.join(columns)}"
    form, problem = parsed["form"], tree_problem(parsed["head"])
    wrong = {
        "no word": not form,
        "other words than it was given": words is not None and list(form) != list(words),
        "columns of unequal length": any(len(parsed[name]) != len(form) for name in columns),
    }
    return next((what for what, is_so in wrong.items() if is_so), problem[1] if problem else None)


SPACY_FORMAT = 1  # raise when the same pipeline gives other sentences here
BATCH = 128  # sentences at a time inside spaCy
TAGGERS = ("tagger", "morphologizer", "attribute_ruler")
INSTALL = "pip install 'synthlang[parse]'"


@dataclass(frozen=True)
class SpacyEngine:
    """A spaCy pipeline on disk; ``path`` is the folder with its config.cfg."""

    name: str
    version: str
    fingerprint: str
    path: str
    columns: tuple[str, ...]
    convert: bool

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parsed]:
        from spacy.tokens import Doc

        nlp = _load_spacy(self.path)
        with nlp.memory_zone():  # forgets the words afterwards, so memory is bounded
            docs = nlp.pipe((Doc(nlp.vocab, words=list(words)) for words in sentences), batch_size=BATCH)
            return [self._parsed(list(doc)) for doc in docs]

    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        """For each line its sentences, in spaCy's own words; white space is no word."""
        nlp = _load_spacy(self.path)
        with nlp.memory_zone():
            docs = nlp.pipe(lines, batch_size=BATCH)
            found = [[[t for t in sentence if not t.is_space] for sentence in doc.sents] for doc in docs]
            return [[self._parsed(tokens) for tokens in line if tokens] for line in found]

    def _parsed(self, tokens: list[Any]) -> Parsed:
        place = {token.i: at for at, token in enumerate(tokens, start=1)}
        head, label = one_root([_head(token, place) for token in tokens], [t.dep_ for t in tokens])
        upos = [t.pos_ or "X" for t in tokens]
        inside = ((t.ent_iob_ in ("B", "I") and t.ent_type_) for t in tokens)
        ner = [f"{t.ent_iob_}-{t.ent_type_}" if named else "O" for t, named in zip(tokens, inside, strict=True)]
        result: Parsed = {"form": [one_word(t.text) for t in tokens], "upos": upos, "head": head, "deprel": label}
        if self.convert and tokens:
            draft = Draft(
                result["form"], [t.tag_ for t in tokens], [t.lemma_ or t.lower_ for t in tokens], upos, head, label, ner
            )
            clearnlp.convert(draft)
            result |= {"upos": draft.upos[1:], "head": draft.head[1:], "deprel": draft.label[1:]}
        return result | {"ner": ner} if "ner" in self.columns else result


def _head(token: Any, place: dict[int, int]) -> int:
    """The place of the nearest word above that is in the sentence; 0 if there is none."""
    head = token.head
    while head.i not in place and head.head.i != head.i:
        head = head.head
    return 0 if head.i == token.i else place.get(head.i, 0)


@lru_cache(maxsize=1)
def _load_spacy(path: str) -> Any:
    """The pipeline, once in each process, on a GPU if spaCy has one."""
    import spacy

    spacy.prefer_gpu()
    return spacy.load(path)


def open_spacy(name: str, convert: bool = True) -> SpacyEngine:
    """The pipeline that is installed under ``name`` or lies in the folder ``name``."""
    path = _folder(name)
    meta = read_json(path / "meta.json")
    components = list(meta.get("pipeline", ()))
    scheme = meta.get("labels", {}).get("parser", ())
    if "parser" not in components or not set(components) & set(TAGGERS):
        raise InputError(f"the pipeline needs a parser and parts of speech; it has {', '.join(components)}", path)
    converts = convert and clearnlp.is_clearnlp(scheme)
    if converts and "tagger" not in components:
        raise InputError("a pipeline with ClearNLP labels needs a tagger (Penn Treebank tags) to become UD", path)
    own = f"{meta.get('lang', 'xx')}_{meta.get('name', 'pipeline')}"
    libraries = {"spacy": version("spacy"), "model": str(meta.get("version", ""))}
    files = (p for p in sorted(path.rglob("*")) if p.is_file() and "__pycache__" not in p.parts)
    digest = fingerprint("files", files=[(file.relative_to(path).as_posix(), sha256_file(file)) for file in files])
    form = clearnlp.FORMAT if converts else None
    mark = fingerprint("spacy", format=SPACY_FORMAT, libraries=libraries, model=own, files=digest, clearnlp=form)
    columns = ("form", *TREE_COLUMNS, *(("ner",) if "ner" in components else ()))
    shown = f"spaCy {libraries['spacy']}, {own} {libraries['model']}"
    return SpacyEngine(f"spacy:{own}", shown, mark, str(path), columns, converts)


def _folder(name: str) -> Path:
    """The folder that holds meta.json; that of an installed pipeline lies inside its package."""
    path = user_path(name)
    if (path / "meta.json").is_file() and (path / "config.cfg").is_file():
        return path.resolve()
    if path.exists() or "/" in name or not name.isidentifier():
        raise InputError("is no folder of a spaCy pipeline: it has no meta.json and config.cfg", path)
    found = importlib.util.find_spec(name)
    roots = [Path(place) for place in (found.submodule_search_locations or ())] if found else []
    for config in (config for root in roots for config in sorted(root.glob("*/config.cfg"))):
        return config.parent.resolve()
    raise InputError(f"the spaCy pipeline {name} is not installed: python -m spacy download {name}")


STANZA_FORMAT = 1  # raise when the same models give other sentences here
MODELS = ("tokenize", "mwt", "pos", "lemma", "depparse")
SHARED = ("pretrain", "forward_charlm", "backward_charlm")
OWN = "pipeline.json"


class OwnModels(StrictModel):
    """What a pipeline.json says: a language, and names of files beside it."""

    lang: str
    pos: str
    depparse: str
    tokenize: str | None = None
    mwt: str | None = None
    lemma: str | None = None
    pretrain: str | None = None
    forward_charlm: str | None = None
    backward_charlm: str | None = None

    @staticmethod
    def read(folder: Path) -> tuple[str, dict[str, str]]:
        """The language and the file of each model that is named."""
        own = parse(OwnModels, read_json(folder / OWN), folder / OWN).model_dump(exclude_none=True)
        for name in own.keys() - {"lang"}:
            if not (folder / own[name]).is_file():
                raise InputError(f"names the model {own[name]}, which is not there", folder / OWN)
        return own.pop("lang"), {name: str(folder / file) for name, file in own.items()}


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
        if not sentences:
            return []
        document = _load_stanza(self.path, self.lang, True)([list(words) for words in sentences])
        return [_sentence(sentence) for sentence in document.sentences]

    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        if not lines:
            return []
        documents = _load_stanza(self.path, self.lang, False).bulk_process(list(lines))
        return [[_sentence(sentence) for sentence in document.sentences] for document in documents]


def _sentence(sentence: Any) -> Parsed:
    words = sentence.words
    head, label = one_root([int(w.head) for w in words], [w.deprel or "" for w in words])
    return {"form": [one_word(w.text) for w in words], "upos": [w.upos or "X" for w in words], "head": head,
            "deprel": label}  # fmt: skip


@lru_cache(maxsize=2)
def _load_stanza(path: str, lang: str, pretokenized: bool) -> Any:
    """The pipeline, once in each process for given words and once for raw text."""
    import stanza

    folder = Path(path)
    options: dict[str, Any] = {"download_method": None, "verbose": False, "tokenize_pretokenized": pretokenized}
    if not (folder / OWN).is_file():
        return stanza.Pipeline(lang, dir=path, processors="tokenize,pos,lemma,depparse", **options)
    own = OwnModels.read(folder)[1]
    if "tokenize" not in own and not pretokenized:
        raise InputError("names no tokenizer, so it cannot split raw text; give it words", folder / OWN)
    models = [m for m in MODELS if m in own and not (pretokenized and m in ("tokenize", "mwt"))]
    options |= {f"{model}_model_path": own[model] for model in models}
    options |= {f"{m}_{part}_path": own[part] for m in models for part in SHARED if part in own}
    options |= {} if "lemma" in own else {"lemma_use_identity": True}
    processors = ",".join(sorted({*models, "tokenize", "lemma"}, key=MODELS.index))
    # Stanza wants a list of known languages; a file without one makes ours a new language.
    return stanza.Pipeline(
        lang, dir=path, package=None, processors=processors, allow_unknown_language=True,
        resources_filepath=str(folder / OWN), **options,
    )  # fmt: skip


def open_stanza(name: str) -> StanzaEngine:
    """The models of the language ``name``, or those in the folder ``name``."""
    folder = user_path(name)
    library = version("stanza")
    if (folder / OWN).is_file():
        lang, files = OwnModels.read(folder)
        models = {key: sha256_file(Path(path)) for key, path in files.items()}
    elif folder.is_dir() or "/" in name:
        lang = _only_language(folder)
        models = _packages(folder, lang)
    else:
        folder, lang = Path(os.environ.get("STANZA_RESOURCES_DIR") or _default_resources()), name.strip().lower()
        models = _packages(folder, lang)
    mark = fingerprint("stanza", format=STANZA_FORMAT, library=library, lang=lang, models=models)
    return StanzaEngine(f"stanza:{lang}", f"Stanza {library}, models {mark[:8]}", mark, str(folder.resolve()), lang)


def _default_resources() -> str:
    from stanza.resources.common import DEFAULT_MODEL_DIR

    return str(DEFAULT_MODEL_DIR)


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
