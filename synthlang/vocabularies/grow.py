"""Learn new subwords for a tokenizer from the words of a text, by the tokenizer's own algorithm.

The library's BPE trainer starts from characters only, and its WordPiece and Unigram trainers are not deterministic.
Each symbol (a character or a token of a checkpoint) is therefore written as one private character, and plain BPE is
trained on these characters.

BPE: The words are cut as the checkpoint cuts them, and further merges are learned on its tokens. The new merges come
after the old ones, so no word gets more pieces than before.

WordPiece (E-mBERT, Wang et al. 2020, section 2): A vocabulary of the new text is learned from characters, and the
tokens that the checkpoint lacks are added. A word is cut from the left into the longest known tokens, so old words may
be cut in a new way.

Unigram (Kudo 2018, section 3.2): A word is cut where the sum of log probabilities is largest. The old pieces keep their
scores, and candidates (merged characters) are added. Several rounds cut the text, score each candidate by its frequency
and drop the candidates that gain least. New scores are shifted to the scale of the old ones.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from tokenizers import Encoding, Tokenizer, models, pre_tokenizers, trainers

from synthlang.scripts import byte_characters
from synthlang.vocabulary import LONGEST_LEARNED, Vocabulary

Symbols = tuple[str, ...]

FIRST = 0x10000  # code points from here on are no spaces and no surrogates
REPEATED = 1000  # words on a line


def learn_merges(words: Mapping[Symbols, int], limit: int, min_frequency: int) -> list[tuple[Symbols, Symbols]]:
    """Return at most ``limit`` merges of pairs that occur at least ``min_frequency`` times, in the order learned.

    ``words`` maps words, as tuples of symbols, to their counts. A merge is (left, right), each with the symbols that
    earlier merges have joined. A word of more than LONGEST_LEARNED symbols counts as several.
    """
    symbols = sorted({symbol for word in words for symbol in word})
    assert len(symbols) < 0x110000 - FIRST, "more symbols than private characters"
    written = {symbol: chr(FIRST + i) for i, symbol in enumerate(symbols)}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    size = len(symbols) + limit
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=min_frequency, special_tokens=[], show_progress=False)
    spelled: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(0, len(word), LONGEST_LEARNED):
            spelled["".join(written[symbol] for symbol in word[start : start + LONGEST_LEARNED])] += count
    tokenizer.train_from_iterator(lines_of(spelled), trainer)
    pairs: Sequence[Sequence[str]] = json.loads(tokenizer.to_str())["model"]["merges"]

    def read(text: str) -> Symbols:
        return tuple(symbols[ord(char) - FIRST] for char in text)

    return [(read(left), read(right)) for left, right in pairs]


def lines_of(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield lines of one repeated word each, in which every word occurs ``counts[word]`` times in all."""
    for word, count in counts.items():
        for start in range(0, count, REPEATED):
            yield " ".join([word] * min(count - start, REPEATED))


AT_ONCE = 10_000  # words that are encoded at a time
COVERAGE = 0.9995
"""Share of the characters of a text that get tokens. The rarest characters, as in foreign names, get no token."""


@dataclass(frozen=True)
class GrowTask:
    """New subwords to learn for a tokenizer.

    Attributes:
        tokenizer: The tokenizer to extend.
        model: The model of the tokenizer as JSON.
        first: First free id.
        counts: Number of occurrences of each word in the text.
        size: Largest number of new subwords.
        min_frequency: Smallest number of occurrences of a new subword.
    """

    tokenizer: Tokenizer
    model: Mapping[str, Any]
    first: int
    counts: Mapping[str, int]
    size: int
    min_frequency: int


@dataclass(frozen=True)
class Grown:
    """New subwords of a tokenizer.

    Attributes:
        tokens: The new tokens as the tokenizer writes them. Token i has the id ``first`` + i (see ``GrowTask``).
        pieces: Old ids that each new token was cut into, or () if the old tokenizer cannot represent the token.
        model: The new model of the tokenizer as JSON.
    """

    tokens: tuple[str, ...]
    pieces: tuple[tuple[int, ...], ...]
    model: Mapping[str, Any]


def pretokens(tokenizer: Tokenizer, counts: Mapping[str, int]) -> Counter[str]:
    """Count the normalised parts of words that a tokenizer passes to its model. No token crosses them."""
    result: Counter[str] = Counter()
    normalizer, cutter = tokenizer.normalizer, tokenizer.pre_tokenizer
    for word, count in counts.items():
        text = word if normalizer is None else normalizer.normalize_str(word)
        parts = [text] if cutter is None else [part for part, _ in cutter.pre_tokenize_str(text)]
        for part in parts:
            if part:
                result[part] += count
    return result


