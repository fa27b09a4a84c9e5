"""Draw phrases and clauses: words by the preferences of their heads, then what modifies them, tense and adverbs."""

from __future__ import annotations

from synthlang.sources.mini_english.entries import IT, NUMERALS, PRONOUNS, WE, YOU, Frame, I, Name, Noun, Pronoun, Verb
from synthlang.sources.mini_english.plan import Clause, Entity, NounPhrase
from synthlang.sources.mini_english.world import Context, Use, World

PRONOUN_SHARE = {"subject": 0.3, "object": 0.13, "recipient": 0.45, "oblique": 0.06}
NAME_SHARE = {"p": 0.3, "l": 0.45, "g": 0.55}
PEOPLE = (("she", 0.23), ("he", 0.23), ("I", 0.17), ("they", 0.14), ("we", 0.09), ("you", 0.1), ("someone", 0.04))
THINGS = (("it", 0.62), ("this", 0.14), ("that", 0.14), ("something", 0.1))
BY_SUBJECT = {pronoun.subject: pronoun for pronoun in PRONOUNS}
POSSESSIVE = (("her", 0.24), ("his", 0.24), ("my", 0.18), ("their", 0.15), ("our", 0.1), ("your", 0.06), ("its", 0.03))
SINGULAR = (
    *(("the", 0.44), ("a", 0.28), ("poss", 0.11), ("owner", 0.06), ("this", 0.04), ("that", 0.02)),
    *(("every", 0.03), ("no", 0.02)),
)
PLURAL = (
    *(("the", 0.34), ("", 0.2), ("poss", 0.1), ("number", 0.12), ("some", 0.08), ("these", 0.05), ("those", 0.03)),
    *(("many", 0.04), ("no", 0.02), ("all", 0.02)),
)
MASS = (("the", 0.4), ("", 0.25), ("some", 0.15), ("poss", 0.12), ("this", 0.04), ("no", 0.04))
NUMBERS = tuple(zip(NUMERALS[1:], (0.3, 0.22, 0.14, 0.1, 0.07, 0.06, 0.04, 0.03, 0.04), strict=True))


def noun_phrase(c: Context, head: str, slot: str, senses: str, room: int) -> NounPhrase:
    """A phrase for the slot of a head word; ``room`` is how deep modifiers may nest."""
    role = slot if slot in PRONOUN_SHARE else "oblique"
    if c.chance(PRONOUN_SHARE[role]):
        return NounPhrase(BY_SUBJECT[c.weighted(PEOPLE if "p" in senses else THINGS)])
    noun = c.world.nouns.draw(c.draw, c.topic, head, slot, senses)
    if noun is None:
        return NounPhrase(IT)
    if noun.sense in NAME_SHARE and c.chance(NAME_SHARE[noun.sense]):
        return NounPhrase(entity(c, head, slot, noun.sense))
    phrase = modified(c, noun, room)
    if phrase.determiner == "no" and role == "oblique":  # "before no harvest" is no English
        phrase.determiner = "the"
    return phrase


def entity(c: Context, head: str, slot: str, sense: str) -> Entity:
    """A name for a slot; a person has a given name, a surname or both."""
    if sense == "p":
        given = c.world.given.draw(c.draw, c.topic, head, slot, "")
        assert given is not None
        if c.chance(0.5):
            return Entity(given.words, "PER", "p", "flat")
        surname = c.world.surnames.draw(c.draw, c.topic, given.words[0], "surname", "")
        assert surname is not None
        return Entity(surname.words if c.chance(0.15) else given.words + surname.words, "PER", "p", "flat")
    names = c.world.places if sense == "l" else c.world.organisations
    name = names.draw(c.draw, c.topic, head, slot, "")
    assert isinstance(name, Name)
    return Entity(name.words, name.kind, sense, name.joined)


def modified(c: Context, noun: Noun, room: int) -> NounPhrase:
    """A common noun with determiner and modifiers."""
    plural = not noun.mass and c.chance(c.world.plural_share[noun])
    phrase = NounPhrase(noun, plural)
    _determine(c, phrase, noun, room)
    if c.chance(0.26):
        _add_adjective(c, phrase, noun)
    if room > 0 and c.chance(0.07):
        phrase.compound = c.world.nouns.draw(c.draw, c.topic, noun.singular, "compound", "tilfe")
        if phrase.compound is noun:
            phrase.compound = None
    if room > 0 and c.chance(0.2):
        _add_prepositional(c, phrase, noun, room)
    if room > 0 and c.chance(0.06):
        other = noun_phrase(c, noun.singular, "conjunct", noun.sense, 0)
        if other.key != phrase.key and not isinstance(other.head, Pronoun):
            phrase.conjunct = ("or" if c.chance(0.15) else "and", other)
    return phrase


