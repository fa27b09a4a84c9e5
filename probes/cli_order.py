"""The commands of order models: fit, import, show, evaluate, compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

import synthlang
from probes.cli_options import Commands, argument, option

order = Commands(
    help="Work with word-order models of Galactic Dependencies: fit, import, show, compare and evaluate them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Labels = Literal["faithful", "mapped"]
Scheme = Literal["ud1", "ud2"]
Out = Annotated[Path, option("Model file to write, gzipped if its name ends in .gz.")]
Model = Annotated[str, argument("Order model: built-in (de, en, fr, ga), or a file.")]
Treebank = Annotated[str, argument("Source with trees, such as conllu:UD-FOLDER.")]
Weight = Annotated[float, option("Weight of the substrate in the mixture, from 0 to 1.", min=0.0, max=1.0)]


@order.command("fit")
def fit(
    treebank: Treebank,
    out: Out,
    train: Annotated[list[str], option("Training split (default: train, else dev or test; repeatable).")] = [],  # noqa: B006
    held_out: Annotated[
        list[str],
        option("Evaluation split (default: test, else dev, unless --train or --choose-on has it; repeatable)."),
    ] = [],  # noqa: B006
    choose_on: Annotated[list[str], option("Split on which λ is chosen (default: none; repeatable).")] = [],  # noqa: B006
    l2: Annotated[
        list[float],
        option("Weight λ of the L2 prior, above 0. The best of several weights is chosen on --choose-on (repeatable)."),
    ] = [3.0],  # noqa: B006
    max_items: Annotated[
        int, option("Maximum number of items in a training node (the head and its dependents).", min=2, max=8)
    ] = 6,
    labels: Annotated[Scheme, option("Label scheme of the treebank: ud1 or ud2.")] = "ud2",
    title: Annotated[str, option("Name of the treebank for the model card (default: its folder).")] = "",
    licence: Annotated[str, option("Licence of the treebank for the model card (default: none).")] = "",
    attribution: Annotated[str, option("Authors of the treebank for the model card (default: none).")] = "",
) -> None:
    """Fit an order model to a treebank. The fit maximises conditional likelihood with an L2 prior."""
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
    noun: Annotated[Path, argument("Released model of noun heads, such as fr@N.orm.")],
    verb: Annotated[Path, argument("Released model of verb heads, such as fr@V.orm.")],
    out: Out,
    labels: Annotated[Scheme, option("Label scheme of the released models: ud1 or ud2.")] = "ud1",
) -> None:
    """Convert a released model (two .orm files) to a model file."""
    model = synthlang.import_order_model(noun, verb, out, labels=labels)
    typer.echo(f"{out}: " + ", ".join(f"{node} {len(weights)} weights" for node, weights in model.weights.items()))


@order.command("show")
def show(
    model: Model,
    conllu: Annotated[Path, option("CoNLL-U file with the sentence.")],
    sentence: Annotated[str, option("Sentence to show: its sent_id, or its number from 1.")],
    node: Annotated[int, option("Head word to show: its id in the sentence, from 1.")],
    labels: Annotated[Labels, option("Relations: faithful (as in the file) or mapped (as in the model).")] = "faithful",
    substrate: Annotated[str | None, option("Substrate: a second model to mix in (default: none).")] = None,
    substrate_weight: Weight = 0.05,
    temperature: Annotated[float, option("Temperature T in p ∝ exp(w · f / T), above 0.")] = 1.0,
    corpus_labels: Annotated[Scheme, option("Label scheme of the file, used by --labels mapped: ud1 or ud2.")] = "ud2",
    items: Annotated[
        bool, option("JSON output as one object {node, class, items, orders} instead of a list.", "--items")
    ] = False,
) -> None:
    """Print the probability of every order of a node as JSON.

    An entry is {"order": [2, 0, 1], "p": 0.4}. An order lists the items (the head and its dependents) by their index in
    the text. The items themselves, with three views of each, go to standard error.
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
    held_out: Annotated[list[str], option("Evaluation split (repeatable).")] = ["test"],  # noqa: B006
    train: Annotated[
        list[str],
        option("Training split of the direction baseline (default: none, no such baseline; repeatable)."),
    ] = [],  # noqa: B006
    labels: Annotated[
        Labels, option("Relations: faithful (as in the treebank) or mapped (as in the model).")
    ] = "mapped",
) -> None:
    """Score a model on a treebank.

    The uniform baseline gives all orders the same probability. The direction baseline only learns on which side of
    its head a dependent stands.
    """
    found = synthlang.evaluate_order_model(model, treebank, held_out=held_out, train=train, labels=labels)
    typer.echo(json.dumps(found, indent=1))


@order.command("compare")
def compare(
    model: Model,
    parent: Annotated[str, option("Source with trees to reorder.")],
    target: Annotated[str, option("Treebank in the language of the model.")],
    parent_split: Annotated[str, option("Split of --parent.")] = "test",
    target_split: Annotated[str, option("Split of --target.")] = "test",
    substrate: Annotated[str | None, option("Substrate: a second model to mix in (default: none).")] = None,
    seed: Annotated[int, option("Seed for sampling word orders.", min=0)] = 0,
) -> None:
    """Compare reordered text with the treebank of a model.

    For each relation, the share of dependents before their head is compared with the target treebank.
    """
    splits = {"parent_split": parent_split, "target_split": target_split}
    result = synthlang.compare_order_model(model, parent, target, **splits, substrate=substrate, seed=seed)
    typer.echo(json.dumps(result, ensure_ascii=False, indent=1))
