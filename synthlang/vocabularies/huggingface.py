"""The tokenizer of a checkpoint as the ids of a run, as it is or with new subwords."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synthlang.language import Language
from synthlang.store import Store
from synthlang.vocabularies.build import Member, bind_words, check_members
from synthlang.vocabularies.checkpoint import read_checkpoint
from synthlang.vocabularies.extension import Extension, extend_tokenizer
from synthlang.vocabularies.space import IdSpace, MemberTokenizer
from synthlang.vocabularies.spec import ExtendSpec
from synthlang.vocabularies.training import text_of


def hf_id_space(
    model: str, languages: Sequence[Member], store: Store, extend: ExtendSpec | None = None
) -> tuple[IdSpace, tuple[Language, ...], Extension | None]:
    """The ids of the checkpoint ``model``, a folder or a name, for every member (name, source, language).

    ``size`` is the number of rows of its embedding, and of the new rows after them. Raises InputError for a
    tokenizer that does not fit (see ``read_checkpoint``), languages of tokens, and an extension that adds nothing.
    """
    check_members(languages)
    bound = bind_words(languages, f"start from {model}")
    checkpoint = read_checkpoint(model)
    tokenizer, size, made = checkpoint.tokenizer, checkpoint.rows, None
    ids = np.unique(np.fromiter(tokenizer.get_vocab(with_added_tokens=True).values(), np.int64))
    names = [name for name, _, _ in languages]
    if extend is not None:
        texts = [text_of(source, language) for (_, source, _), language in zip(languages, bound, strict=True)]
        tokenizer, made = extend_tokenizer(checkpoint, extend, dict(zip(names, texts, strict=True)), store)
        ids, size = np.concatenate([ids, made.ids]), size + len(made.ids)
    settings, specials = checkpoint.settings, checkpoint.specials
    members = tuple(MemberTokenizer(n, tokenizer, ids, settings=settings, specials=specials) for n in names)
    return IdSpace("checkpoint", size, specials, members), bound, made