def _determine(c: Context, phrase: NounPhrase, noun: Noun, room: int) -> None:
    choice = c.weighted(MASS if noun.mass else PLURAL if phrase.plural else SINGULAR)
    if choice == "poss":
        phrase.determiner = c.weighted(POSSESSIVE)
    elif choice == "number":
        phrase.numeral = c.weighted(NUMBERS)
        phrase.determiner = "the" if c.chance(0.2) else ""
    elif choice == "owner":
        phrase.determiner = "the"
        if room > 0:
            owner = noun_phrase(c, noun.singular, "owner", "pg", 0)
            if not isinstance(owner.head, Pronoun) and not owner.plural:
                phrase.determiner, phrase.owner = "", owner
    else:
        phrase.determiner = choice


def _add_adjective(c: Context, phrase: NounPhrase, noun: Noun) -> None:
    first = c.world.adjectives.draw(c.draw, c.topic, noun.singular, "amod", noun.sense)
    if first is None:
        return
    phrase.adjectives = (first,)
    if c.chance(0.12):
        second = c.world.adjectives.draw(c.draw, c.topic, noun.singular, "amod", noun.sense)
        if second is not None and second is not first and second.form != first.antonym:
            phrase.adjectives = (first, second)
    elif c.chance(0.1) and phrase.determiner != "no":
        phrase.degree = "very" if c.chance(0.7) else "really"


def _add_prepositional(c: Context, phrase: NounPhrase, noun: Noun, room: int) -> None:
    link = c.world.modifiers.draw(c.draw, c.topic, noun.singular, "preposition", noun.sense)
    if link is None:
        return
    inner = noun_phrase(c, noun.singular, link.preposition, link.senses, room - 1)
    if inner.key != noun.singular:
        phrase.prepositional = ((link.preposition, inner),)


KINDS = "in tr di cc xc aj"
STATIVE = frozenset(
    {
        *("know", "want", "like", "love", "hate", "need", "believe", "seem", "become", "look", "hope", "fear"),
        *("admire", "agree", "hear", "see", "remember", "forget"),
    }
)
MODALS = (
    *(("will", 0.27), ("can", 0.22), ("must", 0.12), ("should", 0.1), ("may", 0.08), ("would", 0.08)),
    *(("could", 0.08), ("might", 0.05)),
)
FREQUENCY = (("always", 0.25), ("never", 0.25), ("often", 0.22), ("sometimes", 0.14), ("usually", 0.14))
TIMES = (("today", 0.3), ("again", 0.25), ("here", 0.2), ("there", 0.15), ("now", 0.1))
ADVERBIAL = (
    *(("because", 0.3), ("when", 0.25), ("if", 0.12), ("while", 0.1), ("although", 0.08), ("before", 0.07)),
    *(("after", 0.05), ("since", 0.03)),
)


def sentence(c: Context) -> Clause:
    """A whole sentence: a statement, question or command."""
    level = c.draw()
    if level < 0.045:
        return _command(c)
    if level < 0.115:
        return _question(c)
    plan = clause(c, 1)
    if c.chance(0.1):
        plan.adverbial = (c.weighted(ADVERBIAL), clause(c, 0))
        plan.adverbial_first = c.chance(0.35)
    elif c.chance(0.1):
        _coordinate(c, plan)
    return plan


def clause(c: Context, room: int) -> Clause:
    """A finite statement; ``room`` is how deep phrases and clauses may nest."""
    level = c.draw()
    if level < 0.09:
        plan = _adjectival(c, room)
    elif level < 0.14:
        plan = _nominal(c, room)
    elif level < 0.18:
        plan = _existential(c, room)
    else:
        kinds = KINDS if room > 0 else "in tr di aj"
        use = c.world.uses.draw(c.draw, c.topic, str(c.topic), "verb", f"{kinds}||")
        assert use is not None
        subject = noun_phrase(c, use.verb.base, "subject", use.frame.subject, room)
        plan = verbal(c, use, subject, room)
        for phrase in (plan.subject, plan.object):
            _relative(c, phrase, room)
    _tense(c, plan)
    return plan


