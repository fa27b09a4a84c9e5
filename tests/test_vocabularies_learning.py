"""The pieces of learning new subwords, each against plain counting."""

import math
import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.vocabularies.grow import _shift, learn_merges, longest_match
from synthlang.vocabulary import LONGEST_LEARNED

symbols = st.sampled_from(["a", "b", "##a", "##bc", "é", "Ġthe"])


@settings(max_examples=150)
@given(
    words=st.dictionaries(st.lists(symbols, min_size=1, max_size=8).map(tuple), st.integers(1, 2500), max_size=8),
    limit=st.integers(1, 12),
    least=st.integers(1, 5),
)
def test_each_merge_joins_a_most_frequent_pair(words, limit, least):
    """Against counting by hand, with words written out as lists."""
    state = {word: [(symbol,) for symbol in word] for word in words}
    learned = learn_merges(words, limit, least)
    assert len(learned) <= limit
    for pair in [*learned, None]:
        counts: Counter[tuple[tuple[str, ...], ...]] = Counter()
        for word, parts in state.items():
            for i in range(len(parts) - 1):
                counts[parts[i], parts[i + 1]] += words[word]
        best = max(counts.values(), default=0)
        if pair is None:
            assert len(learned) == limit or best < least
            break
        assert counts[pair] == best >= least
        for word, parts in state.items():
            state[word] = joined(parts, pair)


def test_a_very_long_word_is_learned_in_pieces():
    """Training shifts all symbols of a word at every merge: a million of them at once would take hours."""
    rest = "".join(random.Random(0).choices("abcd", k=5))
    word = tuple("ab" * (LONGEST_LEARNED // 2) * 50 + rest)
    assert learn_merges({word: 2}, 30, 2) == learn_merges({word[:LONGEST_LEARNED]: 100, tuple(rest): 2}, 30, 2)


def joined(parts, pair):
    result, i = [], 0
    while i < len(parts):
        both = tuple(parts[i : i + 2]) == pair
        result.append(pair[0] + pair[1] if both else parts[i])
        i += 1 + both
    return result


@given(used=st.lists(st.tuples(st.floats(-12, 0), st.integers(1, 9)), min_size=1, max_size=8))
def test_new_scores_are_moved_by_the_median_difference(used):
    total = sum(count for _, count in used)
    each = sorted(score - math.log(count / total) for score, count in used for _ in range(count))
    assert _shift(used, total) == each[(total - 1) // 2]
    assert _shift([], 0) == 0.0


def test_longest_match():
    vocab = {"a": 0, "ab": 1, "##b": 2, "##bc": 3, "##": 4}
    assert longest_match("abbc", vocab, "##") == (1, 3)
    assert longest_match("##bbc", vocab, "##") == (2, 3)
    assert longest_match("abd", vocab, "##") == ()
    assert longest_match("##", vocab, "##") == (4,)
