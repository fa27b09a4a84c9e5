"""The papers of archived studies, and the verdicts on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from probes.claims.papers import About, claims_files, names_in, read_about, tables_file
from probes.report.data import Study
from probes.report.judged import Comparisons, compared
from probes.study.record import STUDY
from synthlang.errors import InputError

T = TypeVar("T")
Archived = Mapping[str, Study]
"""Name of an archived study → the study."""


def papers_of(study: Study) -> dict[str, Path]:
    """Return the papers whose claims or tables a study names: name → file.

    Claims that name no paper count as a paper of their own, which has the name of their file.

    Raises:
        InputError: A name of claims or of a paper is not in the catalogue, or a file is missing or not YAML.
    """
    files = [several[-1] for several in read_named(study, "claims", claims_files)]
    files += read_named(study, "paper", tables_file)
    return {file.stem: file for file in files}


def read_named(study: Study, key: str, read: Callable[[str], T]) -> list[T]:
    """Return the results of ``read`` for the names under a key of the study (``claims`` or ``paper``).

    Raises:
        InputError: ``read`` refuses a name or its file. The error for a name has the place of the name in study.json.
    """
    try:
        return [read(name) for name in names_in(study.config.get(key))]
    except InputError as error:
        if error.path is None:
            error.keys = ("config", key)
        raise error.inside(path=study.folder / STUDY) from error


def about(paper: str, archived: Archived) -> About:
    """Return the title and the citation of a paper, which an archived study must name.

    Raises:
        InputError: A name of claims or of a paper is not in the catalogue, or a file is missing or not YAML.
    """
    return next(read_about(files[paper]) for files in map(papers_of, archived.values()) if paper in files)


def by_paper(archived: Archived) -> dict[str, Archived]:
    """Return paper → the studies that name its claims or tables, with the papers in alphabetical order.

    Raises:
        InputError: A name of claims or of a paper is not in the catalogue, or a file is missing or not YAML.
    """
    found: dict[str, dict[str, Study]] = {}
    for name, study in archived.items():
        for paper in papers_of(study):
            found.setdefault(paper, {})[name] = study
    return {paper: found[paper] for paper in sorted(found)}


def compared_papers(archived: Archived) -> dict[str, Comparisons]:
    """Return paper → the verdicts on its claims and tables, from the results of the studies that name the paper.

    Raises:
        InputError: A name of claims or of a paper is not in the catalogue, or a file is missing or not YAML.
    """
    found = {}
    for paper, studies in by_paper(archived).items():
        all_of = compared(list(studies.values()))
        found[paper] = all_of._replace(
            claims=[claim for claim in all_of.claims if claims_files(claim.file)[-1].stem == paper],
            tables=[(table, lines) for table, lines in all_of.tables if table.paper == paper],
        )
    return found


def in_few_words(name: str, text: str) -> str:
    """Return the name of a claim as words, with capitals as in the text of the claim.

    >>> in_few_words("align-beats-mlm", "ALIGN-MLM transfers better than MLM.")
    'ALIGN beats MLM'
    >>> in_few_words("anchors-are-not-needed", "Without any shared string …")
    'Anchors are not needed'
    """
    capitals = {word.lower(): word for word in re.findall(r"[A-Za-z]+", text) if word[1:] != word[1:].lower()}
    words = " ".join(capitals.get(word, word) for word in re.findall(r"[^-_ ]+", name))
    return words[:1].upper() + words[1:]
