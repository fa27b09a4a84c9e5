"""The tokens of one source, and exact copies of them for each script at V, 2V, …"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synthlang.language import Language
from synthlang.scripts import Script
from synthlang.subwords import Subwords
from synthlang.transforms import Reorder, Transliterate, Typology
from synthlang.transforms.base import Reordering
from synthlang.vocabularies.space import OURS, IdSpace, MemberTokenizer
from synthlang.vocabulary import Vocabulary, parallel_tokenizer

KEEP_FORMS = (Reordering, Reorder, Typology)  # transforms that only move words


def copied_space(names: Sequence[str], languages: Sequence[Language], vocabulary: Vocabulary) -> IdSpace:
    """The space of a source's vocabulary and its copies; languages in the same script share one."""
    V = vocabulary.size
    scripts: dict[str, Script] = {}
    for language in languages:
        if language.script is not None:
            scripts.setdefault(language.script.name, language.script)
    offsets = {name: V * place for place, name in enumerate(scripts, 1)}
    made = {name: parallel_tokenizer(vocabulary.parent, script, offsets[name]) for name, script in scripts.items()}
    members = []
    for name, language in zip(names, languages, strict=True):
        script = language.script
        offset = offsets[script.name] if script else 0
        tokenizer = made[script.name] if script else vocabulary.parent
        subwords = Subwords(vocabulary, script) if language.on_tokens else None
        ids = _ids(V, offset, always=written_whole(language))
        members.append(MemberTokenizer(name, tokenizer, ids, subwords, moved=offset - V if offset else 0))
    places = tuple(offsets[language.script.name] if language.script else 0 for language in languages)
    return IdSpace("copied", V * (1 + len(scripts)), OURS, tuple(members), places, V)


def _ids(V: int, offset: int, always: bool) -> NDArray[np.int64]:
    """The specials and the tokens of the parent, of the copies at ``offset``, or of both."""
    own = np.arange(V, dtype=np.int64)
    if not offset:
        return own
    specials, copies = own[: len(OURS.all)], own[len(OURS.all) :] + offset
    return np.concatenate([specials if always else own, copies])


def written_whole(language: Language) -> bool:
    """Whether every word of the language is in its script, so that no token of the parent can occur."""
    at = next((i for i, t in enumerate(language.transforms) if isinstance(t, Transliterate)), None)
    if at is None:
        return False
    step, *after = language.transforms[at:]
    assert isinstance(step, Transliterate)
    return step.strength >= 1.0 and step.types is None and all(isinstance(t, KEEP_FORMS) for t in after)
