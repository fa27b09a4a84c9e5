"""Put a plan into words: agreement, auxiliaries, word order, and the Universal Dependencies tree."""

from __future__ import annotations

from synthlang.sources.mini_english.entries import POSSESSIVES, Noun, Pronoun, Verb
from synthlang.sources.mini_english.lexicon import takes_an
from synthlang.sources.mini_english.plan import Clause, Entity, NounPhrase
from synthlang.sources.mini_english.tree import Columns, Node, linearise


def noun_node(phrase: NounPhrase, deprel: str, case: str = "object") -> Node:
    """The tree of a noun phrase; ``case`` of a pronoun: subject or object."""
    head = phrase.head
    if isinstance(head, Pronoun):
        node = Node(head.subject if case == "subject" else head.object, "PRON", deprel)
    elif isinstance(head, Entity):
        node = entity_node(head, deprel)
    else:
        node = Node(head.plural if phrase.plural else head.singular, "NOUN", deprel)
        _before(phrase, node)
    for preposition, inner in phrase.prepositional:
        node.right.append(prepositional_node(preposition, inner, "nmod"))
    if phrase.conjunct is not None:
        word, second = phrase.conjunct
        inner_node = noun_node(second, "conj", case)
        inner_node.left.insert(0, Node(word, "CCONJ", "cc"))
        node.right.append(inner_node)
    return node


def prepositional_node(preposition: str, phrase: NounPhrase, deprel: str) -> Node:
    """A noun phrase under a preposition."""
    node = noun_node(phrase, deprel)
    node.left.insert(0, Node(preposition, "ADP", "case"))
    return node


def adjective_node(form: str, degree: str, deprel: str) -> Node:
    """An adjective, perhaps with "very"."""
    node = Node(form, "ADJ", deprel)
    if degree:
        node.before(degree, "ADV", "advmod")
    return node


def entity_node(entity: Entity, deprel: str) -> Node:
    """A name: flat (head first), a compound (head last), or "of" (head first, nmod)."""
    words = entity.words
    if entity.joined == "of":
        node = Node(words[0], "PROPN", deprel, f"B-{entity.kind}")
        inner = Node(words[-1], "PROPN", "nmod", f"I-{entity.kind}")
        inner.left.append(Node("of", "ADP", "case", f"I-{entity.kind}"))
        node.right.append(inner)
        return node
    tags = [f"{'B' if place == 0 else 'I'}-{entity.kind}" for place in range(len(words))]
    if entity.joined == "compound":
        node = Node(words[-1], "PROPN", deprel, tags[-1])
        node.left = [Node(w, "PROPN", "compound", t) for w, t in zip(words[:-1], tags[:-1], strict=True)]
        return node
    node = Node(words[0], "PROPN", deprel, tags[0])
    node.right = [Node(w, "PROPN", "flat", t) for w, t in zip(words[1:], tags[1:], strict=True)]
    return node


def _before(phrase: NounPhrase, node: Node) -> None:
    """Determiner, owner, numeral, adjectives, compound: the left side of a common noun."""
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
    for adjective in phrase.adjectives:
        node.left.append(
            adjective_node(adjective.form, phrase.degree if adjective is phrase.adjectives[0] else "", "amod")
        )
    if isinstance(phrase.compound, Noun):
        node.before(phrase.compound.singular, "NOUN", "compound")


END = {"declarative": ".", "question": "?", "imperative": "!"}


def realise(plan: Clause) -> Columns:
    """The annotated words of a sentence."""
    return columns_of(sentence_node(plan))


def sentence_node(plan: Clause) -> Node:
    """The tree of a sentence."""
    root = clause_node(plan)
    if plan.please:
        root.left.insert(0, Node("please", "INTJ", "discourse"))
    root.after(END[plan.mood], "PUNCT", "punct")
    return root


def columns_of(root: Node) -> Columns:
    """The annotated words of a sentence whose tree is made."""
    columns = linearise(root)
    words = columns["form"]
    for place, word in enumerate(words):
        if word == "a" and takes_an(words[place + 1]):
            words[place] = "an"
    return columns


