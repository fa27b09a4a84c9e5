"""Settings of the objective, a weighted sum of terms that have their own settings (see ``pretrain.objectives``)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field, create_model, model_validator

from pretrain.data.masking import masked_per_row
from pretrain.objectives.table import NAMES, PLUGINS, TERMS
from pretrain.objectives.term import Need, Term
from synthlang import plugins
from synthlang.config import StrictModel
from synthlang.errors import InputError
from synthlang.references import OmitDefaultFromHash, resolved

KINDS: dict[str, tuple[str, ...]] = {
    kind: (base, term.name) if term.name != base else (base,)
    for base, named in (("mlm", "kind"), ("clm", "causal_kind"))
    for term in TERMS
    if (kind := getattr(term, named)) is not None
} | {"sum": ()}
"""The terms of each kind of objective. Kinds with clm are for decoders."""


def _settings_of(term: Term[Any]) -> type[StrictModel]:
    """Return the settings class of a term. Settings of a plugin are left out of configs at their defaults."""
    if term.name not in PLUGINS:
        return term.settings
    fields: dict[str, Any] = {
        name: plugins.optional_field(name, field) for name, field in term.settings.model_fields.items()
    }
    return create_model(term.settings.__name__, __base__=term.settings, **fields)


SETTINGS = [_settings_of(term) for term in TERMS if term.settings is not StrictModel]
if TYPE_CHECKING:
    Kind: TypeAlias = str
    Name: TypeAlias = str
else:
    Kind, Name = Literal[tuple(KINDS)], Literal[NAMES]


class MaskingConfig(StrictModel):
    """The terms of the objective, and the masked positions."""

    kind: Kind = "mlm"
    """Terms: mlm, xlm (mlm + tlm), dict_mlm (mlm + dict), align_mlm (mlm + align), or sum (those in ``weights``).

    Decoders (``model.kind: gpt2``) have clm, tlm_clm, dict_clm, align_clm, or a sum with clm.
    """
    weights: dict[Name, Annotated[float, Field(ge=0.0)]] = Field(default_factory=dict)
    """Weight of each term (default: 1, and alpha for ``align``). Terms that the kind does not have are added."""
    mask_rate: float = Field(default=0.15, gt=0.0, lt=1.0)
    """Share of the positions that are masked. By BERT's 80/10/10 rule, some of them show a random word or no change."""
    random_words: Literal["all", "same-language", "source-only"] = "all"
    """Language of random words: ``all``, that of the token (``same-language``), or the first (``source-only``)."""


class ObjectiveConfig(*reversed(SETTINGS), MaskingConfig):  # type: ignore[misc]  # fields come in the order of TERMS
    """The objective of a step, a weighted sum of terms. Each term adds its own keys.

        L = Σ weight · (sum of the cross entropies of a term) / (labelled positions) + alpha · L_align / (word pairs)

    Labelled positions are those of all terms in the whole step, or in one corpus (see ``mean_over``). L_align is −Σ cos
    over the word pairs of the dictionary, and is present with the term align only.
    """

    language_ids: bool | None = None
    """Add an embedding of the language before the first LayerNorm (default: with tlm or dict)."""
    mean_over: Annotated[Literal["positions", "corpora"], OmitDefaultFromHash()] = "positions"
    """Positions over which the loss of a step is averaged.

    ``positions`` takes one mean over all labelled positions of a step, as in the released code of ALIGN-MLM.
    ``corpora`` takes a mean for each corpus (each language, the sentence pairs) and sums them, as printed in section 3
    of the paper. In a run of two languages, the same alpha then has half the relative weight, or a third with tlm.
    """

    @model_validator(mode="after")
    def _has_terms(self) -> ObjectiveConfig:
        for term in TERMS:
            if term.weight_key and term.name in KINDS[self.kind] and term.name in self.weights:
                reason = (
                    f"the kind {self.kind} reads the weight of the term {term.name} from objective.{term.weight_key}"
                )
                hint = f"set objective.{term.weight_key}, and leave this key out"
                raise InputError(reason, keys=("weights", term.name), hint=hint, code="conflict")
        if not any(self.terms[term.name] for term in self.on if term.masked):
            *names, last = (term.name for term in TERMS if term.masked)
            reason = f"at least one of {', '.join(names)} and {last} must have a weight above 0"
            hint = "set mlm to 1 for an encoder, or clm to 1 for a decoder"
            raise InputError(reason, keys="weights", hint=hint, code="missing")
        return self

    @property
    def terms(self) -> dict[str, float]:
        """The weight of each term in use, in the order of TERMS."""
        weights = {
            term.name: getattr(self, term.weight_key) if term.weight_key else 1.0
            for term in TERMS
            if term.name in KINDS[self.kind]
        } | self.weights
        return {name: weights[name] for name in NAMES if name in weights}

    @property
    def on(self) -> tuple[Term[Any], ...]:
        """The terms in use, in the order of TERMS."""
        return tuple(term for term in TERMS if term.name in self.terms)

    @property
    def is_causal(self) -> bool:
        """True if the term clm is in use, which makes the model a decoder."""
        return "clm" in self.terms

    @property
    def masks_words(self) -> bool:
        """True if words of the input are masked. A decoder masks words for the term mlm only."""
        return not self.is_causal or "mlm" in self.terms

    def labelled(self, length: int) -> int:
        """Return the number of positions of a row of ``length`` for which the model computes a loss."""
        return length if self.is_causal else masked_per_row(self.mask_rate, length)

    def needing(self, need: Need) -> str | None:
        """Return the name of the first term that needs a data artifact, ``pairs`` or ``dictionary``, or None."""
        return next((term.name for term in self.on if need in term.needs), None)

    @property
    def uses_language_ids(self) -> bool:
        """True if tokens have the embedding of their language (ALIGN-MLM, appendix G.3 to G.5)."""
        return any(term.language_ids for term in self.on) if self.language_ids is None else bool(self.language_ids)

    def identity(self) -> dict[str, Any]:
        """Return the settings that affect the weights of the model: the terms, and the settings that they read."""
        settings: dict[str, Any] = {"terms": self.terms, "language_ids": self.uses_language_ids}
        known = resolved(self, lambda named: named.name)
        shared = ("mask_rate", "random_words", "mean_over") if self.masks_words else ("mean_over",)
        settings |= {name: known[name] for name in shared if name in known}
        for term in self.on:
            settings |= self.model_dump(include={*term.settings.model_fields} - {term.weight_key})
            settings |= {f"{term.name}_format": term.format} if term.format > 1 else {}
        return settings | plugins.parts("terms", self.terms)


def _check_names() -> None:
    """Check that no term of a plugin has the kind or a key of another term.

    Raises:
        InputError: Two terms have the same kind or key.
    """
    kinds = [kind for term in TERMS for kind in (term.kind, term.causal_kind) if kind is not None] + ["sum"]
    taken = {*MaskingConfig.model_fields, *ObjectiveConfig.__annotations__}
    keys = [*taken, *(name for term in TERMS for name in term.settings.model_fields)]
    for what, names in (("kind", kinds), ("key", keys)):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            having = [t.name for t in TERMS if twice[0] in (t.kind, t.causal_kind, *t.settings.model_fields)]
            owners = plugins.parts("terms", PLUGINS.keys() & having)["plugins"]
            place = f"plugin {' and '.join(f'{name} of {package}' for name, package in owners.items())}"
            reason, hint = f"two terms have the {what} {twice[0]!r}", f"rename the {what}, or uninstall the package"
            raise InputError(reason, place, hint=hint, code="duplicate")


_check_names()
