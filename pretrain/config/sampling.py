"""Settings of the frequency with which each language is sampled, which may change during a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pretrain.config.training import check_place, step_of
from synthlang.config import StrictModel
from synthlang.errors import SHOWN, Code, InputError
from synthlang.references import OmitDefaultFromHash
from synthlang.wording import first_few, plural


class StageConfig(StrictModel):
    """A part of a run, and the frequency of each language in this part."""

    start: float = Field(ge=0.0)
    """Beginning of the stage: a number of steps, or a share of the run, which is below 1 and rounded down to a step."""
    shares: dict[str, Annotated[float, Field(ge=0.0)]]
    """Relative frequency of each language in the stage, of any scale. A language with 0 has no monolingual row."""

    @model_validator(mode="after")
    def _means_something(self) -> StageConfig:
        check_place(self.start, "start")
        if not any(self.shares.values()):
            reason = "all shares are 0" if self.shares else "the stage has no shares"
            code: Code = "range" if self.shares else "empty"
            raise InputError(reason, keys="shares", hint="give at least one share above 0", code=code)
        return self

    def first_step(self, steps: int) -> int:
        """Return the first step of the stage, counted from 0, in a run of ``steps`` steps."""
        return step_of(self.start, steps)


class SamplingConfig(StrictModel):
    """The frequency with which each language is sampled."""

    exponent: float = Field(default=0.0, ge=0.0, le=1.0)
    """Exponent a of the frequency of a language, ∝ (its number of sentences)^a. 0 is uniform, and XLM uses 0.7."""
    shares: Annotated[dict[str, Annotated[float, Field(gt=0.0)]] | None, OmitDefaultFromHash()] = None
    """Relative frequency of each language, of any scale, in place of ``exponent``."""
    schedule: Annotated[tuple[StageConfig, ...], OmitDefaultFromHash()] = ()
    """Stages with different frequencies, in place of ``shares``. The first one starts at 0."""
    batches: Annotated[Literal["mixed", "one-language"], OmitDefaultFromHash()] = "mixed"
    """Languages of a step: ``mixed`` or ``one-language``.

    With ``mixed``, each step has rows of all languages in proportion to their shares. With ``one-language``, each step
    draws one language, or one pair of languages, by the shares (Conneau et al. 2020, "Emerging Cross-lingual
    Structure", section 3.1).
    """

    @model_validator(mode="after")
    def _one_of_two(self) -> SamplingConfig:
        if self.schedule and self.shares is not None:
            hint = "leave one of the two keys out"
            raise InputError("both shares and schedule are given", keys="schedule", hint=hint, code="conflict")
        if self.schedule and self.schedule[0].start:
            reason = f"the first stage starts at {self.schedule[0].start:.15g}, not at 0"
            raise InputError(reason, keys="schedule.0.start", hint="set this key to 0", code="range")
        return self

    def check(self, languages: Collection[str], steps: int) -> None:
        """Check shares and stages against the languages and the number of steps of a run.

        Raises:
            InputError: The shares do not name exactly the languages of the run, a stage does not start after the stage
                before it, or a stage starts after the last step.
        """
        if self.shares is not None:
            _check_names(self.shares, languages, "sampling.shares")
        before = -1
        for number, stage in enumerate(self.schedule):
            _check_names(stage.shares, languages, f"sampling.schedule.{number}.shares")
            first, where = stage.first_step(steps), f"sampling.schedule.{number}.start"
            if first >= steps:
                reason = f"the stage starts at step {first:,}, but the run has only {plural(steps, 'step')}"
                raise InputError(reason, keys=where, hint="set an earlier start, or raise steps", code="range")
            if first <= before:
                reason = f"the stage starts at step {first:,}, which is not after the stage before it (step {before:,})"
                raise InputError(reason, keys=where, hint="set a later start, or remove the stage", code="conflict")
            before = first

    def rescaled(self, steps: int, new: int) -> SamplingConfig:
        """Return the settings for a run of ``new`` steps instead of ``steps``.

        Of stages that would start at the same step, only the last remains.
        """
        stages = {stage.first_step(steps) * new // steps: stage for stage in self.schedule}
        moved = tuple(stage.model_copy(update={"start": float(first)}) for first, stage in stages.items())
        return self.model_copy(update={"schedule": moved})


def _check_names(shares: Mapping[str, float], languages: Collection[str], where: str) -> None:
    if shares.keys() != set(languages):
        missing = [f"the language {name!r} has no share" for name in languages if name not in shares]
        unknown = [f"{name!r} is not a language of the run" for name in shares if name not in languages]
        hint = f"name exactly the languages of the run: {', '.join(languages)}"
        raise InputError(first_few([*missing, *unknown], SHOWN, "; "), keys=where, hint=hint, code="conflict")
