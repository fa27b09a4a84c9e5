"""Reader of CoNLL-U: a file, or the folder of a Universal Dependencies treebank (v2 or v1 labels).

The columns are ``form upos head deprel`` of the syntactic words. Multiword tokens (``3-4``), empty nodes (``8.1``) and
comments are skipped and do not affect the numbers of words. White space in a form (French ``10 000``) becomes U+00A0,
because a space separates words. A single file is the split that its name contains (``x-dev.conllu``), else ``train``.

``PATH?feats`` adds the column ``feats``, the morphological features as written (``Case=Nom|Number=Plur``), and
``PATH?lemma`` the column ``lemma`` (``PATH?feats&lemma``: both). A language that reads these columns needs no option.
If the first word of a file has no head (``_``), the columns are only ``form upos``. The columns ``ner`` and ``slot``
exist if every word of the first sentence of each file has a tag ``NER=`` or ``Slot=`` in its last column, as in parsed
sources. A later word without a tag is ``O``.

A sentence whose forms are all ``_`` is withheld by its treebank. It is left out and counted. Sentences with wrong word
numbers or heads are also left out and counted, up to one in a hundred. More of them are an error.

Format: https://universaldependencies.org/format.html
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.sources.base import MORPHOLOGY, annotated_batches, nothing_in
from synthlang.sources.size import blocks_in
from synthlang.sources.tags import KEYS, columns_in, iob_tag, legal_tags, read_misc
from synthlang.sources.text import FileSource
from synthlang.sources.words import CLEANED, Faults, joined_lines, tidied
from synthlang.wording import plural

FIRST_SENTENCES = 1000
"""Number of sentences at the start of a file in which a column of MORPHOLOGY must have a value before it is added."""
READER = 1  # part of the fingerprint: raise when the same bytes give other sentences
TREE = ("head", "deprel")
NOT_A_WORD = re.compile(r"[0-9]+[-.][0-9]+")
NUMBER = re.compile("[0-9]{1,9}")
CORRECT = "correct the line, or delete its sentence"
TEN = "separate 10 columns by tabs, or convert the file to CoNLL-U (a plain text: synthlang parse text:FILE --out DIR)"


class Block(NamedTuple):
    """The words of one sentence as columns.

    Attributes:
        lines: Number of the line of each word in the file, from 1.
        form: The words.
        upos: Part of speech of each word.
        head: Number of the head of each word, from 1, or 0 for the root. The list is empty without a tree.
        deprel: Relation of each word to its head.
        feats: Morphological features of each word as written, or ``_``.
        lemma: Lemma of each word, or ``_``.
        misc: Last column of each word, or ``_``.
    """

    lines: list[int]
    form: list[str]
    upos: list[str]
    head: list[int]
    deprel: list[str]
    feats: list[str]
    lemma: list[str]
    misc: list[str]


class ConlluSource(FileSource):
    """Source of sentences in CoNLL-U files, with trees unless the first word of a file has no head.

    Args:
        spec: ``PATH[?option&…]``, a file or a folder with a file for each split.
        more: Columns of MORPHOLOGY to read besides those that the options of ``spec`` name.

    Raises:
        InputError: The path or an option is wrong, or a file cannot be read, has a malformed line before its first
            sentence ends, or has no usable sentence.
    """

    scheme = "conllu"
    endings = (".conllu",)
    own_options = MORPHOLOGY
    anew = (*CLEANED, re.compile(rb"\n1\t_\t"))

    def __init__(self, spec: str | Path, more: Sequence[str] = ()) -> None:
        super().__init__(spec)
        self._spec = spec
        self.options |= dict.fromkeys(more, "")
        firsts = [_first(file) for file in self.files.values()]
        trees = TREE if all(block.head for block in firsts) else ()
        found = [columns_in(block.misc) for block in firsts]
        self._plain = (FORM, "upos", *trees, *(name for name in MORPHOLOGY if name in self.options))
        self._tags = tuple(name for name in found[0] if all(name in names for names in found))
        self.columns = (*self._plain, *self._tags)

    def with_morphology(self, names: Sequence[str]) -> ConlluSource:
        """Return the source with the columns of MORPHOLOGY in ``names``, as with the options of the same names.

        A column is not added if it has no value in the first FIRST_SENTENCES sentences of a file. Output of a parser
        without a lemmatizer has no values in the column ``lemma``, for example.

        Raises:
            InputError: A file cannot be read, or one of these sentences is malformed.
        """
        found = [name for name in names if all(_has_values(file, name) for file in self.files.values())]
        return ConlluSource(self._spec, [*(name for name in MORPHOLOGY if name in self.options), *found])

    def _marks(self) -> dict[str, Any]:
        added = {name: True for name in MORPHOLOGY if name in self.columns}
        return {"reader": READER, **added, **({"tags": list(self._tags)} if self._tags else {})}

    def _batches(self, split: str) -> Iterator[Corpus]:
        path, remarks = self.files[split], Counter[str]()
        self._remarks[split] = remarks
        sentences = (self._sentence(block, path) for block in read_blocks(path, remarks))
        batches = annotated_batches(tidied(sentences, remarks))
        return self._sizes.watch(split, map(legal_tags, batches) if self._tags else batches)

    def _sentence(self, block: Block, path: Path) -> dict[str, list[Any]]:
        sentence = {name: getattr(block, name) for name in self._plain}
        for name in self._tags:
            words = zip(block.misc, block.lines, strict=True)
            sentence[name] = [iob_tag(read_misc(misc, name) or "O", path, line, KEYS[name]) for misc, line in words]
        return sentence

    def size(self, split: str) -> int | None:
        """Return the number of sentences in a split, or None if the source lacks the split.

        Until the split has been read, the number of blank lines at the start of the file gives an estimate.
        """
        if self._sizes.get(split) is None and split in self.files:
            self._sizes.guess(split, blocks_in(self.files[split]))
        return self._sizes.get(split)


def _first(path: Path) -> Block:
    """Return the first sentence whose words are not withheld, and refuse a file without such a sentence."""
    counts: Counter[str] = Counter()
    for block in read_blocks(path, counts):
        if any(tidied([{FORM: block.form}], counts)):
            return block
    raise nothing_in("sentence", path, counts)


def _has_values(path: Path, column: str) -> bool:
    """Return whether a column has a value in the first FIRST_SENTENCES sentences of a file."""
    blocks = islice(read_blocks(path, Counter()), FIRST_SENTENCES)
    return any(value != "_" for block in blocks for value in getattr(block, column))


class SentenceError(InputError):
    """Error for wrong word numbers or heads in one sentence."""


def read_blocks(path: Path, counts: Counter[str] | None = None) -> Iterator[Block]:
    """Yield the sentences of a CoNLL-U file.

    Each sentence is checked to be one tree, unless the file has no trees (all heads are ``_``).

    Args:
        path: The file.
        counts: Counter of sentences with wrong word numbers or heads. Up to one such sentence in a hundred is then
            left out. With None, the first such sentence is an error.

    Raises:
        InputError: The file cannot be read, a line is malformed, the file has no sentence, or too many sentences have
            wrong word numbers or heads.
    """
    block, trees, faults = _block(), None, Faults(counts)
    fault: SentenceError | None = None
    for number, line in chain(joined_lines(path), [(0, "")]):
        if line.startswith("#"):
            continue
        if line.strip(" "):
            if trees is None and not NOT_A_WORD.fullmatch(line.partition("\t")[0]):
                trees = line.split("\t")[6:7] != ["_"]
            if fault is None:
                try:
                    _add_line(block, line, path, number, trees is not False)
                except SentenceError as error:
                    fault = error
        elif fault or block.lines:
            if fault := fault or _fault_of(block, path):
                faults.add(fault)
            else:
                faults.read += 1
                yield block
            block, fault = _block(), None
    faults.end()
    if trees is None:
        raise nothing_in("sentence", path)


def _block() -> Block:
    return Block([], [], [], [], [], [], [], [])


def _add_line(block: Block, line: str, path: Path, number: int, trees: bool) -> None:
    fields = line.split("\t")
    if len(fields) != 10:
        reason = f"the line has {plural(len(fields), 'column')} separated by tabs, but CoNLL-U has 10"
        raise InputError(reason, path, number, hint=TEN, code="format")
    name, form, lemma, upos, _, feats, head, deprel, _, misc = fields
    if NOT_A_WORD.fullmatch(name):
        return
    expected = len(block.lines) + 1
    problem, hint = "", CORRECT
    if not NUMBER.fullmatch(name):
        problem = f"the id {name!r} must be the number of a word, a range such as 3-4 or an empty node such as 8.1"
    elif int(name) != expected:
        reason = f"the id {name} is out of sequence: {expected} must come next"
        hint = "insert a blank line before each sentence, or correct the id" if int(name) == 1 else CORRECT
        raise SentenceError(reason, path, number, hint=hint, code="format")
    elif not trees and head != "_":
        problem = f"word {name} has the head {head!r}, but the words before it have none"
        hint = "write the head of every word, or _ in place of all heads"
    elif trees and not NUMBER.fullmatch(head):
        problem = f"the head {head!r} of word {name} must be the number of a word, or 0 for the root"
    elif not form.strip(" "):
        problem = f"word {name} has an empty form"
    if problem:
        raise InputError(problem, path, number, hint=hint, code="format")
    block.lines.append(number)
    block.form.append(form)
    block.upos.append(upos)
    if trees:
        block.head.append(int(head))
    block.deprel.append(deprel)
    block.feats.append(feats)
    block.lemma.append(lemma)
    block.misc.append(misc)


def _fault_of(block: Block, path: Path) -> SentenceError | None:
    problem = tree_problem(block.head) if block.head else None
    if problem is None:
        return None
    return SentenceError(problem[1], path, block.lines[problem[0] - 1], hint=CORRECT, code="format")


def tree_problem(head: Sequence[int]) -> tuple[int, str] | None:
    """Check that heads (1-based, 0 for the root) form one tree.

    Returns:
        The number of a faulty word, from 1, and a message, or None if the heads form one tree.

    >>> tree_problem([2, 0, 2]) is None
    True
    >>> tree_problem([0, 3, 2])
    (2, 'word 2 is in a cycle of heads')
    """
    count = len(head)
    for word, h in enumerate(head, start=1):
        if not 0 <= h <= count:
            return word, f"the head {h} of word {word} is out of range: the sentence has {plural(count, 'word')}"
    roots = [word for word, h in enumerate(head, start=1) if h == 0]
    if not roots:
        return 1, "the sentence has no root: no word has the head 0"
    if len(roots) > 1:
        return roots[1], f"words {roots[0]} and {roots[1]} are both roots, but a sentence has only one"
    reached = [0] * (count + 1)  # the first word whose walk to the root reached this one, or 0
    reached[0] = -1
    for word in range(1, count + 1):
        at = word
        while not reached[at]:
            reached[at] = word
            at = head[at - 1]
        if reached[at] == word and at:
            return at, f"word {at} is in a cycle of heads"
    return None
