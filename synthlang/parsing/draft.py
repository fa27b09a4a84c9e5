"""Draft: one sentence whose tree is being changed.

Words count from 1, as in CoNLL-U; every list has an entry for 0, the place above the root, so
``head`` of the root is a valid index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

TOP = 0


class Draft:
    """Parallel lists of words and their annotations, index 0 being the place above the root.

    form, tag, lemma    strings as the parser gave them (``tag``: Penn Treebank; ``lemma`` in lower case)
    upos, label         strings, changed in place
    head                0 … words, changed in place
    ner                 BIO tags; all ``O`` if the parser finds no names
    """

    def __init__(
        self,
        form: Sequence[str],
        tag: Sequence[str],
        lemma: Sequence[str],
        upos: Sequence[str],
        head: Sequence[int],
        label: Sequence[str],
        ner: Sequence[str] | None = None,
    ) -> None:
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
        """1 … number of words."""
        return range(1, len(self.form))

    def children(self, word: int, *labels: str) -> list[int]:
        """Dependents in order of words; with ``labels`` only those that have one of them."""
        return [w for w in self.words if self.head[w] == word and (not labels or self.label[w] in labels)]

    def depth(self, word: int) -> int:
        """Steps up to the root; 0 for the root."""
        steps = 0
        while self.head[word] > TOP:
            word, steps = self.head[word], steps + 1
        return steps

    def attach(self, word: int, head: int, label: str | None = None) -> None:
        """Give a word another head, and another label if there is one."""
        self.head[word] = head
        if label is not None:
            self.label[word] = label

    def replace_head(self, old: int, new: int, moved: Callable[[int], bool] = lambda _: True) -> None:
        """Let ``new``, a word below ``old``, take the place of ``old`` and its dependents, those that are ``moved``.

        ``old`` itself is left without a place; the caller attaches it below ``new``.
        """
        self.attach(new, self.head[old], self.label[old])
        for child in self.children(old):
            if child != new and moved(child):
                self.head[child] = new

    def deepest_first(self, words: Iterable[int]) -> list[int]:
        """Words ordered so that each comes before the words above it."""
        return sorted(words, key=lambda w: (-self.depth(w), w))

    def is_nominal(self, word: int) -> bool:
        """Whether dependents of the word are those of a noun."""
        return self.upos[word] in ("NOUN", "PROPN", "PRON", "NUM", "SYM", "DET")
