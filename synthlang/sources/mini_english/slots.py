"""Utterances for slot filling with intent, annotated like the corpus and with a slot on each word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from synthlang.corpus import Sentence
from synthlang.sources.mini_english.realise import Node, Span, columns_of, prepositional_node, sentence_node
from synthlang.sources.mini_english.requests import DOMAINS, INTENTS, Utterance, utterance
from synthlang.sources.mini_english.source import MAX_WORDS, MiniEnglish
from synthlang.sources.mini_english.world import CHOICES, Context

# the slots of what says when or why, in whichever clause of the utterance it stands
ASIDES = {
    **{f"advmod {word}": "time" for word in ("yesterday", *dict(CHOICES["time of request"]))},
    **{f"obl {word}": "time" for word in dict(CHOICES["event of request"])},
    **{f"advcl {word}": "reason" if word == "because" else "time" for word in dict(CHOICES["reason"])},
}
SLOTS = tuple(
    sorted(
        {slot for domain in DOMAINS.values() for _, choices in domain.adjuncts for _, _, slot in choices}
        | {domain.taken for domain in DOMAINS.values() if domain.taken}
        | {"agent", "message", "quantity", "reason", "recipient", "time"}
    )
)
WHOLE = ("message", "reason", "time")  # slots that hold all the words of their phrase
FRONT = 0.3  # how often a phrase of time stands at the front of a statement
__all__ = ["INTENTS", "SLOTS", "SlotSentence", "slot_sentences"]


@dataclass(frozen=True)
class SlotSentence:
    """An annotated utterance (columns as in the corpus, and ``slot``) and its intent."""

    sentence: Sentence
    intent: str


def slot_sentences(source: MiniEnglish, split: str, count: int) -> Iterator[SlotSentence]:
    """``count`` utterances for a split; utterance i is a function of (types, seed, split, i)."""
    return (_utterance(c, index) for index, c in source.contexts(split, count, "slots"))


def _utterance(c: Context, index: int) -> SlotSentence:
    while True:  # ends: most utterances are short
        made = utterance(c)
        root = _tree(c, made)
        columns = columns_of(root)
        if len(columns["form"]) <= MAX_WORDS:
            columns["slot"] = _tags(root, made, len(columns["form"]))
            return SlotSentence(Sentence(index, columns), made.intent)


def _tree(c: Context, made: Utterance) -> Node:
    """The tree, with the phrase of time behind the other adjuncts or at the front."""
    time = made.content.time
    if time is None or made.plan.mood != "declarative" or not c.chance(FRONT):
        made.content.place_time()
        return sentence_node(made.plan)
    root = sentence_node(made.plan)
    root.left.insert(0, Node(time, "ADV", "advmod") if isinstance(time, str) else prepositional_node(*time, "obl"))
    return root


def _tags(root: Node, made: Utterance, words: int) -> list[str]:
    """The BIO tags of an utterance whose tree is placed."""
    core, plan = root, made.plan
    while plan is not made.content.clause and plan.complement is not None:
        core, plan = next(node for node in core.children if node.deprel in ("ccomp", "xcomp")), plan.complement
    spans = [span for node in core.children for span in _spans(node, {**made.content.slots, **ASIDES})]
    if core is not root:  # what stands at the front
        spans += [span for node in root.children for span in _spans(node, ASIDES)]
    tags = ["O"] * words
    for slot, (start, stop) in spans:
        tags[start:stop] = [f"B-{slot}"] + [f"I-{slot}"] * (stop - start - 1)
    return tags


def _spans(node: Node, slots: Mapping[str, str]) -> list[tuple[str, Span]]:
    """The slots of a phrase, without its preposition and determiner; how many there are is a slot of its own."""
    slot = slots.get(node.relation)
    if slot in WHOLE:
        return [(slot, node.extent(("punct",) if slot == "time" else ("mark", "punct")))]
    if slot is None or node.upos not in ("NOUN", "PROPN"):
        return []
    numbers = [("quantity", child.extent()) for child in node.left if child.deprel == "nummod"]
    return [(slot, node.extent(("case", "det", "nummod", "nmod:poss"))), *numbers]
