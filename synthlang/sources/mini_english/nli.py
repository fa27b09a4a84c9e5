"""Pairs for natural language inference, true by construction.

The hypothesis is drawn the same way under every label (content family, narrow or not, with a second clause or not);
the label is in how the premise is made from it. A family is closed under contradiction, so the words of a hypothesis
tell little about the label ("not" stands under every label alike).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from synthlang.corpus import Sentence
from synthlang.errors import InputError
from synthlang.rng import key_of, permutation
from synthlang.sources.base import check_split
from synthlang.sources.mini_english.draw import STATIVE, clause, modified, noun_phrase, verbal
from synthlang.sources.mini_english.entries import IT, NOTHING, NUMERALS, SHE, SOMEONE, THAT, THIS, Noun, Pronoun
from synthlang.sources.mini_english.plan import Clause, NounPhrase
from synthlang.sources.mini_english.realise import realise
from synthlang.sources.mini_english.source import MAX_WORDS, NAME, MiniEnglish
from synthlang.sources.mini_english.world import Context, context_of

FAMILIES = (
    *(("polarity", 0.4), ("adjective", 0.18), ("manner", 0.1), ("number", 0.1), ("frequency", 0.1)),
    ("quantifier", 0.12),
)
DEFINITE = ("the", "my", "your", "his", "her", "its", "our", "their", "this", "that")
VAGUE = (SOMEONE, THIS, THAT, NOTHING)


def content(c: Context, family: str) -> Clause | None:
    """A plain clause of a family, or None if this draw gave none."""
    if family == "adjective":
        return _adjective(c)
    kinds = "tr" if family == "number" else "in tr tr di"
    use = c.world.uses.draw(c.draw, c.topic, str(c.topic), "verb", f"{kinds}||")
    assert use is not None
    plan = verbal(c, use, noun_phrase(c, use.verb.base, "subject", use.frame.subject, 0), 0)
    assert plan.subject is not None
    plan.passive, plan.past = False, c.chance(0.7)
    plan.progressive = use.verb.base not in STATIVE and family in ("polarity", "quantifier") and c.chance(0.15)
    plan.subject = definite(plan.subject)
    if plan.object is not None:
        plan.object = _plain(plan.object)
    plan.obliques = tuple((preposition, definite(phrase)) for preposition, phrase in plan.obliques)
    return _of_family(c, plan, family)


def _of_family(c: Context, plan: Clause, family: str) -> Clause | None:  # noqa: PLR0911 - a case each
    subject, noun = plan.subject, plan.object
    assert subject is not None
    if family == "polarity":
        return negated(plan) if c.chance(0.5) else plan
    if family == "manner":
        with_antonym = [m for m in c.world.lexicon.manners if m.antonym in c.world.lexicon.tags]
        return replace(plan, manner=with_antonym[int(c.draw() * len(with_antonym))].form)
    if family == "frequency":
        return replace(plan, frequency="never" if c.chance(0.5) else "always", progressive=False)
    if family == "number":
        if noun is None or not isinstance(noun.head, Noun) or noun.head.mass:
            return None
        counted = replace(noun, determiner="", owner=None, plural=True, numeral=number(c), exactly=True)
        return replace(plan, object=counted)
    if not isinstance(subject.head, Noun) or subject.head.mass:
        return None
    determiner = c.weighted((("no", 0.5), ("a", 0.25), ("every", 0.25)))
    return replace(plan, subject=replace(subject, determiner=determiner, owner=None, plural=False))


def _adjective(c: Context) -> Clause | None:
    """ "The soup is (not) hot", of an adjective that has an antonym."""
    subject = definite(noun_phrase(c, "be", "subject", "patflgie", 0))
    adjective = c.world.adjectives.draw(c.draw, c.topic, subject.key, "amod", subject.sense)
    if adjective is None or adjective.antonym not in c.world.lexicon.tags or adjective in subject.adjectives:
        return None
    opposed = any(other.antonym == adjective.form for other in subject.adjectives)
    plan = Clause("adjective", subject, adjective=adjective, past=c.chance(0.5), negated=c.chance(0.35))
    return None if opposed else plan


def opposite(c: Context, plan: Clause, family: str) -> Clause | None:  # noqa: PLR0911 - a case each
    """A clause of the family that cannot be true together with ``plan``."""
    if family == "polarity":
        return replace(plan, negated=False, object=_unnegated(plan.object)) if plan.negated else negated(plan)
    if family == "adjective":
        if plan.negated or c.chance(0.35):
            return replace(plan, negated=not plan.negated)
        others = (a for a in c.world.lexicon.adjectives if plan.adjective and a.form == plan.adjective.antonym)
        return replace(plan, adjective=next(others, None))
    if family == "manner":
        others_ = (m.antonym for m in c.world.lexicon.manners if m.form == plan.manner)
        return replace(plan, manner=next(others_))
    if family == "frequency":
        return replace(plan, frequency="always" if plan.frequency == "never" else "never")
    if family == "number":
        assert plan.object is not None
        other = number(c)
        return None if other == plan.object.numeral else replace(plan, object=replace(plan.object, numeral=other))
    assert plan.subject is not None
    positive = "a" if c.chance(0.5) else "every"
    determiner = positive if plan.subject.determiner == "no" else "no"
    return replace(plan, subject=replace(plan.subject, determiner=determiner))


def downward(plan: Clause) -> bool:
    """Whether what is said of more is said of less: under "not", "never" and "no"."""
    no_subject = plan.subject is not None and plan.subject.determiner == "no"
    return plan.negated or plan.frequency == "never" or no_subject


def negated(plan: Clause) -> Clause:
    """The clause with "not"; "some" becomes "any"."""
    noun = plan.object
    if noun is not None and noun.determiner == "some":
        noun = replace(noun, determiner="any")
    return replace(plan, negated=True, object=noun)


def _unnegated(noun: NounPhrase | None) -> NounPhrase | None:
    return replace(noun, determiner="some") if noun is not None and noun.determiner == "any" else noun


def number(c: Context) -> str:
    """A numeral from two to seven."""
    return NUMERALS[1 + int(c.draw() * 6)]


def definite(phrase: NounPhrase) -> NounPhrase:
    """The same phrase of something known, without numeral."""
    if isinstance(phrase.head, Pronoun):
        vague = phrase.head in VAGUE
        return NounPhrase(SHE if phrase.head.person else IT) if vague else phrase
    if not isinstance(phrase.head, Noun):
        return phrase
    known = phrase.determiner in DEFINITE or phrase.owner is not None
    return replace(phrase, determiner=phrase.determiner if known else "the", numeral="")


def _plain(phrase: NounPhrase) -> NounPhrase:
    """An object that is known, or one of "a", "some" or nothing before it."""
    return phrase if phrase.determiner in ("a", "some", "") and not phrase.numeral else definite(phrase)


def other_object(c: Context, plan: Clause) -> Clause | None:
    """The clause of another object."""
    if plan.object is None or not isinstance(plan.object.head, Noun) or plan.verb is None:
        return None
    noun = c.world.nouns.draw(c.draw, c.topic, plan.verb.base, "object", plan.object.sense)
    if noun is None or noun is plan.object.head or noun.mass != plan.object.head.mass:
        return None
    fresh = modified(c, noun, 0)
    changed = replace(plan.object, head=noun, adjectives=fresh.adjectives, degree="", compound=None, prepositional=())
    return replace(plan, object=changed)


Change = Callable[[Context, Clause], Clause | None]


def narrower(c: Context, plan: Clause, family: str, down: bool) -> Clause | None:
    """A clause whose state of affairs is a special case of ``plan``'s.

    Where nothing is above it that turns the direction, it entails ``plan``; under "not",
    "never" and "no" ``plan`` entails it. "exactly three" and "every" allow few changes.
    """
    changes: list[Change] = []
    assert plan.subject is not None
    if family != "number" and plan.kind == "verb":
        changes += [_with_oblique, _with_manner] if family != "manner" else [_with_oblique]
        changes += [_with_object_adjective]
    if plan.kind == "adjective":
        changes += [_with_degree]
    quantified = plan.subject.determiner
    if quantified in ("a", "no") or (quantified in DEFINITE and not down):
        changes += [_with_subject_adjective]
    first = int(c.draw() * max(1, len(changes)))
    for change in changes[first:] + changes[:first]:
        narrow = change(c, plan)
        if narrow is not None:
            return narrow
    return None


def _with_oblique(c: Context, plan: Clause) -> Clause | None:
    assert plan.verb is not None
    link = c.world.adjuncts.draw(c.draw, c.topic, plan.verb.base, "adjunct", "")
    assert link is not None
    if plan.obliques:
        return None
    phrase = definite(noun_phrase(c, plan.verb.base, link.preposition, link.senses, 0))
    return replace(plan, obliques=((link.preposition, phrase),))


def _with_manner(c: Context, plan: Clause) -> Clause | None:
    assert plan.verb is not None
    manner = c.world.manners.draw(c.draw, c.topic, plan.verb.base, "manner", "")
    return None if plan.manner or manner is None else replace(plan, manner=manner.form)


def _with_degree(c: Context, plan: Clause) -> Clause | None:
    return None if plan.degree else replace(plan, degree="very" if c.chance(0.7) else "really")


def _with_object_adjective(c: Context, plan: Clause) -> Clause | None:
    known = plan.object is not None and plan.object.determiner in DEFINITE
    if plan.object is None or (known and downward(plan)):
        return None
    narrow = _with_adjective(c, plan.object)
    return None if narrow is None else replace(plan, object=narrow)


def _with_subject_adjective(c: Context, plan: Clause) -> Clause | None:
    assert plan.subject is not None
    narrow = _with_adjective(c, plan.subject)
    if narrow is not None and plan.adjective is not None:
        about = (plan.adjective.form, plan.adjective.antonym)
        if narrow.adjectives[0].form in about:
            return None
    return None if narrow is None else replace(plan, subject=narrow)


def _with_adjective(c: Context, phrase: NounPhrase) -> NounPhrase | None:
    if not isinstance(phrase.head, Noun) or phrase.adjectives:
        return None
    adjective = c.world.adjectives.draw(c.draw, c.topic, phrase.head.singular, "amod", phrase.head.sense)
    return None if adjective is None else replace(phrase, adjectives=(adjective,))


def passive(plan: Clause) -> Clause | None:
    """The passive of a clause, if its meaning is the same: a known object, no quantifier."""
    noun, subject = plan.object, plan.subject
    if plan.verb is None or noun is None or subject is None or plan.recipient is not None or plan.frequency:
        return None
    known = not isinstance(noun.head, Noun) or noun.determiner in DEFINITE or noun.owner is not None
    if not known or subject.determiner in ("no", "every", "a") or plan.progressive:
        return None
    return replace(plan, passive=True, agent=True)


def swapped(plan: Clause) -> Clause | None:
    """Subject and object in each other's place, if both are people or groups."""
    if plan.object is None or plan.subject is None or plan.kind != "verb":
        return None
    people = plan.subject.sense == plan.object.sense and plan.subject.sense in "pag"
    return replace(plan, subject=plan.object, object=plan.subject) if people else None


