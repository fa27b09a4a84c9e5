"""Draw phrases and clauses: words by the preferences of their heads, and then modifiers, tense and adverbs."""

from __future__ import annotations

from dataclasses import replace

from synthlang.sources.mini_english.entries import (
    IT,
    PRONOUNS,
    SHE,
    SOMEONE,
    SOMETHING,
    STATIVE,
    THAT,
    THIS,
    WE,
    YOU,
    Clause,
    Frame,
    I,
    Name,
    Noun,
    NounPhrase,
    Pronoun,
    Verb,
)
from synthlang.sources.mini_english.realise import POSSESSIVES
from synthlang.sources.mini_english.world import Context, Use

PRONOUN_SHARE = {"subject": 0.3, "object": 0.13, "recipient": 0.45, "oblique": 0.06}
DEFINITE = ("the", *POSSESSIVES, "this", "that")
VAGUE = (SOMEONE, THIS, THAT, SOMETHING)
NAME_SHARE = {"p": 0.3, "l": 0.45, "g": 0.55}


def noun_phrase(c: Context, head: str, slot: str, senses: str, room: int = 0) -> NounPhrase:
    """Draw a noun phrase for a slot of the word ``head``.

    ``senses`` are the letters of the senses that the noun may have. ``room`` limits the depth of modifiers.
    """
    role = slot if slot in PRONOUN_SHARE else "oblique"
    if c.chance(PRONOUN_SHARE[role]):
        return NounPhrase(PRONOUNS[c.weighted("people" if "p" in senses else "things")])
    noun = c.world.nouns.draw(c, head, slot, senses)
    if noun is None:
        return NounPhrase(IT)
    if noun.sense in NAME_SHARE and c.chance(NAME_SHARE[noun.sense]):
        return NounPhrase(_name(c, head, slot, noun.sense))
    phrase = modified(c, noun, room)
    if phrase.determiner == "no" and role == "oblique":  # "before no harvest" is no English
        phrase.determiner = "the"
    return phrase


def _name(c: Context, head: str, slot: str, sense: str) -> Name:
    if sense != "p":
        return (c.world.places if sense == "l" else c.world.organisations).one(c, head, slot)
    given = c.world.given.one(c, head, slot)
    if c.chance(0.5):
        return given
    surname = c.world.surnames.one(c, given.words[0], "surname")
    return surname if c.chance(0.15) else Name(given.words + surname.words, "PER")


def modified(c: Context, noun: Noun, room: int = 0) -> NounPhrase:
    """Draw a noun phrase of a common noun: its number, determiner and modifiers up to the depth ``room``."""
    phrase = NounPhrase(noun, plural=not noun.mass and c.chance(c.world.plural_share[noun]))
    _determine(c, phrase, noun, room)
    if c.chance(0.26):
        _add_adjective(c, phrase)
    if room > 0 and c.chance(0.07):
        compound = c.world.nouns.draw(c, noun.singular, "compound", "tilfe")
        phrase.compound = None if compound is noun else compound
    if room > 0 and c.chance(0.2):
        link = c.world.modifiers.draw(c, noun.singular, "preposition", noun.sense)
        if link is not None:
            inner = noun_phrase(c, noun.singular, link.preposition, link.senses, room - 1)
            if inner.key != noun.singular:
                phrase.prepositional = ((link.preposition, inner),)
    if room > 0 and c.chance(0.06):
        other = noun_phrase(c, noun.singular, "conjunct", noun.sense)
        if other.key != phrase.key and not isinstance(other.head, Pronoun):
            phrase.conjunct = ("or" if c.chance(0.15) else "and", other)
    return phrase


def _determine(c: Context, phrase: NounPhrase, noun: Noun, room: int) -> None:
    choice = c.weighted("mass" if noun.mass else "plural" if phrase.plural else "singular")
    if choice == "poss":
        phrase.determiner = c.weighted("possessive")
    elif choice == "number":
        phrase.numeral = c.weighted("number")
        phrase.determiner = "the" if c.chance(0.2) else ""
    elif choice == "owner":
        phrase.determiner = "the"
        if room > 0:
            owner = noun_phrase(c, noun.singular, "owner", "pg")
            if not isinstance(owner.head, Pronoun) and not owner.plural:
                phrase.determiner, phrase.owner = "", owner
    else:
        phrase.determiner = choice


