"""A source whose sentences have the trees of a parser."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from synthlang.corpus import FORM, Corpus, Sentence
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.parsing.chunks import CHUNK, Mode, ParseCache, default_cache, parse_chunks
from synthlang.parsing.engines import TREE_COLUMNS, Engine, Parsed
from synthlang.progress import already
from synthlang.sources.base import Source, annotated_batches, check_split, remarks_of, size_of

FORMAT = 1
Tokens = Literal["source", "engine"]


class ParsedSource:
    """Source of the sentences of another source with the trees of a parser, which replace any trees of that source.

    All other columns of the source and of the parser are kept. The arguments other than ``cache`` are also attributes.

    Args:
        source: The source to parse.
        engine: The parser.
        cache: Folder of the cache of parses (default: ``default_cache()``).
        tokens: ``source`` keeps the words and columns of the source. With ``engine`` the parser splits words and
            sentences itself, and the source must have only words.
        workers: Number of worker processes.
        report: Called as ``report(split, sentences)`` after each chunk (default: no calls). For a chunk from the cache,
            ``report.already`` is called instead if it exists.
        devices: CUDA devices of the worker processes (see ``parse_chunks``).

    Raises:
        InputError: ``tokens`` is ``engine`` and the source has other columns than words, or the cache is not a folder.

    Attributes:
        cache: The cache of parses in the given folder.
        skipped: Number of sentences that the parser could not parse, by split and reason, so far.
        hits: Number of chunks from the cache (True) and of other chunks (False), so far.
    """

    def __init__(self, source: Source, engine: Engine, cache: Path | None = None, tokens: Tokens = "source",
                 workers: int = 1, report: Callable[[str, int], None] | None = None,
                 devices: Sequence[str] = ()) -> None:  # fmt: skip
        if tokens == "engine" and tuple(source.columns) != (FORM,):
            more = ", ".join(name for name in source.columns if name != FORM)
            reason = f"'engine' can split plain text only, but the words of the source are annotated ({more})"
            raise InputError(reason, "--tokens", hint="use --tokens source", code="conflict")
        self.source, self.engine, self.tokens, self.workers, self.report = source, engine, tokens, workers, report
        self.devices = devices
        self.cache = ParseCache(cache or default_cache())
        self.skipped: dict[str, Counter[str]] = {}
        self.hits: Counter[bool] = Counter()

    @cached_property
    def fingerprint(self) -> str:
        parents = {"source": self.source.fingerprint, "engine": self.engine.fingerprint}
        return fingerprint("parsed", format=FORMAT, tokens=self.tokens, parents=parents)

    @property
    def splits(self) -> tuple[str, ...]:
        return self.source.splits

    @property
    def columns(self) -> tuple[str, ...]:
        """``form upos head deprel``, then other columns of the source, then other columns of the parser."""
        others = [*self.source.columns, *self.engine.columns]
        return tuple(dict.fromkeys((FORM, *TREE_COLUMNS, *others)))

    @property
    def licence(self) -> str | None:
        return getattr(self.source, "licence", None)

    def remarks(self, split: str) -> Mapping[str, int]:
        """Return counts of changes, omissions and suspicious words in the source to parse (see ``remarks_of``)."""
        return remarks_of(self.source, split)

    def size(self, split: str) -> int | None:
        """Return the approximate number of parsed sentences, or None if the parser splits sentences itself."""
        size = None if self.tokens == "engine" else size_of(self.source, split)
        return None if size is None else size - self.skipped.get(split, Counter()).total()

    def batches(self, split: str) -> Iterator[Corpus]:
        """Yield the sentences of a split in order. Ids count the sentences that could be parsed, from 0.

        Raises:
            InputError: The source lacks the split, a line of the split is malformed, or the parser fails (see
                ``parse_chunks``).
            DiskError: The cache cannot be written.
        """
        check_split(self.source, split, "the source to parse")
        self.skipped[split] = Counter()
        parsed = self._parsed(split)
        if self.tokens == "engine":
            sentences = (sentence for _, outcomes in parsed for outcome in outcomes for sentence in outcome)
            yield from annotated_batches(self._ordered(sentence) for sentence in sentences)
            return
        first = 0
        for batch, outcomes in parsed:
            rows = [self._ordered(o[0] | _others(s)) for s, o in zip(batch, outcomes, strict=True) if o]
            if rows:
                yield Corpus.of(rows, first)
            first += len(rows)

    def _ordered(self, sentence: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {name: sentence[name] for name in self.columns}

    def _parsed(self, split: str) -> Iterator[tuple[Corpus, list[list[Parsed]]]]:
        """Yield each batch of the source with the parses of each sentence. An omitted sentence has none."""
        waiting: deque[Corpus] = deque()
        done: list[list[Parsed]] = []

        def chunks() -> Iterator[list[Any]]:
            for batch in self.source.batches(split):
                waiting.append(batch)
                yield from self._cut(batch)

        for outcomes, hit in parse_chunks(self.engine, self.mode, chunks(), self.cache, self.workers, self.devices):
            self.hits[hit] += 1
            self.skipped[split].update(o for o in outcomes if isinstance(o, str))
            done += [[] if isinstance(o, str) else o for o in outcomes]
            if self.report:
                if hit:
                    already(self.report, split, len(outcomes))
                else:
                    self.report(split, len(outcomes))
            while waiting and len(done) >= len(waiting[0]):
                batch = waiting.popleft()
                yield batch, done[: len(batch)]
                del done[: len(batch)]
        assert not done, "every outcome belongs to a sentence"

    @property
    def mode(self) -> Mode:
        """``words`` if the parser gets the words of the source, else ``text``."""
        return "words" if self.tokens == "source" else "text"

    def chunks(self, split: str) -> Iterator[list[Any]]:
        """Yield the chunks of a split, each a list of sentences in the form that ``mode`` names, without parsing them.

        Raises:
            InputError: The source lacks the split, or a line of the split is malformed.
        """
        return (chunk for batch in self.source.batches(split) for chunk in self._cut(batch))

    def _cut(self, batch: Corpus) -> Iterator[list[Any]]:
        sentences: list[Any] = batch.texts() if self.tokens == "engine" else [s.words for s in batch]
        return (sentences[start : start + CHUNK] for start in range(0, len(sentences), CHUNK))


def _others(sentence: Sentence) -> dict[str, list[Any]]:
    return {name: values for name, values in sentence.columns.items() if name not in TREE_COLUMNS}
