"""Marking: add morphology and particles according to a dependency tree, and leave out function words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, field_validator, model_validator

from synthlang.config import StrictModel
from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError, did_you_mean
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.transforms.base import MOST_WORDS, Transform, check_columns, chosen_sentences, is_listed, parent_words
from synthlang.transforms.layout import RELATIONS, TAGS, attach_inserted, base, modern
from synthlang.trees import Forest

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
CASE_TAGS = ("NOUN", "PROPN", "PRON")
VERB_TAGS = ("VERB", "AUX")
INSERTED_TAG = "_"  # the tags of an inserted word
OTHER_MARKER = "choose another marker"
OTHER_MARKER_OR_SEPARATOR = "choose another marker or separator"
AFTER_VERB = 9  # place of a word after a verb: farther from the verb than its markers


def check_marker(word: str) -> str:
    """Return a marker unchanged if it is one word that is distinct from the tag of inserted words.

    Raises:
        InputError: The marker is empty, has white space or is the tag ``_``.
    """
    if word.split() != [word] or word == INSERTED_TAG:
        raise InputError(
            f"the marker {word!r} must be one word and not {INSERTED_TAG}", hint=OTHER_MARKER, code="format"
        )
    return word


Marker = Annotated[str, AfterValidator(check_marker)]


class Insertion(NamedTuple):
    """Insertion of the word ``word`` at each of the rows ``rows`` [n].

    A negative ``place`` is before the row, and a positive ``place`` is after the row. Words at the same row are sorted
    by place, and equal places keep the order of the insertions.
    """

    rows: Rows
    place: int
    word: str


def edit(corpus: Corpus, form: Column, keep: Flags, insertions: Sequence[Insertion]) -> Rewrite:
    """Return the rewrite that keeps some words and inserts others.

    A word that is inserted beside an omitted word takes the place of that word.

    Args:
        corpus: The batch.
        form: New forms of the words of the batch, [words].
        keep: Flags of the words to keep, [words].
        insertions: The words to insert.
    """
    kept = np.flatnonzero(keep)
    index: dict[str, int] = {}  # names that became equal get one code
    own = np.asarray([index.setdefault(name, len(index)) for name in form.names or ()], np.int32)
    codes = [index.setdefault(i.word, len(index)) for i in insertions]
    lengths = [len(i.rows) for i in insertions]
    anchors = np.concatenate([kept, *(i.rows for i in insertions)]).astype(np.int64)
    places = np.repeat([0, *(i.place for i in insertions)], [len(kept), *lengths])
    all_codes = np.concatenate([own[form.codes[kept]], np.repeat(np.asarray(codes, np.int32), lengths)])
    source = np.concatenate([corpus.position[kept], np.full(sum(lengths), INSERTED)]).astype(np.int32)
    order = np.lexsort((places, anchors))
    of_sentence = np.bincount(corpus.sentence_of_word[anchors], minlength=len(corpus))
    offsets = np.concatenate([[0], np.cumsum(of_sentence)]).astype(np.int64)
    return Rewrite(offsets, source[order], Column(all_codes[order].astype(np.int32), tuple(index)))


class Choice(NamedTuple):
    """The markers of one kind that are chosen for the words of a corpus.

    Attributes:
        name: The kind: number, case or agreement.
        which: Index of each word's marker in ``texts``, or −1 for a word without a marker, [words] int64.
        texts: The markers of this kind.
    """

    name: str
    which: Rows
    texts: tuple[str, ...]


def join_affixes(form: Column, choices: Sequence[Choice], before: bool) -> Column:
    """Return the forms with the chosen texts joined after the word, or before it if ``before`` is true, [words].

    The first choice is nearest to the word.
    """
    for _, which, texts in choices:
        pairs, inverse = np.unique(form.codes * np.int64(len(texts) + 1) + which + 1, return_inverse=True)
        names, affixes = form.names or (), ("", *texts)
        joined = []
        for word, affix in (divmod(pair, len(affixes)) for pair in pairs.tolist()):
            joined.append(affixes[affix] + names[word] if before else names[word] + affixes[affix])
        form = Column.of(joined).take(inverse)
    return form


def agreement_choice(corpus: Corpus, agreement: Mapping[str, str], marked: Flags) -> Rows:
    """Choose the marker of each verb by the first key that fits its first subject.

    Args:
        corpus: The batch.
        agreement: Marker by property of the subject, a UPOS tag or features.
        marked: Flags of the words that may get a marker, [words].

    Returns:
        Index of the key for each word, or −1 for a word without a marker, [words] int64.
    """
    forest = Forest.of(attach_inserted(corpus))
    is_subject = corpus.columns["deprel"].lookup(lambda name: base(name) == "nsubj")
    subjects = np.flatnonzero(is_subject & (forest.parent >= 0))
    first = np.full(len(marked), len(marked), np.int64)
    np.minimum.at(first, forest.parent[subjects], subjects)
    is_verb = corpus.columns["upos"].lookup(lambda name: name in VERB_TAGS)
    verbs = np.flatnonzero(marked & (first < len(marked)) & is_verb)
    choice = np.full(len(marked), -1, np.int64)
    for index, wanted in reversed(list(enumerate(agreement))):  # so that the first key that fits is written last
        choice[verbs[_fits(corpus, wanted)[first[verbs]]]] = index
    return choice


def _fits(corpus: Corpus, wanted: str) -> Flags:
    """Return whether each word has a UPOS tag or a list of features (``Number=Plur|Person=3``), [words]."""
    if "=" not in wanted:
        return corpus.columns["upos"].lookup(lambda name: name == wanted)
    features = set(wanted.split("|"))
    return corpus.columns["feats"].lookup(lambda name: features <= set(name.split("|")))


def dropped(corpus: Corpus, kinds: Sequence[str], articles: Sequence[str]) -> Flags:
    """Flag the articles and subject pronouns to leave out, [words].

    Only words on which nothing depends are left out, so no word loses its head.

    Args:
        corpus: The batch.
        kinds: Kinds of words to leave out: ``articles``, ``pronouns``.
        articles: Words with the relation det that count as articles.
    """
    wanted = np.zeros(len(corpus.form.codes), bool)
    if not kinds:
        return wanted
    relation = corpus.columns["deprel"].lookup(base, object)
    tag, head = corpus.columns["upos"].lookup(str, object), corpus.columns["head"].codes
    if "articles" in kinds:
        wanted |= (relation == "det") & (tag == "DET") & is_listed(parent_words(corpus), articles)
    if "pronouns" in kinds:
        wanted |= (relation == "nsubj") & (tag == "PRON")
    is_head = np.zeros(len(head), bool)
    is_head[(corpus.offsets[:-1][corpus.sentence_of_word] + head - 1)[head > 0]] = True
    return np.asarray(wanted & ~is_head & (head > 0))


def words_after_verbs(corpus: Corpus, marked: Flags, keep: Flags, distance: int) -> Rows:
    """Return for each verb the row of the word ``distance`` words after it, or of its sentence's last word, [verbs].

    Punctuation and words outside ``keep`` [words] do not count. The verbs are the kept words with the tag VERB among
    ``marked`` [words].
    """
    upos = corpus.columns["upos"]
    words = np.flatnonzero(keep & upos.lookup(lambda name: name != "PUNCT"))
    verbs = np.flatnonzero(marked & keep & upos.lookup(lambda name: name == "VERB"))
    last = np.searchsorted(words, corpus.offsets[1:][corpus.sentence_of_word[verbs]]) - 1
    return np.asarray(words[np.minimum(np.searchsorted(words, verbs) + distance, last)], dtype=np.int64)


class AfterVerb(StrictModel):
    """A word inserted some words after each verb, whatever the form of the verb (``hop`` marks its number)."""

    word: Marker
    """The word that is inserted."""
    distance: int = Field(default=4, ge=0, le=MOST_WORDS)
    """Number of words between the verb and the inserted word. Punctuation does not count.

    If the sentence ends first, the word is inserted at the end of the sentence, before the final mark.
    """


class Mark(Transform):
    """Insert markers and leave words out, in a share ``strength`` of the sentences.

    The transform is exactly invertible unless words are left out. A source word that looks like a marked word is
    therefore refused.
    """

    kind: Literal["mark"] = "mark"
    case: Mapping[str, Marker] = Field(default_factory=dict)
    """Marker for each relation, put on the NOUN, PROPN or PRON that has the relation.

    The marker of ``nmod`` also applies to ``nmod:poss`` unless it has another marker.
    """
    number: Marker | None = None
    """Marker of a NOUN with Number=Plur. This option needs the column ``feats``."""
    agreement: Mapping[str, Marker] = Field(default_factory=dict)
    """Marker of a VERB or AUX for each property of its subject. The first property that fits is used.

    A property is a UPOS tag (``PRON``) or features (``Number=Plur|Person=3``), which need the column ``feats``.
    """
    after_verb: AfterVerb | None = None
    """A word inserted some words after each verb."""
    drop: tuple[Literal["articles", "pronouns"], ...] = ()
    """Words to leave out if nothing depends on them: ``articles``, subject ``pronouns``."""
    articles: tuple[str, ...] = Field(default=("the", "a", "an"), min_length=1)
    """Words with the relation det that count as articles, in upper or lower case."""
    as_words: bool = False
    """Insert markers as separate words (source_index −1). Otherwise ``separator`` joins them, as in ``cat·ka``."""
    place: Literal["after", "before"] = "after"
    """Side of the markers: ``after`` their word or ``before`` it."""
    separator: str = "·"
    """Characters between a word and its marker."""

    @field_validator("case")
    @classmethod
    def _relations(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        unknown = [relation for relation in value if relation.partition(":")[0] not in RELATIONS]
        if unknown:
            allowed = f"{did_you_mean(unknown[0], RELATIONS)}choose one of {', '.join(sorted(RELATIONS))}"
            reason = f"{unknown[0]!r} is not a relation of Universal Dependencies"
            raise InputError(reason, hint=allowed, code="unknown")
        return value

    @field_validator("agreement")
    @classmethod
    def _properties(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        unknown = [key for key in value if "=" not in key and key not in TAGS]
        if unknown:
            reason = f"{unknown[0]!r} is neither a feature, such as Number=Plur, nor a UPOS tag"
            raise InputError(reason, hint=f"write NAME=VALUE, or one of {', '.join(sorted(TAGS))}", code="unknown")
        return value

    @model_validator(mode="after")
    def _told_apart(self) -> Mark:
        if not (self.markers or self.after_verb or self.drop):
            hint = "set at least one of case, number, agreement, after_verb, drop"
            raise InputError("the transform mark would mark nothing", hint=hint, code="no_effect")
        if self.separator.split() != [self.separator]:
            reason = f"{self.separator!r} must be one or more characters without a space"
            raise InputError(reason, keys="separator", hint="choose another separator", code="format")
        named: dict[tuple[str, ...], str] = {} if self.number is None else {("number",): self.number}
        named |= {("case", relation): marker for relation, marker in self.case.items()}
        named |= {("agreement", key): marker for key, marker in self.agreement.items()}
        for keys, word in () if self.as_words else named.items():
            if self.separator in word:
                reason = f"the marker {word!r} contains the separator {self.separator!r} and could not be removed again"
                raise InputError(reason, keys=keys, hint=OTHER_MARKER_OR_SEPARATOR, code="conflict")
        for one, other in () if self.as_words else permutations(map(self._joined, self.markers), 2):
            if one.startswith(other) if self.place == "before" else one.endswith(other):
                reason = f"words marked with {one!r} and {other!r} could not be distinguished"
                raise InputError(reason, hint=OTHER_MARKER_OR_SEPARATOR, code="conflict")
        return self

    @property
    def markers(self) -> tuple[str, ...]:
        """The markers of number, case and agreement without the separator, each once."""
        number = [] if self.number is None else [self.number]
        return tuple(dict.fromkeys([*number, *self.case.values(), *self.agreement.values()]))

    @property
    def requires(self) -> tuple[str, ...]:
        """The columns ``upos`` and ``deprel``, and ``head`` or ``feats`` where an option reads them."""
        head = ("head",) if self.agreement or self.drop else ()
        feats = ("feats",) if self.number or any("=" in key for key in self.agreement) else ()
        return ("upos", "deprel", *head, *feats)

    @property
    def invertible(self) -> bool:
        return not self.drop

    @property
    def adds_forms(self) -> bool:
        return bool(self.markers or self.after_verb)

    def added_forms(self, words: Sequence[str], key: int) -> tuple[str, ...]:
        del words, key
        after_verb = [] if self.after_verb is None else [f" {self.after_verb.word}"]
        if self.as_words:
            return (*after_verb, *(f" {marker}" for marker in self.markers))
        joined = [self._joined(marker) for marker in self.markers]
        first = [f" {marker}" for marker in joined] if self.place == "before" else []
        return (*after_verb, *first, *joined)

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
        """Return the choices of markers (number, case, agreement), the nearest to the word first."""
        choices = []
        upos = corpus.columns["upos"]
        if self.number is not None:
            plural = corpus.columns["feats"].lookup(lambda name: "Number=Plur" in name.split("|"))
            nouns = marked & plural & upos.lookup(lambda name: name == "NOUN")
            choices.append(Choice("number", np.where(nouns, 0, -1).astype(np.int64), (self.number,)))
        if self.case:
            index = {relation: i for i, relation in enumerate(self.case)}

            def of(label: str) -> int:  # the marker of the relation, else of the relation without its subtype
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
        """Refuse source words that the inverse could not distinguish from marked or inserted words."""
        wrong = self._insertions(corpus) | corpus.form.lookup(lambda name: self._bare(name) != name)
        if wrong.any():
            word = (corpus.form.names or ())[int(corpus.form.codes[wrong][0])]
            is_marked = self._bare(word) != word
            what, hint = ("a marked", OTHER_MARKER_OR_SEPARATOR) if is_marked else ("an inserted", OTHER_MARKER)
            reason = f"the source word {word!r} looks like {what} word, so the transform mark could not be inverted"
            raise InputError(reason, hint=hint, code="conflict")

    def _insertions(self, corpus: Corpus) -> Flags:
        """Flag the words that this transform inserted, [words]."""
        words = {*([self.after_verb.word] if self.after_verb else []), *(self.markers if self.as_words else [])}
        tag = corpus.columns["upos"].lookup(lambda name: name == INSERTED_TAG)
        return np.asarray(tag & corpus.form.lookup(lambda name: name in words))

    def inverse(self, corpus: Corpus, key: int) -> Rewrite:
        """Return the rewrite that removes the markers and the inserted words.

        Raises:
            InputError: Words were left out (``drop``), or a column is missing.
        """
        if not self.invertible:
            return super().inverse(corpus, key)
        if not len(corpus):
            return Rewrite.identity(corpus)
        check_columns(corpus, self)
        form = corpus.form.map_names(self._bare(name) for name in corpus.form.names or ())
        return edit(corpus, form, ~self._insertions(corpus), [])

    def _bare(self, word: str) -> str:
        """Return the word without its markers. No source word has a marker, so that the result is exact."""
        strip = str.removeprefix if self.place == "before" else str.removesuffix
        ends = [] if self.as_words else [self._joined(marker) for marker in self.markers]
        shorter = next((short for end in ends if (short := strip(word, end)) != word), None)
        return word if shorter is None else self._bare(shorter)
