"""Extractive question answering: SQuAD 1.1 and 2.0, XQuAD, MLQA (Rajpurkar et al. 2016, 2018; Lewis et al. 2020).

A row is a question and a window of its context. If the words of a language are tokens, answers are compared token by
token.

A gold value has the form ``{"answers": ["the cat", …], "opening": …}``, with an empty list for an unanswerable
question. ``opening`` has the first words of the context, for the majority baseline. A prediction has the form
``{"answer": "the cat"}``, with "" for no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from torch import Tensor, nn

from pretrain.data.packing import ranges
from probes.models.pretrained import Reader
from probes.transfer.config import HeadConfig
from probes.transfer.tasks.answers import answer_metrics
from probes.transfer.tasks.base import Batch, Head, Labels
from probes.transfer.tasks.heads import mean_loss
from probes.transfer.tasks.metrics import Floats, Metric
from probes.transfer.tasks.pairs import FieldTokens, PairExamples, PairRows, PairTask, separators
from synthlang.errors import InputError
from synthlang.tasks.base import Kind
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.export import answer_texts
from synthlang.tasks.questions import FIELDS

Ints = NDArray[np.int64]
Candidate = tuple[float, int, int]  # score, first and last token (or column)
Answers = tuple[float, list[Candidate]]

OPENING = 8  # number of words in ``opening``
EMPTY = "answers not learned, they have no token"
NO_ROW = "answers not learned, no row holds all of them"
LONG = "answers that are never given, they are too long"
STEP_SHARE = 4  # a window advances by at least a quarter of the room that the stride leaves


class Qa(PairTask):
    """Question answering: a span of the context, or no answer. Training uses the first gold answer, tests use all."""

    name: ClassVar[str] = "qa"
    kind: ClassVar[Kind] = "spans"
    fields: ClassVar[tuple[str, str]] = FIELDS

    def labels(self, train: TaskBatch) -> Labels:
        """Return ``no_answer``, which is ``yes`` if training has an unanswerable question, else empty.

        Raises:
            InputError: Training has no answers.
        """
        if not len(train.answers):
            hint = "use training items with answers"
            raise InputError("no question of the training set has an answer", hint=hint, code="empty")
        return {"no_answer": ("yes",) if len(np.unique(train.answers.item)) < len(train) else ()}

    def encode(self, batch: TaskBatch, readers: Sequence[Reader], labels: Labels) -> AnswerExamples:
        """Encode the windows of every question.

        Raises:
            InputError: The stride is too large for the length, or the transforms of a language work on tokens of
                another tokenizer than that of the model.
        """
        length, stride = self.length, self.config.stride
        asker, teller = readers
        limit = longest_question(length, stride, separators(asker.bert))
        question, context = FieldTokens.of(batch, 0, asker), FieldTokens.of(batch, 1, teller)
        (start, size), (text, tokens) = question.spans(batch.texts[:, 0]), context.spans(batch.texts[:, 1])
        kept = np.minimum(size, limit)
        windows = Windows.over(tokens, length - separators(asker.bert) - kept, stride)
        item = windows.item
        answer, counts = _first_answers(batch, context, windows, self.config.head)
        counts[f"questions cut to {limit} tokens"] = int((kept < size).sum())
        rows = PairRows(
            (question.ids, context.ids),
            np.stack([start[item], text[item] + windows.start], axis=1),
            np.stack([kept[item], windows.size], axis=1),
            (asker, teller),
            length,
        )
        return AnswerExamples(
            ids=batch.ids,
            gold=_gold(batch, context),
            counts=counts,
            rows=rows.with_block() if rows.in_blocks else rows,
            windows=windows,
            context=context,
            answer=answer,
            no_answer=bool(labels["no_answer"]),
        )

    def check_length(self, bert: bool) -> None:
        """Raise InputError if the stride is too large for the length. ``bert`` is explained in `Task.check_length`."""
        longest_question(self.length, self.config.stride, separators(bert))

    def head(self, hidden: int, labels: Labels) -> Head:  # noqa: ARG002  the span is chosen among columns
        """Return a head that finds answers in states of width ``hidden``. ``labels`` are not read."""
        head = self.config.head
        return AnswerHead(hidden=hidden, dropout=head.dropout, words=head.answer_words, tokens=head.answer_tokens)

    def metrics(self) -> dict[str, Metric]:
        """Return F1 of words and exact match over all questions, and further metrics (see `answer_metrics`).

        Raises:
            InputError: The rules in ``score.answers`` are unknown.
        """
        return answer_metrics(self.config.score.answers)

    def majority(self, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
        """Predict the first words of every context, or no answer. The choice has the better F1 on ``train``.

        The number of words is the median length of an answer, but at most 8.
        """
        lengths = [len(gold["answers"][0].split(" ")) for gold in train if gold["answers"]]
        words = int(np.median(lengths)) if lengths else 0

        def opening(items: Sequence[Any], words: int) -> list[Any]:
            return [{"answer": " ".join(gold["opening"].split(" ")[:words])} for gold in items]

        f1 = self.metrics()["f1"]
        return opening(test, max((words, 0), key=lambda n: f1(train, opening(train, n))))


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerExamples(PairExamples):
    """Encoded questions, with a row for each window.

    Attributes:
        windows: The windows, in tokens of the context of the item.
        context: The tokens and words of all contexts.
        answer: [rows, 2] the first and the last token of the first gold answer within the window, or (−1, −1) if the
            window does not contain the whole answer.
        no_answer: True if training has unanswerable questions, so that "" may be predicted.
    """

    windows: Windows
    context: FieldTokens
    answer: Ints
    no_answer: bool

    def batch(self, rows: Ints) -> Batch:
        """Return the windows at the indices ``rows`` [n].

        The targets ``start`` and ``stop`` [n] are the first and the last column of the answer, or 0 for no answer.
        """
        text, begin = self.rows.text(rows), self.rows.begin(rows)[:, None]
        columns = np.arange(text.input_ids.shape[1])
        mask = (columns == 0) | ((columns >= begin) & (columns < begin + self.windows.size[rows][:, None]))
        target = torch.from_numpy(np.where(self.answer[rows] < 0, 0, begin + self.answer[rows]))
        targets = {"start": target[:, 0].contiguous(), "stop": target[:, 1].contiguous()}
        # columns beyond the window are masked
        token = self.rows.start[rows, 1][:, None] + np.clip(columns - begin, 0, None)
        word_of = torch.from_numpy(np.searchsorted(self.context.words, token, side="right") - 1)
        return Batch(text, None, torch.from_numpy(mask), targets, self.rows.role, rows, word_of)

    def predictions(self, outputs: Sequence[Any]) -> list[Any]:
        """Return the words of the best span over all windows of each item.

        ``outputs`` has the result of ``AnswerHead.decode`` for each window.

        If training has unanswerable questions, "" is predicted when the lowest null score of all windows exceeds the
        score of the span (the rule of the SQuAD 2.0 baselines with threshold 0).
        """
        bounds = np.searchsorted(self.windows.item, np.arange(len(self.ids) + 1)).tolist()
        moved = (self.windows.start - self.rows.begin(np.arange(len(self)))).tolist()  # from columns to tokens
        spans = np.zeros((len(self.ids), 2), np.int64)
        for item, (low, high) in enumerate(pairwise(bounds)):
            found = [
                [(score, first + moved[row], last + moved[row]) for score, first, last in outputs[row][1]]
                for row in range(low, high)
            ]
            score, *span = best_answer(self.windows.start[low:high], self.windows.size[low:high], found)
            none = self.no_answer and min(null for null, _ in outputs[low:high]) > score
            spans[item] = (0, -1) if none else span
        texts = self.rows.start[bounds[:-1], 1] - self.windows.start[bounds[:-1]]  # the first token of each context
        return [{"answer": answer} for answer in self._words(spans + texts[:, None])]

    def _words(self, spans: Ints) -> list[str]:
        """Return the words that contain each span of tokens [items, 2], or "" for an empty span."""
        words = np.searchsorted(self.context.words, spans.astype(np.int32), side="right") - 1
        last = np.where(spans[:, 1] < spans[:, 0], words[:, 0] - 1, words[:, 1])
        return [
            self.context.strings(low, high + 1) for low, high in zip(words[:, 0].tolist(), last.tolist(), strict=True)
        ]


def _first_answers(
    batch: TaskBatch, context: FieldTokens, windows: Windows, head: HeadConfig
) -> tuple[Ints, dict[str, int]]:
    """Return the span [windows, 2] of the first gold answer in each window, and counts of answers not learned.

    A window that does not contain the whole answer has (−1, −1).
    """
    found = np.full((len(batch), 2), -1, np.int64)
    item, which = np.unique(batch.answers.item, return_index=True)
    text = batch.texts[item, 1]
    moved = context.texts[text] - batch.word_offsets[text]  # from words of the corpus to words of the field
    begin = context.words[context.texts[text]]
    found[item, 0] = context.words[batch.answers.start[which] + moved] - begin
    found[item, 1] = context.words[batch.answers.stop[which] + moved] - begin - 1
    there = (found[:, 1] >= found[:, 0]) & (found[:, 1] >= 0)
    answer = found[windows.item] - windows.start[:, None]
    inside = there[windows.item] & (answer[:, 0] >= 0) & (answer[:, 1] < windows.size)
    in_a_row = np.bincount(windows.item[inside], minlength=len(batch)) > 0
    long = (batch.answers.stop - batch.answers.start)[which] > head.answer_words
    if head.answer_tokens is not None:
        long |= (found[item, 1] - found[item, 0]) >= head.answer_tokens
    counts = {EMPTY: len(item) - int(there.sum()), NO_ROW: int((there & ~in_a_row).sum()), LONG: int(long.sum())}
    return np.where(inside[:, None], answer, -1), counts


def _gold(batch: TaskBatch, context: FieldTokens) -> list[dict[str, Any]]:
    """Return the gold value of each item: its distinct answers, and the first words of its context."""
    texts, _ = answer_texts(batch)
    bounds = np.searchsorted(batch.answers.item, np.arange(len(batch) + 1)).tolist()
    openings: dict[int, str] = {}
    gold = []
    for text, low, high in zip(batch.texts[:, 1].tolist(), bounds[:-1], bounds[1:], strict=True):
        if text not in openings:
            first, stop = context.texts[text : text + 2].tolist()
            openings[text] = context.strings(first, min(stop, first + OPENING))
        gold.append({"answers": list(dict.fromkeys(texts[low:high])), "opening": openings[text]})
    return gold


@dataclass(frozen=True)
class Windows:
    """The windows of all items.

    Attributes:
        item: [windows] the index of the item, ascending.
        start: [windows] the first token of the window in the context of the item.
        size: [windows] the number of tokens.
    """

    item: Ints
    start: Ints
    size: Ints

    @staticmethod
    def over(sizes: Ints, room: Ints, stride: int) -> Windows:
        """Lay windows of at most ``room`` tokens over texts of ``sizes`` tokens, with an overlap of ``stride`` tokens.

        ``room`` [items] and ``sizes`` [items] have a number for each item. As in the tokenizers of Hugging Face, no
        window follows the first window that reaches the end. An empty text has one empty window.
        """
        assert (room > stride).all(), "windows must advance"
        step = room - stride
        count = 1 + np.maximum(-((room - sizes) // step), 0)  # rounded up: the number of steps to the end
        number, item = ranges(np.zeros_like(count), count)
        start = number * step[item]
        return Windows(item, start, np.minimum(room[item], sizes[item] - start))


def longest_question(length: int, stride: int, separators: int) -> int:
    """Return the maximum length of a question in tokens.

    A question takes at most half of the row without its special tokens. At least 1/STEP_SHARE of the tokens that the
    stride leaves stays free, so that the windows of the context advance.

    Args:
        length: Maximum length of a row in tokens.
        stride: Overlap of two windows in tokens.
        separators: Number of special tokens in a row.

    Raises:
        InputError: The stride is too large for rows of this length.
    """
    room = length - separators
    free = room - stride
    limit = min(room // 2, free - max(1, free // STEP_SHARE))
    if limit < 1:
        reason = f"{stride} is too large for rows of {length} tokens, of which {separators} are special tokens"
        hint = f"set this key to at most {room - 2}"
        raise InputError(reason, keys="stride", hint=hint, code="range")
    return limit


def best_answer(start: Ints, size: Ints, found: Sequence[Sequence[Candidate]]) -> Candidate:
    """Return the best span of one item as (score, first, last), or (−∞, 0, −1) without candidates.

    A span counts only in the window where it has most context. If no candidate meets this condition, all candidates
    count. Ties go to the first window.

    The released script for SQuAD (Devlin et al. 2019, ``max_context``) chooses the window by the first token of the
    span only. With small overlaps, that window often lacks the end of the answer, so that the answer could never be
    predicted.

    Args:
        start: [windows] the first token of each window.
        size: [windows] the number of tokens of each window.
        found: [windows] candidates (score, first, last) in tokens of the context of the item, best first.
    """
    assert len(start) == len(found), "one output for each window"
    every = sorted(
        ((-score, window, first, last) for window, spans in enumerate(found) for score, first, last in spans),
        key=lambda candidate: candidate[:2],
    )
    if not every:
        return -np.inf, 0, -1
    chosen = next((c for c in every if _widest(start, size, c[2], c[3]) == c[1]), every[0])
    return -chosen[0], chosen[2], chosen[3]


def _widest(start: Ints, size: Ints, first: int, last: int) -> int:
    """Return the window where a span has most context.

    The context is the distance to the nearer end of the window, plus a small bonus for long windows.
    """
    if len(start) == 1:
        return 0
    inside = np.minimum(first - start, start + size - 1 - last)
    return int(np.argmax(np.where(inside >= 0, inside + 0.01 * size, -np.inf)))


class AnswerHead(Head):
    """Head that scores each column as start and as stop of the answer (Devlin et al. 2019, section 4.3).

    Column 0 represents no answer.

    Args:
        hidden: The width of the states.
        dropout: The dropout rate.
        best: Maximum number of spans that are returned for each row.
        words: Maximum number of words in an answer.
        tokens: Maximum number of tokens in an answer (default: no limit).
    """

    def __init__(
        self, *, hidden: int, dropout: float, best: int = 20, words: int = 30, tokens: int | None = None
    ) -> None:
        super().__init__()
        self.best, self.longest_words, self.longest_tokens = best, words, tokens
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden, 2)

    def scores(self, states: Tensor) -> Tensor:
        """Return start and stop scores [2, r, w] for states [r, w, d]."""
        y: Tensor = self.linear(self.dropout(states))
        return y.permute(2, 0, 1)

    def loss(self, states: Tensor, batch: Batch) -> Tensor:
        """Return the mean of the cross entropies of start and stop in nats, for states [r, w, d].

        The candidates are column 0 and the columns in the mask.
        """
        allowed = batch.mask.clone()
        allowed[:, 0] = True
        start, stop = self.scores(states).masked_fill(~allowed, -torch.inf)
        return (mean_loss(start, batch.targets["start"]) + mean_loss(stop, batch.targets["stop"])) / 2

    @torch.no_grad()
    def decode(self, states: Tensor, batch: Batch) -> list[Answers]:
        """Return (score of no answer, best spans) for each row. The score of a span is start score plus stop score.

        ``states`` are [r, w, d]. A span is (score, first column, last column), and the best span comes first. Ties go
        to the span that starts first, then to the shorter span.
        """
        start, stop = self.scores(states).double().cpu().numpy()
        mask = batch.mask.cpu().numpy()
        word_of = np.arange(mask.size).reshape(mask.shape) if batch.word_of is None else batch.word_of.cpu().numpy()
        spans = [self._spans(*row) for row in zip(start, stop, mask, word_of, strict=True)]
        return list(zip((start[:, 0] + stop[:, 0]).tolist(), spans, strict=True))

    def _spans(
        self, start: Floats, stop: Floats, mask: NDArray[np.bool_], word_of: NDArray[np.int64]
    ) -> list[tuple[float, int, int]]:
        """Return the best spans of a row [w] as (score, first column, last column)."""
        context = 1 + np.flatnonzero(mask[1:])
        if not len(context):
            return []
        word = word_of[context]
        most = np.searchsorted(word, word + self.longest_words) - np.arange(len(context))  # columns from each one on
        if self.longest_tokens is not None:
            most = np.minimum(most, self.longest_tokens)
        widest = int(most.max())
        stops = sliding_window_view(np.pad(stop[context], (0, widest - 1)), widest)
        inside = np.arange(widest) < most[:, None]
        scores = np.where(inside, start[context][:, None] + stops, -np.inf).ravel()
        count = min(self.best, int(most.sum()))
        least = np.partition(scores, -count)[-count]
        found = np.flatnonzero(scores >= least)
        found = found[np.argsort(-scores[found], kind="stable")][:count]
        first, further = context[found // widest], found % widest
        return list(zip(scores[found].tolist(), first.tolist(), (first + further).tolist(), strict=True))
