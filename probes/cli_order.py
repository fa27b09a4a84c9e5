"""The commands of order models: fit, import, show, evaluate, compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

import synthlang
from probes.cli_options import Commands, argument, option

order = Commands(
    help="Order models of Galactic Dependencies: fit, import, show, evaluate, compare.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Labels = Literal["faithful", "mapped"]
Scheme = Literal["ud1", "ud2"]
Out = Annotated[Path, option("The model file to write; gzipped if it ends in .gz.")]
Model = Annotated[str, argument("A model that comes with synthlang (de, en, fr, ga), or a file.")]
Treebank = Annotated[str, argument("A source with trees, such as conllu:UD-FOLDER.")]
Weight = Annotated[float, option("The weight of the substrate.", min=0.0, max=1.0)]


@order.command("fit")
def fit(
    treebank: Treebank,
    out: Out,
    train: Annotated[list[str], option("A split to learn from (default: train); repeatable.")] = [],  # noqa: B006
    held_out: Annotated[list[str], option("A split to score on (default: test); repeatable.")] = [],  # noqa: B006
    choose_on: Annotated[list[str], option("A split to choose λ on; repeatable.")] = [],  # noqa: B006
    l2: Annotated[list[float], option("λ of the prior; several are tried on --choose-on.")] = [3.0],  # noqa: B006
    max_items: Annotated[int, option("Learn from nodes of up to so many items.", min=2, max=7)] = 6,
    labels: Annotated[Scheme, option("The label scheme of the treebank.")] = "ud2",
    title: Annotated[str, option("The treebank, for the card (default: its folder).")] = "",
    licence: Annotated[str, option("The treebank's licence, for the card.")] = "",
    attribution: Annotated[str, option("The treebank's authors, for the card.")] = "",
) -> None:
    """Fit a model to a treebank: conditional likelihood with an L2 prior. Writes the model and its card."""
    synthlang.fit_order_model(
        treebank,
        out,
        train=train,
        held_out=held_out,
        choose_on=choose_on,
        l2=l2,
        max_items=max_items,
        labels=labels,
        title=title,
        licence=licence,
        attribution=attribution,
    )


@order.command("import")
def convert(
    noun: Annotated[Path, argument("The released model of noun heads, such as fr@N.orm.")],
    verb: Annotated[Path, argument("The released model of verb heads, such as fr@V.orm.")],
    out: Out,
    labels: Annotated[Scheme, option("The label scheme they were fitted with.")] = "ud1",
) -> None:
    """Turn a released pair of .orm files into a model file."""
    model = synthlang.import_order_model(noun, verb, out, labels=labels)
    typer.echo(f"{out}: " + ", ".join(f"{node} {len(weights)} weights" for node, weights in model.weights.items()))


@order.command("show")
def show(
    model: Model,
    conllu: Annotated[Path, option("A CoNLL-U file.")],
    sentence: Annotated[str, option("The sent_id of a sentence, or its number from 1.")],
    node: Annotated[int, option("The id of the head word.")],
    labels: Annotated[Labels, option("Take labels as they stand, or map them to the model's.")] = "faithful",
    substrate: Annotated[str | None, option("A second model to mix in.")] = None,
    substrate_weight: Weight = 0.05,
    temperature: Annotated[float, option("T of p ∝ exp(w · f / T).")] = 1.0,
    corpus_labels: Annotated[Scheme, option("The label scheme of the file, for --labels mapped.")] = "ud2",
    items: Annotated[
        bool, option("Print one object {node, class, items, orders} in the place of the list.", "--items")
    ] = False,
) -> None:
    """Print the probability of every order of a node as JSON: [{"order": [2, 0, 1], "p": 0.4}, …].

    An order lists the items (the head and its dependents) by their index in the text; the items with
    their three views stand on standard error.
    """
    result = synthlang.show_order_model(
        model,
        conllu,
        sentence,
        node,
        labels=labels,
        substrate=substrate,
        substrate_weight=substrate_weight,
        temperature=temperature,
        corpus_labels=corpus_labels,
    )
    if items:
        typer.echo(json.dumps(result, ensure_ascii=False, indent=1))
        return
    for item in result["items"]:
        typer.echo(json.dumps(item, ensure_ascii=False), err=True)
    typer.echo("[\n" + ",\n".join(json.dumps(entry) for entry in result["orders"]) + "\n]")


@order.command("evaluate")
def evaluate(
    model: Model,
    treebank: Treebank,
    held_out: Annotated[list[str], option("A split to score on; repeatable.")] = ["test"],  # noqa: B006
    train: Annotated[list[str], option("A split for the baseline that knows directions only.")] = [],  # noqa: B006
    labels: Annotated[Labels, option("As in show.")] = "mapped",
) -> None:
    """Score a model on a treebank, against uniform and a baseline of directions."""
    found = synthlang.evaluate_order_model(model, treebank, held_out=held_out, train=train, labels=labels)
    typer.echo(json.dumps(found, indent=1))


@order.command("compare")
def compare(
    model: Model,
    parent: Annotated[str, option("The source that is reordered.")],
    target: Annotated[str, option("A treebank of the model's language.")],
    parent_split: Annotated[str, option("Its split.")] = "test",
    target_split: Annotated[str, option("Its split.")] = "test",
    substrate: Annotated[str | None, option("A second model to mix in.")] = None,
    seed: Annotated[int, option("Of the orders that are drawn.", min=0)] = 0,
) -> None:
    """Measure whether a parent that is reordered comes closer to the model's language: dependents before their head."""
    splits = {"parent_split": parent_split, "target_split": target_split}
    result = synthlang.compare_order_model(model, parent, target, **splits, substrate=substrate, seed=seed)
    typer.echo(json.dumps(result, ensure_ascii=False, indent=1))
