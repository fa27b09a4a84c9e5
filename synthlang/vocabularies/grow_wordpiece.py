"""New subwords of a WordPiece vocabulary, as for E-mBERT (Wang et al. 2020, section 2).

A WordPiece vocabulary of the new text is learned from characters, and what the checkpoint lacks of it is
added. Words are cut from the left into the longest tokens there are, so old words may change.
"""

from __future__ import annotations

from collections.abc import Mapping

from synthlang.vocabularies.grow import Grown, Task, new_characters, pretokens
from synthlang.vocabularies.merges import Symbols, learn_merges


def grow_wordpiece(task: Task) -> Grown:
    """The vocabulary with at most ``size`` more tokens: first the characters it lacks, then what merges make."""
    vocab: dict[str, int] = dict(task.model["vocab"])
    prefix: str = task.model["continuing_subword_prefix"]
    longest = int(task.model["max_input_chars_per_word"])
    parts = pretokens(task.tokenizer, task.counts)
    words = {_symbols(part, prefix): count for part, count in parts.items() if len(part) <= longest}
    new = dict.fromkeys(new_characters(words, vocab, task.min_frequency)[: task.size])
    known = {word: count for word, count in words.items() if all(s in vocab or s in new for s in word)}
    if len(new) < task.size and known:
        for left, right in learn_merges(known, task.size + len(vocab), task.min_frequency):
            token = left[0] + "".join(symbol.removeprefix(prefix) for symbol in (left + right)[1:])
            if token not in vocab:
                new[token] = None
            if len(new) == task.size:
                break
    pieces = tuple(longest_match(token, vocab, prefix) for token in new)
    whole = vocab | {token: task.first + i for i, token in enumerate(new)}
    return Grown(tuple(new), pieces, {**task.model, "vocab": whole})


def _symbols(word: str, prefix: str) -> Symbols:
    return (word[0], *(prefix + char for char in word[1:]))


def longest_match(token: str, vocab: Mapping[str, int], prefix: str) -> tuple[int, ...]:
    """The ids that a vocabulary cuts a token into, from the left, the longest first; none if it cannot."""
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
