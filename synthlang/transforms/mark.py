"""Marking: morphology and particles that a dependency tree tells where to put, and function words left out.

Which words get which marker is a choice [words]: the index of a marker for each word, −1 for none. Edits put words
beside words, leave words out and join something to words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from synthlang.config import StrictModel
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.transforms.base import MOST_WORDS, Transform, check_columns, chosen_sentences, parent_words
from synthlang.transforms.layout import attach_inserted
from synthlang.transforms.relations import RELATIONS, TAGS, base, lookup, modern
from synthlang.trees import Forest

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Insertion:
    """A word ``word`` at each of the rows ``rows`` [n]; ``place`` < 0 before the row, > 0 after it.

    Of several at one row the larger place stands further right; equal ones in the order given.
    """

    rows: Rows
    place: int
    word: str


def edit(corpus: Corpus, form: Column, keep: NDArray[np.bool_], insertions: Sequence[Insertion]) -> Rewrite:
    """The rewrite to ``form`` [words] with only the words to ``keep`` [words] and the inserted ones.

    A place beside a word that is left out is where that word was.
    """
    kept = np.flatnonzero(keep)
    index: dict[str, int] = {}  # names that became equal are one
    own = np.asarray([index.setdefault(name, len(index)) for name in form.names or ()], np.int32)
    codes = [index.setdefault(i.word, len(index)) for i in insertions]
    anchors = np.concatenate([kept, *(i.rows for i in insertions)]).astype(np.int64)
    places = np.repeat([0, *(i.place for i in insertions)], [len(kept), *(len(i.rows) for i in insertions)])
    inserted = np.repeat(np.asarray(codes, np.int32), [len(i.rows) for i in insertions])
    all_codes = np.concatenate([own[form.codes[kept]], inserted])
    origin = np.concatenate([corpus.position[kept], np.full(len(inserted), INSERTED)])
    order = np.lexsort((places, anchors))
    lengths = np.bincount(corpus.sentence_of_word[anchors], minlength=len(corpus))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Rewrite(offsets, origin[order].astype(np.int32), Column(all_codes[order].astype(np.int32), tuple(index)))


def join_affixes(form: Column, affixes: Sequence[tuple[NDArray[np.int64], Sequence[str]]], before: bool) -> Column:
    """The forms with affixes joined to them.

    ``affixes`` are (choice [words], texts): the text joined to each word, −1 for none; the first one
    stands nearest to the word, after it or ``before`` it.
    """
    names = form.names or ()
    codes = form.codes.astype(np.int64)
    for choice, texts in affixes:
        if not len(codes):
            continue
        pairs, inverse = np.unique(codes * (len(texts) + 1) + choice + 1, return_inverse=True)
        joined = []
        for pair in pairs.tolist():
            name, affix = names[pair // (len(texts) + 1)], pair % (len(texts) + 1)
            joined.append(name if not affix else texts[affix - 1] + name if before else name + texts[affix - 1])
        unique = Column.of(joined)
        codes, names = unique.codes[inverse].astype(np.int64), unique.names or ()
    return Column(codes.astype(np.int32), tuple(names))


Flags = NDArray[np.bool_]
CASE_TAGS = ("NOUN", "PROPN", "PRON")
VERB_TAGS = ("VERB", "AUX")


def case_choice(corpus: Corpus, case: Mapping[str, str], marked: Flags) -> Rows:
    """The case marker of each noun: of its relation, else of the relation without its subtype."""
    index = {relation: i for i, relation in enumerate(case)}

    def of(label: str) -> int:
        return index.get(label, index.get(modern(label), index.get(base(label), -1)))

    nouns = marked & lookup(corpus.columns["upos"], lambda name: name in CASE_TAGS)
    return np.where(nouns, lookup(corpus.columns["deprel"], of, np.int64), -1)


def number_choice(corpus: Corpus, marked: Flags) -> Rows:
    """0 at plural nouns."""
    plural = lookup(corpus.columns["feats"], lambda name: "Number=Plur" in name.split("|"))
    nouns = lookup(corpus.columns["upos"], lambda name: name == "NOUN")
    return np.where(marked & plural & nouns, 0, -1).astype(np.int64)


def agreement_choice(corpus: Corpus, agreement: Mapping[str, str], marked: Flags) -> Rows:
    """The marker of each verb: the first key that fits the first of its subjects."""
    forest = Forest.of(attach_inserted(corpus))
    is_subject = lookup(corpus.columns["deprel"], lambda name: base(name) == "nsubj") & (forest.parent >= 0)
    subjects = np.flatnonzero(is_subject)
    first = np.full(len(marked), len(marked), np.int64)
    np.minimum.at(first, forest.parent[subjects], subjects)
    verbs = np.flatnonzero(
        marked & (first < len(marked)) & lookup(corpus.columns["upos"], lambda name: name in VERB_TAGS)
    )
    choice = np.full(len(marked), -1, np.int64)
    for index, wanted in reversed(list(enumerate(agreement))):  # so the first that fits is written last
        choice[verbs[_fits(corpus, wanted)[first[verbs]]]] = index
    return choice


def _fits(corpus: Corpus, wanted: str) -> Flags:
    """[words] whether a word has a UPOS tag, or all of some features."""
    if "=" not in wanted:
        return lookup(corpus.columns["upos"], lambda name: name == wanted)
    features = set(wanted.split("|"))
    return lookup(corpus.columns["feats"], lambda name: features <= set(name.split("|")))


def dropped(corpus: Corpus, kinds: Sequence[str], articles: Sequence[str]) -> Flags:
    """[words] articles and subject pronouns to leave out: those that nothing depends on, so no word loses its head."""
    if not kinds:
        return np.zeros(len(corpus.form.codes), bool)
    forms = {form.lower() for form in articles}
    deprel, upos = corpus.columns["deprel"], corpus.columns["upos"]
    article = lookup(deprel, lambda name: base(name) == "det") & lookup(upos, lambda name: name == "DET")
    article &= lookup(parent_words(corpus), lambda name: name.lower() in forms)
    pronoun = lookup(deprel, lambda name: base(name) == "nsubj") & lookup(upos, lambda name: name == "PRON")
    wanted = (article if "articles" in kinds else False) | (pronoun if "pronouns" in kinds else False)
    head = corpus.columns["head"].codes
    has_head = head > 0
    is_head = np.zeros(len(head), bool)
    is_head[(corpus.offsets[:-1][corpus.sentence_of_word] + head - 1)[has_head]] = True
    return np.asarray(wanted & ~is_head & has_head)


def words_after_verbs(corpus: Corpus, marked: Flags, keep: Flags, distance: int) -> Rows:
    """For each verb the row ``distance`` words after it, or of the last word of its sentence; no punctuation counts."""
    upos = corpus.columns["upos"]
    words = np.flatnonzero(keep & ~lookup(upos, lambda name: name == "PUNCT"))
    verbs = np.flatnonzero(marked & keep & lookup(upos, lambda name: name == "VERB"))
    sentence = corpus.sentence_of_word
    last = np.searchsorted(words, corpus.offsets[1:][sentence[verbs]]) - 1
    return np.asarray(words[np.minimum(np.searchsorted(words, verbs) + distance, last)], dtype=np.int64)


INSERTED_TAG = "_"  # the tags of a word that a transform inserted
AFTER_VERB = 9  # farther from the word than its markers


class Choice(NamedTuple):
    """A kind of marker: ``which`` [words] says which of ``texts`` each word has, −1 for none."""

    name: str
    which: Rows
    texts: tuple[str, ...]


class AfterVerb(StrictModel):
    """A word put ``distance`` words after each verb, punctuation not counted, or at the end of its sentence."""

    word: str
    distance: int = Field(default=4, ge=0, le=MOST_WORDS)


class Mark(Transform):
    """Insert markers and leave words out, in a share ``strength`` of the sentences.

    case         relation → marker on the NOUN, PROPN or PRON that has it; ``nmod`` also covers ``nmod:poss``
                 unless that has a marker of its own
    number       marker on a NOUN with Number=Plur (needs the column ``feats``)
    agreement    property of the subject → marker on its VERB or AUX; a UPOS tag (``PRON``) or features
                 (``Number=Plur|Person=3``, which need ``feats``); the first that fits
    after_verb   a word some words after each verb (Kallini et al. 2024, "Mission: Impossible Language
                 Models"); at the end of the sentence, before the final mark, if that comes first
    drop         ``articles`` (det among ``articles``) and subject ``pronouns``, if nothing depends on them
    as_words     markers are words of their own (origin −1), else joined by ``separator``: ``cat·ka``
    place        markers stand ``after`` their word or ``before`` it

    Exactly invertible unless words are left out; so a word of the parent that looks like a marked one is refused.
    """

    kind: Literal["mark"] = "mark"
    case: Mapping[str, str] = Field(default_factory=dict)
    number: str | None = None
    agreement: Mapping[str, str] = Field(default_factory=dict)
    after_verb: AfterVerb | None = None
    drop: tuple[Literal["articles", "pronouns"], ...] = ()
    articles: tuple[str, ...] = Field(default=("the", "a", "an"), min_length=1)
    as_words: bool = False
    place: Literal["after", "before"] = "after"
    separator: str = "·"

    @model_validator(mode="after")
    def _something(self) -> Mark:
        if not (self.markers or self.after_verb or self.drop):
            raise ValueError("give at least one of case, number, agreement, after_verb, drop")
        return self

    @field_validator("case")
    @classmethod
    def _relations(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        unknown = [relation for relation in value if relation.partition(":")[0] not in RELATIONS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no relation of Universal Dependencies: {', '.join(sorted(RELATIONS))}")
        return value

    @field_validator("agreement")
    @classmethod
    def _properties(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        unknown = [key for key in value if "=" not in key and key not in TAGS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is neither a feature (Number=Plur) nor a tag: {', '.join(sorted(TAGS))}")
        return value

    @model_validator(mode="after")
    def _told_apart(self) -> Mark:
        if self.separator.split() != [self.separator]:
            raise ValueError(f"the separator {self.separator!r} must be one or more characters without a space")
        words = [*self.markers, *([self.after_verb.word] if self.after_verb else [])]
        for word in words:
            if word.split() != [word] or word == "_":
                raise ValueError(f"the marker {word!r} must be one word without a space")
            if not self.as_words and word in self.markers and self.separator in word:
                raise ValueError(f"the marker {word!r} holds the separator {self.separator!r}, so it has no inverse")
        for one, other in permutations(self._joined(self.markers), 2):
            if one.startswith(other) if self.place == "before" else one.endswith(other):
                raise ValueError(f"a word marked {one!r} looks like one marked {other!r}; choose another separator")
        return self

    @property
    def markers(self) -> tuple[str, ...]:
        number = [] if self.number is None else [self.number]
        return tuple(dict.fromkeys([*number, *self.case.values(), *self.agreement.values()]))

    @property
    def requires(self) -> tuple[str, ...]:
        """Tags, and trees or features where an option reads them."""
        head = ("head",) if self.agreement or self.drop else ()
        feats = ("feats",) if self.number or any("=" in key for key in self.agreement) else ()
        return ("upos", "deprel", *head, *feats)

    @property
    def invertible(self) -> bool:
        return not self.drop

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        if not len(corpus):
            return Rewrite.identity(corpus)
        check_columns(corpus, self)
        if self.invertible:
            self._refuse_marked(corpus)
        chosen = chosen_sentences(corpus, key, self.strength)[corpus.sentence_of_word]
        gone = chosen & dropped(corpus, self.drop, self.articles)
        marked = chosen & ~gone
        choices = self._choices(corpus, marked)
        insertions = self._after_verbs(corpus, marked, ~gone)
        counts = {
            "mark: words left out": int(gone.sum()),
            **{f"mark: markers of {c.name}": int((c.which >= 0).sum()) for c in choices},
            "mark: words after verbs": sum(len(i.rows) for i in insertions),
        }
        form = corpus.form
        if self.as_words:
            insertions += self._as_words(choices)
        else:
            form = join_affixes(form, [(c.which, self._joined(c.texts)) for c in choices], self.place == "before")
        result = edit(corpus, form, ~gone, insertions)
        reasons = {reason: count for reason, count in counts.items() if count}
        return Rewrite(result.offsets, result.origin, result.form, None, reasons)

    def _choices(self, corpus: Corpus, marked: Flags) -> list[Choice]:
        """Nearest to the word first: a noun has number and case, a verb agreement."""
        choices = []
        if self.number is not None:
            choices.append(Choice("number", number_choice(corpus, marked), (self.number,)))
        if self.case:
            choices.append(Choice("case", case_choice(corpus, self.case, marked), tuple(self.case.values())))
        if self.agreement:
            texts = tuple(self.agreement.values())
            choices.append(Choice("agreement", agreement_choice(corpus, self.agreement, marked), texts))
        return choices

    def _joined(self, texts: tuple[str, ...]) -> list[str]:
        return [t + self.separator if self.place == "before" else self.separator + t for t in texts]

    def _as_words(self, choices: list[Choice]) -> list[Insertion]:
        side = -1 if self.place == "before" else 1
        return [
            Insertion(np.flatnonzero(choice.which == index), side * place, text)
            for place, choice in enumerate(choices, start=1)
            for index, text in enumerate(choice.texts)
        ]

    def _after_verbs(self, corpus: Corpus, marked: Flags, keep: Flags) -> list[Insertion]:
        if self.after_verb is None:
            return []
        rows = words_after_verbs(corpus, marked, keep, self.after_verb.distance)
        return [Insertion(rows, AFTER_VERB, self.after_verb.word)]

    @property
    def _inserted(self) -> frozenset[str]:
        """The words it puts into sentences."""
        own = (self.after_verb.word,) if self.after_verb else ()
        return frozenset((*own, *(self.markers if self.as_words else ())))

    def _is_marked(self, word: str) -> bool:
        ends = [] if self.as_words else self._joined(self.markers)
        return any(word.startswith(e) if self.place == "before" else word.endswith(e) for e in ends)

    def _refuse_marked(self, corpus: Corpus) -> None:
        """Raise InputError for a word that the inverse would take for a marked or inserted one."""
        names = corpus.form.names or ()
        used = np.bincount(corpus.form.codes, minlength=len(names)) > 0
        look_alike = [name for name, is_used in zip(names, used.tolist(), strict=True) if is_used]
        wrong = next((name for name in look_alike if self._is_marked(name)), None)
        if wrong is None and (inserted := self._insertions(corpus)).any():
            wrong = names[int(corpus.form.codes[inserted][0])]
        if wrong is not None:
            raise InputError(
                f"mark: the word {wrong!r} looks like one that it marks, so there would be no inverse; "
                "choose another marker or separator"
            )

    def _insertions(self, corpus: Corpus) -> Flags:
        """[words] whether the word is one this transform inserted."""
        words = self._inserted
        tag = lookup(corpus.columns["upos"], lambda name: name == INSERTED_TAG)
        return np.asarray(tag & lookup(corpus.form, lambda name: name in words))

    def inverse(self, corpus: Corpus, key: int) -> Rewrite:
        """Take the markers off again; what they look like tells where they are."""
        if not self.invertible:
            return super().inverse(corpus, key)
        if not len(corpus):
            return Rewrite.identity(corpus)
        check_columns(corpus, self)
        form = corpus.form.map_names(self._bare(name) for name in corpus.form.names or ())
        return edit(corpus, form, ~self._insertions(corpus), [])

    def _bare(self, word: str) -> str:
        """The word without its markers: no word of the parent ends in one, so taking off all is exact."""
        ends = [] if self.as_words else self._joined(self.markers)
        while True:
            end = next((e for e in ends if (word.startswith(e) if self.place == "before" else word.endswith(e))), None)
            if end is None:
                return word
            word = word.removeprefix(end) if self.place == "before" else word.removesuffix(end)