def other_predicate(c: Context, plan: Clause, family: str) -> Clause | None:
    """Something else about the same subject, of the same family and polarity."""
    other = content(c, family)
    if other is None or plan.subject is None or other.subject is None or other.kind != plan.kind:
        return None
    same = other.adjective is not None and plan.adjective is not None
    if same and plan.adjective and other.adjective:
        if other.adjective.form in (plan.adjective.form, plan.adjective.antonym):
            return None
        if plan.subject.sense not in other.adjective.senses:
            return None
    if plan.verb is not None:
        use = c.world.uses.draw(c.draw, c.topic, plan.verb.base, "other", f"in tr|{plan.subject.sense}|")
        if use is None or use.verb is plan.verb or family != "polarity":
            return None
        other = verbal(c, use, plan.subject, 0)
        other.passive = False
        if other.object is not None:
            other.object = definite(other.object)
        other.obliques = tuple((p, definite(phrase)) for p, phrase in other.obliques)
    return replace(other, subject=plan.subject, past=plan.past, negated=plan.negated)


def beside(plan: Clause, second: Clause, first: bool) -> Clause:
    """``plan`` with "although …" before it, or with a second clause after it.

    Both say no more and no less than the two clauses together, so the result entails ``plan``.
    """
    if first:
        return replace(plan, adverbial=("although", second), adverbial_first=True)
    return replace(plan, conjunct=("and", second))


