"""New subwords of a Unigram model: pieces that make the new text more likely (Kudo 2018, section 3.2).

A word is cut where the sum of log probabilities is largest. The scores of the old pieces stay, so candidates
(what merges of characters give) are tried beside them: cut the text, set each candidate's score by how often it
is used, leave out those that gain least, cut again. The library's own trainer is not used since it
gives other scores in every process. New scores are on the scale of the old ones: moved by what separates the
old pieces' scores from how often the text uses them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tokenizers import Tokenizer

from synthlang.vocabularies.grow import Grown, Task, new_characters, pretokens, token_usage
from synthlang.vocabularies.merges import learn_merges

UNKNOWN_COSTS = 10.0  # more than the rarest piece, as in the library
LONGEST = 16  # characters of a piece
DIGITS = 6  # of a score
START = 3  # candidates for each piece that is wanted
ROUNDS = 4


def grow_unigram(task: Task) -> Grown:
    """The model with at most ``size`` more pieces: characters it lacks, and those that the text gains most from."""
    old: dict[str, float] = dict(task.model["vocab"])
    words = pretokens(task.tokenizer, task.counts)
    characters = _characters(task, words, old)
    candidates = [*characters, *_joined(task, words, old)]
    cuts = {piece: [t.id for t in task.tokenizer.model.tokenize(piece)] for piece in candidates}
    unknown = task.model.get("unk_id")
    values = [score for _, score in task.model["vocab"]]
    floor = min(values)  # a lower one would change what an unknown character costs
    if unknown is not None:
        values[unknown] = floor - UNKNOWN_COSTS
    before = {piece: sum(values[i] for i in cut) for piece, cut in cuts.items()}
    # at first as likely as one of its parts, so that the longest ones are tried
    scores = {piece: max(before[piece] / len(cuts[piece]), floor) for piece in candidates}
    for still in range(ROUNDS - 1, -1, -1):
        usage = _usage(task, words, scores)
        scores = _rescored(task, usage, scores, floor)
        gain = {piece: usage[piece] * (score - before[piece]) for piece, score in scores.items()}
        best = sorted(scores, key=lambda piece: (-gain[piece], piece))
        limit = task.size - len(characters) + (START - 1) * task.size * still // ROUNDS
        kept = [p for p in best if p not in characters and usage[p] >= task.min_frequency and gain[p] > 0]
        scores = {piece: scores[piece] for piece in [*characters, *kept[:limit]]}
    added = [[piece, round(score, DIGITS)] for piece, score in scores.items()]
    pieces = tuple(tuple(i for i in cuts[piece] if i != unknown) for piece in scores)
    return Grown(tuple(scores), pieces, {**task.model, "vocab": [*task.model["vocab"], *added]})


def _characters(task: Task, words: Mapping[str, int], old: Mapping[str, float]) -> dict[str, None]:
    """The characters that the model lacks: all are kept, since without one its words are unknown."""
    spelled = {tuple(word): count for word, count in words.items()}
    return dict.fromkeys(new_characters(spelled, old, task.min_frequency)[: task.size])


def _joined(task: Task, words: Mapping[str, int], old: Mapping[str, float]) -> list[str]:
    """What merges of characters give that the model lacks, the most frequent first."""
    spelled = {tuple(word): count for word, count in words.items()}
    limit = START * task.size
    found: dict[str, None] = {}
    for left, right in learn_merges(spelled, limit + len(old), task.min_frequency):
        piece = "".join(left + right)
        if piece not in old and len(piece) <= LONGEST:
            found[piece] = None
        if len(found) == limit:
            break
    return list(found)


def _usage(task: Task, words: Mapping[str, int], scores: Mapping[str, float]) -> Counter[str]:
    """How often each piece, old or new, stands in the best cuts of the words."""
    vocab = [*task.model["vocab"], *scores.items()]
    whole = json.loads(task.tokenizer.to_str()) | {"model": {**task.model, "vocab": vocab}, "added_tokens": []}
    whole |= {"normalizer": None, "pre_tokenizer": None, "post_processor": None}  # the words are cut out already
    usage = token_usage(Tokenizer.from_str(json.dumps(whole)), words)
    return Counter({vocab[index][0]: count for index, count in usage.items() if index != task.model.get("unk_id")})


def _rescored(task: Task, usage: Counter[str], scores: Mapping[str, float], floor: float) -> dict[str, float]:
    """The log probability of each candidate in the text, on the scale of the old scores."""
    total = usage.total()
    shift = _shift([(old, usage[piece]) for piece, old in task.model["vocab"] if usage[piece]], total)
    used = {piece: math.log(usage[piece] / total) + shift for piece in scores if usage[piece]}
    return {piece: max(used.get(piece, floor), floor) for piece in scores}


def _shift(used: Sequence[tuple[float, int]], total: int) -> float:
    """The median, over the old pieces in a text, of the old score less the log probability in this text."""
    differences = sorted((score - math.log(count / total), count) for score, count in used)
    half = sum(count for _, count in differences) / 2
    for difference, count in differences:
        half -= count
        if half <= 0:
            return difference
    return 0.0
