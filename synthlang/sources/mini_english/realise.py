"""Put a plan into words: agreement, auxiliaries, word order, and the Universal Dependencies tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from synthlang.sources.mini_english.entries import Clause, Name, NounPhrase, Pronoun
from synthlang.sources.mini_english.lexicon import takes_an
from synthlang.sources.mini_english.morphology import IMPERATIVE, MODAL, Finite, feats_of, lemma_of, number_of

POSSESSIVES = ("my", "your", "his", "her", "its", "our", "their")
END = {"declarative": ".", "question": "?", "imperative": "!"}
Columns = dict[str, list[Any]]
Span = tuple[int, int]  # words start … stop − 1 of a sentence, from 0


class Node:
    """A word with its dependents on each side, in order. Every tree is projective.

    Args:
        form: The word form.
        upos: Universal part of speech.
        deprel: Relation to the head.
        ner: IOB2 tag of the entity.
        lemma: The lemma, or "" for the lemma that ``lemma_of`` returns for the form.
        feats: Morphological features, or "" for the features that ``feats_of`` returns for the form.

    Attributes:
        left: Dependents before the word.
        right: Dependents after the word.
        place: Number of the word in the sentence, from 1, or 0 before ``linearise`` sets it.
    """

    __slots__ = ("deprel", "feats", "form", "left", "lemma", "ner", "place", "right", "upos")

    def __init__(
        self, form: str, upos: str, deprel: str = "root", ner: str = "O", lemma: str = "", feats: str = ""
    ) -> None:
        self.form, self.upos, self.deprel, self.ner = form, upos, deprel, ner
        self.lemma, self.feats = lemma, feats  # empty: those of the form (``morphology``)
        self.left: list[Node] = []
        self.right: list[Node] = []
        self.place = 0  # 1-based, set by linearise

    def before(self, form: str, upos: str, deprel: str) -> Node:
        """Add a dependent immediately to the left of this word, and return the new node."""
        self.left.append(Node(form, upos, deprel))
        return self.left[-1]

    def first(self, form: str, upos: str, deprel: str) -> Node:
        """Add a dependent before all other dependents, and return this node, not the new node."""
        self.left.insert(0, Node(form, upos, deprel))
        return self

    def after(self, form: str, upos: str, deprel: str) -> None:
        """Add a dependent to the right of this word, after all other dependents."""
        self.right.append(Node(form, upos, deprel))

    @property
    def children(self) -> Iterator[Node]:
        """The dependents of this word from left to right."""
        yield from self.left
        yield from self.right

    @property
    def relation(self) -> str:
        """Label that distinguishes the dependents of a clause: "obj", "obl to", "advmod today", "advcl because"."""
        if self.deprel == "obl":
            return f"obl {next((child.form for child in self.left if child.deprel == 'case'), '')}"
        if self.deprel == "advcl":
            return f"advcl {self.left[0].form}"
        return f"advmod {self.form}" if self.deprel == "advmod" else self.deprel

    def extent(self, without: tuple[str, ...] = ()) -> Span:
        """Return the span of this word and its subtree, except dependents with a relation in ``without``.

        A dependent is left out with its own subtree, which must be at the edge of the span, such as "to" before its
        verb. The tree must be linearised.
        """
        spans = [child.extent() for child in self.children if child.deprel not in without]
        start, stop = min((a for a, _ in spans), default=self.place), max((b for _, b in spans), default=0)
        return min(start, self.place - 1), max(stop, self.place)


def linearise(root: Node, more: Sequence[str] = ()) -> Columns:
    """Return the columns form, upos, head, deprel and ner of a tree, and the columns of ``more`` (feats, lemma).

    The ``place`` of each node is set.

    >>> cat = Node("cat", "NOUN"); _ = cat.before("the", "DET", "det")
    >>> linearise(cat)["head"]
    [2, 0]
    """
    nodes: list[Node] = []
    parents: list[Node | None] = []

    def visit(node: Node, parent: Node | None) -> None:
        for child in node.left:
            visit(child, node)
        nodes.append(node)
        parents.append(parent)
        node.place = len(nodes)
        for child in node.right:
            visit(child, node)

    visit(root, None)
    columns: Columns = {
        "form": [node.form for node in nodes],
        "upos": [node.upos for node in nodes],
        "head": [parent.place if parent is not None else 0 for parent in parents],
        "deprel": [node.deprel for node in nodes],
        "ner": [node.ner for node in nodes],
    }
    if "feats" in more:
        columns["feats"] = [node.feats or feats_of(node.form, node.upos) for node in nodes]
    if "lemma" in more:
        columns["lemma"] = [node.lemma or lemma_of(node.form, node.upos) for node in nodes]
    return columns


def noun_node(phrase: NounPhrase, deprel: str, case: str = "object") -> Node:
    """Build the tree of a noun phrase, whose head gets the relation ``deprel``.

    ``case`` is the case of a pronoun, subject or object.
    """
    head = phrase.head
    if isinstance(head, Pronoun):
        form, feats = (head.subject, "Case=Nom|") if case == "subject" else (head.object, "Case=Acc|")
        person = f"{feats}{number_of(head.agreement, head.grammatical)}|PronType=Prs" if head.is_personal else ""
        node = Node(form, "PRON", deprel, lemma=head.subject, feats=person)
    elif isinstance(head, Name):
        node = _name_node(head, deprel)
    else:
        form, feats = (head.plural, "Number=Plur") if phrase.plural else (head.singular, "Number=Sing")
        node = Node(form, "NOUN", deprel, lemma=head.singular, feats=feats)
        _before(phrase, node)
    for preposition, inner in phrase.prepositional:
        node.right.append(prepositional_node(preposition, inner, "nmod"))
    if phrase.conjunct is not None:
        word, second = phrase.conjunct
        node.right.append(noun_node(second, "conj", case).first(word, "CCONJ", "cc"))
    if phrase.relative is not None:
        node.right.append(clause_node(phrase.relative, "acl:relcl"))
    return node


def prepositional_node(preposition: str, phrase: NounPhrase, deprel: str) -> Node:
    """Build the tree of a prepositional phrase, whose noun is the head with the relation ``deprel``."""
    return noun_node(phrase, deprel).first(preposition, "ADP", "case")


def adjective_node(form: str, degree: str, deprel: str) -> Node:
    """Build the adjective ``form`` with the relation ``deprel``, after the adverb ``degree`` if it is not empty."""
    node = Node(form, "ADJ", deprel)
    return node.first(degree, "ADV", "advmod") if degree else node


def _name_node(name: Name, deprel: str) -> Node:
    """Build the tree of a name.

    A name with "of" has its first word as head and its last word as ``nmod``. A compound has its last word as head. Any
    other name is flat, with its first word as head.
    """
    words = name.words
    first, inside = f"B-{name.kind}", f"I-{name.kind}"
    if name.joined == "of":
        node = Node(words[0], "PROPN", deprel, first)
        inner = Node(words[-1], "PROPN", "nmod", inside)
        inner.left.append(Node("of", "ADP", "case", inside))
        node.right.append(inner)
    elif name.joined == "compound" and len(words) > 1:
        node = Node(words[-1], "PROPN", deprel, inside)
        node.left = [Node(word, "PROPN", "compound", inside if at else first) for at, word in enumerate(words[:-1])]
    else:
        node = Node(words[0], "PROPN", deprel, first)
        node.right = [Node(word, "PROPN", "flat", inside) for word in words[1:]]
    return node


def _before(phrase: NounPhrase, node: Node) -> None:
    if phrase.owner is not None:
        owner = noun_node(phrase.owner, "nmod:poss")
        owner.after("'s", "PART", "case")
        node.left.append(owner)
    elif phrase.determiner in POSSESSIVES:
        node.before(phrase.determiner, "PRON", "nmod:poss")
    elif phrase.determiner:
        node.before(phrase.determiner, "DET", "det")
    if phrase.numeral:
        numeral = node.before(phrase.numeral, "NUM", "nummod")
        if phrase.exactly:
            numeral.before("exactly", "ADV", "advmod")
    for at, adjective in enumerate(phrase.adjectives):
        node.left.append(adjective_node(adjective.form, "" if at else phrase.degree, "amod"))
    if phrase.compound is not None:
        node.before(phrase.compound.singular, "NOUN", "compound")


def realise(plan: Clause, more: Sequence[str] = ()) -> Columns:
    """Return the columns of a sentence as ``columns_of`` does for its tree."""
    return columns_of(sentence_node(plan), more)


def sentence_node(plan: Clause) -> Node:
    """Build the tree of a sentence with its final punctuation mark."""
    root = clause_node(plan)
    if plan.please:
        root.first("please", "INTJ", "discourse")
    root.after(END[plan.mood], "PUNCT", "punct")
    return root


def columns_of(root: Node, more: Sequence[str] = ()) -> Columns:
    """Return the columns of a tree as ``linearise`` does, with "a" as "an" where the next word requires it."""
    columns = linearise(root, more)
    words = columns["form"]
    for place, word in enumerate(words):
        if word == "a" and takes_an(words[place + 1]):
            words[place] = "an"
    return columns


def clause_node(plan: Clause, deprel: str = "root", infinitive: bool = False) -> Node:
    """Build the tree of a clause, whose head gets the relation ``deprel``. An ``infinitive`` starts with "to"."""
    subject = plan.object if plan.passive else plan.subject
    agreement = subject.agreement if subject is not None else plan.agreement
    inverted = plan.mood == "question" and plan.gap != "subject"
    person = subject.person if subject is not None else plan.person
    finite = Finite(plan.past, agreement, person)
    auxiliaries, need = _auxiliaries(plan, finite, inverted, infinitive)
    head = _predicate(plan, need, finite, deprel)
    if plan.mood == "imperative":
        (auxiliaries or [head])[0].feats = IMPERATIVE
    inner, head.left = head.left, []  # the inner words of a predicate that is a noun phrase
    front = head.left
    if plan.adverbial is not None and plan.adverbial_first:
        front.append(_adverbial(plan.adverbial, comma=True))
    if plan.question_word or plan.marker:
        front.append(_wh(plan))
    if infinitive:
        front.append(Node("to", "PART", "mark"))
    bare_be = inverted and plan.kind == "exist" and not auxiliaries
    if inverted and auxiliaries:
        front.append(auxiliaries.pop(0))
        if plan.negated:
            front.append(Node("not", "PART", "advmod"))
    if plan.kind == "exist":
        assert subject is not None
        (head.right if bare_be else head.left).append(Node("there", "PRON", "expl"))
        head.right.append(noun_node(subject, "nsubj"))
    elif subject is not None:
        head.left.append(noun_node(subject, "nsubj:pass" if plan.passive else "nsubj", "subject"))
    _middle(plan, auxiliaries, head, inverted)
    front.extend(inner)
    _after(plan, head)
    return head


def _auxiliaries(plan: Clause, finite: Finite, inverted: bool, infinitive: bool) -> tuple[list[Node], str]:
    """Return the auxiliaries, and the form of the predicate (finite, base, part or gerund)."""
    chain: list[Node] = []
    imperative = plan.mood == "imperative"
    need = "base" if infinitive or imperative else "finite"
    if plan.modal and not infinitive:
        chain.append(Node(plan.modal, "AUX", "aux", feats=MODAL))
        need = "base"
    elif (
        (plan.negated or inverted)
        and plan.kind == "verb"
        and not (plan.modal or plan.perfect or plan.progressive or plan.passive)
    ):
        do = "do" if imperative else "did" if plan.past else "does" if finite.agreement == "is" else "do"
        chain.append(Node(do, "AUX", "aux", lemma="do", feats=finite.feats(need)))
        need = "base"
    if plan.perfect:
        have = "had" if plan.past else "has" if finite.agreement == "is" else "have"
        form = "have" if need == "base" else have
        chain.append(Node(form, "AUX", "aux", lemma="have", feats=finite.feats(need)))
        need = "part"
    if plan.progressive:
        chain.append(_be(need, finite, "AUX", "aux"))
        need = "gerund"
    if plan.passive:
        chain.append(_be(need, finite, "AUX", "aux:pass"))
        need = "part"
    if plan.kind in ("adjective", "nominal"):
        chain.append(_be(need, finite, "AUX", "cop"))
    return chain, need


def _be(need: str, finite: Finite, upos: str, deprel: str) -> Node:
    if need == "finite":
        form = ("were" if finite.agreement == "are" else "was") if finite.past else finite.agreement
    else:
        form = {"base": "be", "part": "been", "gerund": "being"}[need]
    return Node(form, upos, deprel, lemma="be", feats=finite.feats(need))


def _predicate(plan: Clause, need: str, finite: Finite, deprel: str) -> Node:
    if plan.kind == "adjective" and plan.adjective is not None:
        return adjective_node(plan.adjective.form, plan.degree, deprel)
    if plan.kind == "nominal" and plan.nominal is not None:
        return noun_node(plan.nominal, deprel)
    if plan.kind == "exist":
        return _be(need, finite, "VERB", deprel)
    verb = plan.verb
    inflected = verb.past if plan.past else verb.third if finite.agreement == "is" else verb.base
    form = {"finite": inflected, "base": verb.base, "part": verb.participle, "gerund": verb.gerund}[need]
    return Node(form, "VERB", deprel, lemma=verb.base, feats=finite.feats(need))


def _wh(plan: Clause) -> Node:
    word = plan.question_word or plan.marker
    if word in ("where", "when", "why", "how"):
        return Node(word, "ADV", "advmod")
    subject = "nsubj:pass" if plan.passive else "nsubj"
    return Node(word, "PRON", subject if plan.gap == "subject" else "obj")


def _middle(plan: Clause, auxiliaries: list[Node], head: Node, inverted: bool) -> None:
    """Add auxiliaries, "not" and adverbs of frequency between subject and predicate."""
    head.left.extend(auxiliaries[:1])
    if plan.negated and not inverted:  # in "there is not" the verb itself has the negation
        not_node = Node("not", "PART", "advmod")
        head.left.append(not_node) if auxiliaries else head.right.insert(0, not_node)
    if plan.frequency:
        head.before(plan.frequency, "ADV", "advmod")
    head.left.extend(auxiliaries[1:])


def _after(plan: Clause, head: Node) -> None:
    """Add the phrases and clauses to the right of the predicate."""
    add = head.right.append
    if plan.recipient is not None and not plan.recipient_last:
        add(noun_node(plan.recipient, "iobj"))
    if plan.object is not None and not plan.passive:
        add(noun_node(plan.object, "obj"))
    if plan.recipient is not None and plan.recipient_last:
        add(prepositional_node("to", plan.recipient, "obl"))
    if plan.kind == "verb" and plan.adjective is not None:
        add(adjective_node(plan.adjective.form, plan.degree, "xcomp"))
    if plan.passive and plan.agent and plan.subject is not None:
        add(noun_node(plan.subject, "obl:agent").first("by", "ADP", "case"))
    if plan.manner:
        head.after(plan.manner, "ADV", "advmod")
    for preposition, phrase in plan.obliques:
        add(prepositional_node(preposition, phrase, "obl"))
    if plan.time:
        head.after(plan.time, "ADV", "advmod")
    if plan.complement is not None:
        infinitive = plan.complement_mark == "to"
        inner = clause_node(plan.complement, "xcomp" if infinitive else "ccomp", infinitive)
        add(inner.first("that", "SCONJ", "mark") if plan.complement_mark == "that" else inner)
    if plan.adverbial is not None and not plan.adverbial_first:
        add(_adverbial(plan.adverbial, comma=False))
    if plan.conjunct is not None:
        word, second = plan.conjunct
        inner = clause_node(second, "conj").first(word, "CCONJ", "cc")
        add(inner.first(",", "PUNCT", "punct") if second.subject is not None else inner)


def _adverbial(part: tuple[str, Clause], comma: bool) -> Node:
    node = clause_node(part[1], "advcl").first(part[0], "SCONJ", "mark")
    if comma:
        node.after(",", "PUNCT", "punct")
    return node
