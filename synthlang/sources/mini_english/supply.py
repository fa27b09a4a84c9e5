"""An endless supply of entries for each class: real words first, then generated stems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from synthlang.sources.mini_english import words
from synthlang.sources.mini_english.entries import Adjective, Entry, Frame, Manner, Name, Noun, Verb
from synthlang.sources.mini_english.morphology import plural, verb_forms
from synthlang.sources.mini_english.stems import stems

Draw = Callable[[], float]
TOPIC_WEIGHTS = tuple((rank + 1) ** -0.8 for rank in range(len(words.TOPICS)))
SENSES = "ppptttttllggiiieeeaaff"  # of generated nouns
TOGETHER = 6.0  # how far a seed may move a word in the frequency order


def _shuffled(items: list[tuple[float, Entry]], draw: Draw) -> list[Entry]:
    """Items by their frequency order, moved a little."""
    return [entry for _, entry in sorted(((rank + TOGETHER * draw(), e) for rank, e in items), key=lambda x: x[0])]


def _topic(draw: Draw) -> int:
    """A topic by its weight."""
    level = draw() * sum(TOPIC_WEIGHTS)
    for topic, weight in enumerate(TOPIC_WEIGHTS):
        level -= weight
        if level < 0:
            return topic
    return 0


def real_nouns(draw: Draw) -> list[Entry]:
    """The nouns of the lists; a topic of half the weight has its words at twice the ranks."""
    ranked: list[tuple[float, Entry]] = []
    for topic, name in enumerate(words.TOPICS):
        for sense, text in words.NOUNS[name].items():
            for rank, word in enumerate(text.split()):
                stem = word.rstrip("*")
                noun = Noun(stem, "" if word.endswith("*") else plural(stem), sense, topic)
                ranked.append((8 * rank / TOPIC_WEIGHTS[topic] ** 0.5, noun))
    return _shuffled(ranked, draw)


def real_verbs(draw: Draw) -> list[Entry]:
    """The verbs of the list."""
    ranked: list[tuple[float, Entry]] = []
    for rank, line in enumerate(words.VERBS.strip().splitlines()):
        base, topic, rest = line.split(maxsplit=2)
        frames = tuple(_frame(part.split()) for part in rest.split(";"))
        ranked.append((rank, _verb(base, words.TOPICS.index(topic) if topic != "-" else -1, frames)))
    return _shuffled(ranked, draw)


def _frame(fields: list[str]) -> Frame:
    kind, subject, *rest = fields
    taken = rest.pop(0) if kind in ("tr", "di") else ""
    pairs = tuple((prep, senses) for prep, _, senses in (field.partition(":") for field in rest))
    return Frame(kind, subject, taken, pairs)


def _verb(base: str, topic: int, frames: tuple[Frame, ...]) -> Verb:
    forms = verb_forms(base)
    return Verb(forms.base, forms.third, forms.past, forms.participle, forms.gerund, topic, frames)


def real_adjectives(draw: Draw) -> list[Entry]:
    """The adjectives of the list."""
    lines = [line.split() for line in words.ADJECTIVES.strip().splitlines()]
    ranked: list[tuple[float, Entry]] = [
        (rank, Adjective(form, senses, antonym.strip("-"), _topic(draw)))
        for rank, (form, senses, antonym) in enumerate(lines)
    ]
    return _shuffled(ranked, draw)


def real_manners(draw: Draw) -> list[Entry]:
    """The manner adverbs of the list."""
    lines = [line.split() for line in words.MANNER.strip().splitlines()]
    ranked: list[tuple[float, Entry]] = [
        (rank, Manner(f, antonym.strip("-"), _topic(draw))) for rank, (f, antonym) in enumerate(lines)
    ]
    return _shuffled(ranked, draw)


def real_names(text: str, kind: str, draw: Draw) -> list[Entry]:
    """The names of a list: + joins a compound, = a flat name."""
    sense = {"PER": "p", "LOC": "l", "ORG": "g"}[kind]
    ranked: list[tuple[float, Entry]] = []
    for rank, word in enumerate(text.split()):
        parts = tuple(word.replace("=", "+").split("+"))
        ranked.append((rank, Name(parts, kind, sense, _topic(draw), "compound" if "+" in word else "flat")))
    return _shuffled(ranked, draw)


def generated_nouns(draw: Draw, taken: Callable[[str], bool]) -> Iterator[Entry]:
    """New nouns, one in eight of them a mass noun."""
    countable, mass = stems("noun", draw, taken), stems("mass", draw, taken)
    for _ in count():
        sense = SENSES[int(draw() * len(SENSES))]
        if sense in "fti" and draw() < 0.3:
            yield Noun(next(mass), "", sense, _topic(draw))
        else:
            stem = next(countable)
            yield Noun(stem, plural(stem), sense, _topic(draw))


def generated_verbs(draw: Draw, taken: Callable[[str], bool], nouns: list[Entry]) -> Iterator[Entry]:
    """New verbs; one in five has the stem of a noun ("a walk", "to walk")."""
    templates = [f for e in real_verbs(draw) if isinstance(e, Verb) for f in e.frames]
    fresh, used = stems("verb", draw, taken), set[str]()
    while True:
        base = next(fresh)
        own = [n for n in nouns[-40:] if isinstance(n, Noun) and n.plural and n.singular not in used]
        if own and draw() < 0.2:
            noun = own[int(draw() * len(own))]
            base = noun.singular if taken(noun.plural) and verb_forms(noun.singular).third == noun.plural else base
            base = base if not taken(verb_forms(base).past) else next(fresh)
        used.add(base)
        picked = (templates[int(draw() * len(templates))] for _ in range(1 + (draw() < 0.3)))
        yield _verb(base, _topic(draw), tuple({f.kind: f for f in picked}.values()))


def generated_adjectives(draw: Draw, taken: Callable[[str], bool]) -> Iterator[Entry]:
    """New adjectives, each for one to three senses."""
    for form in stems("adjective", draw, taken):
        senses = "".join(sorted({SENSES[int(draw() * len(SENSES))] for _ in range(3)}))
        yield Adjective(form, senses, "", _topic(draw))


def generated_manners(draw: Draw, taken: Callable[[str], bool]) -> Iterator[Entry]:
    """New manner adverbs in -ly."""
    for stem in stems("adjective", draw, taken):
        form = stem[:-1] + "ily" if stem.endswith("y") else stem + ("ally" if stem.endswith("ic") else "ly")
        if not taken(form):
            yield Manner(form, "", _topic(draw))


def generated_names(kind: str, style: str, draw: Draw, taken: Callable[[str], bool]) -> Iterator[Entry]:
    """New names of one word."""
    for form in stems(style, draw, taken):
        yield Name((form,), kind, {"PER": "p", "LOC": "l", "ORG": "g"}[kind], _topic(draw))
