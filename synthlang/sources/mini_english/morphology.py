"""English inflection: regular rules and a small table of exceptions.

>>> plural("city"), plural("wolf"), verb_forms("plan").past, verb_forms("go").participle
('cities', 'wolves', 'planned', 'gone')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

VOWELS = "aeiou"
PLURALS = {
    **{"child": "children", "man": "men", "woman": "women", "person": "people", "mouse": "mice", "goose": "geese"},
    **{"sheep": "sheep", "fish": "fish", "fisherman": "fishermen", "potato": "potatoes", "leaf": "leaves"},
    **{"knife": "knives", "wolf": "wolves", "thief": "thieves"},
}
# base → past, participle
IRREGULAR = {
    **{"say": ("said", "said"), "see": ("saw", "seen"), "go": ("went", "gone"), "give": ("gave", "given")},
    **{"find": ("found", "found"), "think": ("thought", "thought"), "take": ("took", "taken")},
    **{"make": ("made", "made"), "know": ("knew", "known"), "eat": ("ate", "eaten"), "buy": ("bought", "bought")},
    **{"read": ("read", "read"), "become": ("became", "become"), "tell": ("told", "told"), "run": ("ran", "run")},
    **{"sleep": ("slept", "slept"), "write": ("wrote", "written"), "meet": ("met", "met"), "come": ("came", "come")},
    **{"show": ("showed", "shown"), "hear": ("heard", "heard"), "feel": ("felt", "felt"), "sell": ("sold", "sold")},
    **{"leave": ("left", "left"), "lose": ("lost", "lost"), "win": ("won", "won"), "teach": ("taught", "taught")},
    **{"drink": ("drank", "drunk"), "send": ("sent", "sent"), "build": ("built", "built")},
    **{"fight": ("fought", "fought"), "sing": ("sang", "sung"), "swim": ("swam", "swum"), "break": ("broke", "broken")},
    **{"catch": ("caught", "caught"), "forget": ("forgot", "forgotten"), "lead": ("led", "led")},
    **{
        "drive": ("drove", "driven"),
        "throw": ("threw", "thrown"),
        "hide": ("hid", "hidden"),
        "fall": ("fell", "fallen"),
    },
    **{"bring": ("brought", "brought"), "steal": ("stole", "stolen"), "cut": ("cut", "cut")},
}
# "a university", "an hour": the sound counts, not the letter
CONSONANT_SOUND = ("university", "union", "useful", "useless", "University", "Union", "one")
VOWEL_SOUND = ("honest", "hour")


@dataclass(frozen=True, slots=True)
class VerbForms:
    """The five forms of a verb (go goes went gone going)."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str

    @property
    def all(self) -> tuple[str, ...]:
        """The distinct forms."""
        return tuple(dict.fromkeys((self.base, self.third, self.past, self.participle, self.gerund)))


def plural(noun: str) -> str:
    """The plural of a noun."""
    return PLURALS.get(noun) or _add_s(noun)


def verb_forms(base: str) -> VerbForms:
    """All forms of a verb."""
    past, participle = IRREGULAR.get(base) or (_past(base),) * 2
    return VerbForms(base, _add_s(base), past, participle, _gerund(base))


def takes_an(word: str) -> bool:
    """Whether "an" stands before ``word``."""
    if word in CONSONANT_SOUND:
        return False
    return word in VOWEL_SOUND or word[0].lower() in VOWELS


def _add_s(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in ("go", "do"):
        return word + "es"
    return word[:-1] + "ies" if _consonant_y(word) else word + "s"


def _past(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if _consonant_y(word) else _doubled(word) + "ed"


def _gerund(word: str) -> str:
    if word.endswith("ie"):
        return word[:-2] + "ying"
    if word.endswith("e") and not word.endswith(("ee", "ye", "oe")):
        return word[:-1] + "ing"
    return _doubled(word) + "ing"


def _consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in VOWELS


def _doubled(word: str) -> str:
    """Double the last letter of a short stem: stop → stopp(ed); also of "forget"."""
    short = re.fullmatch(r"[^aeiou]*(qu)?[aeiou][^aeiouwxy]", word)
    return word + word[-1] if short or word == "forget" else word
