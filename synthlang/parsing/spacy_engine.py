"""spaCy: any pipeline with a parser and parts of speech, installed or in a folder.

UD labels pass through; ClearNLP labels (the English pipelines) become UD trees and labels, see
``clearnlp``. What the pipeline is stands in its meta.json, so it need not be loaded to be opened.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.files import read_json, user_path
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.parsing import clearnlp
from synthlang.parsing.draft import Draft
from synthlang.parsing.engine import TREE_COLUMNS, Parsed, one_root
from synthlang.sources.conllu import one_word

FORMAT = 1  # raise when the same pipeline gives other sentences here
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
        """A tree for each sentence of words."""
        from spacy.tokens import Doc

        nlp = _load(self.path)
        with nlp.memory_zone():  # forgets the words afterwards, so memory is bounded
            docs = nlp.pipe((Doc(nlp.vocab, words=list(words)) for words in sentences), batch_size=BATCH)
            return [self._parsed(list(doc)) for doc in docs]

    def parse_text(self, lines: Sequence[str]) -> list[list[Parsed]]:
        """For each line its sentences, in spaCy's own words; white space is no word."""
        nlp = _load(self.path)
        with nlp.memory_zone():
            docs = nlp.pipe(lines, batch_size=BATCH)
            found = [[[t for t in sentence if not t.is_space] for sentence in doc.sents] for doc in docs]
            return [[self._parsed(tokens) for tokens in line if tokens] for line in found]

    def _parsed(self, tokens: list[Any]) -> Parsed:
        place = {token.i: at for at, token in enumerate(tokens, start=1)}
        head, label = one_root(
            [place[_above(t, place)] if _above(t, place) != t.i else 0 for t in tokens], [t.dep_ for t in tokens]
        )
        upos = [t.pos_ or "X" for t in tokens]
        ner = [_bio(t) for t in tokens]
        result: Parsed = {"form": [one_word(t.text) for t in tokens], "upos": upos, "head": head, "deprel": label}
        if self.convert and tokens:
            draft = Draft(
                result["form"], [t.tag_ for t in tokens], [t.lemma_ or t.lower_ for t in tokens], upos, head, label, ner
            )
            clearnlp.convert(draft)
            result |= {"upos": draft.upos[1:], "head": draft.head[1:], "deprel": draft.label[1:]}
        return result | {"ner": ner} if "ner" in self.columns else result


def _above(token: Any, place: dict[int, int]) -> int:
    """Index of the nearest word above that is in the sentence; the token's own index if there is none."""
    head = token.head
    while head.i not in place and head.head.i != head.i:
        head = head.head
    return int(head.i) if head.i in place else int(token.i)


def _bio(token: Any) -> str:
    return f"{token.ent_iob_}-{token.ent_type_}" if token.ent_iob_ in ("B", "I") and token.ent_type_ else "O"


@lru_cache(maxsize=1)
def _load(path: str) -> Any:
    """The pipeline, once in each process, on a GPU if spaCy has one."""
    import spacy

    spacy.prefer_gpu()
    return spacy.load(path)


def open_spacy(name: str, convert: bool = True) -> SpacyEngine:
    """The pipeline that is installed under ``name`` or lies in the folder ``name``."""
    if importlib.util.find_spec("spacy") is None:
        raise InputError(f"spacy:{name} needs the library spaCy: {INSTALL}")
    from importlib.metadata import version

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
    mark = fingerprint(
        "spacy", format=FORMAT, libraries=libraries, model=own, files=_digest(path),
        clearnlp=clearnlp.FORMAT if converts else None,
    )  # fmt: skip
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


def _digest(path: Path) -> str:
    """Of the names and bytes of all that a pipeline is loaded from."""
    return fingerprint("files", files=[(file.relative_to(path).as_posix(), sha256_file(file)) for file in _files(path)])


def _files(path: Path) -> Iterator[Path]:
    return (p for p in sorted(path.rglob("*")) if p.is_file() and "__pycache__" not in p.parts)