def _add_adjective(c: Context, phrase: NounPhrase) -> None:
    first = c.adjective(phrase)
    if first is None:
        return
    phrase.adjectives = (first,)
    if c.chance(0.12):
        second = c.adjective(phrase)
        if second is not None and second is not first and second.form != first.antonym:
            phrase.adjectives = (first, second)
    elif c.chance(0.1) and phrase.determiner != "no":
        phrase.degree = "very" if c.chance(0.7) else "really"


def sentence(c: Context) -> Clause:
    """Draw a whole sentence: a statement, question or command."""
    level = c.draw()
    if level < 0.045:
        use = c.use("command", "in tr di", "p")
        assert use is not None
        plan = verbal(c, use, None)
        plan.mood, plan.negated, plan.please = "imperative", c.chance(0.2), c.chance(0.2)
    elif level < 0.115:
        plan = _question(c)
    else:
        plan = clause(c, 1)
        if c.chance(0.1):
            plan.adverbial = (c.weighted("adverbial"), clause(c))
            plan.adverbial_first = c.chance(0.35)
        elif c.chance(0.1):
            _coordinate(c, plan)
    return plan


def clause(c: Context, room: int = 0) -> Clause:
    """Draw a finite statement. ``room`` limits the depth of phrases and clauses."""
    level = c.draw()
    if level < 0.09:
        plan = _adjectival(c, room)
    elif level < 0.14:
        plan = _nominal(c, room)
    elif level < 0.18:
        plan = _existential(c, room)
    else:
        use = c.use("verb", "in tr di cc xc aj" if room > 0 else "in tr di aj")
        assert use is not None
        plan = verbal(c, use, noun_phrase(c, use.verb.base, "subject", use.frame.subject, room), room)
        for phrase in (plan.subject, plan.object):
            _relative(c, phrase, room)
    tense(c, plan)
    return plan


def verbal(c: Context, use: Use, subject: NounPhrase | None, room: int = 0, sense: str = "p") -> Clause:
    """Draw a verb with its arguments and adjuncts, without a tense.

    ``room`` limits the depth of phrases and clauses. ``sense`` is the sense of an implied subject.
    """
    verb, frame = use.verb, use.frame
    plan = Clause("verb", subject, verb)
    sense = subject.sense if subject is not None else sense
    if frame.kind in ("tr", "di"):
        plan.object = noun_phrase(c, verb.base, "object", frame.object, room)
    if frame.kind == "di" and plan.object is not None:
        plan.recipient = noun_phrase(c, verb.base, "recipient", "pg")
        plan.recipient_last = c.chance(0.3) or isinstance(plan.object.head, Pronoun)  # "gave it to her"
    elif frame.kind == "cc":
        plan.complement, plan.complement_mark = clause(c, room - 1), "that" if c.chance(0.75) else ""
    elif frame.kind == "xc":
        inner = c.use("xcomp", "in tr", sense, head=verb.base)
        if inner is not None and inner.verb is not verb:
            plan.complement, plan.complement_mark = verbal(c, inner, None, room - 1, sense), "to"
    elif frame.kind == "aj":
        key = subject.key if subject is not None else verb.base
        plan.adjective = c.world.adjectives.draw(c, key, "amod", sense)
    _adjuncts(c, plan, frame, room)
    if frame.kind == "tr" and subject is not None and c.chance(0.14):
        plan.passive, plan.agent = True, c.chance(0.5)
    return plan


