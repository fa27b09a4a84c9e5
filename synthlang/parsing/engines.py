"""Parsers: their interface, spaCy and Stanza.

``spacy:NAME`` and ``spacy:FOLDER`` take any spaCy pipeline with a parser and parts of speech, installed or in a folder.
UD labels are kept. ClearNLP trees (English pipelines) are converted to UD (see ``clearnlp``). Opening a pipeline reads
its meta.json and does not load it.

``stanza:LANG`` takes the default package from Stanza's resources folder ($STANZA_RESOURCES_DIR).
``stanza:FOLDER`` takes a resources folder with one language, or custom models named in pipeline.json (``OwnModels``):

    {"lang": "en", "pos": "tagger.pt", "depparse": "parser.pt", "tokenize": "tokenizer.pt"}

Paths are relative to the folder. Stanza loads weights only, no pickled code. Both parsers use a GPU if one is present.
"""

from __future__ import annotations

import importlib.util
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from synthlang.config import StrictModel, parse
from synthlang.distribution import install_command
from synthlang.errors import InputError
from synthlang.files import no_such, read_json, user_path
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.parsing import clearnlp
from synthlang.parsing.draft import Draft
from synthlang.sources.base import MORPHOLOGY
from synthlang.sources.conllu import tree_problem
from synthlang.sources.words import one_word
from synthlang.wording import first_few

DEFAULT_MODELS = {"spacy": "en_core_web_sm", "stanza": "en"}
TREE_COLUMNS = ("upos", "head", "deprel")
LEMMAS = "which --morphology and languages that use features or lemmas need"
WITHOUT = "or leave out --morphology (parse) or that language (derive, transfer)"
"""Parts of the error for a parser without a lemmatizer."""

Parsed = dict[str, list[Any]]


@dataclass(frozen=True)
class Engine(ABC):
    """A parser, as plain data that can be pickled. Each process loads the model at the first sentence.

    Attributes:
        name: The engine and its model, as in ``spacy:en_core_web_sm``.
        version: Versions of the library and of the model.
        fingerprint: Hash of the library's version, the model's bytes and the conversion of its trees.
        columns: Columns of every sentence: ``form upos head deprel``, ``ner`` if the model finds names, and ``feats``
            and ``lemma`` if the engine was opened with ``morphology``.
    """

    name: str
    version: str
    fingerprint: str
    columns: tuple[str, ...]

    @abstractmethod
    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parsed]:
        """Return the columns of each sentence, given as its words. The words stay unchanged."""

    @abstractmethod
    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        """Split each line of text into sentences and words, and return the trees of each line.

        Raises:
            InputError: The models have no tokenizer.
        """


def engine_spec(engine: str, model: str | None) -> str:
    """Return the spec of an engine and its model (default: the small English model of the engine).

    An unknown engine without a model gives a spec that ``open_engine`` refuses.
    """
    return f"{engine}:{model or DEFAULT_MODELS.get(engine, '')}"


def open_engine(spec: str, convert: bool = True, morphology: bool = False) -> Engine:
    """Open the parser that ``spec`` names, without loading its model or downloading anything.

    Args:
        spec: The parser and its model.
        convert: True to convert ClearNLP trees to UD. With False, the effect of the conversion can be measured.
        morphology: True for the columns ``feats`` and ``lemma``.

    Raises:
        InputError: The spec is not a parser, a library or a model is missing, the description of the model cannot be
            read, or the model lacks a component that is needed. The hint for a missing library or model has the command
            that installs it.
    """
    kind, _, rest = spec.partition(":")
    if kind not in ("spacy", "stanza") or not rest.strip():
        reason = f"{kind!r} needs a model" if kind in ("spacy", "stanza") else f"{kind!r} is not a parser"
        hint = "use spacy or stanza with a model or its folder, as in spacy:en_core_web_sm or stanza:en"
        raise InputError(reason, hint=hint, code="unknown")
    if importlib.util.find_spec(kind) is None:
        reason = f"{spec} needs the library {kind}, which is not installed"
        raise InputError(reason, hint=f"run: {INSTALL}", code="extra")
    return open_spacy(rest, convert, morphology) if kind == "spacy" else open_stanza(rest, morphology)