def verbal(c: Context, use: Use, subject: NounPhrase | None, room: int, sense: str = "p") -> Clause:
    """A verb with its arguments and adjuncts, not yet in a tense; ``sense`` of a subject not named."""
    verb, frame = use.verb, use.frame
    plan = Clause("verb", subject, verb)
    sense = subject.sense if subject is not None else sense
    if frame.kind in ("tr", "di"):
        plan.object = noun_phrase(c, verb.base, "object", frame.object, room)
    if frame.kind == "di" and plan.object is not None:
        plan.recipient = noun_phrase(c, verb.base, "recipient", "pg", 0)
        plan.recipient_last = c.chance(0.3) or isinstance(plan.object.head, Pronoun)  # "gave it to her"
    elif frame.kind == "cc":
        plan.complement, plan.complement_mark = clause(c, room - 1), "that" if c.chance(0.75) else ""
    elif frame.kind == "xc":
        inner = c.world.uses.draw(c.draw, c.topic, verb.base, "xcomp", f"in tr|{sense}|")
        if inner is not None and inner.verb is not verb:
            plan.complement, plan.complement_mark = verbal(c, inner, None, room - 1, sense), "to"
    elif frame.kind == "aj":
        key = subject.key if subject is not None else verb.base
        plan.adjective = c.world.adjectives.draw(c.draw, c.topic, key, "amod", sense)
    _adjuncts(c, plan, verb, frame, room)
    if frame.kind == "tr" and subject is not None and c.chance(0.14):
        plan.passive, plan.agent = True, c.chance(0.5)
    return plan


def _adjuncts(c: Context, plan: Clause, verb: Verb, frame: Frame, room: int) -> None:
    """Prepositional phrases and adverbs."""
    share = {"in": 0.75, "tr": 0.4, "di": 0.1}.get(frame.kind, 0.04)
    if c.chance(share):
        plan.obliques = (_oblique(c, verb, frame, room),)
        if c.chance(0.12) and room > 0:
            second = _oblique(c, verb, Frame("in", ""), 0)
            if second[0] != plan.obliques[0][0]:
                plan.obliques += (second,)
    if frame.kind not in ("aj", "xc", "cc") and verb.base not in STATIVE and c.chance(0.16):
        manner = c.world.manners.draw(c.draw, c.topic, verb.base, "manner", "")
        plan.manner = manner.form if manner is not None else ""


def _oblique(c: Context, verb: Verb, frame: Frame, room: int) -> tuple[str, NounPhrase]:
    if frame.prepositions and c.chance(0.75):
        preposition, senses = frame.prepositions[int(c.draw() ** 1.5 * len(frame.prepositions))]
    else:
        link = c.world.adjuncts.draw(c.draw, c.topic, verb.base, "adjunct", "")
        assert link is not None
        preposition, senses = link.preposition, link.senses
    return preposition, noun_phrase(c, verb.base, preposition, senses, room - 1)


def _relative(c: Context, phrase: NounPhrase | None, room: int) -> None:
    """Now and then give a common noun a relative clause."""
    if phrase is None or room <= 0 or not isinstance(phrase.head, Noun) or phrase.conjunct or phrase.prepositional:
        return
    if not c.chance(0.12):
        return
    sense, gap = phrase.sense, "object" if c.chance(0.4) else "subject"
    limit = f"tr||{sense}" if gap == "object" else f"in tr|{sense}|"
    use = c.world.uses.draw(c.draw, c.topic, phrase.key, "relative " + gap, limit)
    if use is None:
        return
    subject = noun_phrase(c, use.verb.base, "subject", use.frame.subject, 0) if gap == "object" else None
    inner = verbal(c, use, subject, 0, sense)
    inner.passive, inner.gap, inner.agreement = False, gap, phrase.agreement
    if gap == "object":
        inner.object = None
    wh = "who" if sense == "p" else "which"
    inner.marker = "" if gap == "object" and c.chance(0.3) else "that" if c.chance(0.4) else wh
    _tense(c, inner)
    phrase.relative = inner


def _adjectival(c: Context, room: int) -> Clause:
    subject = noun_phrase(c, "be", "subject", "patflgie", room)
    plan = Clause("adjective", subject)
    plan.adjective = c.world.adjectives.draw(c.draw, c.topic, subject.key, "amod", subject.sense)
    if plan.adjective is None or plan.adjective in subject.adjectives:
        return _nominal(c, room)
    plan.degree = c.weighted((("", 0.7), ("very", 0.14), ("too", 0.06), ("quite", 0.06), ("really", 0.04)))
    return plan


def _nominal(c: Context, room: int) -> Clause:
    subject = noun_phrase(c, "be", "subject", "p", room)
    noun = c.world.nouns.draw(c.draw, c.topic, subject.key, "nominal", "p")
    assert noun is not None
    nominal = modified(c, noun, room - 1)
    plural = subject.agreement == "are" and subject.key != "you"
    nominal.plural, nominal.numeral, nominal.owner = plural, "", None
    if nominal.determiner not in ("the", "my", "his", "our", "their"):
        nominal.determiner = "" if plural else "a"
    return Clause("nominal", subject, nominal=nominal)


def _existential(c: Context, room: int) -> Clause:
    noun = c.world.nouns.draw(c.draw, c.topic, "there", "exist", "patfge")
    assert noun is not None
    subject = modified(c, noun, room)
    subject.owner = None
    if subject.determiner not in ("a", "some", "no", "many", ""):
        subject.determiner = "some" if noun.mass else "" if subject.plural else "a"
    elif not (subject.determiner or subject.plural or noun.mass):
        subject.determiner = "a"
    place = noun_phrase(c, noun.singular, "exist", "l", 0)
    return Clause("exist", subject, obliques=(("in" if c.chance(0.7) else "near", place),))


