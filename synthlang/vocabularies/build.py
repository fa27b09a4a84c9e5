"""From settings and members to the ids of a run, for the kinds that are trained here."""

from __future__ import annotations

from collections.abc import Sequence

from synthlang.errors import InputError
from synthlang.language import Language, bind_language, check_source
from synthlang.prefix_vocabulary import check_prefix
from synthlang.sources.base import Source, check_split
from synthlang.store import Store
from synthlang.vocabularies.copied import copied_space
from synthlang.vocabularies.space import IdSpace
from synthlang.vocabularies.spec import VocabularySpec
from synthlang.vocabularies.training import text_of, trained
from synthlang.vocabularies.union import joined_space, joint_space, prefixed_space

Member = tuple[str, Source, Language]


def build_id_space(
    spec: VocabularySpec, languages: Sequence[Member], store: Store
) -> tuple[IdSpace, tuple[Language, ...]]:
    """The ids of members (name, source, language), read from the store or trained; and the languages, bound.

    Raises InputError if a source has no training split or lacks a column that its language reads, and for what
    a kind cannot do: copied with several sources, languages of tokens in another kind, a name that is no prefix.
    """
    check_members(languages)
    if spec.kind == "copied":
        _check_one_source(languages)
        _, source, _ = languages[0]
        vocabulary = trained(spec, [(source, None)], store)
        bound = tuple(bind_language(language, source, vocabulary) for _, source, language in languages)
        return copied_space([name for name, _, _ in languages], bound, vocabulary), bound
    names = [name for name, _, _ in languages]
    for name in names if spec.kind == "prefixed" else ():
        check_prefix(name)  # before any training
    bound = bind_words(languages, f"vocabulary.kind {spec.kind}")
    texts = [text_of(source, language) for (_, source, _), language in zip(languages, bound, strict=True)]
    if spec.kind == "joint":
        return joint_space(names, trained(spec, texts, store).parent), bound
    parents = [trained(spec, [text], store).parent for text in texts]
    return (joined_space if spec.kind == "joined" else prefixed_space)(names, parents), bound


def check_members(languages: Sequence[Member]) -> None:
    """Raise InputError unless the names differ and each source has the split and the columns that are read."""
    if not languages:
        raise InputError("a vocabulary needs at least one language")
    names = [name for name, _, _ in languages]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(f"two languages of the run have the name {twice!r}; give them different ones")
    for name, source, language in languages:
        check_split(source, "train", f"the source of {name}")
        check_source(language, source, f"the source of {name}")


def bind_words(languages: Sequence[Member], where: str) -> tuple[Language, ...]:
    """The languages, bound to their sources; InputError for one of tokens, which only the kind copied has."""
    for name, _, language in languages:
        if language.on_tokens:
            raise InputError(
                f"{where}: {name} has a transform with unit: token, whose tokens are those of one source; "
                "use vocabulary.kind copied, or unit: word"
            )
    return tuple(bind_language(language, source) for _, source, language in languages)


def _check_one_source(languages: Sequence[Member]) -> None:
    first, source, _ = languages[0]
    for name, other, _ in languages[1:]:
        if other.fingerprint != source.fingerprint:
            raise InputError(
                f"vocabulary.kind copied gives every language the tokens of one source, but {name} reads another "
                f"one than {first}; choose joint, joined or prefixed"
            )