def aside(c: Context) -> Clause:
    """A short clause to stand beside another."""
    while True:
        plan = clause(c, 0)
        if plan.subject is not None and not (isinstance(plan.subject.head, Pronoun) and plan.kind == "exist"):
            return plan


LABELS = ("entailment", "neutral", "contradiction")
TRIES = 40  # to find a pair of one family before another is drawn, so families keep their shares
Pair = tuple[Clause, Clause]


@dataclass(frozen=True)
class NliPair:
    """Two annotated sentences (columns as in the corpus) and the label of the pair."""

    premise: Sentence
    hypothesis: Sentence
    label: str


def nli_pairs(source: MiniEnglish, split: str, count: int) -> Iterator[NliPair]:
    """``count`` pairs for a split, the labels in equal shares.

    Pair i is a function of (types, seed, split, i); its two sentences have the id i.
    """
    check_split(source, split, NAME)
    if count < 0:
        raise InputError(f"{NAME}: the number of inference pairs must be 0 or more, not {count}")
    return (_pair(source, split, index) for index in range(count))


def _pair(source: MiniEnglish, split: str, index: int) -> NliPair:
    order = permutation(key_of("mini-english", "nli labels", source.seed, split, index // 3), 3)
    label = LABELS[order[index % 3]]
    c = context_of(source.world, source.seed, source.types, split, index, "nli")
    while True:  # ends: each try succeeds with a fair chance
        family = c.weighted(FAMILIES)
        for _ in range(TRIES):
            plans = _plans(c, family, label)
            if plans is None:
                continue
            premise, hypothesis = realise(plans[0]), realise(plans[1])
            short = max(len(premise["form"]), len(hypothesis["form"])) <= MAX_WORDS
            if short and premise["form"] != hypothesis["form"]:
                return NliPair(Sentence(index, premise), Sentence(index, hypothesis), label)


def _plans(c: Context, family: str, label: str) -> Pair | None:
    """Premise and hypothesis as plans, or None if this draw allows none."""
    broad = content(c, family)
    if broad is None:
        return None
    make = {"entailment": _entailment, "neutral": _neutral, "contradiction": _contradiction}[label]
    pair = make(c, broad, family)
    if pair is None:
        return None
    premise, hypothesis = (_perhaps_passive(c, plan) for plan in pair)
    return _with_asides(c, premise, hypothesis, label)


def _chain(c: Context, broad: Clause, family: str) -> Pair | None:
    """(entailing, entailed): a clause and a narrower one, in the direction its polarity gives."""
    down = downward(broad)
    if c.chance(0.5):
        broad = narrower(c, broad, family, down) or broad
    narrow = narrower(c, broad, family, down)
    if narrow is None:
        return None
    return (broad, narrow) if down else (narrow, broad)


def _entailment(c: Context, broad: Clause, family: str) -> Pair | None:
    if c.chance(0.2):
        return broad, broad  # and a second clause or the passive tells them apart
    return _chain(c, broad, family)


def _neutral(c: Context, broad: Clause, family: str) -> Pair | None:
    level = c.draw()
    if level < 0.45:
        chain = _chain(c, broad, family)
        return None if chain is None else (chain[1], chain[0])
    if level < 0.6:
        other = swapped(broad) or other_object(c, broad)
    else:
        other = other_predicate(c, broad, family) or other_object(c, broad)
    return None if other is None else (broad, other)


def _contradiction(c: Context, broad: Clause, family: str) -> Pair | None:
    """What entails the clause, against its opposite; or the other way round."""
    other = opposite(c, broad, family)
    if other is None:
        return None
    chain = _chain(c, broad, family) if c.chance(0.6) else None
    strong = broad if chain is None or chain[1] is not broad else chain[0]
    return (strong, other) if c.chance(0.5) else (other, strong)


def _perhaps_passive(c: Context, plan: Clause) -> Clause:
    return (passive(plan) if c.chance(0.2) else None) or plan


def _with_asides(c: Context, premise: Clause, hypothesis: Clause, label: str) -> Pair:
    """Second clauses beside premise and hypothesis; they must not undo the label."""
    reason, more = (aside(c) if c.chance(0.2) else None for _ in range(2))
    if reason is not None:  # in the hypothesis: known from the premise if it is to follow from it
        hypothesis = beside(hypothesis, reason, True)
        if label == "entailment" or c.chance(0.3):
            premise = beside(premise, reason, True)
    if more is not None:  # in the premise alone: it only adds to what is known
        premise = beside(premise, more, False)
    return premise, hypothesis
