"""Utterances for slot filling with intent, annotated like the corpus and with a slot on each word.

An utterance makes, cancels or mentions a request of some domain. The domain, the preposition and the sense of the noun
together determine the slot of a phrase. "from Anna" is the seller or sender, "from Oslo" is the start of a journey, "to
Oslo" is a destination, "to the party" is an event, and "to Anna" is a recipient.

The intent of a request is its domain. Other intents follow from the combination of clauses, so the same verb occurs
under most intents:

    buy two apples !                     the domain
    tell me to buy two apples !          remind
    tell Anna to buy two apples !        tell
    I do not want to buy two apples .    cancel
    did Anna buy two apples ?            check
    tell me who bought two apples !      ask_person
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from synthlang.corpus import Sentence
from synthlang.sources.mini_english.draw import clause as statement
from synthlang.sources.mini_english.draw import indirect, noun_phrase, verbs_of
from synthlang.sources.mini_english.entries import GRAMMAR, THEY, WE, YOU, Clause, I, Noun, NounPhrase, Pronoun
from synthlang.sources.mini_english.realise import Node, Span, columns_of, prepositional_node, sentence_node
from synthlang.sources.mini_english.source import MiniEnglish
from synthlang.sources.mini_english.world import CHOICES, Context

LONGEST = 20  # words
US = 0.22  # share of mentions of people that are the speaker or the listener
PLACES = ("destination", "origin", "place", "via")  # slots that answer "where"
SPEAKERS = (I, WE, YOU)


@dataclass(frozen=True, slots=True)
class Domain:
    """The topic of a request (see grammar.yaml).

    Attributes:
        verbs: Base forms of the verbs.
        adjuncts: (probability, [[preposition, senses of the noun, slot]]) for each kind of adjunct. With this
            probability, a clause draws one adjunct from the list.
        taken: Slot of the object, or "" for a domain without an object.
        senses: Senses of the object.
        receives: Probability of a recipient, for a verb that may have a recipient.
        to: True if every verb may have a recipient after "to".
    """

    verbs: tuple[str, ...]
    adjuncts: tuple[tuple[float, list[list[str]]], ...]
    taken: str = ""
    senses: str = ""
    receives: float = 0.0
    to: bool = False

    @staticmethod
    def of(verbs: str, adjuncts: str, object: str = " ", **more: Any) -> Domain:
        """Read the domain of an entry of grammar.yaml.

        Args:
            verbs: Base forms of the verbs, separated by spaces.
            adjuncts: Lines of a probability and of choices ``preposition:senses:slot``, separated by spaces.
            object: Slot and senses of the object, separated by a space.
            more: The fields ``receives`` and ``to``.
        """
        lines = [line.split() for line in adjuncts.splitlines()]
        choices = tuple((float(share), [choice.split(":") for choice in rest]) for share, *rest in lines)
        taken, senses = object.split(" ")
        return Domain(tuple(verbs.split()), choices, taken, senses, **more)


DOMAINS: Mapping[str, Domain] = {name: Domain.of(**values) for name, values in GRAMMAR["domains"].items()}
INTENTS = tuple(sorted({*DOMAINS, *(name for name, _ in CHOICES["act"] if name != "request")}))
# Slots of phrases of time and reason, in any clause of the utterance.
ASIDES = {
    **{f"advmod {word}": "time" for word in ("yesterday", *dict(CHOICES["time of request"]))},
    **{f"obl {word}": "time" for word in dict(CHOICES["event of request"])},
    **{f"advcl {word}": "reason" if word == "because" else "time" for word in dict(CHOICES["reason"])},
}
WHOLE = ("message", "reason", "time")  # slots that include all words of their phrase
FRONT = 0.3  # share of statements with their phrase of time at the front


@dataclass(frozen=True)
class SlotSentence:
    """An annotated utterance (columns as in the corpus, and ``slot``) and its intent."""

    sentence: Sentence
    intent: str


def slot_sentences(source: MiniEnglish, split: str, count: int) -> Iterator[SlotSentence]:
    """Yield ``count`` utterances for a split. Utterance i is a function of (types, seed, zipf, split, i).

    Utterances of dev and test have a noun or a name that does not occur in train (``World.held_out``).

    Raises:
        InputError: The source has no such split.
    """
    return (_utterance(c, index, split, source.morphology) for index, c in source.contexts(split, count, "slots"))


def _utterance(c: Context, index: int, split: str, more: Sequence[str]) -> SlotSentence:
    while True:  # this ends, because most utterances are short
        made = utterance(c)
        root = _tree(c, made)
        columns = columns_of(root, more)
        if len(columns["form"]) <= LONGEST and c.world.suits(split, columns["form"]):
            columns["slot"] = _tags(root, made, len(columns["form"]))
            return SlotSentence(Sentence(index, columns), made.intent)


@dataclass(slots=True)
class Content:
    """A clause without subject and tense, and the slots of its dependents by their relation.

    ``time`` is the phrase of time, which may also be placed at the front of the utterance.
    """

    clause: Clause
    slots: dict[str, str] = field(default_factory=dict)
    time: str | tuple[str, NounPhrase] | None = None

    def place_time(self) -> Clause:
        """Put the phrase of time after the other adjuncts of the clause, and return the clause."""
        if isinstance(self.time, str):
            self.clause.time = self.time
        elif self.time is not None:
            self.clause.obliques += (self.time,)
        return self.clause


def content(c: Context, name: str = "", without: tuple[str, ...] = ()) -> Content:
    """Draw a clause of a domain, or of any domain if ``name`` is empty, that fills no slot of ``without``."""
    domain = DOMAINS[name or c.weighted("domain")]
    verb = c.one(verbs_of(c, *domain.verbs), 1.5)  # the more frequent ones more often
    clause = Clause("verb", None, verb)
    found = Content(clause)
    if domain.taken:
        clause.object = mention(c, verb.base, "object", domain.senses)
        found.slots["obj"] = domain.taken
    takes_two = domain.to or any(frame.kind == "di" for frame in verb.frames)
    if takes_two and c.chance(domain.receives):
        clause.recipient = mention(c, verb.base, "recipient", "pg")
        heavy = clause.object is not None and isinstance(clause.object.head, Pronoun)
        clause.recipient_last = domain.to and (c.chance(0.5) or heavy)
        found.slots["obl to" if clause.recipient_last else "iobj"] = "recipient"
    for share, choices in domain.adjuncts:
        if c.chance(share):
            preposition, senses, slot = c.one(choices)
            received = clause.recipient is not None and (slot == "recipient" or preposition == "to")
            if slot not in without and f"obl {preposition}" not in found.slots and not received:
                clause.obliques += ((preposition, mention(c, verb.base, preposition, senses)),)
                found.slots[f"obl {preposition}"] = slot
    if c.chance(0.5):  # rotate the adjuncts, so that any of them may be first
        shift = int(c.draw() * max(1, len(clause.obliques)))
        clause.obliques = clause.obliques[shift:] + clause.obliques[:shift]
    if "time" not in without and c.chance(0.45):
        word = c.chance(0.6)
        event = "" if word else c.weighted("event of request")
        found.time = c.weighted("time of request") if word else (event, mention(c, "when", "after", "e"))
    return found


def mention(c: Context, head: str, slot: str, senses: str) -> NounPhrase:
    """Draw a noun phrase for a slot of the word ``head``, with a noun of one of the ``senses``.

    Pronouns are rare, but a person is often the speaker or the listener. "Tell me to send Anna the letter" and "tell
    Anna to send me the letter" have the same words.
    """
    if "p" in senses and c.chance(US):
        return NounPhrase(YOU if c.chance(0.35) else I if c.chance(0.8) else WE)
    phrase = noun_phrase(c, head, slot, senses)
    while isinstance(phrase.head, Pronoun) and c.chance(0.8):
        phrase = noun_phrase(c, head, slot, senses)
    if isinstance(phrase.head, Noun):
        phrase.determiner = "the" if phrase.determiner == "no" else phrase.determiner
        phrase.exactly = bool(phrase.numeral) and not phrase.determiner and c.chance(0.2)
        if not phrase.adjectives and c.chance(0.12):
            other = c.world.nouns.draw(c, phrase.key, "compound", "tilfe")
            phrase.compound = None if other is phrase.head else other
    return phrase


# --- ways to express a clause


def _put(c: Context, plan: Clause, way: str) -> Clause:
    """Turn a clause into a request of the form ``way``, such as a command or a question with "can you"."""
    if way in ("bid", "may I or can you"):
        way = ("command" if c.chance(0.6) else "can you") if way == "bid" else "may I" if c.chance(0.5) else "can you"
    match way:
        case "command":  # "go …", "please go …"
            plan.mood, plan.please = "imperative", c.chance(0.25)
        case "may I":
            plan.subject, plan.mood = _us(c), "question"
            plan.modal = c.weighted("may I")
        case "can you":
            plan.subject, plan.mood, plan.modal = NounPhrase(YOU), "question", c.weighted("can you")
        case "duty":  # "we must go …"
            plan.subject, plan.modal = _us(c), c.weighted("must")
        case "wish":  # "I want to …", "we would like to …"
            verb = c.one(verbs_of(c, "want", "like", "hope", "plan"))
            plan = _over(Clause("verb", _us(c), verb, modal="would" if verb.base == "like" else ""), plan)
        case "help":  # "help me to …"
            plan = _put(c, _over(Clause("verb", None, verbs_of(c, "help")[0], object=_us(c)), plan), "bid")
    return plan


def _over(plan: Clause, inner: Clause) -> Clause:
    plan.complement, plan.complement_mark = inner, "to"
    return plan


def _us(c: Context) -> NounPhrase:
    return NounPhrase(WE if c.chance(0.25) else I)


def _without_mirrors(plan: Clause, subject: Any) -> None:
    """Replace a speaker or listener who occurs twice: "I will call me" becomes "I will call you"."""
    subject = plan.subject.head if plan.subject is not None else subject
    spoken = [subject]

    def settled(phrase: NounPhrase) -> NounPhrase:
        if phrase.head not in SPEAKERS:
            return phrase
        free = (p for p in (phrase.head, I, YOU) if not any(_same(p, other) for other in spoken))
        spoken.append(next(free, THEY))
        return NounPhrase(spoken[-1])

    plan.object, plan.recipient = (p if p is None else settled(p) for p in (plan.object, plan.recipient))
    plan.obliques = tuple((preposition, settled(phrase)) for preposition, phrase in plan.obliques)
    if plan.complement is not None:
        told = plan.object or plan.recipient
        _without_mirrors(plan.complement, subject if told is None else told.head)
    if plan.adverbial is not None:
        _without_mirrors(plan.adverbial[1], None)


def _same(one: Any, other: Any) -> bool:
    return one is other or (one in (I, WE) and other in (I, WE))


# --- utterances


@dataclass(slots=True)
class Utterance:
    """The plan of an utterance, with its intent.

    Attributes:
        plan: The whole sentence.
        intent: The intent, one of INTENTS.
        content: The clause of the request and its slots. The clause is ``plan`` itself or a complement in it.
    """

    plan: Clause
    intent: str
    content: Content


def utterance(c: Context) -> Utterance:
    """Draw an utterance, whose intent is drawn by the weights of grammar.yaml."""
    act = c.weighted("act")
    makers: dict[str, Callable[[Context], Utterance]] = {"request": _request, "cancel": _cancel, "remind": _remind}
    makers |= {"tell": _message, "check": _check}
    made = makers[act](c) if act in makers else _asked(c, act)
    message = "ccomp" in made.content.slots  # a clause after a message would seem to belong to it
    if c.chance(0.3) and not (message and made.plan.please):
        made.plan.adverbial = (c.weighted("reason"), _aside(c))
        made.plan.adverbial_first = message or (not made.plan.please and c.chance(0.4))
    _without_mirrors(made.plan, YOU if made.plan.mood == "imperative" else None)
    return made


def _aside(c: Context) -> Clause:
    """Draw a clause that gives a reason or a time for another clause."""
    found = content(c, without=("time",))
    if c.chance(0.4):
        _tense(c, _with_agent(c, found))
    else:
        _put(c, found.clause, "duty")
    found.clause.negated = c.chance(0.25)  # so that "not" alone is not a sign of a cancellation
    return found.clause


def _request(c: Context) -> Utterance:
    name = c.weighted("domain")
    found = content(c, name)
    return Utterance(_put(c, found.clause, c.weighted("request")), name, found)


def _cancel(c: Context) -> Utterance:
    found = _told(c) if c.chance(0.3) else content(c)
    plan = _put(c, found.clause, c.weighted("cancel"))
    plan.negated = True
    return Utterance(plan, "cancel", found)


def _remind(c: Context) -> Utterance:
    """Draw "Tell me to …", "remember to …", "do not forget to …"."""
    found = content(c)
    known = verbs_of(c, "remember", "forget")
    verb = c.one(known) if known and c.chance(0.5) else None
    if verb is None:
        tells = _over(Clause("verb", None, verbs_of(c, "tell")[0], recipient=_us(c)), found.clause)
        return Utterance(_put(c, tells, "bid"), "remind", found)
    way = "command" if c.chance(0.6) else "duty"
    plan = _put(c, _over(Clause("verb", None, verb), found.clause), way)
    plan.negated = verb.base == "forget"
    return Utterance(plan, "remind", found)


def _message(c: Context) -> Utterance:
    found = _told(c)
    return Utterance(_put(c, found.clause, c.weighted("message")), "tell", found)


def _told(c: Context) -> Content:
    """Draw a message to somebody else: "tell Anna" with "that …", "to …", "where …" or "who …"."""
    receiver = mention(c, "tell", "recipient", "pg")
    while receiver.head in SPEAKERS:  # "tell me to" is a reminder
        receiver = mention(c, "tell", "recipient", "pg")
    kind, mark, verb = c.weighted("told"), "", verbs_of(c, "tell")[0]
    match kind:
        case "that":
            inner, mark = statement(c), "that" if c.chance(0.75) else ""
            inner.negated = inner.negated or (inner.kind != "exist" and not inner.frequency and c.chance(0.25))
        case "to":
            inner, mark = content(c).place_time(), "to"
        case "where or when":
            inner = _where_or_when(c, content(c, without=(*PLACES, "time"))).clause
        case _:
            inner = _who(c, content(c)).clause
    said = Clause("verb", None, verb, complement=inner, complement_mark=mark, recipient=receiver)
    if mark == "to" and c.chance(0.4) and (ask := verbs_of(c, "ask")):
        said.verb, said.object, said.recipient = ask[0], receiver, None
    return Content(said, {"iobj": "recipient", "obj": "recipient", "ccomp": "message", "xcomp": "message"})


def _asked(c: Context, intent: str) -> Utterance:
    """Draw a direct or indirect question for a place, a time or a person."""
    found = content(c, without={"ask_place": PLACES, "ask_time": ("time",)}.get(intent, ()))
    if intent == "ask_person":
        _who(c, found)
    else:
        _where_or_when(c, found, "where" if intent == "ask_place" else "when")
    found.clause.mood = "question"
    return Utterance(indirect(c, found.clause) if c.chance(0.4) else found.clause, intent, found)


def _who(c: Context, found: Content) -> Content:
    clause = found.clause
    if found.slots.get("obj") == "contact" and c.chance(0.5):
        _with_agent(c, found)
        clause.object, clause.gap = None, "object"
    else:
        clause.gap = "subject"
    clause.question_word = "who"
    return _tense(c, found)


def _where_or_when(c: Context, found: Content, word: str = "") -> Content:
    _tense(c, _with_agent(c, found))
    found.clause.question_word = word or ("where" if c.chance(0.6) else "when")
    return found


def _check(c: Context) -> Utterance:
    """Draw a yes-no question. With "I", "you" and "we" it is about the past, since "can I …" is a request."""
    found = _told(c) if c.chance(0.25) else content(c)
    _tense(c, _with_agent(c, found))
    subject = found.clause.subject
    if subject is not None and subject.head in SPEAKERS:
        found.clause.modal, found.clause.past = "", True
    found.clause.mood = "question"
    return Utterance(found.clause, "check", found)


def _with_agent(c: Context, found: Content) -> Content:
    found.clause.subject = mention(c, found.clause.verb.base, "subject", "pg")
    found.slots["nsubj"] = "agent"
    return found


def _tense(c: Context, found: Content) -> Content:
    clause, level = found.clause, c.draw()
    clause.modal = "will" if level < 0.2 else "can" if level < 0.3 else ""
    clause.past = 0.3 <= level < 0.75
    clause.perfect = 0.7 <= level < 0.8
    if clause.past and isinstance(found.time, str) and c.chance(0.6):
        found.time = "yesterday"
    return found


# --- slots of the phrases


def _tree(c: Context, made: Utterance) -> Node:
    """Build the tree, with the phrase of time after the other adjuncts or at the front."""
    time = made.content.time
    if time is None or made.plan.mood != "declarative" or not c.chance(FRONT):
        made.content.place_time()
        return sentence_node(made.plan)
    root = sentence_node(made.plan)
    root.left.insert(0, Node(time, "ADV", "advmod") if isinstance(time, str) else prepositional_node(*time, "obl"))
    return root


def _tags(root: Node, made: Utterance, words: int) -> list[str]:
    """Return the BIO tags of an utterance. The nodes of its tree must have positions."""
    core, plan = root, made.plan
    while plan is not made.content.clause and plan.complement is not None:
        core, plan = next(node for node in core.children if node.deprel in ("ccomp", "xcomp")), plan.complement
    spans = [span for node in core.children for span in _spans(node, {**made.content.slots, **ASIDES})]
    if core is not root:  # phrases at the front
        spans += [span for node in root.children for span in _spans(node, ASIDES)]
    tags = ["O"] * words
    for slot, (start, stop) in spans:
        tags[start:stop] = [f"B-{slot}"] + [f"I-{slot}"] * (stop - start - 1)
    return tags


def _spans(node: Node, slots: Mapping[str, str]) -> list[tuple[str, Span]]:
    """Return the slots of a phrase, without its preposition and determiner. A number is a separate slot."""
    slot = slots.get(node.relation)
    if slot in WHOLE:
        return [(slot, node.extent(("punct",) if slot == "time" else ("mark", "punct")))]
    if slot is None or node.upos not in ("NOUN", "PROPN"):
        return []
    numbers = [("quantity", child.extent()) for child in node.left if child.deprel == "nummod"]
    return [(slot, node.extent(("case", "det", "nummod", "nmod:poss"))), *numbers]