def _adjuncts(c: Context, plan: Clause, frame: Frame, room: int) -> None:
    if c.chance({"in": 0.75, "tr": 0.4, "di": 0.1}.get(frame.kind, 0.04)):
        plan.obliques = (_oblique(c, plan.verb, frame, room),)
        if c.chance(0.12) and room > 0:
            second = _oblique(c, plan.verb, Frame("in", ""), 0)
            if second[0] != plan.obliques[0][0]:
                plan.obliques += (second,)
    if frame.kind not in ("aj", "xc", "cc") and plan.verb.base not in STATIVE and c.chance(0.16):
        plan.manner = c.manner(plan.verb).form


def _oblique(c: Context, verb: Verb, frame: Frame, room: int) -> tuple[str, NounPhrase]:
    if frame.prepositions and c.chance(0.75):
        preposition, senses = c.one(frame.prepositions, 1.5)
    else:
        link = c.adjunct(verb)
        preposition, senses = link.preposition, link.senses
    return preposition, noun_phrase(c, verb.base, preposition, senses, room - 1)


def _relative(c: Context, phrase: NounPhrase | None, room: int) -> None:
    if phrase is None or room <= 0 or not isinstance(phrase.head, Noun) or phrase.conjunct or phrase.prepositional:
        return
    if not c.chance(0.12):
        return
    inner = relative_clause(c, phrase, "object" if c.chance(0.4) else "subject")
    if inner is not None:
        tense(c, inner)
        phrase.relative = inner


def relative_clause(c: Context, phrase: NounPhrase, gap: str) -> Clause | None:
    """Draw a relative clause, without a tense, for a common noun, or return None if no verb fits.

    ``gap`` is the role of the noun in the clause, subject or object.
    """
    sense = phrase.sense
    kinds, subject_sense, taken = ("tr", "", sense) if gap == "object" else ("in tr", sense, "")
    use = c.use("relative " + gap, kinds, subject_sense, taken, phrase.key)
    if use is None:
        return None
    subject = noun_phrase(c, use.verb.base, "subject", use.frame.subject) if gap == "object" else None
    inner = verbal(c, use, subject, 0, sense)
    inner.passive, inner.gap, inner.agreement = False, gap, phrase.agreement
    if gap == "object":
        inner.object = None
    wh = "who" if sense == "p" else "which"
    inner.marker = "" if gap == "object" and c.chance(0.3) else "that" if c.chance(0.4) else wh
    return inner


def _adjectival(c: Context, room: int) -> Clause:
    subject = noun_phrase(c, "be", "subject", "patflgie", room)
    adjective = c.adjective(subject)
    if adjective is None or adjective in subject.adjectives:
        return _nominal(c, room)
    return Clause("adjective", subject, adjective=adjective, degree=c.weighted("degree"))


def _nominal(c: Context, room: int) -> Clause:
    subject = noun_phrase(c, "be", "subject", "p", room)
    nominal = modified(c, c.world.nouns.one(c, subject.key, "nominal", "p"), room - 1)
    plural = subject.agreement == "are" and subject.key != "you"
    nominal.plural, nominal.numeral, nominal.owner = plural, "", None
    if nominal.determiner not in ("the", "my", "his", "our", "their"):
        nominal.determiner = "" if plural else "a"
    return Clause("nominal", subject, nominal=nominal)


def _existential(c: Context, room: int) -> Clause:
    noun = c.world.nouns.one(c, "there", "exist", "patfge")
    subject = modified(c, noun, room)
    subject.owner = None
    if subject.determiner not in ("a", "some", "no", "many", ""):
        subject.determiner = "some" if noun.mass else "" if subject.plural else "a"
    elif not (subject.determiner or subject.plural or noun.mass):
        subject.determiner = "a"
    place = noun_phrase(c, noun.singular, "exist", "l")
    return Clause("exist", subject, obliques=(("in" if c.chance(0.7) else "near", place),))


