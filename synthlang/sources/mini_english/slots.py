"""Utterances for slot filling with intent, annotated like the corpus and with a slot on each word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from synthlang.corpus import Sentence
from synthlang.errors import InputError
from synthlang.sources.base import check_split
from synthlang.sources.mini_english.realise import columns_of, prepositional_node, sentence_node
from synthlang.sources.mini_english.requests import (
    DOMAINS,
    INTENTS,
    LINKS,
    TIMES,
    WHEN,
    Utterance,
    place_time,
    utterance,
)
from synthlang.sources.mini_english.source import MAX_WORDS, NAME, MiniEnglish
from synthlang.sources.mini_english.tree import Node, Span, children, extent, relation
from synthlang.sources.mini_english.world import Context, context_of

# the slots of what says when or why, in whichever clause of the utterance it stands
ASIDES = {
    **{f"advmod {word}": "time" for word in ("yesterday", *(word for word, _ in TIMES))},
    **{f"obl {word}": "time" for word, _ in WHEN},
    **{f"advcl {word}": "reason" if word == "because" else "time" for word, _ in LINKS},
}
SLOTS = tuple(
    sorted(
        {a.slot for domain in DOMAINS.values() for choice in domain.choices for a in choice.adjuncts}
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
    check_split(source, split, NAME)
    if count < 0:
        raise InputError(f"{NAME}: the number of utterances must be 0 or more, not {count}")
    return (_utterance(source, split, index) for index in range(count))


def _utterance(source: MiniEnglish, split: str, index: int) -> SlotSentence:
    c = context_of(source.world, source.seed, source.types, split, index, "slots")
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
    front = time is not None and made.plan.mood == "declarative" and c.chance(FRONT)
    if not front:
        place_time(made.content)
    root = sentence_node(made.plan)
    if front and time is not None:
        root.left.insert(0, Node(time, "ADV", "advmod") if isinstance(time, str) else prepositional_node(*time, "obl"))
    return root


def _tags(root: Node, made: Utterance, words: int) -> list[str]:
    """The BIO tags of an utterance whose tree is placed."""
    core = root
    for _ in range(made.depth):
        core = next(child for child in children(core) if child.deprel in ("ccomp", "xcomp"))
    spans = [span for node in children(core) for span in _spans(node, {**made.content.slots, **ASIDES})]
    if core is not root:  # what stands at the front
        spans += [span for node in children(root) for span in _spans(node, ASIDES)]
    tags = ["O"] * words
    for slot, (start, stop) in spans:
        tags[start:stop] = [f"B-{slot}"] + [f"I-{slot}"] * (stop - start - 1)
    return tags


def _spans(node: Node, slots: Mapping[str, str]) -> list[tuple[str, Span]]:
    """The slots of a phrase, without its preposition and determiner; how many there are is a slot of its own."""
    slot = slots.get(relation(node))
    if slot in WHOLE:
        without = ("punct",) if slot == "time" else ("mark", "punct")
        return [(slot, extent(node, without))]
    if slot is None or node.upos not in ("NOUN", "PROPN"):
        return []
    number = next((child for child in node.left if child.deprel == "nummod"), None)
    spans = [(slot, extent(node, ("case", "det", "nummod", "nmod:poss")))]
    if number is not None:
        spans.append(("quantity", extent(number)))
    return spans