def encoded(tokenizer: Tokenizer, counts: Mapping[str, int]) -> Iterator[tuple[Encoding, int]]:
    """Yield the encoding of each word with its count, in bounded memory."""
    rest = iter(counts)
    while words := list(islice(rest, AT_ONCE)):
        encodings = tokenizer.encode_batch(words, add_special_tokens=False)
        yield from zip(encodings, (counts[word] for word in words), strict=True)


def token_runs(tokenizer: Tokenizer, counts: Mapping[str, int], apart: Collection[int]) -> Counter[Symbols]:
    """Count the sequences of tokens in which merges may join tokens.

    A sequence ends at the border of a pre-token and before any id in ``apart``. Such an id is in no sequence.
    """
    result: Counter[Symbols] = Counter()
    for encoding, count in encoded(tokenizer, counts):
        tokens = zip(encoding.tokens, encoding.ids, encoding.word_ids, strict=True)
        for (_, alone), run in groupby(tokens, key=lambda token: (token[2], token[1] in apart)):
            if not alone:
                result[tuple(token for token, _, _ in run)] += count
    return result


def new_characters(words: Mapping[Symbols, int], vocab: Container[str], min_frequency: int) -> list[str]:
    """Return the characters that the vocabulary lacks, the most frequent first.

    Characters that occur less than ``min_frequency`` times are left out. So are the rarest characters, which make up at
    most 1 − COVERAGE of the text.

    Args:
        words: Number of occurrences of each word, as a tuple of symbols.
        vocab: The vocabulary.
        min_frequency: Smallest number of occurrences of a character.
    """
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for symbol in word:
            counts[symbol] += count
    rest = sum(counts.values())
    rare = (1 - COVERAGE) * rest
    found = []
    for symbol, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if symbol not in vocab and count >= min_frequency and rest > rare:
            found.append(symbol)
        rest -= count
    return found


BYTE = re.compile("<0x[0-9A-F]{2}>")  # a byte of a character without a token; the decoder needs it as one token


def grow_bpe(task: GrowTask) -> Grown:
    """Return the BPE with at most ``task.size`` more tokens, the results of further merges."""
    vocab: dict[str, int] = dict(task.model["vocab"])
    unknown = task.model.get("unk_token")
    apart = set(task.tokenizer.get_added_tokens_decoder())
    apart |= {i for token, i in vocab.items() if token == unknown or BYTE.fullmatch(token)}
    runs = token_runs(task.tokenizer, task.counts, apart)
    prefix = task.model.get("continuing_subword_prefix") or ""
    cut: dict[str, Symbols] = {}
    merges = []
    # Some merges lead only to tokens that exist already, or in a second way to the same new token.
    for left, right in learn_merges(runs, 2 * task.size, task.min_frequency):
        token = _spell(left + right, prefix)
        if token not in vocab and token not in cut:
            if len(cut) == task.size:
                break
            cut[token] = left + right
        merges.append([_spell(left, prefix), _spell(right, prefix)])
    pieces = tuple(tuple(vocab[symbol] for symbol in symbols) for symbols in cut.values())
    whole = vocab | {token: task.first + i for i, token in enumerate(cut)}
    model = {**task.model, "vocab": whole, "merges": [*task.model["merges"], *merges]}
    return Grown(tuple(cut), pieces, model)


def with_forms(vocabulary: Vocabulary, forms: Iterable[str]) -> Vocabulary:
    """Return the vocabulary with merges that make each form one token.

    A form with a space before it starts a word, and any other form is a part of a word. The new merges come after the
    old merges. Every old id stays, and a word that spells no form is cut as before or into fewer tokens.
    """
    table = byte_characters()
    spelled = ["".join(table[byte] for byte in form.encode()) for form in forms]
    tokenizer = vocabulary.parent
    spec = json.loads(tokenizer.to_str())
    vocab, merges = spec["model"]["vocab"], spec["model"]["merges"]
    known = {(left, right) for left, right in merges}
    # A merge of one form may cut another form anew, but never into more tokens, so this ends.
    while cut := [tokens for text in spelled if len(tokens := tokenizer.model.tokenize(text)) > 1]:
        for first, *rest in cut:
            joined = first.value
            for token in rest:
                if (joined, token.value) not in known:
                    known.add((joined, token.value))
                    merges.append([joined, token.value])
                joined += token.value
                vocab.setdefault(joined, len(vocab))
        tokenizer = Tokenizer.from_str(json.dumps(spec))
    return Vocabulary(tokenizer)


def grow_wordpiece(task: GrowTask) -> Grown:
    """Return the WordPiece vocabulary with at most ``task.size`` more tokens.

    The new tokens are the missing characters, and then the results of merges.
    """
    vocab: dict[str, int] = dict(task.model["vocab"])
    prefix: str = task.model["continuing_subword_prefix"]
    longest = int(task.model["max_input_chars_per_word"])
    parts = pretokens(task.tokenizer, task.counts)
    words = {(p[0], *(prefix + c for c in p[1:])): count for p, count in parts.items() if len(p) <= longest}
    new = dict.fromkeys(new_characters(words, vocab, task.min_frequency)[: task.size])
    known = {word: count for word, count in words.items() if all(s in vocab or s in new for s in word)}
    if len(new) < task.size and known:
        for left, right in learn_merges(known, task.size + len(vocab), task.min_frequency):
            token = _spell(left + right, prefix)
            if token not in vocab:
                new[token] = None
            if len(new) == task.size:
                break
    pieces = tuple(longest_match(token, vocab, prefix) for token in new)
    whole = vocab | {token: task.first + i for i, token in enumerate(new)}
    return Grown(tuple(new), pieces, {**task.model, "vocab": whole})


