"""Claims as data: their text, the comparisons of results that test them, and their form in YAML.

    paper: align_mlm                    # optional: then only labels of this paper's tables may be named
    claims:
      - id: align-beats-mlm
        claim: ALIGN-MLM transfers better than MLM where script and order differ.
        source: section 5, table 3
        paper: POS Δ 3.0 against 38.5   # the paper's numbers, shown beside ours
        compare: [{where: {transform: trans+inv, task: pos}, measure: delta,
                   left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}}, relation: less}]

A claim has one of three forms. ``compare`` compares two sides, ``order`` ranks three or more conditions, ``correlate``
relates two measures over conditions. The tests are in verdicts.py, and papers.py reads the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from probes.results.curves import CurveSummary
from probes.statistics import CorrelationKind
from synthlang.config import StrictModel, renamed_values
from synthlang.errors import Code, InputError, did_you_mean
from synthlang.wording import enumerated

OF_PROBE = "probe:"
"""Prefix of the name of a probe's measure."""
MEASURE = re.compile(r"parent|sup|zs|delta|alignment_(all|dictionary|held_out|forward)|mixed( \w+)?|probe:\S.*")
LAYER = "layer"
"""Axis of the layers of a measure that is looked up at each layer."""
MARGIN = 2.0
"""Default margin of equivalent, non_inferior and non_superior, in points of a score in percent.

Scores that the papers call a match differ by at most 1.7 points (ALIGN-MLM, NLI under trans+syn).
"""
Where = dict[str, str]
Average = dict[str, tuple[str, ...]]
AxisLabels = Mapping[str, tuple[str, ...]]
LabelsOfAxis = Annotated[list[str], Field(min_length=1)]
Layer = int | Literal["first", "last", "lower", "upper", "middle", "mean", "best", "each"]
TestedOn = Literal["derived languages"]
"""Languages that replace the natural languages of a claim, in studies of one scale."""
Relation = Literal["greater", "less", "non_inferior", "non_superior", "equivalent"]
_Entry = TypeVar("_Entry", bound="ClaimEntry")


@dataclass(frozen=True)
class Quantity:
    """A number to look up in results. The attributes are the keys of ``ClaimSide``, which explains them."""

    where: Mapping[str, str]
    measure: str
    average: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    layer: Layer | None = None
    fallback_measure: str | None = None
    exclude_axes: tuple[str, ...] = ()
    curve: CurveSummary | None = None


def probe_measures(quantities: Iterable[Quantity]) -> list[str]:
    """Return the paths of the probe measures that are looked up, each once, in their order."""
    names = (name for one in quantities for name in (one.measure, one.fallback_measure) if name is not None)
    return list(dict.fromkeys(name.removeprefix(OF_PROBE) for name in names if name.startswith(OF_PROBE)))


def check_measure(value: str | None) -> str | None:
    """Check that ``value`` is the name of a measure or None, and return it.

    Raises:
        InputError: The text names no measure.
    """
    if value is not None and not MEASURE.fullmatch(value):
        hint = (
            "use parent, sup, zs, delta, mixed, mixed FIELD, alignment_all, alignment_dictionary, alignment_held_out, "
            "alignment_forward or probe:PATH"
        )
        raise InputError(f"{value!r} is not a measure", hint=hint, code="unknown")
    return value


def check_quantity(quantity: Quantity, known: AxisLabels) -> None:
    """Raise InputError if an axis or a label of ``quantity`` is not in ``known``."""
    check_labels({axis: [label] for axis, label in quantity.where.items()}, known)
    check_labels(quantity.average, known)
    check_labels(dict.fromkeys(quantity.exclude_axes, ()), known)


def check_labels(named: Mapping[str, Sequence[str]], known: AxisLabels) -> None:
    """Raise InputError if an axis of ``named``, or one of its labels, is not in ``known``."""
    for axis, labels in named.items():
        if axis not in known:
            hint = f"{did_you_mean(axis, known)}allowed: {', '.join(known)}"
            reason = f"names the axis {axis!r}, which the labels of the paper do not have"
            raise InputError(reason, hint=hint, code="unknown")
        for label in labels:
            if label not in known[axis]:
                hint = f"{did_you_mean(label, known[axis])}allowed: {', '.join(known[axis]) or 'none'}"
                reason = f"names the label {label!r} of the axis {axis!r}, which the labels of the paper do not have"
                raise InputError(reason, hint=hint, code="unknown")


