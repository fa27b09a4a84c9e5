"""Scores of a parser on gold trees with gold words: ``python -m synthlang.parsing.score ENGINE CONLLU``.

UAS is the share of words with the correct head, and LAS the share with the correct head and label. ``LAS*`` ignores the
subtypes of labels (``nsubj:pass`` counts as ``nsubj``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from synthlang.errors import InputError
from synthlang.parsing.engines import TREE_COLUMNS, Engine, open_engine
from synthlang.sources.base import require_columns
from synthlang.sources.conllu import ConlluSource

Rows = Mapping[str, Sequence[Any]]  # column → values of the words of one sentence
USAGE = "usage: python -m synthlang.parsing.score ENGINE CONLLU"


class ParserScores(NamedTuple):
    """Scores of a parser against gold trees.

    Attributes:
        words: Number of scored words.
        upos: Share of the words with the correct part of speech, 0 to 1.
        uas: Share of the words with the correct head, 0 to 1.
        las: Share of the words with the correct head and label, 0 to 1.
        las_without_subtypes: The share ``las`` if subtypes of labels are ignored, 0 to 1.
    """

    words: int
    upos: float
    uas: float
    las: float
    las_without_subtypes: float


def score(gold: Iterable[Rows], found: Iterable[Rows], punctuation: bool = True) -> ParserScores:
    """Compare the trees and parts of speech of a parser with gold trees over the same words.

    UAS is the share of words with the correct head, and LAS the share of words with the correct head and label
    (Buchholz & Marsi 2006, "CoNLL-X Shared Task on Multilingual Dependency Parsing"). All shares are 0 if no word is
    scored.

    Args:
        gold: The columns of each gold sentence.
        found: The columns of each parsed sentence, with the same words in the same order.
        punctuation: False to leave out words with the gold label ``punct`` or a subtype of it.

    Raises:
        ValueError: The numbers of sentences differ.
    """
    words = upos = heads = labels = plain = 0
    for correct, ours in zip(gold, found, strict=True):
        assert correct["form"] == ours["form"], "both have the same words"
        for at, label in enumerate(correct["deprel"]):
            if not punctuation and label.partition(":")[0] == "punct":
                continue
            head = correct["head"][at] == ours["head"][at]
            words += 1
            upos += correct["upos"][at] == ours["upos"][at]
            heads += head
            labels += head and label == ours["deprel"][at]
            plain += head and label.partition(":")[0] == ours["deprel"][at].partition(":")[0]
    total = max(words, 1)
    return ParserScores(words, upos / total, heads / total, labels / total, plain / total)


def table(engines: Sequence[tuple[str, Engine]], path: Path) -> str:
    """Return a Markdown table with the scores of each engine on each split, with and without punctuation.

    The scores are in percent.

    Args:
        engines: Pairs of the name of an engine in the table and the engine.
        path: A file or folder of CoNLL-U with trees and parts of speech.

    Raises:
        InputError: The treebank cannot be read, or has no trees or no parts of speech.
    """
    source = ConlluSource(path)
    hint = "use a treebank with gold trees and parts of speech"
    require_columns(source, TREE_COLUMNS, str(path), "the score of a parser", hint)
    lines = ["| parser | split | punctuation | words | UPOS | UAS | LAS | LAS* |", "|---|---|---|---|---|---|---|---|"]
    for split in source.splits:
        gold = [dict(sentence.columns) for batch in source.batches(split) for sentence in batch]
        for name, engine in engines:
            found = engine.parse([sentence["form"] for sentence in gold])
            for punctuation in (True, False):
                s = score(gold, found, punctuation)
                numbers = " | ".join(f"{100 * x:.1f}" for x in s[1:])
                lines.append(f"| {name} | {split} | {'yes' if punctuation else 'no'} | {s.words} | {numbers} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Print the scores of an engine on a treebank, and return the exit code, which is 2 for wrong input.

    ``arguments`` are the engine and the CoNLL-U file. If the trees of the engine are converted, their scores before the
    conversion are printed as well.
    """
    if len(arguments) != 2:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        engine, raw = open_engine(arguments[0]), open_engine(arguments[0], convert=False)
        before = [(f"{engine.name}, unconverted", raw)] if raw.fingerprint != engine.fingerprint else []
        print(f"{engine.version}\n\n{table([*before, (engine.name, engine)], Path(arguments[1]))}")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
