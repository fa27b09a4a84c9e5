"""Draft: a sentence whose tree is being changed, and the attachment of punctuation in UD.

Words count from 1, as in CoNLL-U. Every list has an entry for 0, the place above the root, so that the ``head`` of the
root is a valid index.

Punctuation is attached as high as possible without crossing an edge. A mark at the border of a subordinate unit belongs
to this unit. A pair of quotes or brackets belongs to the head of the words that it encloses. In a coordination a mark
belongs to the following conjunct (https://universaldependencies.org/u/dep/punct.html).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

TOP = 0


class Draft:
    """Parallel lists of words and their annotations, where index 0 is the place above the root.

    Attributes:
        form: The words as given by the parser.
        low: The words in lower case.
        tag: Penn Treebank tags.
        lemma: Lemmas in lower case.
        upos: Parts of speech, changed in place.
        head: Heads, from 0 to the number of words, changed in place.
        label: Relations, changed in place.
        ner: BIO tags, which are all ``O`` if the parser does not find names.
    """

    def __init__(
        self, form: Sequence[str], tag: Sequence[str], lemma: Sequence[str], upos: Sequence[str], head: Sequence[int],
        label: Sequence[str], ner: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.form = ["", *form]
        self.low = [word.lower() for word in self.form]
        self.tag = ["", *tag]
        self.lemma = ["", *(value.lower() for value in lemma)]
        self.upos = ["", *upos]
        self.head = [-1, *head]
        self.label = ["", *label]
        self.ner = ["O", *(ner or ["O"] * len(form))]

    @property
    def words(self) -> range:
        """The numbers of the words, from 1."""
        return range(1, len(self.form))

    def children(self, word: int, *labels: str) -> list[int]:
        """Return the numbers of the dependents of ``word`` in order, or only of those with one of the ``labels``."""
        return [w for w in self.words if self.head[w] == word and (not labels or self.label[w] in labels)]

    def having(self, *labels: str) -> Iterator[int]:
        """Yield the numbers of the words that have one of the labels at the time they are reached."""
        return (word for word in self.words if self.label[word] in labels)

    def attach(self, word: int, head: int, label: str | None = None) -> None:
        """Give ``word`` the head ``head``, and the label ``label`` unless it is None."""
        self.head[word] = head
        if label is not None:
            self.label[word] = label

    def replace_head(self, old: int, new: int, stays: Collection[int] = ()) -> None:
        """Move ``new``, a word below ``old``, to the place of ``old`` in the tree.

        The dependents of ``old`` become dependents of ``new``, except those in ``stays``. The caller then attaches
        ``old`` below ``new``.
        """
        self.attach(new, self.head[old], self.label[old])
        for child in self.children(old):
            if child != new and child not in stays:
                self.head[child] = new

    def deepest_first(self, words: Iterable[int]) -> list[int]:
        """Sort words so that each comes before the words above it."""

        def depth(word: int) -> int:
            steps = 0
            while word != TOP:
                word, steps = self.head[word], steps + 1
            return steps

        return sorted(words, key=lambda word: (-depth(word), word))

    def is_nominal(self, word: int) -> bool:
        """Return whether the word takes the dependents of a noun."""
        return self.upos[word] in ("NOUN", "PROPN", "PRON", "NUM", "SYM", "DET")


OPENING = {"(": ")", "[": "]", "{": "}", "“": "”", "«": "»", "``": "''", "-LRB-": "-RRB-"}
STRAIGHT = ('"', "'")


def attach_punctuation(draft: Draft) -> None:
    """Give every word with the label ``punct`` a new head. Other words keep their heads."""
    marks = [w for w in draft.words if draft.label[w] == "punct" and draft.head[w] != TOP]
    for mark in marks:  # a mark has no dependents, so words that the parser attached to it move up
        for child in draft.children(mark):
            draft.attach(child, _not_a_mark(draft, mark))
    solid = [w for w in draft.words if w not in set(marks)]
    pairs = _pairs(draft, marks)
    for mark in marks:
        partner = pairs.get(mark)
        inside = None if partner is None else _enclosed_head(draft, min(mark, partner), max(mark, partner), solid)
        draft.head[mark] = inside or _highest(draft, mark, solid)


def _not_a_mark(draft: Draft, word: int) -> int:
    while draft.label[word] == "punct" and draft.head[word] != TOP:
        word = draft.head[word]
    return word


def _pairs(draft: Draft, marks: list[int]) -> dict[int, int]:
    """Map each mark of a matching pair to its partner."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for mark in marks:
        form = draft.form[mark]
        match = next((i for i in reversed(opened) if OPENING.get(draft.form[i], draft.form[i]) == form), None)
        if match is not None:
            found[match], found[mark] = mark, match
            del opened[opened.index(match) :]
        elif form in OPENING or form in STRAIGHT:
            opened.append(mark)
    return found


def _enclosed_head(draft: Draft, start: int, end: int, solid: list[int]) -> int | None:
    """Return the word between two marks whose head is outside, or None if there is not exactly one."""
    tops = [w for w in solid if start < w < end and not start < draft.head[w] < end]
    return tops[0] if len(tops) == 1 else None


def _highest(draft: Draft, mark: int, solid: list[int]) -> int:
    """Return the word to which a mark is attached, which is the top of the unit before or after the mark."""
    before = max((w for w in solid if w < mark), default=None)
    after = min((w for w in solid if w > mark), default=None)
    left = None if before is None else _climb(draft, before, mark, 1)
    right = None if after is None else _climb(draft, after, mark, -1)
    if left is None or right is None:
        top = left or right
        assert top is not None, "the root is never moved, so a word that is no mark exists"
        return top
    if draft.head[right] != TOP and draft.head[right] < mark:  # the unit after the mark depends on the one before
        return right
    return left


def _climb(draft: Draft, word: int, mark: int, side: int) -> int:
    """Climb from ``word`` to the highest word on its side of the mark (side 1: left of it)."""
    while draft.head[word] != TOP and (mark - draft.head[word]) * side > 0:
        word = draft.head[word]
    return word
