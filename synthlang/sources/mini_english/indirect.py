"""Indirect questions: "tell me where she lives", "do you know who came ?"."""

from __future__ import annotations

from synthlang.sources.mini_english.closed import WE, YOU, I
from synthlang.sources.mini_english.entries import Verb
from synthlang.sources.mini_english.plan import Clause, NounPhrase
from synthlang.sources.mini_english.world import Context, World

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