def _spell(symbols: Symbols, prefix: str) -> str:
    return symbols[0] + "".join(symbol.removeprefix(prefix) for symbol in symbols[1:])


def longest_match(token: str, vocab: Mapping[str, int], prefix: str) -> tuple[int, ...]:
    """Cut a token from the left into the longest known tokens, and return their ids, or () if that fails.

    ``vocab`` maps the known tokens to ids, and ``prefix`` is before each token that continues a word, as in ``##s``.
    """
    continues = token.startswith(prefix) and token != prefix
    text = token.removeprefix(prefix) if continues else token
    ids = []
    start = 0
    while start < len(text):
        head = prefix if start or continues else ""
        stop = next((end for end in range(len(text), start, -1) if head + text[start:end] in vocab), None)
        if stop is None:
            return ()
        ids.append(vocab[head + text[start:stop]])
        start = stop
    return tuple(ids)


UNKNOWN_COSTS = 10.0  # log probability of an unknown character below that of the rarest piece, as in the library
LONGEST = 16  # characters of a piece
DIGITS = 6  # decimal digits of a score
START = 3  # candidates at first for each piece that is to be added
ROUNDS = 4  # rounds in which candidates are left out


def grow_unigram(task: GrowTask) -> Grown:
    """Return the Unigram model with at most ``task.size`` more pieces.

    The new pieces are the missing characters, and the candidates with the largest gain in log probability. The gain of
    a candidate is usage · (score − Σ scores of the old pieces that it is cut into).
    """
    old: dict[str, float] = dict(task.model["vocab"])
    words = pretokens(task.tokenizer, task.counts)
    spelled = {tuple(word): count for word, count in words.items()}
    # All characters that the model lacks are kept, since a word with such a character would be unknown.
    characters = dict.fromkeys(new_characters(spelled, old, task.min_frequency)[: task.size])
    merged = learn_merges(spelled, START * task.size + len(old), task.min_frequency)
    found = dict.fromkeys("".join(left + right) for left, right in merged)
    joined = (piece for piece in found if piece not in old and len(piece) <= LONGEST)
    candidates = [*characters, *islice(joined, START * task.size)]
    cuts = {piece: [t.id for t in task.tokenizer.model.tokenize(piece)] for piece in candidates}
    unknown = task.model.get("unk_id")
    values = [score for _, score in task.model["vocab"]]
    floor = min(values)  # a lower score would change the score of unknown characters
    if unknown is not None:
        values[unknown] = floor - UNKNOWN_COSTS
    before = {piece: sum(values[i] for i in cut) for piece, cut in cuts.items()}
    # At first a candidate has the mean score of its parts, so that the longest candidates are tried.
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


def _usage(task: GrowTask, words: Mapping[str, int], scores: Mapping[str, float]) -> Counter[str]:
    """Count how often each piece, old or new, occurs in the best cuts of the words."""
    vocab = [*task.model["vocab"], *scores.items()]
    whole = json.loads(task.tokenizer.to_str()) | {"model": {**task.model, "vocab": vocab}, "added_tokens": []}
    whole |= {"normalizer": None, "pre_tokenizer": None, "post_processor": None}  # the words are normalised already
    usage: Counter[str] = Counter()
    for encoding, count in encoded(Tokenizer.from_str(json.dumps(whole)), words):
        for index in encoding.ids:
            if index != task.model.get("unk_id"):
                usage[vocab[index][0]] += count
    return usage


def _rescored(task: GrowTask, usage: Counter[str], scores: Mapping[str, float], floor: float) -> dict[str, float]:
    """Return the log probability of each candidate in the text, on the scale of the old scores."""
    total = usage.total()
    shift = _shift([(old, usage[piece]) for piece, old in task.model["vocab"] if usage[piece]], total)
    used = {piece: math.log(usage[piece] / total) + shift for piece in scores if usage[piece]}
    return {piece: max(used.get(piece, floor), floor) for piece in scores}


def _shift(used: Sequence[tuple[float, int]], total: int) -> float:
    """Return the weighted median of (old score − log probability in this text) over the old pieces in the text."""
    differences = sorted((score - math.log(count / total), count) for score, count in used)
    half = sum(count for _, count in differences) / 2
    for difference, count in differences:
        half -= count
        if half <= 0:
            return difference
    return 0.0
