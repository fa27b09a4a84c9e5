"""Derive synthetic languages from natural ones, and export them as data sets.

Each function corresponds to the command of the same name (``docs/python.md``). A function imports its dependencies
when it is called. A fault that the caller can correct raises ``synthlang.errors.InputError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from synthlang.order.model import OrderModel

__version__ = "0.1.0"


def derive(
    source: str,
    language: str,
    out: str | Path,
    *,
    workers: int = 1,
    parser: str | None = None,
    fields: Sequence[str] = (),
    licence: str | None = None,
    vocabulary: int | str | Path | None = None,
    counts: str | None = None,
    cache: Path | None = None,
    examples: int = 3,
) -> list[tuple[str, str]]:
    """Derive a language from a source or a labelled task, and write a data set folder.

    Args:
        source: A source (``builtin:mini-english?sentences=2000``, ``text:PATH``, …) or a task (``nli:PATH``, …).
        language: A name such as ``trans+inv`` or ``trans:0.5``, an entry of the catalogue, or a YAML file.
        out: The folder to write. A folder that already holds this data set is not changed. An interrupted call for a
            source resumes. ``datasets.load_dataset(out, "derived")`` reads the data set.
        workers: Number of worker processes. The output is identical for any number.
        parser: Parser that adds trees to the sentences first: ``spacy:NAME`` or ``stanza:LANG``.
        fields: Fields of a task that are in the derived language in the configuration ``mixed``. The argument cannot be
            given for a source.
        licence: SPDX id of the licence of the source, for the data set's card (default: the licence that the source
            gives, or else unknown).
        vocabulary: Size of a BPE vocabulary to train (at least 261), or the folder of a tokenizer. The data set then
            also has token ids. The argument cannot be given for a task.
        counts: Split, or another source, whose words are counted for the language and the vocabulary (default: the
            training split).
        cache: Folder in which parses are stored (default: ``~/.cache/synthlang/parses``).
        examples: Largest number of sentences to return.

    Returns:
        The first sentences as pairs (source, derived). The list is empty for a task.

    Raises:
        InputError: The source, the language, the vocabulary or the parser cannot be opened, or they do not fit
            together. The size of the vocabulary is too small. An option does not apply to a source or to a task. The
            task lacks a field, the split to count does not exist, or the licence is not an SPDX id. ``out`` holds other
            content or is being written by another process. No sentence is left.
        DiskError: The data set cannot be written, or a worker process was killed.
    """
    from synthlang.derive_command import derive_command

    return derive_command(
        source,
        language,
        Path(out),
        workers=workers,
        parser=parser,
        fields=tuple(fields),
        licence=licence,
        vocabulary=None if vocabulary is None else str(vocabulary),
        counts=counts,
        cache=cache,
        examples=examples,
    )


def parse(
    source: str,
    out: str | Path,
    *,
    engine: Literal["spacy", "stanza"] = "spacy",
    model: str | None = None,
    tokens: Literal["source", "engine"] = "source",
    morphology: bool = False,
    workers: int = 1,
    cache: Path | None = None,
    devices: Sequence[str] = (),
) -> dict[str, int]:
    """Parse every split of a source, and write each split as CoNLL-U.

    A folder that already holds the same parse is not changed.

    Args:
        source: A source, as for ``derive``.
        out: The folder to write.
        engine: Parser to use.
        model: A pipeline of spaCy or its folder (default: ``en_core_web_sm``), or the code of a language of Stanza
            (default: ``en``).
        tokens: ``source`` keeps the words of the source. With ``engine`` the parser splits the text itself, and the
            source must have only words, no annotation.
        morphology: True to write features and lemmas as well, which some transforms need.
        workers: Number of worker processes. The output is identical for any number.
        cache: Folder in which parses are stored (default: ``~/.cache/synthlang/parses``). A repeated call resumes from
            it.
        devices: CUDA devices for several workers, by their names in ``CUDA_VISIBLE_DEVICES``. Each worker uses one of
            the devices.

    Returns:
        Number of sentences by split.

    Raises:
        InputError: The source or the parser cannot be opened or fails, ``out`` holds other content or is being written
            by another process, or a split has no parsed sentence.
        DiskError: The folder or the cache cannot be written.
    """
    from synthlang.parsing.engines import engine_spec
    from synthlang.parsing.parse_command import parse_command

    return parse_command(source, engine_spec(engine, model), Path(out), tokens, workers, cache, morphology, devices)


def draw_dictionary(
    spec: str,
    out: str | Path,
    *,
    source: str | None = None,
    target_source: str | None = None,
    coverage: float = 0.25,
    by: Literal["type", "token"] = "type",
    order: Literal["uniform", "frequent"] = "uniform",
    seed: int = 0,
) -> dict[str, Any]:
    """Draw a bilingual dictionary and write it as ``dictionary.txt`` in MUSE format.

    Args:
        spec: A language such as ``trans``, which needs a source, or a MUSE file of a natural pair.
        out: The folder to write.
        source: The source whose training split is counted. For a MUSE file, pairs with other source words are left out.
        target_source: Text of the target language of a MUSE file, whose training split is counted. Pairs with other
            target words are left out. The argument cannot be given for a language.
        coverage: Share of the source words that the dictionary covers, 0 to 1.
        by: Unit of the share: ``type`` for word types, or ``token`` for running words. The unit ``token`` needs a
            source.
        order: ``uniform`` draws words at random. ``frequent`` takes the most frequent words first and needs a source.
        seed: Seed of the draw.

    Returns:
        The manifest, with counts, coverage and fingerprints.

    Raises:
        InputError: ``out`` exists or is being written by another process. A setting is invalid, or a source is missing
            or does not apply. An input cannot be read, or no pair of words is left.
        DiskError: The folder cannot be written.
    """
    from synthlang.dictionary.draw_command import dictionary_command

    options: dict[str, Any] = {"coverage": coverage, "by": by, "order": order, "seed": seed}
    return dictionary_command(spec, source, Path(out), target_source=target_source, **options)


def push(folder: str | Path, repo: str, *, public: bool = False) -> str:
    """Upload a data set folder to the hub, and return the address of the repository.

    Args:
        folder: A folder that ``derive`` wrote.
        repo: Name of the repository: USER/NAME.
        public: True to make a new repository public. An existing repository keeps its visibility.

    Raises:
        InputError: The folder is not a complete data set, the name of the repository is not valid, or the upload
            fails.
    """
    from synthlang.export import push_to_hub

    return push_to_hub(Path(folder), repo, private=not public)


def fit_order_model(
    treebank: str,
    out: str | Path,
    *,
    train: Sequence[str] = (),
    held_out: Sequence[str] = (),
    choose_on: Sequence[str] = (),
    l2: Sequence[float] = (3.0,),
    max_items: int = 6,
    labels: Literal["ud1", "ud2"] = "ud2",
    title: str = "",
    licence: str = "",
    attribution: str = "",
) -> OrderModel:
    """Fit an order model to a treebank, and write the model and its card.

    The weights w of the model maximise Σ log p(order in the text | items) − λ/2 · ‖w‖² (Wang & Eisner 2016). The sum is
    over the training nodes. The items of a node are a head and its dependents.

    Args:
        treebank: A source with trees, such as ``conllu:PATH``.
        out: The model file, gzipped if it ends in ``.gz``.
        train: Splits to learn from (default: the training split, or else the dev or test split).
        held_out: Splits to score on (default: test, else dev, unless ``train`` or ``choose_on`` has it).
        choose_on: Splits on which λ is chosen. Several values of ``l2`` need them.
        l2: Values of λ, above 0.
        max_items: Largest number of items of a training node, 2 to 8.
        labels: The label scheme of the treebank.
        title: Title of the treebank, for the card.
        licence: Licence of the treebank, for the card.
        attribution: Authors of the treebank, for the card.

    Returns:
        The model.

    Raises:
        InputError: The treebank has no trees, lacks a split or has no node to learn from. A split is named twice, or is
            both learned from and held out. A value is not allowed. The name of ``out`` cannot be that of a model file,
            the card would replace another file, or another process writes ``out``.
        DiskError: The model or its card cannot be written.
    """
    from synthlang.order.model_commands import order_fit
    from synthlang.progress import Display

    about = {"title": title, "licence": licence, "attribution": attribution}
    with Display() as display:
        splits = train, held_out, choose_on
        model = order_fit(treebank, Path(out), *splits, l2, labels, max_items, **about, report=display.report)
        display.message(f"{out}: {model.content}; its card is beside it")
    return model


def import_order_model(
    noun: str | Path, verb: str | Path, out: str | Path, *, labels: Literal["ud1", "ud2"] = "ud1"
) -> OrderModel:
    """Convert the two released files of an order model to one model file.

    Args:
        noun: File of the noun nodes, such as ``fr@N.orm``.
        verb: File of the verb nodes, such as ``fr@V.orm``.
        out: The model file, gzipped if it ends in ``.gz``.
        labels: The label scheme of the released files.

    Returns:
        The model.

    Raises:
        InputError: A file cannot be read or is not a file of a released model, or ``out`` cannot be a file name.
        DiskError: The model file cannot be written.
    """
    from synthlang.order.model import import_orm

    model = import_orm(Path(noun), Path(verb), Path(out).name.partition(".")[0], labels)
    model.save(Path(out))
    return model


def show_order_model(
    model: str,
    conllu: str | Path,
    sentence: str,
    node: int,
    *,
    labels: Literal["faithful", "mapped"] = "faithful",
    substrate: str | None = None,
    substrate_weight: float = 0.05,
    temperature: float = 1.0,
    corpus_labels: Literal["ud1", "ud2"] = "ud2",
) -> dict[str, Any]:
    """Return the probability of every order of a head and its dependents.

    The probability of an order with the features f is p ∝ exp(w · f / T). The weights are w = (1 − m) · w_model +
    m · w_substrate (Wang & Eisner 2016, equation 1 and section 6).

    Args:
        model: A model that comes with the package (``de``, ``en``, ``fr``, ``ga``), or a file.
        conllu: A CoNLL-U file.
        sentence: The ``sent_id`` of a sentence, or its number from 1.
        node: The id of the head word.
        labels: ``faithful`` looks labels up unchanged, and ``mapped`` converts them to the model's scheme first.
        substrate: A second model to mix in.
        substrate_weight: Weight m of the second model, 0 to 1.
        temperature: Temperature T, a number above 0.
        corpus_labels: The label scheme of the file, for ``labels="mapped"``.

    Returns:
        A dictionary with the id ``node`` of the head, the ``class`` of the node (``N`` or ``V``), its ``items`` in
        source order, and its ``orders``. Each of the orders has the indices of the items (``order``) and the
        probability ``p``. The most probable order comes first.

    Raises:
        InputError: A model or the file cannot be read, the sentence or the node does not exist, the model cannot order
            the node, or a setting is not allowed.
    """
    from synthlang.order.model_commands import show

    mixed = substrate, substrate_weight, temperature
    return show(model, Path(conllu), sentence, node, labels, *mixed, corpus_labels)


def evaluate_order_model(
    model: str,
    treebank: str,
    *,
    held_out: Sequence[str] = ("test",),
    train: Sequence[str] = (),
    labels: Literal["faithful", "mapped"] = "mapped",
) -> dict[str, Any]:
    """Score an order model on a treebank by the mean log probability of the order of a node.

    Args:
        model: A model that comes with the package (``de``, ``en``, ``fr``, ``ga``), or a file.
        treebank: A source with trees, such as ``conllu:PATH``.
        held_out: Splits to score on.
        train: Splits for a second baseline, the direction of each dependent. The first baseline, uniform orders, needs
            no text.
        labels: ``faithful`` looks labels up unchanged, and ``mapped`` converts them to the model's scheme first.

    Returns:
        A dictionary of scores for each class of nodes that the model has, ``N`` or ``V``, and for ``all`` nodes. Log
        probabilities are in nats (see ``synthlang.order.evaluate.evaluate`` for the keys).

    Raises:
        InputError: The model cannot be read, ``labels`` has an unknown value, or the treebank has no trees or lacks a
            split.
    """
    from synthlang.order.model_commands import order_evaluate

    return order_evaluate(model, treebank, held_out, train, labels)


def compare_order_model(
    model: str,
    parent: str,
    target: str,
    *,
    parent_split: str = "test",
    target_split: str = "test",
    substrate: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure the distance between two treebanks before and after an order model reorders the source treebank.

    The distance is the mean of |p − q| over relations. For each relation, p is the share of dependents that precede
    their head in the source treebank, and q is this share in the target treebank. Only relations with at least 20
    dependents in both treebanks count.

    Args:
        model: A model that comes with the package (``de``, ``en``, ``fr``, ``ga``), or a file.
        parent: The source treebank, which is reordered, such as ``conllu:PATH``.
        target: The treebank of the language that the model imitates.
        parent_split: Split of the source treebank.
        target_split: Split of the target treebank.
        substrate: A second model to mix in, with the weight 0.05.
        seed: Seed for sampling word orders.

    Returns:
        The result of ``synthlang.order.evaluate.closeness``, such as the shares of each relation (``pairs``) and the
        distances ``before`` and ``after``, 0 to 1.

    Raises:
        InputError: A model cannot be read, or a treebank has no trees or lacks the split.
    """
    from synthlang.order.model_commands import order_compare

    return order_compare(parent, target, model, parent_split, target_split, seed, substrate=substrate)