def one_root(head: Sequence[int], deprel: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return the heads and labels of a sentence with one root. Later roots depend on the first as ``parataxis``.

    spaCy may split a given sentence into several sentences, each with a root. Heads are 1-based, and 0 is the root.

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


def problem_of(parsed: Mapping[str, Sequence[Any]], words: Sequence[str] | None) -> str | None:
    """Return the reason why a parsed sentence is unusable, or None if it is usable.

    Args:
        parsed: The columns of the sentence.
        words: The words that the engine was given, or None if it split a text.
    """
    if words is not None and list(parsed["form"]) != list(words):
        return "words that differ from those given"
    problem = tree_problem(parsed["head"]) if "head" in parsed else None
    return f"no tree: {problem[1]}" if problem else None


SPACY_FORMAT = 1  # raise when the same pipeline gives other sentences
BATCH = 128  # sentences at a time inside spaCy
TAGGERS = ("tagger", "morphologizer", "attribute_ruler")
INSTALL = install_command("parse")


@dataclass(frozen=True)
class SpacyEngine(Engine):
    """A spaCy pipeline on disk.

    Attributes:
        path: The folder with the pipeline's config.cfg.
        convert: True to convert ClearNLP trees to UD.
    """

    path: str
    convert: bool

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parsed]:
        from spacy.tokens import Doc

        nlp = _load_spacy(self.path)
        with nlp.memory_zone():  # frees the words afterwards, so that memory is bounded
            docs = nlp.pipe((Doc(nlp.vocab, words=list(words)) for words in sentences), batch_size=BATCH)
            return [self._parsed(list(doc)) for doc in docs]

    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        """Split each line into spaCy's sentences and words, without white space, and return their trees."""
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
        if "feats" in self.columns:
            result |= {"feats": [str(t.morph) or "_" for t in tokens], "lemma": [t.lemma_ or "_" for t in tokens]}
        return result | {"ner": ner} if "ner" in self.columns else result


def _head(token: Any, place: dict[int, int]) -> int:
    """Return the place of the nearest ancestor that is in the sentence, or 0 if there is none."""
    head = token.head
    while head.i not in place and head.head.i != head.i:
        head = head.head
    return 0 if head.i == token.i else place.get(head.i, 0)


@lru_cache(maxsize=1)
def _load_spacy(path: str) -> Any:
    """Load the pipeline, once in each process, on a GPU if spaCy has one."""
    import spacy

    spacy.prefer_gpu()
    return spacy.load(path)


def open_spacy(name: str, convert: bool = True, morphology: bool = False) -> SpacyEngine:
    """Open the pipeline that is installed as ``name`` or is in the folder ``name``. See ``open_engine``.

    Raises:
        InputError: The pipeline is missing, its meta.json is not JSON, or it lacks a parser, parts of speech, a tagger
            for the conversion, or a lemmatizer for ``morphology``.
    """
    path = _folder(name)
    meta = read_json(path / "meta.json")
    meta = meta if isinstance(meta, dict) else {}
    components = list(meta.get("pipeline", ()))
    scheme = meta.get("labels", {}).get("parser", ())
    if "parser" not in components or not set(components) & set(TAGGERS):
        has = f"only {', '.join(components)}" if components else "no component"
        reason = f"the pipeline must have a parser and a tagger, but it has {has}"
        raise InputError(reason, path, hint="use another pipeline, such as en_core_web_sm", code="missing")
    converts = convert and clearnlp.is_clearnlp(scheme)
    if converts and "tagger" not in components:
        reason = "a pipeline with ClearNLP labels must have a tagger (Penn Treebank tags) for the conversion to UD"
        raise InputError(reason, path, hint="use a pipeline with a tagger, or one whose labels are UD", code="missing")
    if morphology and not {"lemmatizer", "trainable_lemmatizer"} & set(components):
        reason = f"the pipeline has no lemmatizer, {LEMMAS}"
        raise InputError(reason, path, hint=f"use a pipeline with a lemmatizer, {WITHOUT}", code="missing")
    own = f"{meta.get('lang', 'xx')}_{meta.get('name', 'pipeline')}"
    libraries = {"spacy": version("spacy"), "model": str(meta.get("version", ""))}
    files = (p for p in sorted(path.rglob("*")) if p.is_file() and "__pycache__" not in p.parts)
    digest = fingerprint("files", files=[(file.relative_to(path).as_posix(), sha256_file(file)) for file in files])
    form = clearnlp.FORMAT if converts else None
    added = _marked(morphology)
    mark = fingerprint(
        "spacy", format=SPACY_FORMAT, libraries=libraries, model=own, files=digest, clearnlp=form, **added
    )
    columns = ("form", *TREE_COLUMNS, *added.get("morphology", ()), *(("ner",) if "ner" in components else ()))
    shown = f"spaCy {libraries['spacy']}, {own} {libraries['model']}"
    return SpacyEngine(f"spacy:{own}", shown, mark, columns, str(path), converts)


def _marked(morphology: bool) -> dict[str, tuple[str, ...]]:
    """Return the part of a fingerprint for morphology, which is empty without it, so that earlier parses are found."""
    return {"morphology": MORPHOLOGY} if morphology else {}


