"""Transliteration: words in another script, a copy of the vocabulary (ALIGN-MLM, T_trans)."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from synthlang.corpus import Corpus
from synthlang.rewrite import Rewrite
from synthlang.rng import key_of, uniform
from synthlang.scripts import SCRIPTS
from synthlang.transforms.base import Transform


class Transliterate(Transform):
    """Write a share ``strength`` of the word types in ``script``: ``the cat`` → ``тхе цат``.

    A type is chosen by a hash of its form, so the choice is the same in every text and grows
    with the strength. As ids, every token of a chosen word moves by V (see vocabulary.py).
    """

    kind: Literal["transliterate"] = "transliterate"
    script: str = "cyrillic"

    @field_validator("script")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in SCRIPTS:
            raise ValueError(f"must be one of {', '.join(SCRIPTS)}")
        return value

    def chosen(self, form: str, key: int) -> bool:
        """Whether the words of this form are transliterated."""
        return self.strength >= 1.0 or bool(uniform(key_of("type", key, form))[0] < self.strength)

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        """Change the forms of the chosen types; the order stays."""
        script = SCRIPTS[self.script]
        names = corpus.form.names or ()
        chosen = [self.chosen(name, key) for name in names]
        # a word that stays must not look like one that was changed
        script.check_absent(name for name, is_chosen in zip(names, chosen, strict=True) if not is_chosen)
        forms = [script.encode(name) if is_chosen else name for name, is_chosen in zip(names, chosen, strict=True)]
        identity = Rewrite.identity(corpus)
        return Rewrite(identity.offsets, identity.origin, corpus.form.map_names(forms))

    def inverse(self, corpus: Corpus, key: int) -> Rewrite:
        """Write every word of the script in the parent's letters again."""
        del key  # the script itself tells which words were changed
        script = SCRIPTS[self.script]
        identity = Rewrite.identity(corpus)
        forms = [script.decode(name) for name in corpus.form.names or ()]
        return Rewrite(identity.offsets, identity.origin, corpus.form.map_names(forms))
