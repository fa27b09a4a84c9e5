"""What is known of a downstream task before it is loaded, and a line on each of ours.

A new task is a file with a subclass of ``probes.transfer.tasks.base.Task`` and a line here: its name is then a value of
``TransferConfig.task`` and of ``synthlang transfer --task``. Nothing here imports PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TaskEntry:
    """A line of the table.

    place     ``module:class``, which is loaded, with PyTorch, when the task is run
    settings  dotted keys of TransferConfig that it reads and not every task does
    pairs     whether an item has two texts, so that each can be in a language of its own (``mixed``)
    """

    place: str
    settings: tuple[str, ...] = ()
    pairs: bool = False


_TAGS = ("features.subword", "head.kind", "head.hidden")
_PARSER = ("features.subword", "head.arc", "head.relation", "score.punctuation")
_ANSWERS = ("stride", "head.answer_words", "head.answer_tokens", "score.answers")

OURS = {
    "nli": TaskEntry("probes.transfer.tasks.nli:Nli", ("head.pooler",), pairs=True),
    "ner": TaskEntry("probes.transfer.tasks.ner:Ner", (*_TAGS, "score.repair")),
    "pos": TaskEntry("probes.transfer.tasks.pos:Pos", _TAGS),
    "parsing": TaskEntry("probes.transfer.tasks.parsing:Parsing", _PARSER),
    "slots": TaskEntry("probes.transfer.tasks.slots:Slots", (*_TAGS, "score.repair")),
    "qa": TaskEntry("probes.transfer.tasks.qa:Qa", _ANSWERS, pairs=True),
}
