"""The interface of a term of the objective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeVar

from synthlang.config import StrictModel

if TYPE_CHECKING:  # a plugin's term is imported before anything else of ours
    import torch

    from pretrain.artifacts import Artifacts
    from pretrain.data.batch import Batch, RowSource
    from pretrain.data.masking import Relabel
    from pretrain.model.tensors import TensorBatch

Need = Literal["pairs", "dictionary"]
S = TypeVar("S", bound=StrictModel)


class Texts(Protocol):
    """The rows of text that a run can train on."""

    @property
    def monolingual(self) -> Sequence[RowSource]:
        """Rows of one language, for each language of the run."""
        ...

    def pairs(self, share: float) -> Sequence[RowSource]:
        """Return rows of sentence pairs, of which ``share`` are drawn.

        Raises:
            InputError: There are none.
        """
        ...


class OwnLoss(Protocol):
    """A loss besides the cross entropies of the masked positions."""

    def count(self, batch: Batch) -> int:
        """Return the number of summands. The sum over a step is divided by their number in the step."""
        ...

    def sum(self, model: Any, batch: TensorBatch) -> torch.Tensor:
        """Return the sum over them, [] float32. ``model`` is a MaskedLM."""
        ...


class Term(Generic[S]):
    """A term of the objective.

    Without overrides it is a cross entropy at masked positions that needs nothing of its own.

    Attributes:
        name: Its name in the settings (``weights``), the log and batches.
        kind: The ``kind`` of objective that is mlm and this term. None: there is none.
        format: Raised when the same settings mean something else.
        settings: Its keys in the section ``objective``.
        weight_key: The key that is its weight in that kind. None: the weight is 1.
        needs: Data artifacts besides the text of each language.
        beside: Terms that its rows have masked positions of, too.
        language_ids: Whether tokens show their language by default.
        other_languages: Whether a label may be a word of another language than the masked one.
    """

    name: ClassVar[str]
    kind: ClassVar[str | None] = None
    format: ClassVar[int] = 1
    settings: ClassVar[type[StrictModel]] = StrictModel
    weight_key: ClassVar[str | None] = None
    needs: ClassVar[frozenset[Need]] = frozenset()
    beside: ClassVar[tuple[str, ...]] = ()
    language_ids: ClassVar[bool] = False
    other_languages: ClassVar[bool] = False
    masked: ClassVar[bool] = True
    """True for a sum over masked positions. All such terms are divided by the labelled positions of the step."""

    def rows(self, settings: S, texts: Texts) -> Sequence[RowSource]:
        """Return the rows that the term trains on."""
        return ()

    def relabel(self, settings: S, artifacts: Artifacts, language_ids: bool) -> Relabel | None:
        """Return which masked positions the term takes over, and what is shown and predicted there.

        ``language_ids`` is whether tokens show their language.
        """
        return None

    def own_loss(self, settings: S, artifacts: Artifacts, device: torch.device) -> OwnLoss | None:
        """Return its loss where it is not ``masked``."""
        return None
