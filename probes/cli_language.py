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
        "Source: builtin:mini-english[?types=N&sentences=N&seed=N], text:PATH, conllu:PATH[?feats], hf:NAME[:CONFIG], "
        "iob:PATH or slots:PATH."
    ),
]
Workers = Annotated[int, option("Number of worker processes. The output is identical for any number.", min=1)]
Cache = Annotated[Path | None, option("Folder of the cached parses (default: ~/.cache/synthlang/parses).")]


def derive(
    source: Annotated[
        str,
        argument(
            "Source (as for parse), or labelled task: nli:, ner:, pos:, parsing:, slots: or qa: with a PATH, "
            "hf:NAME or builtin:mini-english."
        ),
    ],
    language: Annotated[
        str,
        option(
            "Derived language: name (trans+inv, trans:0.5+perm), entry of synthlang configs derived, or YAML file.",
            **names_of("derived"),
        ),
    ],
    out: Annotated[Path, option("Data set folder to write. It must not exist.")],
    workers: Workers = 1,
    parser: Annotated[
        str | None,
        option("Parser for sentences without trees: spacy:NAME, spacy:FOLDER or stanza:LANG (default: none)."),
    ] = None,
    licence: Annotated[
        str | None,
        option("Hugging Face name of the source's licence, for the card, such as cc-by-sa-4.0 (default: none)."),
    ] = None,
    vocabulary: Annotated[
        str | None,
        option("Vocabulary for token ids: its size, to train one, or a tokenizer folder (default: no token ids)."),
    ] = None,
    counts: Annotated[
        str | None,
        option("Text for the word counts of the language or vocabulary: dev, test or a source (default: train)."),
    ] = None,
    field: Annotated[
        list[str], option("Field of a task that is derived in the configuration mixed (default: none; repeatable).")
    ] = [],  # noqa: B006  typer copies it
    cache: Cache = None,
) -> None:
    """Derive a language and write it as a data set for datasets.load_dataset(DIR)."""
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
    out: Annotated[Path, option("Folder to write: train.conllu, dev.conllu, test.conllu.")],
    engine: Annotated[Literal["spacy", "stanza"], option("Parser: spacy or stanza.")] = "spacy",
    model: Annotated[
        str | None,
        option("Pipeline of spaCy, or language of Stanza, or a folder (default: en_core_web_sm, en)."),
    ] = None,
    tokens: Annotated[
        Literal["source", "engine"],
        option("Tokenization: words of the source, or words and sentences of the engine."),
    ] = "source",
    workers: Workers = 1,
    cache: Cache = None,
) -> None:
    """Annotate text with a parser. A run that was killed continues where it stopped."""
    synthlang.parse(source, out, engine=engine, model=model, tokens=tokens, workers=workers, cache=cache)


def push(
    folder: Annotated[Path, argument("Data set folder of derive, finished run, or RUN/export/LANGUAGE.")],
    repo: Annotated[str, argument("Repository on the hub: USER/NAME.")],
    public: Annotated[bool, option("Public repository (default: private).", "--public")] = False,
) -> None:
    """Upload a data set or a model to the hub. No other command uploads anything."""
    push_any = synthlang.push if (folder / "manifest.json").exists() else push_run
    typer.echo(push_any(folder, repo, public=public))


def dictionary(
    spec: Annotated[str, argument("Language (trans, a YAML file), or MUSE file of a natural pair.")],
    out: Annotated[Path, option("Folder to write: dictionary.txt (MUSE) and manifest.json.")],
    source: Annotated[
        str | None, option("Source for the word counts, from its training split (default: none). A language needs it.")
    ] = None,
    coverage: Annotated[float, option("Share of the words in the dictionary.", min=0.0, max=1.0)] = 0.25,
    by: Annotated[
        Literal["type", "token"], option("Unit of the share: word types or running words (tokens).")
    ] = "type",
    order: Annotated[
        Literal["uniform", "frequent"], option("Selection of the words: uniform at random, or the most frequent.")
    ] = "uniform",
    seed: Annotated[int, option("Seed for sampling the words.", min=0)] = 0,
    target_source: Annotated[
        str | None, option("Source of the other language of a natural pair, which restricts the pairs (default: none).")
    ] = None,
) -> None:
    """Sample a bilingual dictionary and write it in MUSE format."""
    options: dict[str, Any] = {"coverage": coverage, "by": by, "order": order, "seed": seed}
    synthlang.draw_dictionary(spec, out, source=source, target_source=target_source, **options)