def tense(c: Context, plan: Clause) -> None:
    """Draw tense, aspect, negation and adverbs of time of a clause, and set them in ``plan``."""
    level = c.draw()
    if level < 0.14:
        plan.modal = c.weighted("modal")
    plan.past = 0.14 <= level < 0.62
    stative = plan.kind != "verb" or plan.verb.base in STATIVE
    aspect = c.draw()
    plan.perfect = aspect < 0.09 and not plan.modal
    plan.progressive = 0.09 <= aspect < 0.2 and not stative and not plan.passive
    plan.negated = c.chance(0.11)
    if plan.negated and plan.object is not None and plan.object.determiner in ("some", "no"):
        plan.object.determiner = "any"
    if plan.kind in ("verb", "adjective") and not plan.negated and c.chance(0.07):
        plan.frequency = c.weighted("frequency")
    if plan.kind == "verb" and plan.complement is None and not plan.frequency and c.chance(0.09):
        usual = "yesterday" if plan.past and not plan.perfect else "tomorrow" if plan.modal == "will" else ""
        plan.time = usual if usual and c.chance(0.5) else c.weighted("time")


def _coordinate(c: Context, plan: Clause) -> None:
    """Add a second predicate of the same subject ("she came and ate"), or a second clause."""
    word = "but" if c.chance(0.3) else "and"
    if plan.subject is not None and c.chance(0.55) and plan.kind == "verb" and plan.complement is None:
        use = c.use("verb", "in tr", plan.subject.sense)
        if use is None:
            return
        second = verbal(c, use, None, 0, plan.subject.sense)
        second.past, second.agreement, second.person = plan.past, plan.subject.agreement, plan.subject.person
        if not (plan.modal or plan.perfect or plan.progressive or plan.negated or plan.passive):
            plan.conjunct = (word, second)
    else:
        plan.conjunct = (word, clause(c))


def _question(c: Context) -> Clause:
    plan = clause(c)
    plan.mood, plan.negated = "question", False
    level = c.draw()
    if plan.kind != "verb" or plan.subject is None or level < 0.5:
        return plan
    if level < 0.75:
        plan.question_word = c.weighted("question")
        plan.time = ""
    elif plan.object is not None and plan.recipient is None and level < 0.88:
        plan.question_word, plan.gap = ("who" if plan.object.sense == "p" else "what"), "object"
        plan.object, plan.passive = None, False
    elif plan.subject.sense in "pg" and not plan.passive:
        plan.question_word, plan.gap, plan.agreement = "who", "subject", "is"
        plan.subject = None
    return plan


def verbs_of(c: Context, *bases: str) -> list[Verb]:
    """Return the verbs among ``bases`` that the lexicon has, the most frequent first.

    The first verbs of words.yaml are in all lexicons.
    """
    return [verb for verb in c.world.lexicon.verbs if verb.base in bases]


def indirect(c: Context, asked: Clause) -> Clause:
    """Return a sentence that embeds the question ``asked`` ("do you know where …"). ``asked`` becomes declarative."""
    asked.mood = "declarative"
    [tell], [know], [want] = (verbs_of(c, base) for base in ("tell", "know", "want"))
    me, you = NounPhrase(WE if c.chance(0.15) else I), NounPhrase(YOU)
    match c.weighted("indirect"):
        case "tell":
            please = c.chance(0.3)
            return Clause("verb", None, tell, recipient=me, complement=asked, mood="imperative", please=please)
        case "can you tell":
            modal = c.weighted("can you tell")
            return Clause("verb", you, tell, recipient=me, complement=asked, modal=modal, mood="question")
        case "do you know":
            return Clause("verb", you, know, complement=asked, agreement="are", mood="question")
        case "not know":
            return Clause("verb", me, know, complement=asked, negated=True)
        case _:
            inner = Clause("verb", None, know, complement=asked)
            return Clause("verb", me, want, complement=inner, complement_mark="to")


def definite(phrase: NounPhrase) -> NounPhrase:
    """Return the definite form of a noun phrase, without its numeral if the head is a noun.

    A head of VAGUE ("someone", "this") becomes "she" or "it". Other pronouns and names stay as they are.
    """
    if phrase.head in VAGUE:
        return NounPhrase(SHE if phrase.head is SOMEONE else IT)
    if not isinstance(phrase.head, Noun):
        return phrase
    known = phrase.determiner in DEFINITE or phrase.owner is not None
    return replace(phrase, determiner=phrase.determiner if known else "the", numeral="")
