"""What is learned: a weighted sum of terms, each of which brings its settings (see pretrain/objectives)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field, create_model, field_validator, model_validator

from pretrain.objectives.table import NAMES, PLUGINS, TERMS
from pretrain.objectives.term import Need, Term
from synthlang import plugins
from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.references import OmitDefaultFromHash, resolved

KINDS: dict[str, tuple[str, ...]] = {
    term.kind: ("mlm", term.name) if term.name != "mlm" else ("mlm",) for term in TERMS if term.kind is not None
} | {"sum": ()}


def _settings_of(term: Term[Any]) -> type[StrictModel]:
    """Those of a term; of a plugin's they are not written where they have their defaults."""
    if term.name not in PLUGINS:
        return term.settings
    fields: dict[str, Any] = {name: plugins.optional_field(field) for name, field in term.settings.model_fields.items()}
    return create_model(term.settings.__name__, __base__=term.settings, **fields)


SETTINGS = [_settings_of(term) for term in TERMS if term.settings is not StrictModel]
if TYPE_CHECKING:
    Kind: TypeAlias = str
    Name: TypeAlias = str
else:
    Kind, Name = Literal[tuple(KINDS)], Literal[NAMES]


class MaskingConfig(StrictModel):
    """Which terms there are, and which positions are masked."""

    kind: Kind = "mlm"
    weights: dict[Name, float] = Field(default_factory=dict)
    mask_rate: float = Field(default=0.15, gt=0.0, lt=1.0)
    random_words: Literal["all", "same-language", "source-only"] = "all"


class ObjectiveConfig(*reversed(SETTINGS), MaskingConfig):  # type: ignore[misc]  # fields come in the order of TERMS
    """What is learned: L = Σ weight · (its cross entropies) / (masked positions of the batch) + alpha · L_align.

    kind          which terms there are: mlm; xlm = mlm + tlm; dict_mlm = mlm + dict; align_mlm = mlm + align;
                  sum = those named in ``weights``
    weights       weight of a term (default 1, of ``align`` alpha); may add a term to those of the kind
    mask_rate     share of positions that are masked: 80 % become <mask>, 10 % a random word, 10 % stay
    random_words  where random words come from: all languages, the same one, or the first (the parent)
    language_ids  an embedding for each language, added before the first LayerNorm; default: with tlm or dict
    mean_over     ``positions``: one mean over all masked positions of a step, as in the released code of ALIGN-MLM;
                  ``corpora``: the sum of the means of each corpus (each language, the sentence pairs), as its section 3
                  prints it, so that alpha weighs a half, for XLM's terms a third, as much beside them

    The other keys are those of the terms.
    """

    language_ids: bool | None = None
    mean_over: Annotated[Literal["positions", "corpora"], OmitDefaultFromHash()] = "positions"

    @field_validator("weights")
    @classmethod
    def _not_negative(cls, value: dict[Name, float]) -> dict[Name, float]:
        if any(weight < 0 for weight in value.values()):
            raise ValueError("a weight must not be negative")
        return value

    @model_validator(mode="after")
    def _has_terms(self) -> ObjectiveConfig:
        for term in TERMS:
            if term.weight_key and self.kind == term.kind and term.name in self.weights:
                raise ValueError(
                    f"{term.weight_key} is the weight of {term.kind}'s term {term.name}; leave {term.name} out of "
                    "weights"
                )
        if not any(self.terms[term.name] for term in self.on if term.masked):
            *names, last = (term.name for term in TERMS if term.masked)
            raise ValueError(
                f"must have {', '.join(names)} or {last} with a weight above 0, as in weights: {{mlm: 1, align: 10}}"
            )
        return self

    @property
    def terms(self) -> dict[str, float]:
        """Each term that is on, with its weight, in the order of TERMS."""
        weights = {
            term.name: getattr(self, term.weight_key) if term.weight_key else 1.0
            for term in TERMS
            if term.name in KINDS[self.kind]
        } | self.weights
        return {name: weights[name] for name in NAMES if name in weights}

    @property
    def on(self) -> tuple[Term[Any], ...]:
        return tuple(term for term in TERMS if term.name in self.terms)

    def needing(self, need: Need) -> str | None:
        """The first term that needs a data artifact; None if none does."""
        return next((term.name for term in self.on if need in term.needs), None)

    @property
    def uses_language_ids(self) -> bool:
        """Whether tokens carry the embedding of their language (ALIGN-MLM, appendix G.3 to G.5)."""
        return any(term.language_ids for term in self.on) if self.language_ids is None else bool(self.language_ids)

    def identity(self) -> dict[str, Any]:
        """What affects the weights: the terms, and of the settings those that a term reads."""
        settings: dict[str, Any] = {"terms": self.terms, "language_ids": self.uses_language_ids}
        known = resolved(self, lambda named: named.name)
        settings |= {name: known[name] for name in ("mask_rate", "random_words", "mean_over") if name in known}
        for term in self.on:
            settings |= self.model_dump(include={*term.settings.model_fields} - {term.weight_key})
            settings |= {f"{term.name}_format": term.format} if term.format > 1 else {}
        return settings | plugins.parts("terms", self.terms)


def _check_names() -> None:
    """InputError where a plugin's term has the ``kind`` or a key of another one."""
    kinds = [*(term.kind for term in TERMS if term.kind is not None), "sum"]
    taken = {*MaskingConfig.model_fields, *ObjectiveConfig.__annotations__}
    keys = [*taken, *(name for term in TERMS for name in term.settings.model_fields)]
    for what, names in (("kind", kinds), ("key", keys)):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            told = ", ".join(f"{name} of {of}" for name, of in plugins.parts("terms", PLUGINS)["plugins"].items())
            raise InputError(f"objective: two terms have the {what} {twice[0]!r}; rename it in the plugin: {told}")


_check_names()