class ClaimSide(StrictModel):
    """A quantity of a claim.

    Omitted keys have the values of the entry that contains the side. Labels of ``where`` and ``exclude_axes`` are added
    to those of the entry. A side with its own ``measure`` does not inherit ``fallback_measure``.
    """

    renamed_keys: ClassVar[Mapping[str, str]] = {"instead": "fallback_measure", "without": "exclude_axes"}

    where: Where = Field(default_factory=dict)
    """Axis → label. ``task`` is the name of a task of the study. Other axes may have any label."""
    exclude_axes: list[str] = Field(default_factory=list)
    """Axes that a cell must not have."""
    measure: str | None = None
    """Name of the measure.

    The scores are ``parent``, ``sup``, ``zs``, ``delta``, ``mixed FIELD`` and ``mixed`` (the mean over fields). The
    alignments are ``alignment_all``, ``alignment_dictionary`` and ``alignment_held_out`` (means of both directions),
    and ``alignment_forward`` (all words, from the source language). ``probe:PATH`` is a measure of a probe.
    """
    fallback_measure: str | None = None
    """Measure to read where ``measure`` was not measured."""
    average: Average | None = None
    """Axis → labels to average over, all of which must be measured. An empty list stands for all measured labels."""
    layer: Layer | None = None
    """Layer of a measure that has several layers (default: the last layer).

    It is a number, ``first``, ``middle``, ``last``, or ``best`` for the layer with the largest value. ``lower``,
    ``upper`` and ``mean`` are means over the lower half, the upper half and all layers. With ``each``, the layer is one
    more axis.
    """
    curve: CurveSummary | None = None
    """Summary of a measure of a probe over the steps of pretraining (default: the value at the selected checkpoint).

    It is the ``area``, the ``final`` value, or the number of steps to a threshold.
    """

    _known_measure = field_validator("measure", "fallback_measure")(check_measure)

    def within(self, entry: ClaimSide) -> Quantity:
        """Return the quantity, with the values of ``entry`` for omitted keys."""
        measure = self.measure or entry.measure
        assert measure is not None, "checked when the entry was read"
        return Quantity(
            where={**entry.where, **self.where},
            measure=measure,
            average=self.average if self.average is not None else entry.average or {},
            layer=self.layer if self.layer is not None else entry.layer,
            # a side with a measure of its own does not inherit the fallback of another measure
            fallback_measure=self.fallback_measure or (entry.fallback_measure if self.measure is None else None),
            exclude_axes=(*entry.exclude_axes, *self.exclude_axes),
            curve=self.curve if self.curve is not None else entry.curve,
        )


class ComparedSide(ClaimSide):
    """A side of a comparison, with an optional quantity ``minus`` to subtract.

    Keys that ``minus`` omits have the values of the side.
    """

    minus: ClaimSide | None = None
    """Quantity to subtract from this side."""

    def subtracted(self, entry: ClaimSide) -> Quantity | None:
        """Return the quantity to subtract, or None. Its keys come from ``minus``, else this side, else ``entry``."""
        if self.minus is None:
            return None
        return self.minus.within(ClaimSide.model_construct(**vars(self.within(entry))))


