"""Claims as data: the file NAME of the kind claims, each with the comparison of results that would show it.

    paper: align_mlm                    # optional: its labels are the only ones that may be named
    claims:
      - id: align-beats-mlm
        claim: ALIGN-MLM transfers better than MLM where script and order differ.
        source: section 5, table 3
        paper: POS Δ 3.0 against 38.5   # the paper's numbers, to be read
        compare: [{where: {transform: trans+inv, task: pos}, measure: delta,
                   left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}}, relation: less}]

Instead of ``compare``: ``order`` (three or more things, each above the next) or ``correlate``. The rule of each is in
verdicts.py. With ``minus`` on both sides two gaps are compared: how far each side is above what is taken off it. With
``each: {task: [nli, pos]}`` an entry stands for one a label (of several axes: one a combination), so that a sentence
that says "in every task" is not judged by a mean over tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from probes.statistics import CorrelationKind
from synthlang.config import StrictModel
from synthlang.errors import did_you_mean

OF_PROBE = "probe:"
"""What the name of a measure of a probe starts with."""
MEASURE = re.compile(r"parent|sup|zs|delta|alignment_(all|dictionary|held_out|forward)|mixed( \w+)?|probe:\S.*")
Where = dict[str, str]
Average = dict[str, tuple[str, ...]]
Labels = Mapping[str, tuple[str, ...]]
Layer = int | Literal["first", "last", "lower", "upper", "middle", "mean", "best", "each"]


@dataclass(frozen=True)
class Quantity:
    """A number to look up in results.

    where     axis → label; ``task`` is the name of a task of the study. Other axes may have any label
    measure   parent, sup, zs, delta; mixed FIELD, or mixed for the mean over fields; alignment_all,
              alignment_dictionary, alignment_held_out, means of both directions; alignment_forward, that of all
              words from the parent; ``probe:PATH``, a measure of a probe
    average   axis → labels whose mean it is, all of which must be there; no labels: of those that are there
    layer     of a measure that has several: its number, ``first`` or ``last``, the mean of the ``lower`` or ``upper``
              half, the ``middle`` one, the ``mean`` of all, or the ``best`` (largest value); ``each``: the layer is one
              more axis of the conditions, ``layer``. Default: the last
    instead   the measure that is read where nothing was measured of ``measure``
    without   axes that the cells must not have
    """

    where: Mapping[str, str]
    measure: str
    average: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    layer: Layer | None = None
    instead: str | None = None
    without: tuple[str, ...] = ()


def probe_measures(quantities: Iterable[Quantity]) -> list[str]:
    """The measures of probes, by their paths, that are looked up, each once in their order."""
    names = (name for one in quantities for name in (one.measure, one.instead) if name is not None)
    return list(dict.fromkeys(name.removeprefix(OF_PROBE) for name in names if name.startswith(OF_PROBE)))


def check_measure(value: str | None) -> str | None:
    """ValueError for what is no measure; None is none."""
    if value is not None and not MEASURE.fullmatch(value):
        raise ValueError(
            "must be parent, sup, zs, delta, mixed, mixed FIELD, alignment_all, alignment_dictionary, "
            "alignment_held_out, alignment_forward or probe:PATH"
        )
    return value


def check_quantity(quantity: Quantity, labels: Labels) -> None:
    """ValueError for an axis or a label of ``quantity`` that is not among ``labels``."""
    check_labels({axis: [label] for axis, label in quantity.where.items()}, labels)
    check_labels(quantity.average, labels)
    check_labels(dict.fromkeys(quantity.without, ()), labels)


def check_labels(among: Mapping[str, Sequence[str]], known: Labels) -> None:
    """ValueError for an axis, or a label of it, that is not among the ``known`` ones."""
    for axis, labels in among.items():
        if axis not in known:
            raise ValueError(f"{axis!r} is no axis of the paper's labels; there are: {', '.join(known)}")
        for label in labels:
            if label not in known[axis]:
                hint = did_you_mean(label, known[axis])
                raise ValueError(f"{axis}: no label {label!r}; {hint}there are: {', '.join(known[axis])}")


Relation = Literal["greater", "less", "no_less", "no_more", "near"]
MARGIN = 2.0
"""Of no_less, no_more and near where a claim gives none, in points of a score in percent: what the papers call a match
is 1.7 points apart at most (ALIGN-MLM, NLI under trans+syn)."""
_ClaimEntry = TypeVar("_ClaimEntry", bound="ClaimEntry")


class ClaimSide(StrictModel):
    """What is looked up (see ``papers.Quantity``); what is left out is that of the comparison it stands in."""

    where: Where = Field(default_factory=dict)
    without: list[str] = Field(default_factory=list)
    measure: str | None = None
    instead: str | None = None
    average: Average | None = None
    layer: Layer | None = None

    _measure = field_validator("measure", "instead")(check_measure)

    def within(self, common: ClaimSide) -> Quantity:
        """With ``common`` where this side says nothing."""
        measure = self.measure or common.measure
        assert measure is not None, "checked"
        average = self.average if self.average is not None else common.average or {}
        layer = self.layer if self.layer is not None else common.layer
        instead = self.instead or (common.instead if self.measure is None else None)  # it goes with its measure
        without = (*common.without, *self.without)
        return Quantity({**common.where, **self.where}, measure, average, layer, instead, without)


class ComparedSide(ClaimSide):
    """A side of a comparison. ``minus``: what is taken off it; what that leaves out is that of this side."""

    minus: ClaimSide | None = None

    def taken_off(self, common: ClaimSide) -> Quantity | None:
        """What is taken off, with this side and then ``common`` where it says nothing."""
        if self.minus is None:
            return None
        return self.minus.within(ClaimSide.model_construct(**vars(self.within(common))))


class ClaimEntry(ClaimSide):
    """Of ``compare``, ``order`` or ``correlate``.

    each    axis → labels; the entry stands for one with each combination of them
    among   axis → the only labels of it that count, of an axis that is not named
    """

    each: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    among: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)

    def one_a_label(self) -> Iterator[Self]:
        """With each combination in ``where``."""
        for labels in product(*self.each.values()):
            where = {**self.where, **dict(zip(self.each, labels, strict=True))}
            yield self.model_copy(update={"where": where, "each": {}})

    @model_validator(mode="after")
    def _said_once(self) -> Self:
        for axis in self.each:
            if axis in self.where:
                raise ValueError(f"{axis!r} is in where and in each: say it in one of them")
        return self


class Compare(ClaimEntry):
    """``left`` against ``right`` (or against a number, ``value``); both may have a ``minus``.

    relation       greater, less: by more than ``margin`` (default 0). no_less, no_more: by less than ``margin`` in the
                   other direction, and anything in this one. near: by less than ``margin`` in either. The tests:
                   estimates.py. The default margin of the last three is MARGIN
    none_against   the mean over conditions has to hold, and the single ones may not be against it
    """

    left: ComparedSide
    right: ComparedSide | None = None
    value: float | None = None
    relation: Relation
    margin: float | None = None
    none_against: bool = False

    @model_validator(mode="after")
    def _complete(self) -> Compare:
        if (self.right is None) == (self.value is None):
            raise ValueError("left is compared with right or with a value: give one of them")
        if self.measure is None and any(side.measure is None for side in (self.left, self.right) if side is not None):
            raise ValueError("needs a measure")
        if (self.left.minus is None) != (self.right is None or self.right.minus is None):
            raise ValueError("minus goes with both sides, left and right, or with none")
        if self.margin is not None and self.margin < 0:
            raise ValueError("margin is negative: no_less and no_more allow as much in the other direction")
        unlike_scores = any(one.measure.startswith(OF_PROBE) for one in self.quantities())
        if self.relation not in ("greater", "less") and (self.margin == 0 or (self.margin is None and unlike_scores)):
            raise ValueError(f"{self.relation} needs a margin above 0")
        return self

    @property
    def points(self) -> float:
        """The margin, or its default."""
        default = 0.0 if self.relation in ("greater", "less") else MARGIN
        return default if self.margin is None else self.margin

    def quantities(self) -> list[Quantity]:
        """``left``, ``right`` and what is taken off each, as far as there are such."""
        sides = [self.left] if self.right is None else [self.left, self.right]
        taken_off = [side.taken_off(self) for side in sides]
        return [*(side.within(self) for side in sides), *(quantity for quantity in taken_off if quantity is not None)]


class Order(ClaimEntry):
    """Three or more things ``along`` which the measure is ``rising`` or ``falling``."""

    along: list[Where] = Field(min_length=3)
    direction: Literal["rising", "falling"]

    @model_validator(mode="after")
    def _complete(self) -> Order:
        if self.measure is None:
            raise ValueError("needs a measure")
        return self

    def quantities(self) -> list[Quantity]:
        """In their order."""
        return [ClaimSide(where=where).within(self) for where in self.along]


class Correlate(ClaimEntry):
    """``x`` and ``y`` over all labels of the axes ``over``, within the labels of ``by``; other axes are averaged.

    ``layer`` is an axis where the layer of both is ``each``.
    """

    x: ClaimSide
    y: ClaimSide
    over: list[str] = Field(min_length=1)
    by: list[str] = Field(default_factory=list)
    expect: Literal["positive", "negative"]
    kind: CorrelationKind = "spearman"

    @model_validator(mode="after")
    def _complete(self) -> Correlate:
        if self.measure is None and None in (self.x.measure, self.y.measure):
            raise ValueError("x and y need a measure")
        if ("layer" in (*self.over, *self.by)) != all(side.layer == "each" for side in self.quantities()):
            raise ValueError("the axis layer goes with layer: each, of x and y")
        if other := [axis for axis in self.among if axis not in (*self.over, *self.by)]:
            raise ValueError(f"among: {other[0]!r} is in neither over nor by")
        return self

    def quantities(self) -> list[Quantity]:
        """``x`` and ``y``."""
        return [self.x.within(self), self.y.within(self)]


class Claim(StrictModel):
    """One claim: a sentence, where it stands, the paper's numbers, and what would show it.

    ``note``: which studies have to be joined to judge it, or what of it no study here can run, and why.
    ``whole``: a part of its comparisons shows nothing, all have to be run.
    """

    id: str = Field(min_length=1)
    claim: str = Field(min_length=1)
    source: str
    paper: str = ""
    note: str = ""
    whole: bool = False
    compare: list[Compare] | None = Field(default=None, min_length=1)
    order: list[Order] | None = Field(default=None, min_length=1)
    correlate: list[Correlate] | None = Field(default=None, min_length=1)

    @field_validator("correlate", mode="before")
    @classmethod
    def _one_or_several(cls, entries: Any) -> Any:
        return [entries] if isinstance(entries, dict) else entries

    @field_validator("compare", "order", "correlate")
    @classmethod
    def _one_a_label(cls, entries: list[_ClaimEntry] | None) -> list[_ClaimEntry] | None:
        return None if entries is None else [one for entry in entries for one in entry.one_a_label()]

    @model_validator(mode="after")
    def _one_form(self) -> Claim:
        if sum(form is not None for form in (self.compare, self.order, self.correlate)) != 1:
            raise ValueError("needs one of compare, order and correlate")
        return self

    @property
    def paper_and_note(self) -> str:
        """To be read beside a verdict."""
        return ". ".join(part for part in (self.paper, self.note) if part)

    def quantities(self) -> Iterator[Quantity]:
        """All that is looked up."""
        for entry in self.entries():
            yield from entry.quantities()

    def entries(self) -> Sequence[Compare | Order | Correlate]:
        """Those of its one form."""
        return self.compare or self.order or self.correlate or ()
