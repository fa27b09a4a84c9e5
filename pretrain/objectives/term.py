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
        """Rows of one language, for each language of the run. A decoder reads them from left to right."""
        ...

    @property
    def masked(self) -> Sequence[RowSource]:
        """Rows of one language with masked words, for each language of the run."""
        ...

    def pairs(self, share: float) -> Sequence[RowSource]:
        """Return rows of sentence pairs, of which a ``share`` is drawn.

        Raises:
            InputError: No pair that is drawn is usable.
        """
        ...


class OwnLoss(Protocol):
    """A loss besides the cross entropies of the labelled positions."""

    def count(self, batch: Batch) -> int:
        """Return the number of summands, by which the sum over a step is divided."""
        ...

    def sum(self, model: Any, batch: TensorBatch) -> torch.Tensor:
        """Return the sum of the loss over a batch, [] float32. ``model`` is a LanguageModel."""
        ...


class Term(Generic[S]):
    """A term of the objective. By default, a term is a cross entropy at labelled positions.

    Labelled positions are the masked words in an encoder, and all positions with a next token in a decoder.

    Attributes:
        name: Name in the settings (``weights``), the log and batches.
        kind: The ``kind`` of objective that consists of mlm and this term, or None.
        causal_kind: The ``kind`` of objective that consists of clm and this term, or None.
        format: Number that is raised when the same settings get another meaning.
        settings: Class of the settings, whose fields are keys in the section ``objective``.
        weight_key: The key that holds the weight of the term in its kind, or None for the weight 1.
        needs: Data artifacts besides the text of each language.
        beside: Other terms with labelled positions in the rows of this term.
        language_ids: True if tokens have language embeddings by default.
        other_languages: True if a label may belong to another language than the word at its position.
    """

    name: ClassVar[str]
    kind: ClassVar[str | None] = None
    causal_kind: ClassVar[str | None] = None
    format: ClassVar[int] = 1
    settings: ClassVar[type[StrictModel]] = StrictModel
    weight_key: ClassVar[str | None] = None
    needs: ClassVar[frozenset[Need]] = frozenset()
    beside: ClassVar[tuple[str, ...]] = ()
    language_ids: ClassVar[bool] = False
    other_languages: ClassVar[bool] = False
    masked: ClassVar[bool] = True
    """True for a sum over labelled positions. All such terms are divided by the labelled positions of the step."""

    def rows(self, settings: S, texts: Texts) -> Sequence[RowSource]:
        """Return the rows that the term trains on, which are none by default."""
        return ()

    def relabel(self, settings: S, artifacts: Artifacts, language_ids: bool) -> Relabel | None:
        """Return the function that changes labelled positions for the term, or None if the term changes none.

        Args:
            settings: The settings of the term.
            artifacts: The data of the run.
            language_ids: True if tokens have language embeddings.
        """
        return None

    def own_loss(self, settings: S, artifacts: Artifacts, device: torch.device) -> OwnLoss | None:
        """Return the loss, with data on ``device``, of a term without labelled positions, or None for other terms."""
        return None