def _folder(name: str) -> Path:
    """Return the folder with meta.json of a pipeline, which is given by its path or package name."""
    path = user_path(name)
    if (path / "meta.json").is_file() and (path / "config.cfg").is_file():
        return path.resolve()
    if path.exists() or "/" in name or not name.isidentifier():
        reason = "is neither the folder nor the package name of a spaCy pipeline"
        if path.exists():
            lacks = next(file for file in ("meta.json", "config.cfg") if not (path / file).is_file())
            why = f"{lacks} is missing" if path.is_dir() else "it is a file"
            reason = f"is not the folder of a spaCy pipeline: {why}"
        hint = "name the folder of a pipeline, or a package such as en_core_web_sm"
        raise InputError(reason, path, hint=hint, code="missing")
    found = importlib.util.find_spec(name)
    roots = [Path(place) for place in (found.submodule_search_locations or ())] if found else []
    for config in (config for root in roots for config in sorted(root.glob("*/config.cfg"))):
        return config.parent.resolve()
    hint = f"correct the name, or run: python -m spacy download {name}"
    raise InputError(f"the spaCy pipeline {name} is not installed", hint=hint, code="extra")


STANZA_FORMAT = 1  # raise when the same models give other sentences
MODELS = ("tokenize", "mwt", "pos", "lemma", "depparse")
SHARED = ("pretrain", "forward_charlm", "backward_charlm")
OWN = "pipeline.json"


class OwnModels(StrictModel):
    """The content of a pipeline.json: a language, and names of model files beside it."""

    lang: str
    """Code of the language."""
    pos: str
    """File of the tagger."""
    depparse: str
    """File of the parser."""
    tokenize: str | None = None
    """File of the tokenizer. Without this file, the engine can parse given words only."""
    mwt: str | None = None
    """File of the model that splits multiword tokens."""
    lemma: str | None = None
    """File of the lemmatizer. Without this file, the lemma of a word is the word itself."""
    pretrain: str | None = None
    """File of the word vectors that the models share."""
    forward_charlm: str | None = None
    """File of the forward character language model that the models share."""
    backward_charlm: str | None = None
    """File of the backward character language model that the models share."""

    @staticmethod
    def read(folder: Path) -> tuple[str, dict[str, str]]:
        """Return the language and the file of each model that a pipeline.json in ``folder`` names.

        Raises:
            InputError: The pipeline.json cannot be read or is wrong, or a file does not exist.
        """
        own = parse(OwnModels, read_json(folder / OWN), folder / OWN).model_dump(exclude_none=True)
        for name in own.keys() - {"lang"}:
            if not (folder / own[name]).is_file():
                hint = "name a file in the folder of pipeline.json"
                raise InputError(
                    f"the file {own[name]} does not exist", folder / OWN, keys=name, hint=hint, code="missing"
                )
        return own.pop("lang"), {name: str(folder / file) for name, file in own.items()}


@dataclass(frozen=True)
class StanzaEngine(Engine):
    """Stanza's models of one language.

    Attributes:
        path: A resources folder, or a folder with a pipeline.json.
        lang: Code of the language.
    """

    path: str
    lang: str

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parsed]:
        if not sentences:
            return []
        document = _load_stanza(self.path, self.lang, True)([list(words) for words in sentences])
        return [_sentence(sentence, self.columns) for sentence in document.sentences]

    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        if not lines:
            return []
        documents = _load_stanza(self.path, self.lang, False).bulk_process(list(lines))
        return [[_sentence(sentence, self.columns) for sentence in document.sentences] for document in documents]


def _sentence(sentence: Any, columns: Sequence[str]) -> Parsed:
    words = sentence.words
    head, label = one_root([int(w.head) for w in words], [w.deprel or "" for w in words])
    result: Parsed = {"form": [one_word(w.text) for w in words], "upos": [w.upos or "X" for w in words]}
    result |= {"head": head, "deprel": label}
    if "feats" in columns:
        result |= {"feats": [w.feats or "_" for w in words], "lemma": [w.lemma or "_" for w in words]}
    return result


@lru_cache(maxsize=2)
def _load_stanza(path: str, lang: str, pretokenized: bool) -> Any:
    import stanza

    folder = Path(path)
    options: dict[str, Any] = {"download_method": None, "verbose": False, "tokenize_pretokenized": pretokenized}
    if not (folder / OWN).is_file():
        return stanza.Pipeline(lang, dir=path, processors="tokenize,pos,lemma,depparse", **options)
    own = OwnModels.read(folder)[1]
    if "tokenize" not in own and not pretokenized:
        reason = "is required to split raw text into words"
        hint = "name the file of a tokenizer, or keep the words of the source (--tokens source)"
        raise InputError(reason, folder / OWN, keys="tokenize", hint=hint, code="missing")
    models = [m for m in MODELS if m in own and not (pretokenized and m in ("tokenize", "mwt"))]
    options |= {f"{model}_model_path": own[model] for model in models}
    options |= {f"{m}_{part}_path": own[part] for m in models for part in SHARED if part in own}
    options |= {} if "lemma" in own else {"lemma_use_identity": True}
    processors = ",".join(sorted({*models, "tokenize", "lemma"}, key=MODELS.index))
    # Stanza requires a list of known languages. This file has no list, so any language is accepted as a new one.
    return stanza.Pipeline(
        lang, dir=path, package=None, processors=processors, allow_unknown_language=True,
        resources_filepath=str(folder / OWN), **options,
    )  # fmt: skip


