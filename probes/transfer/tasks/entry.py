"""The list of built-in downstream tasks. It does not import PyTorch.

To add a task, write a file with a subclass of ``probes.transfer.tasks.base.Task`` and add a line here. The name is then
a value of ``TransferConfig.task`` and of ``synthlang transfer --task``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TaskEntry:
    """A line of the table of tasks.

    Attributes:
        place: The class of the task as ``module:class``. The module is imported when the task runs.
        settings: The dotted keys of TransferConfig that have an effect on this task, but not on every task.
        pairs: True if an item has two texts. They may be in different languages (``mixed``).
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