def clause_node(plan: Clause, deprel: str = "root", infinitive: bool = False) -> Node:
    """The tree of a clause."""
    subject = plan.object if plan.passive else plan.subject
    agreement = subject.agreement if subject is not None else plan.agreement
    inverted = plan.mood == "question" and plan.gap != "subject"
    auxiliaries, need = _auxiliaries(plan, agreement, inverted, infinitive)
    head = _predicate(plan, need, agreement, deprel)
    inner, head.left = head.left, []  # of a predicate that is a noun phrase
    front = head.left
    if plan.adverbial is not None and plan.adverbial_first:
        front.append(_adverbial(plan.adverbial, comma=True))
    if plan.question_word or plan.marker:
        front.append(_wh(plan))
    if infinitive:
        front.append(Node("to", "PART", "mark"))
    bare_be = inverted and plan.kind == "exist" and not auxiliaries
    if inverted and auxiliaries:
        front.append(_auxiliary(auxiliaries.pop(0)))
        if plan.negated:
            front.append(Node("not", "PART", "advmod"))
    _subject(plan, subject, head, bare_be)
    _middle(plan, auxiliaries, head, inverted)
    front.extend(inner)
    _after(plan, head)
    return head


def _auxiliaries(plan: Clause, agreement: str, inverted: bool, infinitive: bool) -> tuple[list[tuple[str, str]], str]:
    """The auxiliaries as (form, deprel), and the form the predicate takes: finite, base, part, gerund."""
    chain: list[tuple[str, str]] = []
    imperative = plan.mood == "imperative"
    need = "base" if infinitive or imperative else "finite"
    if plan.modal and not infinitive:
        chain.append((plan.modal, "aux"))
        need = "base"
    elif _needs_do(plan, inverted):
        chain.append((_do(plan, agreement, imperative), "aux"))
        need = "base"
    if plan.perfect:
        chain.append((_have(need, plan.past, agreement), "aux"))
        need = "part"
    if plan.progressive:
        chain.append((_be(need, plan.past, agreement), "aux"))
        need = "gerund"
    if plan.passive:
        chain.append((_be(need, plan.past, agreement), "aux:pass"))
        need = "part"
    if plan.kind in ("adjective", "nominal"):
        chain.append((_be(need, plan.past, agreement), "cop"))
    return chain, need


def _needs_do(plan: Clause, inverted: bool) -> bool:
    helped = plan.modal or plan.perfect or plan.progressive or plan.passive or plan.kind != "verb"
    return (plan.negated or inverted) and not helped


def _do(plan: Clause, agreement: str, imperative: bool) -> str:
    return "do" if imperative else "did" if plan.past else "does" if agreement == "is" else "do"


def _have(need: str, past: bool, agreement: str) -> str:
    if need == "base":
        return "have"
    return "had" if past else "has" if agreement == "is" else "have"


def _be(need: str, past: bool, agreement: str) -> str:
    if need == "finite":
        return ("were" if agreement == "are" else "was") if past else agreement
    return {"base": "be", "part": "been", "gerund": "being"}[need]


def _verb_form(verb: Verb, need: str, past: bool, agreement: str) -> str:
    if need == "finite":
        return verb.past if past else verb.third if agreement == "is" else verb.base
    return {"base": verb.base, "part": verb.participle, "gerund": verb.gerund}[need]


def _predicate(plan: Clause, need: str, agreement: str, deprel: str) -> Node:
    """The head of the clause: a verb, or what follows the copula."""
    if plan.kind == "adjective":
        assert plan.adjective is not None
        return adjective_node(plan.adjective.form, plan.degree, deprel)
    if plan.kind == "nominal":
        assert plan.nominal is not None
        return _with_relative(plan.nominal, deprel)
    if plan.kind == "exist":
        return Node(_be(need, plan.past, agreement), "VERB", deprel)
    assert plan.verb is not None
    return Node(_verb_form(plan.verb, need, plan.past, agreement), "VERB", deprel)


