"""Pairs for natural language inference, true by construction.

The hypothesis is drawn in the same way under every label, and the label determines how the premise is derived from it.
A family of contents is closed under contradiction, so the words of a hypothesis reveal little about the label ("not"
is equally frequent under all labels). Families are few and sentences short, so that small models can learn from some
thousand pairs. Most pairs depend on the kinds of nouns (kinds.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from synthlang.corpus import Sentence
from synthlang.rng import key_of, permutation
from synthlang.sources.mini_english.draw import DEFINITE, definite, modified, noun_phrase, verbal
from synthlang.sources.mini_english.entries import STATIVE, Clause, Noun, NounPhrase
from synthlang.sources.mini_english.kinds import kind_pair
from synthlang.sources.mini_english.realise import realise
from synthlang.sources.mini_english.source import MiniEnglish
from synthlang.sources.mini_english.world import Context

LABELS = ("entailment", "neutral", "contradiction")
TRIES = 40  # attempts at a pair before another family is drawn, enough for families to keep their shares
LONGEST = 12  # words of a sentence
Pair = tuple[Clause, Clause]


@dataclass(frozen=True)
class NliPair:
    """A pair for natural language inference.

    Attributes:
        premise: Annotated sentence, with columns as in the corpus.
        hypothesis: Annotated sentence, with columns as in the corpus.
        label: One of LABELS.
    """

    premise: Sentence
    hypothesis: Sentence
    label: str


def nli_pairs(source: MiniEnglish, split: str, count: int) -> Iterator[NliPair]:
    """Yield ``count`` pairs for a split, with each label once in every three pairs.

    Pair i is a function of (types, seed, zipf, split, i), and its two sentences have the id i.

    Raises:
        InputError: The source has no such split.
    """
    for index, c in source.contexts(split, count, "nli"):
        order = permutation(key_of("mini-english", "nli labels", source.seed, split, index // 3), 3)
        yield _pair(c, index, LABELS[order[index % 3]], split, source.morphology)


def _pair(c: Context, index: int, label: str, split: str, more: Sequence[str]) -> NliPair:
    while True:  # this ends, because each attempt succeeds with a fair chance
        family = c.weighted("family")
        for _ in range(TRIES):
            plans = kind_pair(c, label, split) if family == "kind" else _plans(c, family, label)
            if plans is None:
                continue
            premise, hypothesis = (realise(plan, more) for plan in plans)
            short = max(len(premise["form"]), len(hypothesis["form"])) <= LONGEST
            if short and premise["form"] != hypothesis["form"]:
                return NliPair(Sentence(index, premise), Sentence(index, hypothesis), label)


def _plans(c: Context, family: str, label: str) -> Pair | None:
    """Draw premise and hypothesis for a family other than "kind", or return None if this draw has no result."""
    broad = content(c, family)
    if broad is None:
        return None
    if label == "entailment" and c.chance(0.2):
        pair: Pair | None = (broad, broad)  # they differ in the passive
    else:
        makers = {"neutral": _neutral, "contradiction": _contradiction}
        pair = makers[label](c, broad, family) if label in makers else _chain(c, broad)
    if pair is None:
        return None
    premise, hypothesis = ((passive(plan) if c.chance(0.2) else None) or plan for plan in pair)
    return premise, hypothesis


def _neutral(c: Context, broad: Clause, family: str) -> Pair | None:
    level = c.draw()
    if level < 0.45:
        chain = _chain(c, broad)
        return None if chain is None else (chain[1], chain[0])
    other = (swapped(broad) if level < 0.6 else _other_predicate(c, broad, family)) or _other_object(c, broad)
    return None if other is None else (broad, other)


def _contradiction(c: Context, broad: Clause, family: str) -> Pair | None:
    """Pair ``broad``, or a clause that entails ``broad``, with the opposite of ``broad``, in either order."""
    other = opposite(c, broad, family)
    if other is None:
        return None
    chain = _chain(c, broad) if c.chance(0.6) else None
    strong = broad if chain is None or chain[1] is not broad else chain[0]
    return (strong, other) if c.chance(0.5) else (other, strong)


def _chain(c: Context, broad: Clause) -> Pair | None:
    """Return (entailing, entailed): a clause and a narrower clause, in the order that polarity requires."""
    down = downward(broad)
    if c.chance(0.5):
        broad = _narrower(c, broad, down) or broad
    narrow = _narrower(c, broad, down)
    if narrow is None:
        return None
    return (broad, narrow) if down else (narrow, broad)


# --- the content of a pair


def content(c: Context, family: str) -> Clause | None:
    """Draw a plain clause of a family of NLI pairs, or return None if this draw has no result.

    ``family`` is adjective, polarity, frequency or quantifier.
    """
    if family == "adjective":
        return _adjectival(c)
    use = c.use("verb", "in tr tr di")
    assert use is not None
    subject = noun_phrase(c, use.verb.base, "subject", use.frame.subject)
    plan = verbal(c, use, subject)
    plan.passive, plan.past = False, c.chance(0.7)
    plan.progressive = use.verb.base not in STATIVE and family in ("polarity", "quantifier") and c.chance(0.15)
    subject = plan.subject = definite(subject)
    if plan.object is not None:  # a known object, or one with "a", "some" or no determiner
        vague = plan.object.determiner in ("a", "some", "") and not plan.object.numeral
        plan.object = plan.object if vague else definite(plan.object)
    plan.obliques = tuple((preposition, definite(phrase)) for preposition, phrase in plan.obliques)
    return _of_family(c, plan, subject, family)


def _of_family(c: Context, plan: Clause, subject: NounPhrase, family: str) -> Clause | None:
    match family:
        case "polarity":
            return negated(plan) if c.chance(0.5) else plan
        case "frequency":
            return replace(plan, frequency="never" if c.chance(0.5) else "always", progressive=False)
        case "quantifier" if _is_counted(subject):
            subject = replace(subject, determiner=c.weighted("quantifier"), owner=None, plural=False)
            return replace(plan, subject=subject)
    return None


def _adjectival(c: Context) -> Clause | None:
    """Draw a clause such as "The soup is (not) hot", or return None if this draw fails.

    The adjective has an antonym in the lexicon.
    """
    subject = definite(noun_phrase(c, "be", "subject", "patflgie"))
    adjective = c.adjective(subject)
    if adjective is None or adjective.antonym not in c.world.lexicon.tags or adjective in subject.adjectives:
        return None
    opposed = any(other.antonym == adjective.form for other in subject.adjectives)
    plan = Clause("adjective", subject, adjective=adjective, past=c.chance(0.5), negated=c.chance(0.35))
    return None if opposed else plan


def _is_counted(phrase: NounPhrase) -> bool:
    return isinstance(phrase.head, Noun) and not phrase.head.mass


# --- changes to a clause


def opposite(c: Context, plan: Clause, family: str) -> Clause | None:
    """Return a clause of the family that cannot be true together with ``plan``, or None if none is found."""
    noun, subject, other = plan.object, plan.subject, None
    if family == "polarity" and plan.negated:
        if noun is not None and noun.determiner == "any":
            noun = replace(noun, determiner="some")
        other = replace(plan, negated=False, object=noun)
    elif family == "polarity":
        other = negated(plan)
    elif family == "adjective" and (plan.negated or c.chance(0.35)):
        other = replace(plan, negated=not plan.negated)
    elif family == "adjective" and plan.adjective is not None:
        antonyms = [a for a in c.world.lexicon.adjectives if a.form == plan.adjective.antonym]
        other = replace(plan, adjective=antonyms[0]) if antonyms else None
    elif family == "frequency":
        other = replace(plan, frequency="always" if plan.frequency == "never" else "never")
    elif subject is not None:
        positive = "a" if c.chance(0.5) else "every"
        other = replace(plan, subject=replace(subject, determiner=positive if subject.determiner == "no" else "no"))
    return other


def downward(plan: Clause) -> bool:
    """Return whether the clause entails clauses with more modifiers, as under "not", "never" and "no"."""
    no_subject = plan.subject is not None and plan.subject.determiner == "no"
    return plan.negated or plan.frequency == "never" or no_subject


def negated(plan: Clause) -> Clause:
    """Return the clause with "not", in which "some" becomes "any"."""
    noun = plan.object
    if noun is not None and noun.determiner == "some":
        noun = replace(noun, determiner="any")
    return replace(plan, negated=True, object=noun)


def passive(plan: Clause) -> Clause | None:
    """Return the passive of a clause, which has the same meaning, or None if the clause has no such passive.

    The clause must have a definite object, and a subject without "a", "no" and "every". It must have no recipient,
    adverb of frequency or progressive.
    """
    noun, subject = plan.object, plan.subject
    if noun is None or subject is None or plan.recipient is not None or plan.frequency:
        return None
    known = not isinstance(noun.head, Noun) or noun.determiner in DEFINITE or noun.owner is not None
    if not known or subject.determiner in ("no", "every", "a") or plan.progressive:
        return None
    return replace(plan, passive=True, agent=True)


def swapped(plan: Clause) -> Clause | None:
    """Return the clause with subject and object exchanged.

    The result is None unless subject and object are both people, both animals or both groups.
    """
    if plan.object is None or plan.subject is None or plan.kind != "verb":
        return None
    people = plan.subject.sense == plan.object.sense and plan.subject.sense in "pag"
    return replace(plan, subject=plan.object, object=plan.subject) if people else None


def _other_object(c: Context, plan: Clause) -> Clause | None:
    if plan.object is None or not isinstance(plan.object.head, Noun):
        return None
    noun = c.world.nouns.draw(c, plan.verb.base, "object", plan.object.sense)
    if noun is None or noun is plan.object.head or noun.mass != plan.object.head.mass:
        return None
    adjectives = modified(c, noun).adjectives
    changed = replace(plan.object, head=noun, adjectives=adjectives, degree="", compound=None, prepositional=())
    return replace(plan, object=changed)


def _other_predicate(c: Context, plan: Clause, family: str) -> Clause | None:
    """Draw another predicate of the same subject with the same family and polarity."""
    other = content(c, family)
    if other is None or plan.subject is None or other.kind != plan.kind:
        return None
    if other.adjective is not None and plan.adjective is not None:
        alike = other.adjective.form in (plan.adjective.form, plan.adjective.antonym)
        if alike or plan.subject.sense not in other.adjective.senses:
            return None
    if plan.kind == "verb":
        use = c.use("other", "in tr", plan.subject.sense, head=plan.verb.base)
        if use is None or use.verb is plan.verb or family != "polarity":
            return None
        other = verbal(c, use, plan.subject)
        other.passive = False
        if other.object is not None:
            other.object = definite(other.object)
        other.obliques = tuple((p, definite(phrase)) for p, phrase in other.obliques)
    return replace(other, subject=plan.subject, past=plan.past, negated=plan.negated)


# --- special cases of a clause


def _narrower(c: Context, plan: Clause, down: bool) -> Clause | None:
    """Return ``plan`` with one more modifier, or None if this draw has no result.

    The result entails ``plan`` or, under "not", "never" and "no", follows from it. "exactly three" and "every" allow
    few changes.
    """
    changes: list[str] = []
    if plan.kind == "verb":
        changes += ["oblique", "manner", "object"]
    if plan.kind == "adjective":
        changes.append("degree")
    quantified = plan.subject.determiner if plan.subject is not None else ""
    if quantified in ("a", "no") or (quantified in DEFINITE and not down):
        changes.append("subject")
    first = int(c.draw() * max(1, len(changes)))
    tries = (_more(c, plan, what) for what in changes[first:] + changes[:first])
    return next((narrow for narrow in tries if narrow is not None), None)


def _more(c: Context, plan: Clause, what: str) -> Clause | None:
    """Return the clause with one more modifier of a kind, or None if this is impossible."""
    match what:
        case "oblique":
            link = c.adjunct(plan.verb)
            if not plan.obliques:
                phrase = definite(noun_phrase(c, plan.verb.base, link.preposition, link.senses))
                return replace(plan, obliques=((link.preposition, phrase),))
        case "manner":
            manner = c.manner(plan.verb).form
            return None if plan.manner else replace(plan, manner=manner)
        case "degree":
            return None if plan.degree else replace(plan, degree="very" if c.chance(0.7) else "really")
        case "object":
            known = plan.object is not None and plan.object.determiner in DEFINITE
            narrow = None if known and downward(plan) else _with_adjective(c, plan.object)
            return None if narrow is None else replace(plan, object=narrow)
        case "subject":
            narrow, about = _with_adjective(c, plan.subject), plan.adjective
            alike = about is not None and narrow and narrow.adjectives[0].form in (about.form, about.antonym)
            return None if narrow is None or alike else replace(plan, subject=narrow)
    return None


def _with_adjective(c: Context, phrase: NounPhrase | None) -> NounPhrase | None:
    if phrase is None or not isinstance(phrase.head, Noun) or phrase.adjectives:
        return None
    adjective = c.adjective(phrase)
    return None if adjective is None else replace(phrase, adjectives=(adjective,))
