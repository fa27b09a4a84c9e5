"""The commands of the language engine: derive, parse, order, dictionary, push."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import synthlang
from pretrain import push as push_run
from probes.cli_options import argument, names_of, option

SourceArgument = Annotated[
    str,
    argument(
        "builtin:mini-english[?types=N&sentences=N&seed=N], text:PATH, conllu:PATH[?feats], hf:NAME[:CONFIG], "
        "iob:PATH or slots:PATH."
    ),
]
Workers = Annotated[int, option("Processes; the bytes do not depend on it.", min=1)]
Cache = Annotated[Path | None, option("Where parses are kept (default: ~/.cache/synthlang/parses).")]


def derive(
    source: Annotated[
        str,
        argument(
            "A source (as for parse), or a labelled task: nli:, ner:, pos:, parsing:, slots: or qa: with a PATH, "
            "hf:NAME or builtin:mini-english."
        ),
    ],
    language: Annotated[
        str,
        option(
            "A name such as trans+inv or trans:0.5+perm, one of synthlang configs derived, or a YAML file.",
            **names_of("derived"),
        ),
    ],
    out: Annotated[Path, option("The data set folder to write; must not exist.")],
    workers: Workers = 1,
    parser: Annotated[
        str | None, option("Give the sentences trees first: spacy:NAME, spacy:FOLDER or stanza:LANG.")
    ] = None,
    licence: Annotated[
        str | None, option("Licence of the source for the card, as the hub names it: cc-by-sa-4.0.")
    ] = None,
    vocabulary: Annotated[
        str | None, option("Also give token ids: a number of tokens to train a vocabulary of, or a tokenizer folder.")
    ] = None,
    counts: Annotated[
        str | None,
        option("Where words are counted for the language or vocabulary: dev, test or a source (default: train)."),
    ] = None,
    field: Annotated[
        list[str], option("A task only: the config mixed has this field derived, the rest not; repeatable.")
    ] = [],  # noqa: B006  typer copies it
    cache: Cache = None,
) -> None:
    """Derive a language and write it as a data set that datasets.load_dataset(DIR) reads."""
    examples = synthlang.derive(
        source,
        language,
        out,
        workers=workers,
        parser=parser,
        fields=field,
        licence=licence,
        vocabulary=vocabulary,
        counts=counts,
        cache=cache,
    )
    for before, after in examples:
        typer.echo(f"  {before}\n→ {after}")


def parse(
    source: SourceArgument,
    out: Annotated[Path, option("The folder to write: train.conllu, dev.conllu, test.conllu.")],
    engine: Annotated[Literal["spacy", "stanza"], option("The parser.")] = "spacy",
    model: Annotated[
        str | None,
        option("A spaCy pipeline or folder (default: en_core_web_sm), or a language or folder of Stanza (en)."),
    ] = None,
    tokens: Annotated[
        Literal["source", "engine"],
        option("Keep the words of the source, or cut words and sentences anew."),
    ] = "source",
    workers: Workers = 1,
    cache: Cache = None,
) -> None:
    """Annotate text with a parser; what a killed run parsed is not parsed again."""
    synthlang.parse(source, out, engine=engine, model=model, tokens=tokens, workers=workers, cache=cache)


def push(
    folder: Annotated[Path, argument("A data set folder of derive, a finished run, or RUN/export/LANGUAGE.")],
    repo: Annotated[str, argument("USER/NAME on the hub.")],
    public: Annotated[bool, option("Make it public (default: private).", "--public")] = False,
) -> None:
    """Upload a data set or a model to the hub; nothing is ever uploaded without this command."""
    push_any = synthlang.push if (folder / "manifest.json").exists() else push_run
    typer.echo(push_any(folder, repo, public=public))


def dictionary(
    spec: Annotated[str, argument("A language (trans, a YAML file), or a MUSE file of a natural pair.")],
    out: Annotated[Path, option("The folder to write: dictionary.txt (MUSE) and manifest.json.")],
    source: Annotated[
        str | None, option("The source whose training split is counted; a language needs it, a MUSE file may have it.")
    ] = None,
    coverage: Annotated[float, option("The share of the words in the dictionary.", min=0.0, max=1.0)] = 0.25,
    by: Annotated[Literal["type", "token"], option("What the share counts: types or running words.")] = "type",
    order: Annotated[Literal["uniform", "frequent"], option("Draw uniformly, or take the most frequent.")] = "uniform",
    seed: Annotated[int, option("Seed of the draw.", min=0)] = 0,
    target_source: Annotated[
        str | None, option("A natural pair: the source of the other language, to restrict the pairs to.")
    ] = None,
) -> None:
    """Draw a bilingual dictionary and write it in MUSE format."""
    options: dict[str, Any] = {"coverage": coverage, "by": by, "order": order, "seed": seed}
    synthlang.draw_dictionary(spec, out, source=source, target_source=target_source, **options)
