"""Random labelled batches, a transform that inserts, deletes, repeats and drops words, and the expected labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from synthlang.corpus import Column, Corpus, concatenate
from synthlang.language import Language, parse_language
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.rng import uniform
from synthlang.tasks.batch import Item, ItemGroup, TaskBatch, batches_of_groups

TAGS = ("O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC")
LABELS = ("yes", "no")
QUESTION, CONTEXT = 0, 1


def random_batch(rng: np.random.Generator, items: int) -> TaskBatch:
    """Return items with a question and a context that up to three items share. Forms are unique except for marks.

    The column ``uid`` numbers the words: it is carried by another path than tags and answers.
    """
    counter = iter(range(10**9))
    groups: list[ItemGroup] = []
    left = items
    while left > 0:
        asked = min(left, int(rng.integers(1, 4)))
        left -= asked
        texts = [(CONTEXT, _text(rng, counter)), *((QUESTION, _text(rng, counter)) for _ in range(asked))]
        size = sum(len(s["form"]) for s in texts[0][1])
        group = []
        for row in range(1, asked + 1):
            starts = rng.integers(0, size, rng.integers(0, 3)).tolist()
            spans = tuple((s, int(rng.integers(s + 1, min(s + 5, size) + 1))) for s in starts)
            group.append(Item(f"i{next(counter)}", (row, 0), str(rng.choice(LABELS)), spans))
        groups.append(ItemGroup(tuple(texts), tuple(group)))
    [batch] = batches_of_groups(groups, LABELS, Counter(), CONTEXT)
    return batch


def _text(rng: np.random.Generator, counter: Any) -> list[dict[str, list[Any]]]:
    return [_sentence(rng, counter) for _ in range(rng.integers(1, 4))]


def _sentence(rng: np.random.Generator, counter: Any) -> dict[str, list[Any]]:
    n = int(rng.integers(1, 8))
    order = rng.permutation(n)
    head = [0] * n
    for place, node in enumerate(order[1:].tolist(), start=1):
        head[node] = int(order[rng.integers(0, place)]) + 1
    uids = [next(counter) for _ in range(n)]
    forms = [str(rng.choice([".", "!"])) if rng.random() < 0.15 else f"w{uid}" for uid in uids]
    return {"form": forms, "uid": uids, "head": head, "ner": rng.choice(TAGS, n).tolist()}


@dataclass(frozen=True)
class Noise:
    """Deletes, inserts and repeats words and drops sentences, by hashes of (key, sentence id, position)."""

    key: int
    drop: float = 0.04
    delete: float = 0.1
    insert: float = 0.1
    repeat: float = 0.0

    def rewrite(self, corpus: Corpus) -> Rewrite:
        kept = np.flatnonzero(uniform(self.key, corpus.ids) >= self.drop).astype(np.int64)
        source = corpus.take(kept)
        ids, position = source.ids[source.sentence_of_word], source.position
        draws = uniform(self.key + 1, ids, position)
        origins: list[int] = []
        forms: list[str] = []
        lengths = np.zeros(len(source), np.int64)
        words = source.form.values()
        for word, row, at, draw in zip(words, source.sentence_of_word, position, draws, strict=True):
            if draw >= self.delete:
                origins.append(int(at))
                forms.append(word)
                lengths[row] += 1
            if 0.5 < draw < 0.5 + self.repeat:
                origins.append(int(at))
                forms.append(word)
                lengths[row] += 1
            if draw >= 1 - self.insert:
                origins.append(INSERTED)
                forms.append("new")
                lengths[row] += 1
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        origin = np.asarray(origins, np.int32)
        return Rewrite(offsets, origin, Column.of(forms), kept, {"noise: dropped": len(corpus) - len(kept)})


class Chain:
    """Rewrites one after the other, with the interface of a language."""

    def __init__(self, *steps: Language | Noise) -> None:
        self.steps = steps

    def rewrite(self, corpus: Corpus) -> Rewrite:
        result, current = Rewrite.identity(corpus), corpus
        for step in self.steps:
            rewrite = step.rewrite(current)
            result, current = result.then(rewrite), rewrite.apply(current)
        return result


def labels_of(batch: TaskBatch) -> list[str]:
    """The class labels of the items."""
    assert batch.label is not None
    return batch.label.values()


def random_chain(rng: np.random.Generator) -> Any:
    """Return up to four steps in any order. At most one transliterates, so that forms can be read back."""
    orders = [{"kind": k, "strength": s} for k in ("invert", "permute") for s in (1.0, 0.5)]
    orders.append({"kind": "invert", "keep_final_punctuation": False})
    steps: list[Language | Noise] = []
    for _ in range(rng.integers(0, 3)):
        steps.append(_language(rng, orders[rng.integers(len(orders))]))
    if rng.random() < 0.5:
        steps.append(_language(rng, {"kind": "transliterate", "strength": float(rng.choice([0.5, 1.0]))}))
    if rng.random() < 0.5:
        steps.append(Noise(int(rng.integers(10**6)), repeat=float(rng.choice([0.0, 0.05]))))
    return Chain(*(steps[i] for i in rng.permutation(len(steps)).tolist()))


def _language(rng: np.random.Generator, transform: dict[str, Any]) -> Language:
    return parse_language({"name": "x", "seed": int(rng.integers(1000)), "transforms": [transform]})


def reference(batch: TaskBatch, derived: Corpus) -> dict[str, tuple[list[list[int]], list[tuple[int, int]]]]:
    """Item id → (uids of each text, answers as word spans of the context), of the items that must be left.

    ``derived`` holds the sentences after the change, by their ids. All by walking over words.
    """
    after = {s.id: s.columns["uid"] for s in derived}
    owner = batch.text_of_sentence.tolist()
    result = {}
    for row, name in enumerate(batch.ids):
        texts = []
        for text in batch.texts[row].tolist():
            ids = [int(batch.corpus.ids[s]) for s, t in enumerate(owner) if t == text]
            texts.append([u for i in ids for u in after[i]] if all(i in after for i in ids) else [])
        answers, asked = [], 0
        uid = batch.corpus.columns["uid"].codes
        for item, start, stop in zip(batch.answers.item, batch.answers.start, batch.answers.stop, strict=True):
            if item == row:
                asked += 1
                mine = set(uid[start:stop].tolist())
                at = [place for place, u in enumerate(texts[CONTEXT]) if u in mine]
                if at and at == list(range(at[0], at[0] + len(at))):
                    answers.append((at[0], at[-1] + 1))
        if all(texts) and (answers or not asked):
            result[name] = (texts, answers)
    return result


def expected_tags(sentence_tags: list[str], sentence_uids: list[int], uids: list[int]) -> list[str]:
    """BIO tags of the words ``uids``: B where the word before is of another mention."""
    mention: dict[int, tuple[int, str]] = {}
    number, previous = 0, "O"
    for uid, tag in zip(sentence_uids, sentence_tags, strict=True):
        if tag != "O":
            number += tag[0] == "B" or previous[1:] != tag[1:]
            mention[uid] = (number, tag[2:])
        previous = tag
    tags, before = [], None
    for uid in uids:
        mine = mention.get(uid)
        tags.append("O" if mine is None else f"{'I' if mine == before else 'B'}-{mine[1]}")
        before = mine
    return tags


def join(parts: list[Corpus]) -> Corpus:
    """Sentences of several corpora, by id."""
    whole = concatenate(parts)
    return whole.take(np.argsort(whole.ids, kind="stable").astype(np.int64))
