"""Marking: morphology and particles that a dependency tree tells where to put, and function words left out.

Which words get which marker is a choice [words]: the index of a marker for each word, −1 for none. Edits put words
beside words, leave words out and join something to words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from synthlang.transforms.layout import RELATIONS, TAGS, attach_inserted, base, modern
from synthlang.trees import Forest

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
CASE_TAGS = ("NOUN", "PROPN", "PRON")
VERB_TAGS = ("VERB", "AUX")
INSERTED_TAG = "_"  # the tags of a word that a transform inserted
AFTER_VERB = 9  # farther from the word than its markers


class Insertion(NamedTuple):
    """A word ``word`` at each of the rows ``rows`` [n]; ``place`` < 0 before the row, > 0 after it.

    Of several at one row the larger place stands further right; equal ones in the order given.
    """

    rows: Rows
    place: int
    word: str


def edit(corpus: Corpus, form: Column, keep: Flags, insertions: Sequence[Insertion]) -> Rewrite:
    """The rewrite to ``form`` [words] with only the words to ``keep`` [words] and the inserted ones.

    A place beside a word that is left out is where that word was.
    """
    kept = np.flatnonzero(keep)
    index: dict[str, int] = {}  # names that became equal are one
    own = np.asarray([index.setdefault(name, len(index)) for name in form.names or ()], np.int32)
    codes = [index.setdefault(i.word, len(index)) for i in insertions]
    lengths = [len(i.rows) for i in insertions]
    anchors = np.concatenate([kept, *(i.rows for i in insertions)]).astype(np.int64)
    places = np.repeat([0, *(i.place for i in insertions)], [len(kept), *lengths])
    all_codes = np.concatenate([own[form.codes[kept]], np.repeat(np.asarray(codes, np.int32), lengths)])
    origin = np.concatenate([corpus.position[kept], np.full(sum(lengths), INSERTED)])
    order = np.lexsort((places, anchors))
    of_sentence = np.bincount(corpus.sentence_of_word[anchors], minlength=len(corpus))
    offsets = np.concatenate([[0], np.cumsum(of_sentence)]).astype(np.int64)
    return Rewrite(offsets, origin[order].astype(np.int32), Column(all_codes[order].astype(np.int32), tuple(index)))


class Choice(NamedTuple):
    """A kind of marker: ``which`` [words] says which of ``texts`` each word has, −1 for none."""

    name: str
    which: Rows
    texts: tuple[str, ...]


def join_affixes(form: Column, choices: Sequence[Choice], before: bool) -> Column:
    """The forms with the chosen texts joined to them, the first choice nearest to the word, after or ``before`` it."""
    for _, which, texts in choices:
        pairs, inverse = np.unique(form.codes * np.int64(len(texts) + 1) + which + 1, return_inverse=True)
        names, affixes = form.names or (), ("", *texts)
        joined = []
        for word, affix in (divmod(pair, len(affixes)) for pair in pairs.tolist()):
            joined.append(affixes[affix] + names[word] if before else names[word] + affixes[affix])
        form = Column.of(joined).take(inverse)
    return form


def agreement_choice(corpus: Corpus, agreement: Mapping[str, str], marked: Flags) -> Rows:
    """The marker of each verb: the first key that fits the first of its subjects."""
    forest = Forest.of(attach_inserted(corpus))
    is_subject = corpus.columns["deprel"].lookup(lambda name: base(name) == "nsubj")
    subjects = np.flatnonzero(is_subject & (forest.parent >= 0))
    first = np.full(len(marked), len(marked), np.int64)
    np.minimum.at(first, forest.parent[subjects], subjects)
    is_verb = corpus.columns["upos"].lookup(lambda name: name in VERB_TAGS)
    verbs = np.flatnonzero(marked & (first < len(marked)) & is_verb)
    choice = np.full(len(marked), -1, np.int64)
    for index, wanted in reversed(list(enumerate(agreement))):  # so the first that fits is written last
        choice[verbs[_fits(corpus, wanted)[first[verbs]]]] = index
    return choice


def _fits(corpus: Corpus, wanted: str) -> Flags:
    """[words] whether a word has a UPOS tag, or all of some features."""
    if "=" not in wanted:
        return corpus.columns["upos"].lookup(lambda name: name == wanted)
    features = set(wanted.split("|"))
    return corpus.columns["feats"].lookup(lambda name: features <= set(name.split("|")))


def dropped(corpus: Corpus, kinds: Sequence[str], articles: Sequence[str]) -> Flags:
    """[words] articles and subject pronouns to leave out: those that nothing depends on, so no word loses its head."""
    wanted = np.zeros(len(corpus.form.codes), bool)
    if not kinds:
        return wanted
    relation = corpus.columns["deprel"].lookup(base, object)
    tag, head = corpus.columns["upos"].lookup(str, object), corpus.columns["head"].codes
    if "articles" in kinds:
        forms = {form.lower() for form in articles}
        is_article = parent_words(corpus).lookup(lambda name: name.lower() in forms)
        wanted |= (relation == "det") & (tag == "DET") & is_article
    if "pronouns" in kinds:
        wanted |= (relation == "nsubj") & (tag == "PRON")
    is_head = np.zeros(len(head), bool)
    is_head[(corpus.offsets[:-1][corpus.sentence_of_word] + head - 1)[head > 0]] = True
    return np.asarray(wanted & ~is_head & (head > 0))


def words_after_verbs(corpus: Corpus, marked: Flags, keep: Flags, distance: int) -> Rows:
    """For each verb the row ``distance`` words after it, or of the last word of its sentence; no punctuation counts."""
    upos = corpus.columns["upos"]
    words = np.flatnonzero(keep & upos.lookup(lambda name: name != "PUNCT"))
    verbs = np.flatnonzero(marked & keep & upos.lookup(lambda name: name == "VERB"))
    last = np.searchsorted(words, corpus.offsets[1:][corpus.sentence_of_word[verbs]]) - 1
    return np.asarray(words[np.minimum(np.searchsorted(words, verbs) + distance, last)], dtype=np.int64)


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
        if not (self.markers or self.after_verb or self.drop):
            raise ValueError("give at least one of case, number, agreement, after_verb, drop")
        if self.separator.split() != [self.separator]:
            raise ValueError(f"the separator {self.separator!r} must be one or more characters without a space")
        for word in (*self.markers, *([self.after_verb.word] if self.after_verb else [])):
            if word.split() != [word] or word == "_":
                raise ValueError(f"the marker {word!r} must be one word without a space")
            if not self.as_words and word in self.markers and self.separator in word:
                raise ValueError(f"the marker {word!r} holds the separator {self.separator!r}, so it has no inverse")
        for one, other in permutations(map(self._joined, self.markers), 2):
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
        choices = self._choices(corpus, chosen & ~gone)
        counts = {"mark: words left out": int(gone.sum())}
        counts |= {f"mark: markers of {c.name}": int((c.which >= 0).sum()) for c in choices}
        insertions, form = [], corpus.form
        if self.after_verb is not None:
            rows = words_after_verbs(corpus, chosen & ~gone, ~gone, self.after_verb.distance)
            insertions.append(Insertion(rows, AFTER_VERB, self.after_verb.word))
            counts["mark: words after verbs"] = len(rows)
        if self.as_words:
            side = -1 if self.place == "before" else 1
            for place, choice in enumerate(choices, start=1):
                for index, text in enumerate(choice.texts):
                    insertions.append(Insertion(np.flatnonzero(choice.which == index), side * place, text))
        else:
            joined = [choice._replace(texts=tuple(map(self._joined, choice.texts))) for choice in choices]
            form = join_affixes(form, joined, self.place == "before")
        return edit(corpus, form, ~gone, insertions).counted(counts)

    def _choices(self, corpus: Corpus, marked: Flags) -> list[Choice]:
        """Nearest to the word first: a noun has number and case, a verb agreement."""
        choices = []
        upos = corpus.columns["upos"]
        if self.number is not None:
            plural = corpus.columns["feats"].lookup(lambda name: "Number=Plur" in name.split("|"))
            nouns = marked & plural & upos.lookup(lambda name: name == "NOUN")
            choices.append(Choice("number", np.where(nouns, 0, -1).astype(np.int64), (self.number,)))
        if self.case:
            index = {relation: i for i, relation in enumerate(self.case)}

            def of(label: str) -> int:  # of the relation, else of the relation without its subtype
                return index.get(label, index.get(modern(label), index.get(base(label), -1)))

            nouns = marked & upos.lookup(lambda name: name in CASE_TAGS)
            which = np.where(nouns, corpus.columns["deprel"].lookup(of, np.int64), -1)
            choices.append(Choice("case", which, tuple(self.case.values())))
        if self.agreement:
            which = agreement_choice(corpus, self.agreement, marked)
            choices.append(Choice("agreement", which, tuple(self.agreement.values())))
        return choices

    def _joined(self, text: str) -> str:
        return text + self.separator if self.place == "before" else self.separator + text

    def _refuse_marked(self, corpus: Corpus) -> None:
        """Raise InputError for a word that the inverse would take for a marked or inserted one."""
        wrong = self._insertions(corpus) | corpus.form.lookup(lambda name: self._bare(name) != name)
        if wrong.any():
            word = (corpus.form.names or ())[int(corpus.form.codes[wrong][0])]
            raise InputError(
                f"mark: the word {word!r} looks like one that it marks, so there would be no inverse; "
                "choose another marker or separator"
            )

    def _insertions(self, corpus: Corpus) -> Flags:
        """[words] whether the word is one this transform inserted."""
        words = {*([self.after_verb.word] if self.after_verb else []), *(self.markers if self.as_words else [])}
        tag = corpus.columns["upos"].lookup(lambda name: name == INSERTED_TAG)
        return np.asarray(tag & corpus.form.lookup(lambda name: name in words))

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
        strip = str.removeprefix if self.place == "before" else str.removesuffix
        ends = [] if self.as_words else [self._joined(marker) for marker in self.markers]
        shorter = next((short for end in ends if (short := strip(word, end)) != word), None)
        return word if shorter is None else self._bare(shorter)
