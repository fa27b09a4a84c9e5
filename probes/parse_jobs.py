"""``synthlang parse --executor slurm``: the text is cut into parts, and jobs parse the parts into a shared cache.

The command reads the source once to write the parts, waits for the jobs, and reads the source again to write the
output from the cache, by the code that also writes it without a cluster. The bytes of the output are therefore the
same. All further files are in the folder ``.parsing-NAME`` beside the output, which is deleted at the end:

job.json     source, parser, cache and size of the jobs, which a later call must have as well
parts/       files of sentences
stages/      a folder for each finished part
slurm/       tasks, records and logs of the jobs
parses/      the cache, unless the options name another folder
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from probes.stages.base import StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.stages.done import is_done
from probes.stages.parse import ParseStage, PartConfig
from probes.study.executors.base import Executor, StageOutcome
from probes.study.executors.slurm import SlurmExecutor, check_slurm
from probes.study.executors.slurm_options import read_options
from synthlang.errors import InputError
from synthlang.files import check_named, only_writer, read_json, write_json
from synthlang.parsing import ParsedSource, open_engine
from synthlang.parsing.parse_command import parse_command, parsed_fingerprint
from synthlang.parsing.parts import cut_parts
from synthlang.parsing.source import Tokens
from synthlang.progress import Display, Report, Say
from synthlang.sources import open_source
from synthlang.sources.base import size_of
from synthlang.store import Store
from synthlang.wording import plural

PREFIX, JOB = ".parsing-", "job.json"
SENTENCES = 100_000
"""Default number of sentences of a job, about 6 minutes of spaCy on one core."""
SEND = 30.0
"""Number of seconds for which parts are collected before they are submitted as an array."""
PATIENCE = 1.0
"""Number of seconds of one wait for outcomes of the executor."""
AGAIN = "run the same command again; finished parts are kept"


def parse_on_slurm(
    source_spec: str,
    parser: str,
    out: Path,
    tokens: Tokens = "source",
    cache: Path | None = None,
    *,
    morphology: bool = False,
    sentences: int = SENTENCES,
    slurm: tuple[str, ...] = (),
    retry: int = 0,
    wait: bool = True,
) -> dict[str, int]:
    """Parse a source with jobs of Slurm, and return the number of sentences of each split.

    With ``wait`` False, the jobs are submitted and the result is empty. A later call with ``wait`` True and otherwise
    equal arguments collects their results. If ``out`` exists, no job is started, and the call ends as in
    ``parse_command``.

    Args:
        source_spec: The source.
        parser: The parser, such as ``spacy:en_core_web_sm``.
        out: Folder to write. It must be on a disk that all nodes mount at the same path.
        tokens: ``source`` or ``engine`` (see ``ParsedSource``).
        cache: Folder of the cache, on such a disk (default: a temporary folder beside ``out``).
        morphology: True to annotate morphological features and lemmas.
        sentences: Number of sentences of a job.
        slurm: Options of Slurm, as ``KEY=VALUE``.
        retry: Number of further tries of a failed job.
        wait: True to wait for the jobs and write the output. False to submit all jobs and end.

    Raises:
        InputError: A job failed. ``out`` or the folder of the work has other content, or another process writes it. An
            option of Slurm is wrong. The source, the parser or Slurm is missing.
        DiskError: A file cannot be written.
    """
    check_named(out)
    out = out.absolute()
    work = out.with_name(PREFIX + out.name)
    if not out.exists():
        job = read_options(slurm).of("parse")
        check_slurm(work)
        cache = (cache or work / "parses").absolute()
        source = ParsedSource(open_source(source_spec), open_engine(parser, morphology=morphology), cache, tokens)
        config = PartConfig(parser=parser, part="", mode=source.mode, morphology=morphology)
        with only_writer(work / JOB), Display() as display:  # jobs may write into the folder now
            _claim(work, source, sentences)
            executor = SlurmExecutor(Store(work / "stages"), work, slurm)
            workers = 1 if job.gpus or job.gres else job.cpus
            stages = _stages(source, config, work, sentences, workers, display)
            if not wait:
                left = [stage for stage in stages if not is_done(executor.store, stage)]
                executor.submit_graph(left)
                told = f"submitted {plural(len(left), 'part')}; run the same command without --no-wait later"
                display.message(told)
                return {}
            run_parts(stages, executor, executor.store, retry, display.report, display.message)
    counts = parse_command(source_spec, parser, out, tokens, cache=cache, morphology=morphology)
    shutil.rmtree(work, ignore_errors=True)
    return counts


def _claim(work: Path, source: ParsedSource, sentences: int) -> None:
    """Create the folder of the work, or continue the work in it."""
    path = work / JOB
    about = {"fingerprint": parsed_fingerprint(source), "sentences": sentences, "cache": str(source.cache.root)}
    if path.exists() and read_json(path) != about:
        reason = (
            "the folder holds unfinished work with another or a changed source, other parser options, another cache "
            "or another number of sentences per job"
        )
        hint = "delete the folder, name another output, or run the command that began the work again"
        raise InputError(reason, work, hint=hint, code="exists")
    write_json(path, about)


def _stages(
    source: ParsedSource, config: PartConfig, work: Path, sentences: int, workers: int, display: Display
) -> Iterator[ParseStage]:
    """Cut the source, and yield a stage for each part that is not in the cache.

    The key ``part`` of ``config`` is still empty. Parts with equal sentences have one stage.
    """
    keys, known = StageKeys(ContentHashes(Store(work / "stages"))), set[str]()
    read = display.counter("read", partial(size_of, source.source))
    for part in cut_parts(source, work / "parts", sentences):
        read(part.path.name.partition("-")[0], part.sentences)
        if not part.is_cached:
            one = config.model_copy(update={"part": str(part.path)})
            stage = keys.keyed(ParseStage(config=one, cache=str(source.cache.root), workers=workers))
            if stage.key not in known:
                known.add(stage.key)
                yield stage


@dataclass
class _Parts:
    """The submitted parts that have not ended, and the outcomes of failed ones."""

    executor: Executor
    retry: int
    report: Report
    say: Say
    running: dict[str, ParseStage] = field(default_factory=dict)
    tries: Counter[str] = field(default_factory=Counter)
    failed: list[StageOutcome] = field(default_factory=list)

    def submit(self, stage: ParseStage) -> None:
        self.running[stage.key] = stage
        self.tries[stage.key] += 1
        self.executor.submit(stage)

    def collect(self, seconds: float) -> None:
        """Wait for outcomes. A failed part is submitted again if a try is left."""
        for outcome in self.executor.wait(self.report, seconds):
            stage = self.running.pop(outcome.key)
            if outcome.error is None:
                continue
            if self.tries[stage.key] <= self.retry:
                self.say(f"{stage.label} failed and is tried again: {outcome.error}")
                self.submit(stage)
            else:
                self.failed.append(outcome)


def run_parts(
    stages: Iterator[ParseStage], executor: Executor, store: Store, retry: int, report: Report, say: Say
) -> None:
    """Run all stages. The first stages are submitted while later parts are still being cut.

    Args:
        stages: The stages, which may be made while they are read. Finished stages are not run again.
        executor: The executor that runs the stages.
        store: The store in which finished stages are found.
        retry: Number of further tries of a failed stage.
        report: Function that receives the progress.
        say: Function that receives lines of text for the user.

    Raises:
        InputError: A stage failed in all tries, or the executor can run no further stage. In the first case, all
            stages have ended.
    """
    parts, sent, total = _Parts(executor, retry, report, say), time.monotonic(), 0
    for stage in stages:
        total += 1
        if is_done(store, stage):
            continue
        while executor.capacity() <= 0:
            parts.collect(PATIENCE)
        parts.submit(stage)
        if time.monotonic() - sent >= SEND:
            parts.collect(0.0)
            sent = time.monotonic()
    while parts.running:
        parts.collect(PATIENCE)
    if parts.failed:
        reason = f"{len(parts.failed)} of {plural(total, 'part')} failed, the first one with: {parts.failed[0].error}"
        raise InputError(reason, hint=AGAIN, code="failed")