def open_stanza(name: str, morphology: bool = False) -> StanzaEngine:
    """Open the models of the language ``name``, or the models in the folder ``name``. See ``open_engine``.

    Raises:
        InputError: The models are missing, have no tagger and parser, or have no lemmatizer for ``morphology``. Stanza
            has another code for the language, or a pipeline.json or resources.json cannot be read or is wrong.
    """
    folder = user_path(name)
    library = version("stanza")
    if (folder / OWN).is_file():
        lang, files = OwnModels.read(folder)
        models = {key: sha256_file(Path(path)) for key, path in files.items()}
    elif folder.is_dir() or "/" in name:
        lang = _only_language(folder)
        models = _packages(folder, lang)
    else:
        folder, lang = _default_resources(), name.strip().lower()
        models = _packages(folder, lang)
    if morphology and not any(model.partition("/")[0] == "lemma" for model in models):
        reason = f"the models of {lang} have no lemmatizer, {LEMMAS}"
        raise InputError(reason, folder, hint=f"use models with a lemmatizer, {WITHOUT}", code="missing")
    added = _marked(morphology)
    mark = fingerprint("stanza", format=STANZA_FORMAT, library=library, lang=lang, models=models, **added)
    columns = ("form", *TREE_COLUMNS, *added.get("morphology", ()))
    shown = f"Stanza {library}, models {mark[:8]}"
    return StanzaEngine(f"stanza:{lang}", shown, mark, columns, str(folder.resolve()), lang)


def _default_resources() -> Path:
    if folder := os.environ.get("STANZA_RESOURCES_DIR"):
        return Path(folder)
    from stanza.resources.common import DEFAULT_MODEL_DIR

    return Path(DEFAULT_MODEL_DIR)


def _only_language(folder: Path) -> str:
    hint = f"name a folder with {OWN} or with the models of one language, or the code of a language, such as en"
    if not folder.is_dir():
        raise no_such(folder, "folder", hint)
    languages = sorted(p.name for p in folder.glob("*") if (p / "depparse").is_dir())
    if not (folder / "resources.json").is_file():
        raise InputError(f"the folder has neither {OWN} nor Stanza's resources.json", folder, hint=hint, code="missing")
    if len(languages) != 1:
        has = f"those of {first_few(languages, 8)}" if languages else "none"
        reason = f"the folder must have the models of one language with a parser, but it has {has}"
        raise InputError(reason, folder, hint=hint, code="missing")
    return languages[0]


def _packages(folder: Path, lang: str) -> dict[str, str]:
    """Return the MD5 of each model in the default package of a language. A missing file is an error."""
    place = "" if folder == _default_resources() else f", model_dir={str(folder)!r}"
    get = f'run: python -c "import stanza; stanza.download({lang!r}{place})"'
    if not (folder / "resources.json").is_file():
        hint = f"correct the code of the language, or {get}"
        raise InputError(f"the folder has no Stanza models of {lang}", folder, hint=hint, code="extra")
    languages = read_json(folder / "resources.json")
    entry = languages.get(lang, {}) if isinstance(languages, dict) else {}
    if "alias" in entry:
        reason, hint = f"the language {lang!r} has the code {entry['alias']!r} in Stanza", f"write {entry['alias']}"
        raise InputError(reason, hint=hint, code="unknown")
    chosen = entry.get("packages", {}).get("default", {})
    if not {"pos", "depparse"} <= set(chosen):
        reason = f"the default package of {lang!r} lacks a tagger or a parser" if entry else f"has no language {lang!r}"
        hint = "correct the code of the language, or use another parser, such as spacy:NAME"
        raise InputError(reason, folder / "resources.json", hint=hint, code="missing")
    pairs = [(model, chosen[model]) for model in MODELS if model in chosen]
    for model, package in list(pairs):
        needed = entry.get(model, {}).get(package, {}).get("dependencies", ())
        pairs += [(d["model"], d["package"]) for d in needed]
    for model, package in pairs:
        if package != "identity" and not (folder / lang / model / f"{package}.pt").is_file():
            raise InputError(f"the model {model}/{package} of {lang} is missing", folder, hint=get, code="extra")
    return {f"{m}/{p}": str(entry.get(m, {}).get(p, {}).get("md5", "")) for m, p in sorted(set(pairs))}