def _tense(c: Context, plan: Clause) -> None:
    """Tense, aspect, negation, and the adverbs that go with them."""
    level = c.draw()
    if level < 0.14:
        plan.modal = c.weighted(MODALS)
    plan.past = 0.14 <= level < 0.62
    stative = plan.kind != "verb" or plan.verb is None or plan.verb.base in STATIVE
    aspect = c.draw()
    plan.perfect = aspect < 0.09 and not plan.modal
    plan.progressive = 0.09 <= aspect < 0.2 and not stative and not plan.passive
    plan.negated = c.chance(0.11)
    if plan.negated and plan.object is not None and plan.object.determiner in ("some", "no"):
        plan.object.determiner = "any"
    if plan.kind in ("verb", "adjective") and not plan.negated and c.chance(0.07):
        plan.frequency = c.weighted(FREQUENCY)
    if plan.kind == "verb" and plan.complement is None and not plan.frequency and c.chance(0.09):
        usual = "yesterday" if plan.past and not plan.perfect else "tomorrow" if plan.modal == "will" else ""
        plan.time = usual if usual and c.chance(0.5) else c.weighted(TIMES)


def _coordinate(c: Context, plan: Clause) -> None:
    """A second predicate of the same subject ("she came and ate"), or a second clause."""
    word = "but" if c.chance(0.3) else "and"
    if plan.subject is not None and c.chance(0.55) and plan.kind == "verb" and plan.complement is None:
        use = c.world.uses.draw(c.draw, c.topic, str(c.topic), "verb", f"in tr|{plan.subject.sense}|")
        if use is None:
            return
        second = verbal(c, use, None, 0, plan.subject.sense)
        second.past, second.agreement = plan.past, plan.subject.agreement
        if not (plan.modal or plan.perfect or plan.progressive or plan.negated or plan.passive):
            plan.conjunct = (word, second)
    else:
        plan.conjunct = (word, clause(c, 0))


def _command(c: Context) -> Clause:
    use = c.world.uses.draw(c.draw, c.topic, str(c.topic), "command", "in tr di|p|")
    assert use is not None
    plan = verbal(c, use, None, 0)
    plan.mood, plan.negated, plan.please = "imperative", c.chance(0.2), c.chance(0.2)
    return plan


def _question(c: Context) -> Clause:
    plan = clause(c, 0)
    plan.mood, plan.negated = "question", False
    level = c.draw()
    if plan.kind != "verb" or plan.subject is None or level < 0.5:
        return plan
    if level < 0.75:
        plan.question_word = c.weighted((("where", 0.3), ("when", 0.25), ("why", 0.3), ("how", 0.15)))
        plan.time = ""
    elif plan.object is not None and plan.recipient is None and level < 0.88:
        plan.question_word, plan.gap = ("who" if plan.object.sense == "p" else "what"), "object"
        plan.object, plan.passive = None, False
    elif plan.subject.sense in "pg" and not plan.passive:
        plan.question_word, plan.gap, plan.agreement = "who", "subject", "is"
        plan.subject = None
    return plan


# known in every lexicon: the first verbs of the word list
TELL, KNOW, WANT = "tell", "know", "want"


def verb_of(world: World, base: str) -> Verb:
    """A verb that every lexicon has."""
    verb = next((verb for verb in world.lexicon.verbs if verb.base == base), None)
    assert verb is not None, f"no verb {base!r}"
    return verb


def indirect(c: Context, asked: Clause) -> tuple[Clause, int]:
    """The sentence that asks for a question with its own word, and how many complements deep the question is."""
    asked.mood = "declarative"
    tell, know = verb_of(c.world, TELL), verb_of(c.world, KNOW)
    me = NounPhrase(WE if c.chance(0.15) else I)
    level = c.draw()
    if level < 0.35:
        please = c.chance(0.3)
        return Clause("verb", None, tell, recipient=me, complement=asked, mood="imperative", please=please), 1
    if level < 0.6:
        modal = c.weighted((("can", 0.5), ("could", 0.3), ("will", 0.2)))
        you = NounPhrase(YOU)
        return Clause("verb", you, tell, recipient=me, complement=asked, modal=modal, mood="question"), 1
    if level < 0.8:
        return Clause("verb", NounPhrase(YOU), know, complement=asked, agreement="are", mood="question"), 1
    if level < 0.9:
        return Clause("verb", me, know, complement=asked, negated=True), 1
    inner = Clause("verb", None, know, complement=asked)
    return Clause("verb", me, verb_of(c.world, WANT), complement=inner, complement_mark="to"), 2