def _wh(plan: Clause) -> Node:
    """The question or relative word at the front."""
    word = plan.question_word or plan.marker
    if word in ("where", "when", "why", "how"):
        return Node(word, "ADV", "advmod")
    subject = "nsubj:pass" if plan.passive else "nsubj"
    return Node(word, "PRON", subject if plan.gap == "subject" else "obj")


def _subject(plan: Clause, subject: NounPhrase | None, head: Node, bare_be: bool) -> None:
    if plan.kind == "exist":
        assert subject is not None
        (head.right if bare_be else head.left).append(Node("there", "PRON", "expl"))
        head.right.append(_with_relative(subject, "nsubj"))
    elif subject is not None:
        head.left.append(_with_relative(subject, "nsubj:pass" if plan.passive else "nsubj", "subject"))


def _auxiliary(pair: tuple[str, str]) -> Node:
    return Node(pair[0], "AUX", pair[1])


def _middle(plan: Clause, auxiliaries: list[tuple[str, str]], head: Node, inverted: bool) -> None:
    """Auxiliaries, "not" and adverbs of frequency between subject and predicate."""
    if auxiliaries:
        head.left.append(_auxiliary(auxiliaries[0]))
    if plan.negated and not inverted:
        # "there is not": the verb itself carries the negation
        not_node = Node("not", "PART", "advmod")
        (head.left if auxiliaries else head.right).insert(len(head.left) if auxiliaries else 0, not_node)
    if plan.frequency:
        head.before(plan.frequency, "ADV", "advmod")
    head.left.extend(_auxiliary(pair) for pair in auxiliaries[1:])


def _after(plan: Clause, head: Node) -> None:
    """Everything right of the predicate."""
    add = head.right.append
    if plan.recipient is not None and not plan.recipient_last:
        add(_with_relative(plan.recipient, "iobj"))
    if plan.object is not None and not plan.passive:
        add(_with_relative(plan.object, "obj"))
    if plan.recipient is not None and plan.recipient_last:
        add(prepositional_node("to", plan.recipient, "obl"))
    if plan.kind == "verb" and plan.adjective is not None:
        add(adjective_node(plan.adjective.form, plan.degree, "xcomp"))
    if plan.passive and plan.agent and plan.subject is not None:
        agent = _with_relative(plan.subject, "obl:agent")
        agent.left.insert(0, Node("by", "ADP", "case"))
        add(agent)
    if plan.manner:
        head.after(plan.manner, "ADV", "advmod")
    for preposition, phrase in plan.obliques:
        add(prepositional_node(preposition, phrase, "obl"))
    if plan.time:
        head.after(plan.time, "ADV", "advmod")
    _clauses_after(plan, head)


def _clauses_after(plan: Clause, head: Node) -> None:
    if plan.complement is not None:
        infinitive = plan.complement_mark == "to"
        inner = clause_node(plan.complement, "xcomp" if infinitive else "ccomp", infinitive)
        if plan.complement_mark == "that":
            inner.left.insert(0, Node("that", "SCONJ", "mark"))
        head.right.append(inner)
    if plan.adverbial is not None and not plan.adverbial_first:
        head.right.append(_adverbial(plan.adverbial, comma=False))
    if plan.conjunct is not None:
        word, second = plan.conjunct
        inner = clause_node(second, "conj")
        inner.left.insert(0, Node(word, "CCONJ", "cc"))
        if second.subject is not None:
            inner.left.insert(0, Node(",", "PUNCT", "punct"))
        head.right.append(inner)


def _adverbial(part: tuple[str, Clause], comma: bool) -> Node:
    node = clause_node(part[1], "advcl")
    node.left.insert(0, Node(part[0], "SCONJ", "mark"))
    if comma:
        node.after(",", "PUNCT", "punct")
    return node


def _with_relative(phrase: NounPhrase, deprel: str, case: str = "object") -> Node:
    """A noun phrase with its relative clause, which stands after its head's other dependents."""
    node = noun_node(phrase, deprel, case)
    if phrase.relative is not None:
        node.right.append(clause_node(phrase.relative, "acl:relcl"))
    return node
