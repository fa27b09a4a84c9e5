"""One answer from the candidates of all windows of a text."""

from __future__ import annotations

import numpy as np

from probes.transfer.tasks.qa import Windows, best_answer


def plain_best(windows, found):
    """A span counts in the window where it has most context on the smaller side."""
    best = None
    for number in range(len(windows)):
        for score, first, last in found[number]:
            scores = []
            for other, (begin, many) in enumerate(windows):
                if begin <= first and last < begin + many:
                    scores.append((min(first - begin, begin + many - 1 - last) + 0.01 * many, -other))
            if -max(scores)[1] == number and (best is None or score > best[0]):
                best = (score, first, last)
    return best


def test_a_span_counts_where_it_has_most_context():
    rng = np.random.default_rng(0)
    filtered = 0
    for _ in range(300):
        size, room, stride = (int(rng.integers(*r)) for r in ((1, 40), (5, 12), (0, 4)))
        windows = Windows.over(np.array([size]), np.array([room]), stride)
        held = list(zip(windows.start.tolist(), windows.size.tolist(), strict=True))
        found = []
        for start, many in held:
            firsts = rng.integers(start, start + many, 3).tolist()
            spans = [(float(rng.integers(0, 50)), f, int(rng.integers(f, start + many))) for f in firsts]
            found.append(sorted(spans, key=lambda s: -s[0]))
        expected = plain_best(held, found)
        score, first, last = best_answer(windows.start, windows.size, found)
        assert any((score, first, last) in spans for spans in found)
        if expected is None:
            expected = max((span for spans in found for span in spans), key=lambda s: s[0])
        assert score == expected[0]
        filtered += score < max(span[0] for spans in found for span in spans)
    assert filtered > 20
    assert best_answer(np.array([0]), np.array([4]), [[]])[2] == -1


def test_a_long_window_wins_over_one_with_a_little_more_context():
    windows = Windows.over(np.array([452]), np.array([380]), 128)
    assert (windows.start.tolist(), windows.size.tolist()) == ([0, 252], [380, 200])
    # token 316 has 63 others behind it in the first window and 64 before it in the second; 319 has 60 and 67
    found = [[(2.0, 316, 316), (1.0, 319, 319)], [(4.0, 316, 316), (3.0, 319, 319)]]
    assert best_answer(windows.start, windows.size, found) == (3.0, 319, 319)
    assert best_answer(windows.start, windows.size, [found[0], found[1][:1]]) == (2.0, 316, 316)


def test_a_window_that_does_not_hold_all_of_an_answer_does_not_hide_it():
    windows = Windows.over(np.array([36]), np.array([20]), 4)
    assert (windows.start.tolist(), windows.size.tolist()) == ([0, 16], [20, 20])
    # token 17 alone has more context in the first window, which ends at token 19
    assert best_answer(windows.start, windows.size, [[(-1.0, 3, 3)], [(20.0, 17, 22)]]) == (20.0, 17, 22)