class ClaimEntry(ClaimSide):
    """An entry of ``compare``, ``order`` or ``correlate``."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        **ClaimSide.renamed_keys,
        "each": "for_each",
        "among": "restrict_to",
    }

    for_each: dict[str, LabelsOfAxis] = Field(default_factory=dict)
    """Axis → labels. Each combination of these labels makes a separate entry.

    A sentence about "every task" is then not tested by a mean over tasks.
    """
    restrict_to: dict[str, LabelsOfAxis] = Field(default_factory=dict)
    """Axis → labels. Only conditions with one of these labels are used."""

    def expanded(self) -> Iterator[Self]:
        """Yield one entry per combination of labels in ``for_each``, with these labels in ``where``."""
        for labels in product(*self.for_each.values()):
            where = {**self.where, **dict(zip(self.for_each, labels, strict=True))}
            yield self.model_copy(update={"where": where, "for_each": {}})

    @model_validator(mode="after")
    def _axis_named_once(self) -> Self:
        for axis in self.for_each:
            if axis in self.where:
                hint = "delete the axis from where or from for_each"
                raise InputError("the axis is also in where", keys=["for_each", axis], hint=hint, code="duplicate")
        return self


class Compare(ClaimEntry):
    """A comparison of ``left`` with ``right``, or with the number ``value``.

    With ``minus`` on both sides it compares two gaps, (left − its minus) − (right − its minus).
    """

    left: ComparedSide
    """The first side."""
    right: ComparedSide | None = None
    """The second side (default: none, the first side is compared with ``value``)."""
    value: float | None = None
    """The number to compare with, in the unit of the measure."""
    relation: Relation
    """The expected relation of left to right.

    ``greater`` and ``less`` mean a difference of more than ``margin``. ``non_inferior`` and ``non_superior`` allow
    a difference in the other direction of at most ``margin``. ``equivalent`` means a difference of at most
    ``margin``.
    """
    margin: float | None = None
    """The margin in the unit of the measure (default: 0 for ``greater`` and ``less``, else 2 points)."""
    none_against: bool = False
    """Also require that no single condition contradicts the claim, in addition to the mean over conditions."""
    above_floor: list[ClaimSide] = Field(default_factory=list)
    """Scores that have to lie above the majority baseline.

    A score lies above the baseline if the 95 % interval of its distance to the baseline is above 0. Conditions with a
    score that is not above the baseline are not judged, because the score cannot fall any lower there.
    """

    _renamed_relations = renamed_values("relation", near="equivalent", no_less="non_inferior", no_more="non_superior")

    @model_validator(mode="after")
    def _sides_fit(self) -> Compare:
        if (self.right is None) == (self.value is None):
            code: Code = "missing" if self.right is None else "conflict"
            reason = "neither right nor value is given" if self.right is None else "both right and value are given"
            raise InputError(reason, hint="give exactly one of them to compare left with", code=code)
        if self.measure is None and any(side.measure is None for side in (self.left, self.right) if side is not None):
            hint = "set this key, or the measure of each side"
            raise InputError("is required", keys="measure", hint=hint, code="missing")
        if (self.left.minus is None) != (self.right is None or self.right.minus is None):
            keys = ["right" if self.left.minus is None else "left", "minus"]
            hint = "give minus in left and in right, or in neither"
            raise InputError("is given on one side only", keys=keys, hint=hint, code="conflict")
        return self

    @model_validator(mode="after")
    def _margin_fits(self) -> Compare:
        directional = self.relation in ("greater", "less")
        if directional and self.margin is not None and self.margin < 0:
            hint = "use non_inferior or non_superior to allow a difference in the other direction"
            reason = f"must be 0 or more for {self.relation}, not {self.margin:g}"
            raise InputError(reason, keys="margin", hint=hint, code="range")
        of_probe = any(one.measure.startswith(OF_PROBE) for one in self.quantities())
        if not directional and self.margin is None and of_probe:  # the default is in points of a score
            hint = "give a margin in the unit of the measure"
            raise InputError(f"is required for {self.relation}", keys="margin", hint=hint, code="missing")
        if not directional and self.margin is not None and self.margin <= 0:
            reason = f"must be above 0 for {self.relation}, not {self.margin:g}"
            raise InputError(reason, keys="margin", hint="give a margin in the unit of the measure", code="range")
        return self

    @model_validator(mode="after")
    def _floors_fit(self) -> Compare:
        for number, floor in enumerate(self.floors()):
            if floor.measure not in ("zs", "sup"):
                hint = "set the measure of this entry to zs or sup"
                reason = f"{floor.measure!r} has no majority baseline"
                raise InputError(reason, keys=["above_floor", str(number)], hint=hint, code="conflict")
        return self

    def floors(self) -> list[Quantity]:
        """Return the scores that have to lie above the majority baseline."""
        return [side.within(self) for side in self.above_floor]

    @property
    def points(self) -> float:
        """The margin in the unit of the measure, or its default for the relation."""
        default = 0.0 if self.relation in ("greater", "less") else MARGIN
        return default if self.margin is None else self.margin

    def quantities(self) -> list[Quantity]:
        """Return the sides, then the quantities that are subtracted from them."""
        sides = [self.left] if self.right is None else [self.left, self.right]
        subtracted = [side.subtracted(self) for side in sides]
        return [*(side.within(self) for side in sides), *(quantity for quantity in subtracted if quantity is not None)]


class Order(ClaimEntry):
    """The expected order of a measure.

    The measure is ``rising`` or ``falling`` (``direction``) from each entry of ``along`` to the next one.
    """

    along: list[Where] = Field(min_length=3)
    """The conditions in order, each as axis → label."""
    direction: Literal["rising", "falling"]
    """The expected sign of each step from a condition to the next one."""

    @model_validator(mode="after")
    def _has_measure(self) -> Order:
        if self.measure is None:
            hint = "set this key to the measure to compare"
            raise InputError("is required", keys="measure", hint=hint, code="missing")
        return self

    def quantities(self) -> list[Quantity]:
        """Return one quantity for each condition of ``along``, in the same order."""
        return [ClaimSide(where=where).within(self) for where in self.along]


class Correlate(ClaimEntry):
    """A correlation of ``x`` and ``y`` over all labels of the axes ``over``, within the labels of ``by``.

    Other axes are averaged over. ``layer`` is an axis if both quantities have the layer ``each``.
    """

    x: ClaimSide
    """The first quantity."""
    y: ClaimSide
    """The second quantity."""
    over: list[str] = Field(min_length=1)
    """The axes whose combinations of labels are the conditions to correlate over."""
    by: list[str] = Field(default_factory=list)
    """Axes that form blocks: only conditions with the same labels of these axes are compared."""
    expect: Literal["positive", "negative"]
    """The expected sign of the correlation."""
    kind: CorrelationKind = "spearman"
    """Correlation coefficient."""

    @model_validator(mode="after")
    def _axes_fit(self) -> Correlate:
        if self.measure is None and None in (self.x.measure, self.y.measure):
            hint = "set this key, or the measure of both x and y"
            raise InputError("is required", keys="measure", hint=hint, code="missing")
        is_axis = LAYER in (*self.over, *self.by)
        if is_axis != all(side.layer == "each" for side in self.quantities()):
            reason, hint = "x and y have layer: each, but layer is in neither over nor by", "add layer to over or by"
            if is_axis:
                reason, hint = "layer is in over or by, but x or y lacks layer: each", "set layer: each for x and y"
            raise InputError(reason, hint=hint, code="conflict")
        if other := [axis for axis in self.restrict_to if axis not in (*self.over, *self.by)]:
            reason, hint = "the axis is in neither over nor by", "add the axis to by, or delete it here"
            raise InputError(reason, keys=["restrict_to", other[0]], hint=hint, code="no_effect")
        return self

    def quantities(self) -> list[Quantity]:
        """Return the quantities ``x`` and ``y``, with the values of the entry for omitted keys."""
        return [self.x.within(self), self.y.within(self)]


class Fixed(StrictModel):
    """The last change of a choice that the paper leaves open: margins, limits and one-sided relations."""

    date: date
    """The day of the change."""
    reason: str = Field(min_length=1)
    """The reason for the change."""


class Claim(StrictModel):
    """A claim: a sentence, its source, the paper's numbers, and the comparisons that test it."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"whole": "require_all"}

    id: str = Field(min_length=1)
    """Name of the claim, unique in its file."""
    claim: str = Field(min_length=1)
    """The claim as a sentence."""
    source: str
    """The place in the paper."""
    paper: str = ""
    """The paper's numbers, in words."""
    note: str = ""
    """A note on the studies that have to be joined to test the claim, or on a part that no study can run."""
    require_all: bool = False
    """Count the claim as not run unless every comparison could be made."""
    fixed: Fixed | None = None
    """The last change of the claim's margins, limits and one-sided relations."""
    tested_on: dict[str, TestedOn] = Field(default_factory=dict)
    """Scale of a study → languages that replace the natural languages of the claim at this scale.

    The verdict names these languages.
    """
    compare: list[Compare] | None = Field(default=None, min_length=1)
    """Comparisons of two quantities. A claim has exactly one of compare, order and correlate."""
    order: list[Order] | None = Field(default=None, min_length=1)
    """Orders of several conditions."""
    correlate: list[Correlate] | None = Field(default=None, min_length=1)
    """Correlations of two quantities."""

    @field_validator("correlate", mode="before")
    @classmethod
    def _as_list(cls, entries: Any) -> Any:
        return [entries] if isinstance(entries, dict) else entries

    @field_validator("compare", "order", "correlate")
    @classmethod
    def _expanded(cls, entries: list[_Entry] | None) -> list[_Entry] | None:
        return None if entries is None else [one for entry in entries for one in entry.expanded()]

    @model_validator(mode="after")
    def _has_one_form(self) -> Claim:
        forms = [name for name in ("compare", "order", "correlate") if getattr(self, name) is not None]
        if len(forms) != 1:
            reason = f"has {enumerated(forms) or 'no comparison'}"
            hint = "give exactly one of compare, order and correlate"
            raise InputError(reason, hint=hint, code="conflict" if forms else "missing")
        return self

    @model_validator(mode="after")
    def _curves_are_of_probes(self) -> Claim:
        for one in self.quantities():
            if one.curve is not None and not one.measure.startswith(OF_PROBE):
                reason = f"curve has no effect, because the measure {one.measure!r} has no curve over steps"
                hint = "delete curve, or name a measure of a probe (probe:PATH)"
                raise InputError(reason, hint=hint, code="no_effect")
        return self

    @property
    def paper_and_note(self) -> str:
        """The paper's numbers and the note, to be shown beside a verdict."""
        return ". ".join(part for part in (self.paper, self.note) if part)

    def quantities(self) -> Iterator[Quantity]:
        """Yield the quantities that the entries of the claim compare, without those of ``above_floor``."""
        for entry in self.entries():
            yield from entry.quantities()

    def entries(self) -> Sequence[Compare | Order | Correlate]:
        """Return the entries of the one form that the claim has."""
        return self.compare or self.order or self.correlate or ()
