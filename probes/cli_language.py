"""The commands of the language engine: derive, parse, order, dictionary, push."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

SourceArgument = Annotated[
    str,
    typer.Argument(
        help="builtin:mini-english[?types=N&sentences=N&seed=N], text:PATH, conllu:PATH[?feats], hf:NAME[:CONFIG], "
        "iob:PATH or slots:PATH."
    ),
]
OutFile = Annotated[Path, typer.Option(help="The file to write.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes; the bytes do not depend on it.")]
Cache = Annotated[Path | None, typer.Option(help="Where parses are kept (default: ~/.cache/synthlang/parses).")]
SOME_LINES = 3


class Engine(StrEnum):
    """The parsers."""

    spacy = "spacy"
    stanza = "stanza"


DEFAULT_MODELS = {Engine.spacy: "en_core_web_sm", Engine.stanza: "en"}


class Unit(StrEnum):
    """What a share counts."""

    type = "type"
    token = "token"  # noqa: S105  a running word, no secret


class Order(StrEnum):
    """Which words come first."""

    uniform = "uniform"
    frequent = "frequent"


class Tokens(StrEnum):
    """Whose words a parse has."""

    source = "source"
    engine = "engine"


def derive(
    source: Annotated[
        str,
        typer.Argument(
            help="A source (as for parse), or a labelled task: nli:, ner:, pos:, parsing:, slots: or qa: with a PATH, "
            "hf:NAME or builtin:mini-english."
        ),
    ],
    language: Annotated[
        str,
        typer.Option(
            help="A name such as trans+inv or trans:0.5+perm, one of synthlang configs derived, or a YAML file."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The data set folder to write; must not exist.")],
    workers: Workers = 1,
    parser: Annotated[
        str | None, typer.Option(help="Give the sentences trees first: spacy:NAME, spacy:FOLDER or stanza:LANG.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option(help="Licence of the source for the card, as the hub names it: cc-by-sa-4.0.")
    ] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option(help="Also give token ids: a number of tokens to train a vocabulary of, or a tokenizer folder."),
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(help="The source whose word counts the language needs (default: the training split)."),
    ] = None,
    field: Annotated[
        list[str], typer.Option(help="A task only: the config mixed has this field derived, the rest not; repeatable.")
    ] = [],  # noqa: B006  typer copies it
    cache: Cache = None,
) -> None:
    """Derive a language and write it as a data set that datasets.load_dataset(DIR) reads."""
    from synthlang.derive import derive_command

    examples = derive_command(
        source,
        language,
        out,
        workers=workers,
        parser=parser,
        fields=field,
        licence=licence,
        vocabulary=vocabulary,
        counts_source=counts,
        cache=cache,
        examples=SOME_LINES,
    )
    for before, after in examples:
        typer.echo(f"  {before}\n→ {after}")


def parse(
    source: SourceArgument,
    out: Annotated[Path, typer.Option(help="The folder to write: train.conllu, dev.conllu, test.conllu.")],
    engine: Annotated[Engine, typer.Option(help="The parser.")] = Engine.spacy,
    model: Annotated[
        str | None,
        typer.Option(
            help="A spaCy pipeline or folder (default: en_core_web_sm), or a language or folder of Stanza (en)."
        ),
    ] = None,
    tokens: Annotated[
        Tokens, typer.Option(help="Keep the words of the source, or cut words and sentences as the parser does.")
    ] = Tokens.source,
    workers: Workers = 1,
    cache: Cache = None,
) -> None:
    """Annotate text with a parser; what a killed run parsed is not parsed again."""
    from synthlang.parsing.command import parse_command

    parse_command(source, f"{engine.value}:{model or DEFAULT_MODELS[engine]}", out, tokens.value, workers, cache)


def push(
    folder: Annotated[Path, typer.Argument(help="A data set folder that derive wrote.")],
    repo: Annotated[str, typer.Argument(help="USER/NAME on the hub.")],
    public: Annotated[bool, typer.Option("--public", help="Make it public (default: private).")] = False,
) -> None:
    """Upload a data set to the hub; nothing is ever uploaded without this command."""
    from synthlang.export import push_to_hub

    typer.echo(push_to_hub(folder, repo, private=not public))


def dictionary(
    spec: Annotated[str, typer.Argument(help="A language (trans, a YAML file), or a MUSE file of a natural pair.")],
    out: Annotated[Path, typer.Option(help="The folder to write: dictionary.txt (MUSE) and manifest.json.")],
    source: Annotated[
        str | None,
        typer.Option(help="The source whose training split is counted; a language needs it, a MUSE file may have it."),
    ] = None,
    coverage: Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of the words in the dictionary.")] = 0.25,
    by: Annotated[Unit, typer.Option(help="What the share counts: types or running words.")] = Unit.type,
    order: Annotated[Order, typer.Option(help="Draw uniformly, or take the most frequent.")] = Order.uniform,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    target_source: Annotated[
        str | None, typer.Option(help="A natural pair: the source of the other language, to restrict the pairs to.")
    ] = None,
) -> None:
    """Draw a bilingual dictionary and write it in MUSE format."""
    from synthlang.dictionary.command import dictionary_command

    dictionary_command(
        spec, source, out, target_source=target_source, coverage=coverage, by=by.value, order=order.value, seed=seed
    )
